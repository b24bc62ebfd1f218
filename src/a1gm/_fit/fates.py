"""What the data say of each missing cell.

In the directed graph of ``components`` a missing cell is finite when its row and column
reach each other, 0 when only the row reaches the column, unbounded when only the
column reaches the row, and undetermined when neither does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, overload

import numpy as np

from a1gm._base.types import AnyArray, Bools, Fate, Ints, SmallInts
from a1gm._fit.place import (
    EMPTY,
    FINITE,
    UNBOUNDED,
    UNDETERMINED,
    ZERO,
    fates_of_row,
)
from a1gm._fit.rows import FitRows
from a1gm._solve.column_graph import ColumnGraph
from a1gm._solve.components import number_by_rows
from a1gm._solve.dispatch import Solved

FATES: tuple[Fate, ...] = (
    "finite",
    "zero",
    "unbounded",
    "undetermined",
    "undetermined",
)
CELLS_AT_ONCE = 1 << 20
MOST_KEPT = 1 << 12  # classes of rows whose fates are remembered
#: Component of lines that observe nothing, and of lines without a positive cell.
NOTHING, ZEROS = -1, -2


class UndeterminedCell(NamedTuple):
    """A missing cell that the data do not determine."""

    row: int
    column: int
    kind: Fate


class UndeterminedCells(Sequence[UndeterminedCell]):
    """Missing cells without a value: arrays ``row`` and ``column``, or tuples."""

    def __init__(self, row: Ints, column: Ints, code: AnyArray) -> None:
        self.row, self.column, self.code = row, column, code

    @property
    def kind(self) -> AnyArray:
        """Kind of each cell, as text."""
        return np.array(FATES)[self.code]

    def __len__(self) -> int:
        return len(self.row)

    @overload
    def __getitem__(self, at: int) -> UndeterminedCell: ...
    @overload
    def __getitem__(self, at: slice) -> UndeterminedCells: ...
    def __getitem__(self, at: int | slice) -> UndeterminedCell | UndeterminedCells:
        if isinstance(at, slice):
            return UndeterminedCells(self.row[at], self.column[at], self.code[at])
        kind = FATES[int(self.code[at])]
        return UndeterminedCell(int(self.row[at]), int(self.column[at]), kind)

    def __iter__(self) -> Iterator[UndeterminedCell]:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        shown = ", ".join(repr(tuple(cell)) for cell in self[:3])
        more = ", ..." if len(self) > 3 else ""
        return f"<{len(self)} undetermined cells: {shown}{more}>"


@dataclass(frozen=True)
class Totals:
    """What was counted over all rows.

    Attributes
    ----------
    n_empty_rows : int
        Rows without an observed cell.
    n_given_up : int
        Observed zeros between components.
    fates : ndarray of int64
        Missing cells of each fate.
    """

    n_empty_rows: int
    n_given_up: int
    fates: Ints

    @property
    def n_undetermined(self) -> int:
        """Missing cells that cannot be known (unbounded and undetermined)."""
        return int(self.fates[UNBOUNDED:].sum())


class Fates:
    """The fate of every missing cell of the rows of a fit.

    Rows of one pattern share their fates, except rows of zeros: nothing leads to such a
    row, while it leads to whatever it observes. So a row belongs to a *class*: the
    component of its pattern, or, for a row of zeros, its pattern.

    Attributes
    ----------
    graph : ColumnGraph
        Which columns share a scale.
    component : ndarray of int32
        Component of each pattern; NOTHING, or ZEROS.
    """

    def __init__(self, solved: Solved, rows: FitRows) -> None:
        self.rows, self.patterns = rows, solved.statistics
        self.graph, self.component = graph_of(solved), solved.factors.line_block
        if solved.components is not None:
            nothing = np.where(self.patterns.has_observed_lines(), ZEROS, NOTHING)
            found, has_data = solved.components, solved.components.lines_with_data()
            own = np.where(has_data, found.line, nothing)
            self.component = own.astype(np.int32)
        # Only margins count with negative cells, and no observed zero is given up.
        is_signed = self.patterns.n_negative > 0
        self._positive_cols: Bools = (self.patterns.col_sums > 0.0) & (not is_signed)
        self._known: dict[int, SmallInts] = {}

    # ---------------------------------------------------------------------- classes
    def _classes(self, lines: Ints, is_zero: Bools) -> Ints:
        component = self.component[lines].astype(np.int64)
        is_zero = (component == ZEROS) | (is_zero & (component >= 0))
        return np.where(is_zero, self.graph.n + lines, component)

    def _of_class(self, row_class: int) -> SmallInts:
        """Fate by component of the column; the last place is for empty columns."""
        found = self._known.get(row_class)
        if found is None:
            n, none = self.graph.n, np.zeros(0, np.int64)
            if row_class < 0:
                found = np.full(n + 1, EMPTY, np.int32)
            elif row_class < n:
                found = fates_of_row(self.graph, np.array([row_class]), none)
            else:
                line = row_class - n
                observed = self.patterns.observed_lines(slice(line, line + 1))[0]
                touched = np.unique(self.graph.label[observed])
                found = fates_of_row(self.graph, none, touched)
            if len(self._known) >= MOST_KEPT:
                self._known.clear()
            self._known[row_class] = found
        return found

    def _table(self, classes: Ints) -> tuple[SmallInts, Ints]:
        """Fates by component for each class given, and the place of each class."""
        unique, place = np.unique(classes, return_inverse=True)
        table = np.array([self._of_class(int(c)) for c in unique], np.int32)
        return table.reshape(len(unique), self.graph.n + 1), place.ravel()

    # ------------------------------------------------------------------------ cells
    def of_rows(self, start: int, stop: int) -> SmallInts:
        """Fate of every cell of some rows, were it missing."""
        table, place = self._table(self._classes(*self.rows.read(start, stop)))
        found: SmallInts = table[:, self.graph.label][place]
        return found

    def of_cells(self, rows: Ints, cols: Ints) -> SmallInts:
        """Fate of the cells (rows[k], cols[k]), were they missing."""
        out = np.zeros(len(rows), np.int32)
        piece = rows // self._step
        for k in np.unique(piece):
            chosen = np.flatnonzero(piece == k)
            first, last = int(rows[chosen].min()), int(rows[chosen].max())
            lines, is_zero = self.rows.read(first, last + 1)
            within = rows[chosen] - first
            table, place = self._table(self._classes(lines[within], is_zero[within]))
            out[chosen] = table[place, self.graph.label[cols[chosen]]]
        return out

    def observed(self, start: int, stop: int) -> Bools:
        """Observed cells of some rows."""
        lines, _ = self.rows.read(start, stop)
        return self.patterns.observed_at(lines)

    @property
    def _step(self) -> int:
        return max(1, CELLS_AT_ONCE // len(self.graph.label))

    def pieces(self, step: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield ranges of rows, a bounded number of cells at a time."""
        n, step = self.rows.n_rows, step or self._step
        for start in range(0, n, step):
            yield start, min(start + step, n)

    # --------------------------------------------------------------------- counting
    @cached_property
    def totals(self) -> Totals:
        """What is counted over all rows."""
        graph = self.graph
        n_cols = len(graph.label)
        of_component = np.zeros(graph.n, np.int64)  # rows with data
        counts = np.zeros(len(FATES), np.int64)
        n_empty = n_given_up = 0
        for some in self.patterns.stretches():
            component = self.component[some]
            n_rows, n_zero = self.rows.line_counts(some)
            n_data = np.where(component >= 0, n_rows - n_zero, 0)
            observed, inside, between = self.patterns.count_cells(
                some, component, graph.label, self._positive_cols
            )
            # A row reaches whatever it observes: such cells are finite or 0.
            n_finite = int(inside @ n_data)
            counts[FINITE] -= n_finite
            counts[ZERO] -= int(observed @ n_rows) - n_finite
            n_given_up += int(between @ n_data)
            is_empty = component == NOTHING
            n_empty += int(n_rows[is_empty].sum())
            known = component >= 0
            of_component += np.bincount(
                component[known], n_data[known], minlength=graph.n
            ).astype(np.int64)
            zeros = np.where(is_empty, 0, n_rows - n_data)
            for k in np.flatnonzero(zeros):
                fates = self._of_class(graph.n + some.start + int(k))
                counts += zeros[k] * self._per_fate(fates)
        counts[EMPTY] += n_empty * n_cols
        counts += self._of_components(of_component)
        return Totals(n_empty, n_given_up, counts)

    @cached_property
    def _cols_of(self) -> Ints:
        """Columns of each component, and, last, empty ones."""
        n = self.graph.n
        return np.bincount(self.graph.label % (n + 1), minlength=n + 1)

    def _per_fate(self, fates: SmallInts) -> Ints:
        cells = np.bincount(fates, self._cols_of, minlength=len(FATES))
        return cells.astype(np.int64)

    def _of_components(self, n_rows: Ints) -> Ints:
        """Cells of each fate in rows with data, were all of them missing."""
        counts = np.zeros(len(FATES), np.int64)
        cols, total = self._cols_of, int(n_rows.sum())
        if not len(self.graph.edges):  # no edges between components
            counts[FINITE] = n_rows @ cols[:-1]
            counts[EMPTY] = total * cols[-1]
            counts[UNDETERMINED] = total * cols.sum() - counts.sum()
            return counts
        for c in np.flatnonzero(n_rows):
            counts += n_rows[c] * self._per_fate(self._of_class(int(c)))
        return counts

    # --------------------------------------------------------------------- the cells
    def unknown_cells(
        self, *, below: int = EMPTY + 1
    ) -> Iterator[tuple[Ints, Ints, AnyArray]]:
        """Yield rows, columns and codes of the missing cells without a value."""
        for start, stop in self.pieces():
            fates = self.of_rows(start, stop)
            unknown = (fates >= UNBOUNDED) & (fates < below)
            if unknown.any():
                i, j = np.nonzero(unknown & ~self.observed(start, stop))
                if len(i):
                    yield start + i, j, fates[i, j]

    @cached_property
    def undetermined(self) -> UndeterminedCells:
        """All missing cells without a value, row by row."""
        none = np.zeros(0, np.int64)
        found = [(none, none, none), *self.unknown_cells()]
        return UndeterminedCells(
            *(np.concatenate(part) for part in zip(*found, strict=True))
        )

    def first_unknown(self) -> tuple[int, int] | None:
        """Place of the first missing cell without a value, empty rows aside."""
        if self.rows.is_kept:
            for rows, cols, _ in self.unknown_cells(below=EMPTY):
                return int(rows[0]), int(cols[0])
        return None

    def first_given_up(self) -> tuple[int, int] | None:
        """Place of the first observed zero that no minimiser fits."""
        if not self.rows.is_kept:
            return None
        for start, stop in self.pieces():
            lines, is_zero = self.rows.read(start, stop)
            component = self.component[lines]
            apart = self.observed(start, stop) & self._positive_cols
            apart &= component[:, None] != self.graph.label
            apart[is_zero | (component < 0)] = False
            found = np.argwhere(apart)
            if len(found):
                return start + int(found[0, 0]), int(found[0, 1])
        return None

    def empty_rows(self, most: int) -> tuple[list[int], int]:
        """The first rows without an observed cell, and how many there are."""
        n_empty, found = self.totals.n_empty_rows, []
        if n_empty and self.rows.is_kept:
            for start, stop in self.pieces(self.patterns.lines_at_once):
                component = self.component[self.rows.read(start, stop)[0]]
                found += (start + np.flatnonzero(component == NOTHING)).tolist()
                if len(found) >= most:
                    break
        return found[:most], n_empty

    def col_blocks(self) -> SmallInts:
        """Component of each column, numbered by lines where the rows are gone."""
        component = np.maximum(self.component, -1)
        return number_by_rows(component, self.graph.label, self.graph.n)[1]

    def row_blocks(self) -> tuple[SmallInts, SmallInts]:
        """Component of each row and column, rows of zeros each their own; -1 empty."""
        found, n = [], self.graph.n
        for start, stop in self.pieces(self.patterns.lines_at_once):
            lines, is_zero = self.rows.read(start, stop)
            component = self.component[lines]
            component[is_zero & (component >= 0)] = ZEROS
            found.append(component)
        rows = np.concatenate(found)
        zeros = rows == ZEROS
        rows = np.where(zeros, n + np.cumsum(zeros) - 1, rows)
        return number_by_rows(rows, self.graph.label, n + int(zeros.sum()))


def graph_of(solved: Solved) -> ColumnGraph:
    """Return which columns of a solved table share a scale."""
    factors, components = solved.factors, solved.components
    if components is None:
        return ColumnGraph.of_blocks(factors.col_block, factors.n_blocks)
    has_data = components.lines_with_data()
    return ColumnGraph.of_components(solved.statistics, components, has_data)
