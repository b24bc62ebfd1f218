"""Solve a core: alternating scaling, and Newton where its measured rate is poor.

Both stop on the certificate, the largest relative mismatch of the margins.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from a1gm._base.types import Floats
from a1gm._kernel import threads_for
from a1gm._solve.factors import NO_CORE, CoreSolution
from a1gm._solve.mask import CoreMask, ListedMask, is_listed
from a1gm._solve.newton import newton
from a1gm._solve.settle import (
    LISTED_CELL,
    PROVEN,
    CellsOf,
    Near,
    no_cells,
    settle_by_sparse_edges,
    settle_core,
)

if TYPE_CHECKING:  # the compiled kernel's class answers the same
    from a1gm._kernel.reference.reduced import Reduced

# Seconds, roughly: only their ratio matters, to choose between the two methods.
SECONDS_PER_LISTED_CELL = 2e-9
SECONDS_PER_FLOP = 1e-10
SECONDS_PER_NEWTON_STEP = 2e-4
NEWTON_STEPS = 6
LISTED_PATIENCE = 120  # sweeps of a large sparse core; benchmarks/costs.py
PRECISE = 1e-10
FINE, FINE_CELLS = 1e-12, 10**5  # a sweep more: beyond, it costs up to 40 %


def solve_core(
    reduced: Reduced,
    cells_of: CellsOf = no_cells,
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
    patience = min(budget, _patience(reduced))
    threads = threads_for(LISTED_CELL * reduced.n_listed, n_threads)
    w, h, sweeps, gap, _ = reduced.scale(start, tol, budget, patience, threads)
    core = CoreSolution(w, h, "scaling", sweeps, gap)
    settle = partial(
        settle_core,
        reduced,
        cells_of=cells_of,
        tol=tol,
        max_iter=max_iter,
        n_threads=n_threads,
    )
    if reduced.edges_are_cheap:
        # A small core has a Newton's method of its own, which settles its cells, too.
        core = settle(core)
        if core.gap <= tol:
            return core
    elif core.gap > tol:
        core = settle_by_sparse_edges(
            reduced, core, cells_of(again=False), tol=tol, max_iter=max_iter
        )
        if core.gap <= tol and core.step <= PROVEN:
            return core
    near = None
    if core.gap > tol and core.n_iter < max_iter:
        core, near = _newton(reduced, core, tol=tol, max_iter=max_iter)
    left = max_iter - core.n_iter
    if core.gap > tol and left > 0:
        # Rounding has stopped Newton: sweeps correct each row with its own margin.
        w, h, sweeps, gap, _ = reduced.scale(core.h, tol, left, left)
        if gap < core.gap:
            core = CoreSolution(w, h, "newton", core.n_iter + sweeps, gap)
    return settle(core, near=near)


def precision_for(n_patterns: int, n_cols: int) -> float:
    """The certificate that cells need, whatever the margins may miss."""
    return FINE if n_patterns * n_cols <= FINE_CELLS else PRECISE


def _newton(
    reduced: Reduced, core: CoreSolution, *, tol: float, max_iter: int
) -> tuple[CoreSolution, Near | None]:
    mask = ListedMask(reduced) if is_listed(reduced) else CoreMask(reduced)
    start = core.w if mask.swapped else core.h
    small, steps, gap, solve = newton(
        mask, start, tol=tol, max_steps=max_iter - core.n_iter
    )
    w, h = core.w, core.h
    if gap < core.gap:
        large = mask.rows(small)
        w, h = (small, large) if mask.swapped else (large, small)
    gap = min(gap, core.gap)
    near = None if solve is None else Near(mask, solve)
    return CoreSolution(w, h, "newton", core.n_iter + steps, gap), near


def _patience(reduced: Reduced) -> int:
    """How many sweeps cost as much as Newton would."""
    if is_listed(reduced):
        return LISTED_PATIENCE
    small, large = sorted(reduced.core_shape)
    sweep = SECONDS_PER_LISTED_CELL * (2 * reduced.n_listed + 4 * (small + large))
    flops = large * small**2
    newton_cost = NEWTON_STEPS * (SECONDS_PER_NEWTON_STEP + SECONDS_PER_FLOP * flops)
    return int(np.clip(newton_cost / sweep, 30, 400))
