"""Cells across weak cuts, and a bound on what convergence leaves in any cell.

Parts of a table that hang together by tiny cells can have right margins and wrong
cells between them: rounding of large sums hides the small ones. Heavy cells tie levels
together; along the directions that they leave free only light cells have a gradient,
so it is taken over these alone.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from a1gm._base.types import Floats, Ints
from a1gm._observe.patterns import weighted_counts
from a1gm.tensor.known import contract
from a1gm.tensor.problem import Problem, design, distinct_rows, reach
from a1gm.tensor.solve import Eliminated, Solved

HEAVY = 0.03  # of the mean cell of the least of its levels: a cell above ties them
WEAK = 1e-3  # of its diagonal: a smaller pivot of the Hessian is that of a weak cut
MOST_CLASSES = 1500  # that heavy cells leave, up to which light ones are mended
ROUNDS = 20
STILL = 4e-15  # a move of a cell that is only rounding
NULL = 1e-12
LONGEST = 700.0  # logarithm of the largest ratio of a cell


def settle(p: Problem, solved: Solved, rank: int | None, tol: float) -> Solved:
    """The same fit with a bound on the error of its cells, mended where cuts are weak.

    An estimate, without rounding, where the Hessian is too large to be dense.
    """
    if solved.cell_error is not None:
        return solved
    f, margins = p.fitted(solved.t)
    if not p.is_small:
        return estimate(solved, p.sums, margins, p.starts)
    E = Eliminated(*p.pairs(f), rank)
    is_weak = rank is None or E.least_pivot < WEAK
    t = _mend(p, solved.t) if is_weak else solved.t * np.exp(E.solve(p.sums - margins))
    f, margins = p.fitted(t)
    gap, rounding = p.gap(margins), rounding_of(float(p.counts.max()))
    if not gap <= max(solved.gap, tol):
        t, gap = solved.t, solved.gap
        f, margins = p.fitted(t)
    weak = _Weak(p, f, margins) if is_weak else None
    worst = error_left(weak.heavy if weak else E, p.sums - margins, rounding)
    if weak:
        worst = weak.error(worst, rounding)
    return with_error(replace(solved, t=t, gap=gap), worst)


def with_error(solved: Solved, worst: float) -> Solved:
    """The same fit with the error of its cells, by that of their logarithms."""
    error = worst / (1.0 - worst) if worst < 0.5 else math.inf
    return replace(solved, cell_error=max(error, solved.gap))


def estimate(solved: Solved, sums: Floats, margins: Floats, starts: Ints) -> Solved:
    """The same fit with an estimate of the error of its cells."""
    D = np.where(margins > 0.0, margins, 1.0)
    worst = reach((sums - margins) / D, starts) * math.sqrt(len(D))
    return replace(solved, cell_error=max(worst, solved.gap), is_bound=False)


def error_left(E: Eliminated, rest: Floats, rounding: float) -> float:
    """First-order error of cells: what convergence has left, and rounding.

    Sums by level are known up to a share of ``rounding``. They move the groups that
    were not eliminated by up to |G| D, twice: also by way of the other group, which
    then is moved by as much as they are.
    """
    moved = np.zeros(len(rest))
    moved[E.rest] = np.abs(E.inverse) @ E.D[E.rest]
    most = 1.0 + 4.0 * reach(moved, E.starts)
    return reach(E.solve(rest), E.starts) + rounding * most


def rounding_of(longest: float) -> float:
    """Share of a sum of so many numbers that rounding takes or adds."""
    return (4.0 + math.sqrt(longest)) * 2.0**-53


class _Weak:
    """Directions that heavy cells leave free, and the light cells that decide them.

    Levels that heavy cells tie together are one class; light cells of the same classes
    are one kind, and move together along these directions.
    """

    def __init__(self, p: Problem, f: Floats, margins: Floats) -> None:
        mean = margins / np.maximum(p.counts, 1.0)
        heavy = f > HEAVY * np.min(mean[p.level], axis=0)
        self.heavy = Eliminated(*p.only(heavy).pairs(f[heavy]))
        labels, cells = contract(p.of_groups(heavy), p.sizes.tolist())
        sizes = [int(label.max(initial=-1)) + 1 for label in labels]
        self.is_known = sum(sizes) <= MOST_CLASSES
        self.N, self.R = np.zeros((len(margins), 0)), np.zeros((0, 0))
        self.s = self.f = np.zeros(0)
        if not self.is_known or heavy.all():
            return
        A = design(cells, sizes)
        w, V = np.linalg.eigh((A.T @ A).toarray())
        null = V[:, w <= 1e-9]
        starts = np.cumsum([0, *sizes])
        places = [a + label for a, label in zip(starts, labels, strict=False)]
        self.N = null[np.concatenate(places)]
        light = [c[k] for c, k in zip(labels, p.of_groups(~heavy), strict=True)]
        kinds, kind = distinct_rows(light, sizes)
        R = design(kinds, sizes) @ null
        moves = np.abs(R).max(axis=1, initial=0.0) > NULL
        sums = (weighted_counts(kind, x[~heavy], len(R)) for x in (p.s, f))
        self.s, self.f = (x[moves] for x in sums)
        self.R = R[moves]

    def inverse(self, e: Floats) -> Floats:
        """Generalised inverse of the Hessian of light cells e."""
        w, V = np.linalg.eigh(self.R.T @ (e[:, None] * self.R))
        on = w > NULL * max(w.max(initial=0.0), 5e-324)
        return np.asarray((V[:, on] / w[on]) @ V[:, on].T)

    def fit(self) -> Floats:
        """Newton on the light cells alone, in their own units."""
        y = np.zeros(self.R.shape[1])
        for _ in range(60):
            e = self.f * np.exp(np.clip(self.R @ y, -LONGEST, LONGEST))
            d = self.inverse(e) @ (self.R.T @ (self.s - e))
            longest = float(np.abs(self.R @ d).max(initial=0.0))
            y += d / max(1.0, longest)
            if longest < 1e-15:
                break
        return y

    def error(self, worst: float, rounding: float) -> float:
        """What is left in any cell, rounding included.

        ``worst`` is what the heavy cells leave; what that is in light ones moves
        others along the free directions.
        """
        if not self.is_known:
            return math.inf
        NG = self.N @ self.inverse(self.f)
        left = np.abs(NG) @ np.abs(self.R.T @ (self.s - self.f))
        light = worst * self.f + rounding * (self.s + self.f)
        return worst + reach(left + np.abs(NG @ self.R.T) @ light, self.heavy.starts)


def _mend(p: Problem, t: Floats) -> Floats:
    """Factors whose light cells fit, too."""
    last = math.inf
    for k in range(ROUNDS):
        f, margins = p.fitted(t)
        weak = _Weak(p, f, margins)
        if not len(weak.R):
            return t
        # A step for the heavy cells, which moves the light ones, and then these.
        d = weak.heavy.solve(p.sums - margins)
        t = t * np.exp(d)
        weak = _Weak(p, *p.fitted(t))
        y = weak.N @ weak.fit()
        t = t * np.exp(y)
        move = reach(d + y, p.starts)
        if move < STILL or (move >= last and k > 5):
            break
        last = move
    return t
