"""Newton's method in the logarithms of the column factors of a mask.

With the rows profiled out, w = R / (P h), the cost in v = log h is
f(v) = sum_i R_i log (P exp v)_i - sum_j C_j v_j: convex, with gradient h (P' w) - C and
a graph Laplacian as Hessian, one null direction per component.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from a1gm._base.types import Bools, Floats
from a1gm._solve.factors import relative_gap
from a1gm._solve.mask import Mask, Sweep

__all__ = ["newton"]

# Directions so flat that their slope is rounding; they move no margin by 1e-11.
RIDGE = 1e-13
LONGEST = 30.0  # no logarithm of a factor moves further in one step
LEAST_DAMPING, DAMPING_STEP = 1e-10, 100.0  # in units of a sweep's own curvature
PATIENCE = 6  # steps without progress


def newton(
    mask: Mask, h: Floats, *, tol: float, max_steps: int
) -> tuple[Floats, int, float]:
    """Return column factors, steps taken and the largest mismatch of a column."""
    search = _Search(mask)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return search.run(h, tol, max_steps)


class _Search:
    """The state that the steps share."""

    def __init__(self, mask: Mask) -> None:
        self.mask, self.C = mask, mask.col_sums
        self.on: Bools = mask.block >= 0
        # One column per component keeps its value: the one with most data.
        order = np.lexsort((-self.C, mask.block))
        order = order[self.on[order]]
        _, first = np.unique(mask.block[order], return_index=True)
        self.free = self.on.copy()
        self.free[order[first]] = False

    def run(self, h: Floats, tol: float, max_steps: int) -> tuple[Floats, int, float]:
        state = self.mask.sweep(h)
        gap = self._gap(state)
        best, steps, stuck = (gap, h), 0, 0
        while gap > tol and steps < max_steps and stuck < PATIENCE:
            previous = gap
            state, cheaper = self._step(state)
            # One scaling after each step corrects every column with its own margin.
            state = self.mask.sweep(self._rescaled(state))
            gap = self._gap(state)
            steps += 1
            if not np.isfinite(gap):
                break
            # Far from the optimum the cost falls while the gap still jumps about; in
            # very flat directions the gap falls while the cost no longer changes.
            stuck = 0 if cheaper or gap < 0.7 * previous else stuck + 1
            if gap < best[0]:
                best = (gap, state.h)
        return best[1], steps, best[0]

    def _gap(self, state: Sweep) -> float:
        return relative_gap(state.fitted[self.on], self.C[self.on])

    def _rescaled(self, state: Sweep) -> Floats:
        h = state.h.copy()
        h[self.on] *= self.C[self.on] / state.fitted[self.on]
        return h

    def _cost(self, state: Sweep) -> float:
        return state.row_cost - float(self.C[self.on] @ np.log(state.h[self.on]))

    def _step(self, state: Sweep) -> tuple[Sweep, bool]:
        """Move; return also whether the cost fell by more than its own rounding."""
        gradient = np.where(self.on, state.fitted - self.C, 0.0)
        direction = self._direction(state, gradient)
        slope, cost = float(gradient @ direction), self._cost(state)
        # The allowance is the rounding of the cost itself: near the optimum the full
        # step is right although the cost no longer falls.
        allowance = 1e-14 * (abs(cost) + float(self.C.sum()))
        length = min(1.0, LONGEST / max(float(np.abs(direction).max()), 1e-300))
        for _ in range(40):
            trial = self.mask.sweep(state.h * np.exp(length * direction))
            trial_cost = self._cost(trial)
            if trial_cost <= cost + 1e-4 * length * slope + allowance:
                return trial, trial_cost < cost - allowance
            length /= 2.0
        return state, False

    def _direction(self, state: Sweep, gradient: Floats) -> Floats:
        """Newton's direction, damped towards a scaling sweep where it is too long.

        Where one cell has all of a row's weight the cost is nearly flat, and the
        direction along it is so long that the others could not move.
        """
        off = self.mask.laplacian(state.h)
        direction = np.zeros_like(state.h)
        damping = 0.0
        while damping < 1.0:
            extra = damping * self.C
            direction[self.free] = self._solve(off, state, -gradient, extra)
            if not np.abs(direction).max() > LONGEST:
                break
            damping = max(DAMPING_STEP * damping, LEAST_DAMPING)
        return direction

    def _solve(self, off: Any, state: Sweep, rhs: Floats, extra: Floats) -> Floats:
        if off is None:
            return self._solve_iteratively(state, rhs, extra)
        if isinstance(off, np.ndarray):
            return self._solve_dense(off, rhs, extra)
        return self._solve_sparse(off, rhs, extra)

    def _solve_dense(self, off: Floats, rhs: Floats, extra: Floats) -> Floats:
        # The diagonal is minus the sum of the others: no cancellation between parts
        # that a few cells join.
        diagonal = (extra - off.sum(axis=1))[self.free]
        H = off[np.ix_(self.free, self.free)]
        np.fill_diagonal(H, diagonal)
        scale = 1.0 / np.sqrt(np.maximum(diagonal, np.finfo(float).tiny))
        H = H * scale[:, None] * scale
        np.fill_diagonal(H, H.diagonal() + RIDGE)
        try:
            solved = np.linalg.solve(H, rhs[self.free] * scale)
        except np.linalg.LinAlgError:
            solved = np.linalg.lstsq(H, rhs[self.free] * scale, rcond=None)[0]
        direction: Floats = solved * scale
        return direction

    def _solve_sparse(self, off: Any, rhs: Floats, extra: Floats) -> Floats:
        from scipy.sparse import diags_array, eye_array
        from scipy.sparse.linalg import splu

        H = (diags_array(extra - np.asarray(off.sum(axis=1)).ravel()) + off).tocsr()
        H = H[self.free][:, self.free].tocsc()
        scale = 1.0 / np.sqrt(np.maximum(H.diagonal(), np.finfo(float).tiny))
        scaled = diags_array(scale) @ H @ diags_array(scale)
        scaled = (scaled + RIDGE * eye_array(len(scale))).tocsc()
        options = {"SymmetricMode": True}
        factors = splu(
            scaled, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options
        )
        solved: Floats = factors.solve(rhs[self.free] * scale) * scale
        return solved

    def _solve_iteratively(self, state: Sweep, rhs: Floats, extra: Floats) -> Floats:
        from scipy.sparse.linalg import LinearOperator, cg

        size = len(state.h)

        def times(d: Floats) -> Floats:
            d = np.asarray(d).ravel()
            product: Floats = (state.fitted + extra) * d
            return product + self.mask.laplacian_times(state.h, d)

        H = LinearOperator((size, size), matvec=times, dtype=np.float64)
        jacobi = LinearOperator(
            (size, size), matvec=lambda d: np.ravel(d) / state.fitted, dtype=np.float64
        )
        solved, _ = cg(H, rhs, rtol=1e-8, maxiter=2000, M=jacobi)
        # The null directions (one shift per component) are taken out by the pinned
        # columns.
        block = self.mask.block
        pinned = np.zeros(int(block.max()) + 1)
        pinned[block[~self.free]] = solved[~self.free]
        moved: Floats = solved - pinned[block]
        return moved[self.free]
