"""The rows of a fit: in memory, in files, in a collection, or gone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from a1gm._base.types import Bools, Ints
from a1gm._observe.patterns import Patterns
from a1gm.exceptions import ParameterError

ROWS_AT_ONCE = 1 << 14


@dataclass
class FitRows:
    """Factors and patterns of the rows of a fit.

    Attributes
    ----------
    patterns : Patterns
        With the pattern of each row, or how many rows have each.
    found : ndarray, LazyRows, lazy collection or None
        Row factors; None where the rows are gone.
    is_kept : bool
        Whether single rows can be asked about.
    """

    patterns: Patterns
    found: Any = None
    is_kept: bool = True

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return len(self.found) if self.is_kept else self.patterns.n_rows

    @property
    def is_held(self) -> bool:
        """Whether rows are in memory."""
        return isinstance(self.found, np.ndarray)

    @property
    def factor(self) -> Any:
        """Row factors."""
        if self.found is None:
            self._refuse()
        return self.found

    def read(self, start: int, stop: int) -> tuple[Ints, Bools]:
        """Pattern of each of some rows, and which of them sum to zero."""
        if not self.is_kept:
            self._refuse()
        lines, of_row = np.arange(start, stop), self.patterns.line_of_row
        if of_row is not None:
            lines = of_row[start:stop].astype(np.int64)
        return lines, self.found[start:stop] == 0.0

    def line_counts(self, lines: slice) -> tuple[Ints, Ints]:
        """Rows of some patterns, and how many of them sum to zero."""
        if self.is_kept and self.patterns.line_of_row is None:
            zeros = (self.found[lines] == 0.0).astype(np.int64)
            return np.ones(len(zeros), np.int64), zeros
        every, zeros = self._counts
        return every[lines], zeros[lines]

    @cached_property
    def _counts(self) -> tuple[Ints, Ints]:
        patterns, n = self.patterns, self.patterns.n_lines
        if patterns.counts is not None and patterns.zero_counts is not None:
            return patterns.counts, patterns.zero_counts
        every, none = np.zeros(n, np.int64), np.zeros(n, np.int64)
        step = max(ROWS_AT_ONCE, n)
        for start in range(0, self.n_rows, step):
            line, is_zero = self.read(start, min(start + step, self.n_rows))
            every += np.bincount(line, minlength=n)
            none += np.bincount(line[is_zero], minlength=n)
        return every, none

    def _refuse(self) -> NoReturn:
        raise ParameterError(
            "This fit was made or saved without its rows, so single rows cannot be "
            "asked about. fit.transform(rows) gives the row factors of any rows and "
            "fit.impute(rows) fills them; or fit the table again and keep its rows "
            "(PatternTable has keep_rows=True)."
        )
