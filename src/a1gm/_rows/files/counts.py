"""Holes and whole numbers per column, counted while a table is read."""

from __future__ import annotations

import numpy as np

from a1gm._base.types import Bools, Floats, Ints
from a1gm._rows.files.piece import Piece

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
            # Most columns with fractions show one at once.
            for rows in (slice(0, 64), slice(64, None)):
                some = np.flatnonzero(self.is_whole)
                self.is_whole[some] = _are_whole(piece.values.T[some, rows])


def _are_whole(columns: Floats) -> Bools:
    """Whether each row of an array holds whole numbers and NaN only."""
    has_fraction = (columns != np.floor(columns)) | (np.abs(columns) >= _MOST)
    whole: Bools = ~(has_fraction & ~np.isnan(columns)).any(axis=1)
    return whole
