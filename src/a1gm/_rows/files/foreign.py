"""Files that are no tables: what their bytes tell, and what to do with them."""

from __future__ import annotations

import re
import zipfile
from typing import IO, Literal, NamedTuple, TypeAlias

HEAD_BYTES = 512


class Foreign(NamedTuple):
    """What a file is, and the call that works; ``{}`` is its name."""

    kind: str
    remedy: str


def _read_by(kind: str, call: str) -> Foreign:
    return Foreign(kind, f"In Python: a1gm.fit({call}). Or write it to a .csv file")


_PICKLE = Foreign(
    "a pickle",
    "Open it where it was made, if you trust it, and write the table to a .parquet "
    "file: frame.to_parquet(...)",
)
_PACKED = "Unpack it first, such as with: {} {{!r}}"
_IMAGE = Foreign("a picture", "Name a file with the numbers behind it")

_MAGIC: tuple[tuple[bytes, Foreign], ...] = (
    (
        b"SQLite format 3\0",
        _read_by(
            "a SQLite database",
            "pandas.read_sql('SELECT * FROM name_of_table', sqlite3.connect({!r}))",
        ),
    ),
    (b"\x89HDF\r\n\x1a\n", _read_by("an HDF5 file", "pandas.read_hdf({!r})")),
    (b"\x93NUMPY", _read_by("a NumPy array", "numpy.load({!r})")),
    (b"ORC", _read_by("an ORC file", "pandas.read_orc({!r})")),
    (b"Obj\x01", Foreign("an Avro file", "Write it to a .parquet file")),
    (b"<stata_dta>", _read_by("a Stata file", "pandas.read_stata({!r})")),
    (b"$FL2", _read_by("an SPSS file", "pandas.read_spss({!r})")),
    (b"RDX", Foreign("an R data file", "In R: write.csv(..., row.names = FALSE)")),
    *((bytes([0x80, version, 0x95]), _PICKLE) for version in (4, 5)),
    *((bytes([0x80, version]), _PICKLE) for version in (2, 3)),
    (b"BZh", Foreign("packed by bzip2", _PACKED.format("bunzip2 -k"))),
    (b"\xfd7zXZ\0", Foreign("packed by xz", _PACKED.format("unxz -k"))),
    (b"\x28\xb5\x2f\xfd", Foreign("packed by zstd", _PACKED.format("unzstd"))),
    (b"7z\xbc\xaf\x27\x1c", Foreign("a 7z archive", _PACKED.format("7z x"))),
    (b"%PDF", Foreign("a PDF", "Name a file with the numbers in it")),
    (b"\x89PNG", _IMAGE),
    (b"\xff\xd8\xff", _IMAGE),
)
_TEXT: tuple[tuple[re.Pattern[bytes], Foreign], ...] = (
    (
        re.compile(rb'\{\s*"[^\n]*\}\s*\n\s*\{'),
        _read_by("a JSON file", "pandas.read_json({!r}, lines=True)"),
    ),
    (
        re.compile(rb'(\{\s*("|\})|\[\s*(\{|\[|\]|-?\d|"))'),
        _read_by("a JSON file", "pandas.read_json({!r})"),
    ),
    (
        re.compile(rb"<(!doctype html|html|table|head)", re.IGNORECASE),
        Foreign(
            "an HTML page",
            "If it has the table: a1gm.fit(pandas.read_html({!r})[0]). If it is a page "
            "for signing in, get the file again",
        ),
    ),
    (
        re.compile(rb"<\?xml"),
        _read_by("an XML file", "pandas.read_xml({!r})"),
    ),
)

Spreadsheet: TypeAlias = Literal["spreadsheet"]


def foreign_kind(head: bytes) -> Foreign | Spreadsheet | None:
    """What the first bytes of a file tell; None for what may be a table."""
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return "spreadsheet"
    for magic, found in _MAGIC:
        if head.startswith(magic):
            return found
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    for pattern, found in _TEXT:
        if pattern.match(text):
            return found
    if head[257:262] == b"ustar":
        return Foreign("a tar archive", _PACKED.format("tar xf"))
    return None


def zip_kind(data: IO[bytes]) -> Foreign | Spreadsheet:
    """What is in a zip archive: a spreadsheet, or something else."""
    try:
        names = zipfile.ZipFile(data).namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return Foreign("a damaged zip archive or spreadsheet", "Get the file again")
    is_book = any(name.startswith("xl/workbook") for name in names)
    if is_book or {"mimetype", "content.xml"} <= set(names):
        return "spreadsheet"
    if any(name.endswith(".npy") for name in names):
        key = next(name for name in names if name.endswith(".npy"))[:-4]
        return _read_by("a NumPy archive", f"numpy.load({{!r}})[{key!r}]")
    return Foreign("a zip archive", _PACKED.format("unzip"))
