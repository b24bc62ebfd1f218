"""Counts and shapes of the holes, from patterns or from listed cells.

Listed cells are counted without any cost that grows with the missing ones.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from a1gm._base.bits import pack_bits, unpack_bits
from a1gm._base.types import Bools, Ints, SmallInts, Words
from a1gm._kernel import kernel
from a1gm._observe.patterns import Patterns


def shape_of(statistics: Patterns, rows_per_line: Ints) -> _HoleShape:
    """Describe the holes, by the observed cells alone where those are listed."""
    bits, n_cols = statistics.keys, statistics.n_cols
    if bits is None:
        return _ListedShape(statistics.ptr, statistics.cols, n_cols, rows_per_line)
    is_distinct = statistics.is_table
    return _MaskShape(bits, n_cols, rows_per_line, is_distinct=is_distinct)


class _MaskShape:
    """Holes of lines that are given as bits."""

    def __init__(
        self, bits: Words, n_cols: int, rows_per_line: Ints, *, is_distinct: bool
    ) -> None:
        self._bits, self.n_cols = bits, n_cols
        self._rows_per_line = rows_per_line
        self._is_distinct = is_distinct

    @cached_property
    def _lines(self) -> Bools:
        return unpack_bits(self._bits, self.n_cols)

    @cached_property
    def _distinct(self) -> Bools:
        return self._lines if self._is_distinct else np.unique(self._lines, axis=0)

    @property
    def n_observed(self) -> int:
        """Observed (line, column) pairs."""
        return int(np.bitwise_count(self._bits).sum())

    @cached_property
    def missing_per_col(self) -> Ints:
        """Missing cells in each column."""
        counts: Ints = self._rows_per_line @ (~self._lines).astype(np.int64)
        return counts

    @cached_property
    def n_rows_with_missing(self) -> int:
        """Rows with at least one missing cell."""
        return int(self._rows_per_line[~self._lines.all(axis=1)].sum())

    @property
    def n_row_patterns(self) -> int:
        """Distinct patterns of the rows."""
        return len(self._distinct)

    @cached_property
    def n_col_patterns(self) -> int:
        """Distinct patterns of the columns."""
        return len(np.unique(self._distinct.T, axis=0))

    @cached_property
    def is_nested(self) -> bool:
        """Whether the row patterns contain one another: a staircase."""
        by_size = self._distinct[np.argsort(self._distinct.sum(axis=1))]
        return not (by_size[:-1] & ~by_size[1:]).any()

    @property
    def reduced(self) -> Any:
        """The peeling of the pattern alone, as if every observed cell were 1."""
        observed = self._distinct
        rows, cols = observed.sum(axis=1), observed.sum(axis=0)
        reduced = kernel.reduce_mask(
            pack_bits(observed), rows.astype(float), cols.astype(float), True, False
        )
        if reduced is not None:
            return reduced
        ptr = np.concatenate(([0], np.cumsum(rows))).astype(np.int64)
        met = np.nonzero(observed)[1].astype(np.int32)
        return kernel.reduce_pairs(ptr, met, np.ones(len(met)), None, self.n_cols)


class _ListedShape:
    """The same questions, of lines whose observed cells are listed."""

    def __init__(
        self, ptr: Ints, cols: SmallInts, n_cols: int, rows_per_line: Ints
    ) -> None:
        self._ptr, self._cols, self.n_cols = ptr, cols, n_cols
        self._rows_per_line = rows_per_line

    @property
    def _degrees(self) -> Ints:
        return np.diff(self._ptr)

    @property
    def _col_counts(self) -> Ints:
        return np.bincount(self._cols, minlength=self.n_cols)

    @property
    def n_observed(self) -> int:
        return len(self._cols)

    @cached_property
    def missing_per_col(self) -> Ints:
        rows = np.repeat(self._rows_per_line, self._degrees)
        observed = np.bincount(self._cols, rows, minlength=self.n_cols)
        return int(self._rows_per_line.sum()) - observed.astype(np.int64)

    @cached_property
    def n_rows_with_missing(self) -> int:
        return int(self._rows_per_line[self._degrees < self.n_cols].sum())

    @cached_property
    def n_row_patterns(self) -> int:
        return _count_distinct(self._ptr, self._cols)

    @cached_property
    def n_col_patterns(self) -> int:
        order = np.argsort(self._cols, kind="stable")
        lines = np.repeat(np.arange(len(self._ptr) - 1, dtype=np.int32), self._degrees)
        ptr = np.concatenate(([0], np.cumsum(self._col_counts)))
        return _count_distinct(ptr, lines[order])

    @cached_property
    def is_nested(self) -> bool:
        # Nested rows observe the first so many columns, fullest columns first.
        rank = np.empty(self.n_cols, np.int64)
        rank[np.argsort(-self._col_counts, kind="stable")] = np.arange(self.n_cols)
        some = self._degrees > 0
        if not some.any():
            return True
        furthest = np.maximum.reduceat(rank[self._cols], self._ptr[:-1][some])
        return bool((furthest == self._degrees[some] - 1).all())

    @property
    def reduced(self) -> Any:
        ones = np.ones(len(self._cols))
        return kernel.reduce_pairs(self._ptr, self._cols, ones, None, self.n_cols)


_HoleShape: TypeAlias = _MaskShape | _ListedShape


def _count_distinct(ptr: Ints, members: SmallInts) -> int:
    ends = ptr.tolist()
    return len({members[a:b].tobytes() for a, b in pairwise(ends)})
