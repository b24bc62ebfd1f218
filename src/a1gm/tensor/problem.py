"""Observed cells and margins: the problem that is solved, whatever the table was.

A fitted cell is ``v`` times one factor per margin; a margin (or group) is a set of
modes, its levels their combinations. The optimum is where the sums of the fitted cells
by every level are those of the observed ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from a1gm._base.types import AnyArray, Bools, Floats, Ints, SmallInts
from a1gm._kernel import kernel, threads_for
from a1gm._observe.patterns import weighted_counts
from a1gm.exceptions import TableTooLargeError

Margin = tuple[int, ...]
MOST_CELLS = 1 << 26  # of a table that is looked at cell by cell
DENSE = 4  # combinations per cell up to which two groups are a dense table
MOST_LEVELS = 2**31 - 1  # of all margins together: the kernel counts in 32 bits


@dataclass(frozen=True)
class Levels:
    """The levels of one margin: combinations of its modes that have cells.

    ``codes`` are the combinations as numbers, ascending; None where each combination
    is a level, with or without cells, as for a margin of one mode.
    """

    margin: Margin
    lengths: tuple[int, ...]  # of its modes
    codes: Ints | None = None

    @classmethod
    def every(cls, margin: Margin, shape: Sequence[int]) -> Levels:
        """All combinations of the modes of a margin."""
        lengths = tuple(shape[k] for k in margin)
        if math.prod(lengths) > np.iinfo(np.int64).max:
            raise TableTooLargeError(
                f"The margin of modes {', '.join(map(str, margin))} has more "
                "combinations than 64-bit numbers. Name fewer modes that act together."
            )
        return cls(margin, lengths)

    def where(self, cells: Sequence[Ints]) -> Levels:
        """Only the combinations that cells have; all levels of a single mode."""
        if len(self.margin) == 1:
            return self
        numbers, n = self.numbers(cells), math.prod(self.lengths)
        if n <= DENSE * len(numbers):
            codes = np.flatnonzero(np.bincount(numbers, minlength=n))
        else:
            codes = np.unique(numbers)
        return self if len(codes) == n else Levels(self.margin, self.lengths, codes)

    @property
    def size(self) -> int:
        """How many there are."""
        return math.prod(self.lengths) if self.codes is None else len(self.codes)

    def numbers(self, cells: Sequence[Ints]) -> Ints:
        """Combinations as numbers, given positions along all modes of the table."""
        first, *others = self.margin
        found: Ints = cells[first]
        for k, length in zip(others, self.lengths[1:], strict=True):
            found = found * length + cells[k]
        return found

    def find(self, cells: Sequence[Ints]) -> Ints:
        """Levels of cells; -1 for a combination without observed cells."""
        numbers = self.numbers(cells)
        if self.codes is None:
            return numbers
        n = math.prod(self.lengths)
        if n <= DENSE * len(numbers):
            at = np.full(n, -1)
            at[self.codes] = np.arange(len(self.codes))
            return at[numbers]
        at = np.searchsorted(self.codes, numbers)
        at[at == len(self.codes)] = 0
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

    @classmethod
    def of(
        cls,
        s: Floats,
        v: Floats | None,
        levels: Sequence[Ints],
        sizes: Sequence[int],
        n_threads: int | None = None,
    ) -> Problem:
        """A problem whose levels are counted from 0 in each group."""
        starts = np.concatenate([[0], np.cumsum(np.array(sizes, np.int64))])
        if starts[-1] > MOST_LEVELS:
            raise TableTooLargeError(
                f"The margins have {starts[-1]:,} levels in all; the limit is "
                f"{MOST_LEVELS:,}."
            )
        level = np.empty((len(levels), len(s)), np.int32)
        for g, of_cell in enumerate(levels):
            level[g] = of_cell
            level[g] += np.int32(starts[g])
        return cls(s, v, level, starts, n_threads)

    def only(self, chosen: Bools | Ints) -> Problem:
        """The same levels, with some of the cells."""
        v = None if self.v is None else self.v[chosen]
        level = np.ascontiguousarray(self.level[:, chosen])
        return Problem(self.s[chosen], v, level, self.starts, self.n_threads)

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.s)

    @property
    def sizes(self) -> Ints:
        """Levels of each group."""
        return np.diff(self.starts)

    @cached_property
    def sums(self) -> Floats:
        """Sums of the cells by level."""
        return self.add(self.s)

    @cached_property
    def has_cells(self) -> Bools:
        """Whether a level has a cell."""
        found = np.zeros(self.starts[-1], bool)
        found[self.level.ravel()] = True
        return found

    def add(self, values: Floats) -> Floats:
        """Sums of values of the cells by level."""
        found = np.zeros(int(self.starts[-1]))
        for row in self.level:
            found += weighted_counts(row, values, len(found))
        return found

    def pairs(self, f: Floats) -> tuple[Floats, Callable[[int, int], Any], Ints]:
        """Sums of values by level and by two groups, and where groups start."""
        return self.add(f), partial(self.cross, f), self.starts

    def cross(self, f: Floats, g: int, h: int) -> Any:
        """Sums of values of the cells by the levels of two groups together."""
        n, m = self.sizes[[g, h]]
        a, b = (self.level[k] - self.starts[k] for k in (g, h))
        if n * m <= DENSE * self.n_cells:
            return weighted_counts(a * m + b, f, n * m).reshape(n, m)
        return sp.csr_array((f, (a, b)), (n, m))

    def of_groups(self, chosen: Bools | slice) -> list[Ints]:
        """Levels of some cells, counted from 0 in every group."""
        levels = zip(self.level, self.starts, strict=False)
        return [row[chosen] - row.dtype.type(start) for row, start in levels]

    @property
    def threads(self) -> int:
        """Threads for a pass over the cells."""
        return threads_for(self.level.size, self.n_threads)

    def fitted(self, t: Floats) -> tuple[Floats, Floats]:
        """The fitted cells of factors, and their sums by level."""
        found: tuple[Floats, Floats] = kernel.fit_cells(
            self.level, None, self.starts, self.v, t, self.threads
        )
        return found

    def times(self, f: Floats, x: Floats) -> Floats:
        """The product of x and the Hessian at the fitted cells f."""
        found: Floats = kernel.multiply_cells(
            self.level, self.starts, f, x, self.threads
        )
        return found

    def of_cells(self, x: Floats) -> Floats:
        """Sums over the groups of what the levels of each cell have."""
        found = np.zeros(self.n_cells)
        for row in self.level:
            found += x[row]
        return found

    def reach(self, x: Floats) -> float:
        """Bound on the sum of what the levels of any cell have."""
        ends = [(part.max(), part.min()) for part in self.split(x)]
        up, down = np.sum(ends, axis=0)
        return float(max(up, -down))

    @cached_property
    def rounding(self) -> float:
        """Share of a sum that rounding takes or adds."""
        return _rounding(float(self.add(np.ones(self.n_cells)).max()))

    def gap(self, margins: Floats) -> float:
        """Largest relative mismatch of margins."""
        on = self.sums > 0.0
        off = np.abs(margins[on] / self.sums[on] - 1.0)
        return float(off.max(initial=0.0))

    def split(self, x: AnyArray) -> list[AnyArray]:
        """Cut a vector of all levels into those of each group."""
        return np.split(x, self.starts[1:-1])


class ArrayProblem(Problem):
    """The problem of a large array whose levels all have cells, listed if needed."""

    def __init__(
        self, cells: Any, levels: Sequence[Levels], sums: Floats, n_threads: int | None
    ) -> None:
        sizes = [own.size for own in levels]
        self.__dict__.update(
            cells=cells,
            levels=levels,
            v=None,
            starts=np.concatenate([[0], np.cumsum(sizes)]),
            n_threads=n_threads,
            sums=sums,
            has_cells=np.ones(sum(sizes), bool),
            rounding=_rounding(math.prod(cells.shape) // min(sizes)),
        )

    @cached_property
    def n_cells(self) -> int:
        """Number of cells."""
        fibres = self.__dict__["cells"].fibres
        counts = np.bitwise_count(fibres.keys).sum(axis=1)
        return int((counts * (1 if fibres.counts is None else fibres.counts)).sum())

    @cached_property
    def s(self) -> Floats:
        """Values of the cells."""
        found: Floats = self.__dict__["cells"].values
        return found

    @cached_property
    def level(self) -> SmallInts:
        """Levels of the cells in every group."""
        index, levels = self.__dict__["cells"].index, self.__dict__["levels"]
        found = [own.numbers(index) for own in levels]
        return np.array(found + self.starts[:-1, None], np.int32)


def _rounding(longest: float) -> float:
    """Share of a sum of so many numbers that rounding takes or adds."""
    return (4.0 + math.sqrt(longest)) * 2.0**-53
