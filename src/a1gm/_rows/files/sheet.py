"""Spreadsheets (Excel, OpenDocument): one sheet, its cells as text."""

from __future__ import annotations

import contextlib
import re
import zipfile
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

from a1gm._base.optional import require
from a1gm._base.words import counted, listed, shown
from a1gm._rows.files.source import InputFile, Source, TableOptions
from a1gm._rows.labels import plain_text
from a1gm.exceptions import FileFormatError, Option

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_CELLS = 1 << 21
_SHEET = re.compile(r"xl/worksheets/[^/]*\.xml")
_CELL = re.compile(rb"<c ([^>]*[^/>])>(.*?)</c>", re.DOTALL)
_VALUE = re.compile(rb"<v[^>]*>[^<]")


class SheetSource(Source):
    """A sheet whose first row is the header, read as a text table.

    Numbers become their shortest text, dates theirs in ISO form; what is a number and
    what is missing is then decided as in any text table. The sheet is held in memory.
    """

    def __init__(self, file: InputFile, options: TableOptions) -> None:
        import pyarrow as pa

        # Its numbers have no marks.
        super().__init__(file, replace(options, decimal=".", thousands=None))
        self.sheet, self._first_row, rows = self._read()
        self.row_noun = f"sheet {self.sheet!r}, row"
        header, *rows = rows or [[]]
        keep = [
            j for j, name in enumerate(header) if name or any(row[j] for row in rows)
        ]
        while rows and not any(rows[-1]):
            rows.pop()
        self.names = [header[j] for j in keep]
        self.check_names()
        if not rows:
            raise self.no_rows()
        self.n_rows = len(rows)
        self.schema = pa.schema([(name, pa.string()) for name in self.names])
        columns = [
            pa.array([row[j] or None for row in rows], pa.string()) for j in keep
        ]
        self._batch = pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def batches(
        self, columns: Sequence[str] | None = None
    ) -> Generator[pa.RecordBatch]:
        """Return the rows of the sheet."""
        self.position = self.file.size
        yield from self.slices(self._batch, columns, _BATCH_CELLS // len(self.names))

    def lines_of(self, rows: Sequence[int]) -> list[int]:
        """Return the numbers of some rows (0-based) in the sheet."""
        return [row + self._first_row + 2 for row in rows]

    def _read(self) -> tuple[str, int, list[list[str]]]:
        reader = require("python_calamine", "excel", "Reading a spreadsheet")
        name = self.file.name
        try:
            with self.file.open() as file:
                book = reader.CalamineWorkbook.from_filelike(file)
                sheet = book.get_sheet_by_name(self._chosen(book))
                first = sheet.start[0] if sheet.start else 0
                cells = sheet.to_python(skip_empty_area=True)
                self.hint = _hint(name, file)
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
                    f"{self.file.name} has no sheet {asked!r}. Its sheets are: "
                    f"{listed([repr(n) for n in names])}."
                )
            return asked
        full = [n for n in names if book.get_sheet_by_name(n).total_height > 0]
        if len(full) > 1:
            raise FileFormatError(
                f"{self.file.name} has {len(full)} sheets with cells in them: "
                f"{listed([repr(n) for n in full])}. Pass ",
                Option("sheet", full[0]),
                " or another of these.",
            )
        return (full or names)[0]


def _text(cell: Any) -> str:
    is_large = isinstance(cell, float) and abs(cell) >= 2**53
    return str(cell).lower() if is_large or isinstance(cell, bool) else plain_text(cell)


def _hint(name: str, file: IO[bytes]) -> str:
    """Count the cells that count as missing though a sheet shows something.

    The reader returns nothing for a formula without its value or for an error, as for
    an empty cell. Only .xlsx and .xlsm files are looked at.
    """
    n = 0
    with contextlib.suppress(zipfile.BadZipFile):
        book = zipfile.ZipFile(file)
        for part in filter(_SHEET.fullmatch, book.namelist()):
            for about, inside in _CELL.findall(book.read(part)):
                has_value = b"str" in about or _VALUE.search(inside)
                n += b't="e"' in about or (b"<f" in inside and not has_value)
    has = counted(n, "cell has", "cells have")
    hint = (
        f"{name}: {has} a formula without a computed value, or an error such as #N/A, "
        "and count as missing. Save the file in a spreadsheet program to compute them."
    )
    return hint * (n > 0)
