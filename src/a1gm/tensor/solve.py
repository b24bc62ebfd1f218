"""From a table to factors: two groups, scaling, Newton; bounds on their cells.

Parts of a table that hang together by tiny cells can have right margins and wrong
cells between them: rounding of large sums hides the small ones. There the cells
themselves are fitted, not their sums.

Large arrays are not listed. Where every margin is a set of modes, the cells are scaled
as they lie, missing ones with weight 0. Rank 1 needs the bits of the holes alone: the
pass of two ways over the fibres along the last mode gives their sums, those of the last
mode's levels, and one bit per cell. In a sweep, the bits turn the last factor into a
number per fibre, the other modes are scaled on the table of fibres, and the bits turn
the fibres back into sums of the last mode's levels. All of it is proved, or left to the
list of cells: that positive cells decide all others, the certificate, the bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
import scipy.sparse.linalg as spl

from a1gm._api.fit import FitOptions, fit_rows
from a1gm._base.types import Floats, Solver
from a1gm._fit.place import FINITE
from a1gm._kernel import kernel, threads_for
from a1gm._kernel.network import rounding_of_sums
from a1gm._rows.read import AnyRows
from a1gm._rows.rows import table_of
from a1gm._rows.sparse import read_sparse
from a1gm._solve.cell_error import CELLS_RIGHT, cell_error
from a1gm.exceptions import NotRepresentableError
from a1gm.tensor.known import Known, n_parameters, whole_rank
from a1gm.tensor.problem import (
    MOST_DENSE,
    PATIENCE,
    Levels,
    Problem,
    gap_of,
    reach,
    row_keys,
)
from a1gm.tensor.read import Cells

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
MOST_WORK = 3 << 29  # multiplications of an elimination in the design
AT_ONCE = 256  # design rows
ROUNDS = 60
NULL = 1e-9  # combinations of design rows that are only rounding
STILL = 4e-15  # a move of a cell that is only rounding
ALMOST = 1e-6  # a move from which on rounds that no longer help end
EVEN = 1e5  # largest ratio of cells of about the same size
INNER = 2  # sweeps over the table of fibres for one over the bits
PLAIN = 1e80  # sums up to this, and from its inverse on, need no other unit


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

    def off_by(self, worst: float, *, is_bound: bool = True) -> Solved:
        """The same fit with the error of its cells, by that of their logarithms."""
        error = max(cell_error(worst), self.gap)
        return replace(self, cell_error=error, is_bound=is_bound)


def solve(p: Problem, rank: int | None, options: FitOptions) -> Solved:
    """Factors whose margins are within tol of the sums, as far as max_iter allows."""
    if not len(p.s):  # all were zeros that are given up
        return Solved(np.zeros(len(p.sums)), "closed form", 0, 0.0, 0.0)
    found = _two_groups(p, options)
    if found is None:
        rank = rank_of(p) if rank is None and p.is_small else rank
        found = _iterate(p, rank, options)
    if not (found.gap < math.inf and np.isfinite(found.t).all()):
        raise NotRepresentableError(
            "The factors of this table lie further apart than float64 allows. Multiply "
            "levels by powers of ten that bring its cells closer together."
        )
    return replace(found, exponent=p.exponent)


def rank_of(p: Problem) -> int:
    """Rank of a design: that of the Hessian if all cells are 1: no cut is weak."""
    return Eliminated(p, np.ones(len(p.s)), p.counts).rank


def _two_way(table: AnyRows, options: FitOptions) -> Solved:
    """The optimum of a table of two ways, by their engine."""
    options = replace(options, on_undetermined="ignore")
    fit = fit_rows(table, options, policy=None)
    t = np.concatenate([fit.row_factor[:], fit.col_factor])
    error = max(fit.cell_error, fit.certificate)
    return Solved(t, fit.solver, fit.n_iter, fit.certificate, error)


def _two_groups(p: Problem, options: FitOptions) -> Solved | None:
    """Solve a problem in which all groups but two are whole; None for others.

    The factors of a whole group are its sums.
    """
    is_whole = [_is_whole(p, g) for g in range(len(p.sizes))]
    if len(is_whole) == 1 or is_whole.count(False) > 2:
        return None
    pair = np.argsort(is_whole, kind="stable")[:2]
    v, at = np.ones(len(p.s)) if p.v is None else p.v, p.of_groups(slice(None))
    # Cells of one pair of levels are added up, as are their weights.
    a, b = (at[g] for g in pair)
    n, m = map(int, p.sizes[pair])
    S, V = (sp.csr_array((x, (a, b)), (n, m)) for x in (p.s, v))
    table = read_sparse(S, "missing", "T")
    if (V.data == V.data[0]).all():
        table = table.with_values(S.data / V.data[0])
    else:
        table = replace(table, weights=table.with_values(V.data), exposed=True)
    found = _two_way(table, options)
    levels = zip(p.split(p.sums), p.split(p.counts), strict=True)
    parts = [sums / sums.sum() * np.count_nonzero(counts) for sums, counts in levels]
    parts[pair[0]], parts[pair[1]] = np.split(np.nan_to_num(found.t), [n])
    t = np.concatenate(parts)
    gap = gap_of(p.fitted(t)[1], p.sums)
    return replace(found, t=t, gap=gap, cell_error=max(found.cell_error, gap))


def _is_whole(p: Problem, g: int) -> bool:
    """Whether all levels of a group have the same cells, of the same weights."""
    counts = p.split(p.counts)[g]
    n, most = np.count_nonzero(counts), counts.max()
    if n == 1 or p.v is not None or n * most > len(p.s):
        return bool(n == 1)
    others = np.delete(p.level, g, axis=0)
    keys = row_keys(others, [p.starts[-1]] * len(others))
    return bool(len(np.unique(keys)) == most)


@np.errstate(over="ignore", invalid="ignore")  # such steps are not taken
def _iterate(p: Problem, rank: int | None, options: FitOptions) -> Solved:
    """Scale; where that is slow, take Newton's steps."""
    tol, max_iter = options.certificate, options.max_iter
    t, n_iter, _ = p.scale(tol, max_iter)
    f, margins = p.fitted(t)
    gap = gap_of(margins, p.sums)
    solver: Solver = "scaling" if gap <= tol else "newton"
    while gap > tol and n_iter < max_iter:
        d = _step(p, f, margins, max(min(0.1, math.sqrt(gap)), 0.1 * tol / gap))
        n_iter += 1
        move = float(np.abs(d[p.level].sum(axis=0)).max())
        new = t * np.exp(d * (LONGEST_STEP / max(move, LONGEST_STEP)))
        of_new = p.fitted(new)
        after, most = gap_of(of_new[1], p.sums), 0.5 * gap if gap < NEARLY else math.inf
        if not after < most:
            break
        t, gap, (f, margins) = new, after, of_new
    return _settle(p, Solved(t, solver, n_iter, gap), f, margins, rank, tol)


def _step(p: Problem, f: Floats, margins: Floats, forcing: float) -> Floats:
    """Newton's step at fitted cells f.

    Where the Hessian is too large to be dense, conjugate gradients leave a share of
    ``forcing`` of the residual; where they crawl, as along thin chains, whose fill-in
    is low, a sparse factorisation takes over.
    """
    if p.is_small:
        return Eliminated(p, f, margins).solve(p.sums - margins)
    root = np.where(margins > 0.0, margins, 1.0) ** -0.5

    def times(y: Floats) -> Floats:
        found = kernel.multiply_cells(p.level, p.starts, f, root * y, p.threads)
        return np.asarray(root * found)

    b = root * (p.sums - margins)
    H = spl.LinearOperator((len(b),) * 2, times, dtype=np.float64)
    noise = NOISE * float(np.linalg.norm(root * margins))
    y, is_left = spl.cg(H, b, rtol=forcing, atol=noise, maxiter=CRAWLING)
    if is_left:
        A: Any = p.design @ sp.diags_array(root)
        shifted: Any = A.T @ sp.diags_array(f) @ A + SHIFT * sp.eye_array(len(b))
        how: Any = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
        factors = spl.splu(shifted.tocsc(), permc_spec="MMD_AT_PLUS_A", **how)
        for _ in range(REFINED):  # undoes the shift
            y = y + factors.solve(b - times(y))
    return np.asarray(root * y)


class Eliminated:
    """The Hessian with its largest group eliminated, and a generalised inverse.

    ``D`` are the sums of the fitted cells f by level, ``inverse`` is that of the groups
    that are left. Null directions are pinned by a Cholesky factorisation with pivoting
    that stops where pivots vanish, or at the rank of the design if it is known.
    """

    def __init__(self, p: Any, f: Any, D: Floats, rank: int | None = None) -> None:
        self.D, self.starts = D, p.starts
        big = int(np.diff(p.starts).argmax())
        others = [g for g in range(len(p.starts) - 1) if g != big]
        self.own = slice(int(p.starts[big]), int(p.starts[big + 1]))
        self.rest = np.delete(np.arange(len(D)), self.own)
        n_own = int(np.count_nonzero(D[self.own]))
        self.d = np.where(D[self.own] > 0.0, D[self.own], 1.0)
        blocks: Any = [np.zeros((len(self.d), 0))]
        blocks += [p.cross(f, big, g) for g in others]
        is_sparse = any(map(sp.issparse, blocks))
        self.B: Any = sp.hstack(blocks, "csr") if is_sparse else np.hstack(blocks)
        S = np.diag(D[self.rest])  # of which the lower half is used
        ends = np.cumsum([0, *np.delete(np.diff(p.starts), big)])
        at = {g: slice(*ends[k : k + 2]) for k, g in enumerate(others)}
        for g, h in combinations(others, 2):
            S[at[h], at[g]] = _dense(p.cross(f, h, g))
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
        self.inverse, kept = np.zeros_like(S), pivots[:k].astype(np.int64) - 1
        self.inverse[np.ix_(kept, kept)] = sl.cho_solve((c[:k, :k], True), np.eye(k))
        self.inverse *= scale[:, None] * scale

    @property
    def q(self) -> Any:
        """Shares of the other levels in each of the eliminated ones, sparse."""
        return sp.csr_array(self.B / self.d[:, None])

    def solve(self, g: Floats) -> Floats:
        """A solution x of H x = g."""
        x, own = np.empty_like(g), g[self.own]
        x[self.rest] = y = self.inverse @ (g[self.rest] - self.B.T @ (own / self.d))
        x[self.own] = (own - self.B @ y) / self.d
        return x

    def error_left(self, rest: Floats, longest: int) -> float:
        """First-order error of logarithms of cells: what convergence left, rounding.

        Sums by level, of up to ``longest`` cells, are known up to a share. They move
        the groups that were not eliminated by up to |G| D, twice: also by way of the
        other group, which then is moved by as much as they are.
        """
        moved = np.zeros(len(rest))
        moved[self.rest] = np.abs(self.inverse) @ self.D[self.rest]
        most = 1.0 + 4.0 * reach(moved, self.starts)
        return reach(self.solve(rest), self.starts) + rounding_of_sums(longest) * most


def _dense(A: Any) -> Floats:
    return A if isinstance(A, np.ndarray) else np.asarray(A.toarray())


# --------------------------------------------------------------- errors of the cells
def _settle(
    p: Problem, solved: Solved, f: Floats, margins: Floats, rank: int | None, tol: float
) -> Solved:
    """The same fit with a bound on the error of its cells, mended where cuts are weak.

    An estimate, from the next step, where the Hessian is too large to be dense, unless
    light cells alone link parts of the table.
    """
    if not p.is_small:
        if _has_weak_cut(p, f, margins):
            return replace(solved, is_bound=False)
        d = _step(p, f, margins, LOOSE)
        move = SAFELY * float(np.abs(d[p.level].sum(axis=0)).max())
        move += rounding_of_sums(int(p.counts.max())) * len(d)  # along a path of levels
        return solved.off_by(move, is_bound=False)
    assert rank is not None
    E, longest = Eliminated(p, f, margins, rank), int(p.counts.max())
    if E.least_pivot < WEAK:
        if len(p.s) * len(p.sums) ** 2 <= MOST_WORK:
            return _mended(p, solved, rank, rounding_of_sums(longest))
        if E.least_pivot == 0.0:  # of which no bound is known
            return solved
    t = solved.t * np.exp(E.solve(p.sums - margins))
    _, new = p.fitted(t)
    if gap_of(new, p.sums) <= max(solved.gap, tol):
        solved, margins = replace(solved, t=t, gap=gap_of(new, p.sums)), new
    return solved.off_by(E.error_left(p.sums - margins, longest))


def _has_weak_cut(p: Problem, f: Floats, margins: Floats) -> bool:
    """Whether cells far below the mean of all their levels tie what others do not."""
    means = margins / np.maximum(p.counts, 1.0)
    heavy = f >= WEAK * means[p.level].min(axis=0)
    if heavy.all():
        return False
    others = p.only(heavy)
    known = Known(replace(others, s=np.ones(len(others.s))), ())
    return bool((known.fates(p.of_groups(~heavy)) != FINITE).any())


@np.errstate(under="ignore")
def _mended(p: Problem, solved: Solved, rank: int, rounding: float) -> Solved:
    """Factors whose light cells fit, too.

    The heaviest cells that can be chosen freely take the place of the factors. What
    any other cell takes from them are heavier cells only, so that the gradient of one
    of them is a sum over lighter cells: no large number hides a small one.
    """
    A, t, last = p.design.toarray().astype(np.float64), solved.t, math.inf
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
    solved = replace(solved, t=t, gap=gap_of(margins, p.sums))
    return solved.off_by(reach(np.abs(K) @ left, p.starts))


def _heaviest(A: Floats, f: Floats, rank: int) -> list[int]:
    """The heaviest cells whose design rows are independent."""
    order, found = np.argsort(-f, kind="stable"), list[int]()
    Q = np.zeros((rank, A.shape[1]))  # orthonormal, of those that were found
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
        if k == rank:
            break
    return found


# --------------------------------------------------------------------- large arrays
def fit_array(
    cells: Cells, levels: Sequence[Levels], options: FitOptions
) -> Solved | None:
    """The optimum of an array; None where the list of its cells decides.

    That is where the list gets a bound: margins of single modes beside others may be
    whole, two margins are a table of two ways, and few levels a dense Hessian.
    """
    groups, sizes = [own.margin for own in levels], [own.size for own in levels]
    is_rank_1 = 1 < len(cells.shape) == len(groups) and max(map(len, groups)) == 1
    is_small = sum(sizes) - max(sizes) <= MOST_DENSE
    if not is_rank_1 and (is_small or len(groups) == 2 or min(map(len, groups)) == 1):
        return None
    if is_rank_1 and (fibres := _whole_fibres(cells)) is not None:
        small = Cells(None, fibres, fibres.shape, n_threads=cells.n_threads)
        if found := fit_array(small, levels[:-1], options):
            last = cells.fibres.col_sums / cells.fibres.col_sums.sum()
            t = np.concatenate([found.t, last])
            found = replace(found, t=t, rank=n_parameters(groups, cells.shape))
        return found
    rank, T = whole_rank(cells, groups), cells.numbers
    if rank is None:
        return None
    # Weak cuts of large tables are left to the list.
    if not is_small and np.nanmax(T) > EVEN * T.min(where=T > 0.0, initial=np.inf):
        return None
    if len(cells.shape) == 2:
        solved = _two_way(table_of(T), options)
    else:
        p: Any = _Bits(cells) if is_rank_1 else _fibres(cells, levels)
        if not (p.sums.min() > 1.0 / PLAIN and p.sums.max() < PLAIN):
            return None
        t, n_iter, margins = p.scale(options.certificate, options.max_iter)
        solved = Solved(t, "scaling", n_iter, gap_of(margins, p.sums))
        rest = p.sums - margins
        if solved.gap > options.certificate:
            return None
        if not is_small:
            worst = reach(rest / margins, p.starts) * math.sqrt(len(margins))
            solved = solved.off_by(worst, is_bound=False)
        else:
            E = Eliminated(p, p.found, margins, rank)
            if E.least_pivot < WEAK:
                return None
            longest = T.size // min(sizes)
            solved = solved.off_by(E.error_left(rest, longest))
    return replace(solved, rank=rank) if solved.cell_error <= CELLS_RIGHT else None


def _whole_fibres(cells: Cells) -> Floats | None:
    """Sums of the fibres along the last mode, if no hole touches it."""
    seen, (*outer, length) = cells.fibres, cells.shape
    if len(outer) < 2 or seen.pattern_of_row is None:
        return None
    n = np.bitwise_count(seen.keys).sum(axis=1)
    if (n % length).any():
        return None
    sums = np.where(n[seen.pattern_of_row] > 0, seen.sum_of_row, np.nan)
    return sums.reshape(outer)


def _fibres(cells: Cells, levels: Sequence[Levels]) -> Problem:
    """The problem of all cells of an array, of weight 0 where they are missing."""
    n = len(cells.shape)
    first = np.indices((*cells.shape[:-1], 1), np.int64).reshape(n, -1)
    step = np.array([int(n - 1 in own.margin) for own in levels])
    seen = ~np.isnan(cells.numbers)
    s, v = np.where(seen, cells.numbers, 0.0).ravel(), seen.ravel().astype(np.float64)
    return Problem.of(levels, first, s=s, v=v, step=step, n_threads=cells.n_threads)


class _Bits:
    """Rank 1 of an array: its fibres along the last mode, their sums and their bits."""

    def __init__(self, cells: Cells) -> None:
        seen, (*self.outer, self.length) = cells.fibres, cells.shape
        of_row = seen.pattern_of_row
        self.bits = seen.keys if of_row is None else seen.keys[of_row]
        self.threads = threads_for(cells.numbers.size, cells.n_threads)
        self.starts = np.cumsum([0, *cells.shape])
        fibres = seen.sum_of_row.reshape(self.outer)
        self.sums = np.concatenate([*_margins(fibres), seen.col_sums])

    def _reach(self, last: Floats) -> Floats:
        """Sums of factors of the last mode over the observed cells of each fibre."""
        found: Floats = kernel.reach_of_bits(self.bits, last, self.threads)
        return found.reshape(self.outer)

    def _collect(self, weights: Floats, n: int, inner: int) -> Floats:
        """Sums of weights by the last mode's levels and n levels of another mode."""
        found: Floats = kernel.collect_bits(
            self.bits, np.ravel(weights), self.length, n, inner, self.threads
        )
        return found.reshape(n, -1)

    def scale(self, tol: float, max_iter: int) -> tuple[Floats, int, Floats]:
        """Factors, sweeps that they took, and the sums of fitted cells by level."""
        sums = np.split(self.sums, self.starts[1:-1])
        t = [own / own.sum() for own in sums]
        fitted = self._reach(t[-1]) * reduce(np.multiply.outer, t[:-1])
        for n_sweeps in range(1, min(max_iter, PATIENCE) + 1):  # noqa: B007
            for mode in INNER * [*range(fitted.ndim)]:
                ratio = sums[mode] / _margin(fitted, mode)
                t[mode] *= ratio
                fitted *= ratio.reshape(-1, *[1] * (fitted.ndim - 1 - mode))
            weights = reduce(np.multiply.outer, t[:-1])
            collected = self._collect(weights, 1, weights.size)[0]
            t[-1] = sums[-1] / collected
            fitted = self._reach(t[-1]) * weights
            margins = np.concatenate([*_margins(fitted), t[-1] * collected])
            if gap_of(margins, self.sums) <= tol:
                break
        self.found = fitted, weights, t[-1]
        return np.concatenate(t), n_sweeps, margins

    def cross(self, found: Any, g: int, h: int) -> Floats:
        """Sums of the cells that were fitted by the levels of two modes together."""
        if g > h:
            return self.cross(found, h, g).T
        fitted, weights, last = found
        if h < fitted.ndim:
            return _margin(fitted, g, h)
        inner = math.prod(self.outer[g + 1 :])
        return np.asarray(self._collect(weights, self.outer[g], inner) * last)


def _margin(table: Floats, *modes: int) -> Floats:
    """Sums of a table by the levels of modes."""
    found: Floats = table.sum(axis=tuple(set(range(table.ndim)) - set(modes)))
    return found


def _margins(table: Floats) -> list[Floats]:
    """Sums of a table by the levels of each mode."""
    return [_margin(table, mode) for mode in range(table.ndim)]
