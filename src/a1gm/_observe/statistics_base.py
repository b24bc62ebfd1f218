"""What a fit needs to know of a table: the questions that every form answers.

A *line* of the statistics is a set of twin rows (one pattern), or a single row where
there are nearly as many patterns as rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from a1gm._base.bits import has_bits_beyond, pack_bits, union, unpack_bits
from a1gm._base.types import Bools, Floats, Ints, SmallInts, Words

CELLS_AT_ONCE = 1 << 20


class Statistics:  # no ABCMeta: isinstance, which every fit asks often, is slow there
    """Sums of the lines and columns, and which cells are observed and positive.

    Sums are those of the data times a power of two that the observation knows.
    """

    __slots__ = ()

    # ------------------------------------------------------------- to be answered
    @property
    @abstractmethod
    def n_lines(self) -> int:
        """Lines: patterns, or rows."""

    @property
    @abstractmethod
    def n_cols(self) -> int:
        """Columns of the table."""

    @property
    @abstractmethod
    def col_sums(self) -> Floats:
        """Sum of each column."""

    @property
    @abstractmethod
    def has_zeros(self) -> bool:
        """Whether some observed cell, or sum of twin cells, is not positive."""

    @abstractmethod
    def line_sums(self, lines: slice) -> Floats:
        """Sums of some lines."""

    @abstractmethod
    def observed_lines(self, lines: slice) -> Bools:
        """Observed cells of some lines."""

    @abstractmethod
    def positive_lines(self, lines: slice) -> Bools:
        """Positive cells of some lines."""

    @abstractmethod
    def has_observed(self) -> tuple[Bools, Bools]:
        """Lines and columns with at least one observed cell."""

    @abstractmethod
    def inside(self, line_label: SmallInts, col_label: SmallInts) -> Statistics:
        """Keep the cells whose line and column have the same label."""

    @abstractmethod
    def reduce(self, *, force: bool) -> Any:
        """Merge twins and drop leaves; the kernel's `Reduced`.

        None when leaves need the sums of single cells and only margins are kept;
        ``force`` leaves such leaves to the iteration instead.
        """

    @abstractmethod
    def check(self) -> None:
        """Raise ValueError if the arrays do not fit together."""

    # ------------------------------------------------------------------- answered
    @property
    def row_sums(self) -> Floats:
        """Sum of each line."""
        return self.line_sums(slice(0, self.n_lines))

    def has_observed_lines(self) -> Bools:
        """Lines with at least one observed cell."""
        return self.has_observed()[0]

    def cell_sums(self) -> Any:
        """Sums of every observed cell as ``PairStatistics``; None if not kept."""
        return None

    def bit_cells(self) -> tuple[Words, Words] | None:
        """Observed and positive bits, where the mask is all that is kept."""
        return None

    @property
    def lines_at_once(self) -> int:
        """Lines whose cells are a bounded number."""
        return max(1, CELLS_AT_ONCE // self.n_cols)

    def observed_at(self, lines: Ints) -> Bools:
        """Observed cells of lines given by their numbers."""
        unique, place = np.unique(lines, return_inverse=True)
        if len(unique) and unique[-1] - unique[0] + 1 == len(unique):
            every = slice(int(unique[0]), int(unique[-1]) + 1)
            return self.observed_lines(every)[place.ravel()]
        cells = np.zeros((len(unique), self.n_cols), bool)
        for k, line in enumerate(unique.tolist()):
            cells[k] = self.observed_lines(slice(line, line + 1))[0]
        return cells[place.ravel()]

    def stretches(self) -> Iterator[slice]:
        """Yield lines that are taken together, a bounded number of cells."""
        step = max(1, CELLS_AT_ONCE // self.n_cols)
        for start in range(0, self.n_lines, step):
            yield slice(start, min(start + step, self.n_lines))

    def pieces(self) -> Iterator[tuple[slice, Bools]]:
        """Yield the observed cells of all lines, a bounded number at a time."""
        for lines in self.stretches():
            yield lines, self.observed_lines(lines)

    def cells(self) -> Iterator[tuple[Ints, Ints, Bools]]:
        """Yield line, column and sign of the observed cells, some at a time."""
        for lines, observed in self.pieces():
            i, j = np.nonzero(observed)
            yield i + lines.start, j, self.positive_lines(lines)[i, j]

    def shares(self, lines: slice, cells: Bools) -> Floats:
        """Weights of some cells of some lines; 0 for the others."""
        return cells.astype(np.float64)

    def weighted_cells(self) -> Iterator[tuple[Ints, Ints, Floats]]:
        """Yield line, column and weight of the observed cells, some at a time."""
        for lines, observed in self.pieces():
            i, j = np.nonzero(observed)
            yield i + lines.start, j, self.shares(lines, observed)[i, j]

    def weight_lines(self, lines: slice) -> Floats:
        """Weights of the cells of some lines; 0 where nothing is observed."""
        return self.shares(lines, self.observed_lines(lines))

    def reach(self, h: Floats) -> Floats:
        """Sum of the column factors over the observed cells of each line."""
        out = np.zeros(self.n_lines)
        for lines, observed in self.pieces():
            out[lines] = self.shares(lines, observed) @ h
        return out

    def margins(
        self, w: Floats, h: Floats, line_label: SmallInts, col_label: SmallInts
    ) -> tuple[Floats, Floats]:
        """Row and column sums of the fitted cells inside the labels."""
        rows, cols = np.zeros(self.n_lines), np.zeros(self.n_cols)
        one = not len(col_label) or (
            line_label.max(initial=0) == 0 == col_label.max(initial=0)
        )
        for lines, observed in self.pieces():
            mask = observed
            if not one:
                mask = observed & (line_label[lines, None] == col_label)
            share = self.shares(lines, mask)
            rows[lines] = w[lines] * (share @ h)
            cols += h * (w[lines] @ share)
        return rows, cols

    def count_cells(
        self, lines: slice, line_label: SmallInts, col_label: SmallInts, chosen: Bools
    ) -> tuple[Ints, Ints, Ints]:
        """Count, for each line, its observed cells and those inside their component.

        Third, those between two components in one of the ``chosen`` columns.
        """
        observed = self.observed_lines(lines)
        same = observed & (line_label[:, None] == col_label)
        between = (observed & ~same)[:, chosen]
        return observed.sum(axis=1), same.sum(axis=1), between.sum(axis=1)

    def mask_words(self) -> tuple[Words, Words | None]:
        """Observed and positive bits of all lines; None if all are positive."""
        every = slice(0, self.n_lines)
        positive = pack_bits(self.positive_lines(every)) if self.has_zeros else None
        return pack_bits(self.observed_lines(every)), positive


# ------------------------------------------------------------------------- helpers
def weighted_counts(places: Ints | SmallInts, values: Floats, n: int) -> Floats:
    """Sum the values that share a place."""
    sums: Floats = np.bincount(places, values, minlength=n).astype(np.float64)
    return sums


def lines_and_columns(bits: Words, n_cols: int) -> tuple[Bools, Bools]:
    """Lines and columns that have a bit."""
    lines: Bools = np.asarray(bits.any(axis=1))
    return lines, unpack_bits(union(bits)[None], n_cols)[0]


def pieces_of(n: int, least: int) -> Iterator[slice]:
    """Yield stretches of n cells, a bounded number, but not fewer than ``least``."""
    step = max(CELLS_AT_ONCE, least)
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


# -------------------------------------------------------------------------- checks
def check_array(name: str, array: Any, dtype: str, ndim: int) -> None:
    """Raise ValueError unless it is an array of this type and so many dimensions."""
    if not isinstance(array, np.ndarray) or array.dtype != np.dtype(dtype):
        raise ValueError(f"{name} is not an array of {np.dtype(dtype)}")
    if array.ndim != ndim:
        raise ValueError(f"{name} has {array.ndim} dimensions, not {ndim}")


def check_length(name: str, array: Any, n: int) -> None:
    """Raise ValueError unless the array has n entries."""
    if len(array) != n:
        raise ValueError(f"{name} has {len(array)} entries, not {n}")


def check_bits(name: str, bits: Words, n_cols: int) -> None:
    """Raise ValueError unless the bits are those of so many columns."""
    if not len(bits) or n_cols < 1 or bits.shape[1] != -(-n_cols // 64):
        raise ValueError(f"{name} do not belong to {n_cols} columns")
    if has_bits_beyond(bits, n_cols):
        raise ValueError(f"{name} have bits beyond the columns")


def check_sums(name: str, sums: Floats) -> None:
    """Raise ValueError for sums that are not finite."""
    if not np.isfinite(sums).all():
        raise ValueError(f"{name} are not finite")
