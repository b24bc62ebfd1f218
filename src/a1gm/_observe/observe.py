"""The one place that observes: any source becomes statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

from a1gm._base.float_range import shifted
from a1gm._base.types import Floats, Negatives, SmallInts
from a1gm._observe.observation import TABLE_CELLS, Observation
from a1gm._observe.one_pass import observe_parts
from a1gm._observe.scatter import with_scatter
from a1gm._observe.sparse import observe_sparse
from a1gm._observe.statistics import PatternStatistics
from a1gm._observe.sums import PatternSums
from a1gm._observe.weights import observe_weighted
from a1gm._rows.read import AnyRows
from a1gm._rows.rows import Rows
from a1gm._rows.sparse import SparseRows
from a1gm.exceptions import InfiniteValuesError, NegativeValuesError


def observe(
    source: AnyRows,
    *,
    n_threads: int | None = None,
    negatives: Negatives | None = "raise",
    keep_table: bool = False,
    row_offset: int = 0,
    scatter: bool = False,
) -> Observation:
    """Observe a table once, and raise for cells that cannot be fitted.

    Parameters
    ----------
    source : Rows or SparseRows
        The table.
    n_threads : int, optional
        Threads for the pass; the cores available by default.
    negatives : {"raise", "allow"}
        What to do with cells below zero; None if the caller has no such option.
    keep_table : bool
        Keep the sums of every pattern, however many there are.
    row_offset : int
        Rows of the table before this piece, for messages.
    scatter : bool
        Keep the sums that the scatter of the cells needs, beside those of patterns.
    """
    if source.weights is not None:
        return observe_weighted(source, n_threads=n_threads)
    if isinstance(source, SparseRows):
        return observe_sparse(source, negatives=negatives, row_offset=row_offset)
    look = observe_parts if source.cut is None else _observe_pieces
    seen = look(
        source,
        n_threads=n_threads,
        negatives=negatives,
        keep_table=keep_table,
        row_offset=row_offset,
    )
    return with_scatter(source, seen, n_threads) if scatter else seen


def _observe_pieces(
    source: Rows, *, row_offset: int = 0, keep_table: bool = False, **options: Any
) -> Observation:
    """Add up the pattern tables of the pieces; join the pieces only where they must.

    A table with nearly as many patterns as rows needs a mask, and masks of pieces do
    not add up. After a bad cell the whole table is read, to count all bad cells.
    """
    found = _Pieces(source)
    try:
        for first, piece in source.pieces():
            seen = observe_parts(piece, keep_table=keep_table, **options)
            if not found.add(first, seen) or (not keep_table and found.has_many):
                break
        else:
            return found.observation()
    except (InfiniteValuesError, NegativeValuesError):
        pass
    whole = source.in_one_piece()
    return observe_parts(whole, row_offset=row_offset, keep_table=keep_table, **options)


class _Pieces:
    """Sums per pattern so far, and the sum and pattern of every row, in memory."""

    def __init__(self, source: Rows) -> None:
        self.sums = PatternSums(source.n_cols)
        self.row_sums: Floats = np.empty(source.n_rows)
        self.line_of_row: SmallInts = np.empty(source.n_rows, np.int32)
        self.scales: list[tuple[slice, int]] = []
        self.n_negative = 0

    def add(self, first: int, seen: Observation) -> bool:
        """Add a piece; False when it has no table of patterns."""
        if not isinstance(seen.statistics, PatternStatistics):
            return False
        rows = slice(first, first + seen.n_rows)
        self.line_of_row[rows] = self.sums.add_observation(seen)
        self.row_sums[rows] = seen.row_sums
        self.scales.append((rows, seen.exponent))
        self.n_negative += seen.n_negative
        return True

    @property
    def has_many(self) -> bool:
        """Whether there are so many patterns that a bit mask is smaller."""
        n = len(self.sums)
        is_large = n * self.sums.n_cols > TABLE_CELLS
        return is_large and n * 4 > self.scales[-1][0].stop

    def observation(self) -> Observation:
        """All pieces as one observation."""
        exponent = self.sums.exponent
        for rows, own in self.scales:
            if own != exponent:
                self.row_sums[rows] = shifted(self.row_sums[rows], own - exponent)
        return Observation(
            self.row_sums,
            self.line_of_row,
            self.sums.statistics(),
            exponent,
            self.n_negative,
        )
