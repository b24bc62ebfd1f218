"""Parts of a large core that hang together by small cells.

Sums of whole rows and columns do not show what such cells carry, so their own sums
are compared: the parts are clusters, and each has one scale against the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._base.types import Floats, Ints, SmallInts
from a1gm._kernel.network import ROUNDING, eliminate, shortened
from a1gm._observe.patterns import Patterns
from a1gm._solve.cell_error import Network
from a1gm._solve.factors import CoreSolution

if TYPE_CHECKING:  # the compiled kernel's class answers the same
    from a1gm._kernel.reference.reduced import Reduced

STRONG = 1e-3  # of the largest cell of its row or column: a cell that joins them
MOST_CLUSTERS = 500
PRECISE = 1e-14
ROUNDS, STEPS = 12, 80


def cells_in_core(reduced: Reduced, cells: Patterns) -> tuple[Ints, Floats]:
    """Place in the core, row by row, and sum of the cells that peeling has left."""
    row_place, col_place = reduced.core_places
    lines, cols = cells.places(slice(0, cells.n_lines))
    i, j = row_place[lines].astype(np.int64), col_place[cols]
    kept = (i >= 0) & (j >= 0)
    return i[kept] * reduced.core_shape[1] + j[kept], cells.sums[kept]


@dataclass(frozen=True)
class _Cells:
    """Observed cells of a core: row, column, sum and weight."""

    i: Ints
    j: Ints
    sums: Floats
    weights: Floats

    @classmethod
    def of_core(cls, reduced: Reduced, cells: Patterns) -> _Cells:
        m = reduced.core_shape[1]
        places, found = cells_in_core(reduced, cells)
        key, place = np.unique(places, return_inverse=True)
        weights = np.ones(len(key))
        if cells.weights is not None:  # those of the core's own rows and columns
            weights = _weights_of(reduced, key)
        sums = np.bincount(place.ravel(), found, minlength=len(key))
        rows, cols = np.divmod(key, m)
        return cls(rows, cols, sums.astype(np.float64), weights)

    def fitted(self, w: Floats, h: Floats) -> Floats:
        values: Floats = self.weights * w[self.i] * h[self.j]
        return values


def _weights_of(reduced: Reduced, key: Ints) -> Floats:
    ptr, index, _, weights = reduced.core_mask
    n, m = reduced.core_shape
    own = np.repeat(np.arange(n), np.diff(ptr)) * m + index
    assert weights is not None
    found: Floats = weights[np.searchsorted(own, key)]
    return found


def mend_by_clusters(
    reduced: Reduced, core: CoreSolution, max_iter: int, pairs: Patterns
) -> CoreSolution:
    """Set the scales between clusters by the cells that join them."""
    cells = _Cells.of_core(reduced, pairs)
    best = core
    for _ in range(ROUNDS):
        F = cells.fitted(core.w, core.h)
        label = _clusters(cells, F, reduced.core_shape)
        if label is None or core.n_iter >= max_iter:
            break
        n = len(core.w)
        t, moved = _scales(cells, F, label[cells.i], label[n + cells.j])
        h = core.h * np.exp(t[label[n:]])
        w, h, sweeps, gap, _ = reduced.scale(h, 1e-15, 4, 4)
        found = CoreSolution(w, h, "newton", core.n_iter + sweeps, gap)
        step = _step(reduced, found, label[n:], moved)
        core = replace(found, step=step)
        if step >= 0.9 * best.step and moved >= PRECISE:
            break
        if step < best.step:
            best = replace(core, cut=best.cut)
        if moved < PRECISE:
            break
    return best


def _clusters(cells: _Cells, F: Floats, shape: tuple[int, int]) -> SmallInts | None:
    """Cluster of each row and column by strong cells; None for one, or too many."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, m = shape
    of_row, of_col = np.zeros(n), np.zeros(m)
    np.maximum.at(of_row, cells.i, F)
    np.maximum.at(of_col, cells.j, F)
    strong = STRONG * np.minimum(of_row[cells.i], of_col[cells.j]) < F
    i, j = cells.i[strong], n + cells.j[strong]
    graph = coo_array((np.ones(len(i), np.int8), (i, j)), shape=(n + m, n + m))
    n_found, label = connected_components(graph, directed=False)
    if not 1 < n_found <= MOST_CLUSTERS:
        return None
    return np.asarray(label, np.int32)


def _scales(
    cells: _Cells, F: Floats, head: SmallInts, tail: SmallInts
) -> tuple[Floats, float]:
    """Logarithms of the scales of the clusters, and how far the first step went."""
    cut = head != tail
    a, b = head[cut].astype(np.int64), tail[cut]
    n = int(max(head.max(), tail.max())) + 1
    place, X, F = a * n + b, cells.sums[cut], F[cut]
    t, first, previous = np.zeros(n), None, np.inf
    for _ in range(STEPS):
        now = F * np.exp(t[b] - t[a])
        conductance = _square(place, now, n)
        off = _square(place, X - now, n)
        v = eliminate(conductance + conductance.T, off.T - off)
        spread = float(np.ptp(v))
        first = spread if first is None else first
        if not np.isfinite(spread) or (spread >= previous and spread < 1e-10):
            break
        t += shortened(v)
        previous = spread
        if spread < PRECISE:
            break
    return t, float(first or 0.0)


def _square(place: Ints, values: Floats, n: int) -> Any:
    return np.bincount(place, values, minlength=n * n).reshape(n, n)


def _step(
    reduced: Reduced, core: CoreSolution, label: SmallInts, moved: float
) -> float:
    """Bound the step: between clusters it was taken, inside them margins bound it."""
    network = Network.of_core(reduced, core.w, core.h)
    inside = replace(network, block=label).reach_of_mismatch()
    n, m = reduced.core_shape
    rounding = 4.0 * ROUNDING * (n + m)
    return min(moved, 1.0) + 2.0 * inside + rounding
