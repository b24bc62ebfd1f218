"""The proof of optimality: the fitted table has the margins of the data."""

from __future__ import annotations

import numpy as np

from a1gm._solve.expand import Factors
from a1gm._observe.statistics import (
    PairStatistics,
    Statistics,
    line_blocks,
    observed_pairs,
    weighted_counts,
)
from a1gm._base.types import Floats

__all__ = ["margin_mismatch"]


def margin_mismatch(factors: Factors, statistics: Statistics) -> float:
    """Largest relative mismatch of a row or column sum, over the observed cells.

    Cells between blocks count as fitted by 0.
    """
    w = np.nan_to_num(factors.line_factor, nan=0.0)
    h = np.nan_to_num(factors.col_factor, nan=0.0)
    rows, cols = np.zeros_like(w), np.zeros_like(h)
    if isinstance(statistics, PairStatistics):
        _add_pairs(factors, statistics, w, h, rows, cols)
    else:
        _add_lines(factors, statistics, w, h, rows, cols)
    gap = 0.0
    for fitted, sums in ((rows, statistics.row_sums), (cols, statistics.col_sums)):
        known = sums > 0.0
        if known.any():
            off = np.abs(fitted[known] - sums[known]) / sums[known]
            gap = max(gap, float(off.max()))
    return gap


def _add_pairs(
    factors: Factors,
    statistics: PairStatistics,
    w: Floats,
    h: Floats,
    rows: Floats,
    cols: Floats,
) -> None:
    for i, j, pairs in observed_pairs(statistics):
        cells = w[i] * h[j]
        cells[factors.line_block[i] != factors.col_block[j]] = 0.0
        if statistics.weights is not None:
            cells *= statistics.weights[pairs]
        first, last = int(i[0]), int(i[-1]) + 1
        rows[first:last] += weighted_counts(i - first, cells, last - first)
        cols += weighted_counts(j, cells, len(h))


def _add_lines(
    factors: Factors,
    statistics: Statistics,
    w: Floats,
    h: Floats,
    rows: Floats,
    cols: Floats,
) -> None:
    for lines, observed in line_blocks(statistics):
        mask = observed
        if factors.n_blocks != 1:
            mask = observed & (factors.line_block[lines, None] == factors.col_block)
        share = mask.astype(np.float64)
        rows[lines] = w[lines] * (share @ h)
        cols += h * (w[lines] @ share)
