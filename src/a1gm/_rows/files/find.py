"""Which files are meant by a path, a folder, a glob or a list."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from a1gm._base.words import listed, shown
from a1gm._rows.files.formats import FORMATS, SPREADSHEETS, suffix_of
from a1gm.exceptions import FileFormatError, MissingFileError, ParameterError

PathOrPaths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

#: Text files that come with tables and are none.
_BESIDE_TABLES = frozenset(
    ("readme", "license", "licence", "copying", "notes", "changelog", "about")
)


@dataclass
class FoundFiles:
    """The files of a table, in a fixed order.

    ``names`` are those that their filled copies get in a folder; ``not_tables`` was
    found beside them. ``are_several`` tells several files, or a folder, as they were
    named: some may prove to be empty; ``given`` is the one folder or glob they are in.
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
    ``KEY=VALUE``; other files in it are left out: hidden ones, those beginning with an
    underscore, and those that are no tables.
    """
    found = FoundFiles()
    every = [paths] if isinstance(paths, str | os.PathLike) else paths
    for path in every:
        _expand(os.fspath(path), found)
    if not found.paths:
        raise ParameterError("No file was given: the list of paths is empty.")
    twice = {file for file in found.paths if found.paths.count(file) > 1}
    if twice:
        raise ParameterError(
            f"{shown(min(twice))} is given twice; its rows would count twice."
        )
    if len(set(found.names.values())) < len(found.names):
        _name_by_folders(found)
    found.are_several = found.are_several or len(found.paths) > 1
    if found.are_several and len(every) == 1:
        found.given = os.path.normpath(os.fspath(every[0]))
    return found


def _name_by_folders(found: FoundFiles) -> None:
    """Tell files of the same name apart by their folders."""
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
        root = Path(*_parts_before_magic(place))
        for file in sorted(glob.glob(path, recursive=True)):  # noqa: PTH207 - a text
            _add_or_skip(Path(file), Path(file).relative_to(root), found)
        if len(found.paths) == before:
            raise MissingFileError(
                f"No file matches {path!r} that may be a table. Check the pattern."
            )
    else:
        found.add(path, place.name)


def _parts_before_magic(place: Path) -> list[str]:
    at = next(k for k, part in enumerate(place.parts) if glob.has_magic(part))
    return list(place.parts[:at])


def _add_folder(folder: Path, below: Path, found: FoundFiles) -> None:
    entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    has_others = any(
        _is_table_file(entry) and suffix_of(entry) != ".txt" for entry in entries
    )
    for entry in entries:
        name = below / entry.name
        if entry.is_dir() and "=" in entry.name:
            _add_folder(entry, name, found)
        elif has_others and suffix_of(entry) == ".txt":
            found.not_tables.append(str(name))
        else:
            _add_or_skip(entry, name, found)


def _add_or_skip(file: Path, name: Path, found: FoundFiles) -> None:
    if _is_table_file(file):
        found.add(file, name)
    else:
        found.not_tables.append(f"{name}/" if file.is_dir() else str(name))


def is_hidden(name: str) -> bool:
    """Whether a file is hidden by custom: ``.name`` or ``_SUCCESS``."""
    return Path(name).name.startswith((".", "_"))


def _is_table_file(file: Path) -> bool:
    hidden = is_hidden(file.name)
    known = suffix_of(file) in (*FORMATS, *SPREADSHEETS)
    beside = suffix_of(file) == ".txt" and file.stem.lower() in _BESIDE_TABLES
    return file.is_file() and known and not hidden and not beside
