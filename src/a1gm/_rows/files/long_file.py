"""A file with one row per cell, as a long table in memory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._base.types import Floats, Negatives
from a1gm._rows.files.table_file import Progress
from a1gm._rows.files.table_files import TableFiles

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class LongFile:
    """The rows of files: the cells as they stand, and the numbers of one column."""

    files: TableFiles
    table: pa.Table
    keys: tuple[str, ...]
    value: str
    numbers: Floats

    @property
    def frame(self) -> pa.Table:
        """The keys and the numbers; an empty key of text is a missing one."""
        import pyarrow as pa

        columns = {name: _without_empty(self.table[name]) for name in self.keys}
        return pa.table({**columns, self.value: pa.array(self.numbers)})


def read_long_file(
    files: TableFiles,
    keys: Sequence[str],
    value: str,
    negatives: Negatives | None = "raise",
    progress: Progress | None = None,
    whose: str | None = None,
) -> LongFile:
    """Read files with one row per cell; bad values are refused with their place.

    None for ``negatives`` leaves that to the fit, which may be one of many. ``whose``
    tells messages who names the column of the values.
    """
    import pyarrow as pa

    files = files.choosing(columns=[value], exclude=(), id=keys, whose=whose)
    batches: list[Any] = []
    numbers: list[Floats] = []
    with closing(files.pieces(all_columns=True, progress=progress)) as pieces:
        for first_row, piece in pieces:
            if first_row == 0:
                batches, numbers = [], []
            if negatives is not None:
                piece.check_cells(negatives)
            batches.append(piece.batch)
            numbers.append(piece.values[:, 0])
    # Files may have further columns, in another order, and integers beside floats.
    tables = [pa.Table.from_batches([batch]) for batch in batches]
    table = pa.concat_tables(tables, promote_options="permissive")
    return LongFile(files, table, tuple(keys), value, np.concatenate(numbers))


def _without_empty(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
