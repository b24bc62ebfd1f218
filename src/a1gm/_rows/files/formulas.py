"""Cells of an Excel sheet that show something and have no value.

The reader gives nothing for them, as for an empty cell: formulas that no program has
computed yet, and errors such as #N/A.
"""

from __future__ import annotations

import contextlib
import re
import zipfile
from pathlib import PurePosixPath
from typing import IO
from xml.etree import ElementTree

_CELL = re.compile(rb'<c r="([A-Z]+[0-9]+)"([^>]*[^/>])?>(.*?)</c>', re.DOTALL)
_VALUE = re.compile(rb"<v[^>]*>[^<]")


def cells_without_value(file: IO[bytes], sheet: str) -> tuple[list[str], list[str]]:
    """Cells that hold a formula without its value, and those that hold an error.

    Only .xlsx and .xlsm files tell; of others both lists are empty.
    """
    formulas: list[str] = []
    errors: list[str] = []
    not_found = KeyError, StopIteration, ElementTree.ParseError
    with contextlib.suppress(zipfile.BadZipFile, *not_found):
        text = _sheet(zipfile.ZipFile(file), sheet)
        if b"<f" in text or b't="e"' in text:
            for cell, about, inside in _CELL.findall(text):
                if b't="e"' in about:
                    errors.append(cell.decode())
                elif b"<f" in inside and not (b"str" in about or _VALUE.search(inside)):
                    formulas.append(cell.decode())
    return formulas, errors


def _sheet(book: zipfile.ZipFile, name: str) -> bytes:
    """The text of a sheet, which the book calls by a number of its own."""
    sheets = ElementTree.fromstring(book.read("xl/workbook.xml")).iter()
    number = next(
        value
        for sheet in sheets
        if sheet.get("name") == name
        for key, value in sheet.attrib.items()
        if key.endswith("}id")
    )
    places = ElementTree.fromstring(book.read("xl/_rels/workbook.xml.rels"))
    place = next(one.attrib["Target"] for one in places if one.get("Id") == number)
    return book.read(str(PurePosixPath("/xl") / place).lstrip("/"))
