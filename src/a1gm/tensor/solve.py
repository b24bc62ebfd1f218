"""From a problem to factors: twins merged, two groups, scaling, Newton."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
import scipy.sparse.linalg as spl

from a1gm._base.types import Floats, Ints, Solver
from a1gm._kernel import kernel
from a1gm.tensor.problem import Problem
from a1gm.tensor.reduce import merge_twins, solve_two_groups

PATIENCE = 60  # sweeps that scaling may still need before Newton takes over
LONGEST_STEP = 2.0  # of the logarithm of a cell
CRAWLING = 300  # products of conjugate gradients after which a factorisation is tried
PIVOT = 1e-10  # of its diagonal: smaller pivots are null directions
SHIFT = 1e-12
NEARLY = 1e-8  # a gap from which on steps that no longer help end the search


@dataclass(frozen=True)
class Solved:
    """Factors of all levels, and how they were found.

    ``rank`` is that of the design where positive cells are known to decide all others;
    the factors are in units of 2 to the power of ``exponent``.
    """

    t: Floats
    solver: Solver
    n_iter: int
    gap: float
    cell_error: float | None = None  # None: not known yet
    is_bound: bool = True  # not an estimate
    rank: int | None = None
    exponent: int = 0


def solve(problem: Problem, tol: float, max_iter: int) -> Solved:
    """Factors whose margins are within tol of the sums, as far as max_iter allows."""
    if not len(problem.s):  # all were zeros that are given up
        return Solved(np.zeros(len(problem.sums)), "closed form", 0, 0.0, 0.0)
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
    return Solved(t, solver, n_iter, gap, error, exponent=problem.exponent)


def _iterate(
    p: Problem, tol: float, max_iter: int
) -> tuple[Floats, Solver, int, float | None]:
    t = (p.counts > 0.0).astype(np.float64)
    how = tol, max_iter, PATIENCE, p.threads
    n_iter, margins = kernel.scale_cells(p.level, None, p.starts, p.v, p.sums, t, *how)
    gap = p.gap(margins)
    solver: Solver = "scaling" if gap <= tol else "newton"
    f, _ = p.fitted(t) if gap > tol else (t, None)
    while gap > tol and n_iter < max_iter:
        r = p.sums - margins
        if p.is_small:
            d, used = Eliminated(*p.pairs(f)).solve(r), 1
        else:
            forcing = max(min(0.1, math.sqrt(gap)), 0.1 * tol / gap)
            d, used = _by_products(p, f, margins, r, forcing, max_iter - n_iter)
        n_iter += used
        longest = float(np.abs(d[p.level].sum(axis=0)).max())
        new = t * np.exp(d * min(1.0, LONGEST_STEP / max(longest, LONGEST_STEP)))
        f, margins = p.fitted(new)
        before, gap = gap, p.gap(margins)
        if not gap < math.inf:
            break
        t = new
        if gap < NEARLY and gap > 0.5 * before:
            break
    return t, solver, n_iter, None


def _by_products(
    p: Problem, f: Floats, margins: Floats, r: Floats, forcing: float, most: int
) -> tuple[Floats, int]:
    """A Newton step by conjugate gradients, and how many products it took.

    Where these crawl, as along thin chains, whose fill-in is low, a sparse
    factorisation is their preconditioner.
    """
    root = np.where(margins > 0.0, margins, 1.0) ** -0.5
    n_products = 0

    def times(y: Floats) -> Floats:
        nonlocal n_products
        n_products += 1
        return root * p.times(f, root * y)

    H, b = spl.LinearOperator((len(r),) * 2, times, dtype=np.float64), root * r
    y, unfinished = spl.cg(H, b, rtol=forcing, maxiter=min(most, CRAWLING))
    if unfinished and n_products < most:
        M = _factorised(p, f, root)
        y, _ = spl.cg(H, b, y, rtol=forcing, maxiter=most - n_products, M=M)
    return root * y, n_products


def _factorised(p: Problem, f: Floats, root: Floats) -> Any:
    """The Hessian times roots on both sides, factorised; None where that fails."""
    groups = range(len(p.sizes))
    own = [sp.diags_array(sums) for sums in p.split(p.add(f))]
    blocks = [[own[g] if g == h else p.cross(f, g, h) for h in groups] for g in groups]
    R = sp.diags_array(root)
    H: Any = R @ sp.block_array(blocks) @ R + SHIFT * sp.eye_array(len(root))
    how: Any = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    try:
        lu = spl.splu(H.tocsc(), permc_spec="MMD_AT_PLUS_A", **how)
    except (RuntimeError, MemoryError):
        return None
    return spl.LinearOperator(H.shape, lu.solve, dtype=np.float64)


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
        self.D, self.starts = D, starts
        big = int(np.argmax(np.diff(starts)))
        others = [g for g in range(len(starts) - 1) if g != big]
        self.own = slice(int(starts[big]), int(starts[big + 1]))
        self.rest = np.r_[0 : self.own.start, self.own.stop : int(starts[-1])]
        n_own = int((D[self.own] > 0.0).sum())
        self.d = np.where(D[self.own] > 0.0, D[self.own], 1.0)
        blocks: Any = [np.zeros((len(self.d), 0)), *(cross(big, g) for g in others)]
        is_sparse = any(map(sp.issparse, blocks))
        self.B: Any = sp.hstack(blocks, "csr") if is_sparse else np.hstack(blocks)
        S = np.diag(D[self.rest])
        ends = np.cumsum([0, *(starts[g + 1] - starts[g] for g in others)])
        places = [slice(*pair) for pair in pairwise(ends)]
        for (g, at), (h, to) in combinations(zip(others, places, strict=True), 2):
            S[at, to] = _dense(cross(g, h))
            S[to, at] = S[at, to].T
        roots = self._shares(self.d**-0.5)
        S -= _dense(roots.T @ roots)
        diagonal = D[self.rest]
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
        least = float(self._cholesky.diagonal().min(initial=1.0) ** 2)
        self.least_pivot = least if rank is None or k == wanted else 0.0

    def _shares(self, x: Floats) -> Any:
        is_dense = isinstance(self.B, np.ndarray)
        return x[:, None] * self.B if is_dense else sp.diags_array(x) @ self.B

    @property
    def q(self) -> Any:
        """Shares of the other levels in each of the eliminated ones, sparse."""
        return sp.csr_array(self._shares(1.0 / self.d))

    @cached_property
    def inverse(self) -> Floats:
        """Generalised inverse for the groups that are left."""
        n, at, half = len(self.rest), self._pivots, self._cholesky
        if len(half):
            half = np.tril(sl.lapack.dpotri(half, lower=1)[0])
        found = np.zeros((n, n))
        found[np.ix_(at, at)] = half + np.tril(half, -1).T
        return found * self.scale[:, None] * self.scale

    def solve_rest(self, g: Floats) -> Floats:
        """Solve for the groups that are left; g may have several columns."""
        scale = self.scale if g.ndim == 1 else self.scale[:, None]
        y = np.zeros_like(g)
        z = (scale * g)[self._pivots]
        y[self._pivots] = sl.cho_solve((self._cholesky, True), z, check_finite=False)
        return scale * y

    def solve(self, g: Floats) -> Floats:
        """A solution x of H x = g."""
        x, own = np.empty_like(g), g[self.own]
        x[self.rest] = y = self.solve_rest(g[self.rest] - self.B.T @ (own / self.d))
        x[self.own] = (own - self.B @ y) / self.d
        return x


def _dense(A: Any) -> Floats:
    return A if isinstance(A, np.ndarray) else np.asarray(A.toarray())
