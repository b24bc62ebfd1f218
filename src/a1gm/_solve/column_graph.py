"""Which columns share a scale, and which components lead to which.

The graph of ``components`` seen from its columns: column j leads to column k when some
row is positive at j and observes k. A row belongs to the component of its positive
columns, so the columns alone decide what can be known of any row's holes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from a1gm._base.types import Bools, SmallInts
from a1gm._observe.patterns import Patterns
from a1gm._solve.components import Components

DENSE_GRAPH = 2048  # components up to which a table says which leads to which


@dataclass(frozen=True)
class ColumnGraph:
    """Components of the columns and the edges between them.

    Attributes
    ----------
    label : ndarray of int32, shape (n_cols,)
        Component of each column; -1 when nothing is observed in it.
    edges : ndarray of int32, shape (n_edges, 2)
        Pairs of different components, the first of which leads to the second.
    n : int
        Number of components; some may have no column.
    """

    label: SmallInts
    edges: SmallInts
    n: int

    @classmethod
    def single(cls, n_cols: int) -> ColumnGraph:
        """Return the usual graph: all columns in one component."""
        return cls(np.zeros(n_cols, np.int32), _no_edges(), 1)

    @classmethod
    def of_blocks(cls, col_block: SmallInts, n: int) -> ColumnGraph:
        """Return components without edges between them."""
        return cls(col_block, _no_edges(), n)

    @classmethod
    def of_components(
        cls, statistics: Patterns, components: Components, has_data: Bools
    ) -> ColumnGraph:
        """Gather the edges of the patterns that have data."""
        n = components.n
        found = [np.zeros(0, np.int64)]
        for i, j, _ in statistics.cells():
            heads = components.pattern[i].astype(np.int64)
            tails = components.col[j].astype(np.int64)
            between = (heads != tails) & has_data[i]
            found.append(np.unique((heads * n + tails)[between]))
        edges = np.stack(np.divmod(np.unique(np.concatenate(found)), max(n, 1)), 1)
        return cls(components.col, edges.astype(np.int32), n)

    @property
    def is_single(self) -> bool:
        """Whether all columns have data and share a scale: every hole has a value."""
        return self.n == 1 and bool((self.label == 0).all())

    @cached_property
    def _closure(self) -> Bools:
        """Which component leads to which, in any number of steps, none included."""
        reach = np.eye(self.n, dtype=bool)
        reach[self.edges[:, 0], self.edges[:, 1]] = True
        n_found = 0
        while n_found < (n_found := int(reach.sum())):
            step = reach.astype(np.float32)
            reach = step @ step > 0.0
        return reach

    def ahead(self, start: Iterable[int]) -> Bools:
        """Components to which some components lead, themselves among them."""
        return self._spread(start, 0)

    def behind(self, start: Iterable[int]) -> Bools:
        """Components that lead to some components, themselves among them."""
        return self._spread(start, 1)

    def _spread(self, start: Iterable[int], side: int) -> Bools:
        if len(self.edges) and self.n <= DENSE_GRAPH:
            reach = self._closure if side == 0 else self._closure.T
            return np.asarray(reach[list(start)].any(axis=0))
        reached = np.zeros(self.n, bool)
        reached[list(start)] = True
        if not len(self.edges):
            return reached
        heads, tails = self.edges[:, side], self.edges[:, 1 - side]
        n_found = 0
        while n_found < (n_found := int(reached.sum())):
            reached[tails[reached[heads]]] = True
        return reached

    def check(self) -> None:
        """Raise ValueError if the arrays do not fit together."""
        label, edges = self.label, self.edges
        is_right = (
            label.dtype == np.int32
            and label.ndim == 1
            and edges.dtype == np.int32
            and edges.ndim == 2
            and edges.shape[1] == 2
            and type(self.n) is int
            and 0 <= self.n < 2**31
        )
        for values, least in ((label, -1), (edges, 0)):
            is_right = is_right and (
                not values.size or (values.min() >= least and values.max() < self.n)
            )
        if not is_right:
            raise ValueError("the graph of the columns does not fit together")


def _no_edges() -> SmallInts:
    return np.zeros((0, 2), np.int32)
