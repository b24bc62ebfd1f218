"""What workers do with one partition of a Dask collection; plain, pure functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from a1gm._result.fill import fill_table
from a1gm._result.fill_rows import RowRule
from a1gm._sources import Source, read_input
from a1gm._observe.one_pass import observe
from a1gm._api.pattern_table import PatternTable
from a1gm._base.types import Bools, Floats, Ints, Negatives
from a1gm.exceptions import DataError, TableTooLargeError

__all__ = ["count_partition", "fill_partition", "merge_tables", "partition_factors"]


def count_partition(
    block: Any,
    number: int,
    first_row: int | None,
    negatives: Negatives,
    max_bytes: int,
) -> bytes:
    """Count a partition under its number, so that a second count changes nothing.

    ``first_row`` is None when the rows before are not known.
    """
    table = PatternTable(
        keep_rows=False, negatives=negatives, max_bytes=max_bytes, n_threads=1
    )
    if len(block) == 0:
        return table.skip(number).to_bytes()
    try:
        source = read_input(block)
        seen = observe(
            source,
            n_threads=1,
            negatives=negatives,
            keep_table=True,
            row_offset=first_row or 0,
        )
        table.add_observation(seen, number)
    except (DataError, TableTooLargeError) as error:
        raise type(error)(f"Partition {number}: {error}") from None
    if isinstance(source, Source):
        table._col_labels = source.col_labels
    return table.to_bytes()


def merge_tables(pieces: list[bytes], max_bytes: int) -> bytes:
    """Merge the tables of some partitions, in their order."""
    table = PatternTable(keep_rows=False, max_bytes=max_bytes)
    for piece in pieces:
        table.merge(PatternTable.from_bytes(piece))
    return table.to_bytes()


def partition_factors(block: Any, rule: RowRule) -> Floats:
    """Row factors of a partition."""
    if len(block) == 0:
        return np.zeros(0)
    return rule.row_factors(_rows_of(block))


def fill_partition(block: Any, rule: RowRule, dtypes: dict[int, Any]) -> Any:
    """Fill a partition; columns that have holes anywhere get their common type."""
    filled = block
    if len(block):
        values: Floats | None = None

        def value_of(i: Ints, j: Ints) -> Floats:
            nonlocal values
            if values is None:
                values = rule.fill(_rows_of(block))
            found: Floats = values[i, j]
            return found

        filled = fill_table(block, read_input(block), value_of).table
    if not dtypes:
        return filled
    out = filled.copy(deep=False)
    for j, dtype in dtypes.items():
        if out.dtypes.iloc[j] != dtype:
            out.isetitem(j, out.iloc[:, j].astype(dtype))
    return out


def _rows_of(block: Any) -> Floats:
    source = read_input(block)
    rows: Floats = source.rows(slice(0, source.n_rows))
    return rows


def common_dtypes(meta: Any, has_holes: Bools) -> dict[int, Any]:
    """Types of the columns of a frame that have holes and cannot keep their type."""
    sample = meta.iloc[:0]
    dtypes: dict[int, Any] = {}
    for j in np.flatnonzero(has_holes):
        old = sample.dtypes.iloc[j]
        new = _filled_dtype(old)
        if new != old:
            dtypes[int(j)] = new
    return dtypes


def _filled_dtype(dtype: Any) -> Any:
    """Type of a filled column: floats keep theirs, others become 64-bit floats."""
    from a1gm._result.fill_frames import _pandas_values

    return _pandas_values(np.zeros(1), dtype).dtype
