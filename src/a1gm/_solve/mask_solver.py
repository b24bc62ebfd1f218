"""Scale a mask that lies in a file: each sweep reads it once, in blocks.

A sweep gives the columns' margins of the table whose rows fit exactly,
``c_j = sum_i r_i / (Φh)_i``; the certificate is their largest relative mismatch. Where
alternating scaling is slow, Newton's method on the columns takes over; its Hessian
is gathered in one pass too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from a1gm._base.bits import pack_bits, unpack_bits
from a1gm._solve.column_graph import ColumnGraph
from a1gm._solve.mask_products import mask_times, times_mask
from a1gm._observe.row_log import MaskLog
from a1gm._observe.statistics import weighted_counts
from a1gm._base.types import Bools, Floats, SmallInts, Solver, Words

__all__ = ["MaskSolution", "solve_mask"]

DENSE_SIDE = 4000  # the Hessian of so many columns has 128 MB
PATIENCE = 40  # sweeps that scaling may be expected to need before Newton is tried
SMALLEST_START = 1e-290


@dataclass(frozen=True)
class MaskSolution:
    """Column factors of each component, and how they were found."""

    col_factor: Floats
    totals: Floats
    solver: Solver
    n_iter: int
    gap: float


@dataclass(frozen=True)
class _Sweep:
    h: Floats
    fitted: Floats  # column margins with the rows fitted exactly
    cost: float
    gap: float


def solve_mask(
    log: MaskLog, graph: ColumnGraph, col_sums: Floats, *, tol: float, max_iter: int
) -> MaskSolution:
    """Find the column factors to within ``tol`` of the margins.

    ``totals`` of the answer are in proportion to those observed in the components.
    """
    problem = _Problem(log, graph, col_sums)
    state, n_iter, solver = problem.scale(tol, max_iter)
    if state.gap > tol and n_iter < max_iter and log.n_cols <= DENSE_SIDE:
        state, n_iter = problem.newton(state, tol, max_iter, n_iter)
        solver = "newton"
    totals = weighted_counts(
        graph.label[problem.active], problem.C[problem.active], graph.n
    )
    return MaskSolution(state.h, totals, solver, n_iter, state.gap)


class _Problem:
    """Margins and mask, cut down to the cells inside components."""

    def __init__(self, log: MaskLog, graph: ColumnGraph, col_sums: Floats) -> None:
        self.log, self.graph = log, graph
        # A power of two, so that nothing overflows and nothing is rounded.
        largest = max(float(col_sums.max()), np.finfo(float).tiny)
        self.unit = math.ldexp(1.0, -math.frexp(largest)[1])
        self.C = col_sums * self.unit
        self.active: Bools = col_sums > 0.0
        inside = np.zeros((graph.n + 1, log.n_cols), bool)  # the last: nothing
        known = np.flatnonzero(self.active)
        inside[graph.label[known], known] = True
        self._inside_words: Words = pack_bits(inside)

    def blocks(self) -> Iterator[tuple[Floats, Words]]:
        """Yield sums and mask of the rows with data."""
        for _, sums, bits, positive in self.log.blocks():
            row_sums = sums * self.unit
            kept = slice(None) if (row_sums > 0.0).all() else row_sums > 0.0
            component = self._components(positive[kept])
            yield row_sums[kept], bits[kept] & self._inside_words[component]

    def _components(self, positive: Words) -> SmallInts:
        if self.graph.n == 1:
            return np.zeros(len(positive), np.int32)
        found = np.full(len(positive), self.graph.n, np.int32)
        for c in np.unique(self.graph.label[self.active]):
            found[(positive & self._inside_words[c]).any(axis=1)] = c
        return found

    def sweep(self, h: Floats) -> _Sweep:
        margins = np.zeros_like(h)
        cost = 0.0
        for row_sums, bits in self.blocks():
            t = mask_times(bits, h)
            margins += times_mask(row_sums / t, bits, len(h))
            cost += float(row_sums @ np.log(t))
        on = self.active
        fitted = h * margins
        gap = float(np.max(np.abs(fitted[on] - self.C[on]) / self.C[on], initial=0.0))
        cost -= float(self.C[on] @ np.log(h[on]))
        return _Sweep(h, fitted, cost, gap)

    def rescaled(self, state: _Sweep) -> Floats:
        """One step of alternating scaling."""
        h = state.h.copy()
        h[self.active] *= self.C[self.active] / state.fitted[self.active]
        return h

    def scale(self, tol: float, max_iter: int) -> tuple[_Sweep, int, Solver]:
        start = np.maximum(self.C, SMALLEST_START)
        state = self.sweep(np.where(self.active, start, 0.0))
        if not self.active.any():
            return state, 0, "closed form"
        n = 1
        while state.gap > tol and n < max_iter:
            after = self.sweep(self.rescaled(state))
            n += 1
            rate = after.gap / state.gap
            state = after
            if n >= 8 and self.log.n_cols <= DENSE_SIDE and state.gap > tol:
                left = np.log(tol / state.gap) / np.log(rate) if rate < 1 else np.inf
                if n + left > PATIENCE:
                    break
        if state.gap <= tol:
            # One sweep more makes up for the lucky last one: the factors themselves
            # are then as good as the certificate says.
            after = self.sweep(self.rescaled(state))
            state = after if after.gap < state.gap else state
        return state, n, "scaling"

    def newton(
        self, state: _Sweep, tol: float, max_iter: int, n: int
    ) -> tuple[_Sweep, int]:
        best, stuck = state, 0
        while best.gap > tol and n < max_iter and stuck < 4:
            state = self._step(state)
            n += 1
            better = state.gap < 0.7 * best.gap
            stuck = 0 if better else stuck + 1
            best = state if state.gap < best.gap else best
        return best, n

    def _step(self, state: _Sweep) -> _Sweep:
        """Newton's direction, shortened until the cost falls, and one scaling."""
        gradient = np.where(self.active, state.fitted - self.C, 0.0)
        direction = np.zeros_like(state.h)
        free = self._free()
        direction[free] = _solve_laplacian(self._laplacian(state.h), free, -gradient)
        slope = float(gradient @ direction)
        # The allowance is the rounding of the cost itself, as in the solver in memory.
        allowance = 1e-14 * (abs(state.cost) + float(self.C.sum()))
        length = min(1.0, 30.0 / max(float(np.abs(direction).max()), 1e-300))
        for _ in range(30):
            trial = self.sweep(state.h * np.exp(length * direction))
            if trial.cost <= state.cost + 1e-4 * length * slope + allowance:
                return self.sweep(self.rescaled(trial)) if trial.gap > 0.0 else trial
            length /= 2.0
        return self.sweep(self.rescaled(state))

    def _free(self) -> Bools:
        """Columns that may move: all but the heaviest of each component."""
        free = self.active.copy()
        for c in np.unique(self.graph.label[self.active]):
            own = np.flatnonzero(self.active & (self.graph.label == c))
            free[own[self.C[own].argmax()]] = False
        return free

    def _laplacian(self, h: Floats) -> Floats:
        """Hessian of the cost in log h, without its diagonal."""
        m = len(h)
        off = np.zeros((m, m))
        for row_sums, bits in self.blocks():
            step = max(1, (1 << 20) // m)
            for at in range(0, len(bits), step):
                mask = unpack_bits(bits[at : at + step], m) * h
                Q = mask * (np.sqrt(row_sums[at : at + step]) / mask.sum(1))[:, None]
                off -= Q.T @ Q
        np.fill_diagonal(off, 0.0)
        return off


def _solve_laplacian(off: Floats, free: Bools, rhs: Floats) -> Floats:
    """Solve on the free columns; each diagonal is minus the sum of its row."""
    np.fill_diagonal(off, -off.sum(axis=1))
    H = off[np.ix_(free, free)]
    scale = 1.0 / np.sqrt(np.maximum(np.diag(H), np.finfo(float).tiny))
    H = H * scale[:, None] * scale
    try:
        solved = np.linalg.solve(H, rhs[free] * scale)
    except np.linalg.LinAlgError:
        solved = np.linalg.lstsq(H, rhs[free] * scale, rcond=None)[0]
    direction: Floats = solved * scale
    return direction
