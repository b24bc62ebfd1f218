"""The Kullback-Leibler divergence on observed cells, safe at zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from a1gm._types import Bools, Floats

if TYPE_CHECKING:
    from a1gm._input import Source

__all__ = ["divergence_of_blocks", "divergence_of_cells"]


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
