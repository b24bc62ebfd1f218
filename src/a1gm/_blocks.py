"""Does a minimiser exist, and what can be known of each missing cell.

A directed graph has an edge line -> column for every observed cell and column -> line
for every positive one. Inside a strongly connected component the optimum is attained;
observed cells between components are all zero and are fitted by 0. A missing cell is
finite when row and column reach each other, 0 when only the row reaches the column,
unbounded when only the column reaches the row, and undetermined when neither does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from a1gm._kernel.reference import pack_bits, unpack_bits
from a1gm._observe import PairStatistics, Statistics, TableStatistics, WideStatistics
from a1gm._types import Bools, Floats, Ints, SmallInts, Words

__all__ = [
    "EMPTY",
    "FATES",
    "FINITE",
    "UNBOUNDED",
    "UNDETERMINED",
    "ZERO",
    "Components",
    "Reachability",
    "find_components",
    "observed_lines",
    "separate_zero_lines",
]

FINITE, ZERO, UNBOUNDED, UNDETERMINED, EMPTY = range(5)
FATES = ("finite", "zero", "unbounded", "undetermined", "undetermined")
LINES_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Components:
    """Strongly connected component of each line and column; -1 if nothing observed."""

    line: SmallInts
    col: SmallInts

    @property
    def n(self) -> int:
        """Number of components."""
        return int(max(self.line.max(initial=-1), self.col.max(initial=-1))) + 1


def find_components(statistics: Statistics) -> Components | None:
    """Find the components; None when no observed cell (or block of cells) is zero.

    Then the graph is symmetric, and the peeling finds the connected blocks itself.
    """
    if isinstance(statistics, WideStatistics):
        if statistics.positive is None:
            return None
        return _components_of_bits(
            statistics.bits, statistics.positive, statistics.n_cols
        )
    if isinstance(statistics, TableStatistics):
        n_observed = int(np.bitwise_count(statistics.keys).sum())
        if np.count_nonzero(statistics.sums > 0.0) == n_observed:
            return None
        lines, cols = np.nonzero(statistics.observed)
        positive = statistics.sums[lines, cols] > 0.0
        shape = statistics.sums.shape
    else:
        if (statistics.sums > 0.0).all():
            return None
        lines, cols = statistics.lines, statistics.cols
        positive = statistics.sums > 0.0
        shape = (len(statistics.ptr) - 1, statistics.n_cols)
    return _components_of_pairs(lines, cols, positive, shape)


def separate_zero_lines(statistics: Statistics) -> Components | None:
    """Set lines and columns of zero sum apart, whatever the cells inside.

    For ``negatives="allow"``, where cells of either sign make the sums.
    """
    zero_line, zero_col = statistics.row_sums == 0.0, statistics.col_sums == 0.0
    if not zero_line.any() and not zero_col.any():
        return None
    line = np.zeros(len(zero_line), np.int32)
    col = np.zeros(len(zero_col), np.int32)
    line[zero_line] = 1 + np.arange(zero_line.sum())
    col[zero_col] = 1 + zero_line.sum() + np.arange(zero_col.sum())
    return Components(line, col)


def _components_of_pairs(
    lines: Ints, cols: Ints | SmallInts, positive: Bools, shape: tuple[int, int]
) -> Components:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, m = shape
    col_nodes = cols.astype(np.int64) + n
    heads = np.concatenate([lines, col_nodes[positive]])
    tails = np.concatenate([col_nodes, lines[positive]])
    ones = np.ones(len(heads), np.int8)
    graph = coo_array((ones, (heads, tails)), shape=(n + m, n + m)).tocsr()
    _, label = connected_components(graph, directed=True, connection="strong")
    label = label.astype(np.int32)
    line, col = label[:n].copy(), label[n:].copy()
    line[np.bincount(lines, minlength=n) == 0] = -1
    col[np.bincount(cols, minlength=m) == 0] = -1
    return Components(line, col)


# -------------------------------------------------- components of a bit matrix
def _components_of_bits(bits: Words, positive: Words, m: int) -> Components:
    """Find components without a list of edges: sets of lines and columns grow.

    Forward and backward from a pivot; what both reach is a component, and the three
    remainders are treated alike. Most tables are one component and two searches.
    """
    n = len(bits)
    line = np.full(n, -1, np.int32)
    col = np.full(m, -1, np.int32)
    n_found = 0
    has_positive_line = positive.any(axis=1)
    has_positive_col = unpack_bits(_union(positive)[None, :], m)[0]
    observed_line = bits.any(axis=1)
    observed_col = unpack_bits(_union(bits)[None, :], m)[0]
    for places, labels in (
        (np.flatnonzero(observed_line & ~has_positive_line), line),
        (np.flatnonzero(observed_col & ~has_positive_col), col),
    ):
        labels[places] = n_found + np.arange(len(places))
        n_found += len(places)
    open_sets = [(np.flatnonzero(has_positive_line), pack_bits(has_positive_col[None])[0])]
    while open_sets:
        lines, cols = open_sets.pop()
        if len(lines) == 0:
            singles = np.flatnonzero(unpack_bits(cols[None], m)[0])
            col[singles] = n_found + np.arange(len(singles))
            n_found += len(singles)
            continue
        ahead, ahead_cols = _reach(lines, cols, bits, positive)
        behind, behind_cols = _reach(lines, cols, positive, bits)
        line[lines[ahead & behind]] = n_found
        col[unpack_bits((ahead_cols & behind_cols)[None], m)[0]] = n_found
        n_found += 1
        for chosen, words in (
            (ahead & ~behind, ahead_cols & ~behind_cols),
            (behind & ~ahead, behind_cols & ~ahead_cols),
            (~ahead & ~behind, cols & ~ahead_cols & ~behind_cols),
        ):
            if chosen.any() or words.any():
                open_sets.append((lines[chosen], words))
    return Components(line, col)


def _union(bits: Words) -> Words:
    union: Words = np.bitwise_or.reduce(bits, axis=0)
    return union


def _reach(lines: Ints, cols: Words, out: Words, back: Words) -> tuple[Bools, Words]:
    """Lines and columns reached from lines[0]: over ``out`` to columns, then ``back``."""
    reached = np.zeros(len(lines), bool)
    reached[0] = True
    fresh = reached.copy()
    reached_cols = np.zeros_like(cols)
    while fresh.any():
        reached_cols |= _union(out[lines[fresh]]) & cols
        touched = np.zeros(len(lines), bool)
        waiting = np.flatnonzero(~reached)
        touched[waiting] = (back[lines[waiting]] & reached_cols).any(axis=1)
        fresh = touched
        reached |= fresh
    return reached, reached_cols


# --------------------------------------------------------------- reachability
def observed_lines(statistics: Statistics) -> Iterator[tuple[int, Bools]]:
    """Yield (first line, observed cells) of the lines, a few at a time."""
    m = statistics.n_cols
    if isinstance(statistics, PairStatistics):
        for start in range(0, len(statistics.ptr) - 1, LINES_AT_ONCE):
            ptr = statistics.ptr[start : start + LINES_AT_ONCE + 1]
            cells = np.zeros((len(ptr) - 1, m), bool)
            rows = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
            cells[rows, statistics.cols[ptr[0] : ptr[-1]]] = True
            yield start, cells
        return
    bits = statistics.keys if isinstance(statistics, TableStatistics) else statistics.bits
    for start in range(0, len(bits), LINES_AT_ONCE):
        yield start, unpack_bits(bits[start : start + LINES_AT_ONCE], m)


@dataclass
class Reachability:
    """Which component reaches which, and so the fate of every missing cell."""

    components: Components
    statistics: Statistics
    _edges: dict[int, set[int]] | None = None
    _cache: dict[int, Bools] = field(default_factory=dict)

    @property
    def edges(self) -> dict[int, set[int]]:
        """Edges between different components; they lead from lines to columns."""
        if self._edges is None:
            found: dict[int, set[int]] = {}
            for start, observed in observed_lines(self.statistics):
                for k, cells in enumerate(observed):
                    own = int(self.components.line[start + k])
                    targets = np.unique(self.components.col[cells])
                    targets = targets[targets != own]
                    if own >= 0 and len(targets):
                        found.setdefault(own, set()).update(targets.tolist())
            self._edges = found
        return self._edges

    def reached_from(self, component: int) -> Bools:
        """Components that can be reached from one, itself among them."""
        if component not in self._cache:
            reached = np.zeros(self.components.n, bool)
            reached[component] = True
            waiting = [component]
            while waiting:
                for target in self.edges.get(waiting.pop(), ()):
                    if not reached[target]:
                        reached[target] = True
                        waiting.append(target)
            self._cache[component] = reached
        return self._cache[component]

    def fates(self, line: int, observed: Bools, *, zero_row: bool) -> SmallInts:
        """Fate of each column's cell in a row of this line, were it missing."""
        col = self.components.col
        own = int(self.components.line[line])
        fate = np.full(len(col), UNDETERMINED, np.int32)
        if own < 0:
            fate[:] = EMPTY
            return fate
        if zero_row:  # nothing leads to a row of zeros, it leads to what it observes
            reached = np.zeros(self.components.n, bool)
            for component in np.unique(col[observed]):
                reached |= self.reached_from(int(component))
            fate[reached[col]] = ZERO
        else:
            fate[self._reaching(own)[col]] = UNBOUNDED
            fate[self.reached_from(own)[col]] = ZERO
            fate[col == own] = FINITE
        fate[col < 0] = EMPTY
        return fate

    def _reaching(self, component: int) -> Bools:
        """Components from which one can be reached."""
        return np.fromiter(
            (self.reached_from(c)[component] for c in range(self.components.n)),
            bool,
            self.components.n,
        )


def zero_rows_per_line(
    row_sums: Floats, line_of_row: Ints | None, n_lines: int
) -> tuple[Ints, Ints]:
    """Count the rows of each line whose sum is positive, and whose sum is zero."""
    zero = row_sums == 0.0
    if line_of_row is None:
        return (~zero).astype(np.int64), zero.astype(np.int64)
    return (
        np.bincount(line_of_row[~zero], minlength=n_lines),
        np.bincount(line_of_row[zero], minlength=n_lines),
    )
