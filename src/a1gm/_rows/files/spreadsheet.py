"""Spreadsheets (Excel, OpenDocument): one sheet, its cells as text."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from a1gm._base.optional import require
from a1gm._base.words import counted, listed, shown
from a1gm._rows.files.csv import no_rows
from a1gm._rows.files.formulas import cells_without_value
from a1gm._rows.files.headers import check_names_differ
from a1gm._rows.files.options import TableOptions
from a1gm._rows.files.origin import Origin
from a1gm.exceptions import FileFormatError, Option

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_CELLS = 1 << 21


class SpreadsheetSource:
    """A sheet whose first row is the header, with the interface of a text table.

    Numbers become their shortest text, dates theirs in ISO form: what is a number, what
    is missing and what names the rows is then decided as in any text table. The sheet
    is held in memory.
    """

    row_noun = "sheet row"

    def __init__(self, origin: Origin, options: TableOptions) -> None:
        import pyarrow as pa

        self.origin = origin
        self.options = options
        self.position = 0
        self.sheet, self._first_row, rows = self._read()
        header, *rows = rows or [[]]
        keep = [
            j for j, name in enumerate(header) if name or any(row[j] for row in rows)
        ]
        while rows and not any(rows[-1]):
            rows.pop()
        names = [header[j] for j in keep]
        check_names_differ(f"{origin.name}, sheet {self.sheet!r}", names)
        if not rows:
            raise no_rows(f"{origin.name}, sheet {self.sheet!r},")
        self.n_rows: int | None = len(rows)
        self.schema = pa.schema([(name, pa.string()) for name in names])
        columns = [pa.array([row[j] for row in rows], pa.string()) for j in keep]
        self._batch = pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Give the rows of the sheet."""
        step = max(_BATCH_CELLS // max(self._batch.num_columns, 1), 1)
        for start in range(0, self._batch.num_rows, step):
            self.position = self.origin.size * start // self._batch.num_rows
            # Not a slice of the buffers: those of a text table begin with its rows.
            yield self._batch.take(_range(start, min(start + step, len(self._batch))))

    @property
    def about_cells_without_value(self) -> str:
        """What counts as missing though the sheet shows something; or nothing."""
        formulas, errors = self._without_value
        words = []
        if formulas:
            what = counted(len(formulas), "formula has", "formulas have")
            words.append(
                f"{what} no computed value (first: {formulas[0]}; open and save the "
                "file in a spreadsheet program to have them)"
            )
        if errors:
            what = counted(len(errors), "cell shows", "cells show")
            words.append(f"{what} an error such as #N/A (first: {errors[0]})")
        if not words:
            return ""
        where = f"{self.origin.name}, sheet {self.sheet!r}"
        return f"{where}: {', and '.join(words)}. They count as missing."

    def place_of(self, row: int) -> str:
        """Name a row (0-based) the way a spreadsheet does."""
        number = self.lines_of([row])[0]
        return f"{self.origin.name}, sheet {self.sheet!r}, row {number}"

    def lines_of(self, rows: Sequence[int]) -> list[int]:
        """Numbers of some rows (0-based) in the sheet."""
        return [row + self._first_row + 2 for row in rows]

    def _read(self) -> tuple[str, int, list[list[str]]]:
        reader = require("python_calamine", "excel", "Reading a spreadsheet")
        name = self.origin.name
        try:
            with self.origin.open() as file:
                book = reader.CalamineWorkbook.from_filelike(file)
                sheet = book.get_sheet_by_name(self._chosen(book))
                first = sheet.start[0] if sheet.start else 0
                cells = sheet.to_python(skip_empty_area=True)
                self._without_value = cells_without_value(file, sheet.name)
        except reader.PasswordError as error:
            raise FileFormatError(
                f"{name} has a password. Save it without one, or as .csv."
            ) from error
        except reader.CalamineError as error:
            raise FileFormatError(
                f"{name} is damaged: it cannot be read as a spreadsheet "
                f"({shown(error)}). Open it and save it again, or save it as .csv."
            ) from error
        return sheet.name, first, [[_text(cell) for cell in row] for row in cells]

    def _chosen(self, book: Any) -> str:
        names: list[str] = book.sheet_names
        asked = self.options.sheet
        if asked is not None:
            if asked not in names:
                raise FileFormatError(
                    f"{self.origin.name} has no sheet {asked!r}. Its sheets are: "
                    f"{listed([repr(n) for n in names])}."
                )
            return asked
        full = [n for n in names if book.get_sheet_by_name(n).total_height > 0]
        if len(full) > 1:
            raise FileFormatError(
                f"{self.origin.name} has {len(full)} sheets with cells in them: "
                f"{listed([repr(n) for n in full])}.",
                advice=["Pass ", Option("sheet", full[0]), " or another of these."],
            )
        return (full or names)[0]


def _text(cell: Any) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        return cell.date().isoformat()
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return str(cell)


def _range(start: int, stop: int) -> Any:
    import pyarrow as pa

    return pa.array(range(start, stop))
