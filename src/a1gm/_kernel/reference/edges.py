"""How wrong a fitted cell of a core can be, and how to mend it, in NumPy."""

from __future__ import annotations

import math

import numpy as np

from a1gm._base.float_range import LEAST
from a1gm._base.types import Floats, SmallInts
from a1gm._kernel.network import ROUNDING, eliminate, rounding_of_sums, shortened

SETTLED, FAR, PATIENCE = 4e-15, 0.5, 6
FINE = 1e-9  # rounding that need not be known better
CLEARLY, MOST_HALVINGS = 1e-9, 10  # of a cost, beyond its rounding


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
        A = _products(F, Q, F, Q)[pairs]
        if X is not None:
            Y = _products(X, X / R[:, None], F, Q)
            v = eliminate(A, (Y - Y.T)[pairs])[back]
        else:
            v = eliminate(A, (C - fitted)[order])[back]
        reach = float(eliminate(A, C[order]).max())
        unit = 8.0 * ROUNDING * sum(P.shape)
        floor = unit if X is not None else 2.0 * rounding_of_sums(len(P)) * reach
        if X is None and min(R.min(), C.min()) < LEAST:  # rounded by more than others
            floor = math.inf
        gap = float((np.abs(fitted - C) / C).max())
        moved = max(float(np.ptp(v[block == b])) for b in np.unique(block))
        moved = max(moved, gap - floor)  # no step is shorter than what it would mend
        # A conductance that has vanished would make one block two.
        if _n_grounds(A) > len(np.unique(block)) or not math.isfinite(moved):
            return w, h, n, math.inf, gap, v
        # Far away every step may be as long as the one before.
        stuck = 0 if moved < 0.7 * best or moved > FAR else stuck + 1
        best = min(best, moved)
        ends = moved <= SETTLED or stuck >= PATIENCE or (stuck and moved < 1e-10)
        if ends or n >= max_steps:
            if X is not None:
                least = min(
                    R.min(), C.min(), t.min() / max(1.0, h.max()), C.min() / w.max()
                )
                if unit * (1.0 + reach) > FINE or not least * ROUNDING > LEAST:
                    sizes = _sizes(P, X, F, Q, t, h)[pairs]
                    reach = float(eliminate(A, sizes, sign=1.0).max())
                is_lost = not (min(w.min(), h.min()) >= LEAST)
                floor = math.inf if is_lost else unit * (1.0 + reach)
            return w, h, n, moved + floor, gap, v
        h = _moved(P, R, C, h, shortened(v), is_far=moved > FAR)
        n += 1


def _moved(
    P: Floats, R: Floats, C: Floats, h: Floats, step: Floats, *, is_far: bool
) -> Floats:
    """Take a step, halved while it clearly raises the cost.

    Far away Newton's method might go round for ever.
    """

    def cost(h: Floats) -> float:
        return float((R @ np.log(P @ h) - C @ np.log(h)) / R.sum())

    limit = cost(h) + CLEARLY if is_far else math.inf
    for share in 0.5 ** np.arange(MOST_HALVINGS):
        new: Floats = h * np.exp(share * step)
        if not cost(new) > limit:
            return new
    return h * np.exp(0.5**MOST_HALVINGS * step)


def _products(a: Floats, a_share: Floats, b: Floats, b_share: Floats) -> Floats:
    """Sum a_ij b_ik over the sum of the row: the smaller times the other's share.

    It keeps its digits wherever the product does.
    """
    sums = np.zeros((a.shape[1], a.shape[1]))
    for x, p, y, q in zip(a, a_share, b, b_share, strict=True):
        sums += np.minimum(x[:, None], y) * np.maximum(p[:, None], q)
    return sums


def _sizes(P: Floats, X: Floats, F: Floats, Q: Floats, t: Floats, h: Floats) -> Floats:
    """What the currents between columns are differences of, for their rounding.

    Numbers below the least normal one round as that does.
    """
    parts = _products(X, X / X.sum(axis=1)[:, None], F, Q)
    seen = (P > 0.0).astype(np.float64)
    small = (seen * X * (LEAST / t)[:, None]).T @ (seen * np.maximum(h, 1.0))
    sizes: Floats = parts + parts.T + LEAST * (seen.T @ seen) + small + small.T
    return sizes


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
