"""The proof of optimality: the fitted table has the margins of the data."""

from __future__ import annotations

import numpy as np

from a1gm._observe.disk import DiskStatistics
from a1gm._observe.statistics import Statistics
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
    if graph is not None and isinstance(statistics, DiskStatistics):
        mask = DiskMask(statistics, graph)
        return relative_gap(mask.sweep(h).fitted, mask.col_sums)
    w = np.nan_to_num(factors.line_factor, nan=0.0)
    rows, cols = statistics.margins(w, h, factors.line_block, factors.col_block)
    return max(
        relative_gap(rows, statistics.row_sums), relative_gap(cols, statistics.col_sums)
    )
