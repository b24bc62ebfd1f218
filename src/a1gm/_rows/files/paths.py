"""What is to be read: which files a user means, and the options of reading them."""

from __future__ import annotations

import codecs
import contextlib
import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from a1gm._base.words import listed, shown
from a1gm.exceptions import FileFormatError, MissingFileError, Option, ParameterError

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

#: Cells that mean "missing" in a text file by default. Only these: readers disagree on
#: every other token (``NULL``, ``-``, ``?``, ``n/a``), which is refused with its cell
#: until the user names it.
DEFAULT_MISSING = ("", "NA", "NaN", "nan")


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Which columns form the table, and how text becomes numbers.

    Parameters
    ----------
    columns : sequence of str, optional
        Columns of the table. Default: every number column that is not a label.
    exclude : sequence of str, optional
        Columns to leave out of the table; they are passed through.
    id : sequence of str, optional
        Columns that label the rows, also in messages; they are passed through. Default:
        the index that pandas wrote, or the columns before the first one that is data.
        Text, dates and number columns whose name is a label (``id``, ``year``,
        ``store_nbr``, ...) are not data; a ``DataHintWarning`` names what was inferred.
    missing : sequence of str, optional
        Further tokens that mark a missing cell, beside an empty cell, ``NA`` and
        ``NaN``. A token that is a number also matches equal numbers (``"-999"`` marks
        ``-999.0``).
    delimiter : str, optional
        The character between the cells of text. Default: a tab for ``.tsv``, else a
        comma.
    decimal : str, optional
        The decimal mark of text, ``"."`` or ``","``. Default: a point; a
        ``DataHintWarning`` names points that may separate thousands.
    thousands : str, optional
        The character between groups of three digits in text. Default: none.
    encoding : str, default="utf-8"
        The encoding of text.
    sheet : str, optional
        The sheet of a spreadsheet. Default: the only one with cells in it.
    skip_bad : bool, default=False
        Whether to go on without files that cannot be read, among several; a
        ``SkippedWarning`` names them.
    batch_rows : int, optional
        The most rows read at once. Default: pieces of a few megabytes.
    """

    columns: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    id: Sequence[str] | None = None
    missing: Sequence[str] = ()
    delimiter: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str = "utf-8"
    sheet: str | None = None
    skip_bad: bool = False
    batch_rows: int | None = None

    def __post_init__(self) -> None:
        for option in ("columns", "exclude", "id", "missing"):
            names = getattr(self, option)
            if isinstance(names, str):
                raise ParameterError(
                    f"{option} must be a list of names, got the single text {names!r}; "
                    "write ",
                    Option(option, [names]),
                    ".",
                )
            if names is None and option in ("exclude", "missing"):
                names = ()
            kept = None if names is None else tuple(map(str, names))
            object.__setattr__(self, option, kept)
        error = self._error()
        if error:
            raise ParameterError(error)

    def _error(self) -> str:
        """Return what is wrong with the options; nothing if they are valid."""
        columns = self.columns or ()
        both = set(columns) & {*self.exclude, *(self.id or ())}
        if both:
            return (
                f"Column {min(both)!r} is asked for both as part of the table and "
                "left out of it (columns against exclude or id)."
            )
        if len(set(columns)) < len(columns):
            twice = next(name for name in columns if columns.count(name) > 1)
            return f"Column {twice!r} is named twice in columns."
        if self.decimal not in (None, ".", ","):
            return f"decimal must be '.' or ',', got {self.decimal!r}."
        mark = "," if self.delimiter is None else self.delimiter
        if len(mark) != 1 or not mark.isascii() or mark in '"\r\n':
            return (
                "delimiter must be one ASCII character other than a quote or a line "
                f"end, got {mark!r}."
            )
        mark = " " if self.thousands is None else self.thousands
        if len(mark) != 1 or mark.isalnum() or mark in '+-"\r\n':
            return f"thousands must be one mark such as ',' or ' ', got {mark!r}."
        if mark == self.point:
            return f"decimal and thousands are both {mark!r}; they must differ."
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            return (
                f"Unknown encoding {self.encoding!r}. "
                "Use a name Python knows: utf-8, latin-1, cp1252, utf-16, ..."
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

    ``names`` are the names of their filled copies in a folder, ``not_tables`` the files
    beside them that are not read. ``are_several``: several files or a folder were
    passed, even if only one of them has rows; ``given`` is the one folder or glob.
    """

    paths: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    not_tables: list[str] = field(default_factory=list)
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
        others = [file for file in files if str(file) not in self.names]
        self.not_tables += [
            f"{file.relative_to(root)}{'/' * file.is_dir()}" for file in others
        ]


def find_files(paths: PathOrPaths) -> FoundFiles:
    """List the files that are meant, in a fixed order; raise if there are none.

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
    if len(set(found.names.values())) < len(found.names):  # tell them by their folders
        full = {path: os.path.abspath(path) for path in found.paths}  # noqa: PTH100
        root = os.path.commonpath(full.values())
        found.names = {p: os.path.relpath(place, root) for p, place in full.items()}
    found.names = {path: _filled_name(name) for path, name in found.names.items()}
    found.are_several = found.are_several or len(found.paths) > 1
    if found.are_several and len(every) == 1:
        found.given = os.path.normpath(os.fspath(every[0]))
    return found


def _filled_name(name: str) -> str:
    """Return the name of the filled copy; that of a spreadsheet is text."""
    place = Path(name)
    return str(place.with_suffix(".csv") if suffix_of(name) in SPREADSHEETS else place)


def _expand(path: str, found: FoundFiles) -> None:
    place, before = Path(path), len(found.paths)
    if place.is_dir():
        found.are_several = True
        found.add(_entries(place), place)
        if len(found.paths) == before:
            beside = f" It has: {listed(found.not_tables, 5)}."
            raise FileFormatError(
                f"{shown(path)} has no table files in it (.csv, .tsv, .csv.gz, "
                f".parquet, .feather, .arrow, .xlsx).{beside * bool(found.not_tables)}"
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


def is_hidden(name: str) -> bool:
    """Whether a file is hidden by custom: ``.name`` or ``_SUCCESS``."""
    return Path(name).name.startswith((".", "_"))


def _is_table_file(file: Path) -> bool:
    known = suffix_of(file) in (*FORMATS, *SPREADSHEETS)
    beside = file.name.lower() in ("readme.txt", "license.txt", "notes.txt")
    return file.is_file() and known and not is_hidden(file.name) and not beside
