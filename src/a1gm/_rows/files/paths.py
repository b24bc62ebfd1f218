"""Input files: which are meant by a path, what their bytes are, whether they change."""

from __future__ import annotations

import contextlib
import errno
import glob
import gzip
import os
import re
import shutil
import sys
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

from a1gm._base.atomic import is_special
from a1gm._base.words import listed, shown
from a1gm.exceptions import (
    FileFormatError,
    MissingFileError,
    OutputError,
    ParameterError,
)

PathOrPaths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Format: TypeAlias = Literal["csv", "parquet", "feather", "arrow stream", "spreadsheet"]

FORMATS: dict[str, Format] = {
    **dict.fromkeys((".csv", ".txt", ".tsv", ".tab"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".feather", ".arrow", ".ipc"), "feather"),
    ".arrows": "arrow stream",
}
SPREADSHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")  # read, not written
TAB_SUFFIXES = (".tsv", ".tab")
HEAD_BYTES = 1 << 18  # read when a file is opened: its header, and what tells its kind


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return the extension in lower case; of a gzipped file, the one before .gz."""
    place = Path(path)
    bare = place.with_suffix("") if place.suffix.lower() == ".gz" else place
    return bare.suffix.lower()


# -------------------------------------------------------------------- which are meant
@dataclass
class FoundFiles:
    """The files of a table, in a fixed order.

    ``names`` are the names of their filled copies in a folder, ``not_tables`` the files
    beside them that are not read. ``are_several``: several files or a folder were
    given, even if only one of them has rows; ``given`` is the one folder or glob.
    """

    paths: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    not_tables: list[str] = field(default_factory=list)
    are_several: bool = False
    given: str = ""

    def go_to_folder(self, dst: str | os.PathLike[str]) -> bool:
        """Whether the filled files are put into a folder, not into one file."""
        return self.are_several or Path(dst).is_dir()

    def add(self, path: str | Path, name: str | Path) -> None:
        """Add a file; a spreadsheet is filled as text."""
        place = Path(name)
        if suffix_of(place) in SPREADSHEETS:
            place = place.with_suffix(".csv")
        self.paths.append(str(path))
        self.names[str(path)] = str(place)


def find_files(paths: PathOrPaths) -> FoundFiles:
    """List the files that are meant, in a fixed order; raise if there is none.

    A folder stands for the table files in it, sorted by name, and in its folders
    ``KEY=VALUE``. Hidden files and files that are not tables are left out.
    """
    found = FoundFiles()
    every = [paths] if isinstance(paths, str | os.PathLike) else paths
    for path in every:
        _expand(os.fspath(path), found)
    if not found.paths:
        raise ParameterError("No file was given: the list of paths is empty.")
    if len(found.names) < len(found.paths):
        twice = min(file for file in found.paths if found.paths.count(file) > 1)
        raise ParameterError(
            f"{shown(twice)} is given twice; its rows would count twice."
        )
    if len(set(found.names.values())) < len(found.names):
        _name_by_folders(found)
    found.are_several = found.are_several or len(found.paths) > 1
    if found.are_several and len(every) == 1:
        found.given = os.path.normpath(os.fspath(every[0]))
    return found


def _name_by_folders(found: FoundFiles) -> None:
    """Keep files of the same name apart by their folders."""
    full = {path: os.path.abspath(path) for path in found.paths}  # noqa: PTH100
    root = os.path.commonpath(full.values())
    for path, place in full.items():
        name = Path(found.names[path]).name
        found.names[path] = str(Path(place).relative_to(root).with_name(name))


def _expand(path: str, found: FoundFiles) -> None:
    place, before = Path(path), len(found.paths)
    if place.is_dir():
        found.are_several = True
        _add_folder(place, Path(), found)
        if len(found.paths) == before:
            beside = f" It has: {listed(found.not_tables, 5)}."
            raise FileFormatError(
                f"{shown(path)} has no table files in it (.csv, .tsv, .csv.gz, "
                f".parquet, .feather, .arrow, .xlsx).{beside * bool(found.not_tables)}"
            )
    elif not place.exists() and glob.has_magic(path):
        parts = place.parts
        root = Path(*parts[: next(k for k, p in enumerate(parts) if glob.has_magic(p))])
        for file in sorted(glob.glob(path, recursive=True)):  # noqa: PTH207 - a text
            _add_or_skip(Path(file), Path(file).relative_to(root), found)
        if len(found.paths) == before:
            raise MissingFileError(
                f"No file matches {path!r} that may be a table. Check the pattern."
            )
    else:
        found.add(path, place.name)


def _add_folder(folder: Path, below: Path, found: FoundFiles) -> None:
    entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    tables = [suffix_of(entry) for entry in entries if _is_table_file(entry)]
    has_others = any(suffix != ".txt" for suffix in tables)
    for entry in entries:
        if entry.is_dir() and "=" in entry.name:
            _add_folder(entry, below / entry.name, found)
        elif has_others and suffix_of(entry) == ".txt":  # notes on the others
            found.not_tables.append(str(below / entry.name))
        else:
            _add_or_skip(entry, below / entry.name, found)


def _add_or_skip(file: Path, name: Path, found: FoundFiles) -> None:
    if _is_table_file(file):
        found.add(file, name)
    else:
        found.not_tables.append(f"{name}/" if file.is_dir() else str(name))


def is_hidden(name: str) -> bool:
    """Whether a file is hidden by custom: ``.name`` or ``_SUCCESS``."""
    return Path(name).name.startswith((".", "_"))


def _is_table_file(file: Path) -> bool:
    known = suffix_of(file) in (*FORMATS, *SPREADSHEETS)
    beside = file.name.lower() in ("readme.txt", "license.txt", "notes.txt")
    return file.is_file() and known and not is_hidden(file.name) and not beside


# ------------------------------------------------------------------- what they are
@dataclass(frozen=True)
class InputFile:
    """A readable file, what it holds, and a stamp that changes when it does."""

    name: str  # in messages: the path as given, escaped, or <stdin>
    path: Path  # where the bytes are; a temporary copy for a stream
    format: Format
    gzipped: bool
    suffix: str  # the last extension without .gz, lower case
    stamp: tuple[int, ...]
    head: bytes = field(repr=False)  # first bytes, of a gzipped file those inside
    has_more: bool  # whether these are not all
    _keep: Any = field(default=None, repr=False, compare=False)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self.stamp[0]

    def open(self) -> IO[bytes]:
        """Open the bytes as they are on disk."""
        return _open(self.path, self.name)

    @contextlib.contextmanager
    def open_text(self) -> Iterator[IO[bytes]]:
        """Open the bytes of a text table, which may be gzipped."""
        with self.open() as raw:
            yield gzip.GzipFile(fileobj=raw) if self.gzipped else raw  # type: ignore[misc]

    def check_unchanged(self, *, is_fitted: bool = False) -> None:
        """Raise FileFormatError if the file has changed since it was opened."""
        if _stamp(self.path, self.name) != self.stamp:
            when = "since it was fitted" if is_fitted else "while it was being read"
            again = "fit it again" if is_fitted else "run again when it is complete"
            raise FileFormatError(
                f"{self.name} changed {when}. Nothing was written; {again}."
            )


def open_input(path: str | os.PathLike[str]) -> InputFile:
    """Open a path, or standard input for ``"-"``, and find out what it holds.

    A stream (standard input, a pipe) is copied to a temporary file: a table is read
    twice, to fit it and to fill it.
    """
    if os.fspath(path) == "-":
        if sys.stdin is None:
            raise FileFormatError("<stdin> cannot be read: it is closed.")
        spool = _Spool(sys.stdin.buffer, "<stdin>")
        return _describe("<stdin>", spool.path, suffix="", keep=spool)
    place, name, keep = Path(path), shown(path), None
    if is_special(place):
        with _open(place, name) as stream:
            keep = _Spool(stream, name)
    found = place if keep is None else keep.path
    return _describe(name, found, suffix=suffix_of(place), keep=keep)


def _describe(name: str, path: Path, *, suffix: str, keep: Any) -> InputFile:
    with _open(path, name) as file:
        head = file.read(HEAD_BYTES)
        gzipped = head.startswith(b"\x1f\x8b")
        if gzipped:
            file.seek(0)
            with contextlib.suppress(OSError, EOFError, zlib.error):
                head = gzip.GzipFile(fileobj=file).read(HEAD_BYTES)
        found = _format_of(name, file, head)
    if not head:
        raise FileFormatError(
            f"{name} is empty: it has no header and no rows.", is_empty=True
        )
    expected = FORMATS.get(suffix, "csv")
    if expected not in ("csv", found):
        raise FileFormatError(
            f"{name} is not a {expected.capitalize()} file: its first bytes are "
            f"{head[:4]!r}. It is damaged, or it is another format under a wrong name "
            "(rename a text table to .csv)."
        )
    stamp = _stamp(path, name)
    more = len(head) == HEAD_BYTES
    return InputFile(name, path, found, gzipped, suffix, stamp, head, more, keep)


def missing_file(path: str | os.PathLike[str]) -> MissingFileError:
    """Return the error for a file that does not exist."""
    return MissingFileError(f"{shown(path)} does not exist. Check the path.")


def _open(path: Path, name: str) -> IO[bytes]:
    try:
        return path.open("rb")
    except IsADirectoryError:
        raise FileFormatError(f"{name} is a folder; name a file in it.") from None
    except FileNotFoundError:
        raise missing_file(path) from None
    except (OSError, ValueError) as error:  # ValueError: NUL in the name
        why = getattr(error, "strerror", None) or error
        raise FileFormatError(f"{name} cannot be read: {why}.") from error


def _stamp(path: Path, name: str) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError as error:
        raise FileFormatError(f"{name} cannot be read: {error.strerror}.") from error
    # The time of the last change of anything (ctime) cannot be set back.
    return found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns


# --------------------------------------------------------------- magic bytes
_TABLES: tuple[tuple[bytes, Format], ...] = (
    (b"PAR1", "parquet"),
    (b"ARROW1", "feather"),
    (b"\xff\xff\xff\xff", "arrow stream"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "spreadsheet"),
)
#: What other files are, and the call of pandas or NumPy that reads them; ``{}`` is the
#: name of the file. Without a call the file has to be converted.
_OTHERS: tuple[tuple[re.Pattern[bytes], str, str], ...] = tuple(
    (re.compile(pattern), kind, call)
    for pattern, kind, call in (
        (
            rb"SQLite format 3\0",
            "a SQLite database",
            "pandas.read_sql('SELECT * FROM name_of_table', sqlite3.connect({!r}))",
        ),
        (rb"\x89HDF\r\n\x1a\n", "an HDF5 file", "pandas.read_hdf({!r})"),
        (rb"\x93NUMPY", "a NumPy array", "numpy.load({!r})"),
        (rb"\x80[\x02-\x05]", "a pickle", ""),
        (rb"BZh|\xfd7zXZ\0|\x28\xb5\x2f\xfd|7z\xbc\xaf\x27\x1c", "compressed", ""),
        (rb"%PDF|\x89PNG|\xff\xd8\xff", "a document or a picture", ""),
        (
            rb'\s*\{\s*"[^\n]*\}\s*\n\s*\{',
            "a JSON file",
            "pandas.read_json({!r}, lines=True)",
        ),
        (
            rb'\s*(\{\s*("|\})|\[\s*(\{|\[|\]|-?\d|"))',
            "a JSON file",
            "pandas.read_json({!r})",
        ),
        (
            rb"\s*<(?i:!doctype html|html|table|head)",
            "an HTML page",
            "pandas.read_html({!r})[0]",
        ),
        (rb"\s*<\?xml", "an XML file", "pandas.read_xml({!r})"),
    )
)


def _format_of(name: str, file: IO[bytes], head: bytes) -> Format:
    """Return what the bytes of a file are; raise for what is not a table."""
    found = next((kind for magic, kind in _TABLES if head.startswith(magic)), None)
    if found is not None:
        return found
    kind, call = "", ""
    if head.startswith(b"PK\x03\x04"):
        kind, call = _zip_kind(file)
        if kind == "spreadsheet":
            return "spreadsheet"
    elif head[257:262] == b"ustar":
        kind = "a tar archive"
    else:
        text = head[:512].removeprefix(b"\xef\xbb\xbf")
        others = ((k, c) for pattern, k, c in _OTHERS if pattern.match(text))
        kind, call = next(others, ("", ""))
    if not kind:
        return "csv"
    remedy = "Unpack or convert it to a .csv or .parquet file first."
    if call:
        call = call.format(name)
        remedy = f"In Python: a1gm.fit({call}). Or write it to a .csv file."
    raise FileFormatError(f"{name} is {kind}, not a table file. {remedy}")


def _zip_kind(data: IO[bytes]) -> tuple[str, str]:
    try:
        names = zipfile.ZipFile(data).namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return "a damaged zip archive or spreadsheet", ""
    is_book = any(name.startswith("xl/workbook") for name in names)
    if is_book or {"mimetype", "content.xml"} <= set(names):
        return "spreadsheet", ""
    arrays = [name.removesuffix(".npy") for name in names if name.endswith(".npy")]
    if arrays:
        return "a NumPy archive", f"numpy.load({{!r}})[{arrays[0]!r}]"
    return "a zip archive", ""


# ------------------------------------------------------------------------ streams
class _Spool:
    """A copy of a stream in a temporary file: nameless where that can be opened again.

    A process that is killed leaves nothing behind then.
    """

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self.file: Any = tempfile.TemporaryFile()  # noqa: SIM115 - kept by InputFile
        self.path = _OPEN_FILES / str(self.file.fileno())
        if not self.path.exists():
            self.file.close()
            self.file = tempfile.NamedTemporaryFile(prefix="a1gm-stdin-")  # noqa: SIM115
            self.path = Path(self.file.name)
            _named_spools.add(self)
        weakref.finalize(self, self.file.close)
        try:
            shutil.copyfileobj(stream, self.file, 1 << 20)
            self.file.flush()
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise FileFormatError(
                    f"{name} cannot be read: {error.strerror}."
                ) from error
            raise OutputError(
                f"The temporary copy of {name} cannot grow in {tempfile.gettempdir()}: "
                f"{error.strerror}. Set TMPDIR to a place with more room, or name a "
                "file instead of a stream.",
                errno=error.errno,
            ) from error


#: Where Linux lets a process open its nameless files a second time. The /dev/fd of
#: other systems shares one reading position among all who open it.
_OPEN_FILES = Path("/proc/self/fd")
_named_spools: weakref.WeakSet[_Spool] = weakref.WeakSet()


def remove_spools() -> None:
    """Remove temporary files with a name, before a process ends at once."""
    for spool in list(_named_spools):
        spool.file.close()
