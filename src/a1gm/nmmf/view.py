"""One table of a joint fit: a slice of the joint table, with what is known of it.

The factors lie as in the joint table; what is taken from the user and given back lies
as the owner of the table has it, which may be the other way round.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from a1gm._base.types import Bools, Floats, Ints, OnUndetermined, SmallInts
from a1gm._base.words import counted
from a1gm._fit.fill import fill_table
from a1gm._fit.fit import RankOneFit
from a1gm._fit.messages import (
    check_on_undetermined,
    text_of_left,
    text_of_unknown_cells,
    text_of_zeros,
    warn_undetermined,
)
from a1gm._fit.place import (
    EMPTY,
    FATES,
    FINITE,
    UNBOUNDED,
    UNDETERMINED,
    ZERO,
    UndeterminedCells,
)
from a1gm._fit.residuals import divergence_of_cells
from a1gm._rows import Rows, same_cells
from a1gm._rows.labels import check_same_labels
from a1gm.exceptions import DataError, Text, separated
from a1gm.nmmf.joint import Entities
from a1gm.nmmf.layout import SharedTable, open_table

CELLS_AT_ONCE = 1 << 17


@dataclass(frozen=True)
class Counts:
    """Counts over the cells of a table, and the first cell of each kind.

    The kinds are "missing" cells without a value, empty rows and columns aside; cells
    of weight 0 observed between blocks ("apart"); and observed zeros that no minimiser
    fits ("zeros").
    """

    fates: Ints  # missing cells of each fate
    n: dict[str, int]
    first: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class TableView:
    """Factors of one table, and what is known of its cells."""

    table: SharedTable
    row: Entities
    col: Entities
    joint: RankOneFit
    is_one_block: bool  # every cell is the product of its factors
    on_undetermined: OnUndetermined

    @cached_property
    def _has_values(self) -> bool:
        """Whether every cell has a value: the usual case."""
        has_nan = np.isnan(self.row.factor).any() or np.isnan(self.col.factor).any()
        return self.is_one_block and not has_nan

    # ----------------------------------------------------------------------- values
    def _pieces(self) -> Iterator[slice]:
        n, step = len(self.row.factor), max(1, CELLS_AT_ONCE // len(self.col.factor))
        return (slice(k, min(k + step, n)) for k in range(0, n, step))

    def _fates(self, i: Ints, j: Ints) -> SmallInts:
        """Fate of cells, were they missing.

        A table of weight 0 does not relate its entities, but zero times a known factor
        is 0.
        """
        w, h = self.row.factor[i], self.col.factor[j]
        fates = np.full(len(i), FINITE, np.int32)
        if not self.is_one_block:
            fates = self.joint._fates.of_cells(self.row.places(i), self.col.places(j))
        if not self.table.weight:
            fates[w * h == 0.0] = ZERO
        fates[np.isnan(w) | np.isnan(h)] = EMPTY
        return fates

    def fates_of(self, rows: slice) -> SmallInts:
        """Fate of every cell of some rows."""
        i, j = np.indices((rows.stop - rows.start, len(self.col.factor)))
        return self._fates(i.ravel() + rows.start, j.ravel()).reshape(i.shape)

    def fitted(self, rows: slice) -> Floats:
        """Fitted values of some rows; NaN where the data do not determine one."""
        values: Floats = self.row.factor[rows, None] * self.col.factor
        return values if self.is_one_block else _decided(values, self.fates_of(rows))

    def reconstruct(self) -> Floats:
        """Return the fitted table; NaN where the data do not determine a value."""
        table = np.concatenate([self.fitted(rows) for rows in self._pieces()])
        return table.T if self.table.transposed else table

    @property
    def divergence(self) -> float:
        """Divergence on the observed cells; NaN if one has no fitted value."""
        total = 0.0
        for rows, cells in self.table.rows.blocks():
            known = ~np.isnan(cells)
            fitted = self.fitted(rows)[known]
            if np.isnan(fitted).any():
                return math.nan
            total += float(divergence_of_cells(cells[known], fitted).sum())
        return total

    # ---------------------------------------------------------------- unknown cells
    def _cells(self) -> Iterator[tuple[slice, Bools, SmallInts]]:
        """Yield some rows, their missing cells and the fates of all cells."""
        for rows, cells in self.table.rows.blocks():
            yield rows, np.isnan(cells), self.fates_of(rows)

    @cached_property
    def undetermined(self) -> UndeterminedCells:
        """Missing cells without a value: row, column and kind, row by row."""
        none = np.zeros(0, np.int64)
        found: list[tuple[Any, ...]] = [(none, none, none)]
        if not self._has_values:
            for rows, missing, fates in self._cells():
                i, j = np.nonzero(missing & (fates >= UNBOUNDED))
                found.append((i + rows.start, j, fates[i, j]))
        row, col, code = (np.concatenate(part) for part in zip(*found, strict=True))
        if self.table.transposed:
            order = np.lexsort((row, col))
            row, col, code = col[order], row[order], code[order]
        return UndeterminedCells(row, col, code)

    @cached_property
    def counts(self) -> Counts:
        """Counts over all cells."""
        found = Counts(np.zeros(len(FATES), np.int64), Counter(), {})
        if self._has_values:
            return found
        positive = self.row.factor > 0.0, self.col.factor > 0.0
        for rows, missing, fates in self._cells():
            found.fates[:] += np.bincount(fates[missing], minlength=len(FATES))
            unknown = (fates >= UNBOUNDED) & (fates < EMPTY)
            kinds = {"missing": unknown & missing}
            if self.table.weight:
                both = positive[0][rows, None] & positive[1]
                kinds["zeros"] = ~missing & (fates != FINITE) & both
            else:
                kinds["apart"] = unknown & ~missing
            for kind, cells in kinds.items():
                if n := int(cells.sum()):
                    i, j = divmod(int(cells.argmax()), cells.shape[1])
                    found.first.setdefault(kind, (i + rows.start, j))
                    found.n[kind] += n
        return found

    def describe(self) -> Text:
        """Text about what cannot be known of the table; empty if there is nothing."""
        counts, name, parts = self.counts, self.table.name, list[Text]()
        first = {kind: self.table.where(*at) for kind, at in counts.first.items()}
        if "zeros" in first:
            parts.append(text_of_zeros(counts.n["zeros"], of=name))
        if "apart" in first:
            parts.append(
                f"For {counted(counts.n['apart'], 'observed cell')} of {name} there "
                "is no fitted value (NaN in fit.reconstruct()): a table of weight 0 "
                "does not relate the scales of its entities, and no other table does. "
                f"The first is {first['apart']}."
            )
        if "missing" in first:
            kinds = counts.fates[UNBOUNDED], counts.fates[UNDETERMINED]
            how = self.on_undetermined
            parts.append(
                text_of_unknown_cells(*kinds, first["missing"], of=name, how=how)
            )
        return separated(parts)

    # ---------------------------------------------------------------------- filling
    def impute(self, X: Any, how: OnUndetermined | None) -> Any:
        """Fill the missing cells of the table that was fitted."""
        check_on_undetermined(how)
        rows = open_table(X, self.table.name)
        self._check_same_table(rows)
        # Cells are asked for by their places in the owner's table.
        turned = self.table.transposed
        filled = fill_table(
            X, rows, lambda i, j: self.values(*((j, i) if turned else (i, j)))
        )
        n_left, first_left = filled.left
        if first_left is not None:
            if how is None and not self._has_warned(n_left, rows):
                how = self.on_undetermined
            if how not in (None, "ignore"):  # counting the kinds takes time
                where = rows.where(*first_left)
                warn_undetermined(text_of_left(self.counts.fates, n_left, where), how)
        return filled.table

    def values(self, i: Ints, j: Ints) -> Floats:
        """Fitted values of cells, by their places in the joint orientation."""
        values: Floats = self.row.factor[i] * self.col.factor[j]
        return values if self.is_one_block else _decided(values, self._fates(i, j))

    def _check_same_table(self, rows: Rows) -> None:
        own, name = self.table.own, self.table.name
        fitted = (own.n_rows, own.n_cols)
        if (rows.n_rows, rows.n_cols) != fitted:
            raise DataError(
                f"{name} has shape ({rows.n_rows}, {rows.n_cols}), but the table "
                f"that was fitted has shape {fitted}. Pass the fitted table."
            )
        for side, labels, known in (
            ("row", rows.row_labels, own.row_labels),
            ("column", rows.col_labels, own.col_labels),
        ):
            check_same_labels(side, labels, known, name, "the fit")

    def _has_warned(self, n_left: int, rows: Rows) -> bool:
        """Whether the fit has warned of the cells that stay missing in this table."""
        if self.on_undetermined != "warn" or not self.table.rows.parts:
            return False
        n_known = int(self.counts.fates[UNBOUNDED:].sum())
        return n_left == n_known and same_cells(rows, self.table.own)


def _decided(values: Floats, fates: SmallInts) -> Floats:
    """Put 0 and NaN where the cells have no finite value."""
    values[fates == ZERO] = 0.0
    values[fates >= UNBOUNDED] = np.nan
    return values
