"""Cells across weak cuts, and a bound on what convergence leaves in any cell.

Parts of a table that hang together by tiny cells can have right margins and wrong
cells between them: rounding of large sums hides the small ones. Heavy cells tie levels
together; along the directions that they leave free only light cells have a gradient,
so it is taken over these alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from a1gm._base.types import AnyArray, Bools, Floats, Ints
from a1gm.tensor.known import contract, design
from a1gm.tensor.problem import Problem, sum_over
from a1gm.tensor.solve import MOST_DENSE, Eliminated

HEAVY = 1e-3  # of the least of its margins: a cell above ties its levels
MOST_CLASSES = 1500  # that heavy cells leave, up to which light ones are mended
ROUNDS = 20
STILL = 4e-15  # a move of a cell that is only rounding
NULL = 1e-12
LONGEST = 700.0  # logarithm of the largest ratio of a cell
UNIT = 2.0**-53


def is_small(p: Problem) -> bool:
    """Whether the Hessian of a problem may be dense."""
    return int(p.sizes.sum() - p.sizes.max()) <= MOST_DENSE


class _Weak:
    """Directions that heavy cells leave free, and the light cells that decide them."""

    def __init__(self, p: Problem, f: Floats, margins: Floats, N: Floats) -> None:
        self.N = N
        self.light = ~_heavy(p, f, margins)
        some = p.only(self.light)
        self._levels = some.level
        R = self.along(some.level)
        self._R = R
        moves = np.abs(R).max(axis=1, initial=0.0) > NULL
        self.R, self.s, self.f = R[moves], some.s[moves], f[self.light][moves]

    def along(self, levels: Iterable[AnyArray]) -> Floats:
        """What the directions do to the logarithms of cells."""
        first, *others = levels
        found: Floats = self.N[first]
        for row in others:
            found = found + self.N[row]
        return found

    def without(self, d: Floats) -> Floats:
        """A step without what it does along these directions."""
        y, *_ = np.linalg.lstsq(self._R, sum_over(self._levels, d), rcond=NULL)
        return np.asarray(d - self.N @ y)

    def inverse(self, e: Floats) -> Floats:
        """Generalised inverse of the Hessian of light cells e."""
        w, V = np.linalg.eigh(self.R.T @ (e[:, None] * self.R))
        on = w > NULL * max(w.max(initial=0.0), 5e-324)
        return np.asarray((V[:, on] / w[on]) @ V[:, on].T)

    def fit(self) -> Floats:
        """Newton on the light cells alone, in their own units."""
        y = np.zeros(self.N.shape[1])
        for _ in range(60):
            e = self.f * np.exp(np.clip(self.R @ y, -LONGEST, LONGEST))
            d = self.inverse(e) @ (self.R.T @ (self.s - e))
            longest = float(np.abs(self.R @ d).max(initial=0.0))
            y += d * min(1.0, 1.0 / longest if longest > 0.0 else 1.0)
            if longest < 1e-15:
                break
        return y

    def transfer(self, pieces: Iterable[Sequence[AnyArray]]) -> float:
        """How much an error of the light cells moves others along these directions."""
        by_light = (self.inverse(self.f) @ self.R.T) * self.f
        return max(
            float(np.abs(self.along(levels) @ by_light).sum(axis=1).max(initial=0.0))
            for levels in pieces
        )

    def error(self, pieces: Iterable[Sequence[AnyArray]]) -> float:
        """What is left in any cell along these directions, rounding included."""
        left = np.abs(self.R.T @ (self.s - self.f))
        longest = 4.0 + math.sqrt(len(self.s))
        left += longest * UNIT * (np.abs(self.R).T @ (self.s + self.f))
        G = self.inverse(self.f)
        return max(
            float((np.abs(self.along(levels) @ G) @ left).max(initial=0.0))
            for levels in pieces
        )


def _weak(p: Problem, f: Floats, margins: Floats) -> _Weak | None:
    heavy = _heavy(p, f, margins)
    if heavy.all():
        return None
    N = _free_directions(p, heavy)
    if N is None or not N.shape[1]:
        return None
    weak = _Weak(p, f, margins, N)
    return weak if len(weak.s) else None


def mend(p: Problem, t: Floats, rank: int | None) -> Floats:
    """Factors whose light cells fit, too."""
    f, margins = p.fitted(t)
    weak = _weak(p, f, margins)
    if weak is None:
        return t
    last = math.inf
    for k in range(ROUNDS):
        weak = _Weak(p, f, margins, weak.N)
        y = weak.fit()
        t = t * np.exp(weak.N @ y)
        f, margins = p.fitted(t)
        # An ordinary step for what the heavy cells say, without the free directions.
        d = weak.without(Eliminated(p, f, rank).solve(p.sums - margins))
        t = t * np.exp(d)
        f, margins = p.fitted(t)
        move = float(np.abs(weak.R @ y).max(initial=0.0))
        move = max(move, float(np.abs(p.of_cells(d)).max()))
        if move < STILL or (move >= last and k > 5):
            break
        last = move
    return t


def _heavy(p: Problem, f: Floats, margins: Floats) -> Bools:
    least = np.min([margins[row] for row in p.level], axis=0)
    return np.asarray(f > HEAVY * least)


def _free_directions(p: Problem, heavy: Bools) -> Floats | None:
    """Basis of the directions that leave the heavy cells as they are; None: too many.

    Directions that leave all cells as they are belong to it; they move nothing.
    """
    levels = [row[heavy] - start for row, start in zip(p.level, p.starts, strict=False)]
    labels, cells = contract(levels, [int(n) for n in p.sizes])
    sizes = [int(label.max()) + 1 for label in labels]
    if sum(sizes) > MOST_CLASSES:
        return None
    _, s, Vt = np.linalg.svd(design(cells, sizes).toarray(), full_matrices=True)
    null = Vt[int((s > 1e-9).sum()) :].T
    ends = np.cumsum([0, *sizes])
    return np.concatenate(
        [null[start + label] for start, label in zip(ends, labels, strict=False)]
    )


# ------------------------------------------------------------------------------ bound
def cell_error(
    p: Problem, t: Floats, rank: int | None, others: Sequence[Sequence[Ints]] = ()
) -> float:
    """Bound on the relative error of fitted cells, rounding included.

    Of the observed cells and ``others``, given by their levels in every group; an
    estimate, without rounding, where the Hessian is too large to be dense.
    """
    f, margins = p.fitted(t)
    rest = p.sums - margins
    pieces: list[Sequence[AnyArray]] = [list(p.level), *others]
    if not is_small(p):
        D = np.where(margins > 0.0, margins, 1.0)
        worst = max(float(np.abs(sum_over(piece, rest / D)).max()) for piece in pieces)
        return worst * math.sqrt(len(D))
    weak = _weak(p, f, margins)
    if weak is None:
        worst = _error_left(p, Eliminated(p, f, rank), rest, pieces)
    else:
        # Heavy cells, in any gauge; what that leaves in light ones moves the others.
        pieces.append([row[weak.light] for row in p.level])
        heavy = Eliminated(p.only(~weak.light), f[~weak.light])
        worst = _error_left(p, heavy, rest, pieces) * (1.0 + weak.transfer(pieces))
        worst += weak.error(pieces)
    return worst / (1.0 - worst) if worst < 0.5 else math.inf


def _error_left(
    p: Problem, E: Eliminated, rest: Floats, pieces: Sequence[Sequence[AnyArray]]
) -> float:
    """First-order error of cells: what convergence has left, and rounding."""
    d = E.solve(rest)
    worst = max(float(np.abs(sum_over(piece, d)).max(initial=0.0)) for piece in pieces)
    return worst + _rounding(p, E, pieces)


def _rounding(p: Problem, E: Eliminated, pieces: Sequence[Sequence[AnyArray]]) -> float:
    """What rounding of the sums can move the cells of the largest leverage by."""
    inverse = Inverse(E)
    longest = max(int(np.bincount(row).max(initial=1)) for row in p.level)
    worst = 0.0
    for levels in pieces:
        if not len(levels[0]):
            continue
        at = int(np.argmax(inverse.log_variance(levels)))
        a = np.zeros(int(p.starts[-1]))
        for row in levels:
            a[row[at]] += 1.0
        worst = max(worst, float(np.abs(E.solve(a)) @ p.sums))
    return (4.0 + math.sqrt(longest)) * UNIT * worst


class Inverse:
    """Variances of logarithms of fitted cells: a generalised inverse of the Hessian."""

    def __init__(self, E: Eliminated) -> None:
        self.E = E
        n = len(E.rest)
        self.G = E.solve_rest(np.eye(n))
        self.shares = E.q.toarray()
        self.Gq = self.shares @ self.G
        self.own = 1.0 / E.d + np.einsum("ij,ij->i", self.Gq, self.shares)
        self.place = np.full(len(E.rest) + len(E.d), -1)
        self.place[E.rest] = np.arange(n)

    def log_variance(self, levels: Sequence[AnyArray]) -> Floats:
        """Variance of the logarithm of cells, per unit of dispersion."""
        start, stop = self.E.own.start, self.E.own.stop
        at = [self.place[row] for row in levels]
        big = next(k for k, row in enumerate(levels) if start <= int(row[0]) < stop)
        i = levels[big] - start
        rest = [row for k, row in enumerate(at) if k != big]
        found: Floats = self.own[i].copy()
        for a, row in enumerate(rest):
            found += self.G[row, row] - 2.0 * self.Gq[i, row]
            for other in rest[a + 1 :]:
                found += 2.0 * self.G[row, other]
        return np.maximum(found, 0.0)
