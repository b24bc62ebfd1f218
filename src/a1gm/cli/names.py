"""What messages call the rows and columns of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from a1gm._result.messages import MOST_LINES, named_lines

if TYPE_CHECKING:
    import pyarrow as pa

    from a1gm._sources.files import TableReader


@dataclass(frozen=True)
class FileNames:
    """Names as the owner of the file finds them.

    Rows go by the column that ``--id`` names, else by the lines of a text file (the
    header is line 1), else by their number from 0, as errors about typed files do.
    Columns go by their header. The file is read again for the rows that are named.
    """

    table: TableReader
    see: str = "a1gm report lists them"

    def rows(self, places: Sequence[int], total: int) -> str:
        """Name the first of some rows."""
        noun, names = self._rows(places[:MOST_LINES])
        return named_lines(noun, names, total)

    def columns(self, places: Sequence[int], total: int) -> str:
        """Name the first of some columns."""
        names = [repr(self.table.names[place]) for place in places[:MOST_LINES]]
        return named_lines("column", names, total)

    def cell(self, row: int, col: int) -> str:
        """Name a cell."""
        return f"{self.rows([row], 1)}, {self.columns([col], 1)}"

    def all_rows(self) -> list[str]:
        """Name every row; the table must have been read."""
        noun, names = self._rows(range(self.table.source.n_rows or 0))
        return names if self.table.options.id else [f"{noun} {name}" for name in names]

    def _rows(self, places: Sequence[int]) -> tuple[str, list[str]]:
        from a1gm._sources.files.csv import CsvSource

        if not places:
            return "row", []
        if self.table.options.id:
            return "row", [repr(name) for name in _ids_of(self.table, places)]
        if isinstance(self.table.source, CsvSource):
            return "line", [str(line) for line in self.table.source.lines_of(places)]
        return "row", [str(place) for place in places]


def ids_of_batch(table: TableReader, batch: pa.RecordBatch) -> list[str]:
    """Names of the rows of a batch, from the columns that ``--id`` names."""
    columns = [
        batch.column(batch.schema.get_field_index(name)).to_pylist()
        for name in table.options.id
    ]
    return [" · ".join(map(str, ids)) for ids in zip(*columns, strict=True)]


def _ids_of(table: TableReader, places: Sequence[int]) -> list[str]:
    found: dict[int, str] = {}
    first = 0
    for batch in table.source.batches():
        inside = [k for k in places if first <= k < first + batch.num_rows]
        for place in inside:
            found[place] = ids_of_batch(table, batch.slice(place - first, 1))[0]
        first += batch.num_rows
        if len(found) == len(set(places)):
            break
    return [found[place] for place in places]
