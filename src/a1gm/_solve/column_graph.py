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

from a1gm._base.bits import pack_bits, union, unpack_bits
from a1gm._base.types import Bools, SmallInts
from a1gm._observe.disk import DiskStatistics
from a1gm._observe.row_log import MaskLog
from a1gm._observe.statistics import Statistics
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
        cls, statistics: Statistics, components: Components, has_data: Bools
    ) -> ColumnGraph:
        """Gather the edges of the lines that have data."""
        n = components.n
        found = [np.zeros(0, np.int64)]
        for i, j, _ in statistics.cells():
            heads = components.line[i].astype(np.int64)
            tails = components.col[j].astype(np.int64)
            between = (heads != tails) & has_data[i]
            found.append(np.unique((heads * n + tails)[between]))
        edges = np.stack(np.divmod(np.unique(np.concatenate(found)), max(n, 1)), 1)
        return cls(components.col, edges.astype(np.int32), n)

    @classmethod
    def of_disk(cls, statistics: DiskStatistics) -> ColumnGraph:
        """Find the components of a mask in a file, pass by pass over it."""
        log, observed = statistics.log, statistics.observed_cols
        positive = statistics.col_sums > 0.0
        if positive.any():
            pivot = int(positive.argmax())
            ahead = _spread_in_file(log, pivot, backward=False)
            # Without zeros the two directions are the same.
            behind = ahead
            if log.has_zeros:
                behind = _spread_in_file(log, pivot, backward=True)
            if not (positive & ~(ahead & behind)).any():
                return cls._of_one_component(observed, positive, ahead)
        return cls.of_column_edges(_column_edges(log), observed)

    @classmethod
    def _of_one_component(
        cls, observed: Bools, positive: Bools, led: Bools
    ) -> ColumnGraph:
        """Return one component and columns of zeros; it leads to the ``led`` ones."""
        label = np.where(observed, 0, -1).astype(np.int32)
        zeros = observed & ~positive
        label[zeros] = 1 + np.arange(int(zeros.sum()))
        tails = label[zeros & led]
        edges = np.stack([np.zeros_like(tails), tails], axis=1)
        return cls(label, edges, 1 + int(zeros.sum()))

    @classmethod
    def of_column_edges(cls, edges: Bools, observed: Bools) -> ColumnGraph:
        """Build the graph from a square table of edges between columns."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        graph = csr_array(edges.astype(np.int8))
        _, found = connected_components(graph, directed=True, connection="strong")
        label = np.full(len(observed), -1, np.int32)
        known, label[observed] = np.unique(found[observed], return_inverse=True)
        heads, tails = (label[side] for side in np.nonzero(edges))
        between = np.stack([heads, tails], axis=1)[heads != tails]
        return cls(label, np.unique(between, axis=0).astype(np.int32), len(known))

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


# ---------------------------------------------------------------- masks in a file
def _spread_in_file(log: MaskLog, pivot: int, *, backward: bool) -> Bools:
    """Columns reached from one, pass by pass; the usual mask needs one pass or two."""
    reached = np.zeros(log.n_cols, bool)
    reached[pivot] = True
    n_found = 0
    while n_found < (n_found := int(reached.sum())) < log.n_cols:
        words = pack_bits(reached[None])[0]
        for _, _, bits, positive in log.pieces():
            start, end = (bits, positive) if backward else (positive, bits)
            # Rows of zeros lead to columns, but nothing leads to them.
            words = words | union(end[(start & words).any(axis=1)])
        reached = unpack_bits(words[None], log.n_cols)[0]
    return reached


def _column_edges(log: MaskLog) -> Bools:
    """Pairs of columns, the first positive and the second observed in some row."""
    found = np.zeros((log.n_cols, log.n_cols), bool)
    step = 4096
    for _, _, bits, positive in log.pieces():
        for at in range(0, len(bits), step):
            seen = unpack_bits(bits[at : at + step], log.n_cols).astype(np.float32)
            above = unpack_bits(positive[at : at + step], log.n_cols).astype(np.float32)
            found |= above.T @ seen > 0.0
    return found
