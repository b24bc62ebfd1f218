"""Newton's method in the logarithms of the column factors of a mask.

With the rows profiled out, w = R / (P h), the cost in v = log h is
f(v) = sum_i R_i log (P exp v)_i - sum_j C_j v_j: convex, with gradient h (P' w) - C and
a graph Laplacian as Hessian, one null direction per component.
"""

from __future__ import annotations

import numpy as np

from a1gm._base.types import Bools, Floats
from a1gm._solve.factors import relative_gap
from a1gm._solve.laplacian import Enough, Solve, hessian_at
from a1gm._solve.mask import Mask, Sweep

LONGEST = 30.0  # no logarithm of a factor moves further in one step
LEAST_DAMPING, DAMPING_STEP = 1e-10, 100.0  # in units of a sweep's own curvature
PATIENCE = 6  # steps without progress
ROUGH = 0.1  # of the mismatch may be left to the next step


def newton(
    mask: Mask, h: Floats, *, tol: float, max_steps: int
) -> tuple[Floats, int, float, Solve | None]:
    """Return column factors, steps taken and the largest mismatch of a column.

    Last what solves with the Hessian of the last step, if one was taken.
    """
    search = _Search(mask)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return *search.run(h, tol, max_steps), search.solve


class _Search:
    """The state that the steps share."""

    def __init__(self, mask: Mask) -> None:
        self.mask, self.C = mask, mask.col_sums
        self.on: Bools = mask.block >= 0
        self.solve: Solve | None = None

    def run(self, h: Floats, tol: float, max_steps: int) -> tuple[Floats, int, float]:
        state = self.mask.sweep(h)
        gap = self._gap(state)
        best, steps, stuck = (gap, h), 0, 0
        while gap > tol and steps < max_steps and stuck < PATIENCE:
            previous = gap
            # A direction as good as the step is long; the last is good enough for tol.
            enough = Enough(max(min(gap, ROUGH) * gap, ROUGH * tol))
            state, cheaper = self._step(state, enough)
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

    def _step(self, state: Sweep, enough: Enough) -> tuple[Sweep, bool]:
        """Move; return also whether the cost fell by more than its own rounding."""
        gradient = np.where(self.on, state.fitted - self.C, 0.0)
        direction = self._direction(state, gradient, enough)
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

    def _direction(self, state: Sweep, gradient: Floats, enough: Enough) -> Floats:
        """Newton's direction, damped towards a scaling sweep where it is too long.

        Where one cell has all of a row's weight the cost is nearly flat, and the
        direction along it is so long that the others could not move.
        """
        solver = hessian_at(self.mask, state)
        damping = 0.0
        while damping < 1.0:
            self.solve = solver(damping * self.C if damping else None)
            direction = self.solve(-gradient, enough)
            if not np.abs(direction).max() > LONGEST:
                break
            damping = max(DAMPING_STEP * damping, LEAST_DAMPING)
        return direction
