"""Observed cells and margins: the problem that is solved, whatever the table was.

A fitted cell is ``v`` times one factor per margin; a margin (or group) is a set of
modes, its levels their combinations. The optimum is where the sums of the fitted cells
by every level are those of the observed ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from a1gm._base.types import AnyArray, Bools, Floats, Ints, SmallInts
from a1gm._kernel import kernel, threads_for
from a1gm._observe.patterns import weighted_counts
from a1gm.exceptions import TableTooLargeError

Margin = tuple[int, ...]
DENSE = 4  # combinations per cell up to which two groups are a dense table
MOST_DENSE = 700  # levels beside the largest group up to which the Hessian is dense
PATIENCE = 60  # sweeps that scaling may need before Newton takes over
MOST_MODES = 32
MOST_LEVELS = 2**31 - 1  # of all margins together: the kernel counts in 32 bits


def row_keys(columns: Any, sizes: Any) -> Ints:
    """Numbers of tuples of numbers from 0 to below ``sizes``; equal for equal ones."""
    if len(sizes) <= MOST_MODES and math.prod(map(int, sizes)) < 2**62:
        return np.asarray(np.ravel_multi_index(columns, sizes))
    _, found = np.unique(np.stack(columns), axis=1, return_inverse=True)
    return np.asarray(found.ravel())


def distinct_rows(columns: Any, sizes: Any) -> tuple[list[Ints], Ints]:
    """Distinct tuples of numbers from 0 to below ``sizes``, and each one's place."""
    keys = row_keys(columns, sizes)
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return [column[first] for column in columns], place


def design(columns: Sequence[Ints], sizes: Sequence[int]) -> Any:
    """Design rows of cells: a 1 for their level in every group."""
    starts = np.cumsum([0, *sizes])
    at = np.stack([c + start for c, start in zip(columns, starts, strict=False)], 1)
    ends, shape = np.arange(len(at) + 1) * at.shape[1], (len(at), int(starts[-1]))
    return sp.csr_array((np.ones(at.size, np.int64), at.ravel(), ends), shape)


@dataclass(frozen=True)
class Levels:
    """The levels of one margin: the combinations of its modes that have cells."""

    margin: Margin
    lengths: tuple[int, ...]  # of its modes
    codes: Ints | None = None  # of the combinations, ascending; None for all

    @classmethod
    def every(cls, margin: Margin, shape: Sequence[int]) -> Levels:
        """All combinations of the modes of a margin."""
        lengths = tuple(shape[k] for k in margin)
        if math.prod(lengths) > np.iinfo(np.int64).max:
            raise TableTooLargeError(
                f"Modes {', '.join(map(str, margin))} have more combinations together "
                "than 64-bit numbers, so they can have no margin, weights or exposures."
            )
        return cls(margin, lengths)

    def where(self, index: Sequence[Ints]) -> Levels:
        """Only the combinations that cells have."""
        numbers, n = self._numbers(index), self.size
        if n <= DENSE * len(numbers):
            codes = np.flatnonzero(np.bincount(numbers, minlength=n))
        else:
            codes = np.unique(numbers)
        return self if len(codes) == n else replace(self, codes=codes)

    @property
    def size(self) -> int:
        """How many there are."""
        return math.prod(self.lengths) if self.codes is None else len(self.codes)

    def _numbers(self, index: Sequence[Ints]) -> Ints:
        columns = [index[k] for k in self.margin]
        if len(columns) == 1:
            return columns[0]
        return np.ravel_multi_index(columns, self.lengths)

    def find(self, index: Sequence[Ints]) -> Ints:
        """Levels of cells by their positions; -1 for a combination without cells."""
        numbers = self._numbers(index)
        if self.codes is None:
            return numbers
        at = np.minimum(np.searchsorted(self.codes, numbers), len(self.codes) - 1)
        return np.where(self.codes[at] == numbers, at, -1)


@dataclass(frozen=True)
class Problem:
    """Sums to be met, and the cells that meet them.

    ``level`` has a row per group; levels are positions in one vector for all groups,
    and those of group g lie from ``starts[g]`` to ``starts[g + 1]``. ``s`` are the
    cells to be fitted (times their weights), ``v`` weights or exposures.
    """

    s: Floats
    v: Floats | None
    level: SmallInts
    starts: Ints
    n_threads: int | None = None
    step: Ints | None = None  # of levels along the fibres of an array, 0 or 1 by group

    @classmethod
    def of(cls, levels: Sequence[Levels], index: Any, **more: Any) -> Problem:
        """The problem of cells at some positions, which are of these levels."""
        starts = np.cumsum([0, *(own.size for own in levels)])
        if starts[-1] > MOST_LEVELS:
            raise TableTooLargeError(
                f"The margins have {starts[-1]:,} levels in all; the limit is "
                f"{MOST_LEVELS:,}."
            )
        level = np.empty((len(levels), len(index[0])), np.int32)
        for g, own in enumerate(levels):
            level[g] = own.find(index)
            level[g] += np.int32(starts[g])
        return cls(level=level, starts=starts, **more)

    def only(self, chosen: Bools) -> Problem:
        """The same levels, with some of the cells."""
        v = None if self.v is None else self.v[chosen]
        level = np.ascontiguousarray(self.level[:, chosen])
        return replace(self, s=self.s[chosen], v=v, level=level)

    @property
    def sizes(self) -> Ints:
        """Levels of each group."""
        return np.diff(self.starts)

    @property
    def is_small(self) -> bool:
        """Whether the Hessian may be dense."""
        return int(self.sizes.sum() - self.sizes.max()) <= MOST_DENSE

    @cached_property
    def sums(self) -> Floats:
        """Sums of the cells by level."""
        return self.add(self.s)

    @cached_property
    def counts(self) -> Floats:
        """Number of cells by level."""
        return self.add(np.ones(len(self.s)))

    def add(self, values: Floats) -> Floats:
        """Sums of values of the cells by level."""
        ones = np.ones(int(self.starts[-1]))
        return replace(self, v=values).fitted(ones)[1]

    @cached_property
    def design(self) -> Any:
        """Design rows of the cells."""
        return design(self.of_groups(slice(None)), self.sizes.tolist())

    def cross(self, f: Floats, g: int, h: int) -> Any:
        """Sums of values of the cells by the levels of two groups together."""
        n, m = self.sizes[[g, h]]
        a, b = (self.level[k] - self.starts[k] for k in (g, h))
        if n * m <= DENSE * len(f):
            return weighted_counts(a * m + b, f, n * m).reshape(n, m)
        return sp.csr_array((f, (a, b)), (n, m))

    def of_groups(self, chosen: Bools | slice) -> list[Ints]:
        """Levels of some cells, counted from 0 in every group."""
        levels = zip(self.level, self.starts, strict=False)
        return [row[chosen] - row.dtype.type(start) for row, start in levels]

    @property
    def threads(self) -> int:
        """Threads for a pass over the cells."""
        return threads_for(len(self.level) * len(self.s), self.n_threads)

    def fitted(self, t: Floats) -> tuple[Floats, Floats]:
        """The fitted cells of factors, and their sums by level."""
        where = self.level, self.step, self.starts, self.v
        found: tuple[Floats, Floats] = kernel.fit_cells(*where, t, self.threads)
        return found

    def multiply(self, f: Floats, d: Floats) -> tuple[Floats, float]:
        """The Hessian at fitted cells f times d, and the largest move of a cell."""
        where = self.level, self.step, self.starts
        found: tuple[Floats, float] = kernel.multiply_cells(*where, f, d, self.threads)
        return found

    def moves(self, d: Floats) -> Floats:
        """Sums of what the levels of each cell have."""
        found: Floats = d[self.level[0]]
        for levels in self.level[1:]:
            found += d[levels]
        return found

    def gradient(self, t: Floats) -> Floats:
        """Sums by level of what the cells are above their fitted values.

        In twice the precision: what rounding hides in sums of large cells may be all
        that light ones have.
        """
        f = np.ones(len(self.s)) if self.v is None else self.v
        low = np.zeros_like(f)
        for levels in self.level:
            factor = t[levels]
            low *= factor
            f, rounding = _exact_product(f, factor)
            low += rounding
        above = self.s - f
        back = above - self.s
        low = (self.s - (above - back)) - (f + back) - low
        return self.add_exactly(above, low)

    def add_exactly(self, values: Floats, low: Floats | float = 0.0) -> Floats:
        """Sums by level of values and of their lower digits, rounded at the end."""
        total = np.zeros(int(self.starts[-1]))
        for _ in range(2):  # parts that share a last bit: their sums are exact
            most = float(np.abs(values).max(initial=0.0)) * len(values)
            unit = math.ldexp(1.0, math.frexp(most)[1] + 1)
            part = (unit + values) - unit
            total += self.add(part)
            values = values - part
        return total + self.add(values + low)

    def scale(self, tol: float, max_iter: int) -> tuple[Floats, int, Floats]:
        """Factors, sweeps that they took, and the sums of fitted cells by level.

        Scaling stops where its measured rate predicts too many sweeps.
        """
        t = (self.sums > 0.0).astype(np.float64)
        where = self.level, self.step, self.starts, self.v, self.sums
        how = tol, max_iter, PATIENCE, self.threads
        n_sweeps, margins = kernel.scale_cells(*where, t, *how)
        return t, n_sweeps, margins

    def split(self, x: AnyArray) -> list[AnyArray]:
        """Cut a vector of all levels into those of each group."""
        return np.split(x, self.starts[1:-1])


def _exact_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Rounded products, and what rounding took from them (Dekker)."""
    found = a * b
    head_a, tail_a = _halves(a)
    head_b, tail_b = _halves(b)
    rounding = head_a * head_b - found
    rounding += head_a * tail_b
    rounding += tail_a * head_b
    rounding += tail_a * tail_b
    return found, rounding


def _halves(a: Floats) -> tuple[Floats, Floats]:
    """Numbers of half as many bits that add up to a."""
    large = 134_217_729.0 * a
    head = large - (large - a)
    return head, a - head


def gap_of(margins: Floats, sums: Floats) -> float:
    """Largest relative mismatch of margins and sums."""
    on = sums > 0.0
    return float(np.abs(margins[on] / sums[on] - 1.0).max(initial=0.0))


def reach(x: Floats, starts: Ints) -> float:
    """Bound on the sum of what the levels of any cell have."""
    ends = [(part.max(), part.min()) for part in np.split(x, starts[1:-1])]
    up, down = np.sum(ends, axis=0)
    return float(max(up, -down))
