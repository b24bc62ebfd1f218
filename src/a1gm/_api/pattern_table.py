"""The statistics of a table that is read in blocks of rows."""

from __future__ import annotations

import copy
import itertools
import math
import os
from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._sources import read_input
from a1gm._sources.labels import check_same_labels
from a1gm._sources.names import Names
from a1gm._observe.one_pass import Observation, observe
from a1gm._observe.sums import PatternSums, bytes_needed
from a1gm._observe.statistics import TableStatistics
from a1gm._base.types import Floats, Negatives, OnUndetermined, SmallInts
from a1gm._base.words import counted
from a1gm.exceptions import (
    DataError,
    DimensionError,
    ParameterError,
    TableTooLargeError,
)

if TYPE_CHECKING:
    from a1gm._observe.row_log import LineLog
    from a1gm._result.fit import RankOneFit

__all__ = ["PatternTable"]

DEFAULT_MAX_BYTES = 1 << 32

# Blocks get a key that no other block of any process has, unless the caller names them.
_block_numbers = itertools.count()


def _fresh_key() -> tuple[int, int]:
    return (os.getpid(), next(_block_numbers))


class PatternTable:
    """The statistics of a table that is read in blocks of rows.

    The table is a set of blocks: ``update`` adds one, ``merge`` takes the union with
    another table, so the order and the way of cutting the rows do not matter, and a
    block that arrives twice counts once. ``to_bytes`` and ``from_bytes`` carry tables
    between processes and machines.

    Parameters
    ----------
    n_columns : int, optional
        Number of columns; taken from the first block when not given.
    keep_rows : bool, default=True
        Keep the sum and the pattern of each row (12 bytes a row), so that ``solve``
        can give the row factors. Without them ``fit.transform(block)`` gives the row
        factors of any rows.
    negatives : {"raise", "allow"}, default="raise"
        What to do with cells below zero.
    max_bytes : int, default=2**32
        Refuse to grow past this size; it is estimated before each growth.
    n_threads : int, optional
        Threads per block; the cores available by default.

    Examples
    --------
    >>> import numpy as np, a1gm
    >>> X = np.array([[1.0, 2.0], [2.0, np.nan], [3.0, 6.0]])
    >>> table = a1gm.PatternTable()
    >>> for row in X:
    ...     _ = table.update(row[None, :])
    >>> bool(np.allclose(table.solve().col_factor, a1gm.fit(X).col_factor))
    True
    """

    def __init__(
        self,
        n_columns: int | None = None,
        *,
        keep_rows: bool = True,
        negatives: Negatives = "raise",
        max_bytes: int = DEFAULT_MAX_BYTES,
        n_threads: int | None = None,
    ) -> None:
        self.keep_rows = keep_rows
        self.negatives = negatives
        self.max_bytes = max_bytes
        self.n_threads = n_threads
        self.n_rows = 0
        self._n_columns = n_columns
        self._blocks: set[Hashable] = set()
        self._n_negative = 0
        self._sums: PatternSums | None = None
        self._rows: list[tuple[Floats, SmallInts, int]] = []
        self._col_labels: Any = None

    @property
    def n_columns(self) -> int | None:
        """Columns of the table; None before the first block."""
        return self._n_columns

    @property
    def blocks(self) -> frozenset[Hashable]:
        """Keys of the blocks counted so far."""
        return frozenset(self._blocks)

    @property
    def n_patterns(self) -> int:
        """Distinct row patterns so far."""
        return 0 if self._sums is None else len(self._sums)

    @property
    def nbytes(self) -> int:
        """Estimated memory of the table, with the rows it keeps."""
        width = self._n_columns or 0
        kept = sum(sums.nbytes + lines.nbytes for sums, lines, _ in self._rows)
        return bytes_needed(self.n_patterns, width) + kept

    def __repr__(self) -> str:
        n = self.n_columns
        columns = "? columns" if n is None else counted(n, "column")
        return (
            f"PatternTable({counted(self.n_rows, 'row')} x {columns} in "
            f"{counted(len(self._blocks), 'block')}, "
            f"{counted(self.n_patterns, 'pattern')})"
        )

    def update(self, block: Any, key: Hashable = None) -> PatternTable:
        """Add a block of rows; nothing changes when the block is refused.

        Parameters
        ----------
        block : table
            Rows with the same columns as before.
        key : hashable, optional
            Name of the block. A block whose name is known already is skipped.

        Returns
        -------
        PatternTable
            This table.
        """
        if key is not None and key in self._blocks:
            return self
        source = read_input(block)
        self._check_columns(source.n_cols, source.col_labels)
        seen = observe(
            source,
            n_threads=self.n_threads,
            negatives=self.negatives,
            keep_table=True,
            row_offset=self.n_rows,
        )
        if self._col_labels is None:
            self._col_labels = source.col_labels
        self.add_observation(seen, _fresh_key() if key is None else key)
        return self

    def add_observation(self, seen: Observation, key: Hashable) -> SmallInts:
        """Add what a pass over a block found; returns the pattern of each row."""
        statistics = seen.statistics
        if not isinstance(statistics, TableStatistics) or seen.line_of_row is None:
            msg = "A pattern table takes observations made with keep_table=True."
            raise TypeError(msg)
        if seen.n_negative:
            self._check_row_sums(seen)
        keys = [key_row.tobytes() for key_row in statistics.keys]
        sums = self._grown_for(keys, statistics.n_cols, seen.n_rows)
        places = sums.places(keys)
        factor = sums.align(seen.exponent)
        is_zero = seen.row_sums == 0.0
        zero_counts = np.bincount(seen.line_of_row[is_zero], minlength=len(keys))
        sums.add(places, statistics.sums * factor, statistics.counts, zero_counts)
        lines = places.astype(np.int32)[seen.line_of_row]
        if self.keep_rows:
            self._rows.append((seen.row_sums, lines, seen.exponent))
        self.n_rows += seen.n_rows
        self._n_negative += seen.n_negative
        self._blocks.add(key)
        return lines

    def merge(self, other: PatternTable) -> PatternTable:
        """Take the union with another table, in place.

        Blocks are told apart by their keys: those that both tables hold count once.

        Parameters
        ----------
        other : PatternTable
            A table with the same columns.

        Returns
        -------
        PatternTable
            This table.
        """
        if other._blocks <= self._blocks:
            return self
        if other._sums is None:  # blocks without rows
            self._blocks |= other._blocks
            return self
        self._check_columns(other._sums.n_cols, other._col_labels)
        if self._blocks <= other._blocks:
            self._become(other)
            return self
        if self._blocks & other._blocks:
            msg = (
                "The two tables share some of their blocks but neither holds all of "
                "the other's, so the shared ones cannot be counted once. Merge tables "
                "of separate blocks, or whole unions of them."
            )
            raise DataError(msg)
        keep = self.keep_rows and other.keep_rows
        sums = self._grown_for(
            other._sums.keys, other._sums.n_cols, other.n_rows if keep else 0
        )
        places = sums.add_all(other._sums).astype(np.int32)
        if keep:
            self._rows += [(r, places[lines], e) for r, lines, e in other._rows]
        else:
            self.keep_rows, self._rows = False, []
        self.n_rows += other.n_rows
        self._n_negative += other._n_negative
        self._blocks |= other._blocks
        if self._col_labels is None:
            self._col_labels = other._col_labels
        return self

    def skip(self, key: Hashable) -> PatternTable:
        """Count a block that has no rows.

        Parameters
        ----------
        key : hashable
            Name of the block.

        Returns
        -------
        PatternTable
            This table.
        """
        self._blocks.add(key)
        return self

    def solve(self, *, tol: float = 1e-10, max_iter: int = 1000) -> RankOneFit:
        """Fit the rows seen so far.

        Returns
        -------
        RankOneFit
            The same factors as ``a1gm.fit`` of all rows in one piece.
        """
        return self.solve_with_rows(None, tol=tol, max_iter=max_iter)

    def solve_with_rows(
        self,
        log: LineLog | None,
        *,
        tol: float = 1e-10,
        max_iter: int = 1000,
        on_undetermined: OnUndetermined = "warn",
        names: Names | None = None,
    ) -> RankOneFit:
        """Fit the rows seen so far, which are remembered in a file if at all."""
        from a1gm._api.fit import fit_observation
        from a1gm._result.stream import PatternStream
        from a1gm._result.streamed import StreamedFit
        from a1gm._result.fit import RankOneFit

        seen = self.observation()
        make_fit: Callable[..., RankOneFit] = RankOneFit
        if not self.keep_rows:
            assert self._sums is not None
            assert isinstance(seen.statistics, TableStatistics)
            zero_counts = self._sums.zero_counts.copy()
            stream = PatternStream(
                seen.statistics, zero_counts, seen.exponent, log, seen.n_negative > 0
            )
            make_fit = partial(StreamedFit, stream=stream)
        return fit_observation(
            seen,
            tol=tol,
            max_iter=max_iter,
            n_threads=self.n_threads,
            on_undetermined=on_undetermined,
            col_labels=self._col_labels,
            has_rows=self.keep_rows or log is not None,
            names=names,
            make_fit=make_fit,
        )

    def observation(self) -> Observation:
        """Everything seen so far as one observation."""
        if self._sums is None:
            msg = "The table has no rows yet: call update(block) before solve()."
            raise ParameterError(msg)
        sums = self._sums
        statistics = TableStatistics(
            sums.key_words, sums.counts.copy(), sums.hi + sums.lo
        )
        row_sums, lines = np.zeros(0), np.zeros(0, np.int32)
        if self._rows:
            row_sums = np.concatenate(
                [r * math.ldexp(1.0, e - sums.exponent) for r, _, e in self._rows]
            )
            lines = np.concatenate([lines for _, lines, _ in self._rows])
        return Observation(row_sums, lines, statistics, sums.exponent, self._n_negative)

    def to_bytes(self) -> bytes:
        """Write the table down, to be read by ``from_bytes`` anywhere.

        Keys of blocks must be numbers, texts or tuples of them.

        Returns
        -------
        bytes
            A versioned format with a checksum; no pickle.

        Examples
        --------
        >>> import numpy as np, a1gm
        >>> table = a1gm.PatternTable().update(np.array([[1.0, 2.0]]), key="part 0")
        >>> a1gm.PatternTable.from_bytes(table.to_bytes())
        PatternTable(1 row x 2 columns in 1 block, 1 pattern)
        """
        from a1gm._api.table_bytes import write_table

        return write_table(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> PatternTable:
        """Read a table that ``to_bytes`` wrote.

        Parameters
        ----------
        data : bytes
            Nothing in it is executed; sizes are checked before memory is taken.

        Returns
        -------
        PatternTable

        Raises
        ------
        FileFormatError
            The bytes are damaged, of something else, or of a newer release.
        """
        from a1gm._api.table_bytes import read_table

        return read_table(data)

    def _check_columns(self, n_cols: int, labels: Any) -> None:
        if self._n_columns is not None and n_cols != self._n_columns:
            msg = (
                f"This block has {counted(n_cols, 'column')}, the table has "
                f"{self._n_columns}. Every block must have the same columns."
            )
            raise DimensionError(msg)
        if self._n_columns is not None:
            of = "the table"
            check_same_labels("column", labels, self._col_labels, "this block", of)

    def _check_row_sums(self, seen: Observation) -> None:
        below = seen.row_sums < 0.0
        if below.any():
            row = self.n_rows + int(below.argmax())
            msg = (
                'With negatives="allow" every row and column sum must be positive, but '
                f"the sum of row {row} is negative. Drop that row or mark its negative "
                "cells as missing."
            )
            raise DataError(msg)

    def _grown_for(self, keys: list[bytes], n_cols: int, n_rows: int) -> PatternSums:
        """Return the sums, once it is certain that more patterns have room."""
        fresh = len(keys) if self._sums is None else self._sums.count_new(keys)
        n_patterns = self.n_patterns + fresh
        need = bytes_needed(n_patterns, n_cols)
        if self.keep_rows:
            need += 12 * (self.n_rows + n_rows)
        if need > self.max_bytes:
            raise TableTooLargeError(
                f"The pattern table would need {need:,} bytes for "
                f"{counted(n_patterns, 'pattern')} of {counted(n_cols, 'column')} in "
                f"{counted(self.n_rows + n_rows, 'row')}, more than "
                f" max_bytes={self.max_bytes:,}. Raise max_bytes, leave out "
                "columns, or pass keep_rows=False; or use a1gm.fit (in memory) or "
                "a1gm.fit_file (from files), which need no sum per pattern."
            )
        if self._sums is None:
            self._sums = PatternSums(n_cols)
            self._n_columns = n_cols
        return self._sums

    def _become(self, other: PatternTable) -> None:
        """Take all that another table holds, but keep the options of this one."""
        self._sums = copy.deepcopy(other._sums)
        self._n_columns = other._n_columns
        self._blocks = set(other._blocks)
        self.n_rows, self._n_negative = other.n_rows, other._n_negative
        self.keep_rows &= other.keep_rows
        self._rows = list(other._rows) if self.keep_rows else []
        if self._col_labels is None:
            self._col_labels = other._col_labels
