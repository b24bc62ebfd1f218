"""One pass over a table, or over tables side by side: all that a fit needs to know."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from a1gm._base.types import AnyArray, Floats, Negatives
from a1gm._kernel import kernel, say_if_slow, threads_for
from a1gm._observe.statistics import (
    Statistics,
    TableStatistics,
    WideStatistics,
)
from a1gm._sources import AnySource, SparseSource
from a1gm.exceptions import InfiniteValuesError, NegativeValuesError

__all__ = ["Columns", "Observation", "check_faults", "observe", "observe_side_by_side"]

TABLE_CELLS = 1 << 16  # a pattern table smaller than this is always kept
TINY = 2.0**-900  # tables whose total is below are scaled up
LIFT = 2.0**200
ADVICE = (
    ' (missing_values= does it for a marker), or pass negatives="allow" to fit the '
    "margins only"
)

# Count, row, column and value: how many cells are bad, and the first of them.
Fault = tuple[int, int, int, float]


class Columns(Protocol):
    """What the pass needs of a table in one piece whose columns stand beside others."""

    @property
    def name(self) -> str:
        """What messages call the table."""

    @property
    def parts(self) -> Sequence[Any]:
        """Stretches of columns, as the kernel reads them."""

    @property
    def n_rows(self) -> int:
        """Rows of the table."""

    @property
    def n_cols(self) -> int:
        """Columns of the table."""

    def where(self, row: int, col: int, row_offset: int = 0) -> str:
        """Name a cell the way its owner does."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What one pass finds.

    ``line_of_row`` says which line of the statistics each row belongs to; None when
    every row is its own line. Sums are those of the data times 2**-exponent.
    ``row_sums`` has one number per row; tables that were observed side by side have one
    row of numbers per group (per table, or a single one when all count alike).
    """

    row_sums: Floats
    line_of_row: AnyArray | None
    statistics: Statistics
    exponent: int
    n_negative: int

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return int(self.row_sums.shape[-1])


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
    seen = _observe_parts(
        [source],
        separate=False,
        n_threads=n_threads,
        keep_table=keep_table,
        negatives=negatives,
        row_offset=row_offset,
    )
    return replace(seen, row_sums=seen.row_sums[0])


def observe_side_by_side(
    sources: Sequence[Columns],
    *,
    separate: bool,
    n_threads: int | None = None,
    keep_table: bool = False,
) -> Observation:
    """Observe tables with the same rows in one pass, as if they were one table.

    The statistics have the columns of all tables, one table after the other. With
    ``separate`` each table has row sums of its own; otherwise they count into one.
    Negative cells are refused: several tables have no option that allows them.
    """
    say_if_slow()
    return _observe_parts(
        sources,
        separate=separate,
        n_threads=n_threads,
        keep_table=keep_table,
        negatives=None,
    )


def _observe_parts(
    sources: Sequence[Columns],
    *,
    separate: bool,
    n_threads: int | None,
    keep_table: bool,
    negatives: Negatives | None,
    row_offset: int = 0,
) -> Observation:
    """Run the kernel's pass, again on another scale when the sums leave float64."""
    parts = [
        (*part[:4], k if separate else 0)
        for k, source in enumerate(sources)
        for part in source.parts
    ]
    n_groups = len(sources) if separate else 1
    n_cells = sources[0].n_rows * sum(source.n_cols for source in sources)
    threads = threads_for(n_cells, n_threads)
    exponent = 0
    while True:
        row_sums, wide, found, total, overflow, negative, infinite = kernel.observe(
            parts,
            n_groups,
            threads,
            math.ldexp(1.0, -exponent),
            TABLE_CELLS,
            keep_table,
        )
        _check_columns(sources, negative, infinite, negatives, row_offset)
        # Sums that are finite still overflow when their total does: it divides them.
        if (overflow or not math.isfinite(total)) and exponent <= 0:
            exponent = 2 + int(math.log2(n_cells))
        elif exponent == 0 and 0.0 < total < TINY:
            exponent = -int(math.log2(LIFT))
        else:
            break
    if not wide:
        ids, keys, counts, sums = found
        table = TableStatistics(keys, counts, sums)
        return Observation(row_sums, ids, table, exponent, negative[0])
    bits, positive, col_sums, has_zero = found
    of_rows = row_sums[0] if n_groups == 1 else row_sums.sum(axis=0)
    mask = WideStatistics(bits, positive if has_zero else None, of_rows, col_sums)
    return Observation(row_sums, None, mask, exponent, negative[0])


def _check_columns(
    sources: Sequence[Columns],
    negative: Fault,
    infinite: Fault,
    negatives: Negatives | None,
    row_offset: int,
) -> None:
    """Raise for bad cells in the words of the table that has the first of them."""
    col = (infinite if infinite[0] else negative)[2]
    for source in sources:
        if col < source.n_cols:
            break
        col -= source.n_cols
    negative = (*negative[:2], col, negative[3])
    infinite = (*infinite[:2], col, infinite[3])
    check_faults(source, negative, infinite, negatives, row_offset)


def check_faults(
    source: AnySource | Columns,
    negative: Fault,
    infinite: Fault,
    negatives: Negatives | None,
    row_offset: int = 0,
) -> None:
    """Raise for infinite cells, and for negative ones unless they are allowed.

    ``negatives`` is None where the caller has no such option to advise.
    """
    count, row, col, value = infinite
    if count:
        where, name = source.where(row, col, row_offset), getattr(source, "name", "X")
        msg = (
            f"Input {name} contains infinity: {where} = {value} ({count} in all). "
            "Entries must be finite; mark unknown ones as NaN."
        )
        raise InfiniteValuesError(msg)
    count, row, col, value = negative
    if count and negatives != "allow":
        where = source.where(row, col, row_offset)
        advice = "" if negatives is None else ADVICE
        msg = (
            f"Negative values in data: {where} = {value:g} ({count} in all). Entries "
            f"must be >= 0; mark unknown ones as NaN{advice}."
        )
        raise NegativeValuesError(msg)
