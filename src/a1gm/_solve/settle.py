"""Make the cells of a core right, not only its margins.

Cheap bounds come first. Where they do not suffice, small cores are settled by an
elimination that keeps the digits of thin cuts, large ones by Newton steps and, across
thin cuts, by the table of their clusters. What none of these settles is announced by
the bound of the step that is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from a1gm._base.types import Floats, Ints, SmallInts
from a1gm._kernel import threads_for
from a1gm._kernel.network import ROUNDING, shortened
from a1gm._observe.patterns import Patterns, pairs_of, weighted_counts
from a1gm._solve.cell_error import CELLS_RIGHT, SETTLED, Network
from a1gm._solve.factors import NO_CORE, CoreSolution, solver_name
from a1gm._solve.newton import Hessian

if TYPE_CHECKING:  # the compiled kernel has the same class
    from a1gm._kernel.reference.reduced import Reduced

# Where cells are wrong an elimination of this size is tried first, or at last.
QUICK_FLOPS, MOST_FLOPS = 1e8, 2e9
# Visits that a sparse elimination may take: bands of 10 need nearly as many. Where they
# do not suffice they are lost; how much that is, benchmarks/costs.py measures.
WORK_PER_CELL = 40
# Where rounding has stopped an elimination, nothing else does better.
PROVEN = 0.8 * CELLS_RIGHT
MANY_CELLS = 1 << 14  # listed in a core
ROUNDS = 12
STRONG = 1e-3  # of the largest cell of its row or column: a cell that joins them
MOST_CLUSTERS, CLUSTER_STEPS = 500, 80
PRECISE = 1e-14
LISTED_CELL = 8  # what a cell costs that is listed, in cells of a pass


#: Gives the sum of every observed cell, or None; reads them again only if True.
CellsOf: TypeAlias = Callable[[bool], Patterns | None]


def settle_core(
    reduced: Reduced,
    core: CoreSolution,
    cells_of: CellsOf,
    *,
    tol: float,
    max_iter: int,
    n_threads: int | None = None,
    hessian: Hessian | None = None,
) -> CoreSolution:
    """Bound the error of the cells of a solved core, and correct those above it.

    ``hessian`` is the one that Newton's method has used.
    """
    if not reduced.core_shape[0]:
        return replace(core, step=0.0)
    threads = threads_for(LISTED_CELL * reduced.n_listed, n_threads)
    step = reduced.cheap_step(core.w, core.h, core.gap, threads)
    if step > SETTLED and reduced.n_listed > MANY_CELLS:  # an elimination costs more
        step = Network.of_core(reduced, core.w, core.h).bound().step
    if step <= SETTLED:
        return replace(core, step=step)
    if reduced.edges_are_cheap:
        core = settle_by_edges(reduced, core, cells_of(False), tol, max_iter)
    else:
        core = _settle_by_steps(reduced, core, max_iter, hessian)
    if core.step <= SETTLED:
        return core
    cells = cells_of(True)
    if cells is None:
        return core
    small, large = sorted(reduced.core_shape)
    flops = (small + large) * small**2
    if flops > QUICK_FLOPS and not reduced.lists_missing:
        core = _settle_by_clusters(reduced, core, cells, tol, max_iter)
        if core.step <= SETTLED:
            return core
    if flops <= MOST_FLOPS:
        return settle_by_edges(reduced, core, cells, tol, max_iter)
    return settle_by_edges(reduced, core, cells, tol, max_iter, MOST_FLOPS)


def settle_by_edges(
    reduced: Reduced,
    core: CoreSolution,
    cells: Patterns | None,
    tol: float,
    max_iter: int,
    work: float = 0,
) -> CoreSolution:
    """Settle by an elimination of at most ``work`` visits; 0 for a small core.

    The core stays as it is unless the elimination is surer of its cells. One that
    fills in little (bands, trees) needs the cells.
    """
    if work and (cells is None or core.n_iter >= max_iter):
        return core
    pairs = (None,) * 3 if cells is None else (cells.ptr, cells.cols, cells.sums)
    left = max(max_iter - core.n_iter, 0)
    found = reduced.settle(core.w, core.h, *pairs, tol, left, int(work))
    if found is None:
        return core
    w, h, steps, step, gap, cut = found
    if not step < core.step:
        return replace(core, cut=cut)
    n_iter = core.n_iter + steps
    solver = solver_name(n_iter, steps, core.solver)
    return CoreSolution(w, h, solver, n_iter, gap, step, cut)


# ------------------------------------------------------- large cores, by their margins
def _settle_by_steps(
    reduced: Reduced, core: CoreSolution, max_iter: int, hessian: Hessian | None
) -> CoreSolution:
    """Take Newton steps until the bound no longer falls."""
    hessian = hessian or Hessian(reduced)
    best = core
    for _ in range(ROUNDS):
        hessian.move(core.w, core.h)
        bound = Network.of_core(reduced, core.w, core.h).bound(hessian.solve)
        if bound.step >= 0.7 * best.step:
            break
        best = replace(core, step=bound.step, cut=_cut(reduced, bound.direction))
        if bound.step <= SETTLED or bound.direction is None or core.n_iter >= max_iter:
            break
        start = core.h * np.exp(shortened(bound.direction))
        w, h, sweeps, gap, _ = reduced.scale(start, 1e-15, 2, 2)
        n_iter = core.n_iter + 1 + sweeps
        core = CoreSolution(w, h, solver_name(n_iter, 1), n_iter, gap)
    return best


def _cut(reduced: Reduced, direction: Floats | None) -> tuple[int, int] | None:
    """Two columns of the table whose potentials differ most."""
    if direction is None:
        return None
    cols = np.asarray(reduced.core_places[1])
    low, high = direction.argmin(), direction.argmax()
    return int((cols == low).argmax()), int((cols == high).argmax())


# ------------------------------------------------- large cores that small cells join
def _settle_by_clusters(
    reduced: Reduced, core: CoreSolution, cells: Patterns, tol: float, max_iter: int
) -> CoreSolution:
    """Set the scales between clusters by the cells that join them.

    Sums of whole rows and columns do not show what such cells carry. The clusters are a
    small table: its cells are sums of cells, and its weights sums of fitted cells.
    """
    n = reduced.core_shape[0]
    ptr, j, _, weights = reduced.core_mask
    i = np.repeat(np.arange(n), np.diff(ptr))
    rows, cols = (np.asarray(place) for place in reduced.core_places)
    a, b = np.repeat(rows, np.diff(cells.ptr)), cols[cells.cols]
    kept = (a >= 0) & (b >= 0)
    best = core
    for _ in range(ROUNDS):
        fitted = core.w[i] * core.h[j] * (1.0 if weights is None else weights)
        label = _clusters(i, j, fitted, reduced.core_shape)
        if label is None or core.n_iter >= max_iter:
            break
        k = int(label.max()) + 1
        of_fit = weighted_counts(label[i] * k + label[n + j], fitted, k * k)
        place = label[a[kept]] * k + label[n + b[kept]]
        sums = weighted_counts(place, cells.sums[kept], k * k)
        at = np.flatnonzero(of_fit)
        head, tail = at // k, at % k
        w, h = _scales(pairs_of(head, tail, sums[at], of_fit[at], k, k), tol)
        with np.errstate(all="ignore"):
            moved = k * float(np.abs(np.log(w[head] * h[tail])).max())
        if not moved < np.inf:
            break
        start = core.h * h[label[n:]]
        w, h, sweeps, gap, _ = reduced.scale(start, 1e-15, 4, 4)
        # Between clusters the step was taken; inside them the margins bound it.
        inside = replace(Network.of_core(reduced, w, h), block=label[n:]).bound().step
        step = min(moved, 1.0) + 2.0 * inside + 4.0 * ROUNDING * len(label)
        n_iter = core.n_iter + sweeps
        solver = solver_name(n_iter, 1)
        core = CoreSolution(w, h, solver, n_iter, gap, step, best.cut)
        has_stopped = moved < PRECISE or step >= 0.9 * best.step
        if step < best.step:
            best = core
        if has_stopped:
            break
    return best


def _clusters(
    i: Ints, j: SmallInts, fitted: Floats, shape: tuple[int, int]
) -> SmallInts | None:
    """Cluster of each row and column by strong cells; None for one, or too many."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, m = shape
    of_row, of_col = np.zeros(n), np.zeros(m)
    np.maximum.at(of_row, i, fitted)
    np.maximum.at(of_col, j, fitted)
    strong = fitted > STRONG * np.minimum(of_row[i], of_col[j])
    ends = i[strong], n + j[strong]
    graph = coo_array((np.ones(len(ends[0]), np.int8), ends), shape=(n + m, n + m))
    k, label = connected_components(graph, directed=False)
    return np.asarray(label, np.int32) if 1 < k <= MOST_CLUSTERS else None


def _scales(table: Patterns, tol: float) -> tuple[Floats, Floats]:
    """Factors of the rows and columns of each cluster."""
    reduced = table.reduce(force=False)
    core = NO_CORE
    if reduced.core_shape[0]:
        w, h = (np.ones(size) for size in reduced.core_shape)
        core = CoreSolution(w, h, "scaling", 0, np.inf)
        core = settle_by_edges(reduced, core, table, tol, CLUSTER_STEPS)
    w, h, *_ = reduced.replay(core.w, core.h)
    return w, h
