"""One table of a joint fit: what is known of its cells, and their values.

A `TableView` has the factors of one table and asks the joint table what can be known of
its cells, because a table may be joined to its entities through the others only. Its
factors stand on the sides of the joint table; what it takes from the user and gives
back is the way the owner of the table has it, which may be the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from a1gm._base.bits import pack_bits
from a1gm._base.types import Floats, Ints, OnUndetermined, SmallInts
from a1gm._fit.divergence import divergence_of_cells
from a1gm._fit.fates import (
    EMPTY,
    FATES,
    UNBOUNDED,
    ZERO,
    Fates,
    Lines,
    UndeterminedCells,
)
from a1gm._fit.fill import fill_table
from a1gm._fit.messages import check_telling, tell_undetermined, text_of_left
from a1gm._fit.rows import HeldRows
from a1gm._observe.statistics import PatternStatistics, Statistics
from a1gm._rows import Rows, same_cells
from a1gm._rows.labels import check_same_labels
from a1gm.exceptions import DataError
from a1gm.nmmf.join import JointTable
from a1gm.nmmf.layout import SharedTable, transpose
from a1gm.nmmf.passive import Shares
from a1gm.nmmf.read import open_table
from a1gm.nmmf.solve import Solution


def table_fates(
    table: SharedTable, solution: Solution, shares: Shares, whole: Fates
) -> Fates:
    """What is known of the cells of one table, through all tables.

    ``whole`` is what is known of the joint table.
    """
    r, c, joint = table.row_set, table.col_set, solution.joint
    graph = replace(whole.graph, label=shares.col_component[c])
    component, touching = _lines_of(r, solution, shares, whole)
    lines = Lines(
        _mask(table, joint), component.__getitem__, whole.graph.label, touching
    )
    rows = HeldRows(shares.row_factor[r], joint.seen[r].line_of_row, len(component))
    positive_cols = np.nan_to_num(shares.col_factor[c]) > 0.0
    # No cell of a table that does not steer is given up: none was asked for.
    return Fates(graph, lines, rows, positive_cols & (not table.is_passive))


def _lines_of(
    r: int, solution: Solution, shares: Shares, whole: Fates
) -> tuple[SmallInts, Callable[[int], Ints]]:
    """Component of each pattern of a row set, and those that a pattern touches."""
    place, lines, n = solution.joint.patterns.get(r), whole.lines, whole.graph.n
    if place is None or lines is None:
        # The factors of its columns stand: a row of zeros is 0 in all of them.
        return shares.pattern_component[r], lambda _: np.arange(n)
    first = int(place.start)
    return lines.component(place), lambda line: lines.touched(first + line)


def _mask(table: SharedTable, joint: JointTable) -> Statistics:
    """Which cells of one table the patterns of its row set observe."""
    whole = joint.seen[table.row_set].statistics
    if table.n_cols == whole.n_cols:
        return whole
    words = -(-table.n_cols // 64)
    bits = np.zeros((whole.n_lines, words), np.uint64)
    for patterns, observed in joint.observed_cells(table):
        bits[patterns] = pack_bits(observed)
    return PatternStatistics(bits, np.zeros(0, np.int64), np.zeros((0, table.n_cols)))


@dataclass(frozen=True)
class TableView:
    """Factors of one table, and what is known of its cells."""

    table: SharedTable
    fates: Fates
    row_factor: Floats
    col_factor: Floats
    is_one_block: bool  # of the joint table, without any zero
    on_undetermined: OnUndetermined

    @cached_property
    def _all_finite(self) -> bool:
        has_nan = np.isnan(self.row_factor).any() or np.isnan(self.col_factor).any()
        return self.is_one_block and not has_nan

    # ----------------------------------------------------------------------- values
    def _fates_of(self, rows: slice) -> SmallInts:
        """Fate of every cell of some rows.

        A table of weight 0 does not relate its entities: what is known of an observed
        cell is what would be known of it, were it missing. But zero times whatever is
        0, even where nothing else is known of the row.
        """
        fates = self.fates.of_rows(rows.start, rows.stop)
        if not self.table.is_passive:
            return fates
        w, h = self.row_factor[rows, None], self.col_factor
        nothing = ((w == 0.0) & ~np.isnan(h)) | ((h == 0.0) & ~np.isnan(w))
        observed = self.fates.observed(rows.start, rows.stop)
        return np.where(observed & nothing, ZERO, fates).astype(np.int32)

    def _fitted(self, rows: slice) -> Floats:
        """Fitted values of some rows; NaN where the data do not determine one."""
        fitted: Floats = self.row_factor[rows, None] * self.col_factor
        return fitted if self._all_finite else _decided(fitted, self._fates_of(rows))

    def reconstruct(self) -> Floats:
        """Return the fitted table; NaN where the data do not determine a value."""
        table = np.concatenate(
            [self._fitted(slice(*some)) for some in self.fates.pieces()]
        )
        return table.T if self.table.transposed else table

    @property
    def divergence(self) -> float:
        """Divergence on the observed cells; NaN when one has no fitted value."""
        if self.observed_unknown[0]:
            return math.nan
        total = 0.0
        for rows, cells in self.table.source.blocks():
            known = ~np.isnan(cells)
            parts = divergence_of_cells(cells[known], self._fitted(rows)[known])
            total += float(parts.sum())
        return total

    # ---------------------------------------------------------------- unknown cells
    @property
    def undetermined(self) -> UndeterminedCells:
        """Missing cells without a value: row, column and kind, row by row."""
        if self._all_finite:
            none = np.zeros(0, np.int64)
            return UndeterminedCells(none, none, none)
        cells = self.fates.undetermined
        if not self.table.transposed:
            return cells
        order = np.lexsort((cells.row, cells.column))
        return UndeterminedCells(
            cells.column[order], cells.row[order], cells.code[order]
        )

    @property
    def n_undetermined(self) -> int:
        """Missing cells that cannot be known."""
        return 0 if self._all_finite else int(self.counts[UNBOUNDED:].sum())

    @cached_property
    def counts(self) -> Ints:
        """Missing cells of each fate; of a table of weight 0, those without a value.

        Such a table does not reach what it observes, so its cells are looked at.
        """
        if self.table.is_passive:
            return np.bincount(self.fates.undetermined.code, minlength=len(FATES))
        return self.fates.totals.fates

    @cached_property
    def observed_unknown(self) -> tuple[int, int, tuple[int, int]]:
        """Observed cells of a table of weight 0 without a fitted value.

        How many there are, how many of them have both factors, and the first of these.
        """
        n_all, n_open, first = 0, 0, (-1, -1)
        if not self.table.is_passive or self._all_finite:
            return n_all, n_open, first
        for start, stop in self.fates.pieces():
            fates = self._fates_of(slice(start, stop))
            observed = self.fates.observed(start, stop)
            n_all += int((observed & (fates >= UNBOUNDED)).sum())
            i, j = np.nonzero(observed & (fates >= UNBOUNDED) & (fates < EMPTY))
            if len(i) and not n_open:
                first = int(i[0]) + start, int(j[0])
            n_open += len(i)
        return n_all, n_open, first

    @property
    def n_given_up(self) -> int:
        """Observed cells fitted by 0 although both of their entities are positive."""
        return 0 if self._all_finite else self.fates.totals.n_given_up

    # ---------------------------------------------------------------------- filling
    def impute(self, X: Any, how: OnUndetermined | None) -> Any:
        """Fill the missing cells of the table that was fitted."""
        check_telling(how)
        source = open_table(X, self.table.name)
        self._check_same_table(source)
        filled = fill_table(X, source, self._values)
        n_left, first_left = filled.left
        if first_left is not None:
            if how is None and not self._has_warned(n_left, source):
                how = self.on_undetermined
            if how not in (None, "ignore"):  # counting the kinds takes time
                where = source.where(*first_left)
                tell_undetermined(text_of_left(self.counts, n_left, where), how)
        return filled.table

    def _values(self, i: Ints, j: Ints) -> Floats:
        """Values of missing cells, by their places in the owner's table."""
        if self.table.transposed:
            i, j = j, i
        values: Floats = self.row_factor[i] * self.col_factor[j]
        if self._all_finite:
            return values
        return _decided(values, self.fates.of_cells(i, j))

    def _check_same_table(self, source: Rows) -> None:
        own, name = self._own_source, self.table.name
        fitted = (own.n_rows, own.n_cols)
        if (source.n_rows, source.n_cols) != fitted:
            msg = (
                f"{name} has shape ({source.n_rows}, {source.n_cols}), but the table "
                f"that was fitted has shape {fitted}. Pass the fitted table."
            )
            raise DataError(msg)
        for side, labels, known in (
            ("row", source.row_labels, own.row_labels),
            ("column", source.col_labels, own.col_labels),
        ):
            check_same_labels(side, labels, known, name, "the fit")

    @cached_property
    def _own_source(self) -> Rows:
        """The table as its owner has it."""
        source = self.table.source
        return transpose(source) if self.table.transposed else source

    def _has_warned(self, n_left: int, source: Rows) -> bool:
        """Whether the fit has warned of the cells that stay missing in this table."""
        if self.on_undetermined != "warn" or not self.table.parts:
            return False
        # The count first: an array may have got more holes since it was fitted.
        return n_left == self.n_undetermined and same_cells(source, self._own_source)


def _decided(values: Floats, fates: SmallInts) -> Floats:
    """Put 0 and NaN where the fates of the cells say so."""
    values[fates == ZERO] = 0.0
    values[fates >= UNBOUNDED] = np.nan
    return values
