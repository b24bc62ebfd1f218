"""The shape of the holes of a table that is known by its observed pairs.

Nothing here has a cost that grows with the missing cells.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from a1gm._kernel import kernel
from a1gm._observe.statistics import PairStatistics, lines_of_pairs
from a1gm._base.types import Ints, SmallInts
from a1gm._result.pattern import MissingPattern

__all__ = ["SparsePattern"]


class SparsePattern(MissingPattern):
    """As ``MissingPattern``, from observed (line, column) pairs."""

    _statistics: PairStatistics

    @cached_property
    def _degrees(self) -> Ints:
        return np.diff(self._statistics.ptr)

    @property
    def _has_observed(self) -> bool:
        return len(self._statistics.cols) > 0

    @cached_property
    def missing_per_col(self) -> Ints:
        """Missing cells in each column."""
        observed = np.zeros(self.n_cols, np.int64)
        for pairs in self._statistics.pair_blocks():
            rows = self._rows_per_line[lines_of_pairs(self._statistics.ptr, pairs)]
            counts = np.bincount(self._statistics.cols[pairs], rows, self.n_cols)
            observed += counts.astype(np.int64)
        return self.n_rows - observed

    @cached_property
    def n_rows_with_missing(self) -> int:
        """Rows with at least one missing cell."""
        return int(self._rows_per_line[self._degrees < self.n_cols].sum())

    @cached_property
    def n_row_patterns(self) -> int:
        """Distinct patterns of the rows."""
        return _count_distinct(self._statistics.ptr, self._statistics.cols)

    @cached_property
    def n_col_patterns(self) -> int:
        """Distinct patterns of the columns."""
        order = np.argsort(self._statistics.cols, kind="stable")
        lines = self._statistics.lines.astype(np.int32)[order]
        counts = np.bincount(self._statistics.cols, minlength=self.n_cols)
        return _count_distinct(np.concatenate(([0], np.cumsum(counts))), lines)

    @cached_property
    def is_nested(self) -> bool:
        """Whether the row patterns contain one another: a staircase."""
        # Nested rows observe the first so many columns, fullest columns first.
        counts = np.bincount(self._statistics.cols, minlength=self.n_cols)
        rank = np.empty(self.n_cols, np.int64)
        rank[np.argsort(-counts, kind="stable")] = np.arange(self.n_cols)
        some = self._degrees > 0
        if not some.any():
            return True
        starts = self._statistics.ptr[:-1][some]
        furthest = np.maximum.reduceat(rank[self._statistics.cols], starts)
        return bool((furthest == self._degrees[some] - 1).all())

    @cached_property
    def _reduced(self) -> Any:
        ones = np.ones(len(self._statistics.cols))
        pairs = self._statistics
        return kernel.reduce_pairs(pairs.ptr, pairs.cols, ones, None, self.n_cols)


def _count_distinct(ptr: Ints, members: SmallInts) -> int:
    ends = ptr.tolist()
    return len({members[a:b].tobytes() for a, b in pairwise(ends)})
