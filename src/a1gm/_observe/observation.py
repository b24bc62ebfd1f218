"""What one pass over rows finds."""

from __future__ import annotations

from dataclasses import dataclass

from a1gm._base.types import AnyArray, Floats
from a1gm._observe.statistics import Statistics

__all__ = ["LIFT", "TABLE_CELLS", "TINY", "Observation"]

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
    None where they are not.
    """

    row_sums: Floats
    line_of_row: AnyArray | None
    statistics: Statistics
    exponent: int
    n_negative: int
    exposure_exponent: int | None = None

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return int(self.row_sums.shape[-1])
