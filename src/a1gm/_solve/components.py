"""Does a minimiser exist: the strongly connected components of a table.

A directed graph has an edge pattern -> column for every observed cell and column ->
pattern for every positive one. Inside a strongly connected component the optimum is
attained; observed cells between components are all zero and are fitted by 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from a1gm._base.bits import union, unpack_bits
from a1gm._base.types import Bools, Floats, Ints, SmallInts, Words
from a1gm._observe.patterns import Patterns


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


def find_components(statistics: Patterns) -> Components | None:
    """Find the components; None when no observed cell (or sum of cells) is zero.

    Then the graph is symmetric, and the peeling finds the connected parts itself.
    """
    if not statistics.has_zeros:
        return None
    if statistics.is_mask:
        bits = statistics.keys, statistics.positive
        found = _components_of_bits(*bits, statistics.n_cols)
        if found is not None:
            return found
    shape = (statistics.n_patterns, statistics.n_cols)
    return _components_of_pairs(*_all_cells(statistics), shape)


def separate_zero_sums(patterns: Patterns) -> Components | None:
    """Make every pattern and column of zero sum a component of its own.

    For negative cells, where cells of either sign make the sums. None if there is none.
    """
    observed_pattern, observed_col = patterns.has_observed()
    has_pattern = (patterns.row_sums != 0.0) & observed_pattern
    has_col = (patterns.col_sums != 0.0) & observed_col
    if (has_pattern == observed_pattern).all() and (has_col == observed_col).all():
        return None
    i, j, _ = _all_cells(patterns)
    inside = has_pattern[i] & has_col[j]
    i, j = i[inside], j[inside]
    shape = (patterns.n_patterns, patterns.n_cols)
    found = _components_of_pairs(i, j, np.ones(len(i), bool), shape)
    n = found.n
    for label, observed in (
        (found.pattern, observed_pattern),
        (found.col, observed_col),
    ):
        alone = np.flatnonzero(observed & (label < 0))
        label[alone] = n + np.arange(len(alone))
        n += len(alone)
    return found


def _all_cells(statistics: Patterns) -> tuple[Ints, Ints, Bools]:
    """Pattern, column and sign of every observed cell."""
    found = list(statistics.cells())
    if not found:
        none = np.zeros(0, np.int64)
        return none, none, np.zeros(0, bool)
    i, j, positive = (np.concatenate(part) for part in zip(*found, strict=True))
    return i, j, positive


def number_by_rows(
    rows: SmallInts, cols: SmallInts, n: int
) -> tuple[SmallInts, SmallInts]:
    """Number components in the order of their first rows; -1 stays as it is."""
    labels, first = np.unique(rows[rows >= 0], return_index=True)
    rename = np.full(n + 1, -1, np.int32)
    rename[labels[np.argsort(first)]] = np.arange(len(labels))
    # Then those of the columns alone, in their order; numbers that no row and no
    # column has are passed over.
    alone, first = np.unique(cols[cols >= 0], return_index=True)
    alone = alone[np.argsort(first)]
    alone = alone[rename[alone] < 0]
    rename[alone] = len(labels) + np.arange(len(alone))
    return rename[rows], rename[cols]


def _components_of_pairs(
    i: Ints, j: Ints, positive: Bools, shape: tuple[int, int]
) -> Components:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, m = shape
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
    patterns: Bools = np.asarray(positive.any(axis=1))
    cols = union(positive)
    if not patterns.any():
        return None
    ahead, ahead_cols = _reach(patterns, bits, positive)
    behind, behind_cols = _reach(patterns, positive, bits)
    together = ahead & behind & patterns
    if (together != patterns).any() or (ahead_cols & behind_cols & cols != cols).any():
        return None
    n, found = 1, []
    seen_cols = unpack_bits(np.stack([cols, union(bits)]), m)
    for has_data, observed in ((patterns, bits.any(axis=1)), seen_cols):
        label = np.where(has_data, 0, -1).astype(np.int32)
        alone = observed & ~has_data
        label[alone] = n + np.arange(int(alone.sum()))
        n += int(alone.sum())
        found.append(label)
    return Components(*found)


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
