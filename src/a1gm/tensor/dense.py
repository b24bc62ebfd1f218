"""Large arrays without a list of their cells.

Where every margin is a set of modes, the cells are scaled as they lie, missing ones
with weight 0. Rank 1 needs the bits of the holes alone: the pass of two ways over the
fibres along the last mode gives their sums, those of the last mode's levels, and one
bit per cell. In a sweep, the bits turn the last factor into a number per fibre, the
other modes are scaled on the table of fibres, and the bits turn the fibres back into
sums of the last mode's levels. If no hole touches the last mode, it is summed out: its
factor is its sums.

Everything here is proved, or left to the list of cells: that positive cells decide all
others, the certificate, the bound on the cells of rank 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from a1gm._api.fit import FitOptions, fit_rows
from a1gm._base.bits import pack_bits
from a1gm._base.types import Floats, Ints, Words
from a1gm._kernel import kernel, threads_for
from a1gm._rows.rows import table_of
from a1gm._solve.cell_error import CELLS_RIGHT
from a1gm.tensor.known import n_parameters, whole_rank
from a1gm.tensor.problem import MOST_DENSE, Levels, gap_of
from a1gm.tensor.read import FAR, Cells
from a1gm.tensor.solve import (
    PATIENCE,
    WEAK,
    Eliminated,
    Solved,
    error_left,
    estimate,
    rounding_of,
    with_error,
)

SETTLED = 4  # sweeps before the rate is looked at
EVEN = 1e5  # largest ratio of cells of about the same size
INNER = 2  # sweeps over the table of fibres for one over the bits


def fit_array(
    cells: Cells, levels: Sequence[Levels], options: FitOptions
) -> Solved | None:
    """The optimum of an array; None where the list of its cells decides.

    That is where margins of single modes are beside others: these may be whole.
    """
    groups, found = [own.margin for own in levels], None
    if 1 < len(cells.shape) == len(groups) and max(map(len, groups)) == 1:
        found = _Array(cells, options).solve()
    elif len(groups) > 2 and min(map(len, groups)) > 1:
        found = _scale_cells(cells, levels, options)
    if found is None or not (found.cell_error or 0.0) <= CELLS_RIGHT:
        return None
    return replace(found, rank=n_parameters(groups, cells.shape))


def _positive_bits(cells: Cells) -> Words:
    """Which cells are positive, a row per fibre along the last mode."""
    seen = cells.fibres
    if seen.pattern_of_row is None:
        kept: Words = seen.keys if seen.positive is None else seen.positive
        return kept
    return pack_bits((cells.numbers > 0.0).reshape(-1, cells.shape[-1]))


def _scale_cells(
    cells: Cells, levels: Sequence[Levels], options: FitOptions
) -> Solved | None:
    """Scale all cells of an array, those that are missing with weight 0."""
    T, shape, modes = cells.numbers, cells.shape, range(len(cells.shape))
    groups, starts = [own.margin for own in levels], _starts(own.size for own in levels)
    if starts[-1] - max(np.diff(starts)) <= MOST_DENSE:  # the list gets a bound
        return None
    if not _are_even(T):
        return None
    if whole_rank(cells, groups, _positive_bits(cells)) is None:
        return None
    seen = ~np.isnan(T)
    v = np.where(seen, T, 0.0)
    sums = np.concatenate(
        [v.sum(axis=tuple(set(modes) - set(group))).ravel() for group in groups]
    )
    if not _are_plain(sums):
        return None
    v[...] = seen
    first = [*np.indices((*shape[:-1], 1), np.int64).reshape(len(shape), -1)]
    level = [own.find(first) + at for own, at in zip(levels, starts, strict=False)]
    step = np.array([int(modes[-1] in group) for group in groups])
    t, threads = np.ones(len(sums)), threads_for(T.size, options.n_threads)
    how = options.tol, options.max_iter, PATIENCE, threads
    n_iter, margins = kernel.scale_cells(
        np.array(level, np.int32), step, starts, v.ravel(), sums, t, *how
    )
    gap = gap_of(margins, sums)
    if gap > options.tol:
        return None
    return estimate(Solved(t, "scaling", n_iter, gap), sums, margins, starts)


class _Array:
    """Rank 1 of an array: its fibres along the last mode, their sums and their bits."""

    def __init__(self, cells: Cells, options: FitOptions) -> None:
        self.cells, self.options, self.shape = cells, options, cells.shape
        self.threads = threads_for(math.prod(self.shape), options.n_threads)
        self.outer, self.last = self.shape[:-1], len(self.shape) - 1
        self.seen = cells.fibres
        self.fibres: Floats = self.seen.sum_of_row.reshape(self.outer)
        self.sums = [self._margin(self.fibres, a) for a in range(self.last)]
        self.sums.append(self.seen.col_sums)

    def _margin(self, table: Floats, *modes: int) -> Floats:
        """Sums of a table of fibres by the levels of modes."""
        others = set(range(self.last)) - set(modes)
        found: Floats = table.sum(axis=tuple(others))
        return found

    def solve(self) -> Solved | None:
        """The optimum; None where it is not proved here."""
        if self.seen.exponent or not _are_plain(np.concatenate(self.sums)):
            return None
        keys, of_row = self.seen.keys, self.seen.pattern_of_row
        if self.last > 1 and of_row is not None:
            n = np.bitwise_count(keys).sum(axis=1)
            if ((n == 0) | (n == self.shape[-1])).all():
                whole = (n > 0)[of_row].reshape(self.outer)
                return self._without_last(np.where(whole, self.fibres, np.nan))
            keys = keys[of_row]
        modes = [(k,) for k in range(self.last + 1)]
        if whole_rank(self.cells, modes, _positive_bits(self.cells)) is None:
            return None
        return self._two_ways() if self.last == 1 else self._scale(keys)

    def _without_last(self, small: Floats) -> Solved | None:
        """Fit the table of fibres where no hole touches the last mode."""
        cells = Cells(None, small, small.shape, n_threads=self.options.n_threads)
        found = _Array(cells, self.options).solve()
        if found is None:
            return None
        last = self.sums[-1] / self.sums[-1].sum()
        return replace(found, t=np.concatenate([found.t, last]))

    def _two_ways(self) -> Solved:
        """The engine of two ways."""
        options = replace(self.options, on_undetermined="ignore")
        fit = fit_rows(table_of(self.cells.numbers), options, policy=None)
        t = np.concatenate([fit.row_factor[:], fit.col_factor])
        error = max(fit.cell_error, fit.certificate)
        return Solved(t, fit.solver, fit.n_iter, fit.certificate, error)

    def _scale(self, bits: Words) -> Solved | None:
        tol, max_iter = self.options.tol, self.options.max_iter
        t = [sums / sums.sum() for sums in self.sums]
        t[0] = self.sums[0].copy()
        sums, gap = np.concatenate(self.sums), math.inf
        weights = collected = np.zeros(0)  # of the last sweep
        for sweep in range(max_iter + 1):
            reached = kernel.reach_of_bits(bits, t[-1], self.threads)
            reached = reached.reshape(self.outer)
            if sweep:
                fitted = reached * weights
                margins = [self._margin(fitted, a) for a in range(self.last)]
                D = np.concatenate([*margins, t[-1] * collected])
                before, gap = gap, gap_of(D, sums)
                if gap <= tol:
                    solved = Solved(np.concatenate(t), "scaling", sweep, gap)
                    return self._settled(bits, solved, fitted, weights, D)
                rate = gap / before
                if sweep >= SETTLED and (
                    not rate < 1.0
                    or sweep + math.log(tol / gap) / math.log(rate) > PATIENCE
                ):
                    return None
            for _ in range(INNER):
                for a in range(self.last):
                    t[a] = self.sums[a] / _contracted(reached, t, a)
            weights = reduce(np.multiply.outer, t[:-1])
            collected = self._collect(bits, weights, 1, weights.size)[0]
            t[-1] = self.sums[-1] / collected
        return None

    def _collect(self, bits: Words, weights: Floats, n: int, inner: int) -> Floats:
        """Sums of weights by the last mode's levels and n levels of another mode."""
        found: Floats = kernel.collect_bits(
            bits, np.ravel(weights), self.shape[-1], n, inner, self.threads
        )
        return found.reshape(n, -1)

    def _settled(
        self, bits: Words, solved: Solved, fitted: Floats, weights: Floats, D: Floats
    ) -> Solved | None:
        """The fit with a bound on its cells; None across weak cuts."""
        starts, sums = _starts(self.shape), np.concatenate(self.sums)
        if starts[-1] - max(self.shape) > MOST_DENSE:
            is_even = _are_even(self.cells.numbers)
            return estimate(solved, sums, D, starts) if is_even else None

        def cross(g: int, h: int) -> Floats:
            if g > h:
                return cross(h, g).T
            if h < self.last:
                return self._margin(fitted, g, h)
            inner = math.prod(self.outer[g + 1 :])
            found = self._collect(bits, weights, self.shape[g], inner)
            return found * solved.t[starts[-2] :]

        E = Eliminated(D, cross, starts, int(starts[-1]) - self.last)
        if E.least_pivot < WEAK:
            return None
        rounding = rounding_of(math.prod(self.shape) / min(self.shape))
        return with_error(solved, error_left(E, sums - D, rounding))


def _starts(sizes: Iterable[int]) -> Ints:
    return np.cumsum([0, *sizes])


def _are_even(T: Floats) -> bool:
    """Whether the positive cells are of about the same size: no cut is weak."""
    least = float(np.min(T, where=T > 0.0, initial=np.inf))
    return float(np.nanmax(T)) <= EVEN * least


def _are_plain(sums: Floats) -> bool:
    """Whether sums are positive and far from the ends of float64."""
    ends = float(sums.min()), float(sums.max())
    return all(x > 0.0 and abs(math.frexp(x)[1]) < FAR - 32 for x in ends)


def _contracted(reached: Floats, t: Sequence[Floats], mode: int) -> Floats:
    """Sums over the table of fibres times the factors of all other modes."""
    for k in reversed(range(reached.ndim)):
        if k != mode:
            reached = np.tensordot(reached, t[k], axes=(k, 0))
    return reached
