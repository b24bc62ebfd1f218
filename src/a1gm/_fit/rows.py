"""The rows of a fit: held in memory, logged on disk, or gone.

Every store answers how many rows there are, whether single rows can be asked about, the
line of the statistics that each row belongs to, and the row factors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn, TypeAlias

import numpy as np

from a1gm._base.float_range import check_rows, product
from a1gm._base.types import AnyArray, Bools, Floats, Ints
from a1gm._fit.lazy_rows import LazyRows
from a1gm.exceptions import ParameterError

ROWS_AT_ONCE = 1 << 14


@dataclass
class HeldRows:
    """Rows in memory; ``line_of_row`` is None where every row is its own line."""

    factor: Floats
    line_of_row: AnyArray | None
    n_lines: int
    is_kept: bool = True

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return len(self.factor)

    def _are_zero(self, rows: slice) -> Bools:
        are_zero: Bools = self.factor[rows] == 0.0
        return are_zero

    def read(self, start: int, stop: int) -> tuple[Ints, Bools]:
        """Line of each of some rows, and which of them sum to zero."""
        lines = np.arange(start, stop)
        if self.line_of_row is not None:
            lines = self.line_of_row[start:stop].astype(np.int64)
        return lines, self._are_zero(slice(start, stop))

    def line_counts(self, lines: slice) -> tuple[Ints, Ints]:
        """Rows of some lines, and how many of them sum to zero."""
        if self.line_of_row is None:
            n_zero = self._are_zero(lines).astype(np.int64)
            return np.ones(len(n_zero), np.int64), n_zero
        every, zeros = self._counts
        return every[lines], zeros[lines]

    @cached_property
    def _counts(self) -> Ints:
        """Rows of each line, and those that sum to zero: counted some at a time."""
        counts = np.zeros((2, self.n_lines), np.int64)
        step = max(ROWS_AT_ONCE, self.n_lines)
        for start in range(0, self.n_rows, step):
            rows = slice(start, start + step)
            line = np.asarray(self.line_of_row)[rows]
            counts[0] += np.bincount(line, minlength=self.n_lines)
            if not self.factor[rows].all():
                none = self._are_zero(rows)
                counts[1] += np.bincount(line[none], minlength=self.n_lines)
        return counts


@dataclass(frozen=True)
class LoggedRows:
    """Rows in a file: the sum of each, and the number of its pattern."""

    sums: Floats
    lines: AnyArray
    counts: Ints
    zero_counts: Ints
    line_scale: Floats  # NaN for a pattern that observes nothing
    exponent: int
    is_kept: bool = True

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return len(self.sums)

    @property
    def factor(self) -> LazyRows:
        """Row factors, computed where they are looked at."""
        return LazyRows(self.n_rows, self._factors)

    def _factors(self, start: int, stop: int) -> Floats:
        sums, lines = self.sums[start:stop], self.lines[start:stop]
        factors = product(sums, self.line_scale[lines], exponent=self.exponent)
        check_rows(factors, np.where(self.line_scale[lines] != 0.0, sums, 0.0), start)
        return factors

    def read(self, start: int, stop: int) -> tuple[Ints, Bools]:
        """Line of each of some rows, and which of them sum to zero."""
        return self.lines[start:stop].astype(np.int64), self.sums[start:stop] == 0.0

    def line_counts(self, lines: slice) -> tuple[Ints, Ints]:
        """Rows of some lines, and how many of them sum to zero."""
        return self.counts[lines], self.zero_counts[lines]


@dataclass(frozen=True)
class GoneRows:
    """Rows that were not kept; ``counts`` are those of each pattern, if known."""

    n_rows: int
    counts: Ints | None = None
    zero_counts: Ints | None = None
    is_kept: bool = False

    @property
    def factor(self) -> Floats:
        """Raise: the factors of single rows are not known."""
        self._refuse()

    def read(self, start: int, stop: int) -> tuple[Ints, Bools]:
        """Raise: single rows cannot be asked about."""
        self._refuse()

    def line_counts(self, lines: slice) -> tuple[Ints, Ints]:
        """Rows of some lines, and how many of them sum to zero."""
        if self.counts is None or self.zero_counts is None:
            self._refuse()
        return self.counts[lines], self.zero_counts[lines]

    def _refuse(self) -> NoReturn:
        raise ParameterError(
            "This fit was made or saved without its rows, so single rows cannot be "
            "asked about. fit.transform(rows) gives the row factors of any rows and "
            "fit.impute(rows) fills them; or fit the table again and keep its rows "
            "(PatternTable has keep_rows=True)."
        )


RowStore: TypeAlias = HeldRows | LoggedRows | GoneRows
