"""Errors about a text table: the line, the column, and the option that helps.

After any error of a reader the file is scanned once by Python's csv module, which
counts lines exactly, quoted line ends included. Clarity beats speed here.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from a1gm._base.words import counted, shown
from a1gm._rows.files.source import Source, TableOptions, shortened, title_above
from a1gm._rows.hints import is_total, sign_remedy
from a1gm.exceptions import (
    A1gmError,
    FileFormatError,
    LabelError,
    NotNumericError,
    Option,
    Text,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from a1gm._rows.files.text import TextSource

#: Marks between the thousands of a number.
MARKS = (",", ".", " ", "'", "\u2019", "_", "\u00a0", "\u202f")
_DELIMITERS = (";", "\t", "|", ",", ":", " ")
END = "\x1eend of the table\x1e"  # follows the last line; an open quote swallows it
_NUMBER = re.compile(r"\s*-?[.,]?\d[\d.,]*\s*$")


# ------------------------------------------------------------------------- the header
def wrong_delimiter(
    source: Source, cells: Sequence[str] = ()
) -> FileFormatError | None:
    """Return the error if a text table of one column has another delimiter."""
    if source.dialect is None or len(source.names) > 1:
        return None
    header = source.names[0]
    for mark in _DELIMITERS:
        n = 0 if mark == source.dialect.delimiter else header.count(mark)
        if n and all(cell.count(mark) == n for cell in cells):
            return FileFormatError(
                f"{source.file.name}, line 1: only one column was found, "
                f"{shortened(header)!r}, and every row is split by {mark!r}. Pass ",
                Option("delimiter", mark),
                ".",
            )
    return None


def no_numbers(
    source: Source, batch: pa.RecordBatch, error: LabelError | NotNumericError
) -> A1gmError:
    """Return the error for a text table without a number column."""
    cells = [cell for cell in batch.column(0).slice(0, 20).to_pylist() if cell]
    fault = wrong_delimiter(source, cells) if cells else None
    if fault is not None or isinstance(error, LabelError):
        return fault or error
    return error.advised(
        "If its cells are separated by another character pass ",
        Option("delimiter"),
        "; numbers with other marks need ",
        Option("decimal"),
        " or ",
        Option("thousands"),
        ".",
    )


# --------------------------------------------------------------------------- the scan
def explain(source: TextSource, error: Exception | None = None) -> FileFormatError:
    """Return the error for a file that could not be read."""
    return find_fault(source) or FileFormatError(
        f"{source.file.name} cannot be read as a table"
        f"{f': {shown(error)}' if error else ''}."
    )


def find_fault(source: TextSource) -> FileFormatError | None:
    """Scan a file; None if every row has one cell per column."""
    try:
        try:
            return _scan(source)
        except UnicodeError:
            return _wrong_encoding(source)
    except (OSError, EOFError, zlib.error) as error:
        return FileFormatError(
            f"{source.file.name} is damaged: it cannot be read ({error})."
        )


def _scan(source: TextSource) -> FileFormatError | None:
    name, n_columns = source.file.name, len(source.names)
    bad: list[tuple[int, list[str]]] = []  # the first bad row and the one after it
    n_rows, has_numbers = -int(source.options.header), False
    for line, record in source.records("strict"):
        if record == [END]:
            break
        if END in record[-1]:
            return FileFormatError(
                f"{name}, line {line}: a quote is opened and never closed, so the "
                "rest of the file would become one cell. Close it, or double it "
                '("") if it belongs to the text.'
            )
        n_rows += 1
        is_bad = n_columns > 0 and len(record) != n_columns
        if len(bad) == 1 or (is_bad and not bad):
            bad.append((line, record))
        has_numbers |= not bad and any(map(_NUMBER.match, record))
    if bad and "\0" in "".join(bad[0][1]):
        return _wrong_encoding(source)
    if bad:
        return _ragged(source, bad, has_numbers=has_numbers)
    return source.no_rows() if n_rows == 0 else None


def _ragged(
    source: TextSource, bad: Sequence[tuple[int, list[str]]], *, has_numbers: bool
) -> FileFormatError:
    name, mark = source.file.name, source.delimiter
    (line, record), after = bad[0], bad[-1][1]
    n_columns, header = len(source.names), mark.join(source.names)
    cells = mark.join(record)
    first = "header" if source.options.header else "first line"
    is_wider = len(after) == len(record) > n_columns
    # The header may have years in it, but does not begin with a number.
    begins = record[:1] if n_columns == 1 else record
    is_text = not has_numbers and not any(map(_NUMBER.match, begins))
    # A header that is split by another mark is not a title.
    others = set(";\t|") - {mark}
    if is_wider and is_text and not any(other in header + cells for other in others):
        return title_above(name, header, f"line {line}, the header")
    remedy: Text = (
        "Every row must have one cell per column: leave a missing cell empty, and put "
        f"one that contains {mark!r} in quotes."
    )
    split = [d for d in _DELIMITERS if d in (header if d in ", :" else cells)]
    if n_columns == 1 and split and split[0] != mark:
        options: list[Text] = [Option("delimiter", split[0])]
        if mark == ",":
            options += [" and ", Option("decimal", ",")]
        remedy = (f"It is split by {split[0]!r}: pass ", options, ".")
    return FileFormatError(
        f"{name}, line {line}: {counted(len(record), 'cell')}, but the {first} has "
        f"{n_columns}: {shortened(cells)!r}. ",
        remedy,
    )


def _wrong_encoding(source: TextSource) -> FileFormatError:
    """Return the error for the first bytes that are not text."""
    name, encoding = source.file.name, source.codec.removesuffix("-sig")
    with source.file.open_text() as stream:
        line, rest = 1, stream.readline()
        if encoding == "utf-8" and rest[:2] in (b"\xff\xfe", b"\xfe\xff"):
            wide = "utf-32" if rest[2:4] == b"\0\0" else "utf-16"
            return FileFormatError(
                f"{name}, line 1: the file starts with a {wide.upper()} mark, not "
                "UTF-8. Pass ",
                Option("encoding", wide),
                ".",
            )
        while rest:
            try:
                rest.decode(encoding)
            except UnicodeDecodeError as error:
                other = "cp1252" if encoding == "utf-8" else "utf-8"
                text = shortened(rest.decode(other, "replace").strip())
                return FileFormatError(
                    f"{name}, line {line}: byte 0x{rest[error.start]:02x} is not "
                    f"{encoding} text ({text!r} read as {other}). If that looks right, "
                    "pass ",
                    Option("encoding", other),
                    ".",
                )
            except UnicodeError:  # of an encoding that has no such bytes
                break
            line, rest = line + 1, stream.readline()
    return FileFormatError(
        f"{name} is not {encoding} text. Pass ", Option("encoding"), "."
    )


# ------------------------------------------------------------------------ the columns
def mixed_column(
    place: str,
    column: str,
    texts: Sequence[str],
    options: TableOptions,
    reason: str | None = None,
    are_words: bool = False,
) -> A1gmError:
    """Return the error for a column of numbers that has a cell which is not one.

    ``texts`` are the first such cells; ``reason`` is why the column is needed, such as
    ``"the fit has"``; ``are_words``: no cell is a number.
    """
    text = texts[0]
    remedy = marks_advice(text, options)
    if remedy is None and is_total(text):
        remedy = "If the row is a total, delete it."
    elif remedy is None:
        sign = sign_remedy(text)
        remedy = (
            f"In the file, {sign}; if" if sign else "If",
            " it marks a missing cell pass ",
            Option("missing", [text]),
            ".",
        )
    more = f" (others: {', '.join(map(repr, texts[1:]))})" if len(texts) > 1 else ""
    error = NotNumericError if are_words else FileFormatError
    but = "" if are_words else ", but the column is not text"
    return error(
        f"{place}, column {column!r}: {shortened(text)!r} is not a number{but}{more}. ",
        remedy,
        " ",
        not_data(column, options, reason),
    )


def not_data(column: str, options: TableOptions, reason: str | None = None) -> Text:
    """Return what to do about a column that is not data."""
    if reason is not None:
        return f"Numbers are needed in the column that {reason}."
    if options.columns is not None:
        return "If the column is not data, leave it out of ", Option("columns"), "."
    return (
        "If the column is not data, pass ",
        Option("exclude", [column]),
        ", or ",
        Option("id", [column]),
        " if it labels the rows.",
    )


def marks_advice(text: str, options: TableOptions) -> Text | None:
    """Return the options that read a number with other marks; None for words."""
    point, other = options.point, "," if options.point == "." else "."
    ways: list[Text] = []
    for thousands in (None, *(mark for mark in MARKS if mark in text)):
        for decimal in (point, *other * (other in text or thousands == point)):
            if _reads(decimal, thousands, text):
                passed: list[Text] = [Option("decimal", other)] * (decimal == other)
                if thousands is not None:
                    passed += [" and "] * len(passed)
                    passed.append(Option("thousands", thousands))
                ways += [", or " if ways else "If it is a number, pass ", passed]
    return (*ways, ".") if ways else None


def _reads(decimal: str, thousands: str | None, text: str) -> bool:
    digits = r"\d+"
    if thousands is not None:
        digits += rf"|\d{{1,3}}(?:{re.escape(thousands)}\d{{3}})+"
    point = re.escape(decimal)
    number = rf"[+-]?(?:(?:{digits})(?:{point}\d*)?|{point}\d+)"
    is_number = re.fullmatch(number, text, re.ASCII) is not None
    return is_number and decimal != thousands
