"""The Kullback-Leibler divergence on observed cells, safe at zero."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from a1gm._base.types import Bools, Floats, SmallInts

if TYPE_CHECKING:
    from a1gm._sources import Source, SparseSource

__all__ = ["divergence_of_blocks", "divergence_of_cells", "divergence_of_stored"]


def divergence_of_cells(x: Floats, fitted: Floats) -> Floats:
    """Return x log(x / fitted) - x + fitted of each cell."""
    from scipy.special import kl_div

    cells: Floats = kl_div(x, fitted)
    return cells


def divergence_of_blocks(
    source: Source,
    row_factor: Floats,
    col_factor: Floats,
    same_block: Callable[[slice], Bools] | None = None,
    weights: Floats | None = None,
) -> float:
    """Sum the divergence over the observed cells, block of rows by block of rows.

    ``same_block(rows)`` marks the cells that the fit reaches; the others are fitted
    by 0.
    """
    total = 0.0
    for rows, block in source.blocks():
        fitted = row_factor[rows, None] * col_factor
        if same_block is not None:
            fitted = np.where(same_block(rows), fitted, 0.0)
        used = ~np.isnan(block)
        if weights is not None:
            used &= weights[rows] > 0.0
        cells = divergence_of_cells(block[used], fitted[used])
        total += float(cells.sum() if weights is None else cells @ weights[rows][used])
    return total


def divergence_of_stored(
    source: SparseSource,
    row_factor: Floats,
    col_factor: Floats,
    row_block: SmallInts,
    col_block: SmallInts,
    weights: Floats | None = None,
) -> float:
    """Sum the divergence of a sparse table over its stored and its absent cells.

    ``weights`` are those of the stored cells. The fit is 0 between blocks. An absent
    cell that counts as zero adds its fitted value, and those add up to the margins of
    the fit less the stored cells.
    """
    w, h = np.nan_to_num(row_factor), np.nan_to_num(col_factor)
    missing, total, stored = source.missing, 0.0, 0.0
    for cells in _slices(len(source.values)):
        i = source.rows_of_cells(cells)
        j = source.cols[cells]
        fitted = np.where(row_block[i] == col_block[j], w[i] * h[j], 0.0)
        seen = ~missing[cells]
        if weights is not None:
            seen &= weights[cells] > 0.0
        parts = divergence_of_cells(source.values[cells][seen], fitted[seen])
        total += float(parts.sum() if weights is None else parts @ weights[cells][seen])
        stored += float(fitted.sum())
    if source.absent == "zero":
        total += _total_inside_blocks(w, h, row_block, col_block) - stored
    return total


def _total_inside_blocks(
    w: Floats, h: Floats, row_block: SmallInts, col_block: SmallInts
) -> float:
    rows, cols = row_block >= 0, col_block >= 0
    n = 1 + int(max(row_block.max(initial=-1), col_block.max(initial=-1)))
    by_row = np.bincount(row_block[rows], w[rows], minlength=n)
    by_col = np.bincount(col_block[cols], h[cols], minlength=n)
    return float(by_row @ by_col)


def _slices(n: int, step: int = 1 << 20) -> Iterator[slice]:
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))
