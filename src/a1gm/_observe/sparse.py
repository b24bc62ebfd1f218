"""Observe a sparse table by its stored cells: the cost grows with them alone."""

from __future__ import annotations

import numpy as np

from a1gm._base.bits import pack_bits
from a1gm._base.types import Bools, Ints, Negatives, SmallInts, Words
from a1gm._observe.patterns import Patterns
from a1gm._rows.rows import check_sums, check_values
from a1gm._rows.sparse import SparseRows
from a1gm.exceptions import TableTooLargeError

TABLE_CELLS = 1 << 22  # a table of sums up to this size is always kept
MAX_MASK_BYTES = 1 << 31


def observe_sparse(
    source: SparseRows, *, negatives: Negatives | None = "raise", row_offset: int = 0
) -> Patterns:
    """Observe a sparse table, and raise for cells that cannot be fitted."""
    n_negative = check_values(source, source.values, negatives, row_offset)
    see = _observe_missing if source.absent == "missing" else _observe_zero
    seen = see(source)
    seen.n_negative = n_negative
    check_sums(source, np.nan_to_num(source.values), seen.sum_of_row, row_offset)
    return seen


# ----------------------------------------------------- absent cells are missing
def _observe_missing(source: SparseRows) -> Patterns:
    known = source.without_missing()
    seen = Patterns(known.n_cols, ptr=known.ptr, cols=known.cols, sums=known.values)
    seen.sum_of_row = seen.row_sums
    return seen


# -------------------------------------------------------- absent cells are zero
def _observe_zero(source: SparseRows) -> Patterns:
    """Group rows by their stored NaN: rows without are one pattern."""
    missing = source.missing
    rows = source.row_of_cell
    pattern_of_row, holes, hole_pattern = _group_rows(source, rows[missing], missing)
    n_patterns, m = int(pattern_of_row.max()) + 1, source.n_cols
    values = np.where(missing, 0.0, source.values)
    row_sums = np.bincount(rows, values, minlength=source.n_rows).astype(float)
    cells = pattern_of_row[rows].astype(np.int64) * m + source.cols
    is_table = n_patterns * m <= max(TABLE_CELLS, 4 * len(values))
    need = n_patterns * m // 4
    if not is_table and need > MAX_MASK_BYTES:
        raise TableTooLargeError(
            f"The stored NaN of this sparse table make {n_patterns:,} different "
            f"patterns of rows; their masks over {m:,} columns would need {need:,} "
            'bytes. Drop the rows or columns with most NaN, or use absent="missing".'
        )
    every = pack_bits(np.ones((1, m), bool))
    seen = Patterns(m, every & ~_bits_at(n_patterns, m, hole_pattern, holes))
    seen.sum_of_row, seen.pattern_of_row = row_sums, pattern_of_row
    if is_table:
        sums = np.bincount(cells, values, minlength=n_patterns * m)
        seen.sums = sums.astype(float).reshape(n_patterns, m)
        seen.counts = np.bincount(pattern_of_row, minlength=n_patterns)
    else:
        positive = divmod(np.unique(cells[values > 0.0]), m)
        seen.positive = _bits_at(n_patterns, m, *positive)
        sums = np.bincount(pattern_of_row, row_sums, minlength=n_patterns)
        seen.row_margin = sums.astype(float)
        seen.col_margin = np.bincount(source.cols, values, minlength=m).astype(float)
    return seen


def _group_rows(
    source: SparseRows, hole_rows: Ints, missing: Bools
) -> tuple[SmallInts, SmallInts, Ints]:
    """Pattern of each row; column and pattern of each hole of the patterns."""
    holes = source.cols[missing]
    rows, first = np.unique(hole_rows, return_index=True)
    ends = np.append(first, len(holes))[1:]
    pattern_of_row = np.zeros(source.n_rows, np.int32)
    fresh = 1 if len(rows) < source.n_rows else 0  # pattern 0: rows without a hole
    index: dict[bytes, int] = {}
    kept = [np.zeros(0, np.int32)]
    sizes: list[int] = []
    for row, start, end in zip(rows, first, ends, strict=True):
        columns = holes[start:end]
        pattern = index.setdefault(columns.tobytes(), fresh + len(index))
        if pattern == fresh + len(sizes):
            kept.append(columns)
            sizes.append(end - start)
        pattern_of_row[row] = pattern
    hole_pattern = np.repeat(fresh + np.arange(len(sizes)), np.array(sizes, np.int64))
    return pattern_of_row, np.concatenate(kept), hole_pattern


def _bits_at(n_patterns: int, m: int, patterns: Ints, cols: Ints | SmallInts) -> Words:
    """Bits of some cells of the patterns."""
    bits = np.zeros((n_patterns, -(-m // 64)), np.uint64)
    one = np.left_shift(np.uint64(1), (cols % 64).astype(np.uint64))
    np.bitwise_or.at(bits, (patterns, cols // 64), one)
    return bits
