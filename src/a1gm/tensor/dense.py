"""Rank 1 of a large array on the bits of its holes, without a list of its cells.

The pass of two ways over the fibres along the last mode gives their sums, those of the
last mode's levels, and one bit per cell. In a sweep, the bits turn the last factor into
a number per fibre, the other modes are scaled on the table of fibres, and the bits turn
the fibres back into sums of the last mode's levels. A mode that no hole touches is
summed out: its factor is its sums.

Everything here is proved, or left to the list of cells: that positive cells tie all
levels together, the certificate, the bound on the cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from a1gm._api.fit import FitOptions, fit_rows
from a1gm._base.bits import pack_bits
from a1gm._base.types import Bools, Floats, Words
from a1gm._kernel import kernel, threads_for
from a1gm._rows.rows import table_of
from a1gm._solve.cell_error import CELLS_RIGHT
from a1gm.tensor.known import Known
from a1gm.tensor.mend import WEAK, error_left, estimate, is_small, with_error
from a1gm.tensor.problem import ArrayProblem, Problem
from a1gm.tensor.read import FAR, Cells
from a1gm.tensor.solve import PATIENCE, Eliminated, Solved

FIRST = 4096  # sets of bits that usually join all others
SETTLED = 4  # sweeps before the rate is looked at
INNER = 2  # sweeps over the table of fibres for one over the bits


def fit_array(
    cells: Cells, options: FitOptions
) -> tuple[Problem, Known, Solved] | None:
    """The optimum of an array with a factor per mode; None where the list decides."""
    found = _Array(cells, options).solve()
    if found is None or not (found[1].cell_error or 0.0) <= CELLS_RIGHT:
        return None
    problem, solved = found
    rank = sum(cells.shape) - len(cells.shape) + 1
    return problem, Known(problem, rank), solved


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
        return self._scale(keys) if _are_tied(positive, self.outer) else None

    def _problem(self) -> ArrayProblem:
        return ArrayProblem(
            self.cells, np.concatenate(self.sums), self.options.n_threads
        )

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
        if not _are_tied(pack_bits(table > 0.0), self.outer):
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


# --------------------------------------------------------------------------- all tied
def _are_tied(bits: Words, outer: Sequence[int]) -> bool:
    """Whether positive cells tie all levels of every mode; every level has some.

    Levels of the last mode that share a fibre are tied. Once they are one class, the
    mode drops out, and the question is the same for the table of fibres with cells.
    """
    for n in reversed(outer):
        if not _is_one_class(bits):
            return False
        bits = pack_bits(_any_bit(bits).reshape(-1, n))
    return True


# By columns, of which there are few: NumPy is slow along short rows.
def _any_bit(sets: Words) -> Bools:
    return np.asarray(reduce(np.bitwise_or, sets.T) != 0)


def _union(sets: Words) -> Words:
    return np.array([np.bitwise_or.reduce(column) for column in sets.T])


def _is_one_class(sets: Words) -> bool:
    """Whether sets of bits that overlap join into one with all bits of all sets."""
    whole = _union(sets)
    some = sets[:FIRST]
    reached = some[int(np.bitwise_count(some).sum(axis=1).argmax())]
    while (reached != whole).any():
        joined = reached | _union(some[_any_bit(some & reached)])
        if (joined == reached).all():
            if some is sets:
                return False
            some = sets
        reached = joined
    return True
