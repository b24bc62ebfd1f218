"""Solve the core: alternating scaling, and Newton where its measured rate is poor.

Both stop on the certificate, the largest relative mismatch of the margins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from a1gm._kernel import threads_for
from a1gm._base.types import Floats, Solver

__all__ = ["CoreSolution", "solve_core"]

# Seconds, roughly: only their ratio matters, to choose between the two methods.
SECONDS_PER_LISTED_CELL = 2e-9
SECONDS_PER_FLOP = 1e-10
SECONDS_PER_NEWTON_STEP = 2e-4
NEWTON_STEPS = 6
DENSE_SIDE = 1500  # Hessians up to this side are dense
DENSE_CELLS = 20_000_000  # and so are masks of mostly observed cells up to this size
MAX_PAIRS = 20_000_000  # sparse Hessians are assembled up to this many products
SPARSE_SIDE, SPARSE_GAIN = 300, 100  # when a sparse Hessian is worth its overhead
SMALLEST_START = 1e-290
# Directions so flat that their slope is rounding; they move no margin by 1e-11.
RIDGE = 1e-13
LONGEST = 30.0  # no logarithm of a factor moves further in one step
LEAST_DAMPING, DAMPING_STEP = 1e-10, 100.0  # in units of a sweep's own curvature
PATIENCE = 6  # Newton steps without progress


class ReducedProblem(Protocol):
    """What both kernels call a reduced problem."""

    core_shape: tuple[int, int]
    n_listed: int
    core_row_sums: Floats
    core_col_sums: Floats
    core_row_block: Any
    core_col_block: Any
    core_mask: tuple[Any, Any, bool, Floats | None]

    def scale(
        self,
        h: Floats,
        tol: float,
        max_sweeps: int,
        patience: int,
        n_threads: int = 1,
    ) -> tuple[Floats, Floats, int, float, bool]:
        """Run alternating scaling."""


@dataclass(frozen=True, slots=True)
class CoreSolution:
    """Factors of the core and how they were found."""

    w: Floats
    h: Floats
    solver: Solver
    n_iter: int
    gap: float


_NOTHING = CoreSolution(np.zeros(0), np.zeros(0), "closed form", 0, 0.0)


def solve_core(
    reduced: ReducedProblem, *, tol: float, max_iter: int, n_threads: int | None = None
) -> CoreSolution:
    """Find the factors of the core to within ``tol`` of its margins."""
    if reduced.core_shape[0] == 0:
        return _NOTHING
    C = reduced.core_col_sums
    start = np.maximum(C / C.max(), SMALLEST_START)
    # Half of the budget at most: Newton must have its turn.
    budget = max(1, max_iter // 2)
    patience = min(budget, _patience(reduced))
    threads = threads_for(reduced.n_listed, n_threads)
    w, h, sweeps, gap, done = reduced.scale(start, tol, budget, patience, threads)
    if done or sweeps >= max_iter:
        return CoreSolution(w, h, "scaling", sweeps, gap)
    found = _Newton(reduced, w, h).run(
        tol=tol, max_iter=max_iter, sweeps=sweeps, gap=gap
    )
    left = max_iter - found.n_iter
    if found.gap <= tol or left <= 0:
        return found
    # Newton met the limits of rounding: sweeps mend each line with its own margin.
    w, h, sweeps, gap, _ = reduced.scale(found.h, tol, left, left)
    if not gap < found.gap:
        return found
    return CoreSolution(w, h, "newton", found.n_iter + sweeps, gap)


def _patience(reduced: ReducedProblem) -> int:
    """How many sweeps cost as much as Newton would."""
    small, large = sorted(reduced.core_shape)
    sweep = SECONDS_PER_LISTED_CELL * (2 * reduced.n_listed + 4 * (small + large))
    flops = large * small**2 if small <= DENSE_SIDE else 200 * reduced.n_listed
    newton = NEWTON_STEPS * (SECONDS_PER_NEWTON_STEP + SECONDS_PER_FLOP * flops)
    return int(np.clip(newton / sweep, 30, 400))


class _Newton:
    """Newton's method in the logarithms of the smaller side's factors.

    With the larger side profiled out, w = R / (P h), the cost in v = log h is
    f(v) = sum_i R_i log (P exp v)_i - sum_j C_j v_j: convex, with gradient
    h (P' w) - C and a graph Laplacian as Hessian, one null direction per block.
    """

    def __init__(self, reduced: ReducedProblem, w: Floats, h: Floats) -> None:
        self.swapped = reduced.core_shape[0] < reduced.core_shape[1]
        P = _mask(reduced)
        R, C = reduced.core_row_sums, reduced.core_col_sums
        block = reduced.core_col_block
        if self.swapped:
            P, R, C, block, w, h = P.T, C, R, reduced.core_row_block, h, w
        self.P, self.R, self.C, self.w, self.h = P, R, C, w, h
        self.block = np.asarray(block)
        # One line per block keeps its value: the one with most data.
        order = np.lexsort((-C, self.block))
        _, first = np.unique(self.block[order], return_index=True)
        self.free = np.ones(len(C), bool)
        self.free[order[first]] = False

    def run(
        self, *, tol: float, max_iter: int, sweeps: int, gap: float
    ) -> CoreSolution:
        steps, stuck = 0, 0
        best = (gap, self.w, self.h)
        while gap > tol and sweeps + steps < max_iter and stuck < PATIENCE:
            previous = gap
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                cheaper = self._step()
                steps += 1
                gap = self._sweep()
            if not np.isfinite(gap):
                break
            # Far from the optimum the cost falls while the gap still jumps about; in
            # very flat directions the gap falls while the cost can no longer tell.
            stuck = 0 if cheaper or gap < 0.7 * previous else stuck + 1
            if gap < best[0]:
                best = (gap, self.w, self.h)
        gap, large, small = best
        w, h = (small, large) if self.swapped else (large, small)
        return CoreSolution(w, h, "newton", sweeps + steps, gap)

    def _sweep(self) -> float:
        """Scale both sides once; the mismatch left is that of the larger side."""
        self.w = self.R / (self.P @ self.h)
        self.h = self.C / (self.P.T @ self.w)
        t = self.P @ self.h
        gap = float(np.max(np.abs(self.w * t - self.R) / self.R))
        self.w = self.R / t
        return gap

    def _cost(self, v: Floats) -> float:
        return float(self.R @ np.log(self.P @ np.exp(v)) - self.C @ v)

    def _step(self) -> bool:
        """Move; return whether the cost fell by more than its own rounding."""
        t = self.P @ self.h
        fitted = self.h * (self.P.T @ (self.R / t))
        gradient = fitted - self.C
        direction = self._direction(t, fitted, gradient)
        v = np.log(self.h)
        slope = float(gradient @ direction)
        cost = self._cost(v)
        # The allowance is the rounding of the cost itself: near the optimum the full
        # step is right although the cost can no longer tell.
        allowance = 1e-14 * (abs(cost) + float(self.R.sum()))
        length = min(1.0, LONGEST / max(float(np.abs(direction).max()), 1e-300))
        for _ in range(40):
            trial = v + length * direction
            trial_cost = self._cost(trial)
            if trial_cost <= cost + 1e-4 * length * slope + allowance:
                self.h = np.exp(trial)
                return trial_cost < cost - allowance
            length /= 2.0
        return False

    def _direction(self, t: Floats, fitted: Floats, gradient: Floats) -> Floats:
        """Newton's direction, damped towards a scaling sweep where it is too long.

        Where one cell has all of a line's weight the cost is all but flat, and the
        direction along it would leave the others no room to move.
        """
        direction = np.zeros_like(self.h)
        damping = 0.0
        while damping < 1.0:
            extra = damping * self.C
            direction[self.free] = self._solve(t, fitted, -gradient, extra)
            if not np.abs(direction).max() > LONGEST:
                break
            damping = max(DAMPING_STEP * damping, LEAST_DAMPING)
        return direction

    def _solve(self, t: Floats, fitted: Floats, rhs: Floats, extra: Floats) -> Floats:
        if isinstance(self.P, _Complement):
            return self._solve_iteratively(t, fitted, rhs, extra)
        if isinstance(self.P, np.ndarray):
            return self._solve_dense(t, rhs, extra)
        # How many products of pairs of cells the Hessian is the sum of.
        products = (np.diff(self.P.tocsr().indptr).astype(float) ** 2).sum()
        side = len(self.h)
        if side <= DENSE_SIDE and not SPARSE_GAIN * products < side**2 * SPARSE_SIDE:
            return self._solve_dense(t, rhs, extra)
        if products <= MAX_PAIRS:
            return self._solve_sparse(t, rhs, extra)
        return self._solve_iteratively(t, fitted, rhs, extra)

    def _solve_dense(self, t: Floats, rhs: Floats, extra: Floats) -> Floats:
        if isinstance(self.P, np.ndarray):
            Q = self.P * self.h * (np.sqrt(self.R) / t)[:, None]
            laplacian = -(Q.T @ Q)
        else:
            Q = self._weighted_mask(t)
            laplacian = -(Q.T @ Q).toarray()
        # The diagonal is minus the sum of the others: no cancellation between parts
        # that a few cells join.
        np.fill_diagonal(laplacian, 0.0)
        np.fill_diagonal(laplacian, extra - laplacian.sum(axis=1))
        H = laplacian[np.ix_(self.free, self.free)]
        scale = 1.0 / np.sqrt(np.maximum(np.diag(H), np.finfo(float).tiny))
        H = H * scale[:, None] * scale
        np.fill_diagonal(H, H.diagonal() + RIDGE)
        try:
            solved = np.linalg.solve(H, rhs[self.free] * scale)
        except np.linalg.LinAlgError:
            solved = np.linalg.lstsq(H, rhs[self.free] * scale, rcond=None)[0]
        direction: Floats = solved * scale
        return direction

    def _weighted_mask(self, t: Floats) -> Any:
        from scipy.sparse import diags_array

        return diags_array(np.sqrt(self.R) / t) @ self.P @ diags_array(self.h)

    def _solve_sparse(self, t: Floats, rhs: Floats, extra: Floats) -> Floats:
        from scipy.sparse import diags_array, eye_array
        from scipy.sparse.linalg import splu

        Q = self._weighted_mask(t)
        off = (Q.T @ Q).tocsr()
        off = off - diags_array(off.diagonal())
        H = (diags_array(np.asarray(off.sum(axis=1)).ravel() + extra) - off).tocsr()
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

    def _solve_iteratively(
        self, t: Floats, fitted: Floats, rhs: Floats, extra: Floats
    ) -> Floats:
        from scipy.sparse.linalg import LinearOperator, cg

        inner = self.R / t**2
        size = len(self.h)

        def times(d: Floats) -> Floats:
            d = np.asarray(d).ravel()
            product: Floats = (fitted + extra) * d - self.h * (
                self.P.T @ (inner * (self.P @ (self.h * d)))
            )
            return product

        H = LinearOperator((size, size), matvec=times, dtype=np.float64)
        jacobi = LinearOperator(
            (size, size), matvec=lambda d: np.ravel(d) / fitted, dtype=np.float64
        )
        solved, _ = cg(H, rhs, rtol=1e-8, maxiter=2000, M=jacobi)
        # The null directions (one shift per block) are taken out by the pinned lines.
        pinned = np.zeros(int(self.block.max()) + 1)
        pinned[self.block[~self.free]] = solved[~self.free]
        moved: Floats = solved - pinned[self.block]
        return moved[self.free]


class _Complement:
    """The mask of which only the holes are listed: P x = sum(x) - holes x."""

    def __init__(self, holes: Any) -> None:
        self.holes = holes

    @property
    def T(self) -> _Complement:  # noqa: N802 - NumPy's word
        return _Complement(self.holes.T)

    def __matmul__(self, x: Floats) -> Floats:
        product: Floats = x.sum(axis=0) - self.holes @ x
        return product


def _mask(reduced: ReducedProblem) -> Any:
    """The core's mask as something that multiplies vectors."""
    from scipy.sparse import csr_array

    ptr, index, lists_missing, weights = reduced.core_mask
    values = np.ones(len(index)) if weights is None else weights
    listed = csr_array((values, index, ptr), shape=reduced.core_shape)
    small, large = sorted(reduced.core_shape)
    fits = small <= DENSE_SIDE and small * large <= DENSE_CELLS
    if lists_missing:
        return 1.0 - listed.toarray() if fits else _Complement(listed)
    # Products of sparse matrices cost ten times as much per cell.
    return listed.toarray() if fits and len(index) * 10 > small * large else listed
