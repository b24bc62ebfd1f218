"""Which files are meant by a path, a folder, a glob or a list."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from a1gm._base.words import shown
from a1gm._sources.files.formats import FORMATS, suffix_of
from a1gm.exceptions import FileFormatError, MissingFileError, ParameterError

__all__ = ["PathOrPaths", "find_files"]

PathOrPaths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def find_files(paths: PathOrPaths) -> list[str]:
    """List the files that are meant, in a fixed order; raise if there is none.

    A folder stands for the table files in it, sorted by name; hidden files and those
    beginning with an underscore are left out.
    """
    if isinstance(paths, str | os.PathLike):
        return _expanded(os.fspath(paths))
    found = [file for path in paths for file in _expanded(os.fspath(path))]
    if not found:
        raise ParameterError("No file was given: the list of paths is empty.")
    twice = {file for file in found if found.count(file) > 1}
    if twice:
        raise ParameterError(
            f"{shown(min(twice))} is given twice; its rows would count twice."
        )
    return found


def _expanded(path: str) -> list[str]:
    place = Path(path)
    if place.is_dir():
        found = sorted(str(file) for file in place.iterdir() if _is_table_file(file))
        if not found:
            raise FileFormatError(
                f"{shown(path)} has no table files in it (.csv, .tsv, .csv.gz, "
                ".parquet, .feather, .arrow)."
            )
        return found
    if not place.exists() and glob.has_magic(path):
        found = sorted(glob.glob(path, recursive=True))  # noqa: PTH207 - a text
        if not found:
            raise MissingFileError(f"No file matches {path!r}. Check the pattern.")
        return found
    return [path]


def _is_table_file(file: Path) -> bool:
    hidden = file.name.startswith((".", "_"))
    return file.is_file() and not hidden and suffix_of(file) in FORMATS
