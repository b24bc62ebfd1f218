"""``ScaledTable``: a seed scaled to totals, and what is known about it."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from a1gm._base.types import AnyArray, Bools, Floats, Ints, SmallInts
from a1gm._base.words import counted
from a1gm._fit.certified import Certified
from a1gm._fit.residuals import divergence_of_cells
from a1gm._observe.patterns import weighted_counts
from a1gm._rows.read import AnyRows
from a1gm._rows.seed import (
    Cells,
    in_container,
    known_cells,
    listed_cells,
    positive_cells,
)
from a1gm._solve.cell_error import cell_error
from a1gm._solve.components import number_by_rows
from a1gm._solve.totals import Scaled
from a1gm._solve.transport import left_of, rounded_cells
from a1gm.exceptions import DataError


class ScaledTable(Certified):
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
    tol : float
        The certificate to reach.
    """

    def __init__(
        self,
        seed: Any,
        rows: AnyRows,
        A: Any,
        known: AnyRows | None,
        totals: tuple[Floats, Floats],
        scaled: Scaled,
        tol: float,
    ) -> None:
        self._seed, self._rows, self._A, self._known = seed, rows, A, known
        self._scaled, self.tol = scaled, tol
        self.row_totals, self.col_totals = totals
        self.row_labels, self.col_labels = rows.row_labels, rows.col_labels
        self.row_factor, self.col_factor = scaled.w, scaled.h

    @property
    def _found(self) -> Scaled:
        return self._scaled

    # --------------------------------------------------------------------- the table
    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._rows.n_rows, self._rows.n_cols

    @cached_property
    def table(self) -> Any:
        """The scaled table in the container of the seed, computed when looked at."""
        if self._is_whole and isinstance(self._A, np.ndarray):
            table: Any = self._A * self.col_factor
            table *= self.row_factor[:, None]
        else:
            table = self._listed(self._cells[2], self._known_cells[2])
        return in_container(self._seed, self._rows, table)

    def _listed(self, free: AnyArray, known: AnyArray) -> Any:
        """Values of the free cells, and of the known ones, as a CSR array."""
        (i, j, _), (a, b, _) = self._cells, self._known_cells
        places = np.concatenate([i, a]), np.concatenate([j, b])
        return listed_cells(*places, np.concatenate([free, known]), self.shape)

    @cached_property
    def _is_whole(self) -> bool:
        """Whether all cells are free, and inside one block."""
        blocks = self._scaled.row_block, self._scaled.col_block
        is_one = all(block.min() == 0 == block.max() for block in blocks)
        return is_one and self._known is None

    @cached_property
    def _known_cells(self) -> Cells:
        return known_cells(self._known)

    @cached_property
    def _cells(self) -> Cells:
        """Places where the seed is above 0, and the scaled values there."""
        i, j, seed = positive_cells(self._A)
        with np.errstate(over="ignore"):
            cells = self.row_factor[i] * seed * self.col_factor[j]
        return i, j, np.where(self._is_inside(i, j), cells, 0.0)

    def _is_inside(self, i: Ints, j: Ints) -> Bools:
        block = self._scaled.row_block[i]
        inside: Bools = (block == self._scaled.col_block[j]) & (block >= 0)
        return inside

    @cached_property
    def _sums(self) -> tuple[Floats, Floats]:
        """Sums of the rows and of the columns, without known cells."""
        if self._is_whole:
            w, h = self.row_factor, self.col_factor
            return w * (self._A @ h), h * (self._A.T @ w)
        (i, j, x), (n, m) = self._cells, self.shape
        return weighted_counts(i, x, n), weighted_counts(j, x, m)

    # ------------------------------------------------------------------ how it stands
    @cached_property
    def certificate(self) -> float:
        """Largest relative mismatch of a total, by the sums of the cells.

        Where the sums of both sides differ by the rounding of the totals when they were
        written, what is less than a unit of the last digit is none.
        """
        *places, known = self._known_cells
        gaps = [0.0]
        for totals, sums, at in zip(
            (self.row_totals, self.col_totals), self._sums, places, strict=True
        ):
            off = np.abs(sums + weighted_counts(at, known, len(sums)) - totals)
            if self._scaled.written_off:
                off = np.maximum(off - self._scaled.written_off, 0.0)
            off /= np.where(totals > 0.0, totals, 1.0)
            gaps.append(float(off[~np.isnan(totals)].max(initial=0.0)))
        return max(gaps) if max(gaps) < math.inf else math.inf

    @cached_property
    def cell_error(self) -> float:
        """Bound on the relative error of any cell, rounding included.

        The certificate proves the totals; parts of a table that hang together by small
        cells can have the right totals and wrong cells between them.
        """
        return max(cell_error(self._scaled.step), self.certificate)

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
        blocks = self._scaled.row_block, self._scaled.col_block
        rows, cols = (
            np.where(sums > 0.0, block, np.int32(-1))
            for sums, block in zip(self._sums, blocks, strict=True)
        )
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
        (i, j, x), (a, b, known) = self._cells, self._known_cells
        totals = {"row totals": self.row_totals, "column totals": self.col_totals}
        for name, numbers in {**totals, "known cells": known}.items():
            broken = numbers[np.abs(numbers - np.rint(numbers)) > 1e-9]
            if len(broken):
                raise DataError(
                    "Whole cells cannot have totals that are not whole: the "
                    f"{name} have {broken[0]:.15g}. Round the totals first, both "
                    "sides to one sum."
                )
        left = left_of(a, b, known, *totals.values())
        whole = rounded_cells(i, j, x, *map(np.rint, left))
        if whole is None:
            raise DataError(
                f"The totals are met to {self.certificate:.1g} only, which is not "
                "enough to round the cells. Divide the totals by a power of ten."
            )
        table = self._listed(whole, np.rint(known).astype(np.int64))
        return in_container(self._seed, self._rows, table)

    # ------------------------------------------------------------------- appearance
    def summary(self) -> dict[str, str]:
        """The table in words, line by line."""
        n = [int((~np.isnan(t)).sum()) for t in (self.row_totals, self.col_totals)]
        lines = {
            "table": "{} x {}".format(*self.shape),
            "totals": f"{counted(n[0], 'row')}, {counted(n[1], 'column')}",
            **self._quality(),
            "blocks": str(self.n_blocks),
        }
        if self._known is not None:
            lines["known"] = counted(len(self._known_cells[0]), "cell")
        if len(self.forced_zeros):
            lines["forced to 0"] = counted(len(self.forced_zeros), "cell")
        return lines
