"""Reduce the statistics of a table to a core: twins merged, leaves dropped.

The work is the kernel's (``peel.cpp``, defined by ``reference.py``); here it is told
which cells take part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from a1gm._base.bits import pack_bits
from a1gm._solve.components import Components
from a1gm._kernel import kernel
from a1gm._observe.statistics import (
    PairStatistics,
    Statistics,
    TableStatistics,
    WideStatistics,
)
from a1gm._base.types import Ints

__all__ = ["reduce_margins", "reduce_statistics"]


def reduce_statistics(
    statistics: Statistics, components: Components | None, *, force: bool = False
) -> Any:
    """Peel the cells that lie inside a component.

    Returns None when a wide table turns out to have leaves, for which the sums of its
    cells are needed; ``force`` leaves them to the iteration instead.
    """
    if isinstance(statistics, TableStatistics):
        return _reduce_table(statistics, components)
    if isinstance(statistics, WideStatistics):
        return _reduce_wide(statistics, components, force=force)
    return _reduce_pairs(statistics, components)


def reduce_margins(statistics: Statistics, components: Components) -> Any:
    """Merge twins by their margins alone, leaves left to the iteration.

    For ``negatives="allow"`` with lines of zero sum: their factor is 0, but their cells
    still count in the margins they cross, so no sums of cells may be used.
    """
    every = slice(0, statistics.n_lines)
    inside = components.line[:, None] == components.col
    bits = pack_bits(statistics.observed_lines(every) & inside)
    return kernel.reduce_mask(
        bits, statistics.row_sums, statistics.col_sums, False, True
    )


def _reduce_table(table: TableStatistics, components: Components | None) -> Any:
    if components is None:
        reduced = kernel.reduce_mask(
            table.keys, table.row_sums, table.col_sums, True, False
        )
        if reduced is not None:
            return reduced
        return kernel.reduce_table(table.keys, table.sums)
    inside = table.observed & (components.line[:, None] == components.col)
    lines, cols = np.nonzero(inside)
    ptr = _pointers(lines, len(inside))
    sums = table.sums[lines, cols]
    return kernel.reduce_pairs(ptr, cols.astype(np.int32), sums, None, table.n_cols)


def _reduce_wide(
    wide: WideStatistics, components: Components | None, *, force: bool
) -> Any:
    bits = wide.bits
    if components is not None:
        inside = np.zeros((components.n + 1, wide.n_cols), bool)  # last: nothing
        known = np.flatnonzero(components.col >= 0)
        inside[components.col[known], known] = True
        bits = bits & pack_bits(inside)[components.line]
    return kernel.reduce_mask(bits, wide.row_sums, wide.col_sums, False, force)


def _reduce_pairs(pairs: PairStatistics, components: Components | None) -> Any:
    ptr, cols, sums, weights = pairs.ptr, pairs.cols, pairs.sums, pairs.weights
    if components is not None:
        lines = pairs.lines
        inside = components.line[lines] == components.col[cols]
        ptr = _pointers(lines[inside], len(ptr) - 1)
        cols, sums = cols[inside], sums[inside]
        weights = None if weights is None else weights[inside]
    return kernel.reduce_pairs(ptr, cols, sums, weights, pairs.n_cols)


def _pointers(lines: Ints, n_lines: int) -> Ints:
    counts = np.bincount(lines, minlength=n_lines)
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
