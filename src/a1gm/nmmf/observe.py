"""Observe the tables of a layout: those that share their rows in one pass."""

from __future__ import annotations

import numpy as np

from a1gm._base.types import Bools, Floats
from a1gm._observe.observation import Observation
from a1gm._observe.one_pass import observe_side_by_side
from a1gm._observe.statistics import MaskStatistics, PatternStatistics
from a1gm.exceptions import DataError
from a1gm.nmmf.layout import Layout, SharedTable


def observe_row_sets(layout: Layout, n_threads: int | None) -> list[Observation]:
    """Observe every table once, those that share rows together.

    Tables of one weight count into one row sum: a second long array costs time.
    """
    found = []
    for tables in map(layout.of_rows, range(len(layout.row_sets))):
        weights = {table.weight for table in tables}
        separate = len(weights) > 1 or (len(tables) > 1 and tables[0].is_passive)
        seen = observe_side_by_side(tables, separate=separate, n_threads=n_threads)
        check_something_observed(tables, seen.statistics.has_observed()[1])
        found.append(seen)
    return found


def check_something_observed(tables: list[SharedTable], has_data: Bools) -> None:
    """Raise for a table without any number; ``has_data`` is of all their columns."""
    start = 0
    for table in tables:
        if not has_data[start : start + table.n_cols].any():
            give = "Give" if table.key == "X" else "Leave the table out, or give"
            msg = (
                f"Nothing is observed in {table.name}: all of its {table.shape_text} "
                f"cells are missing. {give} it at least one number."
            )
            raise DataError(msg)
        start += table.n_cols


def statistics_of(seen: Observation) -> PatternStatistics | MaskStatistics:
    """The statistics of tables that lie in memory: these are never pairs of cells."""
    assert isinstance(seen.statistics, PatternStatistics | MaskStatistics)
    return seen.statistics


def weighted_row_sums(seen: Observation, weights: Floats) -> Floats:
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
