"""From a table to factors: two groups, scaling, Newton; bounds on their cells.

Parts of a table that hang together by tiny cells can have right margins and wrong
cells between them: rounding of large sums hides the small ones. There the mismatch of
the sums is computed in twice the precision; what still cannot be bounded is infinite.

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
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from a1gm._api.fit import FitOptions, fit_rows
from a1gm._base.types import Floats, Solver
from a1gm._kernel import kernel, threads_for
from a1gm._kernel.network import ROUNDING
from a1gm._rows.read import AnyRows
from a1gm._rows.rows import table_of
from a1gm._rows.sparse import read_sparse
from a1gm._solve.cell_error import CELLS_RIGHT, cell_error, way_left
from a1gm._solve.factors import solver_name
from a1gm.exceptions import NotRepresentableError
from a1gm.tensor.hessian import NEAR, WEAK, Eliminated, Iterated
from a1gm.tensor.known import n_parameters, whole_rank
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
MOST_STEPS = 100
SETTLED = 1e-13  # an error of cells that needs no further step
CLEAR = 1e-11  # one by sums, which are rounded
ALMOST = 1e-6  # a step from which on those that are no shorter end the search
INNER = 2  # sweeps over the table of fibres for one over the bits


@dataclass(frozen=True)
class Solved:
    """Factors of all levels, and how they were found.

    ``rank`` is that of the design where positive cells are known to decide all others.
    """

    t: Floats
    solver: Solver
    n_iter: int
    gap: float
    cell_error: float = math.inf
    is_bound: bool = True  # not an estimate
    rank: int | None = None

    def off_by(self, worst: float) -> Solved:
        """The same fit with the error of its cells, by that of their logarithms."""
        error = max(cell_error(worst), self.gap)
        return replace(self, cell_error=error)


def solve(p: Problem, rank: int | None, options: FitOptions) -> Solved:
    """Factors whose margins are within tol of the sums, as far as max_iter allows."""
    if not len(p.s):  # all were zeros that are given up
        return Solved(np.zeros(len(p.sums)), "closed form", 0, 0.0, 0.0)
    found = _two_groups(p, options)
    if found is None:
        rank = rank_of(p) if rank is None and p.is_small else rank
        found = _scaled(p, rank, options)
        if found.cell_error == math.inf:
            found = _newton(p, found, rank, options)
    if not (found.gap < math.inf and np.isfinite(found.t).all()):
        raise NotRepresentableError(
            "The factors of this table lie further apart than float64 allows. Multiply "
            "levels by powers of ten that bring its cells closer together."
        )
    return found


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


class Step(NamedTuple):
    """Newton's step from some factors.

    ``gap`` is that of the factors, ``move`` bounds what the step does to the logarithm
    of a cell, and ``left`` how far from the optimum the cells are after it; ``settled``
    is a rest that needs no further step.
    """

    d: Floats
    gap: float
    move: float
    left: float
    settled: float


@np.errstate(all="ignore")  # what leaves the range proves nothing
def _scaled(p: Problem, rank: int | None, options: FitOptions) -> Solved:
    """The fit that scaling finds; its error is infinite if its cells may be wrong."""
    t, n_sweeps, _ = p.scale(options.certificate, options.max_iter)
    f, margins = p.fitted(t)
    gap = gap_of(margins, p.sums)
    found = Solved(t, solver_name(n_sweeps), n_sweeps, gap, is_bound=p.is_small)
    if gap > options.certificate:
        return found
    longest = len(f) // int(p.sizes.min())  # of an array
    if p.step is None:
        longest = int(p.counts.max())
    if not p.is_small:
        H = Iterated(p, f, margins, is_exact=False)
        error = H.error_left(p.sums - margins, longest)
        return found.off_by(error) if error <= NEAR else found
    E = Eliminated(p, f, margins, rank)
    t = t * np.exp(E.solve(p.sums - margins))
    margins = p.fitted(t)[1]
    gap = gap_of(margins, p.sums)
    error = E.error_left(p.sums - margins, longest)
    if gap <= options.certificate and error <= CLEAR:
        return replace(found, t=t, gap=gap).off_by(error)
    return found


@np.errstate(all="ignore")
def _newton(p: Problem, start: Solved, rank: int | None, options: FitOptions) -> Solved:
    """Take Newton's steps until neither sums nor cells are off."""
    tol = options.certificate
    t = start.t
    best = start
    last = math.inf
    rounding = 4.0 * (len(p.level) + 1) * ROUNDING  # of the factors, and of a product
    for n_steps in range(MOST_STEPS):
        step = _step(p, t, rank, tol)
        n_iter = start.n_iter + n_steps
        solver = solver_name(n_iter, n_steps)
        left = step.left + rounding
        new = t * np.exp(step.d / max(1.0, step.move / LONGEST_STEP))
        found = Solved(t, solver, n_iter, step.gap).off_by(step.move + left)
        if step.left < step.move:  # one more step costs nothing
            gap = gap_of(p.fitted(new)[1], p.sums)
            if gap <= max(step.gap, tol):
                found = Solved(new, solver, n_iter, gap).off_by(left)
        best = min(best, found, key=lambda one: (one.cell_error, one.gap))
        is_still = step.move < ALMOST and step.move >= 0.5 * last
        if step.left <= step.settled or is_still or n_iter >= options.max_iter:
            break
        t = new
        last = step.move
    return replace(best, is_bound=p.is_small)


def _step(p: Problem, t: Floats, rank: int | None, tol: float) -> Step:
    """Newton's step: a loose one until the sums are right."""
    f, margins = p.fitted(t)
    gap = gap_of(margins, p.sums)
    if p.is_small:
        H: Eliminated | Iterated = Eliminated(p, f, margins, rank)
    else:
        H = Iterated(p, f, margins, is_exact=True)
    g = p.gradient(t)
    share = 0.0 if gap <= tol else max(min(0.1, math.sqrt(gap)), 0.1 * tol / gap)
    d = H.solve(g, share)
    move = reach(d, p.starts)
    left = math.inf
    settled = SETTLED if p.is_small else NEAR
    if gap <= tol and not H.finds_moves(p, f):
        settled = math.inf
    elif gap <= tol:
        rest = g - p.multiply(f, d)[0]
        left = way_left(move, len(d)) - move + H.left(rest)
    return Step(d, gap, move, left, settled)


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
    rank = whole_rank(cells, groups)
    if rank is None:
        return None
    if len(cells.shape) == 2:
        solved: Solved | None = _two_way(table_of(cells.numbers), options)
    elif is_rank_1:
        solved = _of_bits(_Bits(cells), rank, options)
    else:
        solved = _scaled(_fibres(cells, levels), rank, options)
        if solved.cell_error == math.inf:
            solved = _newton(cells.problem(levels), solved, rank, options)
    if solved is None or solved.cell_error > CELLS_RIGHT:
        return None
    return replace(solved, rank=rank)


def _of_bits(p: _Bits, rank: int, options: FitOptions) -> Solved | None:
    """The optimum of rank 1, if scaling finds it and no cut is weak."""
    t, n_sweeps, margins = p.scale(options.certificate, options.max_iter)
    gap = gap_of(margins, p.sums)
    E = Eliminated(p, p.found, margins, rank)
    if gap > options.certificate or E.least_pivot < WEAK:
        return None
    worst = E.error_left(p.sums - margins, p.longest)
    return Solved(t, solver_name(n_sweeps), n_sweeps, gap).off_by(worst)


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
        self.longest = cells.numbers.size // min(cells.shape)  # sum of a level
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
