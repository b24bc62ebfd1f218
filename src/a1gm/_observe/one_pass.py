"""One pass of the kernel over a table that lies in memory in one piece."""

from __future__ import annotations

import math

from a1gm._base.types import Negatives
from a1gm._kernel import kernel, say_if_slow, threads_for
from a1gm._observe.observation import LIFT, TABLE_CELLS, TINY, Observation
from a1gm._observe.statistics import MaskStatistics, PatternStatistics, Statistics
from a1gm._sources.cells import check_faults
from a1gm._sources.dense import Source

__all__ = ["observe_parts"]


def observe_parts(
    source: Source,
    *,
    n_threads: int | None = None,
    negatives: Negatives = "raise",
    keep_table: bool = False,
    row_offset: int = 0,
) -> Observation:
    """Observe a table in one piece, and raise for cells that cannot be fitted."""
    say_if_slow()
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
        statistics = MaskStatistics(
            bits, positive if has_zero else None, row_sums, col_sums
        )
        return Observation(row_sums, None, statistics, exponent, negative[0])
    ids, keys, counts, sums = found
    statistics = PatternStatistics(keys, counts, sums)
    return Observation(row_sums, ids, statistics, exponent, negative[0])
