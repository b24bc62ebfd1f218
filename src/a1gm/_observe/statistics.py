"""What a fit needs to know of a table, in the forms that a pass can keep.

A *line* of the statistics is a set of twin rows (one pattern), or a single row where
there are nearly as many patterns as rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from a1gm._base.bits import has_bits_beyond, pack_bits, unpack_bits
from a1gm._base.types import Bools, Floats, Ints, SmallInts, Words
from a1gm._kernel import kernel
from a1gm._sources.sparse import lines_of_pairs

__all__ = [
    "MaskStatistics",
    "PairStatistics",
    "PatternStatistics",
    "Statistics",
    "weighted_counts",
]

CELLS_AT_ONCE = 1 << 20


class Statistics(ABC):
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
    def without_values(self) -> Statistics:
        """Keep the mask, drop the sums."""

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

    def bit_cells(self) -> tuple[Words, Words] | None:
        """Observed and positive bits, where the mask is all that is kept."""
        return None

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

    def pieces(self) -> Iterator[tuple[slice, Bools]]:
        """Yield the observed cells of all lines, a bounded number of cells at a time."""
        step = max(1, CELLS_AT_ONCE // self.n_cols)
        for start in range(0, self.n_lines, step):
            lines = slice(start, min(start + step, self.n_lines))
            yield lines, self.observed_lines(lines)

    def cells(self) -> Iterator[tuple[Ints, Ints, Bools]]:
        """Yield line, column and sign of the observed cells, some at a time."""
        for lines, observed in self.pieces():
            i, j = np.nonzero(observed)
            yield i + lines.start, j, self.positive_lines(lines)[i, j]

    def reach(self, h: Floats) -> Floats:
        """Sum of the column factors over the observed cells of each line."""
        out = np.zeros(self.n_lines)
        for lines, observed in self.pieces():
            out[lines] = observed @ h
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
            share = mask.astype(np.float64)
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

    def as_mask(self) -> MaskStatistics:
        """Keep margins and mask only."""
        every = slice(0, self.n_lines)
        bits = pack_bits(self.observed_lines(every))
        positive = pack_bits(self.positive_lines(every)) if self.has_zeros else None
        return MaskStatistics(bits, positive, self.row_sums, self.col_sums)


@dataclass(frozen=True, slots=True)
class PatternStatistics(Statistics):
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
    def has_zeros(self) -> bool:
        """Whether some observed sum of cells is not positive."""
        n_observed = int(np.bitwise_count(self.keys).sum())
        return int(np.count_nonzero(self.sums > 0.0)) != n_observed

    def line_sums(self, lines: slice) -> Floats:
        """Sums of some patterns."""
        total: Floats = self.sums[lines].sum(axis=1)
        return total

    def observed_lines(self, lines: slice) -> Bools:
        """Observed cells of some patterns."""
        return unpack_bits(self.keys[lines], self.n_cols)

    def observed_at(self, lines: Ints) -> Bools:
        """Observed cells of patterns given by their numbers."""
        return unpack_bits(self.keys[lines], self.n_cols)

    def positive_lines(self, lines: slice) -> Bools:
        """Positive sums of some patterns."""
        above: Bools = self.sums[lines] > 0.0
        return above

    def has_observed(self) -> tuple[Bools, Bools]:
        """Patterns and columns with at least one observed cell."""
        return _lines_and_columns(self.keys, self.n_cols)

    def inside(self, line_label: SmallInts, col_label: SmallInts) -> PairStatistics:
        """Keep the cells whose pattern and column have the same label."""
        observed = self.observed_lines(slice(0, self.n_lines))
        lines, cols = np.nonzero(observed & (line_label[:, None] == col_label))
        ptr = _pointers(lines, self.n_lines)
        sums = self.sums[lines, cols]
        return PairStatistics(ptr, cols.astype(np.int32), sums, None, self.n_cols)

    def reduce(self, *, force: bool) -> Any:
        """Merge twins and drop leaves."""
        reduced = kernel.reduce_mask(
            self.keys, self.row_sums, self.col_sums, True, False
        )
        if reduced is not None:
            return reduced
        return kernel.reduce_table(self.keys, self.sums)

    def without_values(self) -> PatternStatistics:
        """Keep the mask, drop the sums."""
        return replace(self, sums=np.zeros((0, self.n_cols)))

    def check(self) -> None:
        """Raise ValueError if the arrays do not fit together."""
        _check_array("keys", self.keys, "u8", 2)
        _check_array("counts", self.counts, "i8", 1)
        _check_array("sums", self.sums, "f8", 2)
        _check_length("counts", self.counts, self.n_lines)
        _check_length("sums", self.sums, self.n_lines)
        _check_bits("keys", self.keys, self.n_cols)
        _check_sums("sums", self.sums)
        if (self.counts < 0).any():
            msg = "counts are below zero"
            raise ValueError(msg)
        names = {key.tobytes() for key in self.keys}
        if len(names) != self.n_lines:
            msg = "two patterns have the same key"
            raise ValueError(msg)
        if self.sums[~self.observed_lines(slice(0, self.n_lines))].any():
            msg = "a missing cell has a sum"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class MaskStatistics(Statistics):
    """Margins and the mask itself, for tables with nearly as many patterns as rows."""

    bits: Words
    positive: Words | None  # which cells are > 0; None when all observed ones are
    sums: Floats  # of the rows
    column_sums: Floats

    @property
    def n_cols(self) -> int:
        """Columns of the table."""
        return len(self.column_sums)

    @property
    def col_sums(self) -> Floats:
        """Sum of each column."""
        return self.column_sums

    @property
    def n_lines(self) -> int:
        """Lines: every row is one."""
        return len(self.bits)

    @property
    def row_sums(self) -> Floats:
        """Sum of each row."""
        return self.sums

    @property
    def has_zeros(self) -> bool:
        """Whether some observed cell is not positive."""
        return self.positive is not None

    def line_sums(self, lines: slice) -> Floats:
        """Sums of some rows."""
        return self.sums[lines]

    def observed_lines(self, lines: slice) -> Bools:
        """Observed cells of some rows."""
        return unpack_bits(self.bits[lines], self.n_cols)

    def positive_lines(self, lines: slice) -> Bools:
        """Positive cells of some rows."""
        bits = self.bits if self.positive is None else self.positive
        return unpack_bits(bits[lines], self.n_cols)

    def bit_cells(self) -> tuple[Words, Words]:
        """Observed and positive bits."""
        return self.bits, self.bits if self.positive is None else self.positive

    def has_observed(self) -> tuple[Bools, Bools]:
        """Rows and columns with at least one observed cell."""
        return _lines_and_columns(self.bits, self.n_cols)

    def inside(self, line_label: SmallInts, col_label: SmallInts) -> MaskStatistics:
        """Keep the cells whose row and column have the same label."""
        n = int(col_label.max(initial=-1)) + 1
        chosen = np.zeros((n + 1, self.n_cols), bool)  # the last: nothing
        known = np.flatnonzero(col_label >= 0)
        chosen[col_label[known], known] = True
        label = np.where((line_label < 0) | (line_label >= n), n, line_label)
        return replace(self, bits=self.bits & pack_bits(chosen)[label])

    def reduce(self, *, force: bool) -> Any:
        """Merge twins and drop leaves; None when leaves need the sums of cells."""
        return kernel.reduce_mask(self.bits, self.sums, self.column_sums, False, force)

    def without_values(self) -> MaskStatistics:
        """Keep the mask, drop the sums."""
        none, columns = np.zeros(0), np.zeros(self.n_cols)
        return replace(self, positive=None, sums=none, column_sums=columns)

    def as_mask(self) -> MaskStatistics:
        """Return these statistics."""
        return self

    def check(self) -> None:
        """Raise ValueError if the arrays do not fit together."""
        _check_array("bits", self.bits, "u8", 2)
        _check_array("sums", self.sums, "f8", 1)
        _check_array("column_sums", self.column_sums, "f8", 1)
        _check_length("sums", self.sums, self.n_lines)
        _check_bits("bits", self.bits, self.n_cols)
        _check_sums("sums", self.sums)
        _check_sums("column_sums", self.column_sums)
        if self.positive is not None:
            _check_array("positive", self.positive, "u8", 2)
            if self.positive.shape != self.bits.shape:
                msg = "positive and bits have different shapes"
                raise ValueError(msg)
            if (self.positive & ~self.bits).any():
                msg = "a positive cell is not observed"
                raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class PairStatistics(Statistics):
    """Observed (line, column) pairs, line by line: sparse and weighted tables."""

    ptr: Ints
    cols: SmallInts
    sums: Floats
    weights: Floats | None
    n_columns: int

    @property
    def n_cols(self) -> int:
        """Columns of the table."""
        return self.n_columns

    @property
    def n_lines(self) -> int:
        """Lines: every row is one, unless rows were merged before."""
        return len(self.ptr) - 1

    @property
    def lines(self) -> Ints:
        """Line of each pair."""
        return np.repeat(np.arange(self.n_lines), np.diff(self.ptr))

    @property
    def row_sums(self) -> Floats:
        """Sum of each line."""
        return self.line_sums(slice(0, self.n_lines))

    @property
    def col_sums(self) -> Floats:
        """Sum of each column."""
        sums = np.zeros(self.n_cols)
        for cells in self.pair_pieces():
            sums += weighted_counts(self.cols[cells], self.sums[cells], self.n_cols)
        return sums

    @property
    def has_zeros(self) -> bool:
        """Whether some observed cell is not positive."""
        return not (self.sums > 0.0).all()

    def line_sums(self, lines: slice) -> Floats:
        """Sums of some lines."""
        ptr = self.ptr[lines.start : lines.stop + 1]
        sums = np.zeros(len(ptr) - 1)
        some = np.diff(ptr) > 0
        if some.any():
            with np.errstate(over="ignore"):
                values = self.sums[ptr[0] : ptr[-1]]
                sums[some] = np.add.reduceat(values, ptr[:-1][some] - ptr[0])
        return sums

    def observed_lines(self, lines: slice) -> Bools:
        """Observed cells of some lines."""
        return self._dense(lines, np.ones(1, bool))

    def positive_lines(self, lines: slice) -> Bools:
        """Positive cells of some lines."""
        pairs = slice(self.ptr[lines.start], self.ptr[lines.stop])
        return self._dense(lines, self.sums[pairs] > 0.0)

    def _dense(self, lines: slice, values: Bools) -> Bools:
        ptr = self.ptr[lines.start : lines.stop + 1]
        cells = np.zeros((len(ptr) - 1, self.n_cols), bool)
        within = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        cells[within, self.cols[ptr[0] : ptr[-1]]] = values
        return cells

    def has_observed(self) -> tuple[Bools, Bools]:
        """Lines and columns with at least one observed cell."""
        columns = np.zeros(self.n_cols, bool)
        columns[self.cols] = True
        return self.has_observed_lines(), columns

    def has_observed_lines(self) -> Bools:
        """Lines with at least one observed cell."""
        some: Bools = np.diff(self.ptr) > 0
        return some

    def pair_pieces(self) -> Iterator[slice]:
        """Yield stretches of the pairs, a bounded number at a time."""
        # No fewer than columns: sums per column are added up stretch by stretch.
        step = max(CELLS_AT_ONCE, self.n_cols)
        for start in range(0, len(self.cols), step):
            yield slice(start, min(start + step, len(self.cols)))

    def cells(self) -> Iterator[tuple[Ints, Ints, Bools]]:
        """Yield line, column and sign of the observed cells, some at a time."""
        for pairs in self.pair_pieces():
            cols = self.cols[pairs].astype(np.int64)
            yield lines_of_pairs(self.ptr, pairs), cols, self.sums[pairs] > 0.0

    def reach(self, h: Floats) -> Floats:
        """Weighted sum of the column factors over the pairs of each line."""
        out = np.zeros(self.n_lines)
        for pairs in self.pair_pieces():
            i = lines_of_pairs(self.ptr, pairs)
            share = h[self.cols[pairs]]
            if self.weights is not None:
                share = share * self.weights[pairs]
            first, last = int(i[0]), int(i[-1]) + 1
            out[first:last] += weighted_counts(i - first, share, last - first)
        return out

    def margins(
        self, w: Floats, h: Floats, line_label: SmallInts, col_label: SmallInts
    ) -> tuple[Floats, Floats]:
        """Row and column sums of the fitted cells inside the labels."""
        rows, cols = np.zeros(self.n_lines), np.zeros(self.n_cols)
        for pairs in self.pair_pieces():
            i, j = lines_of_pairs(self.ptr, pairs), self.cols[pairs]
            cells = w[i] * h[j]
            cells[line_label[i] != col_label[j]] = 0.0
            if self.weights is not None:
                cells *= self.weights[pairs]
            first, last = int(i[0]), int(i[-1]) + 1
            rows[first:last] += weighted_counts(i - first, cells, last - first)
            cols += weighted_counts(j, cells, self.n_cols)
        return rows, cols

    def count_cells(
        self, lines: slice, line_label: SmallInts, col_label: SmallInts, chosen: Bools
    ) -> tuple[Ints, Ints, Ints]:
        """Count the pairs of some lines: all, inside, and between components."""
        ptr = self.ptr[lines.start : lines.stop + 1]
        within = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        cols = self.cols[ptr[0] : ptr[-1]]
        same = line_label[within] == col_label[cols]
        between = within[~same & chosen[cols]]
        n = len(ptr) - 1
        inside = np.bincount(within[same], minlength=n)
        return np.diff(ptr), inside, np.bincount(between, minlength=n)

    def inside(self, line_label: SmallInts, col_label: SmallInts) -> PairStatistics:
        """Keep the pairs whose line and column have the same label."""
        lines = self.lines
        kept = line_label[lines] == col_label[self.cols]
        return PairStatistics(
            _pointers(lines[kept], self.n_lines),
            self.cols[kept],
            self.sums[kept],
            None if self.weights is None else self.weights[kept],
            self.n_cols,
        )

    def reduce(self, *, force: bool) -> Any:
        """Merge twins and drop leaves."""
        return kernel.reduce_pairs(
            self.ptr, self.cols, self.sums, self.weights, self.n_cols
        )

    def without_values(self) -> PairStatistics:
        """Keep the mask, drop the sums."""
        return replace(self, sums=np.zeros(0), weights=None)

    def check(self) -> None:
        """Raise ValueError if the arrays do not fit together."""
        _check_array("ptr", self.ptr, "i8", 1)
        _check_array("cols", self.cols, "i4", 1)
        _check_array("sums", self.sums, "f8", 1)
        _check_length("sums", self.sums, len(self.cols))
        if not isinstance(self.n_columns, int) or not 0 < self.n_columns < 2**31:
            msg = "the number of columns is out of range"
            raise ValueError(msg)
        ptr = self.ptr
        if len(ptr) < 2 or ptr[0] != 0 or ptr[-1] != len(self.cols):
            msg = "ptr does not cover the pairs"
            raise ValueError(msg)
        if (np.diff(ptr) < 0).any():
            msg = "ptr decreases"
            raise ValueError(msg)
        _check_sums("sums", self.sums)
        _check_columns_of_pairs(self)
        if self.weights is not None:
            _check_array("weights", self.weights, "f8", 1)
            _check_length("weights", self.weights, len(self.cols))
            if not ((self.weights > 0.0) & np.isfinite(self.weights)).all():
                msg = "a weight is not a positive number"
                raise ValueError(msg)


# ------------------------------------------------------------------------- helpers
def weighted_counts(places: Ints | SmallInts, values: Floats, n: int) -> Floats:
    """Sum the values that share a place."""
    sums: Floats = np.bincount(places, values, minlength=n).astype(np.float64)
    return sums


def _lines_and_columns(bits: Words, n_cols: int) -> tuple[Bools, Bools]:
    lines: Bools = np.asarray(bits.any(axis=1))
    union: Words = np.bitwise_or.reduce(bits, axis=0)
    return lines, unpack_bits(union[None], n_cols)[0]


def _pointers(lines: Ints, n_lines: int) -> Ints:
    counts = np.bincount(lines, minlength=n_lines)
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))


# -------------------------------------------------------------------------- checks
def _check_array(name: str, array: Any, dtype: str, ndim: int) -> None:
    if not isinstance(array, np.ndarray) or array.dtype != np.dtype(dtype):
        msg = f"{name} is not an array of {np.dtype(dtype)}"
        raise ValueError(msg)
    if array.ndim != ndim:
        msg = f"{name} has {array.ndim} dimensions, not {ndim}"
        raise ValueError(msg)


def _check_length(name: str, array: Any, n: int) -> None:
    if len(array) != n:
        msg = f"{name} has {len(array)} entries, not {n}"
        raise ValueError(msg)


def _check_bits(name: str, bits: Words, n_cols: int) -> None:
    if not len(bits) or n_cols < 1 or bits.shape[1] != -(-n_cols // 64):
        msg = f"{name} do not belong to {n_cols} columns"
        raise ValueError(msg)
    if has_bits_beyond(bits, n_cols):
        msg = f"{name} have bits beyond the columns"
        raise ValueError(msg)


def _check_sums(name: str, sums: Floats) -> None:
    if not np.isfinite(sums).all():
        msg = f"{name} are not finite"
        raise ValueError(msg)


def _check_columns_of_pairs(pairs: PairStatistics) -> None:
    cols = pairs.cols
    if len(cols) and (cols.min() < 0 or cols.max() >= pairs.n_cols):
        msg = "a column of a pair does not exist"
        raise ValueError(msg)
    starts = np.zeros(len(cols), bool)
    starts[pairs.ptr[:-1][np.diff(pairs.ptr) > 0]] = True
    if len(cols) and ((np.diff(cols) <= 0) & ~starts[1:]).any():
        msg = "the columns of a line do not ascend"
        raise ValueError(msg)
