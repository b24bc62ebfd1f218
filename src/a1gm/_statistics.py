"""What a fit needs to know of a table, in the three forms it comes in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from a1gm._bits import unpack_bits
from a1gm._types import Bools, Floats, Ints, SmallInts, Words

__all__ = [
    "PairStatistics",
    "Statistics",
    "TableStatistics",
    "WideStatistics",
    "line_blocks",
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

    def has_observed(self) -> tuple[Bools, Bools]:
        """Lines and columns with at least one observed cell."""
        return (
            np.diff(self.ptr) > 0,
            np.bincount(self.cols, minlength=self.n_cols) > 0,
        )

    @property
    def row_sums(self) -> Floats:
        """Sum of each line."""
        return weighted_counts(self.lines, self.sums, self.n_lines)

    @property
    def col_sums(self) -> Floats:
        """Sum of each column."""
        return weighted_counts(self.cols, self.sums, self.n_cols)


Statistics = TableStatistics | WideStatistics | PairStatistics


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
