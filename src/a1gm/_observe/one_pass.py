"""One pass over a table: everything the fit needs to know of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from a1gm._sources import AnySource, SparseSource
from a1gm._kernel import kernel, say_if_slow, threads_for
from a1gm._observe.statistics import (
    Statistics,
    TableStatistics,
    WideStatistics,
)
from a1gm._base.types import AnyArray, Floats, Negatives
from a1gm.exceptions import InfiniteValuesError, NegativeValuesError

__all__ = ["Observation", "observe"]

TABLE_CELLS = 1 << 16  # a pattern table smaller than this is always kept
TINY = 2.0**-900  # tables whose total is below are scaled up
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
    source: AnySource,
    *,
    n_threads: int | None = None,
    negatives: Negatives = "raise",
    keep_table: bool = False,
    row_offset: int = 0,
) -> Observation:
    """Observe a table once, and refuse what cannot be fitted."""
    say_if_slow()
    if isinstance(source, SparseSource):
        from a1gm._observe.sparse import observe_sparse

        return observe_sparse(source, negatives=negatives, row_offset=row_offset)
    if source.cut is not None:
        from a1gm._observe.pieces import observe_pieces

        return observe_pieces(
            source,
            n_threads=n_threads,
            negatives=negatives,
            keep_table=keep_table,
            row_offset=row_offset,
        )
    threads = threads_for(source.n_rows * source.n_cols, n_threads)
    exponent = 0
    while True:
        row_sums, wide, found, total, overflow, negative, infinite = kernel.observe(
            source.parts,
            1,
            threads,
            math.ldexp(1.0, -exponent),
            TABLE_CELLS,
            keep_table,
        )
        check_faults(source, negative, infinite, negatives, row_offset)
        # Sums that are finite still overflow when their total does: it divides them.
        if (overflow or not math.isfinite(total)) and exponent <= 0:
            exponent = 2 + int(math.log2(source.n_rows * source.n_cols))
        elif exponent == 0 and 0.0 < total < TINY:
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
    source: AnySource,
    negative: tuple[int, int, int, float],
    infinite: tuple[int, int, int, float],
    negatives: Negatives,
    row_offset: int = 0,
) -> None:
    """Raise for infinite cells, and for negative ones unless they are allowed."""
    count, row, col, value = infinite
    if count:
        where = source.where(row, col, row_offset)
        msg = (
            f"Input X contains infinity: {where} = {value} ({count} in all). "
            "Entries must be finite; mark unknown ones as NaN."
        )
        raise InfiniteValuesError(msg)
    count, row, col, value = negative
    if count and negatives == "raise":
        where = source.where(row, col, row_offset)
        msg = (
            f"Negative values in data: {where} = {value:g} ({count} in all). Entries "
            "must be >= 0; mark unknown ones as NaN (missing_values= does it for a "
            'marker), or pass negatives="allow" to fit the margins only.'
        )
        raise NegativeValuesError(msg)
