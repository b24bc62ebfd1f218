"""Solve with the Laplacian of the columns: the Hessian of the cost in log h.

One column of each component is the ground and stays where it is; the others are free.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from a1gm._base.types import Bools, Floats, SmallInts
from a1gm._solve.mask import Mask, Sweep

__all__ = ["Laplacian", "Solve", "conjugate_gradients", "free_columns", "solver_at"]

#: Gives the potentials of currents; those of the ground are 0.
Solve: TypeAlias = Callable[[Floats], Floats]

# Directions so flat that their slope is rounding; they move no margin by 1e-11.
RIDGE = 1e-13
CLOSE, MOST_PRODUCTS = 1e-8, 2000


def free_columns(block: SmallInts, sums: Floats) -> Bools:
    """All columns with data but the heaviest of each component."""
    free: Bools = block >= 0
    order = np.lexsort((-sums, block))
    order = order[free[order]]
    _, first = np.unique(block[order], return_index=True)
    free[order[first]] = False
    return free


class Laplacian:
    """The Hessian of a mask at some factors: an array, a sparse table or products."""

    def __init__(self, mask: Mask, state: Sweep, free: Bools) -> None:
        self.mask, self.state, self.free = mask, state, free
        self.off = mask.laplacian(state.h)

    def solver(self, extra: Floats) -> Solve:
        """What solves with it and some more on the diagonal."""
        free = self.free
        if self.off is None:
            return lambda rhs: self._solve_by_products(rhs, extra)
        is_dense = isinstance(self.off, np.ndarray)
        solve = self._solve_dense(extra) if is_dense else self._solve_sparse(extra)

        def solve_all(rhs: Floats) -> Floats:
            found = np.zeros_like(rhs)
            found[free] = solve(rhs[free])
            return found

        return solve_all

    def _solve_dense(self, extra: Floats) -> Solve:
        # The diagonal is minus the sum of the others: no cancellation between parts
        # that a few cells join.
        diagonal = (extra - self.off.sum(axis=1))[self.free]
        H = self.off[np.ix_(self.free, self.free)]
        np.fill_diagonal(H, diagonal)
        scale = 1.0 / np.sqrt(np.maximum(diagonal, np.finfo(float).tiny))
        H = H * scale[:, None] * scale
        np.fill_diagonal(H, H.diagonal() + RIDGE)

        def solve(rhs: Floats) -> Floats:
            try:
                solved: Floats = np.linalg.solve(H, rhs * scale)
            except np.linalg.LinAlgError:
                solved = np.linalg.lstsq(H, rhs * scale, rcond=None)[0]
            potentials: Floats = solved * scale
            return potentials

        return solve

    def _solve_sparse(self, extra: Floats) -> Solve:
        from scipy.sparse import diags_array, eye_array
        from scipy.sparse.linalg import splu

        off: Any = self.off
        H = (diags_array(extra - np.asarray(off.sum(axis=1)).ravel()) + off).tocsr()
        H = H[self.free][:, self.free].tocsc()
        scale = 1.0 / np.sqrt(np.maximum(H.diagonal(), np.finfo(float).tiny))
        scaled = diags_array(scale) @ H @ diags_array(scale)
        scaled = (scaled + RIDGE * eye_array(len(scale))).tocsc()
        options = {"SymmetricMode": True}
        factors = splu(
            scaled, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options
        )
        return lambda rhs: factors.solve(rhs * scale) * scale

    def _solve_by_products(self, rhs: Floats, extra: Floats) -> Floats:
        state = self.state
        diagonal = state.fitted + extra

        def times(d: Floats) -> Floats:
            product: Floats = diagonal * d
            return product + self.mask.laplacian_times(state.h, d)

        least = CLOSE * float(np.linalg.norm(rhs[self.free]))

        def is_enough(_: Floats, residual: Floats) -> bool:
            return float(np.linalg.norm(residual)) <= least

        return conjugate_gradients(
            times, rhs, diagonal, self.free, is_enough, MOST_PRODUCTS
        )[0]


def solver_at(mask: Mask, state: Sweep) -> Solve:
    """What solves with the Hessian of a mask at the factors of a sweep."""
    free = free_columns(mask.block, mask.col_sums)
    return Laplacian(mask, state, free).solver(np.zeros_like(state.h))


def conjugate_gradients(
    times: Callable[[Floats], Floats],
    rhs: Floats,
    diagonal: Floats,
    free: Bools,
    is_enough: Callable[[Floats, Floats], bool],
    max_steps: int,
) -> tuple[Floats, Floats]:
    """Solve with a Laplacian until it is enough, judged by solution and residual.

    Returns both.
    """
    x, residual = np.zeros_like(rhs), np.where(free, rhs, 0.0)
    scale = np.where(free, 1.0 / np.where(free, diagonal, 1.0), 0.0)
    direction, before = np.zeros_like(rhs), 1.0
    for _ in range(max_steps):
        scaled = scale * residual
        now = float(residual @ scaled)
        if not now > 0.0:
            break
        direction = scaled + now / before * direction
        before = now
        product = np.where(free, times(direction), 0.0)
        curvature = float(direction @ product)
        if not (curvature > 0.0 and math.isfinite(length := now / curvature)):
            break
        x = x + length * direction
        residual = residual - length * product
        if is_enough(x, residual):
            break
    return x, residual
