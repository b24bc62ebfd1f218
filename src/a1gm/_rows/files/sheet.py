"""Spreadsheets (Excel, OpenDocument): one sheet, its cells as text."""

from __future__ import annotations

import contextlib
import re
import zipfile
import zlib
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
_MOST_CELLS = 1 << 25  # from A1 to the last one of a sheet, which is held in memory
_MOST_BYTES = 1 << 30  # of a sheet when it is unpacked
_SHEET = re.compile(r"xl/worksheets/[^/]*\.xml|content\.xml")
_PLACE = re.compile(rb"""\sr=["']([A-Z]*)([0-9]+)["']""")
_ODS_CELL = re.compile(
    rb"<table:(table|table-row|(?:covered-)?table-cell)(?=[\s/>])([^>]*)>"
)
_REPEATED = re.compile(rb"""-repeated=["']([0-9]+)""")
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
        rows = rows or [[]]
        header = self.header_of(rows[0])
        if options.header:
            rows = rows[1:]
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
        return [row + self._first_row + 1 + self.options.header for row in rows]

    def _read(self) -> tuple[str, int, list[list[str]]]:
        reader = require("python_calamine", "excel", "Reading a spreadsheet")
        name = self.file.name
        damaged = f"{name} is damaged: it cannot be read as a spreadsheet"
        again = "Open it and save it again, or save it as .csv."
        try:
            with self.file.open() as file:
                self.hint = _look(name, file)
                book = reader.CalamineWorkbook.from_filelike(file)
                sheet = book.get_sheet_by_name(self._chosen(book))
                first = sheet.start[0] if sheet.start else 0
                cells = sheet.to_python(skip_empty_area=True)
        except reader.PasswordError as error:
            raise FileFormatError(
                f"{name} has a password. Save it without one, or as .csv."
            ) from error
        except reader.CalamineError as error:
            raise FileFormatError(f"{damaged} ({shown(error)}). {again}") from error
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # of Rust; no Exception
                raise
            raise FileFormatError(f"{damaged}. {again}") from error
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
        if not names:
            raise FileFormatError(f"{self.file.name} has no sheets.")
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


def _look(name: str, file: IO[bytes]) -> str:
    """Raise for sheets that are too large, before the reader makes room for them.

    Returns a hint at cells that count as missing though a sheet shows something: the
    reader returns nothing for a formula without its value or for an error, as for an
    empty cell. Only .xlsx, .xlsm and .ods files are looked at.
    """
    n = 0
    # Left to the reader: a file of another format, or a damaged one.
    with contextlib.suppress(zipfile.BadZipFile, zlib.error, OSError, RuntimeError):
        book = zipfile.ZipFile(file)
        for part in filter(_SHEET.fullmatch, book.namelist()):
            with book.open(part) as stream:
                sheet = stream.read(_MOST_BYTES)
            n_rows, n_cols = (_end_of_ods if part == "content.xml" else _end)(sheet)
            if n_rows * n_cols > _MOST_CELLS or len(sheet) == _MOST_BYTES:
                raise FileFormatError(
                    f"{name} has a sheet that spans {n_rows:,} rows × {n_cols:,} "
                    "columns up to its last cell: too large to be read. Delete the "
                    "cells that are not the table, or save the sheet as .csv."
                )
            for about, inside in _CELL.findall(sheet):
                has_value = b"str" in about or _VALUE.search(inside)
                n += b't="e"' in about or (b"<f" in inside and not has_value)
    file.seek(0)
    has = counted(n, "cell has", "cells have")
    hint = (
        f"{name}: {has} a formula without a computed value, or an error such as #N/A, "
        "and count as missing. Save the file in a spreadsheet program to compute them."
    )
    return hint * (n > 0)


def _end(sheet: bytes) -> tuple[int, int]:
    """Return the last row and column that a sheet of Excel names."""
    rows, columns = set(), set()
    for place in _PLACE.finditer(sheet):
        columns.add(place[1])
        rows.add(place[2])
    letters = max(columns, key=lambda column: (len(column), column), default=b"")
    n_cols = 0
    for letter in letters[:9]:
        n_cols = 26 * n_cols + letter - ord("@")
    return max((int(row[:20]) for row in rows), default=0), n_cols


def _end_of_ods(sheet: bytes) -> tuple[int, int]:
    """Return the last row and column with a cell in a sheet of OpenDocument."""
    n_rows = n_cols = row = col = step = 0
    for what, about in _ODS_CELL.findall(sheet):
        n = int(found[1][:20]) if (found := _REPEATED.search(about)) else 1
        if what == b"table":
            row = step = 0
        elif what == b"table-row":
            row, step, col = row + step, n, 0
        else:
            col += n
            if not about.endswith(b"/"):
                n_rows, n_cols = max(n_rows, row + step), max(n_cols, col)
    return n_rows, n_cols
