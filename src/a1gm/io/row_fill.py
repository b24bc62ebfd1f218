"""Values for the holes of some rows, for tables that are filled block by block."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from a1gm._types import Bools, Floats

if TYPE_CHECKING:
    from a1gm.result import RankOneFit

#: Takes the number of the first row and the rows, returns them with holes filled and
#: NaN where nothing can be known.
RowFill: TypeAlias = Callable[[int, Floats], Floats]


def row_fill_of(fit: RankOneFit) -> RowFill | None:
    """Tell how to fill the rows of the table that was fitted.

    Parameters
    ----------
    fit : RankOneFit
        The fit, which may have been made without keeping its rows.

    Returns
    -------
    callable or None
        None when some cells may not be determined by the data and the fit does not
        keep its rows: fit again with ``keep_rows=True``.
    """
    if fit._has_rows:
        return lambda first_row, values: fill_kept_rows(fit, first_row, values)
    if fit._all_finite:
        return lambda _, values: fill_new_rows(fit, values)
    return None


def fill_kept_rows(fit: RankOneFit, first_row: int, values: Floats) -> Floats:
    """Fill consecutive rows of the table that was fitted.

    Parameters
    ----------
    fit : RankOneFit
        A fit that keeps its rows.
    first_row : int
        Number of the first of the rows, 0-based.
    values : ndarray of shape (n, n_cols)
        The rows; NaN marks a hole. Not modified.

    Returns
    -------
    ndarray of shape (n, n_cols)
    """
    holes = np.isnan(values)
    if fit._all_finite:
        rows = slice(first_row, first_row + len(values))
        return _products(values, holes, fit.row_factor[rows], fit.col_factor)
    filled = values.copy(order="K")
    i, j = np.nonzero(holes)
    filled[i, j] = fit._values(i + first_row, j)
    return filled


def fill_new_rows(fit: RankOneFit, values: Floats) -> Floats:
    """Fill rows that need not be rows of the table that was fitted.

    A row is placed by its own observed cells. A hole in a column whose scale cannot be
    compared with the row's observed columns stays missing.

    Parameters
    ----------
    fit : RankOneFit
        The fit.
    values : ndarray of shape (n, n_cols)
        The rows; NaN marks a hole. Not modified.

    Returns
    -------
    ndarray of shape (n, n_cols)
    """
    holes = np.isnan(values)
    filled = _products(values, holes, fit.transform(values), fit.col_factor)
    if fit.n_blocks > 1:
        filled[holes & ~_comparable(fit, values)] = np.nan
    return filled


def _products(values: Floats, holes: Bools, rows: Floats, columns: Floats) -> Floats:
    # Blocks from files are stored column by column; so is the work.
    filled = values.copy(order="K")
    for j in np.flatnonzero(holes.any(axis=0)):
        where = np.flatnonzero(holes[:, j])
        filled[where, j] = rows[where] * columns[j]
    return filled


def _comparable(fit: RankOneFit, values: Floats) -> Bools:
    """Columns of the one block in which the positive cells of each row lie."""
    block = fit.col_block
    positive = values > 0.0
    lowest = np.where(positive, block, np.iinfo(block.dtype).max).min(axis=1)
    highest = np.where(positive, block, -1).max(axis=1)
    comparable: Bools = (lowest == highest)[:, None] & (highest[:, None] == block)
    return comparable
