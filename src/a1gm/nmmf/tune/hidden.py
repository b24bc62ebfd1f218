"""Hide a random share of X's cells, and score predictions of them.

Rows drawn at random are dealt to a few groups, and every group hides neighbouring
columns. So the table gets only a few patterns more than it has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from a1gm._base.types import Bools, Floats, Ints
from a1gm._rows import Rows
from a1gm.exceptions import DataError, ParameterError
from a1gm.nmmf.tune.sweeps import small_pieces

N_GROUPS = 5  # groups of rows that hide the same columns, at most
LEAST_COL_SHARE = 0.2  # of the columns, hidden in each row of a group


@dataclass(frozen=True, slots=True)
class HiddenCells:
    """Cells of X that were hidden: rows and values, NaN where none is to be scored."""

    rows: Ints
    cells: Floats  # rows x columns of X

    @property
    def n(self) -> int:
        """How many cells there are."""
        return int(np.count_nonzero(~np.isnan(self.cells)))

    @property
    def has_bad_cells(self) -> bool:
        """Whether some are negative or infinite."""
        return bool(((self.cells < 0.0) | np.isinf(self.cells)).any())

    def only(self, chosen: Bools) -> HiddenCells:
        """Keep the chosen cells, and drop the rows that are left without any."""
        if chosen.all():
            return self
        cells = np.where(chosen, self.cells, np.nan)
        some = ~np.isnan(cells).all(axis=1)
        return HiddenCells(self.rows[some], cells[some])

    def scores(self, w: Floats, h: Floats) -> Floats:
        """Divergence between the cells and w⊗h, for many pairs of factors.

        Column k of ``w`` (factors of ``rows``) and of ``h`` are one pair. For each it
        is the sum of ``x log x - x - x log w_i - x log h_j + w_i h_j``.
        """
        known = ~np.isnan(self.cells)
        cols = known.any(axis=0)  # elsewhere h may be 0 or NaN
        x, h = np.nan_to_num(self.cells)[:, cols], h[cols]
        unit = math.ldexp(1.0, math.frexp(x.max())[1])  # so that no x log x overflows
        x, known_cells = x / unit, known[:, cols].astype(np.float64)
        positive = x[x > 0.0]
        score = (positive * (np.log(positive) - 1.0)).sum() - _times(x.sum(axis=0), h)
        for some in small_pieces(len(x), h.size):
            rows = w[some] / unit
            score += np.einsum("ik,ik->k", rows, known_cells[some] @ h)
            score -= _times(x[some].sum(axis=1), rows)
        least: Floats = np.maximum(score, 0.0)  # it is below by rounding only
        return least * unit


def _times(x: Floats, factors: Floats) -> Floats:
    """Sum of x_i log f_i for every column of factors."""
    total: Floats = x @ np.log(factors)
    return total


def check_share(share: float, n_cols: int) -> None:
    """Raise when rows that hide so many of their cells would keep none."""
    if n_cols == 1:
        msg = (
            "X has one column: a row whose cell is hidden has nothing left to predict "
            "it from. Choose alpha and beta by hand."
        )
        raise DataError(msg)
    most = 1.0 - 1.0 / n_cols
    if share > most:
        msg = (
            f"share={share:g} is too large for {n_cols} columns: every row must keep a "
            f"cell. Give at most {most:.3g}."
        )
        raise ParameterError(msg)


def hide_cells(
    x: Rows, share: float, rng: np.random.Generator
) -> tuple[Rows, HiddenCells]:
    """Hide a share of the cells; returns a copy of X without them, and the cells."""
    rows, hidden = draw_cells((x.n_rows, x.n_cols), share, rng)
    if not hidden.any():
        msg = (
            f"share={share:g} of the cells of X is less than one. Give a larger share."
        )
        raise DataError(msg)
    values = x.rows(slice(0, x.n_rows))
    cells = np.where(hidden, values[rows], np.nan)
    values[rows] = np.where(hidden, np.nan, values[rows])
    kept = replace(x, parts=[(values, None, None, 0, 0)])
    return kept, HiddenCells(rows, cells)


def draw_cells(
    shape: tuple[int, int], share: float, rng: np.random.Generator
) -> tuple[Ints, Bools]:
    """Draw the rows that hide cells, and which ones; all cells have the same chance.

    The stretches of columns that the groups hide follow one another around the table,
    from a random place on and in a random order, so that all columns are hidden about
    equally often.
    """
    n_rows, n_cols = shape
    col_share = max(share, LEAST_COL_SHARE)
    n_hiding = min(max(1, round(share / col_share * n_rows)), n_rows)
    rows = rng.choice(n_rows, n_hiding, replace=False)
    n_groups = min(N_GROUPS, n_hiding)
    around = share * n_rows / n_hiding * n_cols  # columns of a group, not yet rounded
    first = rng.random() * n_cols + around * rng.permutation(n_groups)
    start = np.floor(first).astype(np.int64)
    width = np.minimum(np.floor(first + around).astype(np.int64) - start, n_cols - 1)
    place = (np.arange(n_cols) - start[:, None]) % n_cols
    hidden: Bools = place < width[:, None]
    return rows, hidden[np.arange(n_hiding) % n_groups]
