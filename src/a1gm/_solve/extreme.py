"""Cores whose factors, or the products on the way to them, leave the range of float64.

Give row i and column j of the core a power of two each, w = 2**a w' and h = 2**b h'.
Then w' and h' solve the core whose mask is 2**(a_i + b_j), by the same methods. Near
the solution that mask is the fitted table, none of whose cells is above its margins:
w' and h' are near 1, and a cell that vanishes has no weight in either of its sums.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from a1gm._base.float_range import LEAST, product
from a1gm._base.types import Floats, Ints, SmallInts
from a1gm._observe.statistics import PairStatistics
from a1gm._solve.cell_error import SETTLED
from a1gm._solve.factors import CoreSolution
from a1gm._solve.scaling import solve_core
from a1gm._solve.settle import CellsOf, no_cells
from a1gm.exceptions import NotRepresentableError

if TYPE_CHECKING:  # the compiled kernel's class answers the same
    from a1gm._kernel.reference.reduced import Reduced

ROUNDS = 20  # of powers of two taken from the factors that the last ones gave
NEAR = 8.0  # powers of two from 1 at which factors are safe
FAR = 500.0  # powers of two that rows and columns span where cells may be lost
SWEEPS, STILL = 200, 0.5  # of the first guess, which need not be near
LOWEST, HIGHEST = -960, 1015  # powers of two between which margins are solved


def needs_room(core: CoreSolution) -> bool:
    """Whether cells may be wrong because their numbers, or others, are out of range."""
    if core.step <= SETTLED or not len(core.w):
        return False
    with np.errstate(all="ignore"):
        span = sum(np.log2(f.max() / f.min()) for f in (core.w, core.h))
    return not (span < FAR and core.step < math.inf)


def solve_extreme_core(
    reduced: Reduced,
    found: CoreSolution,
    cells_of: CellsOf = no_cells,
    *,
    tol: float,
    max_iter: int,
    n_threads: int | None = None,
) -> tuple[CoreSolution, tuple[Ints, Ints]]:
    """Factors of the core, and the exponents of the powers of two that they are times.

    ``found`` is what the ordinary way has found. It stands where only the way back from
    the core leaves the range, and where this way settles no more of its cells.

    Raises
    ------
    NotRepresentableError
        Parts of the core hang together by cells that float64 does not have.
    """
    n, m = reduced.core_shape
    as_found = found, (np.zeros(n, np.int64), np.zeros(m, np.int64))
    in_range = _is_in_range(found)
    if n == 0 or (in_range and found.step <= SETTLED):
        return as_found
    lift = _lift(reduced)

    def lifted_cells(*, again: bool) -> PairStatistics | None:
        cells = cells_of(again=again)
        if cells is None:
            return None
        return replace(cells, sums=product(cells.sums, exponent=lift))

    (a, b), n_iter = _guess(reduced), 0
    more = np.zeros_like(a), np.zeros_like(b)
    for _ in range(ROUNDS):
        a, b = a + more[0], b + more[1]
        core = solve_core(
            reduced.rescaled(a + lift, b, lift),
            lifted_cells,
            tol=tol,
            max_iter=max_iter,
            n_threads=n_threads,
            start=np.ones(len(b)),
        )
        n_iter += core.n_iter
        more = _powers(core.w), _powers(core.h)
        if max(np.abs(more[0]).max(), np.abs(more[1]).max()) <= NEAR:
            break
    if in_range and not core.step < found.step:
        return as_found
    if not _is_in_range(core):
        raise NotRepresentableError(
            "Parts of this table hang together by cells so small beside the others "
            "that float64 cannot hold both. Fit these parts one by one."
        )
    return replace(core, n_iter=n_iter), (a, b)


def _is_in_range(core: CoreSolution) -> bool:
    """Whether all factors are positive numbers with all their digits."""
    return all(bool((np.isfinite(f) & (f >= LEAST)).all()) for f in (core.w, core.h))


def _lift(reduced: Reduced) -> int:
    """The power of two that brings the margins to where their cells keep their digits.

    Cells of a margin may be 2**53 times as small before they count for nothing.
    """
    R, C = reduced.core_row_sums, reduced.core_col_sums
    low, high = (math.frexp(x)[1] for x in (min(R.min(), C.min()), R.sum()))
    return max(min(LOWEST - low, HIGHEST - high), 0)


def _powers(factor: Floats) -> Ints:
    """Powers of two of factors that are neither 0 nor infinite."""
    known = np.where(np.isfinite(factor) & (factor > 0.0), factor, 1.0)
    return np.frexp(known)[1].astype(np.int64)


def _guess(reduced: Reduced) -> tuple[Ints, Ints]:
    """Binary logarithms of the factors, by sweeps in logarithms."""
    a, b = (np.zeros(n, np.int64) for n in reduced.core_shape)
    ptr, cols, _, weights = reduced.rescaled(a, b, 0).core_mask
    lines = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    P = np.zeros(len(cols)) if weights is None else np.log2(weights)
    R, C = np.log2(reduced.core_row_sums), np.log2(reduced.core_col_sums)
    v = C - C.max()
    for _ in range(SWEEPS):
        u = R - _log_sums(P + v[cols], lines, len(R))
        before, v = v, C - _log_sums(P + u[lines], cols, len(C))
        if np.abs(v - before).max() < STILL:
            break
    return np.rint(u).astype(np.int64), np.rint(v).astype(np.int64)


def _log_sums(x: Floats, place: Ints | SmallInts, n: int) -> Floats:
    """Logarithms of the sums of 2**x over the cells that share a place."""
    top = np.full(n, -np.inf)
    np.maximum.at(top, place, x)
    sums = np.bincount(place, np.exp2(x - top[place]), minlength=n)
    logarithms: Floats = np.log2(sums) + top
    return logarithms
