"""``ScaledTable``: a seed scaled to totals, and what is known about it."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from a1gm._base.types import Bools, Floats, Ints, SmallInts, Solver
from a1gm._base.words import counted
from a1gm._fit.fill import fill_table
from a1gm._fit.messages import html_table, one_line, solver_in_words
from a1gm._fit.place import Fills
from a1gm._fit.residuals import divergence_of_cells
from a1gm._observe.patterns import weighted_counts
from a1gm._rows.read import AnyRows
from a1gm._rows.seed import (
    Cells,
    as_floats,
    as_integers,
    blank,
    cells_at,
    positive_cells,
)
from a1gm._solve.cell_error import CELLS_RIGHT, cell_error
from a1gm._solve.components import number_by_rows
from a1gm._solve.rounding import rounded_cells
from a1gm._solve.totals import Scaled
from a1gm.exceptions import DataError


class ScaledTable:
    """The table nearest to a seed that has given totals: ``w[i] seed[i, j] h[j]``.

    Made by ``a1gm.scale``; not meant to be constructed by hand.

    Attributes
    ----------
    row_totals, col_totals : ndarray
        The totals, in the order of the seed; NaN where they are not known.
    row_factor, col_factor : ndarray
        What the rows and columns of the seed are multiplied by: 0 where a total is 0,
        1 where there is none. If all totals of a block are known, its scale is set so
        that the logarithms of its column factors, weighted by the totals, have mean 0.
    solver : {"closed form", "scaling", "newton"}
        How it was solved.
    n_iter : int
        Iterations used.
    tol : float
        The certificate to reach.
    """

    def __init__(
        self,
        seed: Any,
        rows: AnyRows,
        A: Any,
        known: Cells,
        totals: tuple[Floats, Floats],
        scaled: Scaled,
        tol: float,
    ) -> None:
        self._seed, self._rows, self._A, self._known = seed, rows, A, known
        self.row_totals, self.col_totals = totals
        self.row_labels, self.col_labels = rows.row_labels, rows.col_labels
        self.row_factor, self.col_factor = scaled.w, scaled.h
        self._row_part, self._col_part = scaled.row_block, scaled.col_block
        self._step, self.tol = scaled.step, tol
        self.solver: Solver = scaled.solver
        self.n_iter = scaled.n_iter

    # --------------------------------------------------------------------- the table
    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._rows.n_rows, self._rows.n_cols

    @cached_property
    def table(self) -> Any:
        """The scaled table in the container of the seed, computed when looked at."""
        if type(self._seed) is np.ndarray and self._is_whole:
            table: Floats = self._A * self.col_factor
            table *= self.row_factor[:, None]
            return table
        return self._in_container(self._values)

    def _dense(self) -> Floats:
        """The scaled table as an array."""
        i, j = (np.ravel(places) for places in np.indices(self.shape))
        return self._values(i, j).reshape(self.shape)

    def _round(self) -> Ints:
        """The table in whole numbers, as an array."""
        whole = np.zeros(self.shape, np.int64)
        place, cells = self._whole_cells()
        whole.reshape(-1)[place] = cells
        return whole

    @cached_property
    def _is_whole(self) -> bool:
        """Whether all cells are free, and inside one block."""
        parts = self._row_part, self._col_part
        is_one = all(part.min() == 0 == part.max() for part in parts)
        return is_one and not len(self._known[0])

    def _in_container(self, values: Any) -> Any:
        rows = blank(self._rows, *self._known[:2])
        return fill_table(as_floats(self._seed, self._rows), Fills(rows, values)).table

    def _values(self, i: Ints, j: Ints) -> Floats:
        """Values of cells, known ones included."""
        is_own = not len(self._known[0]) and len(i) == getattr(self._A, "nnz", -1)
        seed = self._A.data if is_own else cells_at(self._A, i, j)
        cells = self._free(i, j, seed)
        at, place = self._known_places
        if len(place):
            wanted = i * self.shape[1] + j
            found = np.minimum(np.searchsorted(place, wanted), len(place) - 1)
            is_known = place[found] == wanted
            cells[is_known] = self._known[2][at][found[is_known]]
        return cells

    def _free(self, i: Ints, j: Ints, seed: Floats) -> Floats:
        """Scaled values of cells that are not known."""
        with np.errstate(over="ignore"):
            cells: Floats = self.row_factor[i] * seed * self.col_factor[j]
        cells[~self._is_inside(i, j)] = 0.0
        return cells

    def _is_inside(self, i: Ints, j: Ints) -> Bools:
        part = self._row_part[i]
        inside: Bools = (part == self._col_part[j]) & (part >= 0)
        return inside

    @cached_property
    def _known_places(self) -> tuple[Ints, Ints]:
        """Order of the known cells, and their places in that order."""
        places = self._known[0] * self.shape[1] + self._known[1]
        order = np.argsort(places)
        return order, places[order]

    @cached_property
    def _cells(self) -> Cells:
        """Places where the seed is above 0, and the scaled values there."""
        i, j, seed = positive_cells(self._A)
        return i, j, self._free(i, j, seed)

    # ------------------------------------------------------------------ how it stands
    @cached_property
    def certificate(self) -> float:
        """Largest relative mismatch of a total, by the sums of the cells."""
        gaps = [0.0]
        for totals, sums in zip(
            (self.row_totals, self.col_totals), self._sums(), strict=True
        ):
            has = ~np.isnan(totals)
            off = np.abs(sums - totals)[has]
            size = np.where(totals[has] > 0.0, totals[has], 1.0)
            gaps.append(float((off / size).max(initial=0.0)))
        gap = max(gaps)
        return gap if gap < math.inf else math.inf

    def _sums(self) -> tuple[Floats, Floats]:
        """Sums of the rows and of the columns."""
        if self._is_whole:
            w, h = self.row_factor, self.col_factor
            return w * (self._A @ h), h * (self._A.T @ w)
        (i, j, x), (a, b, known) = self._cells, self._known
        n, m = self.shape
        rows = weighted_counts(i, x, n) + weighted_counts(a, known, n)
        return rows, weighted_counts(j, x, m) + weighted_counts(b, known, m)

    @cached_property
    def cell_error(self) -> float:
        """Bound on the relative error of any cell, rounding included.

        The certificate proves the totals; parts of a table that hang together by small
        cells can have the right totals and wrong cells between them.
        """
        return max(cell_error(self._step), self.certificate)

    @property
    def converged(self) -> bool:
        """Whether the certificate is within ``tol`` and the cell error within 1e-8."""
        return self.certificate <= self.tol and self.cell_error <= CELLS_RIGHT

    @cached_property
    def forced_zeros(self) -> Ints:
        """Cells that the seed allows and the totals force to 0.

        One line per cell, its row and its column.
        """
        if self._is_whole:
            return np.zeros((0, 2), np.int64)
        i, j, _ = self._cells
        out = ~self._is_inside(i, j)
        return np.stack([i[out], j[out]], axis=1)

    @cached_property
    def _blocks(self) -> tuple[SmallInts, SmallInts]:
        i, j, _ = self._cells
        inside = self._is_inside(i, j)
        rows, cols = self._row_part.copy(), self._col_part.copy()
        for part, at in ((rows, i), (cols, j)):
            part[np.bincount(at[inside], minlength=len(part)) == 0] = -1
        return number_by_rows(rows, cols, int(max(rows.max(), cols.max())) + 1)

    @property
    def row_block(self) -> SmallInts:
        """Block of each row, numbered by first row; -1 for a row of zeros."""
        return self._blocks[0]

    @property
    def col_block(self) -> SmallInts:
        """Block of each column, numbered as those of the rows."""
        return self._blocks[1]

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return int(max(block.max() for block in self._blocks)) + 1

    @cached_property
    def divergence(self) -> float:
        """Kullback-Leibler divergence of the table from the seed; free cells only."""
        (_, _, x), (_, _, seed) = self._cells, positive_cells(self._A)
        return float(divergence_of_cells(x, seed).sum())

    # -------------------------------------------------------------------- whole numbers
    def _whole_cells(self) -> tuple[Ints, Ints]:
        """Places, row by row, and whole numbers of the cells that may be above 0."""
        (i, j, x), (a, b, known) = self._cells, self._known
        parts = {
            "row_totals": self.row_totals,
            "col_totals": self.col_totals,
            "known": known,
        }
        for name, numbers in parts.items():
            broken = numbers[np.abs(numbers - np.rint(numbers)) > 1e-9]
            if len(broken):
                raise DataError(
                    f"Whole cells cannot have totals that are not whole: {name} has "
                    f"{broken[0]:.15g}. Round the totals first, both sides to one sum."
                )
        rows, cols = (
            np.rint(totals - np.bincount(at, known, len(totals)))
            for totals, at in ((self.row_totals, a), (self.col_totals, b))
        )
        whole = rounded_cells(i, j, x, rows, cols)
        if whole is None:
            raise DataError(
                f"The totals are met to {self.certificate:.1g} only, which is not "
                "enough to round the cells. Divide the totals by a power of ten."
            )
        m = self.shape[1]
        place = np.concatenate([i * m + j, a * m + b])
        cells = np.concatenate([whole, np.rint(known).astype(np.int64)])
        order = np.argsort(place)
        return place[order], cells[order]

    def round(self) -> Any:
        """The table in whole numbers that keep all totals.

        Each cell is rounded up or down, mostly to the nearest whole number; a cell of 0
        stays 0.

        Returns
        -------
        table
            Of integers, in the container of the seed.

        Raises
        ------
        DataError
            A total, or a known cell, is not a whole number.
        """
        (place, cells), m = self._whole_cells(), self.shape[1]

        def values(i: Ints, j: Ints) -> Floats:
            if not len(place):
                return np.zeros(len(i))
            wanted = i * m + j
            at = np.minimum(np.searchsorted(place, wanted), len(place) - 1)
            found: Floats = np.where(place[at] == wanted, cells[at], 0).astype(float)
            return found

        return as_integers(self._in_container(values), self._rows)

    # ------------------------------------------------------------------- appearance
    def summary(self) -> dict[str, str]:
        """The table in words, line by line."""
        n = [int((~np.isnan(t)).sum()) for t in (self.row_totals, self.col_totals)]
        lines = {
            "table": "{} x {}".format(*self.shape),
            "totals": f"{counted(n[0], 'row')}, {counted(n[1], 'column')}",
            "solver": solver_in_words(self.solver, self.n_iter),
            "certificate": f"{self.certificate:.1e}",
            "cell error": f"{self.cell_error:.1e}",
            "blocks": str(self.n_blocks),
        }
        if len(self._known[0]):
            lines["known"] = counted(len(self._known[0]), "cell")
        if len(self.forced_zeros):
            lines["forced to 0"] = counted(len(self.forced_zeros), "cell")
        return lines

    def __repr__(self) -> str:
        return one_line("ScaledTable", self.summary())

    def _repr_html_(self) -> str:
        return html_table("ScaledTable", self.summary())
