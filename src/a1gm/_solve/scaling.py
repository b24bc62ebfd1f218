"""Solve a core: alternating scaling, and Newton where its measured rate is poor.

Both stop on the certificate, the largest relative mismatch of the margins.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from a1gm._base.types import Floats
from a1gm._kernel import threads_for
from a1gm._solve.factors import NO_CORE, CoreSolution, solver_name
from a1gm._solve.newton import Hessian, newton
from a1gm._solve.settle import (
    LISTED_CELL,
    PROVEN,
    WORK_PER_CELL,
    CellsOf,
    settle_by_edges,
    settle_core,
)

if TYPE_CHECKING:  # the compiled kernel's class answers the same
    from a1gm._kernel.reference.reduced import Reduced

# Sweeps that cost as much as Newton would; benchmarks/costs.py. Small cores are quick.
PATIENCE, SMALL_PATIENCE = 120, 400
PRECISE = 1e-10
FINE, FINE_CELLS = 1e-12, 10**5  # a sweep more: beyond, it costs up to 40 %


def solve_core(
    reduced: Reduced,
    cells_of: CellsOf = lambda _: None,
    *,
    tol: float,
    max_iter: int,
    n_threads: int | None = None,
    start: Floats | None = None,
) -> CoreSolution:
    """Find the factors of the core to within ``tol`` of its margins, and its cells.

    ``cells_of`` gives the sums of single cells, where margins do not suffice.
    """
    if reduced.core_shape[0] == 0:
        return NO_CORE
    tol = min(tol, precision_for(*reduced.core_shape))
    if start is None:
        start = reduced.start
    # At most half of the budget: the rest is for Newton.
    budget = max(1, max_iter // 2)
    patience = SMALL_PATIENCE if reduced.edges_are_cheap else PATIENCE
    threads = threads_for(LISTED_CELL * reduced.n_listed, n_threads)
    w, h, sweeps, gap, _ = reduced.scale(
        start, tol, budget, min(budget, patience), threads
    )
    core = CoreSolution(w, h, solver_name(sweeps), sweeps, gap)
    settle = partial(
        settle_core,
        reduced,
        cells_of=cells_of,
        tol=tol,
        max_iter=max_iter,
        n_threads=n_threads,
    )
    if reduced.edges_are_cheap:
        # A small core is solved by Newton's method by edges, which settles its cells.
        core = settle(core)
        if core.gap <= tol:
            return core
    elif core.gap > tol:
        work = WORK_PER_CELL * (reduced.n_listed + sum(reduced.core_shape))
        core = settle_by_edges(reduced, core, cells_of(False), tol, max_iter, work)
        if core.gap <= tol and core.step <= PROVEN:
            return core
    hessian = Hessian(reduced)
    if core.gap > tol and core.n_iter < max_iter:
        left = max_iter - core.n_iter
        best, steps, gap = newton(reduced, hessian, core.h, tol=tol, max_steps=left)
        w, h = (best.w, best.h) if gap < core.gap else (core.w, core.h)
        gap = min(gap, core.gap)
        n_iter = core.n_iter + steps
        core = CoreSolution(w, h, solver_name(n_iter, steps), n_iter, gap)
    left = max_iter - core.n_iter
    if core.gap > tol and left > 0:
        # Rounding has stopped Newton: sweeps correct each row with its margin.
        w, h, sweeps, gap, _ = reduced.scale(core.h, tol, left, left)
        if gap < core.gap:
            core = CoreSolution(w, h, core.solver, core.n_iter + sweeps, gap)
    return settle(core, hessian=hessian)


def precision_for(n_patterns: int, n_cols: int) -> float:
    """The certificate that cells need, whatever the margins may miss."""
    return FINE if n_patterns * n_cols <= FINE_CELLS else PRECISE
