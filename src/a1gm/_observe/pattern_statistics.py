"""Statistics by pattern: tables whose rows have few patterns of holes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from a1gm._base.bits import names_of_rows, unpack_bits
from a1gm._base.types import Bools, Floats, Ints, SmallInts, Words
from a1gm._kernel import kernel
from a1gm._observe.pair_statistics import PairStatistics, pointers
from a1gm._observe.statistics_base import (
    Statistics,
    check_array,
    check_bits,
    check_length,
    check_sums,
    lines_and_columns,
)


@dataclass  # neither frozen nor with slots: a small fit feels the one, skops the other
class PatternStatistics(Statistics):
    """Distinct row patterns, their column sums and how many rows have each.

    Where the scatter of the cells was asked for (see ``scatter``), ``squares`` are the
    sums of ``x² / r`` by pattern and column, r being the sum of the row; ``logs`` are
    the divergence of all rows from their own means and the sum of ``r log r``.
    """

    keys: Words
    counts: Ints
    sums: Floats
    squares: Floats | None = None
    logs: Floats | None = None

    @property
    def n_cols(self) -> int:
        """Columns of the table."""
        return int(self.sums.shape[1])

    @property
    def n_lines(self) -> int:
        """Lines: one per distinct pattern."""
        return len(self.keys)

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
        return lines_and_columns(self.keys, self.n_cols)

    def inside(self, line_label: SmallInts, col_label: SmallInts) -> PairStatistics:
        """Keep the cells whose pattern and column have the same label."""
        observed = self.observed_lines(slice(0, self.n_lines))
        lines, cols = np.nonzero(observed & (line_label[:, None] == col_label))
        ptr = pointers(lines, self.n_lines)
        sums = self.sums[lines, cols]
        return PairStatistics(ptr, cols.astype(np.int32), sums, None, self.n_cols)

    def cell_sums(self) -> PairStatistics:
        """Sums of every observed cell."""
        one = np.zeros(max(self.n_lines, self.n_cols), np.int32)
        return self.inside(one[: self.n_lines], one[: self.n_cols])

    def reduce(self, *, force: bool) -> Any:
        """Merge twins and drop leaves."""
        reduced = kernel.reduce_mask(
            self.keys, self.row_sums, self.col_sums, True, False
        )
        if reduced is not None:
            return reduced
        return kernel.reduce_table(self.keys, self.sums)

    def check(self) -> None:
        """Raise ValueError if the arrays do not fit together."""
        check_array("keys", self.keys, "u8", 2)
        check_array("counts", self.counts, "i8", 1)
        check_array("sums", self.sums, "f8", 2)
        check_length("counts", self.counts, self.n_lines)
        check_length("sums", self.sums, self.n_lines)
        check_bits("keys", self.keys, self.n_cols)
        check_sums("sums", self.sums)
        if (self.counts < 0).any():
            raise ValueError("counts are below zero")
        if len(set(names_of_rows(self.keys))) != self.n_lines:
            raise ValueError("two patterns have the same key")
        if self.sums[~self.observed_lines(slice(0, self.n_lines))].any():
            raise ValueError("a missing cell has a sum")
        if self.squares is not None or self.logs is not None:
            self._check_scatter()

    def _check_scatter(self) -> None:
        check_array("squares", self.squares, "f8", 2)
        check_array("logs", self.logs, "f8", 1)
        assert self.squares is not None
        assert self.logs is not None
        check_length("logs", self.logs, 2)
        check_sums("logs", self.logs)
        check_sums("squares", self.squares)
        if self.squares.shape != self.sums.shape or (self.squares < 0.0).any():
            raise ValueError("squares are not those of the sums")
