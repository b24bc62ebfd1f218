"""One pass over all tables that share the same rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from a1gm._kernel import kernel, say_if_slow, threads_for
from a1gm._observe.one_pass import LIFT, TABLE_CELLS, TINY
from a1gm._observe.statistics import TableStatistics, WideStatistics
from a1gm._base.types import AnyArray, Bools, Floats
from a1gm.exceptions import (
    InfiniteValuesError,
    NegativeValuesError,
    NothingObservedError,
)
from a1gm.nmmf.layout import Layout, SharedTable

__all__ = [
    "SideBySide",
    "check_faults",
    "check_something_observed",
    "observe_row_set",
    "observe_row_sets",
    "weighted_row_sums",
]

Fault = tuple[int, int, int, float]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """What one pass over row-aligned tables finds.

    ``statistics`` has the columns of all its tables, one table after the other;
    ``row_sums`` one line per table, or a single one when the tables count alike. Sums
    are those of the data times 2**-exponent, and ``total`` is that of all tables.
    """

    row_sums: Floats
    line_of_row: AnyArray | None
    statistics: TableStatistics | WideStatistics
    exponent: int
    total: float

    @property
    def n_rows(self) -> int:
        """Rows of each of the tables."""
        return int(self.row_sums.shape[1])


def observe_row_sets(
    layout: Layout, *, n_threads: int | None = None
) -> list[SideBySide]:
    """Observe every table once, those that share rows together."""
    seen = []
    for rows in layout.row_sets:
        tables = [layout.tables[t] for t in rows.tables]
        # Tables of one weight count into one sum: a second array of row sums is dear.
        separate = len({t.weight for t in tables}) > 1 or (
            len(tables) > 1 and tables[0].is_passive
        )
        seen.append(observe_row_set(tables, n_threads=n_threads, separate=separate))
    return seen


def observe_row_set(
    tables: list[SharedTable],
    *,
    n_threads: int | None,
    separate: bool,
    keep_table: bool = False,
) -> SideBySide:
    """Observe tables with the same rows in one pass."""
    say_if_slow()
    parts = [
        (*part[:4], k if separate else 0)
        for k, table in enumerate(tables)
        for part in table.source.parts
    ]
    n_cells = sum(t.source.n_rows * t.source.n_cols for t in tables)
    threads = threads_for(n_cells, n_threads)
    n_groups = len(tables) if separate else 1
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
        check_faults(tables, negative, infinite)
        if (overflow or not math.isfinite(total)) and exponent <= 0:
            exponent = 2 + int(math.log2(n_cells))
        elif exponent == 0 and 0.0 < total < TINY:
            exponent = -int(math.log2(LIFT))
        else:
            break
    statistics: TableStatistics | WideStatistics
    if wide:
        bits, positive, col_sums, has_zero = found
        all_sums = row_sums[0] if n_groups == 1 else row_sums.sum(axis=0)
        statistics = WideStatistics(
            bits, positive if has_zero else None, all_sums, col_sums
        )
        ids = None
    else:
        ids, keys, counts, sums = found
        statistics = TableStatistics(keys, counts, sums)
    check_something_observed(tables, statistics.has_observed()[1])
    return SideBySide(row_sums, ids, statistics, exponent, total)


def _table_of_column(tables: list[SharedTable], col: int) -> tuple[SharedTable, int]:
    for table in tables:
        if col < table.source.n_cols:
            return table, col
        col -= table.source.n_cols
    raise IndexError(col)


def check_faults(tables: list[SharedTable], negative: Fault, infinite: Fault) -> None:
    """Refuse infinite and negative cells, naming the table and the cell."""
    count, row, col, value = infinite
    if count:
        table, col = _table_of_column(tables, col)
        msg = (
            f"{table.name} contains infinity: {table.where(row, col)} = {value} "
            f"({count} in all). Entries must be finite; mark unknown ones as NaN."
        )
        raise InfiniteValuesError(msg)
    count, row, col, value = negative
    if count:
        table, col = _table_of_column(tables, col)
        msg = (
            f"Negative values in data: {table.where(row, col)} = {value:g} ({count} in "
            "all). Entries must be >= 0; mark unknown ones as NaN."
        )
        raise NegativeValuesError(msg)


def check_something_observed(tables: list[SharedTable], columns: Bools) -> None:
    """Refuse a table without any number; ``columns`` has those of all tables."""
    start = 0
    for table in tables:
        stop = start + table.source.n_cols
        if not columns[start:stop].any():
            give = "Give" if table.key == "X" else "Leave the table out, or give"
            msg = (
                f"Nothing is observed in {table.name}: all of its {table.shape_text} "
                f"cells are missing. {give} it at least one number."
            )
            raise NothingObservedError(msg)
        start = stop


def weighted_row_sums(seen: SideBySide, weights: Floats) -> Floats:
    """Row sums with each table's weight; overwrites those of ``seen``.

    A second long array would cost more than the arithmetic.
    """
    sums = seen.row_sums
    for k in range(len(sums)):
        if weights[k] != 1.0:
            sums[k] *= weights[k]
    total: Floats = sums[0]
    for k in range(1, len(sums)):
        np.add(total, sums[k], out=total)
    return total
