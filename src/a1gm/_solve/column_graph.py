"""Which columns share a scale, and what that says of any row's holes.

The graph of ``_blocks`` seen from its columns: column j leads to column k when some row
is positive at j and observes k. A row belongs to the component of its positive columns,
so the columns alone decide the fate of every hole, and rows need not be remembered.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from a1gm._result.fates import EMPTY, FINITE, UNBOUNDED, UNDETERMINED, ZERO
from a1gm._base.types import Bools, Floats, Ints, SmallInts

__all__ = ["ColumnGraph"]

#: Component of rows that observe nothing, of rows of zeros, and of rows whose positive
#: cells lie in several components (none of the rows that were fitted do).
NOTHING, ZEROS, SEVERAL = -1, -2, -3


@dataclass(frozen=True)
class ColumnGraph:
    """Components of the columns and which reaches which.

    Attributes
    ----------
    label : ndarray of int32, shape (n_cols,)
        Component of each column; -1 when nothing is observed in it.
    reach : ndarray of bool, shape (n_components, n_components)
        Whether the first component leads to the second; each leads to itself.
    """

    label: SmallInts
    reach: Bools

    @classmethod
    def of_edges(cls, edges: Bools, observed: Bools) -> ColumnGraph:
        """Build the graph from a table of edges between columns."""
        if _is_strongly_connected(edges, observed):
            one = np.ones((1, 1), bool)
            return cls(np.where(observed, 0, -1).astype(np.int32), one)
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        graph = csr_array(edges.astype(np.int8))
        _, found = connected_components(graph, directed=True, connection="strong")
        label = np.full(len(observed), -1, np.int32)
        known, label[observed] = np.unique(found[observed], return_inverse=True)
        one_hot = np.zeros((len(known), len(observed)), np.float32)
        places = np.flatnonzero(observed)
        one_hot[label[places], places] = 1.0
        between = one_hot @ edges.astype(np.float32) @ one_hot.T > 0.0
        return cls(label, _closure(between))

    @classmethod
    def of_one_block(cls, observed: Bools, positive: Bools, led: Bools) -> ColumnGraph:
        """Build the usual graph: columns with positive cells hang together.

        ``led`` marks the columns to which these lead, themselves among them.
        """
        label = np.where(observed, 0, -1).astype(np.int32)
        zeros = observed & ~positive
        label[zeros] = 1 + np.arange(int(zeros.sum()))
        # Columns of zeros lead nowhere.
        reach = np.eye(1 + int(zeros.sum()), dtype=bool)
        reach[0, 1:] = led[zeros]
        return cls(label, reach)

    @property
    def n(self) -> int:
        """Number of components."""
        return len(self.reach)

    @property
    def is_single(self) -> bool:
        """Whether all columns have data and hang together: every hole has a value."""
        return self.n == 1 and bool((self.label == 0).all())

    @cached_property
    def _fate_table(self) -> SmallInts:
        """Fate by component of the row and of the column (the last: empty column)."""
        n = self.n
        fates = np.full((n, n + 1), UNDETERMINED, np.int32)
        fates[:, :n][self.reach.T] = UNBOUNDED
        fates[:, :n][self.reach] = ZERO
        np.fill_diagonal(fates[:, :n], FINITE)
        fates[:, n] = EMPTY
        return fates

    def component_of_rows(self, observed: Bools, positive: Bools) -> SmallInts:
        """Component of each row, from its observed and its positive cells."""
        first = self.label[positive.argmax(axis=1)]
        some = positive.any(axis=1)
        component = np.where(
            some, first, np.where(observed.any(axis=1), ZEROS, NOTHING)
        )
        if self.n > 1:
            strays = positive & (self.label != component[:, None])
            component[strays.any(axis=1) & some] = SEVERAL
        return component.astype(np.int32)

    def fates(self, component: SmallInts, observed: Bools) -> SmallInts:
        """Fate of every cell of some rows, were it missing."""
        fates: SmallInts = self._fate_table[np.maximum(component, 0)][:, self.label]
        fates[component == NOTHING] = EMPTY
        fates[component == SEVERAL] = UNDETERMINED
        zeros = np.flatnonzero(component == ZEROS)
        if len(zeros):
            fates[zeros] = np.where(self._led_to(observed[zeros]), ZERO, UNDETERMINED)
        fates[:, self.label < 0] = EMPTY
        return fates

    def _led_to(self, observed: Bools) -> Bools:
        """Columns to which rows of zeros lead, by way of those they observe."""
        touched = np.zeros((len(observed), self.n), np.float32)
        for c in range(self.n):
            touched[:, c] = observed[:, self.label == c].any(axis=1)
        reached = touched @ self.reach.astype(np.float32) > 0.0
        led: Bools = reached[:, np.maximum(self.label, 0)]
        return led

    def inside(self, component: SmallInts, observed: Bools) -> Bools:
        """Observed cells that lie in the component of their row."""
        if self.n == 1:
            return observed
        within: Bools = observed & (component[:, None] == self.label)
        return within

    def row_factors(
        self, row_sums: Floats, component: SmallInts, observed: Bools, h: Floats
    ) -> Floats:
        """Row factors for given column factors: r_i / sum of the h_j inside."""
        known = np.where(np.isnan(h), 0.0, h)
        with np.errstate(divide="ignore", invalid="ignore"):
            factors: Floats = row_sums / (self.inside(component, observed) @ known)
        factors[component == ZEROS] = 0.0
        factors[(component == NOTHING) | (component == SEVERAL)] = np.nan
        return factors


def _is_strongly_connected(edges: Bools, observed: Bools) -> bool:
    """Tell the usual graph at once, before SciPy is loaded for the others."""
    first = int(observed.argmax())
    for steps in (edges, edges.T):
        reached = np.zeros(len(observed), bool)
        reached[first] = True
        n_found = 0
        while n_found < (n_found := int(reached.sum())):
            reached |= steps[reached].any(axis=0)
        if (observed & ~reached).any():
            return False
    return bool(observed.any())


def _closure(reach: Bools) -> Bools:
    """What is reached in any number of steps, none included."""
    reach = reach | np.eye(len(reach), dtype=bool)
    n_found: int | Ints = -1
    while (n := int(reach.sum())) != n_found:
        n_found = n
        step = reach.astype(np.float32)
        reach = step @ step > 0.0
    return reach
