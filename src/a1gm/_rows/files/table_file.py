"""One table file: which columns form the table, and their rows in pieces."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from a1gm._base.optional import require_pyarrow
from a1gm._base.types import Floats
from a1gm._base.words import counted, listed
from a1gm._rows.files import csv_faults
from a1gm._rows.files.columnar import ArrowSource, ParquetSource
from a1gm._rows.files.csv import CsvSource
from a1gm._rows.files.headers import check_is_header
from a1gm._rows.files.number_marks import sign_remedy
from a1gm._rows.files.numbers import (
    TextColumn,
    TextColumns,
    is_numeric_type,
    is_text_type,
)
from a1gm._rows.files.options import TableOptions, leaving_out, needed_by
from a1gm._rows.files.origin import find_origin
from a1gm._rows.files.piece import Piece, columns_of, part_of_column
from a1gm._rows.files.read_ahead import read_ahead
from a1gm._rows.files.row_names import ColumnFacts, Verdict, may_name_rows, role_of
from a1gm._rows.files.spreadsheet import SpreadsheetSource
from a1gm._rows.labels import check_there
from a1gm._rows.long_hint import long_call
from a1gm._rows.rows import Part
from a1gm.exceptions import FileFormatError, LabelError, NotNumericError, Option, Text

if TYPE_CHECKING:
    import pyarrow as pa

Batches: TypeAlias = CsvSource | SpreadsheetSource | ParquetSource | ArrowSource
Progress: TypeAlias = Callable[[int, float], None]

#: Numbers cast from text that are kept for a second pass, at most: 256 MB.
MOST_CELLS_KEPT = 1 << 25
MOST_COLUMNS_COMPARED = 1 << 9


class TableFile:
    r"""A table file that can be read as often as needed.

    The columns of the table are the ones asked for, or every numeric column that does
    not name the rows. In a typed file the schema says which are numeric. In a text file
    only a whole pass can: a column is numeric when every cell is a number or missing;
    text when most cells are neither; and refused, with the cell and the option that
    settles it, when it is numeric but for a few cells.

    ``names`` are these columns, final after one pass;
    ``text_columns`` is what was seen of those that proved to be text, and ``taken``
    tells which numbers were taken for names of rows, and why. ``whose`` tells what has
    the columns that are asked for, such as ``"the fit has"``. With ``is_read_twice``
    the first pass keeps numbers for the second. ``asked`` is what the caller asked of
    the table, where another file has settled its columns: advice is about that.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("name,x,y\nann,1,2\nbob,,4\n")
    >>> file = TableFile(open_batches(path, TableOptions()), TableOptions())
    >>> [piece.names for piece in file.pieces()]
    [('x', 'y')]
    """

    def __init__(
        self,
        source: Batches,
        options: TableOptions,
        whose: str | None = None,
        *,
        is_read_twice: bool = False,
        asked: TableOptions | None = None,
    ) -> None:
        self.source = source
        self._asked = asked or options
        self._is_later = asked is not None
        self._whose = whose
        if isinstance(source, SpreadsheetSource):  # numbers have no marks there
            options = replace(options, decimal=".", thousands=None)
        self.options = options
        self.is_text = isinstance(source, CsvSource | SpreadsheetSource)
        self.text_columns: dict[str, TextColumn] = {}
        self.taken: dict[str, str] = {}
        self._doubtful: list[ColumnFacts] | None = None  # columns that may be names
        self._proved_data: set[str] = set()  # of those, what a whole pass has shown
        self._kept: dict[int, Floats] = {}
        self._is_keeping = is_read_twice
        self._is_settled = False
        self._checksum: int | None = None  # of text, when a pass has ended
        self._check_known()
        self.names = tuple(options.columns or self._candidates())
        self._check_some()
        self._start_over()

    @property
    def name(self) -> str:
        """What messages call the file."""
        return self.source.origin.name

    @property
    def id(self) -> tuple[str, ...]:
        """Columns that name the rows; final after one pass."""
        if self.options.id is not None or self.options.columns is not None:
            return tuple(self.options.id or ())
        if self._stored_index:
            return (*self._stored_index, *self.taken)
        first, kind = self.source.schema.names[0], self.source.schema.types[0]
        is_text = first in self.text_columns if self.is_text else is_text_type(kind)
        is_name = is_text and first not in self.options.exclude
        return (*[first] * is_name, *self.taken)

    @property
    def passed_through(self) -> tuple[str, ...]:
        """Columns that are not part of the table and stay untouched."""
        own = set(self.names)
        return tuple(name for name in self.source.schema.names if name not in own)

    def place_of(self, row: int, column: str | None = None) -> str:
        """Name a cell the way its owner finds it: file, line, column."""
        place = self.source.place_of(row)
        return place if column is None else f"{place}, column {column!r}"

    @property
    def may_change(self) -> bool:
        """Whether columns that were left out so far may prove to be numbers."""
        is_text = all(seen.is_text_so_far for _, seen in self._cells.found)
        return bool(self._doubtful) or not is_text

    def batches_of(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read only some columns."""
        self.source.origin.check_unchanged()
        if isinstance(self.source, CsvSource | SpreadsheetSource):
            yield from (batch.select(columns) for batch in self.source.batches())
        else:
            yield from self.source.batches(columns)

    def pieces(
        self, *, all_columns: bool = False, progress: Progress | None = None
    ) -> Generator[Piece]:
        """Read the file from its start, ahead of the work on another thread.

        The first pass over a text file decides which columns are numbers. Where a
        column that looked numeric turns out to be text, the pass starts over: a piece
        with ``first_row == 0`` comes again, and what came before is to be forgotten.

        With ``all_columns``, ``batch`` has the columns that are not part of the table
        as well; those of text are always there. ``progress`` is called after each piece
        with the rows done so far and the fraction of the file read.

        Raises FileFormatError when the file is damaged, changes while it is read, or
        has a column that is numeric but for a few cells.
        """
        while True:
            with closing(read_ahead(self._one_pass(all_columns=all_columns))) as pieces:
                for piece in pieces:
                    if not piece.names or self._has_text:
                        continue
                    yield piece
                    if progress is not None:
                        size = max(self.source.origin.size, 1)
                        rows = piece.first_row + piece.n_rows
                        progress(rows, self.source.position / size)
            if self._is_settled:
                return

    def _start_over(self) -> None:
        """Forget what the cells of text have shown in the pass before."""
        self._cells = TextColumns(self.names, self.source.schema, self.options)
        self._doubtful = None
        self._has_text = False  # a column of the table has proved to be text

    def _one_pass(self, *, all_columns: bool) -> Iterator[Piece]:
        self._start_over()
        rows = 0
        self.source.origin.check_unchanged()
        for batch in self._batches(None if all_columns else self.names):
            piece = self._piece(batch, rows)
            if all_columns:  # to be filled: work for this thread, not for the consumer
                _ = piece.values
            yield piece
            rows += batch.num_rows
        self.source.origin.check_unchanged()
        if self.source.n_rows not in (None, rows):
            was = counted(self.source.n_rows, "row")
            raise self._changed(f"had {was} and now has {rows:,}")
        self.source.n_rows = rows
        self._settle()

    def _batches(self, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        if isinstance(self.source, ParquetSource | ArrowSource):
            for batch in self.source.batches(columns):
                if batch.num_rows:
                    self._look_for_names(batch)
                    yield batch
            return
        checksum = 0
        for batch in self.source.batches():
            self._look_for_names(batch)
            # Sizes and times may be those of before: text is compared, where that is
            # cheap. Of many columns it is not: each is a buffer of its own.
            if batch.num_columns <= MOST_COLUMNS_COMPARED:
                for column in batch.columns:
                    letters = column.buffers()[2]
                    checksum = zlib.crc32(letters or b"", checksum)
            step = self.options.batch_rows or max(batch.num_rows, 1)
            for start in range(0, batch.num_rows, step):
                yield batch.slice(start, step)
        if self._checksum not in (None, checksum):
            raise self._changed("has other cells than before")
        self._checksum = checksum

    def _piece(self, batch: pa.RecordBatch, first_row: int) -> Piece:
        parts: list[Part]
        if self.is_text:
            parts = [(self._numbers(batch, first_row), None, None, 0, 0)]
        else:
            columns = columns_of(batch, self.names)
            parts = [part_of_column(column, self.options) for column in columns]
        how = self.is_text, self.options, self.place_of
        return Piece(first_row, batch, self.names, parts, *how)

    def _numbers(self, batch: pa.RecordBatch, first_row: int) -> Floats:
        """Cast the text of a batch, or take what the pass before has kept of it."""
        kept = self._kept.pop(first_row, None) if self._is_settled else None
        if kept is not None:
            if len(kept) != batch.num_rows:
                raise self._changed("has other rows than before")
            return kept
        values = self._cells.cast(batch, first_row)
        if first_row == 0 and not self._is_settled:
            self._kept = {}
            if self.options.columns is None:  # text in those chosen is refused
                self.names = self._cells.numeric
        # Those dropped are cast all the same: they may still be refused.
        if len(self.names) < len(self._cells.names):
            own = set(self.names)
            values = values.T[[name in own for name in self._cells.names]].T
        self._has_text = len(self.names) > len(self._cells.numeric)
        n_cells = (first_row + len(values)) * values.shape[1]
        if self._is_keeping and n_cells < MOST_CELLS_KEPT:
            self._kept[first_row] = values
        return values

    def _changed(self, how: str) -> FileFormatError:
        return FileFormatError(
            f"{self.name} {how}: it changed while it was being read. Nothing was "
            "written."
        )

    def _look_for_names(self, batch: pa.RecordBatch) -> None:
        """Take out columns that name the rows, as far as the rows up to here tell."""
        if self._is_settled or self.options.columns is not None:
            return
        is_first = self._doubtful is None
        if is_first:
            if self.is_text:
                check_is_header(self.name, batch, self.options)
            self._doubtful = self._facts_of_names()
        for facts in self._doubtful or ():
            facts.add(batch.column(facts.name), self.options)
        if not is_first:
            return
        # What is data in these rows is data in all: no more need to look at it.
        self._doubtful = [
            facts
            for facts in self._doubtful or ()
            if not facts.is_text and self._verdict(facts).role != "data"
        ]
        taken = {facts.name for facts in self._doubtful}
        if taken:
            self.names = tuple(name for name in self.names if name not in taken)
            self._check_some(taken)
            self._cells = TextColumns(self.names, self.source.schema, self.options)

    def _facts_of_names(self) -> list[ColumnFacts]:
        if self.options.id == ():
            return []
        own = set(self.names) - self._proved_data
        # Beside an index no column is the first one.
        named = enumerate(self.source.schema.names, start=len(self._stored_index))
        may_be = ((place, n) for place, n in named if may_name_rows(n, place))
        return [ColumnFacts(name, place) for place, name in may_be if name in own]

    def _verdict(self, facts: ColumnFacts) -> Verdict:
        return role_of(facts, self.source.schema.names)

    def _settle(self) -> None:
        """Keep the numeric columns of text; raise for those that are almost numeric."""
        for name, seen in self._cells.found:
            asked_for = self.options.columns is not None and seen.n_others > 0
            if seen.is_numeric_but_for_a_few or asked_for:
                raise csv_faults.not_a_number(
                    self.place_of(seen.first_other),
                    name,
                    seen.others,
                    (seen.n_numbers, seen.n_others),
                    self._asked,
                    is_later=self._is_later,
                    whose=self._whose,
                )
        # Pieces that had a text column in them were one column too wide.
        self._is_settled = not self._has_text
        self.text_columns.update(self._cells.found)
        self.names = self._cells.numeric
        self._settle_names()
        self._is_keeping &= not self._is_settled
        self._check_some()

    def _settle_names(self) -> None:
        """Tell which columns name the rows; raise for those that may or may not."""
        if self._doubtful is None:  # a later pass, or columns that were chosen
            return
        self.taken = {}
        for facts in self._doubtful:
            role, why = self._verdict(facts)
            if role == "names":
                self.taken[facts.name] = why
            elif role == "unclear":
                raise self._unclear(facts.name, why)
            else:  # the first rows only looked so: once more, with the column
                order = self.source.schema.get_field_index
                self.names = tuple(sorted((*self.names, facts.name), key=order))
                self._proved_data.add(facts.name)
                self._is_settled = False

    def _unclear(self, name: str, why: str) -> LabelError:
        order = self.source.schema.get_field_index
        data = sorted((*self.names, name), key=order)
        few = data if len(data) <= 8 else None
        names = self.source.schema.names
        long: Text = ()
        if len(names) in (3, 4) and names[-1] in data:
            call = long_call("frame", names[-3:-1], names[-1])
            long = " If the file has one row per cell, fit it with ", call, "."
        return LabelError(
            f"column {name!r} {why}; it may name the rows or be data. Pass ",
            Option("id", [name]),
            " if it names the rows, ",
            Option("exclude", [name]),
            " if it is neither. If it is data, pass ",
            Option("columns", few),
            " with all columns to fit.",
            long,
            where=self.name,
        )

    def _candidates(self) -> Iterator[str]:
        """Columns that belong to the table unless their cells prove otherwise."""
        index = self._stored_index if self.options.id is None else self.options.id
        left_out = {*self.options.exclude, *index}
        schema = self.source.schema
        kinds = set(schema.types)
        is_data = {kind: self.is_text or is_numeric_type(kind) for kind in kinds}
        for name, kind in zip(schema.names, schema.types, strict=True):
            if is_data[kind] and name not in left_out:
                yield name

    @cached_property
    def _stored_index(self) -> tuple[str, ...]:
        """The index of a pandas frame, which typed files keep among the columns."""
        about = (self.source.schema.metadata or {}).get(b"pandas")
        try:
            index = json.loads(about or b"{}").get("index_columns", [])
        except (ValueError, AttributeError):  # not as pandas writes it
            return ()
        return tuple(name for name in self.source.schema.names if name in index)

    def _check_some(self, taken: Collection[str] = ()) -> None:
        if not self.names and taken:
            few = sorted(taken, key=self.source.schema.get_field_index)
            raise LabelError(
                f"{self.name} has no numeric column beside {listed(few)}, which may "
                "name the rows. If it is data, pass ",
                Option("columns", few),
                ".",
            )
        if not self.names:
            raise NotNumericError(
                f"{self.name} has no numeric column. Its columns are: "
                f"{listed([repr(name) for name in self.source.schema.names], 10)}."
                f"{self._about_signs()}"
            )

    def _about_signs(self) -> str:
        """What to do about the first column of numbers that have signs."""
        for name, seen in self.text_columns.items():
            if remedy := sign_remedy(seen.others[0]):
                such = f"Column {name!r} has text such as {seen.others[0]!r}"
                return f" {such}: in the file, {remedy}."
        return ""

    def _check_known(self) -> None:
        """Raise for columns that the file does not have, or that hold no numbers."""
        for option in ("columns", "exclude", "id"):
            asked: Text = " (asked for by ", Option(option), ")"
            if self._whose is not None and option == "columns":
                asked = f", which {self._whose}"
            check_has(self.source, getattr(self.options, option) or (), asked)
        for name in () if self.is_text else self.options.columns or ():
            self._check_type(name, self.source.schema.field(name).type)

    def _check_type(self, name: str, kind: Any) -> None:
        import pyarrow as pa

        if not is_numeric_type(kind) and not pa.types.is_boolean(kind):
            leave_out = "To go on without it, ", leaving_out(name, self._asked), "."
            raise NotNumericError(
                f"column {name!r} holds {kind}, not numbers.",
                advice=needed_by(self._whose) if self._whose else leave_out,
                where=self.name,
            )


def check_has(source: Batches, names: Sequence[str], asked: Text = "") -> None:
    """Raise for columns that a file does not have; ``asked`` says who asks for them."""
    known = source.schema.names
    if isinstance(source, CsvSource) and not set(names) <= set(known):
        with closing(source.batches()) as batches:
            next(batches, None)  # another delimiter, or a title, is the better reason
    check_there(source.origin.name, names, known, LabelError, asked)


def open_batches(path: str | os.PathLike[str], options: TableOptions) -> Batches:
    """Open a file, or standard input for ``"-"``, as batches of rows.

    The bytes decide the format, the extension only the delimiter. Raises
    FileFormatError when the file cannot be read as a table, and MissingExtraError
    without pyarrow.
    """
    origin = find_origin(path)
    require_pyarrow("excel" if origin.format == "spreadsheet" else "pyarrow")
    if origin.format == "parquet":
        return ParquetSource(origin, options)
    if origin.format == "csv":
        return CsvSource(origin, options)
    if origin.format == "spreadsheet":
        return SpreadsheetSource(origin, options)
    return ArrowSource(origin, options)
