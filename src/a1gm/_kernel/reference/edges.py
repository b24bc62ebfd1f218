"""How wrong a fitted cell of a core can be, and how to mend it, in NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from a1gm._base.types import Floats, SmallInts
from a1gm._kernel.network import ROUNDING, eliminate, rounding_of_sums, shortened

__all__ = ["settle_by_edges"]

SETTLED, FAR, PATIENCE = 4e-15, 0.5, 6


def settle_by_edges(
    P: Floats,
    R: Floats,
    C: Floats,
    X: Floats | None,
    h: Floats,
    block: SmallInts,
    max_steps: int,
) -> tuple[Floats, Floats, int, float, float, Floats]:
    """Newton's method on the columns, by elimination without subtraction.

    Returns w, h, steps, the bound of the step that is left, the largest mismatch of a
    column and the potentials. ``X`` are the sums of cells; None if not known.
    """
    if X is not None:
        R = X.sum(axis=1)
    order = np.argsort(-C, kind="stable")
    back, pairs = np.argsort(order), np.ix_(order, order)
    best, stuck, n = math.inf, 0, 0
    while True:
        t = P @ h
        w, Q = R / t, P * h / t[:, None]
        F = w[:, None] * (P * h)
        fitted = F.sum(axis=0)
        A = _products(F, Q)
        if X is not None:
            Y = _products(X, Q, X / R[:, None], F)
            v = eliminate(A[pairs], (Y - Y.T)[pairs])[back]
            floor = 4.0 * ROUNDING * sum(P.shape)
        else:
            v = eliminate(A[pairs], (C - fitted)[order])[back]
            unit = eliminate(A[pairs], C[order])
            floor = 2.0 * rounding_of_sums(len(P)) * float(unit.max())
        gap = float((np.abs(fitted - C) / C).max())
        moved = max(float(np.ptp(v[block == b])) for b in np.unique(block))
        moved = max(moved, gap - floor)  # no step is shorter than what it would mend
        # A conductance that has vanished would make one block two.
        is_torn = _n_grounds(A[pairs]) > len(np.unique(block))
        if is_torn or not math.isfinite(moved + floor):
            return w, h, n, math.inf, gap, v
        # Far away every step may be as long as the one before.
        stuck = 0 if moved < 0.7 * best or moved > FAR else stuck + 1
        best = min(best, moved)
        ends = moved <= SETTLED or stuck >= PATIENCE or (stuck and moved < 1e-10)
        if ends or n >= max_steps:
            return w, h, n, moved + floor, gap, v
        h = h * np.exp(shortened(v))
        n += 1


def _products(a: Floats, b: Floats, c: Any = None, d: Any = None) -> Floats:
    """Sum a_ij b_ik over the rows, which is c_ij d_ik too: one may have vanished."""
    c, d = (b, a) if c is None else (c, d)
    sums = np.zeros((a.shape[1], a.shape[1]))
    for i in range(len(a)):
        sums += np.maximum(np.outer(a[i], b[i]), np.outer(c[i], d[i]))
    return sums


def _n_grounds(A: Floats) -> int:
    """How many columns are tied to no earlier one: one per block, if nothing is lost.

    Eliminating columns ties none that were not tied before through later ones.
    """
    left, n = np.arange(len(A)), 0
    tied = A > 0.0
    while len(left):
        block = left[:1]
        while len(block) < len(
            grown := left[tied[np.ix_(left, block)].any(axis=1) | (left == left[0])]
        ):
            block = grown
        left, n = np.setdiff1d(left, block), n + 1
    return n
