"""Statistics by cell: every observed (line, column) pair, for sparse tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from a1gm._base.types import Bools, Floats, Ints, SmallInts
from a1gm._kernel import kernel
from a1gm._observe.statistics_base import (
    CELLS_AT_ONCE,
    Statistics,
    check_array,
    check_length,
    check_sums,
    pieces_of,
    weighted_counts,
)
from a1gm._rows.sparse import lines_of_pairs


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
        found: Bools = self._dense(lines, np.ones(1, bool))
        return found

    def weight_lines(self, lines: slice) -> Floats:
        """Weights of the cells of some lines; 0 where nothing is observed."""
        pairs = slice(self.ptr[lines.start], self.ptr[lines.stop])
        own = np.ones(1) if self.weights is None else self.weights[pairs]
        found: Floats = self._dense(lines, own)
        return found

    def positive_lines(self, lines: slice) -> Bools:
        """Positive cells of some lines."""
        pairs = slice(self.ptr[lines.start], self.ptr[lines.stop])
        found: Bools = self._dense(lines, self.sums[pairs] > 0.0)
        return found

    def _dense(self, lines: slice, values: Any) -> Any:
        ptr = self.ptr[lines.start : lines.stop + 1]
        cells = np.zeros((len(ptr) - 1, self.n_cols), values.dtype)
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
        # Each stretch costs as much as there are columns, so it has as many pairs.
        return pieces_of(len(self.cols), self.n_cols)

    @property
    def lines_at_once(self) -> int:
        """Lines whose pairs are a bounded number, on average."""
        n_pairs = max(len(self.cols), self.n_lines)
        return max(1, CELLS_AT_ONCE * self.n_lines // n_pairs)

    def cells(self) -> Iterator[tuple[Ints, Ints, Bools]]:
        """Yield line, column and sign of the observed cells, some at a time."""
        for pairs in self.pair_pieces():
            cols = self.cols[pairs].astype(np.int64)
            yield lines_of_pairs(self.ptr, pairs), cols, self.sums[pairs] > 0.0

    def weighted_cells(self) -> Iterator[tuple[Ints, Ints, Floats]]:
        """Yield line, column and weight of the observed cells, some at a time."""
        for pairs in self.pair_pieces():
            cols = self.cols[pairs].astype(np.int64)
            v = np.ones(len(cols)) if self.weights is None else self.weights[pairs]
            yield lines_of_pairs(self.ptr, pairs), cols, v

    def cell_sums(self) -> PairStatistics:
        """Sums of every observed cell: what is kept."""
        return self

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
            pointers(lines[kept], self.n_lines),
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

    def check(self) -> None:
        """Raise ValueError if the arrays do not fit together."""
        check_array("ptr", self.ptr, "i8", 1)
        check_array("cols", self.cols, "i4", 1)
        check_array("sums", self.sums, "f8", 1)
        check_length("sums", self.sums, len(self.cols))
        if type(self.n_columns) is not int or not 0 < self.n_columns < 2**31:
            raise ValueError("the number of columns is out of range")
        ptr = self.ptr
        if len(ptr) < 2 or ptr[0] != 0 or ptr[-1] != len(self.cols):
            raise ValueError("ptr does not cover the pairs")
        if (np.diff(ptr) < 0).any():
            raise ValueError("ptr decreases")
        check_sums("sums", self.sums)
        _check_columns_of_pairs(self)
        if self.weights is not None:
            check_array("weights", self.weights, "f8", 1)
            check_length("weights", self.weights, len(self.cols))
            if not ((self.weights > 0.0) & np.isfinite(self.weights)).all():
                raise ValueError("a weight is not a positive number")


def pointers(lines: Ints, n_lines: int) -> Ints:
    """Where the pairs of each line begin, for pairs sorted by line."""
    counts = np.bincount(lines, minlength=n_lines)
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))


def _check_columns_of_pairs(pairs: PairStatistics) -> None:
    cols = pairs.cols
    if len(cols) and (cols.min() < 0 or cols.max() >= pairs.n_cols):
        raise ValueError("a column of a pair does not exist")
    starts = np.zeros(len(cols), bool)
    starts[pairs.ptr[:-1][np.diff(pairs.ptr) > 0]] = True
    if len(cols) and ((np.diff(cols) <= 0) & ~starts[1:]).any():
        raise ValueError("the columns of a line do not ascend")
