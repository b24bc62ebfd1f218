"""Observe a table whose columns come in chunks, a piece of rows at a time."""

from __future__ import annotations

import math

import numpy as np

from a1gm._sources import Source
from a1gm._observe.one_pass import TABLE_CELLS, Observation, observe
from a1gm._observe.sums import PatternSums
from a1gm._observe.statistics import TableStatistics
from a1gm._base.types import AnyArray, Floats, Negatives
from a1gm.exceptions import InfiniteValuesError, NegativeValuesError

__all__ = ["observe_pieces"]


def observe_pieces(
    source: Source,
    *,
    n_threads: int | None,
    negatives: Negatives,
    keep_table: bool,
    row_offset: int,
) -> Observation:
    """Add up the pattern tables of the pieces, and join the pieces only if need be.

    A table with nearly as many patterns as rows is observed in its wide form, which
    has no sum over pieces; a bad cell is looked for in the whole, to count them all.
    """
    pieces = _Pieces(source)
    try:
        for first, piece in source.pieces():
            seen = observe(
                piece, n_threads=n_threads, negatives=negatives, keep_table=keep_table
            )
            if not pieces.add(first, seen) or (not keep_table and pieces.is_waste):
                break
        else:
            return pieces.observation()
    except (InfiniteValuesError, NegativeValuesError):
        pass
    return observe(
        source.in_one_piece(),
        n_threads=n_threads,
        negatives=negatives,
        keep_table=keep_table,
        row_offset=row_offset,
    )


class _Pieces:
    """Sums per pattern so far, and the sum and pattern of every row."""

    def __init__(self, source: Source) -> None:
        self.sums = PatternSums(source.n_cols)
        self.row_sums: Floats = np.empty(source.n_rows)
        self.line_of_row: AnyArray = np.empty(source.n_rows, np.int32)
        self.n_seen = 0
        self.n_negative = 0
        self.scales: list[tuple[slice, int]] = []

    def add(self, first: int, seen: Observation) -> bool:
        """Add a piece; False when it has no table of patterns."""
        table = seen.statistics
        if not isinstance(table, TableStatistics) or seen.line_of_row is None:
            return False
        rows = slice(first, first + seen.n_rows)
        places = self.sums.places([key.tobytes() for key in table.keys])
        factor = self.sums.align(seen.exponent)
        none = np.zeros_like(table.counts)  # rows of zeros are told by their sums
        self.sums.add(places, table.sums * factor, table.counts, none)
        np.take(places.astype(np.int32), seen.line_of_row, out=self.line_of_row[rows])
        self.row_sums[rows] = seen.row_sums
        self.scales.append((rows, seen.exponent))
        self.n_seen += seen.n_rows
        self.n_negative += seen.n_negative
        return True

    @property
    def is_waste(self) -> bool:
        """Whether there are so many patterns that a mask says it shorter."""
        n_patterns = len(self.sums)
        return (
            n_patterns * self.sums.n_cols > TABLE_CELLS and n_patterns * 4 > self.n_seen
        )

    def observation(self) -> Observation:
        """All pieces as one observation."""
        for rows, exponent in self.scales:
            if exponent != self.sums.exponent:
                self.row_sums[rows] *= math.ldexp(1.0, exponent - self.sums.exponent)
        table = TableStatistics(
            self.sums.key_words, self.sums.counts.copy(), self.sums.hi + self.sums.lo
        )
        return Observation(
            self.row_sums, self.line_of_row, table, self.sums.exponent, self.n_negative
        )
