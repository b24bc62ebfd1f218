"""The files of one table, as a source of rows that can be read again."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from a1gm._base.types import Floats
from a1gm._base.warn import warn_user
from a1gm._base.words import counted
from a1gm._sources.files.counts import ColumnCounts
from a1gm._sources.files.csv import CsvSource
from a1gm._sources.files.find import PathOrPaths, find_files
from a1gm._sources.files.options import TableOptions, hint
from a1gm._sources.files.piece import Piece
from a1gm._sources.files.table_file import Batches, Progress, TableFile, open_batches
from a1gm.exceptions import LabelError, RowNamesWarning

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TableFiles"]


@dataclass(eq=False)
class TableFiles:
    """One table in one file or several; columns are matched by name.

    The first file decides which columns form the table; the others are opened when the
    first pass comes to them. ``whose`` tells what has the columns that ``options`` asks
    for, such as ``"the fit has"``; ``counts`` is None before a pass has ended.
    """

    paths: list[str]  # as `find_files` lists them; "-" is standard input
    options: TableOptions
    _: KW_ONLY
    whose: str | None = None
    opened: Batches | None = None  # the first file, if it was opened before
    are_read_twice: bool = False  # filled after the first pass
    counts: ColumnCounts | None = field(default=None, init=False)
    _later: list[TableFile] = field(default_factory=list, init=False)
    backend: ClassVar[None] = None  # no frame library is behind the rows

    @classmethod
    def find(
        cls, paths: PathOrPaths, options: TableOptions, *, are_read_twice: bool = False
    ) -> TableFiles:
        """Find the files; the first is opened when it is asked about."""
        return cls(find_files(paths), options, are_read_twice=are_read_twice)

    def choosing(self, *, whose: str | None = None, **columns: Any) -> TableFiles:
        """The same files with another choice of ``columns``, ``exclude`` or ``id``."""
        options = replace(self.options, **columns)
        return replace(self, options=options, whose=whose, opened=self._source)

    # ------------------------------------------------------------ what they hold
    @cached_property
    def _source(self) -> Batches:
        return self.opened or open_batches(self.paths[0], self.options)

    @cached_property
    def first(self) -> TableFile:
        """The first file."""
        twice = self.are_read_twice
        return TableFile(self._source, self.options, self.whose, is_read_twice=twice)

    @property
    def files(self) -> list[TableFile]:
        """The files opened so far; all of them once a pass has ended."""
        return [self.first, *self._later]

    @property
    def name(self) -> str:
        """What messages call the table: its first file, and how many more."""
        name, more = self._source.origin.name, len(self.paths) - 1
        return f"{name} and {counted(more, 'more file')}" if more else name

    @property
    def all_names(self) -> list[str]:
        """Every column of the first file, part of the table or not."""
        return list(self._source.schema.names)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the table; of text files final after a pass."""
        return self.first.names

    @property
    def id(self) -> tuple[str, ...]:
        """The columns that name the rows; of text files final after a pass."""
        return self.first.id

    @property
    def n_cols(self) -> int:
        """Columns of the table."""
        return len(self.names)

    @property
    def n_rows(self) -> int | None:
        """Rows of all files; None before a pass has ended."""
        if self.counts is None:
            return None
        return sum(file.source.n_rows or 0 for file in self.files)

    @property
    def n_rows_expected(self) -> int | None:
        """Rows of all files, as far as those opened can tell."""
        known = self.first.source.n_rows
        return None if known is None else known * len(self.paths)

    @property
    def col_labels(self) -> list[str]:
        """The columns of the table."""
        return list(self.names)

    @cached_property
    def row_labels(self) -> list[str] | None:
        """Names of all rows, read from the columns ``id``; None without these."""
        if not self.id:
            return None
        return [name for batch in self.id_batches() for name in _ids_of(batch)]

    # -------------------------------------------------------------------- reading
    def pieces(
        self, *, all_columns: bool = False, progress: Progress | None = None
    ) -> Generator[tuple[int, Piece]]:
        """Read all files: yield (first row in the table, some rows of a file).

        The first pass settles the columns and counts their holes. It may start over
        from row 0: see :meth:`TableFile.pieces`.
        """
        counts, done = None, 0
        for at in range(len(self.paths)):
            with closing(
                self.pieces_of(at, all_columns=all_columns, progress=progress)
            ) as pieces:
                for piece in pieces:
                    if self.counts is None and done + piece.first_row == 0:
                        counts = ColumnCounts(len(piece.names))
                    yield done + piece.first_row, piece
                    if counts is not None:
                        counts.add(piece)
            done += self.files[at].source.n_rows or 0
        if self.counts is None:
            self.counts = counts
            self._say_row_names()

    def _say_row_names(self) -> None:
        """Warn of numbers that are not fitted because they name the rows."""
        taken = self.first.taken
        if not taken:
            return
        columns = [f"column {name!r} {why}" for name, why in taken.items()]
        warn_user(
            f"{self.name}: {' and '.join(columns)}: taken for names of the rows and "
            f"not fitted. If that is right, {hint('id', list(taken))} says so; to fit "
            f"{'it' if len(taken) == 1 else 'them'}, pass {hint('columns', ...)}.",
            RowNamesWarning,
        )

    def pieces_of(
        self, at: int, *, all_columns: bool = False, progress: Progress | None = None
    ) -> Generator[Piece]:
        """Read one of the files; ``progress`` is told of all of them."""
        file, n_files = self._open(at), len(self.paths)
        rows = sum(other.source.n_rows or 0 for other in self.files[:at])

        def watch(done: int, part: float) -> None:
            if progress is not None:
                progress(rows + done, (at + part) / n_files)

        return file.pieces(all_columns=all_columns, progress=watch)

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Read all files: yield (rows, their numbers with NaN where missing)."""
        with closing(self.pieces()) as pieces:
            for first_row, piece in pieces:
                yield slice(first_row, first_row + piece.n_rows), piece.values

    def id_batches(self) -> Iterator[pa.RecordBatch]:
        """Read the columns that name the rows, of all files."""
        for file in self.files:
            yield from file.id_batches()

    def check_unchanged(self) -> None:
        """Raise FileFormatError if a file has changed since it was fitted."""
        for file in self.files:
            file.source.origin.check_unchanged(is_fitted=True)

    # --------------------------------------------------------------- naming things
    def where(self, row: int, col: int, row_offset: int = 0) -> str:
        """Name a cell the way its owner finds it: file, line, column."""
        row += row_offset
        for file in self.files[:-1]:
            if row < (file.source.n_rows or 0):
                return file.place_of(row, self.names[col])
            row -= file.source.n_rows or 0
        return self.files[-1].place_of(row, self.names[col])

    def name_rows(self, rows: Sequence[int]) -> tuple[str, list[str]]:
        """What messages call some rows: a noun, and the names that follow it.

        Rows go by the columns ``id``, else by the lines of a text file (the header is
        line 1), else by their number from 0.
        """
        source = self.first.source
        if rows and self.id:
            return "row", [repr(name) for name in self._ids(rows)]
        if rows and isinstance(source, CsvSource) and len(self.paths) == 1:
            return "line", [str(line) for line in source.lines_of(rows)]
        return "row", [str(row) for row in rows]

    def _ids(self, rows: Sequence[int]) -> list[str]:
        found: dict[int, str] = {}
        first, last = 0, max(rows)
        for batch in self.id_batches():
            for row in rows:
                if first <= row < first + batch.num_rows:
                    found[row] = _ids_of(batch.slice(row - first, 1))[0]
            first += batch.num_rows
            if first > last:
                break
        return [found[row] for row in rows]

    # -------------------------------------------------------------- several files
    def _open(self, at: int) -> TableFile:
        if at == len(self.files):
            source = open_batches(self.paths[at], self.options)
            self._check_columns(source)
            # The order is that of the first file.
            options = replace(self.options, columns=self.names, exclude=(), id=self.id)
            self._later.append(TableFile(source, options))
        return self.files[at]

    def _check_columns(self, source: Batches) -> None:
        name, own = source.origin.name, set(source.schema.names)
        first = self._source.origin.name
        remedy = (
            "Files of one table must have the same columns; pass "
            f"{hint('columns', ...)} with those that all have."
        )
        absent = [column for column in self.names if column not in own]
        if absent:
            raise LabelError(
                f"{name} has no column {absent[0]!r}, which {first} has. {remedy}"
            )
        extra = own - set(self.all_names) - set(self.options.exclude)
        if extra and self.options.columns is None:
            raise LabelError(
                f"{name} has a column {min(extra)!r}, which {first} has not. {remedy}"
            )


def _ids_of(batch: pa.RecordBatch) -> list[str]:
    columns = [column.to_pylist() for column in batch.columns]
    return [" · ".join(map(str, ids)) for ids in zip(*columns, strict=True)]
