"""The level of a small table among large ones, which their common margins cannot show.

At the optimum each table that is the only link between its two sides has its own total:
its fitted cells sum to its data. Margins are shared, and where another table has nearly
all of them the certificate says nothing of the small one's level; this puts it right.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from a1gm._base.float_range import product
from a1gm._base.types import Floats
from a1gm._observe.statistics import Statistics, weighted_counts
from a1gm._solve.certificate import margin_mismatch
from a1gm._solve.factors import Factors
from a1gm.exceptions import NotRepresentableError
from a1gm.nmmf.exponent import OUT_OF_RANGE, check_in_range
from a1gm.nmmf.join import JointTable
from a1gm.nmmf.layout import SharedTable

Bits = dict[Hashable, Floats]

__all__ = ["may_be_off_level", "set_levels"]

LARGE = 0.1  # of the largest table
ROUNDS, MOST_RATE = 50, 0.98
WORTH = 10.0  # times the tolerance: a level that may be further off is mended


def may_be_off_level(joint: JointTable, gap: float, tol: float) -> bool:
    """Whether the mismatch of the margins leaves room for a wrong level of a table.

    Only where each table is the only link between its sides can that be mended.
    """
    totals = [_column_sums(joint, t).sum() for t in joint.layout.steering]
    if gap * max(totals) <= WORTH * tol * min(totals):
        return False
    # As many sets as tables and one more for each part: no chain of tables is closed.
    n_parts = sum(is_first for _, is_first in joint.layout.spanning_order())
    return len(totals) == len(joint.patterns) + len(joint.columns) - n_parts


def set_levels(
    joint: JointTable, raw: Factors, statistics: Statistics, tol: float
) -> tuple[Factors, float]:
    """Bring every table to its total, without leaving the margins.

    The number says by how much a level is still off; 0 where it is within ``tol``.
    """
    before, still_off = None, 0.0
    for _ in range(ROUNDS):
        off = _bits_missing(joint, raw)
        furthest = max(float(np.abs(bits).max()) for bits in off.values())
        if furthest <= tol and raw.gap <= tol:
            break
        if furthest > tol:
            steps = off if before is None else _extrapolated(off, before)
            raw, before = _scaled(joint, raw, steps), off
        # Entities of one table only have its margins, which a new level has moved.
        with np.errstate(all="ignore"):
            raw = _swept(raw, statistics)
            raw = replace(raw, gap=margin_mismatch(raw, statistics))
        if not raw.gap < math.inf:
            raise NotRepresentableError(OUT_OF_RANGE)
        check_in_range(raw, raw.line_factor, raw.col_factor)
    else:
        still_off = furthest
    if before is None:
        return raw, still_off
    sums = statistics.row_sums
    scale = product(raw.line_factor, over=np.where(sums > 0.0, sums, np.inf))
    return replace(raw, line_scale=scale), still_off


def _extrapolated(off: Bits, before: Bits) -> Bits:
    """The sum of all further steps, if each shrinks by the same rate as the last."""
    steps = {}
    for key, bits in off.items():
        some = before[key] != 0.0
        rate = np.divide(bits, before[key], out=np.zeros_like(bits), where=some)
        steps[key] = bits / (1.0 - np.clip(rate, 0.0, MOST_RATE))
    return steps


def _scaled(joint: JointTable, raw: Factors, steps: Bits) -> Factors:
    """Multiply the factors of each set, block by block, so that tables take steps."""
    rows, cols = _bits_of_sets(joint, steps)
    by_pattern, by_col = np.zeros(joint.n_patterns), np.zeros(joint.n_cols)
    for r, place in joint.patterns.items():
        by_pattern[place] = rows[r][raw.line_block[place]]
    for c, place in joint.columns.items():
        by_col[place] = cols[c][raw.col_block[place]]
    # What one side gains the other loses: the middles of both at the same height.
    shift = (
        _middle(raw.col_factor, by_col) - _middle(raw.line_factor, by_pattern)
    ) / 2.0
    return replace(
        raw,
        line_factor=_raised(raw.line_factor, by_pattern + shift),
        col_factor=_raised(raw.col_factor, by_col - shift),
    )


def _bits_of_sets(
    joint: JointTable, steps: Bits
) -> tuple[dict[int, Floats], dict[int, Floats]]:
    """Binary logarithm of what each row set and column set is scaled by, per block."""
    rows: dict[int, Floats] = {}
    cols: dict[int, Floats] = {}
    for table, _ in joint.layout.spanning_order():
        step = steps[table.key]
        if table.col_set in cols:
            rows[table.row_set] = step - cols[table.col_set]
        else:
            first = rows.setdefault(table.row_set, np.zeros_like(step))
            cols[table.col_set] = step - first
    return rows, cols


def _swept(raw: Factors, statistics: Statistics) -> Factors:
    """One sweep of alternating scaling over the joint table; may leave the range."""
    w, h = np.nan_to_num(raw.line_factor), np.nan_to_num(raw.col_factor)
    in_line, in_col = raw.line_block >= 0, raw.col_block >= 0
    rows, _ = statistics.margins(w, h, raw.line_block, raw.col_block)
    w = np.where(in_line, w * (statistics.row_sums / rows), 0.0)
    _, cols = statistics.margins(w, h, raw.line_block, raw.col_block)
    h *= statistics.col_sums / cols
    return replace(
        raw,
        line_factor=np.where(in_line, w, raw.line_factor),
        col_factor=np.where(in_col, h, raw.col_factor),
    )


def _middle(factor: Floats, bits: Floats) -> float:
    """Binary logarithm halfway between the smallest and the largest scaled factor."""
    some = np.nan_to_num(factor) > 0.0
    height = np.log2(factor[some]) + bits[some]
    return float(height.min() + height.max()) / 2.0 if len(height) else 0.0


def _raised(factor: Floats, bits: Floats) -> Floats:
    whole = np.floor(bits)
    return product(factor, np.exp2(bits - whole), exponent=whole.astype(np.int64))


def _bits_missing(joint: JointTable, raw: Factors) -> Bits:
    """How far each table's level is off, per block; last, 0 for what is in no block."""
    tables = joint.layout.steering
    totals = [_column_sums(joint, table).sum() for table in tables]
    # With one block the margins have shown that the large tables are right.
    least = LARGE * max(totals) if raw.n_blocks == 1 else math.inf
    return {
        table.key: np.zeros(raw.n_blocks + 1)
        if total >= least
        else _bits_of_table(joint, raw, table)
        for table, total in zip(tables, totals, strict=True)
    }


def _bits_of_table(joint: JointTable, raw: Factors, table: SharedTable) -> Floats:
    """Binary logarithm of a table's total over that of its fit, for each block."""
    patterns, cols = joint.patterns[table.row_set], joint.columns[table.col_set]
    w, w_bits = _at_most_one(raw.line_factor[patterns])
    h, h_bits = _at_most_one(raw.col_factor[cols])
    pattern_block, col_block = raw.line_block[patterns], raw.col_block[cols]
    fitted = np.zeros(len(h))
    for part, observed in joint.observed_cells(table):
        if raw.n_blocks > 1:
            observed = observed & (pattern_block[part, None] == col_block)  # noqa: PLW2901
        fitted += h * (w[part] @ observed)
    inside = col_block >= 0
    data, fit = (
        weighted_counts(col_block[inside], sums[inside], raw.n_blocks)
        for sums in (_column_sums(joint, table), fitted)
    )
    bits = np.zeros(raw.n_blocks + 1)
    some = np.flatnonzero((data > 0.0) & (fit > 0.0))
    bits[some] = np.log2(data[some]) - np.log2(fit[some]) - (w_bits + h_bits)
    return bits


def _at_most_one(factor: Floats) -> tuple[Floats, int]:
    """Scale by a power of two, so that sums of products do not overflow."""
    known = np.nan_to_num(factor)
    bits = int(np.frexp(known.max())[1])
    return np.ldexp(known, -bits), bits


def _column_sums(joint: JointTable, table: SharedTable) -> Floats:
    """Weighted sum of each column of one table."""
    sums = joint.seen[table.row_set].statistics.col_sums[table.columns]
    return np.asarray(sums * joint.weight_of(table))
