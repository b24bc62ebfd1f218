"""Does a minimiser exist: the strongly connected components of a table.

A directed graph has an edge pattern -> column for every observed cell and column ->
pattern for every positive one. Inside a strongly connected component the optimum is
attained; observed cells between components are all zero and are fitted by 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from a1gm._base.bits import union, unpack_bits
from a1gm._base.types import Bools, Floats, Ints, SmallInts, Words
from a1gm._observe.patterns import Patterns


@dataclass(frozen=True)
class ColumnGraph:
    """Components of the columns and the edges between them.

    One component leads to another when some row is positive in the first and observes
    the second. A row belongs to the component of its positive columns, so the columns
    alone decide the fates of the missing cells of any row.
    """

    label: SmallInts  # component of each column; -1 when nothing is observed in it
    n: int  # number of components; some may have no column
    # Pairs of different components, the first of which leads to the second.
    edges: SmallInts = field(default_factory=lambda: np.zeros((0, 2), np.int32))

    @classmethod
    def star(cls, col_block: SmallInts) -> ColumnGraph:
        """One component, which leads to every column of zeros."""
        label = col_block.copy()
        zeros = np.flatnonzero(label < 0)
        label[zeros] = 1 + np.arange(len(zeros))
        edges = np.stack([np.zeros_like(label[zeros]), label[zeros]], axis=1)
        return cls(label, 1 + len(zeros), edges)

    @cached_property
    def is_single(self) -> bool:
        """Whether all columns have data and share a scale: every hole has a value."""
        return self.n == 1 and bool((self.label == 0).all())

    def ahead(self, start: Iterable[int]) -> Bools:
        """Components to which some components lead, themselves among them."""
        return self._reached(start, 0)

    def behind(self, start: Iterable[int]) -> Bools:
        """Components that lead to some components, themselves among them."""
        return self._reached(start, 1)

    @cached_property
    def _links(self) -> tuple[Any, Any]:
        """The edges as a sparse matrix, and its transpose."""
        from scipy.sparse import csr_array

        values, shape = np.ones(len(self.edges)), (self.n, self.n)
        forward = csr_array((values, (self.edges[:, 0], self.edges[:, 1])), shape=shape)
        return forward, forward.T.tocsr()

    def _reached(self, start: Iterable[int], side: int) -> Bools:
        from scipy.sparse.csgraph import breadth_first_order

        reached = np.zeros(self.n, bool)
        for k in start:
            if not len(self.edges):
                reached[k] = True
            elif not reached[k]:
                links = self._links[side]
                found = breadth_first_order(links, k, return_predecessors=False)
                reached[found] = True
        return reached


@dataclass(frozen=True, slots=True)
class Components:
    """Component of each pattern and column; -1 where nothing is observed."""

    pattern: SmallInts
    col: SmallInts

    @property
    def n(self) -> int:
        """Number of components."""
        return int(max(self.pattern.max(initial=-1), self.col.max(initial=-1))) + 1

    def patterns_with_data(self) -> Bools:
        """Which patterns share a component with a column; those of zeros are alone."""
        has_col = np.zeros(self.n + 1, bool)
        has_col[self.col] = True
        has_col[-1] = False
        found: Bools = has_col[self.pattern]
        return found

    def hold_together(self, row_sums: Floats, col_sums: Floats) -> bool:
        """Whether all patterns and columns with data are in one component."""
        found = np.append(self.pattern[row_sums > 0.0], self.col[col_sums > 0.0])
        return len(found) > 0 and bool((found == found[0]).all())

    def column_graph(self, patterns: Patterns) -> ColumnGraph:
        """Gather the edges of the patterns that have data."""
        n, has_data = self.n, self.patterns_with_data()
        found = [np.zeros(0, np.int64)]
        for i, j, _ in patterns.cells():
            heads, tails = self.pattern[i].astype(np.int64), self.col[j]
            between = (heads != tails) & has_data[i]
            found.append(np.unique((heads * n + tails)[between]))
        edges = np.stack(np.divmod(np.unique(np.concatenate(found)), max(n, 1)), 1)
        return ColumnGraph(self.col, n, edges.astype(np.int32))


def find_components(patterns: Patterns) -> Components | None:
    """Find the components; None when no observed cell (or sum of cells) is zero.

    Then the graph is symmetric, and the peeling finds the connected parts itself.
    """
    if not patterns.has_zeros:
        return None
    if patterns.is_mask:
        bits = patterns.keys, patterns.positive
        found = _components_of_bits(*bits, patterns.n_cols)
        if found is not None:
            return found
    return _components_of_pairs(*_all_cells(patterns), patterns)


def _number_alone(
    labels: Iterable[SmallInts], observed: Iterable[Bools], n: int
) -> None:
    """Make each observed item without a component a component."""
    for label, known in zip(labels, observed, strict=True):
        alone = np.flatnonzero(known & (label < 0))
        label[alone] = n + np.arange(len(alone))
        n += len(alone)


def _all_cells(patterns: Patterns) -> tuple[Ints, Ints, Bools]:
    """Pattern, column and sign of every observed cell."""
    none = np.zeros(0, np.int64)
    found = [(none, none, np.zeros(0, bool)), *patterns.cells()]
    i, j, positive = (np.concatenate(part) for part in zip(*found, strict=True))
    return i, j, positive


def number_by_rows(
    rows: SmallInts, cols: SmallInts, n: int
) -> tuple[SmallInts, SmallInts]:
    """Number components in the order of their first rows; -1 stays as it is.

    Then those of the columns alone, in their order; numbers that no row and no column
    has are passed over.
    """
    known = np.append(rows[rows >= 0], cols[cols >= 0])
    labels, first = np.unique(known, return_index=True)
    rename = np.full(n + 1, -1, np.int32)
    rename[labels[np.argsort(first)]] = np.arange(len(labels))
    return rename[rows], rename[cols]


def _components_of_pairs(
    i: Ints, j: Ints, positive: Bools, patterns: Patterns
) -> Components:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, m = patterns.n_patterns, patterns.n_cols
    col_nodes = j + n
    heads = np.concatenate([i, col_nodes[positive]])
    tails = np.concatenate([col_nodes, i[positive]])
    ones = np.ones(len(heads), np.int8)
    graph = coo_array((ones, (heads, tails)), shape=(n + m, n + m)).tocsr()
    _, label = connected_components(graph, directed=True, connection="strong")
    pattern, col = label[:n].astype(np.int32), label[n:].astype(np.int32)
    pattern[np.bincount(i, minlength=n) == 0] = -1
    col[np.bincount(j, minlength=m) == 0] = -1
    return Components(pattern, col)


# -------------------------------------------------- components of a bit matrix
def _components_of_bits(bits: Words, positive: Words, m: int) -> Components | None:
    """Find one component without a list of edges: sets of patterns and columns grow.

    Forward and backward from the first pattern with data: both reach its component.
    Patterns and columns without a positive cell are alone. None if there are others.
    """
    has_data: Bools = np.asarray(positive.any(axis=1))
    observed: Bools = np.asarray(bits.any(axis=1))
    cols = union(positive)
    if not has_data.any():
        return None
    ahead, ahead_cols = _reach(has_data, bits, positive)
    behind, behind_cols = _reach(has_data, positive, bits)
    is_one = (ahead & behind)[has_data].all()
    if not is_one or (ahead_cols & behind_cols & cols != cols).any():
        return None
    col_has_data, col_observed = unpack_bits(np.stack([cols, union(bits)]), m)
    labels = [np.where(x, 0, -1).astype(np.int32) for x in (has_data, col_has_data)]
    _number_alone(labels, (observed, col_observed), 1)
    return Components(*labels)


def _reach(patterns: Bools, out: Words, back: Words) -> tuple[Bools, Words]:
    """Patterns and columns reached from the first of some, over out and back."""
    reached, cols = np.zeros(len(patterns), bool), np.zeros_like(out[0])
    fresh = np.array([patterns.argmax()])
    while len(fresh):
        reached[fresh] = True
        cols = cols | union(out[fresh])
        waiting = np.flatnonzero(patterns & ~reached)
        fresh = waiting[(back[waiting] & cols).any(axis=1)]
    return reached, cols
