"""The Kullback-Leibler divergence on observed cells, safe at zero."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from a1gm._base.types import Floats, Ints
from a1gm._fit.new_rows import NewRows, Placed
from a1gm._rows.read import AnyRows
from a1gm._rows.rows import check_piece, table_of
from a1gm._rows.sparse import SparseRows
from a1gm.exceptions import DataError, NotRepresentableError

TOO_LARGE = (
    "The divergence is above the largest float64 (1.8e308). Divide the data by a power "
    "of ten first: the divergence shrinks by the same power."
)
TOO_SMALL = (
    "The fitted value of a positive cell is below the smallest float64 (5e-324), so "
    "the divergence cannot be computed. Multiply rows or columns by powers of ten that "
    "bring the cells closer together."
)


def divergence_of_cells(x: Floats, fitted: Floats) -> Floats:
    """Return x log(x / fitted) - x + fitted of each cell."""
    from scipy.special import kl_div

    cells: Floats = kl_div(x, fitted)
    far = (
        ~np.isfinite(cells) & (fitted > 0.0) & (x > 0.0)
    )  # the quotient has left float64
    if far.any():
        y, f = x[far], fitted[far]
        cells[far] = y * (np.log(y) - np.log(f)) - y + f
    return np.maximum(cells, 0.0)


def divergence_of_rows(rule: NewRows, source: AnyRows, V: Any = None) -> float:
    """Sum the divergence over the observed cells of rows placed by their own cells.

    ``V`` are the weights of the cells, as they were read.

    Raises
    ------
    NotRepresentableError
        It is above the largest float64.
    """
    found = rule.divergence(source, V)
    if found is not None:
        return found
    if isinstance(source, SparseRows):
        return _of_stored(rule, source, V)
    parts = [
        _of_placed(piece.x, piece.placed, piece.i, piece.j, piece.weight)
        for piece in placed_pieces(rule, source, V)
    ]
    total = sum(parts)
    if total == np.inf and max(parts) < np.inf:
        raise NotRepresentableError(TOO_LARGE)
    return total


@dataclass(frozen=True)
class PlacedPiece:
    """Observed cells of some rows, which have their place among the columns."""

    first: int  # row of the table
    i: Ints  # rows from there
    j: Ints
    x: Floats
    weight: Floats | None
    exposure: Floats | None  # in the values of ``placed``
    placed: Placed


def placed_pieces(rule: NewRows, source: Any, V: Any = None) -> Iterator[PlacedPiece]:
    """Yield the observed cells of a table that is read in blocks of rows.

    Cells of weight 0 are as good as missing.
    """
    for rows, piece in source.blocks():
        used = ~np.isnan(piece)
        v = None if V is None else V.rows(rows)
        if v is not None:
            used &= v > 0.0
        i, j = np.nonzero(used)
        if len(i):
            own = None if v is None else v[i, j]
            weight, exposure = (None, own) if rule.is_exposed else (own, None)
            try:
                placed = rule.place(table_of(piece), None if v is None else table_of(v))
            except DataError:  # a cell of the piece: name it as one of the table
                cells = np.where(used, piece, np.nan)
                check_piece(source, cells, rows.start, rule.negatives)
                raise
            x = piece[i, j]
            yield PlacedPiece(rows.start, i, j, x, weight, exposure, placed)


def _of_placed(x: Floats, placed: Placed, i: Ints, j: Ints, v: Floats | None) -> float:
    """Sum over cells that are there."""
    fitted = placed.values(i, j)
    with np.errstate(all="ignore"):
        cells = divergence_of_cells(x, fitted)
        total = float(cells.sum() if v is None else cells @ v)
    if (x[fitted == 0.0] > 0.0).any():
        raise NotRepresentableError(TOO_SMALL)
    if total == np.inf:
        raise NotRepresentableError(TOO_LARGE)
    return total


def _of_stored(rule: NewRows, source: SparseRows, V: Any) -> float:
    """Sum over the stored and the absent cells of a sparse table.

    An absent cell that counts as zero adds its fitted value. Rows are fitted exactly,
    so the fitted values of a row's observed cells sum to its data.
    """
    used = ~source.missing
    if V is not None:
        used &= V.values > 0.0
    at = np.flatnonzero(used)
    i, j, x = source.lines[at], source.cols[at].astype(np.int64), source.values[at]
    placed = rule.place(source, V)
    v = None if V is None or rule.is_exposed else V.values[at]
    total = _of_placed(x, placed, i, j, v)
    if V is None and source.absent == "zero":
        fitted = placed.values(i, j)
        total += float(x[fitted > 0.0].sum() - fitted.sum())
    return total
