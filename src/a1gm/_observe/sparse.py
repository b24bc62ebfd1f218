"""Observe a sparse table by its stored cells: the cost grows with them alone."""

from __future__ import annotations

import math

import numpy as np

from a1gm._base.bits import pack_bits
from a1gm._base.float_range import shifted
from a1gm._base.types import Bools, Floats, Ints, Negatives, SmallInts, Words
from a1gm._observe.patterns import Patterns
from a1gm._rows.sparse import SparseRows, check_stored_cells
from a1gm.exceptions import TableTooLargeError

TINY = 2.0**-900  # tables whose total is below are scaled up
LIFT = 2.0**200
TABLE_CELLS = 1 << 22  # a table of sums up to this size is always kept
MAX_MASK_BYTES = 1 << 31
CELLS_AT_ONCE = 1 << 22


def observe_sparse(
    source: SparseRows, *, negatives: Negatives | None = "raise", row_offset: int = 0
) -> Patterns:
    """Observe a sparse table, and raise for cells that cannot be fitted."""
    n_negative = check_stored_cells(source, negatives, row_offset)
    seen = _observe_missing if source.absent == "missing" else _observe_zero
    patterns = seen(source, 0)
    patterns.n_negative = n_negative
    exponent = _better_exponent(patterns, source)
    if exponent:
        patterns = seen(source, exponent)
        patterns.n_negative, patterns.exponent = n_negative, exponent
    return patterns


def _better_exponent(seen: Patterns, source: SparseRows) -> int:
    """Power of two to divide by when sums overflow or nearly vanish; else 0."""
    # The total bounds every column sum, unless cells of both signs cancel.
    with np.errstate(over="ignore"):
        total = float(seen.sum_of_row.sum())
    if seen.n_negative:
        total += float(seen.col_sums.sum())
    if not np.isfinite(total):
        return 2 + int(math.log2(max(len(source.values), 1)))
    if 0.0 < seen.sum_of_row.max() < TINY:
        return -int(math.log2(LIFT))
    return 0


def _scaled(values: Floats, exponent: int) -> Floats:
    return values if exponent == 0 else shifted(values, -exponent)


# ----------------------------------------------------- absent cells are missing
def _observe_missing(source: SparseRows, exponent: int) -> Patterns:
    known = source.without_missing()
    sums = _scaled(known.values, exponent)
    seen = Patterns(known.n_cols, ptr=known.ptr, cols=known.cols, sums=sums)
    seen.sum_of_row = seen.row_sums
    return seen


# -------------------------------------------------------- absent cells are zero
def _observe_zero(source: SparseRows, exponent: int) -> Patterns:
    """Group rows by their stored NaN: nearly all rows have none and are one line."""
    missing = source.missing
    lines = source.lines
    line_of_row, holes, hole_line = _group_rows(source, lines[missing], missing)
    n_lines, m = int(line_of_row.max()) + 1, source.n_cols
    values = _scaled(np.where(missing, 0.0, source.values), exponent)
    with np.errstate(over="ignore"):
        row_sums = np.bincount(lines, values, minlength=source.n_rows).astype(float)
    cells = line_of_row[lines].astype(np.int64) * m + source.cols
    is_table = n_lines * m <= max(TABLE_CELLS, 4 * len(values))
    if not is_table:
        _check_mask_size(n_lines, m)
    seen = Patterns(m, _mask_bits(n_lines, m, hole_line, holes))
    seen.sum_of_row, seen.line_of_row = row_sums, line_of_row
    if is_table:
        sums = np.bincount(cells, values, minlength=n_lines * m).reshape(n_lines, m)
        seen.sums = sums.astype(float)
        seen.counts = np.bincount(line_of_row, minlength=n_lines)
    else:
        seen.positive = _positive_bits(n_lines, m, cells[values > 0.0])
        sums = np.bincount(line_of_row, row_sums, minlength=n_lines)
        seen.row_margin = sums.astype(float)
        seen.col_margin = np.bincount(source.cols, values, minlength=m).astype(float)
    return seen


def _group_rows(
    source: SparseRows, hole_rows: Ints, missing: Bools
) -> tuple[SmallInts, SmallInts, Ints]:
    """Line of each row, and the holes of each line: columns, and the line of each."""
    holes = source.cols[missing]
    rows, first = np.unique(hole_rows, return_index=True)
    ends = np.append(first, len(holes))[1:]
    line_of_row = np.zeros(source.n_rows, np.int32)
    fresh = 1 if len(rows) < source.n_rows else 0  # line 0: rows without a hole
    index: dict[bytes, int] = {}
    kept = [np.zeros(0, np.int32)]
    sizes: list[int] = []
    for row, start, end in zip(rows, first, ends, strict=True):
        pattern = holes[start:end]
        line = index.setdefault(pattern.tobytes(), fresh + len(index))
        if line == fresh + len(sizes):
            kept.append(pattern)
            sizes.append(end - start)
        line_of_row[row] = line
    hole_line = np.repeat(fresh + np.arange(len(sizes)), np.array(sizes, np.int64))
    return line_of_row, np.concatenate(kept), hole_line


def _mask_bits(n_lines: int, m: int, hole_line: Ints, holes: SmallInts) -> Words:
    bits = np.repeat(pack_bits(np.ones((1, m), bool)), n_lines, axis=0)
    one = np.left_shift(np.uint64(1), (holes % 64).astype(np.uint64))
    np.bitwise_and.at(bits, (hole_line, holes // 64), ~one)
    return bits


def _positive_bits(n_lines: int, m: int, cells: Ints) -> Words:
    """Pack the positive cells, a few lines at a time."""
    cells = np.unique(cells)
    step = max(1, CELLS_AT_ONCE // m)
    packed = []
    for start in range(0, n_lines, step):
        stop = min(start + step, n_lines)
        first, last = np.searchsorted(cells, (start * m, stop * m))
        block = np.zeros((stop - start) * m, bool)
        block[cells[first:last] - start * m] = True
        packed.append(pack_bits(block.reshape(stop - start, m)))
    return np.concatenate(packed)


def _check_mask_size(n_lines: int, m: int) -> None:
    need = n_lines * m // 4
    if need > MAX_MASK_BYTES:
        raise TableTooLargeError(
            f"The stored NaN of this sparse table make {n_lines:,} different patterns "
            f"of rows; their masks over {m:,} columns would need {need:,} bytes. Drop "
            'the rows or columns with most NaN, or use absent="missing".'
        )
