"""What a fit needs to know of a table, in the three forms it comes in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from a1gm._base.bits import unpack_bits
from a1gm._base.types import Bools, Floats, Ints, SmallInts, Words

__all__ = [
    "PairStatistics",
    "Statistics",
    "TableStatistics",
    "WideStatistics",
    "line_blocks",
    "lines_of_pairs",
    "observed_pairs",
    "weighted_counts",
]

CELLS_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """Distinct row patterns, their column sums and how many rows have each."""

    keys: Words
    counts: Ints
    sums: Floats

    @property
    def n_cols(self) -> int:
        """Columns of the table."""
        return int(self.sums.shape[1])

    @property
    def n_lines(self) -> int:
        """Lines: one per distinct pattern."""
        return len(self.keys)

    @property
    def row_sums(self) -> Floats:
        """Sum of each pattern."""
        total: Floats = self.sums.sum(axis=1)
        return total

    @property
    def col_sums(self) -> Floats:
        """Sum of each column."""
        total: Floats = self.sums.sum(axis=0)
        return total

    @property
    def observed(self) -> Bools:
        """Patterns as booleans, one row each."""
        return unpack_bits(self.keys, self.n_cols)

    def observed_lines(self, lines: slice) -> Bools:
        """Observed cells of some lines."""
        return unpack_bits(self.keys[lines], self.n_cols)

    def without_values(self) -> TableStatistics:
        """The same holes without the data, for what asks of holes only."""
        return replace(self, sums=np.zeros((0, self.n_cols)))

    def has_observed(self) -> tuple[Bools, Bools]:
        """Lines and columns with at least one observed cell."""
        return _lines_and_columns(self.keys, self.n_cols)


@dataclass(frozen=True, slots=True)
class WideStatistics:
    """Margins and the mask itself, for tables with nearly as many patterns as rows."""

    bits: Words
    positive: Words | None  # which cells are > 0; None when all observed ones are
    row_sums: Floats
    col_sums: Floats

    @property
    def n_cols(self) -> int:
        """Columns of the table."""
        return len(self.col_sums)

    @property
    def n_lines(self) -> int:
        """Lines: every row is one."""
        return len(self.bits)

    def observed_lines(self, lines: slice) -> Bools:
        """Observed cells of some lines."""
        return unpack_bits(self.bits[lines], self.n_cols)

    def without_values(self) -> WideStatistics:
        """The same holes without the data, for what asks of holes only."""
        none, columns = np.zeros(0), np.zeros(self.n_cols)
        return replace(self, positive=None, row_sums=none, col_sums=columns)

    def has_observed(self) -> tuple[Bools, Bools]:
        """Lines and columns with at least one observed cell."""
        return _lines_and_columns(self.bits, self.n_cols)


@dataclass(frozen=True, slots=True)
class PairStatistics:
    """Observed (line, column) pairs, line by line: sparse and weighted tables."""

    ptr: Ints
    cols: SmallInts
    sums: Floats
    weights: Floats | None
    n_cols: int

    @property
    def n_lines(self) -> int:
        """Lines: every row is one, unless rows were merged before."""
        return len(self.ptr) - 1

    @property
    def lines(self) -> Ints:
        """Line of each pair."""
        return np.repeat(np.arange(self.n_lines), np.diff(self.ptr))

    def observed_lines(self, lines: slice) -> Bools:
        """Observed cells of some lines."""
        ptr = self.ptr[lines.start : lines.stop + 1]
        cells = np.zeros((len(ptr) - 1, self.n_cols), bool)
        within = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        cells[within, self.cols[ptr[0] : ptr[-1]]] = True
        return cells

    def without_values(self) -> PairStatistics:
        """The same holes without the data, for what asks of holes only."""
        return replace(self, sums=np.zeros(0), weights=None)

    def has_observed(self) -> tuple[Bools, Bools]:
        """Lines and columns with at least one observed cell."""
        columns = np.zeros(self.n_cols, bool)
        columns[self.cols] = True
        return self.has_observed_lines(), columns

    def has_observed_lines(self) -> Bools:
        """Lines with at least one observed cell."""
        some: Bools = np.diff(self.ptr) > 0
        return some

    @property
    def row_sums(self) -> Floats:
        """Sum of each line."""
        sums = np.zeros(self.n_lines)
        some = self.has_observed_lines()
        if some.any():
            with np.errstate(over="ignore"):
                sums[some] = np.add.reduceat(self.sums, self.ptr[:-1][some])
        return sums

    @property
    def col_sums(self) -> Floats:
        """Sum of each column."""
        sums = np.zeros(self.n_cols)
        for cells in self.pair_blocks():
            sums += weighted_counts(self.cols[cells], self.sums[cells], self.n_cols)
        return sums

    def pair_blocks(self) -> Iterator[slice]:
        """Yield stretches of the pairs, a bounded number at a time."""
        # No fewer than columns: sums per column are added up stretch by stretch.
        step = max(CELLS_AT_ONCE, self.n_cols)
        for start in range(0, len(self.cols), step):
            yield slice(start, min(start + step, len(self.cols)))


Statistics = TableStatistics | WideStatistics | PairStatistics


def lines_of_pairs(ptr: Ints, pairs: slice) -> Ints:
    """Line of each of some pairs that are kept line by line."""
    first, last = np.searchsorted(ptr, (pairs.start, pairs.stop - 1), "right")
    ends = np.clip(ptr[first - 1 : last + 1], pairs.start, pairs.stop)
    return np.repeat(np.arange(first - 1, last), np.diff(ends))


def observed_pairs(
    statistics: Statistics,
) -> Iterator[tuple[Ints, Ints | SmallInts, slice | None]]:
    """Yield lines and columns of the observed cells, a bounded number at a time.

    With them the place of the pairs, where the statistics are pairs themselves.
    """
    if isinstance(statistics, PairStatistics):
        for pairs in statistics.pair_blocks():
            yield lines_of_pairs(statistics.ptr, pairs), statistics.cols[pairs], pairs
        return
    for lines, observed in line_blocks(statistics):
        i, j = np.nonzero(observed)
        yield i + lines.start, j, None


def weighted_counts(places: Ints | SmallInts, values: Floats, n: int) -> Floats:
    """Sum the values that share a place."""
    sums: Floats = np.bincount(places, values, minlength=n).astype(np.float64)
    return sums


def _lines_and_columns(bits: Words, n_cols: int) -> tuple[Bools, Bools]:
    lines: Bools = np.asarray(bits.any(axis=1))
    union: Words = np.bitwise_or.reduce(bits, axis=0)
    return lines, unpack_bits(union[None], n_cols)[0]


def line_blocks(statistics: Statistics) -> Iterator[tuple[slice, Bools]]:
    """Yield the observed cells of all lines, a bounded number of cells at a time."""
    step = max(1, CELLS_AT_ONCE // statistics.n_cols)
    for start in range(0, statistics.n_lines, step):
        lines = slice(start, min(start + step, statistics.n_lines))
        yield lines, statistics.observed_lines(lines)
