"""Newton's method in the logarithms of the column factors of a core.

With the rows profiled out, w = R / (P h), the cost in v = log h is
f(v) = sum_i R_i log (P exp v)_i - sum_j C_j v_j: convex, with gradient h (P' w) - C and
a graph Laplacian as Hessian, one null direction per component. The kernel's conjugate
gradients solve with it; how they are preceded is decided by cost, as it is known while
they run (``FACTORS``, ``PRECEDED``; see ``flow.hpp``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from a1gm._base.types import Floats
from a1gm._kernel import kernel
from a1gm._solve.factors import relative_gap

if TYPE_CHECKING:  # the compiled kernel has the same class
    from a1gm._kernel.reference.reduced import Reduced

LONGEST = 30.0  # no logarithm of a factor moves further in one step
LEAST_DAMPING, DAMPING_STEP = 1e-10, 100.0  # in units of the curvature of a sweep
PATIENCE = 6  # steps without progress
ROUGH = 0.1  # of the mismatch may be left to the next step
# In products with the Hessian, by benchmarks/costs.py: thin factors with their use, and
# one product that they precede.
FACTORS, PRECEDED = 200, 4
MOST_PRODUCTS = 2000
PRODUCTS_PER_STEP = 10  # on average: steps of the budget are worth no more


class Enough(NamedTuple):
    """When potentials are good enough.

    No column may miss its current by more than its sum times ``least``, or times
    ``share`` of the range of the potentials.
    """

    least: float
    share: float = 0.0


class Hessian:
    """Solves with the Hessian of a core; what precedes the solutions is kept.

    The heaviest column of each component is the ground: its potential is 0.
    """

    def __init__(self, reduced: Reduced) -> None:
        self._reduced = reduced
        self._flow: Any = None
        self.n_products = 0

    def move(self, w: Floats, h: Floats) -> None:
        """Take other factors; the rows are fitted exactly."""
        if self._flow is None:
            self._flow = kernel.Flow(self._reduced, w, h)
        else:
            self._flow.move(w, h)

    def solve(self, y: Floats, enough: Enough, extra: Floats | None = None) -> Floats:
        """Return the potentials of currents; ``extra`` is added to the diagonal."""
        costs = FACTORS, PRECEDED, MOST_PRODUCTS
        potentials: Floats
        potentials, n_products = self._flow.solve(y, extra, *enough, *costs)
        self.n_products += n_products
        return potentials


@dataclass(frozen=True, slots=True)
class Sweep:
    """Column factors, rows fitted exactly to them, fitted column sums, and the cost."""

    w: Floats
    h: Floats
    fitted: Floats
    cost: float

    @classmethod
    def of(cls, reduced: Reduced, h: Floats) -> Sweep:
        """Fit the rows of a core to column factors."""
        w, fitted = reduced.sweep(h)
        R, C = reduced.core_row_sums, reduced.core_col_sums
        return cls(w, h, fitted, float(R @ np.log(R / w)) - float(C @ np.log(h)))


def newton(
    reduced: Reduced, hessian: Hessian, h: Floats, *, tol: float, max_steps: int
) -> tuple[Sweep, int, float]:
    """Return the best factors, steps taken and their largest mismatch of a column."""
    C = reduced.core_col_sums
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        state = Sweep.of(reduced, h)
        gap = relative_gap(state.fitted, C)
        best, steps, stuck = (gap, state), 0, 0
        while gap > tol and steps < max_steps and stuck < PATIENCE:
            if hessian.n_products > PRODUCTS_PER_STEP * max_steps:
                break
            previous = gap
            # A direction as good as the step is long; the last is good enough for tol.
            enough = Enough(max(min(gap, ROUGH) * gap, ROUGH * tol))
            state, is_cheaper = _step(reduced, hessian, state, enough)
            # One scaling after each step corrects every column with its margin.
            state = Sweep.of(reduced, state.h * (C / state.fitted))
            gap = relative_gap(state.fitted, C)
            steps += 1
            if not np.isfinite(gap):
                break
            # Far from the optimum the cost falls while the gap still jumps about; in
            # very flat directions the gap falls while the cost no longer changes.
            stuck = 0 if is_cheaper or gap < 0.7 * previous else stuck + 1
            if gap < best[0]:
                best = (gap, state)
    return best[1], steps, best[0]


def _step(
    reduced: Reduced, hessian: Hessian, state: Sweep, enough: Enough
) -> tuple[Sweep, bool]:
    """Move; return also whether the cost fell by more than its rounding."""
    C = reduced.core_col_sums
    gradient, cost = state.fitted - C, state.cost
    hessian.move(state.w, state.h)
    direction = _direction(hessian, gradient, enough, C)
    slope = float(gradient @ direction)
    # The allowance is the rounding of the cost itself: near the optimum the full step
    # is right although the cost no longer falls.
    allowance = 1e-14 * (abs(cost) + float(C.sum()))
    length = min(1.0, LONGEST / max(float(np.abs(direction).max()), 1e-300))
    for _ in range(40):
        trial = Sweep.of(reduced, state.h * np.exp(length * direction))
        if trial.cost <= cost + 1e-4 * length * slope + allowance:
            return trial, trial.cost < cost - allowance
        length /= 2.0
    return state, False


def _direction(
    hessian: Hessian, gradient: Floats, enough: Enough, col_sums: Floats
) -> Floats:
    """Newton's direction, damped towards a scaling sweep where it is too long.

    Where one cell has all of a row's weight the cost is nearly flat, and the direction
    along it is so long that the others could not move.
    """
    damping = 0.0
    while damping < 1.0:
        extra = damping * col_sums if damping else None
        direction = hessian.solve(-gradient, enough, extra)
        if not np.abs(direction).max() > LONGEST:
            break
        damping = max(DAMPING_STEP * damping, LEAST_DAMPING)
    return direction
