"""Make the cells of a core right, not only its margins.

Cheap bounds come first. Where they do not suffice, small cores are settled by an
elimination that keeps the digits of thin cuts, large ones by Newton steps. What neither
settles is announced by the bound of the step that is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from a1gm._base.types import Floats, Solver
from a1gm._kernel import threads_for
from a1gm._observe.patterns import Patterns
from a1gm._solve.cell_error import CELLS_RIGHT, SETTLED, Bound, Network
from a1gm._solve.factors import CoreSolution
from a1gm._solve.laplacian import Solve, hessian_at
from a1gm._solve.mask import CoreMask, ListedMask, Sweep, is_listed

if TYPE_CHECKING:  # the compiled kernel's class answers the same
    from a1gm._kernel.reference.reduced import Reduced

MOST_FLOPS = 2e9  # of an elimination where cells are wrong
# Visits that a sparse elimination may take: bands of 10 need nearly as many. Where they
# do not suffice they are lost; how much that is, benchmarks/costs.py measures.
WORK_PER_CELL = 40
# Where rounding has stopped an elimination, nothing else does better.
PROVEN = 0.8 * CELLS_RIGHT
ROUNDS = 12
LISTED_CELL = 8  # what a cell costs that is listed, in cells of a pass


@dataclass(frozen=True)
class Near:
    """A mask, and what solves with its Hessian near the solution."""

    mask: CoreMask | ListedMask
    solve: Solve | None = None


class CellsOf(Protocol):
    """Gives the sum of every observed cell; reads them again only if it may."""

    def __call__(self, *, again: bool) -> Patterns | None:
        """Return what is known, or None."""


def no_cells(*, again: bool) -> None:
    """Know no sums but those of rows and columns."""


def settle_core(
    reduced: Reduced,
    core: CoreSolution,
    cells_of: CellsOf,
    *,
    tol: float,
    max_iter: int,
    n_threads: int | None = None,
    near: Near | None = None,
) -> CoreSolution:
    """Bound the error of the cells of a solved core, and mend what is above the bound.

    ``near`` is what Newton's method has left.
    """
    if not reduced.core_shape[0]:
        return replace(core, step=0.0)
    threads = threads_for(LISTED_CELL * reduced.n_listed, n_threads)
    step = reduced.cheap_step(core.w, core.h, core.gap, threads)
    if step <= SETTLED:
        return replace(core, step=step)
    if reduced.edges_are_cheap:
        core = _settle_by_edges(reduced, core, cells_of(again=False), tol, max_iter)
    else:
        core = _settle_by_steps(reduced, core, max_iter, near)
    if core.step <= SETTLED:
        return core
    cells = cells_of(again=True)
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
    """Settle by an elimination of at most ``work`` visits; 0 for a small core."""
    pairs = (None,) * 3 if cells is None else (cells.ptr, cells.cols, cells.sums)
    left = max(max_iter - core.n_iter, 0)
    found = reduced.settle(core.w, core.h, *pairs, tol, left, work)
    return core if found is None else _better(core, *found)


def _better(
    core: CoreSolution,
    w: Floats,
    h: Floats,
    steps: int,
    step: float,
    gap: float,
    cut: tuple[int, int],
) -> CoreSolution:
    """What an elimination has found, if it is surer than what was known."""
    if not step < core.step:
        return replace(core, cut=cut)
    solver: Solver = "newton" if steps else core.solver
    return CoreSolution(w, h, solver, core.n_iter + steps, gap, step, cut)


# ------------------------------------------------------- large cores, by their margins
def _settle_by_steps(
    reduced: Reduced, core: CoreSolution, max_iter: int, near: Near | None
) -> CoreSolution:
    """Take Newton steps until the bound no longer falls."""
    if near is None and is_listed(reduced):
        near = Near(ListedMask(reduced))
    best = core
    for _ in range(ROUNDS):
        bound, is_swapped = _bound(reduced, core, near)
        if bound.step >= 0.7 * best.step:
            break
        best = replace(core, step=bound.step, cut=_cut(reduced, bound, is_swapped))
        if bound.step <= SETTLED or bound.direction is None or core.n_iter >= max_iter:
            break
        core = _moved(reduced, core, bound.moves, is_swapped=is_swapped)
    return best


def _bound(
    reduced: Reduced, core: CoreSolution, near: Near | None
) -> tuple[Bound, bool]:
    """Bound by products where these suffice, else by a factorisation.

    Second whether rows and columns have exchanged their roles.
    """
    if near is None:
        bound = Network.of_core(reduced, core.w, core.h).bound()
        if math.isfinite(bound.step):
            return bound, False
    mask = CoreMask(reduced) if near is None else near.mask
    if isinstance(mask, ListedMask):
        network = Network.of_core(reduced, core.w, core.h)
        state = Sweep(core.h, network.fitted, 0.0, core.w)
        return network.bound(hessian_at(mask, state)(None)), False
    state = mask.sweep(core.w if mask.swapped else core.h)
    solve = None if near is None else near.solve
    solve = solve or hessian_at(mask, state)(None)
    return Network.of_mask(mask, state).bound(solve), mask.swapped


def _moved(
    reduced: Reduced, core: CoreSolution, moves: Floats, *, is_swapped: bool
) -> CoreSolution:
    if is_swapped:
        # The product of rows w with the mask, through what its rows reach now.
        reached = core.w / (reduced.core_row_sums / core.w) * moves
        h = reduced.core_col_sums / reduced.product(reached, core.h)
    else:
        h = core.h * moves
    w, h, sweeps, gap, _ = reduced.scale(h, 1e-15, 2, 2)
    return CoreSolution(w, h, "newton", core.n_iter + 1 + sweeps, gap)


def _cut(reduced: Reduced, bound: Bound, is_swapped: bool) -> tuple[int, int] | None:
    """Two columns of the table whose potentials differ most."""
    if bound.cut is None or is_swapped:
        return None
    cols = np.asarray(reduced.core_places[1])
    low, high = (int((cols == end).argmax()) for end in bound.cut)
    return low, high
