"""A table file as one array with names, for what needs the whole table in memory."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

import numpy as np

from a1gm._base.types import Floats, Negatives
from a1gm._rows.files.doubts import refuse_long, say_doubts
from a1gm._rows.files.table_file import Progress
from a1gm._rows.files.table_files import TableFiles
from a1gm._rows.rows import Rows


@dataclass(frozen=True)
class WholeTable:
    """A table in memory; NaN is a missing cell."""

    name: str  # what messages call it
    values: Floats
    id: tuple[str, ...]  # the columns that name the rows
    ids: list[str] | None  # their names
    places: list[str]  # without ids: "line 2" or "row 0"
    columns: tuple[str, ...]

    @property
    def source(self) -> Rows:
        """The table with the names that messages use."""
        n_rows, n_cols = self.values.shape
        names, columns = self.ids or self.places, list(self.columns)
        return Rows([(self.values, None, None, 0, 0)], n_rows, n_cols, names, columns)


def read_whole(
    files: TableFiles,
    negatives: Negatives = "raise",
    progress: Progress | None = None,
    *,
    refuses_long: bool = False,
) -> WholeTable:
    """Read a table into memory; bad cells are refused with their place in the file.

    With ``refuses_long`` so is a file that looks as if it had one row per cell.
    """
    arrays: list[Floats] = []
    is_first = files.counts is None
    with closing(files.pieces(progress=progress)) as pieces:
        for first_row, piece in pieces:
            if first_row == 0:
                arrays = []
                if refuses_long:
                    refuse_long(files, is_read=False)
            piece.check_cells(negatives)
            arrays.append(piece.values)
    if refuses_long:
        refuse_long(files)
    values = np.concatenate(arrays)
    if is_first:
        say_doubts(files, np.nansum(values, axis=0))
    ids = files.row_labels
    places: list[str] = []
    if ids is None:
        noun, numbers = files.name_rows(range(len(values)))
        places = [f"{noun} {number}" for number in numbers]
    return WholeTable(files.name, values, files.id, ids, places, files.names)
