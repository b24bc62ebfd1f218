"""Statistics whose mask lies in a file: memory does not grow with the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from a1gm._base.bits import unpack_bits
from a1gm._base.types import Bools, Floats, SmallInts, Words
from a1gm._observe.row_log import MaskLog
from a1gm._observe.statistics import MaskStatistics, Statistics, as_mask


@dataclass(frozen=True, slots=True)
class DiskStatistics(Statistics):
    """Column sums in memory, and the sum and mask of every row in a file.

    Attributes
    ----------
    log : MaskLog
        Sums and masks of the rows.
    column_sums : ndarray of float64
        Sums of the columns times 2**-log.exponent.
    observed_cols : ndarray of bool
        Columns with an observed cell.
    """

    log: MaskLog
    column_sums: Floats
    observed_cols: Bools

    @property
    def n_cols(self) -> int:
        """Columns of the table."""
        return len(self.column_sums)

    @property
    def n_lines(self) -> int:
        """Lines: every row is one."""
        return self.log.n_rows

    @property
    def col_sums(self) -> Floats:
        """Sum of each column."""
        return self.column_sums

    @property
    def has_zeros(self) -> bool:
        """Whether some observed cell is zero."""
        return self.log.has_zeros

    def line_sums(self, lines: slice) -> Floats:
        """Sums of some rows."""
        return self.log.read(lines.start, lines.stop)[0]

    def observed_lines(self, lines: slice) -> Bools:
        """Observed cells of some rows."""
        return unpack_bits(self.log.read(lines.start, lines.stop)[1], self.n_cols)

    def positive_lines(self, lines: slice) -> Bools:
        """Positive cells of some rows."""
        return unpack_bits(self.log.read(lines.start, lines.stop)[2], self.n_cols)

    def has_observed(self) -> tuple[Bools, Bools]:
        """Rows and columns with at least one observed cell."""
        some = [bits.any(axis=1) for _, _, bits, _ in self.log.pieces()]
        return np.concatenate(some), self.observed_cols

    def mask_words(self) -> tuple[Words, Words | None]:
        """Read observed and positive bits of all rows into memory."""
        pieces = list(self.log.pieces())
        positive = np.concatenate([piece[3] for piece in pieces])
        bits = np.concatenate([piece[2] for piece in pieces])
        return bits, positive if self.has_zeros else None

    def inside(self, line_label: SmallInts, col_label: SmallInts) -> MaskStatistics:
        """Keep the cells whose row and column have the same label, in memory."""
        return as_mask(self).inside(line_label, col_label)

    def reduce(self, *, force: bool) -> Any:
        """Merge twins and drop leaves, in memory."""
        return as_mask(self).reduce(force=force)

    def check(self) -> None:
        """Do nothing: this process has written the file itself."""
