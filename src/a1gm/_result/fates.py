"""What the data say of each missing cell.

In the directed graph of ``_blocks`` a missing cell is finite when its row and column
reach each other, 0 when only the row reaches the column, unbounded when only the
column reaches the row, and undetermined when neither does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, overload

import numpy as np

from a1gm._solve.components import Components
from a1gm._observe.statistics import (
    PairStatistics,
    Statistics,
    line_blocks,
    observed_pairs,
)
from a1gm._base.types import AnyArray, Bools, Fate, Ints, SmallInts

__all__ = [
    "EMPTY",
    "FATES",
    "FINITE",
    "UNBOUNDED",
    "UNDETERMINED",
    "ZERO",
    "Knowledge",
    "UndeterminedCell",
    "UndeterminedCells",
]

# Codes from UNBOUNDED up have no value. EMPTY: the row or column observes nothing.
FINITE, ZERO, UNBOUNDED, UNDETERMINED, EMPTY = range(5)
FATES: tuple[Fate, ...] = (
    "finite",
    "zero",
    "unbounded",
    "undetermined",
    "undetermined",
)
CELLS_AT_ONCE = 1 << 20


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


class Knowledge:
    """The fate of every missing cell, from which component reaches which.

    Rows of one line share their fates, except rows of zeros: nothing leads to such a
    row, while it leads to whatever it observes. So a row belongs to a *class*: the
    component of its line, or, for a row of zeros, its line.
    """

    def __init__(
        self,
        statistics: Statistics,
        components: Components,
        line_of_row: AnyArray | None,
        is_zero_row: Bools,
        *,
        none_between: bool = False,
        fates_of_class: Callable[[int], SmallInts] | None = None,
    ) -> None:
        self.statistics = statistics
        self.components = components
        self.line_of_row = line_of_row
        self.is_zero_row = is_zero_row
        self.none_between = none_between  # no observed cell joins two components
        self._find_fates = fates_of_class or self._fates_of_class
        self._fates: dict[int, SmallInts] = {}

    @cached_property
    def _edges(self) -> tuple[dict[int, Ints], dict[int, Ints]]:
        """Edges between different components, and the same reversed.

        They all lead from a line to a column: a positive cell joins its two ends.
        """
        if self.none_between:
            return {}, {}
        n = self.components.n
        found = [np.zeros(0, np.int64)]
        for i, j, _ in observed_pairs(self.statistics):
            heads = self.components.line[i].astype(np.int64)
            tails = self.components.col[j].astype(np.int64)
            found.append(np.unique((heads * n + tails)[heads != tails]))
        heads, tails = np.divmod(np.unique(np.concatenate(found)), max(n, 1))
        return _grouped(heads, tails), _grouped(tails, heads)

    def _spread(self, start: Ints, edges: dict[int, Ints]) -> Bools:
        reached = np.zeros(self.components.n, bool)
        reached[start] = True
        waiting = list(start)
        while waiting:
            targets = edges.get(int(waiting.pop()))
            if targets is not None:
                fresh = targets[~reached[targets]]
                reached[fresh] = True
                waiting.extend(fresh)
        return reached

    def fates_of_class(self, row_class: int) -> SmallInts:
        """Fate by component of the column; the last place is for empty columns."""
        if row_class not in self._fates:
            self._fates[row_class] = self._find_fates(row_class)
        return self._fates[row_class]

    def _fates_of_class(self, row_class: int) -> SmallInts:
        n = self.components.n
        fates = np.full(n + 1, UNDETERMINED, np.int32)
        forward, backward = self._edges
        if row_class >= n:
            line = row_class - n
            observed = self.statistics.observed_lines(slice(line, line + 1))[0]
            start = np.unique(self.components.col[observed])
            fates[:n][self._spread(start, forward)] = ZERO
        elif row_class >= 0:
            own = np.array([row_class])
            fates[:n][self._spread(own, backward)] = UNBOUNDED
            fates[:n][self._spread(own, forward)] = ZERO
            fates[row_class] = FINITE
        else:
            fates[:] = EMPTY
        fates[n] = EMPTY
        return fates

    def _class_of_lines(self, lines: Ints, is_zero: Bools) -> Ints:
        component = self.components.line[lines].astype(np.int64)
        own_class = np.where(is_zero, self.components.n + lines, component)
        return np.where(component < 0, -1, own_class)

    def _class_of_rows(self, rows: Ints) -> Ints:
        lines = (
            rows
            if self.line_of_row is None
            else self.line_of_row[rows].astype(np.int64)
        )
        return self._class_of_lines(lines, self.is_zero_row[rows])

    def _lookup(self, classes: Ints) -> tuple[SmallInts, Ints]:
        """Table of fates by component, and the line of it for each class given."""
        unique, place = np.unique(classes, return_inverse=True)
        table = np.array([self.fates_of_class(int(c)) for c in unique])
        return table.reshape(len(unique), self.components.n + 1), place.ravel()

    def fates(self, rows: Ints, cols: Ints) -> SmallInts:
        """Fate of the cells (rows[k], cols[k]), were they missing."""
        table, place = self._lookup(self._class_of_rows(rows))
        found: SmallInts = table[place, self.components.col[cols]]
        return found

    def fates_of_rows(self, rows: Ints) -> SmallInts:
        """Fate of every cell of some rows, were it missing."""
        table, place = self._lookup(self._class_of_rows(rows))
        found: SmallInts = table[place][:, self.components.col]
        return found

    @cached_property
    def counts(self) -> Ints:
        """Missing cells of each fate."""
        if isinstance(self.statistics, PairStatistics):
            return self._count_all_cells() - self._count_observed_cells()
        counts = np.zeros(len(FATES), np.int64)
        n_lines = self.statistics.n_lines
        every = np.arange(n_lines)
        for is_zero in (False, True):
            chosen = np.flatnonzero(self.is_zero_row == is_zero)
            lines = chosen if self.line_of_row is None else self.line_of_row[chosen]
            n_rows = np.bincount(lines, minlength=n_lines)
            if not len(chosen):
                continue
            kept = n_rows > 0
            classes = self._class_of_lines(every, np.full(n_lines, is_zero))
            table, place = self._lookup(classes[kept])
            places = np.zeros(n_lines, np.int64)
            places[kept] = place
            for block, observed in line_blocks(self.statistics):
                fates = table[places[block]][:, self.components.col]
                weights = np.where(observed, 0, n_rows[block, None])
                counts += np.bincount(
                    fates.ravel(), weights.ravel(), minlength=len(FATES)
                ).astype(np.int64)
        return counts

    def _count_all_cells(self) -> Ints:
        """Cells of each fate, were all of them missing."""
        n = self.components.n
        counts = np.zeros(len(FATES), np.int64)
        cols = np.bincount(self.components.col % (n + 1), minlength=n + 1)
        classes = self._class_of_rows(np.arange(len(self.is_zero_row)))
        if not self._edges[0]:  # blocks that know nothing of one another
            alone = (classes >= 0) & (classes < n)
            rows = np.bincount(classes[alone], minlength=n)
            counts[FINITE] = rows @ cols[:n]
            counts[EMPTY] = rows.sum() * cols[n]
            counts[UNDETERMINED] = rows.sum() * cols.sum() - counts.sum()
            classes = classes[~alone]
        for row_class, n_rows in zip(
            *np.unique(classes, return_counts=True), strict=True
        ):
            fates = self.fates_of_class(int(row_class))
            per_fate = np.bincount(fates, cols, minlength=len(FATES))
            counts += n_rows * per_fate.astype(np.int64)
        return counts

    def _count_observed_cells(self) -> Ints:
        """The same for the observed cells: a row reaches whatever it observes."""
        n_lines = self.statistics.n_lines
        counts = np.zeros(len(FATES), np.int64)
        every = np.arange(len(self.is_zero_row))
        lines = every if self.line_of_row is None else self.line_of_row
        n_rows = np.bincount(lines, minlength=n_lines)
        n_data = np.bincount(lines[~self.is_zero_row], minlength=n_lines)
        if self.none_between and isinstance(self.statistics, PairStatistics):
            counts[FINITE] = n_rows @ np.diff(self.statistics.ptr)
            return counts
        for i, j, _ in observed_pairs(self.statistics):
            inside = self.components.line[i] == self.components.col[j]
            n_finite = int(n_data[i[inside]].sum())
            counts[FINITE] += n_finite
            counts[ZERO] += int(n_rows[i].sum()) - n_finite
        return counts

    def unknown_cells(
        self, *, below: int = EMPTY + 1
    ) -> Iterator[tuple[Ints, Ints, AnyArray]]:
        """Yield rows, columns and codes of the missing cells without a value."""
        n_rows = len(self.is_zero_row)
        step = max(1, CELLS_AT_ONCE // self.statistics.n_cols)
        for start in range(0, n_rows, step):
            rows = np.arange(start, min(start + step, n_rows))
            fates = self.fates_of_rows(rows)
            unknown = (fates >= UNBOUNDED) & (fates < below)
            # Only rows with something unknown need their observed cells looked up.
            some = np.flatnonzero(unknown.any(axis=1))
            unknown[some] &= ~self.observed_rows(rows[some])
            i, j = np.nonzero(unknown)
            if len(i):
                yield rows[i], j, fates[i, j]

    def observed_rows(self, rows: Ints) -> Bools:
        """Observed cells of some rows."""
        lines = rows if self.line_of_row is None else self.line_of_row[rows]
        unique, place = np.unique(lines, return_inverse=True)
        if len(unique) and unique[-1] - unique[0] + 1 == len(unique):
            every = slice(int(unique[0]), int(unique[-1]) + 1)
            return self.statistics.observed_lines(every)[place.ravel()]
        cells = np.zeros((len(unique), self.statistics.n_cols), bool)
        for k, line in enumerate(unique):
            cells[k] = self.statistics.observed_lines(slice(line, line + 1))[0]
        return cells[place.ravel()]

    @cached_property
    def undetermined(self) -> UndeterminedCells:
        """All missing cells without a value, row by row."""
        found = list(self.unknown_cells())
        if not found:
            none = np.zeros(0, np.int64)
            return UndeterminedCells(none, none, none)
        return UndeterminedCells(
            *(np.concatenate(part) for part in zip(*found, strict=True))
        )

    def first_unknown(self) -> tuple[int, int]:
        """Place of the first missing cell without a value, empty lines aside."""
        for rows, cols, _ in self.unknown_cells(below=EMPTY):
            return int(rows[0]), int(cols[0])
        return -1, -1


def _grouped(keys: Ints, values: Ints) -> dict[int, Ints]:
    order = np.argsort(keys, kind="stable")
    unique, start = np.unique(keys[order], return_index=True)
    return dict(zip(unique.tolist(), np.split(values[order], start[1:]), strict=False))
