"""The files of one table, as a source of rows that can be read again."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from a1gm._base.types import Floats
from a1gm._base.warn import warn_user
from a1gm._base.words import counted, listed, shown
from a1gm._rows.files.counts import ColumnCounts
from a1gm._rows.files.csv import CsvSource
from a1gm._rows.files.find import FoundFiles, PathOrPaths, find_files, is_hidden
from a1gm._rows.files.number_marks import thousands_doubt
from a1gm._rows.files.numbers import joined, read_cells
from a1gm._rows.files.options import TableOptions
from a1gm._rows.files.piece import Piece, columns_of
from a1gm._rows.files.spreadsheet import SpreadsheetSource
from a1gm._rows.files.table_file import (
    Batches,
    Progress,
    TableFile,
    check_has,
    open_batches,
)
from a1gm._rows.long_hint import looks_long
from a1gm.exceptions import (
    A1gmError,
    A1gmWarning,
    DataHintWarning,
    FileFormatError,
    LabelError,
    NotNumericError,
    Option,
    Part,
    SkippedWarning,
)

if TYPE_CHECKING:
    import pyarrow as pa

#: What is looked at as text, to tell what the marks in it mean; fewer rows of many
#: columns.
ROWS_LOOKED_AT = 1_000
COLUMNS_LOOKED_AT = 200


@dataclass(eq=False)
class TableFiles:
    """One table in one file or several; columns are matched by name.

    The first file decides which columns form the table; the others are opened when the
    first pass comes to them. ``whose`` tells what has the columns that ``options`` asks
    for, such as ``"the fit has"``; ``counts`` is None before a pass has ended.
    """

    found: FoundFiles  # "-" is standard input
    options: TableOptions
    _: KW_ONLY
    whose: str | None = None
    opened: Batches | None = None  # the first file, if it was opened before
    are_read_twice: bool = False  # filled after the first pass
    counts: ColumnCounts | None = field(default=None, init=False)
    empty: list[str] = field(default_factory=list)  # files left out: without rows,
    broken: dict[str, A1gmError] = field(default_factory=dict)  # and unreadable
    last_row: Floats | None = field(default=None, init=False)  # after a pass
    last_texts: list[str] = field(default_factory=list, init=False)  # beside it
    long_columns: tuple[str, ...] = field(default=(), init=False)  # if it looks long
    told: list[A1gmWarning] = field(
        default_factory=list, init=False
    )  # what was warned of
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
    @property
    def paths(self) -> list[str]:
        """The files, without those that were left out so far."""
        return self.found.paths

    @cached_property
    def _source(self) -> Batches:
        source = self.opened
        while source is None:
            source = self._open_batches(0)
        return source

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
        """What messages call the table: its folder, or its first file and the rest."""
        name, n = self._source.origin.name, len(self.paths)
        if n > 1 and self.found.given:
            return f"{shown(self.found.given)} ({n} files)"
        return f"{name} and {counted(n - 1, 'more file')}" if n > 1 else name

    @property
    def all_names(self) -> list[str]:
        """Every column of the first file, part of the table or not."""
        return list(self._source.schema.names)

    def check_has(self, names: Sequence[str]) -> None:
        """Raise for columns that the first file does not have."""
        check_has(self._source, names)

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
        last: Piece | None = None
        head: list[Piece] = []  # the first rows, as far as they are text
        at = 0
        while at < len(self.paths):
            has_begun = False
            try:
                with closing(
                    self.pieces_of(at, all_columns=all_columns, progress=progress)
                ) as pieces:
                    for piece in pieces:
                        if self.counts is None and done + piece.first_row == 0:
                            counts, head = ColumnCounts(len(piece.names)), []
                        if isinstance(self.files[at].source, CsvSource) and (
                            done + piece.first_row < ROWS_LOOKED_AT
                        ):
                            head.append(piece)
                        has_begun, last = True, piece
                        yield done + piece.first_row, piece
                        if counts is not None:
                            counts.add(piece)
            except (FileFormatError, LabelError, NotNumericError) as error:
                if self.counts is not None or not self._leave_out(at, error):
                    raise self._with_advice(error) from error
                if has_begun:  # some of its rows have been counted: once more
                    at = done = 0
                continue
            done += self.files[at].source.n_rows or 0
            at += 1
        if self.counts is None:
            self.counts = counts
            if last is not None:
                self._look_at_last(last)
            self._say_row_names()
            self._say_thousands(head)
            self._say_without_value()
            self._say_left_out()

    def warn(self, warning: A1gmWarning) -> None:
        """Warn of the table, and keep the warning for a report."""
        self.told.append(warning)
        warn_user(warning)

    def _look_at_last(self, piece: Piece) -> None:
        """Keep what tells a total, or a long table, from other rows."""
        self.last_row, self.last_texts = piece.last_row(), piece.last_texts()
        if self.counts is not None and not self.counts.missing.any():
            self.long_columns = self._look_for_keys(piece)

    def _look_for_keys(self, piece: Piece) -> tuple[str, ...]:
        """Two keys and a value, if the rows look as if each was a cell."""
        every = piece.batch.schema.names
        taken = {*self.names, *self.first.taken}  # years may be keys
        for own in ([name for name in every if name in taken], self.names):
            if len(own) in (3, 4) and set(own) <= set(every):
                columns = map(piece.batch.column, own)
                cells = [read_cells(column, piece.options) for column in columns]
                if looks_long(np.column_stack([numbers for numbers, _ in cells])):
                    return tuple(own[:3])
        return ()

    def _say_row_names(self) -> None:
        """Warn of numbers that are not fitted because they name the rows."""
        taken = self.first.taken
        if not taken:
            return
        columns = [f"column {name!r} {why}" for name, why in taken.items()]
        is_said = self.options.id is not None
        name, names = ("exclude", taken) if is_said else ("id", self.id)
        self.warn(
            DataHintWarning(
                f"{' and '.join(columns)}: taken for names of the rows and not fitted. "
                "If that is right, ",
                Option(name, list(names)),
                f" says so; to fit {'it' if len(taken) == 1 else 'them'}, pass ",
                Option("columns"),
                ".",
                where=self.name,
                is_inferred=True,
            )
        )

    def _say_thousands(self, head: Sequence[Piece]) -> None:
        """Warn of decimal marks that may stand between thousands."""
        import pyarrow.compute as pc

        names = self.names[:COLUMNS_LOOKED_AT]
        most = ROWS_LOOKED_AT // (1 + len(names) // 20)
        pieces = [
            [column.slice(0, most) for column in columns_of(piece.batch, names)]
            for piece in head
        ]
        mark = self.options.point
        if not any(pc.any(pc.match_substring(joined(p), mark)).as_py() for p in pieces):
            return
        columns = (
            [cell for column in cells for cell in column.to_pylist()]
            for cells in zip(*pieces, strict=True)
        )
        doubt = thousands_doubt(columns, self.options)
        if doubt is not None:
            self.warn(DataHintWarning(doubt, where=self.name))

    def _say_without_value(self) -> None:
        """Warn of cells of spreadsheets that are missing, yet show something."""
        for file in self.files:
            words = getattr(file.source, "about_cells_without_value", "")
            if words:
                self.warn(DataHintWarning(words))

    def pieces_of(
        self, at: int, *, all_columns: bool = False, progress: Progress | None = None
    ) -> Generator[Piece]:
        """Read one of the files; ``progress`` is told of all of them."""
        file = self._open(at)
        n_files = len(self.paths)
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
            yield from file.batches_of(list(file.id))

    def check_unchanged(self) -> None:
        """Raise FileFormatError if a file has changed since it was fitted."""
        for file in self.files:
            file.source.origin.check_unchanged(is_fitted=True)

    # --------------------------------------------------------------- naming things
    def where(self, row: int, col: int, row_offset: int = 0) -> str:
        """Name a cell the way its owner finds it: file, line, column."""
        return self.place_of(row + row_offset, self.names[col])

    def place_of(self, row: int, column: str | None = None) -> str:
        """Name a row of the table, or a cell in it."""
        for file in self.files[:-1]:
            if row < (file.source.n_rows or 0):
                return file.place_of(row, column)
            row -= file.source.n_rows or 0
        return self.files[-1].place_of(row, column)

    def name_rows(self, rows: Sequence[int]) -> tuple[str, list[str]]:
        """What messages call some rows: a noun, and the names that follow it.

        Rows go by the columns ``id``, else by the lines of a text file (the header is
        line 1), else by their number from 0.
        """
        source = self.first.source
        if rows and self.id:
            return "row", [repr(name) for name in self._ids(rows)]
        is_one = rows and len(self.paths) == 1
        if is_one and isinstance(source, CsvSource | SpreadsheetSource):
            return source.row_noun, [str(line) for line in source.lines_of(rows)]
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
            self._later.append(
                TableFile(source, options, self.whose, asked=self.options)
            )
        return self.files[at]

    def _open_batches(self, at: int) -> Batches | None:
        """Open a file; None if it is left out, so that the next takes its place."""
        try:
            return open_batches(self.paths[at], self.options)
        except FileFormatError as error:
            if not self._leave_out(at, error):
                raise self._with_advice(error) from error
        return None

    def _with_advice(self, error: A1gmError) -> A1gmError:
        """The error of one of several files, with the option that goes on without."""
        is_last = len(self.paths) == 1 or self.counts is not None
        skip: Part = Option("skip_bad", True)
        if is_last or type(error) is not FileFormatError or skip in error.advice:
            return error
        space = " " if error.advice else ""
        return error.advised(error.advice, space, skip, " goes on without the file.")

    def _leave_out(self, at: int, error: A1gmError) -> bool:
        """Go on without a file that is empty or may be skipped, among several."""
        is_empty = getattr(error, "is_empty", False)
        if len(self.paths) == 1 or not (is_empty or self.options.skip_bad):
            return False
        path = self.paths.pop(at)
        if is_empty:
            self.empty.append(path)
        else:
            self.broken[path] = error
        if at == 0:  # another file decides which columns form the table
            self.opened, self._later = None, []
            for name in ("_source", "first"):
                self.__dict__.pop(name, None)
        else:
            del self._later[at - 1 :]
        return True

    def _say_left_out(self) -> None:
        """Warn of files that were left out."""
        if self.broken:
            files = counted(len(self.broken), "file was", "files were")
            why = [part for e in self.broken.values() for part in (" ", *e.all_parts)]
            self.warn(SkippedWarning(f"{files} left out:", why, is_broken=True))
        words = []
        if self.empty:
            files = counted(len(self.empty), "file has no rows", "files have no rows")
            words.append(f"{files} ({listed(self.empty, 3)})")
        others = [name for name in self.found.not_tables if not is_hidden(name)]
        if others:
            files = counted(len(others), "is no table", "are no tables")
            words.append(f"{files} ({listed(others, 3)})")
        if words:
            text = f"Left out of {self.name}: {'; '.join(words)}."
            self.warn(SkippedWarning(text))

    def _check_columns(self, source: Batches) -> None:
        name, own = source.origin.name, set(source.schema.names)
        first = self._source.origin.name
        remedy = (
            "Files of one table must have the same columns; pass ",
            Option("columns"),
            " with those that all have.",
        )
        absent = [column for column in self.names if column not in own]
        if absent:
            raise LabelError(
                f"{name} has no column {absent[0]!r}, which {first} has.", advice=remedy
            )
        extra = own - set(self.all_names) - set(self.options.exclude)
        if extra and self.options.columns is None:
            raise LabelError(
                f"{name} has a column {min(extra)!r}, which {first} has not.",
                advice=remedy,
            )


def _ids_of(batch: pa.RecordBatch) -> list[str]:
    columns = [column.to_pylist() for column in batch.columns]
    return [" · ".join(map(str, ids)) for ids in zip(*columns, strict=True)]
