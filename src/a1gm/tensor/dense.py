"""Large arrays without a list of their cells.

Where every margin is a set of modes, the cells are scaled as they lie, missing ones
with weight 0. Rank 1 needs the bits of the holes alone: the pass of two ways over the
fibres along the last mode gives their sums, those of the last mode's levels, and one
bit per cell. In a sweep, the bits turn the last factor into a number per fibre, the
other modes are scaled on the table of fibres, and the bits turn the fibres back into
sums of the last mode's levels. A mode that no hole touches is summed out: its factor is
its sums.

Everything here is proved, or left to the list of cells: that positive cells decide all
others, the certificate, the bound on the cells of rank 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from a1gm._api.fit import FitOptions, fit_rows
from a1gm._base.bits import pack_bits
from a1gm._base.types import Floats, Words
from a1gm._kernel import kernel, threads_for
from a1gm._rows.rows import table_of
from a1gm._solve.cell_error import CELLS_RIGHT
from a1gm.tensor.known import Known, n_parameters, whole_rank
from a1gm.tensor.mend import WEAK, error_left, estimate, is_small, with_error
from a1gm.tensor.problem import ArrayProblem, Levels, Problem
from a1gm.tensor.read import FAR, Cells
from a1gm.tensor.solve import PATIENCE, Eliminated, Solved

SETTLED = 4  # sweeps before the rate is looked at
INNER = 2  # sweeps over the table of fibres for one over the bits


def fit_array(
    cells: Cells, levels: Sequence[Levels], options: FitOptions
) -> tuple[Problem, Known, Solved] | None:
    """The optimum of an array; None where the list of its cells decides.

    That is where margins of single modes are beside others: their levels may be twins.
    """
    groups = [own.margin for own in levels]
    found: tuple[Problem, Solved] | None = None
    if 1 < len(cells.shape) == sum(map(len, groups)):
        found = _Array(cells, options).solve()
    elif len(groups) > 2 and min(map(len, groups)) > 1:
        found = _scale_cells(cells, levels, options)
    if found is None or not (found[1].cell_error or 0.0) <= CELLS_RIGHT:
        return None
    return found[0], Known(found[0], n_parameters(groups, cells.shape)), found[1]


def _scale_cells(
    cells: Cells, levels: Sequence[Levels], options: FitOptions
) -> tuple[Problem, Solved] | None:
    """Scale all cells of an array, those that are missing with weight 0."""
    T, shape = cells.numbers, cells.shape
    groups, modes = [own.margin for own in levels], range(len(shape))
    if whole_rank(cells, groups, pack_bits((T > 0.0).reshape(-1, shape[-1]))) is None:
        return None
    seen = ~np.isnan(T)
    v = np.where(seen, T, 0.0)
    sums = np.concatenate(
        [v.sum(axis=tuple(set(modes) - set(group))).ravel() for group in groups]
    )
    if not (_is_plain(float(sums.min())) and _is_plain(float(sums.max()))):
        return None
    problem = ArrayProblem(cells, levels, sums, options.n_threads)
    if is_small(problem):
        return None
    v[...] = seen
    first = list(np.indices((*shape[:-1], 1), np.int64).reshape(len(shape), -1))
    level = [own.numbers(first) for own in levels] + problem.starts[:-1, None]
    step = np.array([int(modes[-1] in group) for group in groups])
    t, threads = np.ones(len(sums)), threads_for(T.size, options.n_threads)
    how = options.tol, options.max_iter, PATIENCE, threads
    n_iter, margins = kernel.scale_cells(
        level.astype(np.int32), step, problem.starts, v.ravel(), sums, t, *how
    )
    gap = problem.gap(margins)
    if gap > options.tol:
        return None
    return problem, estimate(problem, Solved(t, "scaling", n_iter, gap), margins)


class _Array:
    """Fibres of an array along its last mode: their sums and their bits."""

    def __init__(self, cells: Cells, options: FitOptions) -> None:
        self.cells, self.options = cells, options
        self.shape = cells.shape
        self.threads = threads_for(math.prod(self.shape), options.n_threads)
        self.outer = self.shape[:-1]
        self.seen = cells.fibres
        self.fibres: Floats = self.seen.sum_of_row.reshape(self.outer)
        self.sums = [self.fibres.sum(axis=_but(a, self.outer)) for a in self.modes]
        self.sums.append(self.seen.col_sums)

    @property
    def modes(self) -> range:
        """All but the last."""
        return range(len(self.outer))

    def solve(self) -> tuple[ArrayProblem, Solved] | None:
        ends = [end for sums in self.sums for end in (sums.min(), sums.max())]
        if self.seen.exponent or not all(_is_plain(float(end)) for end in ends):
            return None
        if len(self.shape) == 2:
            return self._two_ways()
        keys, of_row = self.seen.keys, self.seen.pattern_of_row
        if of_row is not None:
            n = np.bitwise_count(keys).sum(axis=1)
            if ((n == 0) | (n == self.shape[-1])).all():
                whole = (n > 0)[of_row].reshape(self.outer)
                small = np.where(whole, self.fibres, np.nan)
                return self._without(len(self.outer), small)
            keys = keys[of_row]
        table = keys.reshape(*self.outer, -1)
        for a in self.modes:
            first, second = table.take([0], axis=a), table.take([-1], axis=a)
            if (first == second).all() and (first == table).all():
                return self._without(a, self.cells.numbers.sum(axis=a))
        positive = keys if self.seen.positive is None else self.seen.positive
        if of_row is not None:  # such tables do not keep which cells are positive
            cells = self.cells.numbers.reshape(-1, self.shape[-1])
            positive = pack_bits(cells > 0.0)
        return None if self._rank(positive) is None else self._scale(keys)

    def _rank(self, positive: Words) -> int | None:
        modes = [(k,) for k in range(len(self.shape))]
        return whole_rank(self.cells, modes, positive)

    def _problem(self) -> ArrayProblem:
        levels = [Levels((k,), (n,)) for k, n in enumerate(self.shape)]
        sums = np.concatenate(self.sums)
        return ArrayProblem(self.cells, levels, sums, self.options.n_threads)

    # ---------------------------------------------------------- modes without holes
    def _without(self, mode: int, small: Floats) -> tuple[ArrayProblem, Solved] | None:
        """Fit the table without a mode that no hole touches."""
        names = tuple(range(small.ndim))
        labels = (None,) * small.ndim
        cells = Cells(
            None, small, small.shape, names, labels, n_threads=self.options.n_threads
        )
        found = _Array(cells, self.options).solve()
        if found is None:
            return None
        parts = found[0].split(found[1].t)
        parts.insert(mode, self.sums[mode] / self.sums[mode].sum())
        return self._problem(), replace(found[1], t=np.concatenate(parts))

    def _two_ways(self) -> tuple[ArrayProblem, Solved] | None:
        """The engine of two ways."""
        table, options = self.cells.numbers, self.options
        if self._rank(pack_bits(table > 0.0)) is None:
            return None
        fit = fit_rows(
            table_of(table), replace(options, on_undetermined="ignore"), policy=None
        )
        t = np.concatenate([fit.row_factor[:], fit.col_factor])
        error = max(fit.cell_error, fit.certificate)
        solved = Solved(t, fit.solver, fit.n_iter, fit.certificate, error)
        return self._problem(), solved

    # -------------------------------------------------------------------- sweeps
    def _scale(self, bits: Words) -> tuple[ArrayProblem, Solved] | None:
        tol, max_iter = self.options.tol, self.options.max_iter
        t = [sums / sums.sum() for sums in self.sums]
        t[0] = self.sums[0].copy()
        gap = math.inf
        weights = collected = np.zeros(0)  # of the last sweep
        for sweep in range(max_iter + 1):
            reach = kernel.reach_of_bits(bits, t[-1], self.threads)
            reach = reach.reshape(self.outer)
            if sweep:
                fitted = reach * weights
                margins = [fitted.sum(axis=_but(a, self.outer)) for a in self.modes]
                margins.append(t[-1] * collected)
                before, gap = gap, max(map(_gap, margins, self.sums))
                if gap <= tol:
                    how = sweep, gap
                    return self._settled(bits, t, fitted, weights, margins, how)
                rate = gap / before
                if sweep >= SETTLED and (
                    not rate < 1.0
                    or sweep + math.log(tol / gap) / math.log(rate) > PATIENCE
                ):
                    return None
            for _ in range(INNER):
                for a in self.modes:
                    t[a] = self.sums[a] / _contracted(reach, t, a)
            weights = reduce(np.multiply.outer, t[:-1])
            collected = self._collect(bits, weights)
            t[-1] = self.sums[-1] / collected
        return None

    def _collect(self, bits: Words, weights: Floats, mode: int | None = None) -> Floats:
        """Sums of weights by the last mode's levels, and those of another mode."""
        n, inner = 1, weights.size
        if mode is not None:
            n, inner = self.outer[mode], math.prod(self.outer[mode + 1 :])
        found: Floats = kernel.collect_bits(
            bits, np.ravel(weights), self.shape[-1], n, inner, self.threads
        )
        return found if mode is None else found.reshape(n, -1)

    def _settled(
        self,
        bits: Words,
        t: list[Floats],
        fitted: Floats,
        weights: Floats,
        margins: list[Floats],
        how: tuple[int, float],
    ) -> tuple[ArrayProblem, Solved] | None:
        """The fit with a bound on its cells; None across weak cuts."""
        p, D = self._problem(), np.concatenate(margins)
        last = len(self.outer)

        def cross(g: int, h: int) -> Floats:
            if g > h:
                return cross(h, g).T
            if h == last:
                return self._collect(bits, weights, g) * t[-1]
            found: Floats = fitted.sum(axis=_but(g, self.outer, h))
            return found

        solved = Solved(np.concatenate(t), "scaling", *how)
        if not is_small(p):
            return p, estimate(p, solved, D)
        E = Eliminated(D, cross, p.starts, sum(self.shape) - last)
        if E.least_pivot < WEAK:
            return None
        return p, with_error(solved, error_left(p, E, p.sums - D))


def _but(mode: int, shape: Sequence[int], *more: int) -> tuple[int, ...]:
    return tuple(k for k in range(len(shape)) if k not in (mode, *more))


def _is_plain(x: float) -> bool:
    return x > 0.0 and abs(math.frexp(x)[1]) < FAR - 32


def _gap(margins: Floats, sums: Floats) -> float:
    return float(np.abs(margins / sums - 1.0).max())


def _contracted(reach: Floats, t: Sequence[Floats], mode: int) -> Floats:
    """Sums over the table of fibres times the factors of all other modes."""
    for k in reversed(range(reach.ndim)):
        if k != mode:
            reach = np.tensordot(reach, t[k], axes=(k, 0))
    return reach
