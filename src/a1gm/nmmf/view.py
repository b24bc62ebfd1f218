"""One table of a joint fit: a slice of the joint table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from a1gm._base.types import Bools, Floats, Ints, OnUndetermined, SmallInts
from a1gm._base.words import counted
from a1gm._fit.fill import fill_table
from a1gm._fit.fit import RankOneFit
from a1gm._fit.messages import (
    check_on_undetermined,
    text_of_unknown_cells,
    text_of_zeros,
    warn_left,
)
from a1gm._fit.place import (
    EMPTY,
    FINITE,
    UNBOUNDED,
    UNDETERMINED,
    ZERO,
    Fills,
    UndeterminedCells,
    decided,
)
from a1gm._fit.residuals import divergence_of_cells
from a1gm._rows import Rows, same_cells
from a1gm._rows.read import read_dense
from a1gm.exceptions import Text, separated
from a1gm.nmmf.layout import (
    Axis,
    Entities,
    SharedTable,
    axes_of,
    check_same_entities,
)

CELLS_AT_ONCE = 1 << 17


@dataclass(frozen=True)
class TableView:
    """One table: its factors, fitted values, and cells without a value."""

    table: SharedTable
    row: Entities
    col: Entities
    joint: RankOneFit
    is_one_block: bool  # every cell is the product of its factors
    on_undetermined: OnUndetermined

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the view without its table, but with results that need it."""
        known = {name: getattr(self, name) for name in ("divergence", "undetermined")}
        return self.__dict__ | known | {"table": self.table.without_data()}

    @cached_property
    def _has_values(self) -> bool:
        """Whether every cell has a value: the usual case."""
        has_nan = np.isnan(self.row.factor).any() or np.isnan(self.col.factor).any()
        return self.is_one_block and not has_nan

    @property
    def axes(self) -> tuple[Axis, Axis]:
        """Both axes of the fitted table."""
        return axes_of("the fitted table", self.table.rows)

    # ----------------------------------------------------------------------- values
    def positions(self, i: Ints, j: Ints) -> tuple[Ints, Ints]:
        """Row and column of cells in the joint table."""
        rows, columns = self.row.positions(i), self.col.positions(j)
        return (columns, rows) if self.table.is_turned else (rows, columns)

    def _fates(self, i: Ints, j: Ints) -> SmallInts:
        """Fate of cells, were they missing.

        A table of weight 0 does not relate its entities, but zero times a known factor
        is 0.
        """
        w, h = self.row.factor[i], self.col.factor[j]
        fates = np.full(len(i), FINITE, np.int32)
        if not self.is_one_block:
            fates = self.joint._fates.of_cells(*self.positions(i, j))
        if not self.table.weight:
            fates[w * h == 0.0] = ZERO
        fates[np.isnan(w) | np.isnan(h)] = EMPTY
        return fates

    def values(self, i: Ints, j: Ints) -> Floats:
        """Fitted values of cells; NaN where the data do not determine one."""
        values: Floats = self.row.factor[i] * self.col.factor[j]
        return values if self.is_one_block else decided(values, self._fates(i, j))

    def fitted(self, rows: slice, columns: slice = slice(None)) -> Floats:
        """Fitted values of a part; NaN where the data do not determine one."""
        if self.is_one_block:
            return self.row.factor[rows, None] * self.col.factor[columns]
        i, j = self._cells_of(rows, columns)
        return self.values(i.ravel(), j.ravel()).reshape(i.shape)

    def _cells_of(self, rows: slice, columns: slice = slice(None)) -> tuple[Ints, Ints]:
        """Row and column of every cell of a part of the table."""
        i, j = np.arange(self.row.size)[rows], np.arange(self.col.size)[columns]
        i, j = np.broadcast_arrays(i[:, None], j)
        return i, j

    def reconstruct(self) -> Floats:
        """Return the fitted table; NaN where the data do not determine a value."""
        n, step = self.row.size, max(1, CELLS_AT_ONCE // self.col.size)
        pieces = (slice(k, min(k + step, n)) for k in range(0, n, step))
        return np.concatenate([self.fitted(rows) for rows in pieces])

    @cached_property
    def divergence(self) -> float:
        """Divergence on the observed cells; NaN if one has no fitted value."""
        total = 0.0
        for rows, cells in self.table.rows.in_pieces():
            known = ~np.isnan(cells)
            fitted = self.fitted(rows)[known]
            if np.isnan(fitted).any():
                return math.nan
            total += float(divergence_of_cells(cells[known], fitted).sum())
        return total

    # ---------------------------------------------------------------- unknown cells
    def _cells(self) -> Iterator[tuple[slice, Bools, SmallInts]]:
        """Yield some rows, their missing cells and the fates of all cells."""
        for rows, cells in () if self._has_values else self.table.rows.in_pieces():
            i, j = self._cells_of(rows)
            fates = self._fates(i.ravel(), j.ravel()).reshape(i.shape)
            yield rows, np.isnan(cells), fates

    @cached_property
    def undetermined(self) -> UndeterminedCells:
        """Missing cells without a value: row, column and kind, row by row."""
        empty = np.zeros(0, np.int64)
        found: list[tuple[Any, ...]] = [(empty, empty, empty)]
        for rows, missing, fates in self._cells():
            i, j = np.nonzero(missing & (fates >= UNBOUNDED))
            found.append((i + rows.start, j, fates[i, j]))
        return UndeterminedCells(*map(np.concatenate, zip(*found, strict=True)))

    def _n_not_fitted(self) -> int:
        """Observed cells that no value fits.

        Zeros that no minimiser fits; or, in a table of weight 0, cells between blocks.
        """
        n, rows_above, above = 0, self.row.factor > 0.0, self.col.factor > 0.0
        for rows, missing, fates in self._cells():
            apart = (fates >= UNBOUNDED) & (fates < EMPTY)
            if self.table.weight:
                apart = (fates != FINITE) & rows_above[rows, None] & above
            n += int((apart & ~missing).sum())
        return n

    def describe(self) -> Text:
        """Text about the cells without a value; empty if there are none."""
        name, parts = self.table.name, list[Text]()
        if n := self._n_not_fitted():
            without_value = (
                f"{counted(n, 'observed cell')} of {name} cannot be fitted (NaN in "
                "fit.reconstruct()): a table of weight 0 does not relate the scales of "
                "its entities, and no other table does."
            )
            zeros = text_of_zeros(n, of=name)
            parts.append(zeros if self.table.weight else without_value)
        known = np.flatnonzero(self.undetermined.code < EMPTY)
        if len(known):
            row, column, _ = self.undetermined[int(known[0])]
            codes = self.undetermined.code.tolist()
            kinds = codes.count(UNBOUNDED), codes.count(UNDETERMINED)
            where, how = self.table.rows.where(row, column), self.on_undetermined
            parts.append(text_of_unknown_cells(*kinds, where, of=name, how=how))
        return separated(parts)

    # ---------------------------------------------------------------------- filling
    def impute(self, X: Any, how: OnUndetermined | None) -> Any:
        """Fill the missing cells of the table that was fitted."""
        check_on_undetermined(how)
        rows = read_dense(X, self.table.name)
        pairs = zip(axes_of(self.table.name, rows), self.axes, strict=True)
        for name, (axis, fitted) in zip(self.table.sets, pairs, strict=True):
            check_same_entities(name, axis, fitted)
        filled = fill_table(X, Fills(rows, self.values))
        warn_left(filled.left, rows, how, self.on_undetermined, partial(self._is, rows))
        return filled.table

    def _is(self, rows: Rows, n_left: int) -> bool:
        """Whether rows are the fitted table, of which so many cells stay missing."""
        own = self.table.rows
        is_same = bool(own.parts) and n_left == len(self.undetermined)
        return is_same and same_cells(rows, own)
