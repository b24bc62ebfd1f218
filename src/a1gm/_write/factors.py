"""Factors to files, beside the names of their rows or columns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from a1gm._rows.files.table import TableFiles
from a1gm._write.writers import open_writer

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS_AT_ONCE = 1 << 16


def write_factor(
    path: str | os.PathLike[str],
    names: Iterable[pa.RecordBatch],
    columns: dict[str, Any],
    block: Any,
    *,
    overwrite: bool = False,
) -> None:
    """Write a factor and the blocks of its rows or columns, beside their ``names``.

    ``columns`` are the factor and its errors; None is a column of nulls. Slices are
    taken of them, and of ``block``: they may be computed where they are looked at.
    """
    import pyarrow as pa

    batches = iter(names)
    batch = next(batches)
    more = [*((name, pa.float64()) for name in columns), ("block", pa.int64())]
    schema = pa.schema([*batch.schema, *(pa.field(*column) for column in more)])
    start = 0
    with open_writer(path, schema, overwrite=overwrite) as writer:
        while batch is not None:
            stop = start + batch.num_rows
            numbers = [
                pa.nulls(stop - start, pa.float64())
                if values is None
                else pa.array(values[start:stop], pa.float64(), from_pandas=True)
                for values in columns.values()
            ]
            blocks = pa.array(block[start:stop], pa.int64())
            every = [*batch.columns, *numbers, blocks]
            writer.write(pa.RecordBatch.from_arrays(every, schema=schema))
            start, batch = stop, next(batches, None)


def write_frame(
    path: str | os.PathLike[str], frame: pa.Table, *, overwrite: bool = False
) -> None:
    """Write a frame as it is."""
    with open_writer(path, frame.schema, overwrite=overwrite) as writer:
        for batch in frame.to_batches():
            writer.write(batch)


def names_of_rows(files: TableFiles) -> Iterator[pa.RecordBatch]:
    """Read the columns that name the rows of files, or number the rows from 0."""
    if files.id:
        yield from files.id_batches()
        return
    n_rows = files.n_rows or 0
    for start in range(0, n_rows, _ROWS_AT_ONCE):
        yield one_batch("row", range(start, min(start + _ROWS_AT_ONCE, n_rows)))


def one_batch(title: str, names: Sequence[object]) -> pa.RecordBatch:
    """Put names that are in memory into one column."""
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.array(names)], names=[title])
