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
from itertools import combinations
from typing import Any, cast

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
import scipy.sparse.linalg as spl

from a1gm._api.fit import FitOptions, fit_rows
from a1gm._base.types import Floats, Ints, Solver
from a1gm._kernel import kernel
from a1gm._rows.sparse import SparseRows
from a1gm.tensor.problem import Problem, design, reach, row_keys

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
MOST_WORK = 1 << 31  # multiplications of an elimination in the design
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
    cell_error: float = math.inf
    is_bound: bool = True  # not an estimate
    rank: int | None = None
    exponent: int = 0


def solve(p: Problem, rank: int | None, tol: float, max_iter: int) -> Solved:
    """Factors whose margins are within tol of the sums, as far as max_iter allows."""
    if not len(p.s):  # all were zeros that are given up
        return Solved(np.zeros(len(p.sums)), "closed form", 0, 0.0, 0.0)
    found = _two_groups(p, tol, max_iter) or _iterate(p, rank, tol, max_iter)
    return replace(found, exponent=p.exponent)


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
    levels = zip(p.split(p.sums), p.split(p.counts), strict=True)
    parts = [sums / sums.sum() * np.count_nonzero(counts) for sums, counts in levels]
    for g, factor in zip(pair, (fit.row_factor, fit.col_factor), strict=False):
        parts[g] = np.nan_to_num(factor[:])
    t = np.concatenate(parts)
    gap = p.gap(p.fitted(t)[1])
    return Solved(t, fit.solver, fit.n_iter, gap, max(fit.cell_error, gap))


def _is_whole(p: Problem, g: int) -> bool:
    """Whether all levels of a group have the same cells, of the same weights."""
    counts = p.split(p.counts)[g]
    counts = counts[counts > 0.0]
    if len(counts) == 1 or p.v is not None or (counts != counts[0]).any():
        return len(counts) == 1
    others = np.delete(p.level, g, axis=0)
    keys = row_keys(others, [p.starts[-1]] * len(others))
    return len(np.unique(keys)) == int(counts[0])


def _iterate(p: Problem, rank: int | None, tol: float, max_iter: int) -> Solved:
    """Scale; where that is slow, take Newton's steps."""
    t, n_iter, _ = p.scale(tol, max_iter)
    f, margins = p.fitted(t)
    gap, patience = p.gap(margins), CRAWLING
    solver: Solver = "scaling" if gap <= tol else "newton"
    while gap > tol and n_iter < max_iter:
        if p.is_small:
            d, used = Eliminated(*p.pairs(f)).solve(p.sums - margins), 1
        else:
            forcing = max(min(0.1, math.sqrt(gap)), 0.1 * tol / gap)
            d, used = _step(p, f, margins, forcing, max_iter - n_iter, patience)
            if used >= patience:
                patience = 0
        n_iter += used
        move = float(np.abs(d[p.level].sum(axis=0)).max())
        new = t * np.exp(d * (LONGEST_STEP / max(move, LONGEST_STEP)))
        of_new = p.fitted(new)
        after, most = p.gap(of_new[1]), 0.5 * gap if gap < NEARLY else math.inf
        if not after < most:
            break
        t, gap, (f, margins) = new, after, of_new
    return _settle(p, Solved(t, solver, n_iter, gap), f, margins, rank, tol)


def _step(
    p: Problem, f: Floats, margins: Floats, forcing: float, most: int, patience: int
) -> tuple[Floats, int]:
    """Newton's step at fitted cells f, and how many products with the Hessian it took.

    By conjugate gradients; where these crawl, as along thin chains, whose fill-in is
    low, by a sparse factorisation after ``patience`` products.
    """
    root = np.where(margins > 0.0, margins, 1.0) ** -0.5
    n_products = 0

    def times(y: Floats) -> Floats:
        nonlocal n_products
        n_products += 1
        found = kernel.multiply_cells(p.level, p.starts, f, root * y, p.threads)
        return np.asarray(root * found)

    b = root * (p.sums - margins)
    H = spl.LinearOperator((len(b),) * 2, times, dtype=np.float64)
    noise = NOISE * float(np.linalg.norm(root * margins))
    y, _ = spl.cg(H, b, rtol=forcing, atol=noise, maxiter=min(most, patience))
    if patience <= n_products < most:
        solve = _factorised(p, f, root)
        for _ in range(REFINED):  # undoes the shift
            y = y + solve(b - times(y))
    return root * y, n_products


def _factorised(p: Problem, f: Floats, root: Floats) -> Callable[[Floats], Floats]:
    """Solver of the Hessian times roots on both sides."""
    A = design(p.of_groups(slice(None)), p.sizes.tolist()) @ sp.diags_array(root)
    H: Any = A.T @ sp.diags_array(f) @ A + SHIFT * sp.eye_array(len(root))
    how: Any = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    solver = spl.splu(H.tocsc(), permc_spec="MMD_AT_PLUS_A", **how)
    return cast("Callable[[Floats], Floats]", solver.solve)


class Eliminated:
    """The Hessian with its largest group eliminated, and a generalised inverse.

    ``D`` are the sums of fitted cells by level, ``cross(g, h)`` those by two groups,
    sparse or not. Null directions are pinned by a Cholesky factorisation with pivoting
    that stops where pivots vanish, or at the rank of the design if it is known.
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
        S = np.diag(D[self.rest])  # of which the lower half is used
        at = {g: slice(*np.searchsorted(self.rest, starts[[g, g + 1]])) for g in others}
        for g, h in combinations(others, 2):
            S[at[h], at[g]] = _dense(cross(h, g))
        roots = self.B * self.d[:, None] ** -0.5
        S -= _dense(roots.T @ roots)
        scale = np.where(D[self.rest] > 0.0, D[self.rest], np.inf) ** -0.5
        S *= scale[:, None] * scale
        c, pivots, found, _ = sl.lapack.dpstrf(S, tol=PIVOT, lower=1)
        wanted = int(found) if rank is None else rank - n_own
        k = min(wanted, int(found))
        self.rank = k + n_own
        least = float(c.diagonal()[:k].min(initial=1.0) ** 2)
        self.least_pivot = least if k == wanted else 0.0
        self._root = np.zeros((k, len(S)))
        half = sl.solve_triangular(c[:k, :k], np.eye(k), lower=True, check_finite=False)
        self._root[:, pivots[:k].astype(np.int64) - 1] = half
        self._root *= scale

    @property
    def q(self) -> Any:
        """Shares of the other levels in each of the eliminated ones, sparse."""
        return sp.csr_array(self.B / self.d[:, None])

    @cached_property
    def inverse(self) -> Floats:
        """Generalised inverse for the groups that are left."""
        return self._root.T @ self._root

    def solve_rest(self, g: Floats) -> Floats:
        """Solve for the groups that are left; g may have several columns."""
        return self._root.T @ (self._root @ g)

    def solve(self, g: Floats) -> Floats:
        """A solution x of H x = g."""
        x, own = np.empty_like(g), g[self.own]
        x[self.rest] = y = self.solve_rest(g[self.rest] - self.B.T @ (own / self.d))
        x[self.own] = (own - self.B @ y) / self.d
        return x


def _dense(A: Any) -> Floats:
    return A if isinstance(A, np.ndarray) else np.asarray(A.toarray())


# --------------------------------------------------------------- errors of the cells
def _settle(
    p: Problem, solved: Solved, f: Floats, margins: Floats, rank: int | None, tol: float
) -> Solved:
    """The same fit with a bound on the error of its cells, mended where cuts are weak.

    An estimate, from the next step, where the Hessian is too large to be dense; also
    where its rank is not known.
    """
    if not p.is_small:
        d, _ = _step(p, f, margins, LOOSE, CRAWLING, CRAWLING)
        move = SAFELY * float(np.abs(d[p.level].sum(axis=0)).max())
        return replace(with_error(solved, move), is_bound=False)
    E = Eliminated(*p.pairs(f), rank)
    rounding = rounding_of(float(p.counts.max()))
    if rank is not None and E.least_pivot < WEAK:
        if len(p.s) * len(p.sums) ** 2 <= MOST_WORK:
            return _mended(p, solved, rank, rounding)
        if E.least_pivot == 0.0:  # of which no bound is known
            return solved
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
        own = _heaviest(A, f, rank)
        K = np.linalg.pinv(A[own])
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


def _heaviest(A: Floats, f: Floats, rank: int) -> list[int]:
    """The heaviest cells whose design rows are independent."""
    found, Q = list[int](), np.zeros((rank, A.shape[1]))
    for cell in np.argsort(-f, kind="stable"):
        k, row = len(found), A[cell]
        if k == rank:
            break
        for _ in range(2):  # once more for what rounding leaves
            row = row - Q[:k].T @ (Q[:k] @ row)
        if (norm := np.linalg.norm(row)) > NULL:
            Q[k] = row / norm
            found.append(int(cell))
    return found
