"""Sums per pattern that grow as patterns appear."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Self

import numpy as np

from a1gm._base.bits import names_of_rows
from a1gm._base.float_range import shifted
from a1gm._base.types import AnyArray, Floats, Ints, Words
from a1gm._kernel import kernel
from a1gm._observe.observation import Observation
from a1gm._observe.statistics import PatternStatistics
from a1gm.exceptions import NotRepresentableError

SMALL = 2.0**-64  # sums times this do not overflow
ROOM = 1018 - 64  # powers of two up to which sums so measured stay finite
# A key is kept as a Python bytes object and as an entry of a dictionary.
KEY_OVERHEAD = 160
ALL_ROWS = b"all rows"  # the key of sums that are kept for no single pattern


def bytes_needed(n_patterns: int, n_cols: int, *, scatter: bool = False) -> int:
    """Estimate the memory of the sums of so many patterns."""
    words = -(-n_cols // 64)
    need = n_patterns * (16 * n_cols + 8 * words + 16 + KEY_OVERHEAD)
    return 2 * need if scatter else need


def _size(sums: Floats) -> float:
    """Sum of the sizes of all numbers, times SMALL."""
    return float(np.abs(sums * SMALL).sum())


class Room:
    """Memory for many short arrays, in few long ones.

    The system gives out fresh memory by the page, which takes longer than the work on
    it; long arrays have large pages.
    """

    MOST = 1 << 20  # numbers asked for at a time

    def __init__(self) -> None:
        self._free = np.empty(0)
        self._taken = 0

    def copy(self, values: Floats) -> Floats:
        """Copy an array to where it is kept."""
        n = len(values)
        if n > len(self._free):
            self._free = np.empty(max(n, min(self._taken, self.MOST)))
        kept, self._free = self._free[:n], self._free[n:]
        self._taken += n
        kept[:] = values
        return kept


class PatternSums:
    """For each pattern: its column sums, its rows, and how many of them are zero.

    Sums are pairs ``hi + lo`` of floats, added with compensation, so that the order
    of the pieces leaves no trace in them. They are those of the data times
    ``2**-exponent``.

    With ``scatter``, the sums of ``PatternStatistics.squares`` and ``logs`` are kept
    beside them; both are None once some piece had none.
    """

    def __init__(self, n_cols: int, *, scatter: bool = False) -> None:
        self.n_cols = n_cols
        self.squares = PatternSums(n_cols) if scatter else None
        self.logs = PatternSums(2) if scatter else None
        self.exponent = 0
        self._bound = 0.0  # of the sums together, as ``_size`` measures them
        self._index: dict[bytes, int] = {}
        self._hi = np.zeros((0, n_cols))
        self._lo = np.zeros((0, n_cols))
        self._counts = np.zeros(0, np.int64)
        self._zero_counts = np.zeros(0, np.int64)

    @classmethod
    def of(cls, hi: Floats, lo: Floats, keys: list[bytes], exponent: int) -> Self:
        """Sums that were made elsewhere; each pattern counts as one row."""
        found, none = cls(hi.shape[1]), np.zeros(len(keys), np.int64)
        found.exponent = exponent
        places = found.places(keys)
        found.add(places, hi, none + 1, none)
        found._lo[places] += lo
        return found

    def __len__(self) -> int:
        return len(self._index)

    @property
    def keys(self) -> list[bytes]:
        """Observed bits of each pattern, as bytes."""
        return list(self._index)

    @property
    def hi(self) -> Floats:
        """Leading part of the sums, one row per pattern."""
        return self._hi[: len(self)]

    @property
    def lo(self) -> Floats:
        """What rounding left out of ``hi``."""
        return self._lo[: len(self)]

    @property
    def counts(self) -> Ints:
        """Rows of each pattern."""
        return self._counts[: len(self)]

    @property
    def zero_counts(self) -> Ints:
        """Rows of each pattern whose sum is zero."""
        return self._zero_counts[: len(self)]

    @property
    def key_words(self) -> Words:
        """Observed bits of each pattern."""
        words = -(-self.n_cols // 64)
        return np.frombuffer(b"".join(self._index), np.uint64).reshape(-1, words)

    def count_new(self, keys: list[bytes]) -> int:
        """How many of the keys (all different) are not in the table."""
        return len(set(keys) - self._index.keys())

    def places(self, keys: list[bytes]) -> Ints:
        """Row of the table for each key; new keys get new rows."""
        index = self._index
        places = np.array([index.setdefault(key, len(index)) for key in keys], np.int64)
        self._reserve(len(index))
        return places

    def add_observation(
        self, seen: Observation, names: list[bytes] | None = None
    ) -> AnyArray:
        """Add what a pass over a piece found; returns the pattern of each row.

        ``names`` are those of its patterns, where they are known already.
        """
        table = seen.statistics
        if not isinstance(table, PatternStatistics) or seen.line_of_row is None:
            raise TypeError(
                "Patterns are added from observations made with keep_table=True."
            )
        sums = self.align(table.sums, seen.exponent)
        places = self.places(names_of_rows(table.keys) if names is None else names)
        new = sums, table.counts, seen.line_of_row, seen.row_sums
        lines = self._add(places, *new)
        if self.squares is not None:
            self._add_scatter(table, seen.exponent)
        return lines

    def statistics(self) -> PatternStatistics:
        """The sums as statistics."""
        sums = self.hi + self.lo
        found = PatternStatistics(self.key_words, self.counts.copy(), sums)
        if self.squares is None or self.logs is None:
            return found
        squares, logs = (
            np.ldexp(own.hi + own.lo, own.exponent - self.exponent)
            for own in (self.squares, self.logs)
        )
        return replace(found, squares=squares, logs=logs[0])

    def _add_scatter(self, table: PatternStatistics, exponent: int) -> None:
        if table.squares is None or table.logs is None:
            self._add_beside((None, None))
            return
        new = (
            (table.squares, names_of_rows(table.keys)),
            (table.logs[None], [ALL_ROWS]),
        )
        self._add_beside(
            PatternSums.of(sums, np.zeros_like(sums), keys, exponent)
            for sums, keys in new
        )

    def _add_beside(self, others: Iterable[PatternSums | None]) -> None:
        """Add the squares and logs of other sums; forget them where there are none."""
        try:
            for own, other in zip((self.squares, self.logs), others, strict=True):
                if own is None or other is None:
                    break
                own.add_all(other)
            else:
                return
        except NotRepresentableError:  # further apart than float64 reaches
            pass
        self.squares = self.logs = None

    def add(self, places: Ints, sums: Floats, counts: Ints, zero_counts: Ints) -> None:
        """Add aligned sums to some patterns, each named once."""
        self._add(places, sums, counts, np.zeros(0, np.uint8), np.zeros(0))
        self._zero_counts[places] += zero_counts

    def _add(
        self,
        places: Ints,
        sums: Floats,
        counts: Ints,
        line_of_row: AnyArray,
        row_sums: Floats,
    ) -> AnyArray:
        own = self.hi, self.lo, self.counts, self.zero_counts
        new = places, sums, counts, line_of_row, row_sums
        lines: AnyArray = kernel.add_patterns(*own, *new)
        self._bound += _size(sums)
        return lines

    def add_all(self, other: PatternSums) -> Ints:
        """Add another table; returns the place of each of its patterns."""
        hi = self.align(other.hi, other.exponent)
        places = self.places(other.keys)
        self.add(places, hi, other.counts, other.zero_counts)
        self._lo[places] += np.ldexp(other.lo, other.exponent - self.exponent)
        if self.squares is not None:
            self._add_beside((other.squares, other.logs))
        return places

    def align(self, sums: Floats, exponent: int) -> Floats:
        """Put new sums, times 2**-exponent, and the others on one scale.

        It is the larger of the two, or a larger one if the sums would overflow. Raises
        NotRepresentableError where digits would be lost.
        """
        own = self.exponent if self.counts.any() else exponent
        common = max(own, exponent)
        most = math.ldexp(self._bound, own - common)
        most += math.ldexp(_size(sums), exponent - common)
        common += max(math.frexp(most)[1] - ROOM, 0)
        new = shifted(sums, exponent - common)
        if common != own:
            self._hi = shifted(self._hi, own - common)
            self._lo = np.ldexp(self._lo, own - common)
            self._bound = math.ldexp(self._bound, own - common)
        self.exponent = common
        return new

    def _reserve(self, n: int) -> None:
        # Grow by half: patterns come a few at a time.
        if n > len(self._counts):
            grow = max(n, len(self._counts) * 3 // 2) - len(self._counts)
            more = np.zeros((grow, self.n_cols))
            self._hi = np.concatenate([self._hi, more])
            self._lo = np.concatenate([self._lo, more])
            self._counts = np.concatenate([self._counts, np.zeros(grow, np.int64)])
            self._zero_counts = np.concatenate(
                [self._zero_counts, np.zeros(grow, np.int64)]
            )
