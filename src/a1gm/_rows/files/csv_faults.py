"""What is wrong with a text table, and on which line.

Used only after a read failed, so clarity beats speed: Python's csv module walks the
file once and counts lines exactly, quoted line ends included.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from a1gm._base.words import counted
from a1gm._rows.files.number_marks import marks_remedy, sign_remedy
from a1gm._rows.files.options import TableOptions, leaving_out, needed_by
from a1gm._rows.files.origin import Origin
from a1gm._rows.files.row_names import is_total, may_name_rows
from a1gm.exceptions import FileFormatError, Option, Text

_OTHER_DELIMITERS = (";", "\t", "|", ",", ":", " ")
_NUMBER = re.compile(r"\s*-?[.,]?\d[\d.,]*\s*$")
_GROUPED = re.compile(r"\d{1,3}( \d{3})+")


@dataclass(frozen=True)
class TextTable:
    """A text table, as the fault finder needs it."""

    origin: Origin
    options: TableOptions
    delimiter: str

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.origin.name


def records(
    table: TextTable, *, strict: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield every record that is not blank with the line it starts on."""
    with _long_fields(), table.origin.open_text() as stream:
        encoding = "utf-8-sig" if _is_utf8(table) else table.options.encoding
        text = io.TextIOWrapper(stream, encoding=encoding, errors="replace", newline="")
        reader = csv.reader(text, delimiter=table.delimiter, strict=strict)
        start = 1
        for record in reader:
            if record:
                yield start, record
            start = reader.line_num + 1


def unterminated_quote(table: TextTable) -> FileFormatError | None:
    """Tell where a quote was opened that the file never closes, if there is one."""
    line = 0
    try:
        for start, record in records(table, strict=True):
            line = start + sum(cell.count("\n") for cell in record)
    except csv.Error as error:
        if "unexpected end" not in str(error):
            return None
        return FileFormatError(
            f"{table.name}, line {line + 1}: a quote is opened and never closed, so "
            "the rest of the file would become one cell. Close it, or double it "
            '("") if it belongs to the text.'
        )
    return None


def ragged_rows(table: TextTable, n_columns: int) -> FileFormatError:
    """Explain the first row with another number of cells than the header."""
    unclosed = unterminated_quote(table)
    if unclosed is not None:
        return unclosed
    header: list[str] = []
    rows = records(table)
    has_numbers = False
    for line, record in rows:
        header = header or record
        if len(record) != n_columns:
            # The header may have years in it, but does not begin with a number.
            begins = record[:1] if n_columns == 1 else record
            is_wider = len(next(rows, (0, []))[1]) == len(record) > n_columns
            is_text = not (has_numbers or any(map(_NUMBER.match, begins)))
            title = table.delimiter.join(header)
            # A header that is split by another mark is none, whatever is above it.
            texts = [title, *record]
            is_split = any(mark in text for mark in ";\t|" for text in texts)
            if is_wider and is_text and not is_split:
                return title_above(table.name, title, f"line {line}, the header")
            return FileFormatError(
                f"{counted(len(record), 'cell')}, but the header has {n_columns}: "
                f"{_shortened(table.delimiter.join(record))!r}.",
                advice=_ragged_remedy(table, header, record),
                where=f"{table.name}, line {line}",
            )
        has_numbers = has_numbers or any(map(_NUMBER.match, record))
    return FileFormatError(f"{table.name} has rows of different lengths.")


def title_above(file: str, title: str, header: str) -> FileFormatError:
    """The error for a file whose first line is no header."""
    return FileFormatError(
        f"{file}, line 1: {_shortened(title)!r} looks like a title. Delete what is "
        f"above {header}."
    )


def _ragged_remedy(table: TextTable, header: list[str], record: list[str]) -> Text:
    if len(header) == 1:
        line = table.delimiter.join(record)
        for mark in _OTHER_DELIMITERS:
            # A title above the header may have blanks, or colons.
            is_split = mark in line if mark in ";\t|" else mark in header[0]
            if mark != table.delimiter and is_split:
                which = "The header" if mark in header[0] else "The line"
                decimal: Text = ()
                if table.delimiter == ",":
                    decimal = " and ", Option("decimal", ",")
                split = f"{which} is split by {mark!r}: pass "
                return split, Option("delimiter", mark), decimal, "."
    if len(record) > len(header) and table.delimiter == ",":
        return (
            "Put cells that contain a comma (decimal commas, thousands) in quotes, or "
            "pass ",
            Option("delimiter", ";"),
            " if another character separates the cells.",
        )
    return "Every row must have one cell per column; leave a missing cell empty."


def wrong_delimiter(
    table: TextTable, header: str, first_cells: list[str]
) -> FileFormatError | None:
    """Tell whether a table of one column is really one with another delimiter."""
    for mark in _OTHER_DELIMITERS:
        count = header.count(mark)
        if mark == table.delimiter or not count or not first_cells:
            continue
        if mark == " " and all(map(_GROUPED.fullmatch, first_cells)):
            continue  # spaces between thousands
        if all(cell.count(mark) == count for cell in first_cells):
            return FileFormatError(
                f"only one column was found, {_shortened(header)!r}, and every row is "
                f"split by {mark!r}.",
                advice=["Pass ", Option("delimiter", mark), "."],
                where=f"{table.name}, line 1",
            )
    return None


def wrong_encoding(table: TextTable) -> FileFormatError:
    """Explain the first bytes that are not text in the encoding asked for."""
    encoding = "utf-8" if _is_utf8(table) else table.options.encoding
    with table.origin.open_text() as stream:
        head = stream.read(4)
        if encoding == "utf-8" and head[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return FileFormatError(
                "the file starts with a UTF-16 mark, not UTF-8.",
                advice=["Pass ", Option("encoding", "utf-16"), "."],
                where=f"{table.name}, line 1",
            )
        rest = head + stream.readline()
        line = 1
        while rest:
            try:
                rest.decode(encoding)
            except UnicodeDecodeError as error:
                before, bad = rest[: error.start], rest[error.start : error.start + 1]
                line += before.count(b"\n")  # the first four bytes may hold some
                rest = before.rpartition(b"\n")[2] + rest[error.start :]
                other = "cp1252" if encoding == "utf-8" else "utf-8"
                read = _shortened(rest.decode(other, "replace").strip())
                return FileFormatError(
                    f"byte 0x{bad.hex()} is not {encoding} text ({read!r} read as "
                    f"{other}).",
                    advice=[
                        "If that looks right, pass ",
                        Option("encoding", other),
                        ".",
                    ],
                    where=f"{table.name}, line {line}",
                )
            line += rest.count(b"\n")
            rest = stream.readline()
    return FileFormatError(
        f"{table.name} is not {encoding} text.",
        advice=["Pass ", Option("encoding", "cp1252"), "."],
    )


def not_a_number(
    place: str,
    column: str,
    tokens: tuple[str, ...],
    counts: tuple[int, int],
    options: TableOptions,
    *,
    is_later: bool = False,
    whose: str | None = None,
) -> FileFormatError:
    """The error for a column that is numeric except for a few cells.

    With ``is_later`` the column has numbers in the files before; ``whose`` says who
    needs it.
    """
    token = tokens[0]
    n_numbers, n_others = counts
    where = f"{place}, column {column!r}"
    remedy: Text | None = marks_remedy(tokens, options)
    is_chosen = options.columns is not None
    if remedy is None and n_numbers == 0 and is_chosen and not is_later:
        or_else: Text = "Leave it out of ", Option("columns"), "."
        return FileFormatError(
            f"{_shortened(token)!r} is not a number, and the column has no other "
            "numbers.",
            advice=needed_by(whose) if whose else or_else,
            where=where,
        )
    if remedy is None and is_total(token):
        remedy = "If the row is a total, delete it."
    elif remedy is None:
        sign = sign_remedy(token)
        if_ = f"In the file, {sign}; if" if sign else "If"
        remedy = if_, " it marks a missing cell pass ", Option("missing", [token]), "."
    or_else = "is not part of the table, ", leaving_out(column, options)
    if not is_chosen and may_name_rows(column, place=1):  # by its name
        or_else = "names the rows, pass ", Option("id", [column])
    or_else = needed_by(whose) if whose else ("If the column ", or_else, ".")
    more = f"; others: {', '.join(map(repr, tokens[1:]))}" if len(tokens) > 1 else ""
    return FileFormatError(
        f"{_shortened(token)!r} is not a number ({counted(n_others, 'such cell')} "
        f"beside {counted(n_numbers, 'number')}{more}).",
        advice=[remedy, " ", or_else],
        where=where,
    )


def _is_utf8(table: TextTable) -> bool:
    codec = table.options.encoding.lower().replace("_", "-")
    return codec in ("utf-8", "utf8", "utf-8-sig")


def _shortened(text: str, limit: int = 40) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


@contextlib.contextmanager
def _long_fields() -> Iterator[None]:
    # An unclosed quote makes one cell of the whole file; the default limit of the
    # csv module would turn that into another error.
    before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        yield
    finally:
        csv.field_size_limit(before)
