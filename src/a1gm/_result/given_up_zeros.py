"""Observed zeros between components: the limit fits them, no minimiser does."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from a1gm._solve.components import Components
from a1gm._observe.statistics import Statistics, observed_pairs
from a1gm._base.types import AnyArray, Floats, Ints

__all__ = ["GivenUpZeros"]


class GivenUpZeros:
    """How many observed zeros are given up, and where the first is.

    ``row_factor`` is None for a fit that did not keep its rows; lines count then.
    """

    def __init__(
        self,
        statistics: Statistics,
        components: Components | None,
        line_of_row: AnyArray | None,
        row_factor: Floats | None,
    ) -> None:
        self.statistics = statistics
        self.components = components
        self.line_of_row = line_of_row
        self.row_factor = row_factor

    @cached_property
    def n(self) -> int:
        """Observed cells between components."""
        if self.components is None:
            return 0
        n_lines = self.statistics.n_lines
        if self.row_factor is None:
            n_rows = (self.statistics.row_sums > 0.0).astype(np.int64)
        else:
            n_rows = np.bincount(self._rows_with_data[1], minlength=n_lines)
        return int(self._of_lines[0] @ n_rows)

    def first(self) -> tuple[int, int]:
        """Place of the first one; only for fits that kept their rows."""
        count, first_col = self._of_lines
        rows, lines = self._rows_with_data
        at = int((count[lines] > 0).argmax())
        return int(rows[at]), int(first_col[lines[at]])

    @cached_property
    def _rows_with_data(self) -> tuple[Ints, AnyArray]:
        """Rows with a positive cell, and the line of each."""
        factor = np.zeros(0) if self.row_factor is None else self.row_factor
        rows = np.flatnonzero(np.nan_to_num(factor) > 0.0)
        return rows, rows if self.line_of_row is None else self.line_of_row[rows]

    @cached_property
    def _of_lines(self) -> tuple[Ints, Ints]:
        """Per line, how many observed cells lie between components, and the first."""
        n_lines = self.statistics.n_lines
        count, first_col = np.zeros(n_lines, np.int64), np.zeros(n_lines, np.int64)
        if self.components is None:
            return count, first_col
        line, col = self.components.line, self.components.col
        positive_col = self.statistics.col_sums > 0.0
        for i, j, _ in observed_pairs(self.statistics):
            between = (line[i] != col[j]) & positive_col[j]
            lines, first, n = np.unique(
                i[between], return_index=True, return_counts=True
            )
            fresh = count[lines] == 0
            first_col[lines[fresh]] = j[between][first[fresh]]
            count[lines] += n
        return count, first_col
