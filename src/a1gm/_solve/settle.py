"""Make the cells of a core right, not only its margins.

Cheap bounds come first. Where they do not suffice, small cores are settled by an
elimination that keeps the digits of thin cuts, large ones by Newton steps. What neither
settles is announced by the bound of the step that is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from a1gm._base.types import Floats, Solver
from a1gm._kernel import threads_for
from a1gm._kernel.network import shortened
from a1gm._observe.patterns import Patterns
from a1gm._solve.cell_error import CELLS_RIGHT, SETTLED, Network
from a1gm._solve.factors import CoreSolution
from a1gm._solve.newton import Hessian

if TYPE_CHECKING:  # the compiled kernel has the same class
    from a1gm._kernel.reference.reduced import Reduced

MOST_FLOPS = 2e9  # of an elimination where cells are wrong
# Visits that a sparse elimination may take: bands of 10 need nearly as many. Where they
# do not suffice they are lost; how much that is, benchmarks/costs.py measures.
WORK_PER_CELL = 40
# Where rounding has stopped an elimination, nothing else does better.
PROVEN = 0.8 * CELLS_RIGHT
ROUNDS = 12
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
    """Bound the error of the cells of a solved core, and mend what is above the bound.

    ``hessian`` is the one that Newton's method has used.
    """
    if not reduced.core_shape[0]:
        return replace(core, step=0.0)
    threads = threads_for(LISTED_CELL * reduced.n_listed, n_threads)
    step = reduced.cheap_step(core.w, core.h, core.gap, threads)
    if step <= SETTLED:
        return replace(core, step=step)
    if reduced.edges_are_cheap:
        core = _settle_by_edges(reduced, core, cells_of(False), tol, max_iter)
    else:
        core = _settle_by_steps(reduced, core, max_iter, hessian)
    if core.step <= SETTLED:
        return core
    cells = cells_of(True)
    if cells is None:
        return core
    small, large = sorted(reduced.core_shape)
    if (small + large) * small**2 <= MOST_FLOPS:
        return _settle_by_edges(reduced, core, cells, tol, max_iter)
    return settle_by_sparse_edges(
        reduced, core, cells, tol=tol, max_iter=max_iter, work=MOST_FLOPS
    )


def settle_by_sparse_edges(
    reduced: Reduced,
    core: CoreSolution,
    cells: Patterns | None,
    *,
    tol: float,
    max_iter: int,
    work: float | None = None,
) -> CoreSolution:
    """Newton's method by an elimination that fills in little: bands, trees.

    The core stays as it is where the elimination would be too much ``work``.
    """
    if cells is None or core.n_iter >= max_iter:
        return core
    if work is None:
        work = WORK_PER_CELL * (reduced.n_listed + sum(reduced.core_shape))
    return _settle_by_edges(reduced, core, cells, tol, max_iter, int(work))


def _settle_by_edges(
    reduced: Reduced,
    core: CoreSolution,
    cells: Patterns | None,
    tol: float,
    max_iter: int,
    work: int = 0,
) -> CoreSolution:
    """Settle by an elimination of at most ``work`` visits; 0 for a small core.

    The core stays as it is unless the elimination is surer of its cells.
    """
    pairs = (None,) * 3 if cells is None else (cells.ptr, cells.cols, cells.sums)
    left = max(max_iter - core.n_iter, 0)
    found = reduced.settle(core.w, core.h, *pairs, tol, left, work)
    if found is None:
        return core
    w, h, steps, step, gap, cut = found
    if not step < core.step:
        return replace(core, cut=cut)
    solver: Solver = "newton" if steps else core.solver
    return CoreSolution(w, h, solver, core.n_iter + steps, gap, step, cut)


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
        core = CoreSolution(w, h, "newton", core.n_iter + 1 + sweeps, gap)
    return best


def _cut(reduced: Reduced, direction: Floats | None) -> tuple[int, int] | None:
    """Two columns of the table whose potentials differ most."""
    if direction is None:
        return None
    cols = np.asarray(reduced.core_places[1])
    low, high = direction.argmin(), direction.argmax()
    return int((cols == low).argmax()), int((cols == high).argmax())
