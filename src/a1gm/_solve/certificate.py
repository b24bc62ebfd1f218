"""The proof of optimality: the fitted table has the margins of the data."""

from __future__ import annotations

import numpy as np

from a1gm._base.bits import unpack_bits
from a1gm._base.float_range import product, sum_groups, wide_product
from a1gm._base.types import Floats
from a1gm._observe.disk import DiskStatistics
from a1gm._observe.statistics import Statistics, weighted_counts
from a1gm._solve.column_graph import ColumnGraph
from a1gm._solve.factors import Factors, relative_gap
from a1gm._solve.mask import DiskMask

# Of a mask in a file: a mismatch above it may be that of numbers out of range, which
# is worth another look at so many cells.
PRECISE, MOST_CELLS = 1e-10, 16_000_000


def margin_mismatch(
    factors: Factors, statistics: Statistics, graph: ColumnGraph | None = None
) -> float:
    """Largest relative mismatch of a row or column sum, over the observed cells.

    Cells between components count as fitted by 0. For a mask in a file, which needs its
    ``graph``, only columns are compared: its rows are fitted exactly.
    """
    h = np.nan_to_num(factors.col_factor, nan=0.0)
    if graph is not None and isinstance(statistics, DiskStatistics):
        mask = DiskMask(statistics, graph)
        with np.errstate(all="ignore"):
            gap = relative_gap(mask.sweep(h).fitted, mask.col_sums)
        if gap <= PRECISE or statistics.n_lines * statistics.n_cols > MOST_CELLS:
            return gap
        return _wide_disk_mismatch(mask, h, statistics.col_sums)
    if factors.col_exponent is not None:
        return _wide_mismatch(factors, statistics)
    w = np.nan_to_num(factors.line_factor, nan=0.0)
    blocks = factors.line_block, factors.col_block
    try:
        with np.errstate(all="raise"):
            rows, cols = statistics.margins(w, h, *blocks)
    except FloatingPointError:  # a number on the way has left the range
        return _wide_mismatch(factors, statistics)
    sums = statistics.row_sums, statistics.col_sums
    if min(sums[0].min(initial=0.0), sums[1].min(initial=0.0), h.min()) < 0.0:
        return _signed_mismatch(factors, statistics, cols)
    return max(relative_gap(rows, sums[0]), relative_gap(cols, sums[1]))


def _signed_mismatch(factors: Factors, statistics: Statistics, cols: Floats) -> float:
    """Compare margins of either sign: ``cols`` are those of the fitted columns.

    What a row of sum 1 would have shows all rows of its line. Columns are compared in
    units of their cells where these cancel.
    """
    w, h, scale = (
        np.nan_to_num(x)
        for x in (factors.line_factor, factors.col_factor, factors.line_scale)
    )
    blocks = factors.line_block, factors.col_block
    with np.errstate(all="ignore"):
        ones = statistics.margins(scale, h, *blocks)[0]
        size = statistics.margins(np.abs(w), np.abs(h), *blocks)[1]
        unit = np.maximum(size, np.abs(statistics.col_sums))
        off = np.abs(cols - statistics.col_sums)[unit > 0.0] / unit[unit > 0.0]
    has_data = (statistics.row_sums != 0.0) | (scale != 0.0)
    found = np.append(np.abs(ones - 1.0)[has_data], off).max(initial=0.0)
    return float(found) if np.isfinite(found) else np.inf


def _wide_disk_mismatch(mask: DiskMask, h: Floats, col_sums: Floats) -> float:
    """Sum the cells of each column in units of its sum, rows fitted exactly."""
    mask.unit = 1.0
    shares = np.zeros(len(h))
    for row_sums, bits in mask.pieces():
        i, j = np.nonzero(unpack_bits(bits, len(h)))
        reach = sum_groups(h[j], i, len(bits))
        fitted = wide_product(row_sums[i], h[j], over=reach[i])
        shares += weighted_counts(j, product(fitted, over=col_sums[j]), len(h))
    return float(np.abs(shares - 1.0).max(initial=0.0, where=col_sums > 0.0))


def _wide_mismatch(factors: Factors, statistics: Statistics) -> float:
    """Sum the cells in units of the margin they belong to: no other has room for all.

    A cell that vanishes there counts for nothing in it.
    """
    w, h = factors.lines, factors.columns
    sums = statistics.row_sums, statistics.col_sums
    shares = [np.zeros(len(known)) for known in sums]
    for i, j, weight in statistics.weighted_cells():
        inside = factors.line_block[i] == factors.col_block[j]
        inside &= factors.line_block[i] >= 0
        cell = i[inside], j[inside]
        fitted = wide_product(w[cell[0]], h[cell[1]], weight[inside])
        for side in (0, 1):
            own = product(fitted, over=sums[side][cell[side]])
            shares[side] += weighted_counts(cell[side], own, len(shares[side]))
    off = [np.abs(shares[side] - 1.0)[sums[side] > 0.0] for side in (0, 1)]
    return float(max(off[0].max(initial=0.0), off[1].max(initial=0.0)))
