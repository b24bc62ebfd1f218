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
from a1gm._solve.factors import Factors
from a1gm.exceptions import NotRepresentableError
from a1gm.nmmf.layout import Layout, SharedTable

# Binary logarithms. Between the first two there is room for the solver's own quotients.
LOW, HIGH = -900.0, 1000.0
LEAST, MOST = -1022.0, 1020.0
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


def inside_blocks(raw: Factors, lines: Floats, cols: Floats) -> tuple[Floats, Floats]:
    """Leave out the lines and columns without data of their own."""
    if raw.all_inside:
        return lines, cols
    return lines[raw.line_block >= 0], cols[raw.col_block >= 0]


def check_in_range(raw: Factors, lines: Floats, cols: Floats) -> None:
    """Raise for a factor of a line or column with data that is 0 or not finite."""
    for factor in inside_blocks(raw, lines, cols):
        if not (factor.all() and np.isfinite(factor).all()):
            raise NotRepresentableError(OUT_OF_RANGE)


def common_exponent(
    layout: Layout, seen: list[Observation], row_sets: list[int]
) -> int:
    """Exponent of the unit of all weighted sums; even, for each side takes half.

    The usual one is 0, and sums are looked at only where a weight or the exponent of an
    observation changes them.
    """
    usual = max(seen[r].exponent for r in row_sets)
    usual += usual % 2
    steering = layout.steering
    total = sum(float(seen[r].statistics.col_sums.sum()) for r in row_sets)
    is_untouched = all(
        table.weight == 1.0 and seen[table.row_set].exponent == usual
        for table in steering
    )
    if is_untouched and total < 2.0**HIGH:
        return usual
    ranges = [_range(layout, seen[table.row_set], table) for table in steering]
    low = min(bits[0] for bits in ranges)
    high = max(bits[1] for bits in ranges) + math.log2(len(steering))
    if low == math.inf or (low - usual >= LOW and high - usual <= HIGH):
        return usual
    exponent = 2 * round((low + high) / 4.0)  # both ends equally far from theirs
    exponent = min(max(exponent, -FURTHEST), FURTHEST)
    if low - exponent < LEAST or high - exponent > MOST:
        raise NotRepresentableError(TOO_FAR_APART)
    return exponent


def _range(
    layout: Layout, seen: Observation, table: SharedTable
) -> tuple[float, float]:
    """Binary logarithms of the least weighted sum of a table, and above the largest."""
    own, statistics = table.columns, seen.statistics
    if isinstance(statistics, PatternStatistics):
        sums = statistics.sums[:, own]
    else:
        k = layout.of_rows(table.row_set).index(table) if len(seen.row_sums) > 1 else 0
        sums = np.concatenate((statistics.col_sums[own], seen.row_sums[k]))
    positive = sums[sums > 0.0]
    if not len(positive):
        return math.inf, -math.inf
    unit = math.log2(table.weight) + seen.exponent
    # A bound: the sum itself may be above the largest float64.
    largest = math.log2(positive.max()) + math.log2(len(positive))
    return math.log2(positive.min()) + unit, largest + unit
