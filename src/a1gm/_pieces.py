"""Observe a table whose columns come in chunks, a piece of rows at a time."""

from __future__ import annotations

from a1gm._input import Source
from a1gm._observe import TABLE_CELLS, Observation, observe
from a1gm._pattern_table import PatternTable
from a1gm._statistics import TableStatistics
from a1gm._types import Negatives
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
    table = PatternTable(source.n_cols, negatives=negatives, n_threads=n_threads)
    try:
        for first, piece in source.pieces():
            seen = observe(
                piece, n_threads=n_threads, negatives=negatives, keep_table=keep_table
            )
            if not isinstance(seen.statistics, TableStatistics):
                break
            table.add_observation(seen, first)
            if not keep_table and _is_waste(table):
                break
        else:
            return table.observation()
    except (InfiniteValuesError, NegativeValuesError):
        pass
    return observe(
        source.in_one_piece(),
        n_threads=n_threads,
        negatives=negatives,
        keep_table=keep_table,
        row_offset=row_offset,
    )


def _is_waste(table: PatternTable) -> bool:
    cells = table.n_patterns * (table.n_columns or 0)
    return cells > TABLE_CELLS and table.n_patterns * 4 > table.n_rows
