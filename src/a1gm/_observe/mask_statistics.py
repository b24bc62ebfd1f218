"""Statistics by row: margins and the mask, one bit per cell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from a1gm._base.bits import bits_times, pack_bits, unpack_bits
from a1gm._base.types import Bools, Floats, SmallInts, Words
from a1gm._kernel import kernel
from a1gm._observe.statistics_base import (
    Statistics,
    check_array,
    check_bits,
    check_length,
    check_sums,
    lines_and_columns,
)


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
        return lines_and_columns(self.bits, self.n_cols)

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

    def reach(self, h: Floats) -> Floats:
        """Sum of the column factors over the observed cells of each row."""
        return bits_times(self.bits, h)

    def product(self, d: Floats, x: Floats, n_threads: int) -> Floats:
        """Mᵀ (d (M x)) for the mask M."""
        found: Floats = kernel.bits_product(self.bits, None, d, x, n_threads)
        return found

    def mask_words(self) -> tuple[Words, Words | None]:
        """Observed and positive bits of all rows; None if all are positive."""
        return self.bits, self.positive

    def check(self) -> None:
        """Raise ValueError if the arrays do not fit together."""
        check_array("bits", self.bits, "u8", 2)
        check_array("sums", self.sums, "f8", 1)
        check_array("column_sums", self.column_sums, "f8", 1)
        check_length("sums", self.sums, self.n_lines)
        check_bits("bits", self.bits, self.n_cols)
        check_sums("sums", self.sums)
        check_sums("column_sums", self.column_sums)
        if self.positive is not None:
            check_array("positive", self.positive, "u8", 2)
            if self.positive.shape != self.bits.shape:
                raise ValueError("positive and bits have different shapes")
            if (self.positive & ~self.bits).any():
                raise ValueError("a positive cell is not observed")


def as_mask(statistics: Statistics) -> MaskStatistics:
    """Keep the margins and the mask, in memory; drop all other sums."""
    words = statistics.mask_words()
    return MaskStatistics(*words, statistics.row_sums, statistics.col_sums)
