"""Table files in memory, for what needs the whole table: as an array, or as cells."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._base.types import Floats, Negatives
from a1gm._rows.files.table import Progress, TableFiles
from a1gm._rows.rows import Rows

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class WholeTable:
    """A table in memory; NaN is a missing cell."""

    name: str  # in messages
    values: Floats
    id: tuple[str, ...]  # the columns that label the rows
    ids: list[str] | None  # their labels
    places: list[str]  # without ids: "line 2" or "row 0"
    columns: tuple[str, ...]

    @property
    def source(self) -> Rows:
        """The table with the names that messages use."""
        n_rows, n_cols = self.values.shape
        names, columns = self.ids or self.places, list(self.columns)
        return Rows([(self.values, None, None, 0)], n_rows, n_cols, names, columns)


def read_whole(
    files: TableFiles, negatives: Negatives = "raise", progress: Progress | None = None
) -> WholeTable:
    """Read a table into memory; bad cells are refused with their place in the file."""
    arrays: list[Floats] = []
    with closing(files.pieces(progress=progress)) as pieces:
        for first_row, piece in pieces:
            if first_row == 0:
                arrays = []
            piece.check_cells(negatives)
            arrays.append(piece.values)
    values = np.concatenate(arrays)
    ids = files.row_labels
    places: list[str] = []
    if ids is None:
        noun, numbers = files.name_rows(range(len(values)))
        places = [f"{noun} {number}" for number in numbers]
    return WholeTable(files.name, values, files.id, ids, places, files.names)


def hole_shares(files: TableFiles, height: int, width: int) -> Floats:
    """Return the share of missing cells in each of some bands of rows and columns.

    The files are read again, after the pass that counts their rows.
    """
    n_rows, n_cols = files.n_rows or 0, files.n_cols
    height, width = min(height, n_rows), min(width, n_cols)
    left = np.arange(width) * n_cols // width
    holes, cells = np.zeros((height, width)), np.zeros((height, 1))
    for rows, values in files.blocks():
        missing = np.add.reduceat(np.isnan(values), left, axis=1, dtype=np.int64)
        band = np.arange(rows.start, rows.stop) * height // n_rows
        top = np.flatnonzero(np.diff(band, prepend=-1))
        holes[band[top]] += np.add.reduceat(missing, top, axis=0)
        cells[:, 0] += np.bincount(band, minlength=height)
    shares: Floats = holes / (cells * np.diff(left, append=n_cols))
    return shares


# ------------------------------------------------------------------- one row per cell
@dataclass(frozen=True)
class LongFile:
    """The rows of files: the cells as they are, and the numbers of one column."""

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
    is what names the column of the values, for messages.
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
