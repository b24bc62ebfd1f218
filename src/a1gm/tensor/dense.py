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
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from a1gm._api.fit import FitOptions
from a1gm._base.types import Floats
from a1gm._kernel import kernel, threads_for
from a1gm._solve.cell_error import CELLS_RIGHT
from a1gm.tensor.known import n_parameters, whole_rank
from a1gm.tensor.problem import MOST_DENSE, PATIENCE, Levels, Problem, gap_of, reach
from a1gm.tensor.read import Cells
from a1gm.tensor.solve import (
    WEAK,
    Eliminated,
    Solved,
    error_left,
    rounding_of,
    with_error,
)

EVEN = 1e5  # largest ratio of cells of about the same size
INNER = 2  # sweeps over the table of fibres for one over the bits
PLAIN = 1e80  # sums up to this, and from its inverse on, need no other unit


def fit_array(
    cells: Cells, levels: Sequence[Levels], options: FitOptions
) -> Solved | None:
    """The optimum of an array; None where the list of its cells decides.

    That is where margins of single modes are beside others: these may be whole.
    """
    groups, sizes = [own.margin for own in levels], [own.size for own in levels]
    is_rank_1 = 1 < len(cells.shape) == len(groups) and max(map(len, groups)) == 1
    is_small = sum(sizes) - max(sizes) <= MOST_DENSE
    if not is_rank_1 and (is_small or min(map(len, groups)) == 1):
        return None
    if is_rank_1 and (fibres := _whole_fibres(cells)) is not None:
        small = Cells(None, fibres, fibres.shape, n_threads=cells.n_threads)
        if found := fit_array(small, levels[:-1], options):
            last = cells.fibres.col_sums / cells.fibres.col_sums.sum()
            t = np.concatenate([found.t, last])
            found = replace(found, t=t, rank=n_parameters(groups, cells.shape))
        return found
    rank = whole_rank(cells, groups)
    if rank is None or not (is_small or _are_even(cells.numbers)):
        return None
    p: Any = _Bits(cells) if is_rank_1 else _fibres(cells, levels)
    if not (p.sums.min() > 1.0 / PLAIN and p.sums.max() < PLAIN):
        return None
    t, n_iter, margins = p.scale(options.tol, options.max_iter)
    solved = Solved(t, "scaling", n_iter, gap_of(margins, p.sums), rank=rank)
    if solved.gap > options.tol:
        return None
    if is_small:
        E = Eliminated(margins, p.cross, p.starts, rank)
        if E.least_pivot < WEAK:
            return None
        rounding = rounding_of(cells.numbers.size / min(sizes))
        solved = with_error(solved, error_left(E, p.sums - margins, rounding))
    else:
        worst = reach((p.sums - margins) / margins, p.starts) * math.sqrt(len(margins))
        solved = replace(with_error(solved, worst), is_bound=False)
    return solved if solved.cell_error <= CELLS_RIGHT else None


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


def _are_even(T: Floats) -> bool:
    """Whether the positive cells are of about the same size: no cut is weak."""
    least = float(np.min(T, where=T > 0.0, initial=np.inf))
    return float(np.nanmax(T)) <= EVEN * least


class _Bits:
    """Rank 1 of an array: its fibres along the last mode, their sums and their bits."""

    def __init__(self, cells: Cells) -> None:
        seen, self.shape = cells.fibres, cells.shape
        *self.outer, self.length = cells.shape
        self.bits = seen.keys
        if seen.pattern_of_row is not None:
            self.bits = seen.keys[seen.pattern_of_row]
        self.threads = threads_for(cells.numbers.size, cells.n_threads)
        self.starts = np.cumsum([0, *cells.shape])
        fibres = seen.sum_of_row.reshape(self.outer)
        self.sums = np.concatenate([*self._margins(fibres), seen.col_sums])

    def _margins(self, table: Floats) -> list[Floats]:
        """Sums of a table of fibres by the levels of each mode."""
        return [_margin(table, mode) for mode in range(table.ndim)]

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
        outer = range(len(self.outer))
        reached = self._reach(t[-1])
        for n_sweeps in range(1, min(max_iter, PATIENCE) + 1):  # noqa: B007
            for mode in INNER * [*outer]:
                t[mode] = sums[mode] / _contracted(reached, t, mode)
            self.weights = reduce(np.multiply.outer, t[:-1])
            collected = self._collect(self.weights, 1, self.weights.size)[0]
            t[-1] = sums[-1] / collected
            reached = self._reach(t[-1])
            self.fitted = reached * self.weights
            margins = np.concatenate([*self._margins(self.fitted), t[-1] * collected])
            if gap_of(margins, self.sums) <= tol:
                break
        self.last: Floats = t[-1]
        return np.concatenate(t), n_sweeps, margins

    def _reach(self, last: Floats) -> Floats:
        """Sums of factors of the last mode over the observed cells of each fibre."""
        found: Floats = kernel.reach_of_bits(self.bits, last, self.threads)
        return found.reshape(self.outer)

    def cross(self, g: int, h: int) -> Floats:
        """Sums of the cells that were fitted by the levels of two modes together."""
        if g > h:
            return self.cross(h, g).T
        if h < len(self.outer):
            return _margin(self.fitted, g, h)
        inner = math.prod(self.outer[g + 1 :])
        found = self._collect(self.weights, self.outer[g], inner)
        return found * self.last


def _margin(table: Floats, *modes: int) -> Floats:
    """Sums of a table by the levels of modes."""
    found: Floats = table.sum(axis=tuple(set(range(table.ndim)) - set(modes)))
    return found


def _contracted(reached: Floats, t: Sequence[Floats], mode: int) -> Floats:
    """Sums over the table of fibres times the factors of all other modes."""
    for k in reversed(range(reached.ndim)):
        if k != mode:
            reached = np.tensordot(reached, t[k], axes=(k, 0))
    return reached
