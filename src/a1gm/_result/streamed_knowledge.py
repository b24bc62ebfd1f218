"""What the data say of each missing cell, for rows that are not in memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from a1gm._result.fates import EMPTY, FATES, UNBOUNDED, UndeterminedCells
from a1gm._result.stream import CELLS_AT_ONCE, Stream, row_blocks
from a1gm._base.types import AnyArray, Bools, Ints, SmallInts

__all__ = ["StreamedKnowledge", "StreamedZeros"]


class StreamedKnowledge:
    """Answers like ``Knowledge``, from the graph of the columns."""

    def __init__(self, stream: Stream) -> None:
        self.rows = stream
        self.graph = stream.graph

    @cached_property
    def counts(self) -> Ints:
        """Missing cells of each fate."""
        if self.rows.totals is not None:
            return self.rows.totals.fates
        counts = np.zeros(len(FATES), np.int64)
        for n_rows, observed, positive in self.rows.weighted():
            component = self.graph.component_of_rows(observed, positive)
            fates = self.graph.fates(component, observed)
            weights = np.where(observed, 0, n_rows[:, None])
            counts += np.bincount(
                fates.ravel(), weights.ravel(), minlength=len(FATES)
            ).astype(np.int64)
        return counts

    def outside(self, observed: Bools, positive: Bools, columns: Bools) -> Bools:
        """Observed cells of rows with data that lie outside their component."""
        component = self.graph.component_of_rows(observed, positive)
        outside: Bools = observed & ~self.graph.inside(component, observed) & columns
        outside[component < 0] = False
        return outside

    def fates(self, rows: Ints, cols: Ints) -> SmallInts:
        """Fate of the cells (rows[k], cols[k]), were they missing."""
        out = np.zeros(len(rows), np.int32)
        step = max(1, CELLS_AT_ONCE // len(self.graph.label))
        piece = rows // step
        for k in np.unique(piece):
            chosen = piece == k
            first, last = int(rows[chosen].min()), int(rows[chosen].max())
            fates, _ = self._fates_of_range(first, last + 1)
            out[chosen] = fates[rows[chosen] - first, cols[chosen]]
        return out

    def observed_rows(self, rows: Ints) -> Bools:
        """Observed cells of some rows."""
        return np.vstack([self.rows.cells(int(i), int(i) + 1)[1] for i in rows])

    def unknown_cells(
        self, *, below: int = EMPTY + 1
    ) -> Iterator[tuple[Ints, Ints, AnyArray]]:
        """Yield rows, columns and codes of the missing cells without a value."""
        for start, _, observed, positive in row_blocks(
            self.rows, len(self.graph.label)
        ):
            component = self.graph.component_of_rows(observed, positive)
            fates = self.graph.fates(component, observed)
            i, j = np.nonzero(~observed & (fates >= UNBOUNDED) & (fates < below))
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

    def first_unknown(self) -> tuple[int, int]:
        """Place of the first missing cell without a value, empty lines aside."""
        if self.rows.keeps_rows:
            for rows, cols, _ in self.unknown_cells(below=EMPTY):
                return int(rows[0]), int(cols[0])
        return -1, -1

    def _fates_of_range(self, start: int, stop: int) -> tuple[SmallInts, Bools]:
        _, observed, positive = self.rows.cells(start, stop)
        component = self.graph.component_of_rows(observed, positive)
        return self.graph.fates(component, observed), observed


class StreamedZeros:
    """Observed zeros between components, as ``GivenUpZeros``.

    ``columns`` are those with a positive cell.
    """

    def __init__(self, knowledge: StreamedKnowledge, columns: Bools) -> None:
        self.knowledge = knowledge
        self.columns = columns

    @cached_property
    def n(self) -> int:
        """Observed cells between components."""
        if self.knowledge.graph.n == 1 or not self.columns.any():
            return 0
        if self.knowledge.rows.totals is not None:
            return self.knowledge.rows.totals.n_given_up
        outside = self.knowledge.outside
        return sum(
            int(outside(observed, positive, self.columns).sum(axis=1) @ n_rows)
            for n_rows, observed, positive in self.knowledge.rows.weighted()
        )

    def first(self) -> tuple[int, int]:
        """Place of the first one; only for fits that kept their rows."""
        rows = self.knowledge.rows
        for start, _, observed, positive in row_blocks(rows, len(self.columns)):
            found = np.argwhere(
                self.knowledge.outside(observed, positive, self.columns)
            )
            if len(found):
                return start + int(found[0, 0]), int(found[0, 1])
        return -1, -1
