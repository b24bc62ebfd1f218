"""Input files: which are meant, how to read them, what they hold, if they change."""

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
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias

from a1gm._base.atomic import is_special
from a1gm._base.words import listed, shown
from a1gm._rows.columns import Kind
from a1gm._rows.labels import names_in
from a1gm.exceptions import (
    FileFormatError,
    MissingFileError,
    Option,
    OutputError,
    ParameterError,
    Text,
)

if TYPE_CHECKING:
    import pyarrow as pa

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
HEAD_BYTES = 1 << 18  # read when a file is opened: its format and its header

#: Cells that mean "missing" in a text file by default. Only these: readers disagree on
#: every other token (``NULL``, ``-``, ``?``, ``n/a``), which is refused with its cell
#: until the user names it.
DEFAULT_MISSING = ("", "NA", "NaN", "nan")


@dataclass(frozen=True)
class TableOptions:
    """Which columns form the table, and how text becomes numbers: see `fit_file`."""

    columns: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    id: Sequence[str] | None = None
    missing: Sequence[str] = ()
    delimiter: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str = "utf-8"
    sheet: str | None = None
    header: bool = True
    batch_rows: int | None = None

    def __post_init__(self) -> None:
        for option in ("columns", "exclude", "id", "missing"):
            given = getattr(self, option)
            names: Any = tuple(map(str, names_in(given)))
            if given is None and option in ("columns", "id"):
                names = None
            object.__setattr__(self, option, names)
        error = self._error()
        if error:
            raise ParameterError(error)

    def _error(self) -> Text:
        """Return what is wrong with the options; nothing if they are valid."""
        columns = self.columns or ()
        both = set(columns) & {*self.exclude, *(self.id or ())}
        if both:
            return (
                f"Column {min(both)!r} is in ",
                Option("columns"),
                " and also in ",
                Option("exclude"),
                " or ",
                Option("id"),
                ".",
            )
        if len(set(columns)) < len(columns):
            twice = next(name for name in columns if columns.count(name) > 1)
            return f"Column {twice!r} is named twice in ", Option("columns"), "."
        if self.decimal not in (None, ".", ","):
            return Option("decimal"), f" must be '.' or ',', got {self.decimal!r}."
        mark = "," if self.delimiter is None else self.delimiter
        if len(mark) != 1 or not mark.isascii() or mark in '"\r\n':
            return (
                Option("delimiter"),
                " must be one ASCII character other than a quote or a line end, got "
                f"{mark!r}.",
            )
        mark = " " if self.thousands is None else self.thousands
        if len(mark) != 1 or mark.isalnum() or mark in '+-"\r\n':
            return (
                Option("thousands"),
                f" must be one mark such as ',' or ' ', got {mark!r}.",
            )
        if mark == self.point:
            return (
                Option("decimal"),
                " and ",
                Option("thousands"),
                f" are both {mark!r}; they must differ.",
            )
        try:
            "1".encode(self.encoding)
        except (LookupError, TypeError, ValueError):  # unknown, or not of text
            return (
                f"Unknown encoding {self.encoding!r}. "
                "Use one of Python's encodings: utf-8, latin-1, cp1252, utf-16, ..."
            )
        if self.batch_rows is not None and self.batch_rows < 1:
            return f"batch_rows must be >= 1, got {self.batch_rows}."
        return ""

    @property
    def point(self) -> str:
        """The decimal mark."""
        return self.decimal or "."

    @property
    def missing_tokens(self) -> tuple[str, ...]:
        """Every text that marks a missing cell."""
        stripped = (token.strip() for token in self.missing)
        return tuple(dict.fromkeys((*DEFAULT_MISSING, *stripped)))

    @property
    def missing_numbers(self) -> tuple[float, ...]:
        """The tokens that are numbers, such as -999."""
        numbers = []
        for token in self.missing:
            with contextlib.suppress(ValueError):
                numbers.append(float(token))
        return tuple(numbers)


# ------------------------------------------------------------------- which are meant
def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return the extension in lower case; of a gzipped file, the one before .gz."""
    place = Path(path)
    bare = place.with_suffix("") if place.suffix.lower() == ".gz" else place
    return bare.suffix.lower()


@dataclass
class FoundFiles:
    """The files of a table, in a fixed order.

    ``names`` are the names of their filled copies in a folder, ``not_tables`` and
    ``hidden`` the files beside them that are not read. ``are_several``: several files
    or a folder were passed, even if only one of them has rows; ``given`` is the one
    folder or glob.
    """

    paths: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    not_tables: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    are_several: bool = False
    given: str = ""

    def go_to_folder(self, dst: str | os.PathLike[str]) -> bool:
        """Whether the filled files are put into a folder, not into one file."""
        return self.are_several or Path(dst).is_dir()

    def add(self, files: Iterable[Path], root: Path) -> None:
        """Add the tables among some files, named as they lie below a folder."""
        files = list(files)
        tables = [file for file in files if _is_table_file(file)]
        if any(suffix_of(file) != ".txt" for file in tables):  # else notes on them
            tables = [file for file in tables if suffix_of(file) != ".txt"]
        self.paths += map(str, tables)
        self.names |= {str(file): str(file.relative_to(root)) for file in tables}
        for file in files:
            if str(file) not in self.names:
                others = self.hidden if _is_hidden(file) else self.not_tables
                others.append(f"{file.relative_to(root)}{'/' * file.is_dir()}")


def find_files(paths: PathOrPaths) -> FoundFiles:
    """List the files that are meant, in a fixed order; raise if there are none.

    A folder stands for the table files in it, sorted by name, and in its folders
    ``KEY=VALUE``. Hidden files and files that are not tables are left out.
    """
    found = FoundFiles()
    try:
        given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        every = [os.fsdecode(os.fspath(path)) for path in given]
    except TypeError:
        raise ParameterError(
            f"Pass a path or a list of paths, got {type(paths).__name__}."
        ) from None
    for path in every:
        _expand(path, found)
    if not found.paths:
        raise ParameterError("The list of paths is empty.")
    _check_twice(found.paths)
    if len(set(found.names.values())) < len(found.names):  # add their folders
        full = {path: os.path.abspath(path) for path in found.paths}  # noqa: PTH100
        root = os.path.commonpath(full.values())
        found.names = {p: os.path.relpath(place, root) for p, place in full.items()}
    for path, name in found.names.items():
        if suffix_of(name) in SPREADSHEETS:  # its filled copy is text
            found.names[path] = str(Path(name).with_suffix(".csv"))
    found.are_several = found.are_several or len(found.paths) > 1
    if found.are_several and len(every) == 1:
        found.given = os.path.normpath(every[0])
    return found


def paths_in(given: Any) -> list[str | os.PathLike[str]]:
    """Return the path or the paths that an argument is; none for any other value."""
    paths = [given] if isinstance(given, str | os.PathLike) else given
    if not isinstance(paths, list | tuple):
        return []
    is_path = all(isinstance(path, str | os.PathLike) for path in paths)
    return list(paths) if is_path else []


def _check_twice(paths: Sequence[str]) -> None:
    """Raise if a file is there twice, also under two names (links, ``./``)."""
    first: dict[Any, str] = {}
    for path in paths:
        key: Any = path
        with contextlib.suppress(OSError, ValueError):  # "-", or refused when opened
            about = os.stat(path)  # noqa: PTH116 - a text
            key = about.st_dev, about.st_ino
        if key in first:
            other = first[key]
            same = "listed twice" if path == other else f"the same as {shown(other)}"
            raise ParameterError(
                f"{shown(path)} is {same}; its rows would count twice. Leave one out."
            )
        first[key] = path


def _expand(path: str, found: FoundFiles) -> None:
    place, before = Path(path), len(found.paths)
    if place.is_dir():
        found.are_several = True
        found.add(_entries(place), place)
        if len(found.paths) == before:
            others = found.not_tables + found.hidden
            beside = f" It has: {listed(others, 5)}." if others else ""
            raise FileFormatError(
                f"{shown(path)} has no table files in it (.csv, .tsv, .csv.gz, "
                f".parquet, .feather, .arrow, .xlsx).{beside}"
            )
    elif not place.exists() and glob.has_magic(path):
        parts = place.parts
        root = Path(*parts[: next(k for k, p in enumerate(parts) if glob.has_magic(p))])
        matches = sorted(glob.glob(path, recursive=True))  # noqa: PTH207 - a text
        found.add(map(Path, matches), root)
        if len(found.paths) == before:
            raise MissingFileError(
                f"No file matches {path!r} that may be a table. Check the pattern."
            )
    else:
        found.paths.append(path)
        found.names[path] = place.name


def _entries(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir() and "=" in entry.name:
            yield from _entries(entry)
        else:
            yield entry


def _is_hidden(file: Path) -> bool:
    """Whether a file is hidden by custom: ``.name`` or ``_SUCCESS``."""
    return file.name.startswith((".", "_"))


def _is_table_file(file: Path) -> bool:
    known = suffix_of(file) in (*FORMATS, *SPREADSHEETS)
    beside = file.name.lower() in ("readme.txt", "license.txt", "notes.txt")
    return file.is_file() and known and not _is_hidden(file) and not beside


# ---------------------------------------------------------------- what they hold
@dataclass(frozen=True)
class InputFile:
    """A readable file, what it holds, and a stamp that changes when it does."""

    name: str  # in messages: the path as passed, escaped, or <stdin>
    path: Path  # where the bytes are; a temporary copy for a stream
    format: Format
    gzipped: bool
    suffix: str  # the last extension without .gz, lower case
    stamp: tuple[int, ...]
    size: int  # bytes on disk
    head: bytes = field(repr=False)  # first bytes, of a gzipped file those inside
    has_more: bool  # whether these are not all
    _keep: Any = field(default=None, repr=False, compare=False)

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


@dataclass(frozen=True)
class Dialect:
    """How a text table is written."""

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    newline: str = "\n"
    bom: bool = False
    by_name: bool = False  # the delimiter follows from the name of the file alone
    has_header: bool = True


class Source:
    """A file that is read in record batches; subclasses read one format each."""

    row_noun = "row"
    is_text = True  # whether the cells are text
    kinds: dict[str, Kind] | None = None  # of columns; text is settled by its cells
    index: tuple[str, ...] = ()  # columns that are the index of a pandas frame
    has_axis = False  # the columns of that frame have a name, as in a cross-table
    has_categories = False  # and are categories, in an order of their own
    n_rows: int | None = None  # if it is known before the end of a pass
    position = 0  # bytes read so far
    dialect: Dialect | None = None  # how the file is written, if it is text
    hint = ""  # what the reader warns of
    names: list[str]
    schema: pa.Schema  # of the batches; the columns of a text table are all text

    def __init__(self, file: InputFile, options: TableOptions) -> None:
        self.file, self.options = file, options

    def batches(
        self, columns: Sequence[str] | None = None
    ) -> Generator[pa.RecordBatch]:
        """Read the file from its start; only ``columns`` unless it is None."""
        raise NotImplementedError

    def first_record(self) -> list[str]:
        """Return the cells of the first row, of text."""
        with contextlib.closing(self.batches()) as batches:
            row = next(batches).slice(0, 1)
        return [column[0].as_py() or "" for column in row.columns]

    def lines_of(self, rows: Sequence[int]) -> list[int]:
        """Return the numbers by which a user finds some rows (0-based)."""
        return list(rows)

    def place_of(self, row: int) -> str:
        """Name a row (0-based)."""
        return f"{self.file.name}, {self.row_noun} {self.lines_of([row])[0]}"

    def check_names(self) -> None:
        """Raise if two columns have the same name, or none."""
        name, *others = self.names or [""]
        if name and len(others) > 1 and not any(others):
            raise title_above(self.file.name, name, "the header")
        seen: dict[str, int] = {}
        for position, column in enumerate(self.names, start=1):
            if column in seen:
                what = f"are both called {column!r}" if column else "have no name"
                raise FileFormatError(
                    f"{self.file.name}: columns {seen[column]} and {position} {what}. "
                    "Give each a different name. If the file has no header, pass ",
                    Option("header", False),
                    ".",
                )
            seen[column] = position
        if not seen:
            raise FileFormatError(f"{self.file.name} has no columns.")

    def header_of(self, record: list[str]) -> list[str]:
        """Return the names in a first record, or numbers where it is data."""
        if self.options.header:
            return record
        return [f"column_{number}" for number in range(1, len(record) + 1)]

    def no_rows(self) -> FileFormatError:
        """Return the error for a table without rows; one of several files may be so."""
        return FileFormatError(
            f"{self.file.name} has a header but no rows; there is nothing to fit.",
            is_empty=True,
        )

    def slices(
        self, batch: pa.RecordBatch, columns: Sequence[str] | None, most: int
    ) -> Iterator[pa.RecordBatch]:
        """Cut a batch into pieces of at most ``batch_rows``, or ``most``, rows."""
        step = self.options.batch_rows or max(most, 1)
        for start in range(0, batch.num_rows, step):
            piece = batch.slice(start, step)
            yield piece if columns is None else piece.select(list(columns))


def title_above(file: str, title: str, header: str) -> FileFormatError:
    """Return the error for a file with a title above its header."""
    return FileFormatError(
        f"{file}, line 1: {shortened(title)!r} looks like a title. Delete what is "
        f"above {header}."
    )


def shortened(text: str, limit: int = 40) -> str:
    """Return a text, or its start if it is long."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


# ------------------------------------------------------------------------- opening
def open_input(path: str | os.PathLike[str]) -> InputFile:
    """Open a path, or standard input for ``"-"``, and find out what it holds.

    A stream (standard input, a pipe) is copied to a temporary file: a table is read
    twice, to fit it and to fill it.
    """
    place, name, suffix = Path(path), shown(path), suffix_of(path)
    spool = None
    if os.fspath(path) == "-":
        if sys.stdin is None:
            raise FileFormatError("<stdin> cannot be read: it is closed.")
        name, suffix = "<stdin>", ""
        spool = _Spool(sys.stdin.buffer, name)
    elif is_special(place):
        with _open(place, name) as stream:
            spool = _Spool(stream, name)
    place = place if spool is None else spool.path
    with _open(place, name) as file:
        head = file.read(HEAD_BYTES)
        gzipped = head.startswith(b"\x1f\x8b")
        if gzipped:
            file.seek(0)
            with contextlib.suppress(OSError, EOFError, zlib.error):
                head = gzip.GzipFile(fileobj=file).read(HEAD_BYTES)
        actual = _format_of(name, file, head)
    if not head:
        raise FileFormatError(
            f"{name} is empty: it has no header and no rows.", is_empty=True
        )
    expected = FORMATS.get(suffix, "csv")
    if expected not in ("csv", actual):
        raise FileFormatError(
            f"{name} is not a {expected.capitalize()} file: its first bytes are "
            f"{head[:4]!r}. It is damaged, or it is another format under a wrong name "
            "(rename a text table to .csv)."
        )
    stamp = _stamp(place, name)
    n, more = stamp[0], len(head) == HEAD_BYTES
    return InputFile(name, place, actual, gzipped, suffix, stamp, n, head, more, spool)


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
        now = path.stat()
    except OSError as error:
        raise FileFormatError(f"{name} cannot be read: {error.strerror}.") from error
    # The time of the last change of anything (ctime) cannot be set back.
    return now.st_size, now.st_mtime_ns, now.st_ino, now.st_ctime_ns


# ----------------------------------------------------------------------- magic bytes
_TABLES: dict[bytes, Format] = {
    b"PAR1": "parquet",
    b"ARROW1": "feather",
    b"\xff\xff\xff\xff": "arrow stream",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "spreadsheet",
}
#: Patterns of other files, what these are, and the function that reads them, if any.
_OTHERS = (
    (rb"SQLite format 3\0", "a SQLite database", "pandas.read_sql"),
    (rb"\x89HDF\r\n\x1a\n", "an HDF5 file", "pandas.read_hdf"),
    (rb"\x93NUMPY", "a NumPy array", "numpy.load"),
    (rb"\x80[\x02-\x05]", "a pickle", ""),
    (rb"BZh|\xfd7zXZ\0|\x28\xb5\x2f\xfd|7z\xbc\xaf\x27\x1c", "compressed", ""),
    (rb"%PDF|\x89PNG|\xff\xd8\xff", "a document or a picture", ""),
    (rb'\s*(\{\s*("|\})|\[\s*(\{|\[|\]|-?\d|"))', "a JSON file", "pandas.read_json"),
    (rb"\s*<(?i:!doctype html|html|table|head)", "an HTML page", "pandas.read_html"),
    (rb"\s*<\?xml", "an XML file", "pandas.read_xml"),
    (rb"(?s).{257}ustar", "a tar archive", ""),
)


def _format_of(name: str, file: IO[bytes], head: bytes) -> Format:
    """Return what the bytes of a file are; raise for what is not a table."""
    for magic, table in _TABLES.items():
        if head.startswith(magic):
            return table
    kind, reader = "", ""
    if head.startswith(b"PK\x03\x04"):
        kind, reader = _zip_kind(file)
        if kind == "spreadsheet":
            return "spreadsheet"
    for pattern, other, function in _OTHERS:
        if not kind and re.match(pattern, head[:512].removeprefix(b"\xef\xbb\xbf")):
            kind, reader = other, function
    if not kind:
        return "csv"
    remedy = "Unpack or convert it to a .csv or .parquet file first."
    if reader:
        remedy = f"In Python, read it by {reader} for a1gm.fit; or convert it to .csv."
    raise FileFormatError(f"{name} is {kind}, not a table file. {remedy}")


def _zip_kind(data: IO[bytes]) -> tuple[str, str]:
    try:
        names = zipfile.ZipFile(data).namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return "a damaged zip archive or spreadsheet", ""
    is_book = any(name.startswith("xl/workbook") for name in names)
    if is_book or {"mimetype", "content.xml"} <= set(names):
        return "spreadsheet", ""
    is_numpy = any(name.endswith(".npy") for name in names)
    return ("a NumPy archive", "numpy.load") if is_numpy else ("a zip archive", "")


# --------------------------------------------------------------------------- streams
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
