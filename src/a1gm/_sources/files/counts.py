"""Holes and whole numbers per column, counted while a table is read."""

from __future__ import annotations

import numpy as np

from a1gm._base.types import Bools, Floats, Ints
from a1gm._sources.files.piece import Piece

__all__ = ["ColumnCounts"]

_MOST = 2.0**53  # whole numbers beyond are no exact float64


class ColumnCounts:
    """What the writer of a filled file must know of each column beforehand.

    ``missing`` counts its missing cells; ``is_whole`` tells whether all numbers of a
    column of text are whole.
    """

    def __init__(self, n_cols: int) -> None:
        self.missing: Ints = np.zeros(n_cols, np.int64)
        self.is_whole: Bools = np.ones(n_cols, bool)

    def add(self, piece: Piece) -> None:
        """Count the cells of a piece."""
        missing = piece.n_missing()
        self.missing += missing
        if piece.is_text:
            for j in np.flatnonzero(self.is_whole):
                n_numbers = piece.n_rows - missing[j]
                self.is_whole[j] = _n_whole(piece.values[:, j]) == n_numbers


def _n_whole(column: Floats) -> int:
    first = column[:64]
    if np.any((first != np.floor(first)) & ~np.isnan(first)):
        return -1  # most columns with fractions show one at once
    return int(
        np.count_nonzero((column == np.floor(column)) & (np.abs(column) < _MOST))
    )
