"""The power of two at which the weighted sums of all tables are finite, none of them 0.

Weights multiply sums that may be anywhere in float64 themselves, and the sums of tables
that share a factor must stand on one scale.
"""

from __future__ import annotations

import math

import numpy as np

from a1gm._base.types import Floats
from a1gm._observe.observation import Observation
from a1gm._observe.statistics import PatternStatistics
from a1gm.exceptions import NotRepresentableError
from a1gm.nmmf.layout import Layout

__all__ = ["OUT_OF_RANGE", "TOO_FAR_APART", "common_exponent"]

# Binary logarithms. Between the first two there is room for the solver's own quotients.
LOW, HIGH = -900.0, 1000.0
LEAST, MOST = -1022.0, 1020.0
MODERATE = 2.0**800
FURTHEST = 600  # with this and the weights, every sum of float64 is within range
OUT_OF_RANGE = (
    "The shared factors of these tables are outside the range of float64 (about 1e-308 "
    "to 1e308). Multiply the tables by powers of ten that bring them nearer to 1."
)
TOO_FAR_APART = (
    "The weighted cells of these tables are further apart than float64 reaches (1e-308 "
    "to 1e308). Multiply the tables by powers of ten that bring them closer together, "
    "or use weights nearer to 1."
)


def common_exponent(
    layout: Layout, seen: list[Observation], row_sets: list[int]
) -> int:
    """Exponent of the unit of all weighted sums; even, for each side takes half.

    The usual one is 0, and sums are looked at only where a weight or the exponent of an
    observation changes them.
    """
    usual = max(seen[r].exponent for r in row_sets)
    usual += usual % 2
    steering = [
        (r, k, table.weight)
        for r in row_sets
        for k, table in enumerate(layout.of_rows(r))
        if not table.is_passive
    ]
    is_untouched = all(w == 1.0 and seen[r].exponent == usual for r, _, w in steering)
    if is_untouched and sum(_total(seen[r]) for r in row_sets) < 2.0**HIGH:
        return usual
    if usual == 0 and all(_is_moderate(seen[r], w) for r, _, w in steering):
        return usual
    low, high = math.inf, -math.inf
    for r, k, weight in steering:
        sums = _sums_of_table(layout, seen[r], r, k)
        positive = sums[sums > 0.0]
        if len(positive):
            unit = math.log2(weight) + seen[r].exponent
            low = min(low, math.log2(positive.min()) + unit)
            # A bound: the sum itself may be above the largest float64.
            high = max(
                high, math.log2(positive.max()) + math.log2(len(positive)) + unit
            )
    high += math.log2(len(steering))
    if low == math.inf or (low - usual >= LOW and high - usual <= HIGH):
        return usual
    exponent = 2 * round((low + high) / 4.0)  # both ends equally far from theirs
    exponent = min(max(exponent, -FURTHEST), FURTHEST)
    if low - exponent < LEAST or high - exponent > MOST:
        raise NotRepresentableError(TOO_FAR_APART)
    return exponent


def _is_moderate(seen: Observation, weight: float) -> bool:
    """Whether all sums of a row set are well within range; False when in doubt."""
    statistics = seen.statistics
    if isinstance(statistics, PatternStatistics):  # 0 stands for what is missing, too
        least = statistics.sums.min(where=statistics.sums > 0.0, initial=MODERATE)
    else:
        least = min(statistics.col_sums.min(), seen.row_sums.min())
    is_low = seen.exponent != 0 or float(least) * weight < 1.0 / MODERATE
    return not is_low and _total(seen) * weight < MODERATE


def _total(seen: Observation) -> float:
    return float(seen.statistics.col_sums.sum())


def _sums_of_table(layout: Layout, seen: Observation, r: int, k: int) -> Floats:
    """Every sum of one table that the weights will multiply."""
    widths = [table.n_cols for table in layout.of_rows(r)]
    own = slice(sum(widths[:k]), sum(widths[: k + 1]))
    statistics = seen.statistics
    if isinstance(statistics, PatternStatistics):
        return statistics.sums[:, own].ravel()
    rows = seen.row_sums[k if len(seen.row_sums) > 1 else 0]
    return np.concatenate((statistics.col_sums[own], rows))
