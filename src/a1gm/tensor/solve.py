"""From a problem to factors: two groups, scaling, Newton; bounds on their cells.

Parts of a table that hang together by tiny cells can have right margins and wrong
cells between them: rounding of large sums hides the small ones. There the cells
themselves are fitted, not their sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
import scipy.sparse.linalg as spl

from a1gm._api.fit import FitOptions, fit_rows
from a1gm._base.types import Floats, Ints, Solver
from a1gm._kernel import kernel
from a1gm._rows.sparse import SparseRows
from a1gm.tensor.problem import Problem, design, reach, row_keys

PATIENCE = 60  # sweeps that scaling may still need before Newton takes over
LONGEST_STEP = 2.0  # of the logarithm of a cell
CRAWLING = 300  # products of conjugate gradients after which a factorisation is tried
PIVOT = 1e-10  # of its diagonal: smaller pivots are null directions
SHIFT = 1e-12
NOISE = 2.0**-51  # share of a sum that is only rounding
REFINED = 3  # rounds of refinement of a shifted factorisation
LOOSE = 1e-3  # share of a residual that an estimate of errors may leave
SAFELY = 4.0  # times as large as found, where errors are an estimate
NEARLY = 1e-8  # a gap from which on steps that no longer help end the search
WEAK = 1e-3  # of its diagonal: a smaller pivot of the Hessian is that of a weak cut
TRUSTED = 1e-8  # a pivot that is not only rounding
MOST_WORK = 1 << 31  # multiplications of an elimination in the design
AT_ONCE = 256  # design rows
ROUNDS = 60
NULL = 1e-9  # combinations of design rows that are only rounding
STILL = 4e-15  # a move of a cell that is only rounding
ALMOST = 1e-6  # a move from which on rounds that no longer help end


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


def solve(p: Problem, tol: float, max_iter: int) -> Solved:
    """Factors whose margins are within tol of the sums, as far as max_iter allows."""
    if not len(p.s):  # all were zeros that are given up
        return Solved(np.zeros(len(p.sums)), "closed form", 0, 0.0, 0.0)
    found = _two_groups(p, tol, max_iter) or _iterate(p, tol, max_iter)
    gap = p.gap(p.fitted(found.t)[1])
    error = None if found.cell_error is None else max(found.cell_error, gap)
    return replace(found, gap=gap, cell_error=error, exponent=p.exponent)


def _two_groups(p: Problem, tol: float, max_iter: int) -> Solved | None:
    """Solve a problem in which all groups but two are whole, by the engine of two ways.

    The factors of a whole group are its sums. None for other problems.
    """
    is_whole = [_is_whole(p, g) for g in range(len(p.sizes))]
    if is_whole.count(False) > 2:
        return None
    pair = np.argsort(is_whole, kind="stable")[:2]
    a, n = p.level[pair[0]] - p.starts[pair[0]], int(p.sizes[pair[0]])
    b, m = np.zeros_like(a), 1
    if len(pair) > 1:
        b, m = p.level[pair[1]] - p.starts[pair[1]], int(p.sizes[pair[1]])
    v = np.ones(len(p.s)) if p.v is None else p.v
    # Cells of one pair of levels are added up, as are their weights.
    S, V = (sp.csr_array((x, (a, b)), (n, m)) for x in (p.s, v))
    ptr, cols = S.indptr.astype(np.int64), S.indices.astype(np.int32)
    table = SparseRows(ptr, cols, S.data, n, m, absent="missing")
    if (V.data == V.data[0]).all():
        table = replace(table, values=S.data / V.data[0])
    else:
        weights = replace(table, values=V.data)
        table = replace(table, weights=weights, exposed=True)
    options = FitOptions("raise", "ignore", tol, max_iter, p.n_threads)
    fit = fit_rows(table, options, policy=None)
    parts = zip(p.split(p.sums), p.split(p.counts), strict=True)
    t = [sums / sums.sum() * np.count_nonzero(counts) for sums, counts in parts]
    for g, factor in zip(pair, (fit.row_factor, fit.col_factor), strict=False):
        t[g] = np.nan_to_num(factor[:])
    return Solved(
        np.concatenate(t), fit.solver, fit.n_iter, fit.certificate, fit.cell_error
    )


def _is_whole(p: Problem, g: int) -> bool:
    """Whether all levels of a group have the same cells, of the same weights."""
    counts = p.split(p.counts)[g]
    counts = counts[counts > 0.0]
    if len(counts) == 1 or p.v is not None or (counts != counts[0]).any():
        return len(counts) == 1
    others = np.delete(p.level, g, axis=0)
    keys = row_keys(others, [p.starts[-1]] * len(others))
    return len(np.unique(keys)) == int(counts[0])


def _iterate(p: Problem, tol: float, max_iter: int) -> Solved:
    t = (p.counts > 0.0).astype(np.float64)
    how = tol, max_iter, PATIENCE, p.threads
    n_iter, margins = kernel.scale_cells(p.level, None, p.starts, p.v, p.sums, t, *how)
    gap = p.gap(margins)
    solver: Solver = "scaling" if gap <= tol else "newton"
    f, _ = p.fitted(t) if gap > tol else (t, None)
    products = _Products(p)
    while gap > tol and n_iter < max_iter:
        if p.is_small:
            d, used = Eliminated(*p.pairs(f)).solve(p.sums - margins), 1
        else:
            forcing = max(min(0.1, math.sqrt(gap)), 0.1 * tol / gap)
            d, used = products.step(f, margins, forcing, max_iter - n_iter)
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
    return Solved(t, solver, n_iter, gap)


class _Products:
    """Newton's steps by products with the Hessian: conjugate gradients.

    Where these crawl, as along thin chains, whose fill-in is low, a sparse
    factorisation takes their place from then on.
    """

    def __init__(self, p: Problem) -> None:
        self._p, self._patience = p, CRAWLING

    def step(
        self, f: Floats, margins: Floats, forcing: float, most: int
    ) -> tuple[Floats, int]:
        """A step at fitted cells f, and how many products it took."""
        p, n_products = self._p, 0
        root = np.where(margins > 0.0, margins, 1.0) ** -0.5

        def times(y: Floats) -> Floats:
            nonlocal n_products
            n_products += 1
            found = kernel.multiply_cells(p.level, p.starts, f, root * y, p.threads)
            return np.asarray(root * found)

        b = root * (p.sums - margins)
        H = spl.LinearOperator((len(b),) * 2, times, dtype=np.float64)
        y, n_first = np.zeros(len(b)), min(most, self._patience)
        if n_first:
            noise = NOISE * float(np.linalg.norm(root * margins))
            y, unfinished = spl.cg(H, b, rtol=forcing, atol=noise, maxiter=n_first)
            if not unfinished or n_products >= most:
                return root * y, n_products
        if (solve := _factorised(p, f, root)) is None:
            self._patience = most
            return root * y, n_products + 1
        self._patience = 0
        for _ in range(REFINED):  # undoes the shift
            y = y + solve(b - times(y))
        return root * y, n_products


def _factorised(p: Problem, f: Floats, root: Floats) -> Any:
    """Solver of the Hessian times roots on both sides; None where that fails."""
    groups = range(len(p.sizes))
    own = [sp.diags_array(sums) for sums in p.split(p.add(f))]
    blocks = [[own[g] if g == h else p.cross(f, g, h) for h in groups] for g in groups]
    R = sp.diags_array(root)
    H: Any = R @ sp.block_array(blocks) @ R + SHIFT * sp.eye_array(len(root))
    how: Any = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    try:
        return spl.splu(H.tocsc(), permc_spec="MMD_AT_PLUS_A", **how).solve
    except (RuntimeError, MemoryError):
        return None


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


# --------------------------------------------------------------- errors of the cells
def settle(p: Problem, solved: Solved, rank: int | None, tol: float) -> Solved:
    """The same fit with a bound on the error of its cells, mended where cuts are weak.

    An estimate where the Hessian is too large to be dense, or its rank is not known.
    """
    if solved.cell_error is not None:
        return solved
    f, margins = p.fitted(solved.t)
    if not p.is_small:
        return _estimated(p, solved, f, margins)
    E = Eliminated(*p.pairs(f), rank)
    rounding = rounding_of(float(p.counts.max()))
    if rank is not None and E.least_pivot < WEAK:
        if len(p.s) * len(p.sums) ** 2 <= MOST_WORK:
            return _mended(p, solved, rank, rounding)
        if E.least_pivot < TRUSTED:
            return replace(solved, cell_error=math.inf)
    t = solved.t * np.exp(E.solve(p.sums - margins))
    _, new = p.fitted(t)
    if p.gap(new) <= max(solved.gap, tol):
        solved, margins = replace(solved, t=t, gap=p.gap(new)), new
    worst = error_left(E, p.sums - margins, rounding)
    return replace(with_error(solved, worst), is_bound=rank is not None)


def with_error(solved: Solved, worst: float) -> Solved:
    """The same fit with the error of its cells, by that of their logarithms."""
    error = worst / (1.0 - worst) if worst < 0.5 else math.inf
    return replace(solved, cell_error=max(error, solved.gap))


def estimate(solved: Solved, sums: Floats, margins: Floats, starts: Ints) -> Solved:
    """The same fit with an estimate of the error of cells of about the same size."""
    D = np.where(margins > 0.0, margins, 1.0)
    worst = reach((sums - margins) / D, starts) * math.sqrt(len(D))
    return replace(solved, cell_error=max(worst, solved.gap), is_bound=False)


def _estimated(p: Problem, solved: Solved, f: Floats, margins: Floats) -> Solved:
    """The same fit with an estimate of the error of its cells: the next step."""
    d, _ = _Products(p).step(f, margins, LOOSE, CRAWLING)
    move = SAFELY * float(np.abs(d[p.level].sum(axis=0)).max())
    return replace(with_error(solved, move), is_bound=False)


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


@np.errstate(under="ignore")
def _mended(p: Problem, solved: Solved, rank: int, rounding: float) -> Solved:
    """Factors whose light cells fit, too.

    The heaviest cells that can be chosen freely take the place of the factors. What
    any other cell takes from them are heavier cells only, so that the gradient of one
    of them is a sum over lighter cells: no large number hides a small one.
    """
    A = design(p.of_groups(slice(None)), p.sizes.tolist()).toarray().astype(np.float64)
    t, last = solved.t, math.inf
    for k in range(ROUNDS):
        f, margins = p.fitted(t)
        f = np.maximum(f, 1e-300)
        own, Q = _heaviest(A, f, rank)
        K = Q.T @ np.linalg.inv(A[own] @ Q.T)
        M = A @ K
        M = np.where(np.abs(M - np.rint(M)) < NULL, np.rint(M), M)
        scale = f[own] ** -0.5
        H = (M.T * f) @ M * scale[:, None] * scale
        try:
            inverse = np.linalg.inv(H) * scale[:, None] * scale
        except np.linalg.LinAlgError:  # sizes beyond any scale
            return replace(solved, cell_error=math.inf)
        y = inverse @ (M.T @ (p.s - f))
        move = float(np.abs(M @ y).max())
        is_still = move < STILL or (move < ALMOST and move >= last)
        if is_still or k == ROUNDS - 1:
            break
        t, last = t * np.exp(K @ (y / max(1.0, move))), move
    left = np.abs(y) + np.abs(inverse) @ (rounding * (np.abs(M).T @ (p.s + f)))
    solved = replace(solved, t=t, gap=p.gap(margins))
    return with_error(solved, reach(np.abs(K) @ left, p.starts))


def _heaviest(A: Floats, f: Floats, rank: int) -> tuple[list[int], Floats]:
    """The heaviest cells whose design rows are independent, and what they span.

    As orthonormal rows: those of the first cells span what these do.
    """
    order, found = np.argsort(-f, kind="stable"), list[int]()
    Q = np.zeros((rank, A.shape[1]))
    for start in range(0, len(order), AT_ONCE):
        cells, k = order[start : start + AT_ONCE], len(found)
        W = A[cells]
        for _ in range(2):  # once more for what rounding leaves
            W = W - (W @ Q[:k].T) @ Q[:k]
        while k < rank and (norm := np.linalg.norm(W, axis=1)).max() > NULL:
            at = int((norm > NULL).argmax())
            Q[k] = W[at] / norm[at]
            W = W - np.outer(W @ Q[k], Q[k])
            found.append(int(cells[at]))
            k += 1
    return found, Q
