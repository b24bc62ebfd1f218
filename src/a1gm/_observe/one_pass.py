"""One pass of the kernel over a table in one piece, or over tables side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from a1gm._base.types import Negatives
from a1gm._kernel import kernel, say_if_slow, threads_for
from a1gm._observe.observation import LIFT, TABLE_CELLS, TINY, Observation
from a1gm._observe.statistics import MaskStatistics, PatternStatistics
from a1gm._sources.cells import Fault, check_faults
from a1gm._sources.dense import Source

__all__ = ["Columns", "observe_parts", "observe_side_by_side"]


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


def observe_parts(
    source: Source, *, negatives: Negatives = "raise", **options: Any
) -> Observation:
    """Observe a table in one piece; options as ``observe_side_by_side``."""
    seen = observe_side_by_side(
        [source], separate=False, negatives=negatives, **options
    )
    return replace(seen, row_sums=seen.row_sums[0])


def observe_side_by_side(
    sources: Sequence[Columns],
    *,
    separate: bool,
    n_threads: int | None = None,
    keep_table: bool = False,
    negatives: Negatives | None = None,
    row_offset: int = 0,
) -> Observation:
    """Observe tables with the same rows in one pass, as if they were one table.

    The statistics have the columns of all tables, one table after the other. With
    ``separate`` each table has row sums of its own; otherwise they count into one.
    Cells that cannot be fitted are refused; ``negatives`` is None where the caller has
    no option that allows negative ones. The pass runs again on another scale when the
    sums leave float64.
    """
    say_if_slow()
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
        # Finite sums are not enough: they are divided by their total.
        if (overflow or not math.isfinite(total)) and exponent <= 0:
            exponent = 2 + int(math.log2(n_cells))
        elif exponent == 0 and 0.0 < total < TINY:
            exponent = -int(math.log2(LIFT))
        else:
            break
    if not wide:
        ids, keys, counts, sums = found
        table = PatternStatistics(keys, counts, sums)
        return Observation(row_sums, ids, table, exponent, negative[0])
    bits, positive, col_sums, has_zero = found
    of_rows = row_sums[0] if n_groups == 1 else row_sums.sum(axis=0)
    mask = MaskStatistics(bits, positive if has_zero else None, of_rows, col_sums)
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
