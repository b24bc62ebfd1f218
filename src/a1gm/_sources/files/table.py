"""Several files that are one table: a list, a folder or a glob."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from a1gm._base.types import Floats
from a1gm._sources.files.options import TableOptions
from a1gm._sources.files.read_ahead import read_ahead
from a1gm._sources.files.reader import TableReader, open_table
from a1gm.exceptions import (
    FileFormatError,
    LabelError,
    MissingFileError,
    ParameterError,
)

__all__ = ["PathOrPaths", "TableFiles", "find_files"]

PathOrPaths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_SUFFIXES = {".csv", ".tsv", ".tab", ".txt", ".parquet", ".pq", ".feather", ".arrow"}
_SUFFIXES |= {".ipc", ".arrows"}


def find_files(paths: PathOrPaths) -> list[str]:
    """List the files that are meant, in a fixed order.

    Parameters
    ----------
    paths : path, glob, or sequence of them
        A folder stands for the table files in it, sorted by name; hidden files and
        those beginning with an underscore are left out.

    Raises
    ------
    FileFormatError
        No file matches.
    """
    if isinstance(paths, str | os.PathLike):
        return _expanded(os.fspath(paths))
    found = [file for path in paths for file in _expanded(os.fspath(path))]
    if not found:
        raise ParameterError("No file was given: the list of paths is empty.")
    twice = {file for file in found if found.count(file) > 1}
    if twice:
        raise ParameterError(
            f"{min(twice)} is given twice; its rows would count twice."
        )
    return found


def _expanded(path: str) -> list[str]:
    place = Path(path)
    if place.is_dir():
        found = sorted(str(file) for file in place.iterdir() if _is_table_file(file))
        if not found:
            raise FileFormatError(
                f"{path} has no table files in it (.csv, .tsv, .csv.gz, .parquet, "
                ".feather, .arrow)."
            )
        return found
    if not place.exists() and glob.has_magic(path):
        found = sorted(glob.glob(path, recursive=True))  # noqa: PTH207 - a text
        if not found:
            raise MissingFileError(f"No file matches {path!r}. Check the pattern.")
        return found
    return [path]


def _is_table_file(file: Path) -> bool:
    bare = file.with_suffix("") if file.suffix.lower() == ".gz" else file
    hidden = file.name.startswith((".", "_"))
    return file.is_file() and not hidden and bare.suffix.lower() in _SUFFIXES


@dataclass
class TableFiles:
    """The files of one table; columns are matched by name.

    Attributes
    ----------
    tables : list of TableReader
        The files opened so far; all of them once a pass has ended.
    names : tuple of str
        The columns of the table, settled by the first file.
    """

    paths: list[str]
    options: TableOptions
    tables: list[TableReader] = field(default_factory=list)
    names: tuple[str, ...] = ()

    @classmethod
    def find(cls, paths: PathOrPaths, options: TableOptions) -> TableFiles:
        """Find the files and open the first."""
        files = cls(find_files(paths), options)
        files.tables.append(open_table(files.paths[0], options))
        return files

    def settle(self) -> None:
        """Take the columns of the first file, now known, for those of the table."""
        self.names = self.tables[0].names

    def open_next(self) -> TableReader | None:
        """Open the next file, which must have the same columns."""
        if len(self.tables) == len(self.paths):
            return None
        path = self.paths[len(self.tables)]
        self._check_columns(open_table(path, replace(self.options, columns=None)))
        # The order is that of the first file.
        options = replace(self.options, columns=self.names, exclude=(), id=())
        self.tables.append(open_table(path, options))
        return self.tables[-1]

    def check_unchanged(self) -> None:
        """Refuse to go on when a file is not the one that was read."""
        for table in self.tables:
            table.source.origin.check_unchanged()

    def n_rows_before(self, table: TableReader) -> int:
        """Rows of the files before this one."""
        before = self.tables[: self.tables.index(table)]
        return sum(other.source.n_rows or 0 for other in before)

    def dense_blocks(self) -> Iterator[tuple[int, Floats]]:
        """Read all files again: (first row, rows as float64 with NaN)."""
        for table in self.tables:
            first = self.n_rows_before(table)
            with closing(read_ahead(table.blocks())) as blocks:
                for block in blocks:
                    yield first + block.first_row, block.values

    def _check_columns(self, table: TableReader) -> None:
        first = self.tables[0]
        own = set(table.source.schema.names)
        for name in self.names:
            if name not in own:
                raise LabelError(
                    f"{table.name} has no column {name!r}, which {first.name} has. "
                    "Files of one table must have the same columns; pass columns=[...] "
                    "with those that all have."
                )
        if self.options.columns is not None:
            return
        extra = own - set(first.source.schema.names) - set(self.options.exclude)
        if extra:
            raise LabelError(
                f"{table.name} has a column {min(extra)!r}, which {first.name} has "
                "not. Files of one table must have the same columns; pass "
                "columns=[...] with those that all have."
            )
