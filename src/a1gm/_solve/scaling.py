"""Solve a core: alternating scaling, and Newton where its measured rate is poor.

Both stop on the certificate, the largest relative mismatch of the margins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from a1gm._base.types import Floats
from a1gm._kernel import threads_for
from a1gm._solve.factors import CoreSolution, relative_gap
from a1gm._solve.mask import DENSE_SIDE, CoreMask, DiskMask
from a1gm._solve.newton import newton

if TYPE_CHECKING:  # the compiled kernel's class answers the same
    from a1gm._kernel.reference.reduced import Reduced

__all__ = ["solve_core", "solve_disk_mask"]

# Seconds, roughly: only their ratio matters, to choose between the two methods.
SECONDS_PER_LISTED_CELL = 2e-9
SECONDS_PER_FLOP = 1e-10
SECONDS_PER_NEWTON_STEP = 2e-4
NEWTON_STEPS = 6
SMALLEST_START = 1e-290
DISK_PATIENCE = 40  # sweeps that scaling may be expected to need before Newton is tried


_NOTHING = CoreSolution(np.zeros(0), np.zeros(0), "closed form", 0, 0.0)


def solve_core(
    reduced: Reduced,
    *,
    tol: float,
    max_iter: int,
    n_threads: int | None = None,
    start: Floats | None = None,
) -> CoreSolution:
    """Find the factors of the core to within ``tol`` of its margins."""
    if reduced.core_shape[0] == 0:
        return _NOTHING
    C = reduced.core_col_sums
    if start is None:
        start = np.maximum(C / C.max(), SMALLEST_START)
    # At most half of the budget: the rest is for Newton.
    budget = max(1, max_iter // 2)
    patience = min(budget, _patience(reduced))
    threads = threads_for(reduced.n_listed, n_threads)
    w, h, sweeps, gap, done = reduced.scale(start, tol, budget, patience, threads)
    if done or sweeps >= max_iter:
        return CoreSolution(w, h, "scaling", sweeps, gap)
    found = _newton(reduced, w, h, gap, tol=tol, max_iter=max_iter, sweeps=sweeps)
    left = max_iter - found.n_iter
    if found.gap <= tol or left <= 0:
        return found
    # Rounding has stopped Newton: sweeps correct each row with its own margin.
    w, h, sweeps, gap, _ = reduced.scale(found.h, tol, left, left)
    if not gap < found.gap:
        return found
    return CoreSolution(w, h, "newton", found.n_iter + sweeps, gap)


def _newton(
    reduced: Reduced,
    w: Floats,
    h: Floats,
    gap: float,
    *,
    tol: float,
    max_iter: int,
    sweeps: int,
) -> CoreSolution:
    mask = CoreMask(reduced)
    start = w if mask.swapped else h
    small, steps, reached = newton(mask, start, tol=tol, max_steps=max_iter - sweeps)
    if reached < gap:
        large = mask.rows(small)
        w, h = (small, large) if mask.swapped else (large, small)
    return CoreSolution(w, h, "newton", sweeps + steps, min(reached, gap))


def _patience(reduced: Reduced) -> int:
    """How many sweeps cost as much as Newton would."""
    small, large = sorted(reduced.core_shape)
    sweep = SECONDS_PER_LISTED_CELL * (2 * reduced.n_listed + 4 * (small + large))
    flops = large * small**2 if small <= DENSE_SIDE else 200 * reduced.n_listed
    newton_cost = NEWTON_STEPS * (SECONDS_PER_NEWTON_STEP + SECONDS_PER_FLOP * flops)
    return int(np.clip(newton_cost / sweep, 30, 400))


# ----------------------------------------------------------------- masks in a file
def solve_disk_mask(mask: DiskMask, *, tol: float, max_iter: int) -> CoreSolution:
    """Scale a mask in a file, one read a sweep; the rows are not held."""
    on, C, none = mask.block >= 0, mask.col_sums, np.zeros(0)
    if not on.any():
        return CoreSolution(none, np.zeros(len(C)), "closed form", 0, 0.0)
    h = np.where(on, np.maximum(C, SMALLEST_START), 0.0)
    n, gap = 0, np.inf
    while n < max_iter:
        state = mask.sweep(h)
        n += 1
        before, gap = gap, relative_gap(state.fitted[on], C[on])
        # The factors are one scaling further than the gap that is measured.
        h[on] *= C[on] / state.fitted[on]
        if gap <= tol:
            break
        if n >= 8 and mask.has_laplacian and _is_slow(gap, gap / before, tol, n):
            h, steps, gap = newton(mask, h, tol=tol, max_steps=max_iter - n)
            return CoreSolution(none, h, "newton", n + steps, gap)
    return CoreSolution(none, h, "scaling", n, gap)


def _is_slow(gap: float, rate: float, tol: float, n: int) -> bool:
    """Whether scaling needs so many more sweeps that Newton is faster."""
    left = np.log(tol / gap) / np.log(rate) if rate < 1.0 else np.inf
    return bool(n + left > DISK_PATIENCE)
