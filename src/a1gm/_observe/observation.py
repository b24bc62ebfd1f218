"""What one pass over rows finds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from a1gm._base.types import AnyArray, Bools, Floats, Ints
from a1gm._observe.statistics import PatternStatistics, Statistics

TABLE_CELLS = 1 << 16  # a pattern table smaller than this is always kept
TINY = 2.0**-900  # tables whose total is below are scaled up
LIFT = 2.0**200


@dataclass
class Observation:
    """What one pass finds.

    ``line_of_row`` says which line of the statistics each row belongs to; None when
    every row is its own line. Sums are those of the data times 2**-exponent.
    ``row_sums`` has one number per row; tables that were observed side by side have one
    row of numbers per group (per table, or a single one when all count alike).
    Weights that are exposures are those of the data times 2**-exposure_exponent; it is
    None where they are not. Of rows that are not in memory, ``zero_counts`` says how
    many of each line sum to 0.
    """

    row_sums: Floats
    line_of_row: AnyArray | None
    statistics: Statistics
    exponent: int
    n_negative: int
    exposure_exponent: int | None = None
    zero_counts: Ints | None = None

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return int(self.row_sums.shape[-1])

    def row_of(self, line: int) -> int:
        """Return the first row of a line."""
        if self.line_of_row is None:
            return line
        return int((self.line_of_row == line).argmax())

    def cancelling_lines(self) -> Bools:
        """Which lines sum to 0 though a row of theirs does not."""
        table, n_lines = self.statistics, self.statistics.n_lines
        has_data = np.zeros(n_lines, bool)
        if self.line_of_row is not None:
            has_data[self.line_of_row[self.row_sums != 0.0]] = True
        elif self.zero_counts is not None and isinstance(table, PatternStatistics):
            has_data = table.counts > self.zero_counts
        found: Bools = has_data & (table.row_sums == 0.0)
        return found
