"""The proof of optimality: the fitted table has the margins of the data."""

from __future__ import annotations

import numpy as np

from a1gm._base.float_range import product, wide_product
from a1gm._observe.disk import DiskStatistics
from a1gm._observe.statistics import Statistics, weighted_counts
from a1gm._solve.column_graph import ColumnGraph
from a1gm._solve.factors import Factors, relative_gap
from a1gm._solve.mask import DiskMask

__all__ = ["margin_mismatch"]


def margin_mismatch(
    factors: Factors, statistics: Statistics, graph: ColumnGraph | None = None
) -> float:
    """Largest relative mismatch of a row or column sum, over the observed cells.

    Cells between components count as fitted by 0. For a mask in a file, which needs its
    ``graph``, only columns are compared: its rows are fitted exactly.
    """
    h = np.nan_to_num(factors.col_factor, nan=0.0)
    if factors.col_exponent is not None:
        return _wide_mismatch(factors, statistics)
    if graph is not None and isinstance(statistics, DiskStatistics):
        mask = DiskMask(statistics, graph)
        return relative_gap(mask.sweep(h).fitted, mask.col_sums)
    w = np.nan_to_num(factors.line_factor, nan=0.0)
    rows, cols = statistics.margins(w, h, factors.line_block, factors.col_block)
    return max(
        relative_gap(rows, statistics.row_sums), relative_gap(cols, statistics.col_sums)
    )


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
