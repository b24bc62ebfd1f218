"""One table of a joint fit: what is known of its cells, and their values.

A `TableView` has the factors of one table and asks the joint table what can be known of
its cells, because a table may be joined to its entities through the others only. Its
factors stand on the sides of the joint table; what it takes from the user and gives
back is the way the owner of the table has it, which may be the other way round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from a1gm._base.bits import pack_bits
from a1gm._base.types import Floats, Ints, OnUndetermined, SmallInts
from a1gm._base.warn import warn_user
from a1gm._observe.observation import Observation
from a1gm._observe.statistics import MaskStatistics, Statistics
from a1gm._result.divergence import divergence_of_cells
from a1gm._result.fates import (
    EMPTY,
    UNBOUNDED,
    UNDETERMINED,
    ZERO,
    Fates,
    Lines,
    UndeterminedCells,
)
from a1gm._result.fill import fill_table
from a1gm._result.messages import text_of_left_cells
from a1gm._result.rows import HeldRows
from a1gm._solve.column_graph import ColumnGraph
from a1gm._sources import Source, same_cells
from a1gm._sources.labels import check_same_labels
from a1gm.exceptions import (
    DimensionError,
    ParameterError,
    UndeterminedError,
    UndeterminedWarning,
)
from a1gm.nmmf.layout import SharedTable, transpose
from a1gm.nmmf.passive import Shares
from a1gm.nmmf.read import open_table
from a1gm.nmmf.solve import Solution

__all__ = ["TableView", "joint_graph", "table_fates"]


def joint_graph(solution: Solution) -> ColumnGraph:
    """Which columns of the joint table share a scale."""
    if solution.components is None:
        return ColumnGraph.of_blocks(solution.raw.col_block, solution.raw.n_blocks)
    has_data = solution.statistics.row_sums != 0.0
    return ColumnGraph.of_components(solution.statistics, solution.components, has_data)


def table_fates(
    solution: Solution,
    graph: ColumnGraph,
    table: SharedTable,
    shares: Shares,
) -> Fates:
    """What is known of the cells of one table, through all tables.

    ``graph`` is that of the joint table.
    """
    joint, r, c = solution.joint, table.row_set, table.col_set
    place = joint.patterns.get(r)

    def touched(pattern: int) -> Ints:
        """Components in which a row of zeros observes something, in any table."""
        if place is None:  # it does not steer: its zeros say nothing of the others
            return np.arange(graph.n)
        at = place.start + pattern
        observed = solution.statistics.observed_lines(slice(at, at + 1))[0]
        return np.unique(graph.label[observed])

    seen, component = joint.seen[r], shares.pattern_component[r]
    lines = Lines(
        _columns_of(seen, joint.columns_of(table)),
        lambda some: component[some],
        shares.col_component[c],
        touched,
    )
    rows = HeldRows(shares.row_factor[r], seen.line_of_row, seen.statistics.n_lines)
    own = replace(graph, label=shares.col_component[c])
    return Fates(own, lines, rows, np.nan_to_num(shares.col_factor[c]) > 0.0)


def _columns_of(seen: Observation, own: slice) -> Statistics:
    """Statistics of some columns, with the patterns of all."""
    whole = seen.statistics
    if own == slice(0, whole.n_cols):
        return whole
    bits = [pack_bits(observed[:, own]) for _, observed in whole.pieces()]
    return MaskStatistics(
        np.concatenate(bits), None, whole.row_sums, whole.col_sums[own]
    )


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
    def _fates(self, start: int, stop: int) -> SmallInts:
        """Fate of every cell of some rows.

        A table of weight 0 does not relate its entities: what is known of an observed
        cell is what would be known of it, were it missing. But zero times whatever is
        0, even where nothing else is known of the row.
        """
        fates = self.fates.of_rows(start, stop)
        if not self.table.is_passive:
            return fates
        w, h = self.row_factor[start:stop, None], self.col_factor
        nothing = ((w == 0.0) & ~np.isnan(h)) | ((h == 0.0) & ~np.isnan(w))
        observed = self.fates.observed(start, stop)
        return np.where(observed & nothing, ZERO, fates).astype(np.int32)

    def _fitted(self, start: int, stop: int) -> Floats:
        """Fitted values of some rows; NaN where the data do not determine one."""
        fitted: Floats = self.row_factor[start:stop, None] * self.col_factor
        if not self._all_finite:
            fates = self._fates(start, stop)
            fitted[fates == ZERO] = 0.0
            fitted[fates >= UNBOUNDED] = np.nan
        return fitted

    def reconstruct(self) -> Floats:
        """Return the fitted table; NaN where the data do not determine a value."""
        table = np.concatenate([self._fitted(*rows) for rows in self.fates.pieces()])
        return table.T if self.table.transposed else table

    @property
    def divergence(self) -> float:
        """Divergence on the observed cells; NaN when one has no fitted value."""
        if self.observed_unknown[0]:
            return math.nan
        total = 0.0
        for rows, cells in self.table.source.blocks():
            known = ~np.isnan(cells)
            fitted = self._fitted(rows.start, rows.stop)
            total += float(divergence_of_cells(cells[known], fitted[known]).sum())
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
        """Missing cells of each fate; of a table of weight 0 those without a value.

        There an observed cell may have no value, so that what is missing is not the
        rest of what is known.
        """
        if not self.table.is_passive:
            return self.fates.totals.fates
        counts = np.zeros(EMPTY + 1, np.int64)
        for _, _, codes in self.fates.unknown_cells():
            counts += np.bincount(codes, minlength=EMPTY + 1)
        return counts

    @cached_property
    def observed_unknown(self) -> tuple[int, int, tuple[int, int]]:
        """Observed cells of a table of weight 0 without a fitted value.

        How many there are, how many of them have both factors, and the first of these.
        """
        n_all, n_open, first = 0, 0, (-1, -1)
        if not self.table.is_passive or self._all_finite:
            return n_all, n_open, first
        for start, stop in self.fates.pieces():
            fates, observed = self._fates(start, stop), self.fates.observed(start, stop)
            n_all += int((observed & (fates >= UNBOUNDED)).sum())
            i, j = np.nonzero(observed & (fates >= UNBOUNDED) & (fates < EMPTY))
            if len(i) and not n_open:
                first = start + int(i[0]), int(j[0])
            n_open += len(i)
        return n_all, n_open, first

    @property
    def n_given_up(self) -> int:
        """Observed cells fitted by 0 although both of their entities are positive."""
        return 0 if self.table.is_passive else self.fates.totals.n_given_up

    # ---------------------------------------------------------------------- filling
    def impute(self, X: Any, how: OnUndetermined | None) -> Any:
        """Fill the missing cells of the table that was fitted."""
        if how not in (None, "warn", "raise", "ignore"):
            msg = (
                'on_undetermined must be None, "warn", "raise" or "ignore", got '
                f"{how!r}."
            )
            raise ParameterError(msg)
        source = open_table(X, self.table.name)
        self._check_same_table(source)
        filled = fill_table(X, source, self._values)
        if filled.first_left is not None:
            if how is None and not self._has_warned(filled.n_left, source):
                how = self.on_undetermined
            self._say_left(filled.n_left, source.where(*filled.first_left), how)
        return filled.table

    def _values(self, i: Ints, j: Ints) -> Floats:
        """Values of missing cells, by their places in the owner's table."""
        if self.table.transposed:
            i, j = j, i
        values: Floats = self.row_factor[i] * self.col_factor[j]
        if not self._all_finite:
            fates = self.fates.of_cells(i, j)
            values[fates == ZERO] = 0.0
            values[fates >= UNBOUNDED] = np.nan
        return values

    def _check_same_table(self, source: Source) -> None:
        own, name = self._own_source, self.table.name
        fitted = (own.n_rows, own.n_cols)
        if (source.n_rows, source.n_cols) != fitted:
            msg = (
                f"{name} has shape ({source.n_rows}, {source.n_cols}), but the table "
                f"that was fitted has shape {fitted}. Pass the fitted table."
            )
            raise DimensionError(msg)
        for side, labels, known in (
            ("row", source.row_labels, own.row_labels),
            ("column", source.col_labels, own.col_labels),
        ):
            check_same_labels(side, labels, known, name, "the fit")

    @cached_property
    def _own_source(self) -> Source:
        """The table as its owner has it."""
        source = self.table.source
        return transpose(source) if self.table.transposed else source

    def _has_warned(self, n_left: int, source: Source) -> bool:
        """Whether the fit has warned of the cells that stay missing in this table."""
        if self.on_undetermined != "warn" or not self.table.parts:
            return False
        # The count first: an array may have got more holes since it was fitted.
        return n_left == self.n_undetermined and same_cells(source, self._own_source)

    def _say_left(self, n: int, first: str, how: OnUndetermined | None) -> None:
        if how in (None, "ignore"):
            return
        counts = self.counts
        kinds = counts[UNBOUNDED], counts[UNDETERMINED] + counts[EMPTY]
        # A table with other holes than the fitted one leaves other cells.
        text = text_of_left_cells(n, first, kinds if sum(kinds) == n else None)
        text += " See fit.undetermined."
        if how == "raise":
            raise UndeterminedError(text)
        warn_user(text, UndeterminedWarning)
