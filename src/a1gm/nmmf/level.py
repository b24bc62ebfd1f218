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
from a1gm.nmmf.exponent import OUT_OF_RANGE
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
    tables = [t for t in joint.layout.tables if not t.is_passive]
    totals = [_total(joint, t) for t in tables]
    if gap * max(totals) <= WORTH * tol * min(totals):
        return False
    # As many sets as tables and one more for each part: no chain of tables is closed.
    n_sets = len(joint.patterns) + len(joint.columns)
    return len(tables) == n_sets - _n_parts(tables)


def _n_parts(tables: list[SharedTable]) -> int:
    """Groups of tables that share no set with each other."""
    parts: list[set[tuple[str, int]]] = []
    for table in tables:
        part = {("row", table.row_set), ("col", table.col_set)}
        for other in [p for p in parts if p & part]:
            parts.remove(other)
            part |= other
        parts.append(part)
    return len(parts)


def set_levels(
    joint: JointTable, raw: Factors, statistics: Statistics, tol: float
) -> Factors:
    """Bring every table to its total, without leaving the margins."""
    before = None
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
        _check_range(raw)
    else:  # a level that is off counts as margins that are
        raw = replace(raw, gap=max(raw.gap, furthest))
    if before is None:
        return raw
    sums = statistics.row_sums
    scale = product(raw.line_factor, over=np.where(sums > 0.0, sums, np.inf))
    return replace(raw, line_scale=scale)


def _check_range(raw: Factors) -> None:
    for factor, block in (
        (raw.line_factor, raw.line_block),
        (raw.col_factor, raw.col_block),
    ):
        inside = factor[block >= 0]
        if not (inside.all() and np.isfinite(inside).all() and raw.gap < math.inf):
            raise NotRepresentableError(OUT_OF_RANGE)


def _extrapolated(off: Bits, before: Bits) -> Bits:
    """The sum of all further steps, if each is to the last as that is to its last."""
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
    waiting = [t for t in joint.layout.tables if not t.is_passive]
    while waiting:
        met = (t for t in waiting if t.row_set in rows or t.col_set in cols)
        table = next(met, waiting[0])
        waiting.remove(table)
        step = steps[table.key]
        if table.col_set in cols:
            rows[table.row_set] = step - cols[table.col_set]
        else:
            first = rows.setdefault(table.row_set, np.zeros_like(step))
            cols[table.col_set] = step - first
    return rows, cols


def _swept(raw: Factors, statistics: Statistics) -> Factors:
    """One sweep of alternating scaling over the joint table; may leave the range."""
    w, h = raw.line_factor.copy(), np.nan_to_num(raw.col_factor)
    sums, fitted = statistics.row_sums, np.zeros(len(h))
    for patterns, observed in statistics.pieces():
        inside = observed & (raw.line_block[patterns, None] == raw.col_block)
        some = raw.line_block[patterns] >= 0
        w[patterns] = np.where(some, sums[patterns] / (inside @ h), w[patterns])
        fitted += np.where(some, w[patterns], 0.0) @ inside
    cols = np.where(raw.col_block >= 0, statistics.col_sums / fitted, h)
    return replace(
        raw,
        line_factor=w,
        col_factor=np.where(np.isnan(raw.col_factor), np.nan, cols),
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
    """What each table's level is off by; the last is for what belongs to no block."""
    tables = [t for t in joint.layout.tables if not t.is_passive]
    totals = [_total(joint, t) for t in tables]
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
    own = joint.columns_of(table)
    for part, cells in joint.seen[table.row_set].statistics.pieces():
        observed = cells[:, own]
        if raw.n_blocks > 1:
            observed = observed & (pattern_block[part, None] == col_block)
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


def _total(joint: JointTable, table: SharedTable) -> float:
    return float(_column_sums(joint, table).sum())


def _column_sums(joint: JointTable, table: SharedTable) -> Floats:
    """Weighted sum of each column of one table."""
    sums = joint.seen[table.row_set].statistics.col_sums[joint.columns_of(table)]
    return np.asarray(sums * joint.weight_of(table))
