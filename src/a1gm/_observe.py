"""One pass over a table: everything the fit needs to know of it."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._input import Source, read_input
from a1gm._kernel import kernel, n_available_cores, say_if_slow
from a1gm._statistics import (
    Statistics,
    TableStatistics,
    WideStatistics,
)
from a1gm._types import AnyArray, Floats, Ints, Negatives, SmallInts
from a1gm.exceptions import (
    DataError,
    DimensionError,
    InfiniteValuesError,
    NegativeValuesError,
    ParameterError,
    TableTooLargeError,
)

if TYPE_CHECKING:
    from a1gm.result import RankOneFit

__all__ = ["Observation", "PatternTable", "observe"]

TABLE_CELLS = 1 << 18  # a pattern table smaller than this (2 MB) is always kept
TINY = 2.0**-900  # tables whose largest row sum is below are scaled up
LIFT = 2.0**200


@dataclass(frozen=True, slots=True)
class Observation:
    """What one pass finds.

    ``line_of_row`` says which line of the statistics each row belongs to; None when
    every row is its own line. Sums are those of the data times 2**-exponent.
    """

    row_sums: Floats
    line_of_row: AnyArray | None
    statistics: Statistics
    exponent: int
    n_negative: int

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return len(self.row_sums)


def observe(
    source: Source,
    *,
    n_threads: int | None = None,
    negatives: Negatives = "raise",
    keep_table: bool = False,
    row_offset: int = 0,
) -> Observation:
    """Observe a table once, and refuse what cannot be fitted."""
    say_if_slow()
    threads = n_available_cores() if n_threads is None else n_threads
    exponent = 0
    while True:
        row_sums, wide, found, overflow, negative, infinite = kernel.observe(
            source.parts,
            1,
            threads,
            math.ldexp(1.0, -exponent),
            TABLE_CELLS,
            keep_table,
        )
        check_faults(source, negative, infinite, negatives, row_offset)
        if overflow and exponent <= 0:
            exponent = 2 + int(math.log2(source.n_rows * source.n_cols))
        elif exponent == 0 and 0.0 < row_sums.max() < TINY:
            exponent = -int(math.log2(LIFT))
        else:
            break
    row_sums = row_sums[0]
    statistics: Statistics
    if wide:
        bits, positive, col_sums, has_zero = found
        statistics = WideStatistics(
            bits, positive if has_zero else None, row_sums, col_sums
        )
        return Observation(row_sums, None, statistics, exponent, negative[0])
    ids, keys, counts, sums = found
    statistics = TableStatistics(keys, counts, sums)
    return Observation(row_sums, ids, statistics, exponent, negative[0])


def check_faults(
    source: Source,
    negative: tuple[int, int, int, float],
    infinite: tuple[int, int, int, float],
    negatives: Negatives,
    row_offset: int = 0,
) -> None:
    """Raise for infinite cells, and for negative ones unless they are allowed."""
    count, row, col, value = infinite
    if count:
        where = source.where(row + row_offset, col)
        msg = (
            f"Input X contains infinity: {where} = {value} ({count} in all). "
            "Entries must be finite; mark unknown ones as NaN."
        )
        raise InfiniteValuesError(msg)
    count, row, col, value = negative
    if count and negatives == "raise":
        where = source.where(row + row_offset, col)
        msg = (
            f"Negative values in data: {where} = {value:g} ({count} in all). Entries "
            "must be >= 0; mark unknown ones as NaN (missing_values= does it for a "
            'marker), or pass negatives="allow" to fit the margins only.'
        )
        raise NegativeValuesError(msg)


# Blocks get a key that no other block of any process has, unless the caller names them.
_block_numbers = itertools.count()


def _fresh_key() -> tuple[int, int]:
    return (os.getpid(), next(_block_numbers))


class PatternTable:
    """The statistics of a table that is read in blocks of rows.

    The table is a set of blocks: ``update`` adds one, ``merge`` takes the union with
    another table, so the order and the way of cutting the rows do not matter, and a
    block that arrives twice counts once.

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
        Refuse to grow past this size.
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
        max_bytes: int = 1 << 32,
        n_threads: int | None = None,
    ) -> None:
        self.n_columns = n_columns
        self.keep_rows = keep_rows
        self.negatives = negatives
        self.max_bytes = max_bytes
        self.n_threads = n_threads
        self.n_rows = 0
        self.blocks: frozenset[Hashable] = frozenset()
        self._exponent = 0
        self._n_negative = 0
        self._index: dict[bytes, int] = {}
        self._keys: list[bytes] = []
        self._counts = np.zeros(0, np.int64)
        self._hi = np.zeros((0, 0))
        self._lo = np.zeros((0, 0))
        self._rows: list[tuple[Floats, SmallInts, int]] = []
        self._col_labels: Any = None

    @property
    def n_patterns(self) -> int:
        """Distinct row patterns so far."""
        return len(self._keys)

    def __repr__(self) -> str:
        width = "?" if self.n_columns is None else self.n_columns
        return (
            f"PatternTable({self.n_rows} rows x {width} columns in "
            f"{len(self.blocks)} blocks, {self.n_patterns} patterns)"
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
        if key is not None and key in self.blocks:
            return self
        source = read_input(block)
        if self.n_columns is not None and source.n_cols != self.n_columns:
            msg = (
                f"This block has {source.n_cols} columns, the table has "
                f"{self.n_columns}. Every block must have the same columns."
            )
            raise DimensionError(msg)
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

    def add_observation(self, seen: Observation, key: Hashable) -> None:
        """Add what a pass over a block found."""
        statistics = seen.statistics
        if not isinstance(statistics, TableStatistics) or seen.line_of_row is None:
            msg = "A pattern table takes observations made with keep_table=True."
            raise TypeError(msg)
        keys = [key_row.tobytes() for key_row in statistics.keys]
        places = self._places(keys, statistics.n_cols)
        self._align(seen.exponent)
        factor = math.ldexp(1.0, seen.exponent - self._exponent)
        self._accumulate(places, statistics.sums * factor, statistics.counts)
        if self.keep_rows:
            lines = places[seen.line_of_row].astype(np.int32)
            self._rows.append((seen.row_sums, lines, seen.exponent))
        self.n_rows += seen.n_rows
        self._n_negative += seen.n_negative
        self.blocks |= {key}

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
        if other.blocks <= self.blocks:
            return self
        if self.blocks <= other.blocks:
            self._become(other)
            return self
        if self.blocks & other.blocks:
            msg = (
                "The two tables share some of their blocks but neither holds all of "
                "the other's, so the shared ones cannot be counted once. Merge tables "
                "of separate blocks, or whole unions of them."
            )
            raise DataError(msg)
        if self.n_columns is not None and self.n_columns != other.n_columns:
            msg = (
                f"Tables of {self.n_columns} and {other.n_columns} columns cannot be "
                "merged."
            )
            raise DimensionError(msg)
        places = self._places(other._keys, other._hi.shape[1])
        self._align(other._exponent)
        factor = math.ldexp(1.0, other._exponent - self._exponent)
        self._accumulate(places, other._hi * factor, other._counts)
        self._lo[places] += other._lo * factor
        if self.keep_rows and other.keep_rows:
            self._rows += [
                (r, places[ids].astype(np.int32), e) for r, ids, e in other._rows
            ]
        self.keep_rows &= other.keep_rows
        self.n_rows += other.n_rows
        self._n_negative += other._n_negative
        self.blocks |= other.blocks
        return self

    def solve(self, *, tol: float = 1e-10, max_iter: int = 1000) -> RankOneFit:
        """Fit the rows seen so far.

        Returns
        -------
        RankOneFit
            The same factors as ``a1gm.fit`` of all rows in one piece.
        """
        from a1gm._fit import fit_observation

        if not self._keys:
            msg = "The table has no rows yet: call update(block) before solve()."
            raise ParameterError(msg)
        return fit_observation(
            self.observation(),
            tol=tol,
            max_iter=max_iter,
            n_threads=self.n_threads,
            col_labels=self._col_labels,
            has_rows=self.keep_rows,
        )

    def observation(self) -> Observation:
        """Everything seen so far as one observation."""
        words = -(-int(self._hi.shape[1]) // 64)
        keys = np.frombuffer(b"".join(self._keys), np.uint64).reshape(-1, words)
        statistics = TableStatistics(keys, self._counts, self._hi + self._lo)
        row_sums, lines = np.zeros(0), np.zeros(0, np.int32)
        if self._rows:
            row_sums = np.concatenate(
                [r * math.ldexp(1.0, e - self._exponent) for r, _, e in self._rows]
            )
            lines = np.concatenate([ids for _, ids, _ in self._rows])
        return Observation(
            row_sums, lines, statistics, self._exponent, self._n_negative
        )

    def _places(self, keys: list[bytes], n_cols: int) -> Ints:
        """Row of the table for each key; new keys get new rows."""
        fresh = [key for key in keys if key not in self._index]
        need = (len(self._keys) + len(fresh)) * n_cols * 16
        if need > self.max_bytes:
            msg = (
                f"The pattern table would need {need:,} bytes for "
                f"{len(self._keys) + len(fresh):,} patterns of {n_cols} columns, more "
                f"than max_bytes={self.max_bytes:,}. Raise max_bytes, leave out "
                "columns, or fit the whole table with a1gm.fit, which does not keep "
                "one sum per pattern."
            )
            raise TableTooLargeError(msg)
        for key in fresh:
            self._index[key] = len(self._keys)
            self._keys.append(key)
        self.n_columns = n_cols
        grow = len(self._keys) - len(self._hi)
        if grow:
            self._hi = np.concatenate(
                [self._hi.reshape(-1, n_cols), np.zeros((grow, n_cols))]
            )
            self._lo = np.concatenate(
                [self._lo.reshape(-1, n_cols), np.zeros((grow, n_cols))]
            )
            self._counts = np.concatenate([self._counts, np.zeros(grow, np.int64)])
        return np.fromiter((self._index[key] for key in keys), np.int64, len(keys))

    def _accumulate(self, places: Ints, sums: Floats, counts: Ints) -> None:
        """Compensated addition: the order of the blocks leaves no trace."""
        hi = self._hi[places]
        total = hi + sums
        part = total - hi
        self._lo[places] += (hi - (total - part)) + (sums - part)
        self._hi[places] = total
        self._counts[places] += counts

    def _align(self, exponent: int) -> None:
        """Use the larger of the two scales from here on."""
        if self.n_rows == 0:
            self._exponent = exponent
        elif exponent > self._exponent:
            factor = math.ldexp(1.0, self._exponent - exponent)
            self._hi *= factor
            self._lo *= factor
            self._exponent = exponent

    def _become(self, other: PatternTable) -> None:
        keep_rows = self.keep_rows and other.keep_rows
        options = self.negatives, self.max_bytes, self.n_threads
        self.__dict__.update(other.__dict__)
        self.negatives, self.max_bytes, self.n_threads = options
        self.keep_rows = keep_rows
        self._index, self._keys = dict(other._index), list(other._keys)
        self._counts, self._rows = other._counts.copy(), list(other._rows)
        self._hi, self._lo = other._hi.copy(), other._lo.copy()
