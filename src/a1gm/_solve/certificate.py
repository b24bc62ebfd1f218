"""The proof of optimality: the fitted table has the margins of the data."""

from __future__ import annotations

import numpy as np

from a1gm._base.types import Floats
from a1gm._observe.disk import DiskStatistics
from a1gm._observe.statistics import Statistics
from a1gm._solve.column_graph import ColumnGraph
from a1gm._solve.factors import Factors, relative_gap
from a1gm._solve.mask import DiskMask


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
        return gap if np.isfinite(gap) else np.inf
    w = np.nan_to_num(factors.line_factor, nan=0.0)
    blocks = factors.line_block, factors.col_block
    with np.errstate(all="ignore"):  # what leaves the range misses its margin
        rows, cols = statistics.margins(w, h, *blocks)
    sums = statistics.row_sums, statistics.col_sums
    if min(sums[0].min(initial=0.0), sums[1].min(initial=0.0), h.min()) < 0.0:
        return _signed_mismatch(factors, statistics, cols)
    gap = np.max([relative_gap(rows, sums[0]), relative_gap(cols, sums[1])])
    return float(gap) if np.isfinite(gap) else np.inf


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
