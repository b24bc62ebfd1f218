"""From a problem to factors: twins merged, two groups, scaling, Newton."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
import scipy.sparse.linalg as spl

from a1gm._base.types import AnyArray, Floats, Ints, Solver
from a1gm._kernel import kernel
from a1gm.tensor.problem import Problem
from a1gm.tensor.reduce import merge_twins, solve_two_groups

PATIENCE = 60  # sweeps that scaling may still need before Newton takes over
MOST_DENSE = 700  # levels beside the largest group up to which Newton is dense
LONGEST_STEP = 2.0  # of the logarithm of a cell
CRAWLING = 300  # products of conjugate gradients after which a factorisation is tried
PIVOT = 1e-10  # of its diagonal: smaller pivots are null directions
REFINED = 5  # rounds of refinement of a shifted factorisation
SHIFT = 1e-12
NEARLY = 1e-8  # a gap from which on steps that no longer help end the search


@dataclass(frozen=True)
class Solved:
    """Factors of all levels, and how they were found."""

    t: Floats
    solver: Solver
    n_iter: int
    gap: float
    cell_error: float | None = None  # None: not known yet
    is_bound: bool = True  # not an estimate


def solve(problem: Problem, tol: float, max_iter: int) -> Solved:
    """Factors whose margins are within tol of the sums, as far as max_iter allows."""
    if problem.n_cells == 0:  # all were zeros that are given up
        return Solved(np.zeros(len(problem.has_cells)), "closed form", 0, 0.0, 0.0)
    merged = merge_twins(problem)
    small = problem if merged is None else merged.problem
    t, solver, n_iter, error = solve_two_groups(small, tol, max_iter) or _iterate(
        small, tol, max_iter
    )
    if merged is not None:
        t = merged.expand(t)
    _, margins = problem.fitted(t)
    gap = problem.gap(margins)
    error = None if error is None else max(error, gap)
    return Solved(t, solver, n_iter, gap, error)


def _iterate(
    p: Problem, tol: float, max_iter: int
) -> tuple[Floats, Solver, int, float | None]:
    t = np.where(p.has_cells, 1.0, 0.0)
    n_iter, margins = kernel.scale_cells(
        p.level, None, p.starts, p.v, p.sums, t, tol, max_iter, PATIENCE, p.threads
    )
    gap = p.gap(margins)
    if gap <= tol:
        return t, "scaling", n_iter, None
    f, _ = p.fitted(t)
    steps = _Steps(p, tol, max_iter - n_iter)
    while gap > tol and steps.left > 0:
        d = steps.step(f, margins, gap)
        longest = float(np.abs(p.of_cells(d)).max(initial=0.0))
        size = min(1.0, LONGEST_STEP / longest) if longest > 0.0 else 1.0
        new = t * np.exp(size * d)
        f, margins = p.fitted(new)
        before, gap = gap, p.gap(margins)
        if not gap < math.inf:
            break
        t = new
        if gap < NEARLY and gap > 0.5 * before:
            break
    return t, "newton", max_iter - max(steps.left, 0), None


class _Steps:
    """Newton steps within a budget: a product of conjugate gradients counts as one."""

    def __init__(self, problem: Problem, tol: float, left: int) -> None:
        self.p, self.tol, self.left = problem, tol, left
        sizes = problem.sizes
        self.is_dense = int(sizes.sum() - sizes.max()) <= MOST_DENSE
        self.may_factorise = True

    def step(self, f: Floats, margins: Floats, gap: float) -> Floats:
        """The logarithms by which factors are off, to first order."""
        self.left -= 1
        r = self.p.sums - margins
        if self.is_dense:
            return Eliminated(*self.p.pairs(f)).solve(r)
        return self._by_products(f, margins, r, gap)

    def _by_products(self, f: Floats, margins: Floats, r: Floats, gap: float) -> Floats:
        """Conjugate gradients on the singular, consistent system."""
        D = np.where(margins > 0.0, margins, 1.0)
        x, z = np.zeros_like(r), r / D
        d, rz = z.copy(), float(r @ z)
        enough = max(min(0.1, math.sqrt(gap)) * gap, 0.1 * self.tol)
        for n in range(self.left + 1):
            if n == CRAWLING and self.may_factorise:
                found = self._by_factorisation(f, r + 0.0, x)
                if found is not None:
                    return found
            y = self.p.times(f, d)
            self.left -= 1
            curvature = float(d @ y)
            if curvature <= 0.0:
                break
            a = rz / curvature
            x += a * d
            r = r - a * y
            z = r / D
            if float(np.abs(z).max()) <= enough:
                break
            rz, old = float(r @ z), rz
            d = z + (rz / old) * d
        return x

    def _by_factorisation(self, f: Floats, r: Floats, x: Floats) -> Floats | None:
        """A sparse factorisation, for long thin chains, whose fill-in is low."""
        H = hessian(self.p, f)
        D = H.diagonal()
        D = np.where(D > 0.0, D, 1.0)
        try:
            lu = spl.splu(
                (H + sp.diags(SHIFT * D)).tocsc(),
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )
        except (RuntimeError, MemoryError):
            self.may_factorise = False
            return None
        more = np.zeros_like(r)
        for _ in range(REFINED):
            left = r - H @ more
            if float(np.abs(left / D).max()) <= 0.1 * self.tol:
                break
            more += lu.solve(left)
        return x + more


def hessian(p: Problem, f: Floats) -> Any:
    """The Hessian at fitted cells, sparse: their sums by every pair of groups."""
    groups = range(len(p.sizes))
    own = [sp.diags_array(sums) for sums in p.split(p.add(f))]
    return sp.block_array(
        [[own[g] if g == h else p.cross(f, g, h) for h in groups] for g in groups],
        format="csc",
    )


class Eliminated:
    """The Hessian with its largest group eliminated, and a generalised inverse.

    ``D`` are the sums of fitted cells by level, ``cross(g, h)`` those by two groups,
    sparse or not. Null directions are pinned by a Cholesky factorisation with pivoting
    that stops at the rank: at that of the design if it is known, else where pivots
    vanish.
    """

    def __init__(
        self,
        D: Floats,
        cross: Callable[[int, int], Any],
        starts: Ints,
        rank: int | None = None,
    ) -> None:
        big = int(np.argmax(np.diff(starts)))
        others = [g for g in range(len(starts) - 1) if g != big]
        self.own = slice(int(starts[big]), int(starts[big + 1]))
        self.rest = np.r_[0 : self.own.start, self.own.stop : int(starts[-1])]
        self.D, d = D, D[self.own]
        n_own = int((d > 0.0).sum())
        self.d = np.where(d > 0.0, d, 1.0)
        B: Any = np.zeros((len(d), 0))
        if others:
            blocks = [cross(big, g) for g in others]
            is_sparse = any(map(sp.issparse, blocks))
            B = sp.hstack(blocks, format="csr") if is_sparse else np.hstack(blocks)
        self._B = B
        S = np.diag(D[self.rest])
        ends = np.cumsum([0] + [int(starts[g + 1] - starts[g]) for g in others])
        places = [slice(*pair) for pair in pairwise(ends)]
        for (g, at), (h, to) in combinations(zip(others, places, strict=True), 2):
            S[at, to] = _dense(cross(g, h))
            S[to, at] = S[at, to].T
        roots = _by_row(self.d**-0.5, B)
        S -= _dense(roots.T @ roots)
        diagonal = self.D[self.rest]
        self.scale = np.where(diagonal > 0.0, diagonal, np.inf) ** -0.5
        S *= self.scale[:, None]
        S *= self.scale
        wanted = len(S) if rank is None else rank - n_own
        c, pivots, found, _ = sl.lapack.dpstrf(
            S, tol=PIVOT if rank is None else 0.0, lower=1
        )
        k = min(wanted, int(found))
        self.rank = k + n_own
        self._cholesky = np.tril(c)[:k, :k]
        self._pivots: Ints = pivots[:k].astype(np.int64) - 1
        found_all = rank is None or k == wanted
        least = self._cholesky.diagonal().min(initial=1.0) ** 2
        self.least_pivot = float(least) if found_all else 0.0

    @property
    def q(self) -> Any:
        """Shares of the other levels in each of the eliminated ones, sparse."""
        return sp.csr_array(_by_row(1.0 / self.d, self._B))

    @cached_property
    def inverse(self) -> Floats:
        """Generalised inverse for the groups that are left."""
        n, at = len(self.rest), self._pivots
        found = np.zeros((n, n))
        found[np.ix_(at, at)] = self._half + np.tril(self._half, -1).T
        return found * self.scale[:, None] * self.scale

    @cached_property
    def _half(self) -> Floats:
        """The lower half of the inverse of the pivots, in their order and units."""
        found: Floats = self._cholesky
        if len(found):
            found = np.tril(sl.lapack.dpotri(found, lower=1)[0])
        return found

    @property
    def sensitivity(self) -> Floats:
        """By how much a share of every sum moves the groups that are left, at most."""
        at, half = self._pivots, np.abs(self._half)
        scale = self.scale[at]
        shares = self.D[self.rest][at] * scale
        moved = half @ shares + shares @ half - half.diagonal() * shares
        found = np.zeros(len(self.D))
        found[self.rest[at]] = scale * moved
        return found

    def solve_rest(self, g: Floats) -> Floats:
        """Solve for the groups that are left; g may have several columns."""
        scale = self.scale if g.ndim == 1 else self.scale[:, None]
        y = np.zeros_like(g)
        z = (scale * g)[self._pivots]
        y[self._pivots] = sl.cho_solve((self._cholesky, True), z, check_finite=False)
        return scale * y

    def solve(self, g: Floats) -> Floats:
        """A solution x of H x = g."""
        x = np.empty_like(g)
        own = g[self.own]
        d = self.d if g.ndim == 1 else self.d[:, None]
        y = self.solve_rest(g[self.rest] - self._B.T @ (own / d))
        x[self.rest] = y
        x[self.own] = (own - self._B @ y) / d
        return x


def _by_row(x: Floats, A: Any) -> Any:
    return x[:, None] * A if isinstance(A, np.ndarray) else sp.diags_array(x) @ A


def _dense(A: Any) -> Floats:
    return np.asarray(A.toarray() if hasattr(A, "toarray") else A)


class Inverse:
    """Variances of logarithms of fitted cells: a generalised inverse of the Hessian."""

    def __init__(self, E: Eliminated) -> None:
        self.E = E
        n = len(E.rest)
        self.G = E.inverse
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
