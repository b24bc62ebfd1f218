"""Table files, one or many, as rows of numbers that can be read again."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from a1gm._base.optional import require
from a1gm._base.types import Bools, Floats, Ints, Negatives
from a1gm._base.warn import warn_user
from a1gm._base.words import counted, did_you_mean, listed, shown
from a1gm._rows.columns import (
    Choice,
    Kind,
    choose,
    former_keys,
    have_times,
    is_label,
    is_stored_index,
)
from a1gm._rows.files import faults
from a1gm._rows.files.sheet import SheetSource
from a1gm._rows.files.source import (
    FoundFiles,
    PathOrPaths,
    Source,
    TableOptions,
    find_files,
    open_input,
    paths_in,
)
from a1gm._rows.files.text import (
    Cells,
    Others,
    TextSource,
    columns_of,
    has_numbers,
    is_number_like,
)
from a1gm._rows.files.typed import TypedSource, cast_numbers
from a1gm._rows.hints import MOST_ROWS, hints
from a1gm._rows.labels import LazyLabels, check_there, plain_text
from a1gm._rows.rows import Readable, Rows, table_of
from a1gm._rows.totals import check_header
from a1gm.exceptions import (
    A1gmWarning,
    DataHintWarning,
    FileFormatError,
    InfiniteValuesError,
    LabelError,
    NegativeValuesError,
    NotNumericError,
    Option,
    SkippedWarning,
    Text,
)

if TYPE_CHECKING:
    import pyarrow as pa

Progress: TypeAlias = Callable[[int, float], None]
_Item = TypeVar("_Item")

#: Numbers cast from text that are kept for a second pass, at most: 256 MB.
MOST_CELLS_KEPT = 1 << 25
_MOST_WHOLE = 2.0**53  # whole numbers beyond are not exact in float64
_WHOLE = re.compile(r"(-?[0-9]+\.0)?")
SEPARATOR = " · "  # of the names of a row that has several
_ROWS_AT_ONCE = 1 << 16
_MOST_LABELS = 12  # columns beside the table that hints look at


@dataclass(frozen=True)
class Piece:
    """Some consecutive rows of a file; NaN is a missing cell."""

    source: Source
    first_row: int  # its number in the file, from 0
    batch: pa.RecordBatch  # the columns as they are in the file
    names: tuple[str, ...]
    values: Floats  # the numbers of these columns, which lie one after the other

    def check_cells(self, negatives: Negatives) -> None:
        """Raise for infinite cells, and for what ``negatives`` does not allow."""
        allow = "; if negative increments are meant, ", Option("negatives", "allow")
        below = (self.values < 0.0) & (negatives == "raise")
        for is_bad, error, what, more in (
            (np.isinf(self.values), InfiniteValuesError, "not a finite number", ()),
            (below, NegativeValuesError, "negative (Negative values in data)", allow),
        ):
            if is_bad.any():
                row, col = np.argwhere(is_bad)[0]
                place = self.source.place_of(self.first_row + int(row))
                token = repr(float(self.values[row, col])).removesuffix(".0")
                is_one = len(self.names) == 1  # without it nothing is left
                name = Option("exclude", [self.names[col]])
                other = () if is_one else ("; if the column is not data, ", name)
                raise error(
                    f"{token} is {what}. If it marks a missing cell pass ",
                    Option("missing", [token]),
                    more,
                    other,
                    ".",
                    where=f"{place}, column {self.names[col]!r}",
                )


class ColumnCounts:
    """Counts of each column that the writer of a filled file needs in advance.

    ``missing`` counts its missing cells; ``is_whole``: all its numbers are whole.
    """

    def __init__(self, n_cols: int) -> None:
        self.missing: Ints = np.zeros(n_cols, np.int64)
        self.is_whole: Bools = np.ones(n_cols, bool)

    def add(self, values: Floats) -> None:
        """Count the cells of some rows."""
        self.missing += np.count_nonzero(np.isnan(values), axis=0)
        # Most columns with fractions show one at once.
        for rows in (slice(0, 64), slice(64, None)):
            some = np.flatnonzero(self.is_whole)
            columns = values.T[some, rows]
            is_whole = (columns == np.floor(columns)) & (np.abs(columns) < _MOST_WHOLE)
            self.is_whole[some] = (is_whole | np.isnan(columns)).all(axis=1)


class TableFiles(Readable):
    """One table in one file or several; columns are matched by name.

    The first file decides which columns are the table, by names and types (see
    `a1gm._rows.columns`). A typed file has types; in a text file a column's type is
    what all its cells are: numbers or missing, text, or the file is refused with the
    first cell that disagrees.
    """

    def __init__(
        self,
        found: FoundFiles,
        options: TableOptions,
        *,
        reason: str | None = None,
        are_read_twice: bool = False,
    ) -> None:
        self.found = found  # "-" is standard input
        self.paths = found.paths  # without those that were left out so far
        self.options = options
        self.reason = reason  # why the columns are needed: "the fit has"
        self.data: Collection[str] = ()  # names of columns that are not labels
        self.sources: list[Source] = []  # the files opened so far
        self.choice: Choice | None = None
        self.names: tuple[str, ...] = ()  # columns of the table; final after a pass
        self.id: tuple[str, ...] = ()  # columns that label its rows
        self.col_labels: list[str] = []
        self.passed_through: list[str] = []  # columns of the first file beside these
        self.n_cols = 0
        self.n_rows: int | None = None  # of all files; None before a pass has ended
        self.counts: ColumnCounts | None = None  # the same
        self.empty: list[str] = []  # files left out: without rows
        self.warned: list[A1gmWarning] = []  # in the first pass
        self._is_keeping = are_read_twice  # filled after the first pass
        self._kept: dict[tuple[int, int], Floats] = {}
        self._texts: dict[str, Others] = {}  # of text columns, to be checked

    def choosing(self, *, reason: str | None = None, **columns: Any) -> TableFiles:
        """Return the same files with another choice of columns, exclude or id."""
        options, twice = replace(self.options, **columns), self._is_keeping
        other = TableFiles(self.found, options, reason=reason, are_read_twice=twice)
        other.sources = self.sources[:1]
        other.empty = self.empty
        return other

    # ------------------------------------------------------------ what they hold
    @property
    def first(self) -> Source:
        """The first file, opened."""
        while not self.sources:
            try:
                self._open(0)
            except FileFormatError as error:
                if not self._leave_out(0, error):
                    raise
        return self.sources[0]

    @property
    def name(self) -> str:
        """The table in messages: its folder, or its first file and the rest."""
        name, n = shown(self.paths[0]), len(self.paths)
        if n > 1 and self.found.given:
            return f"{shown(self.found.given)} ({n} files)"
        name = "<stdin>" if name == "-" else name
        return f"{name} and {counted(n - 1, 'more file')}" if n > 1 else name

    @property
    def left_out(self) -> list[str]:
        """Columns that are not fitted and label no rows, as messages show them."""
        return [title_of(name) for name in self.passed_through if name not in self.id]

    @cached_property
    def row_labels(self) -> LazyLabels | None:
        """Labels of all rows, read from the columns ``id``; None without these."""
        if not self.id:
            return None
        return LazyLabels(self.n_rows or 0, lambda: map(_ids_of, self.id_batches()))

    def check_has(self, names: Sequence[str], why: Text = "") -> None:
        """Raise for columns that the first file does not have."""
        source = self.first
        if not set(names) <= set(source.names):
            error = faults.wrong_delimiter(source)  # the better reason
            if error is not None:
                raise error
        check_there(source.file.name, names, source.names, LabelError, why)

    # -------------------------------------------------------------------- reading
    def pieces(
        self, *, all_columns: bool = False, progress: Progress | None = None
    ) -> Generator[tuple[int, Piece]]:
        """Read all files: yield (first row in the table, some rows of a file).

        The first pass settles the columns and counts their missing cells.
        ``all_columns`` reads the columns that are not part of the table as well.
        ``progress`` is called after each piece with the rows done so far and the
        fraction of the files read.
        """
        counts: ColumnCounts | None = None
        head: Piece | None = None
        at = done = 0
        while at < len(self.paths):
            rows = 0
            try:
                with closing(
                    self.pieces_of(at, all_columns=all_columns, progress=progress)
                ) as pieces:
                    for piece in pieces:
                        if done + rows == 0:
                            counts, head = ColumnCounts(len(piece.names)), piece
                        yield done + rows, piece
                        rows += len(piece.values)
                        if counts is not None and self.counts is None:
                            counts.add(piece.values)
            except FileFormatError as error:
                if self.counts is not None or not self._leave_out(at, error):
                    raise
                continue
            done, at = done + rows, at + 1
        if self.counts is None:
            self.counts, self.n_rows = counts, done
            self._is_keeping = False
            self._warn(head)

    def pieces_of(
        self, at: int, *, all_columns: bool = False, progress: Progress | None = None
    ) -> Generator[Piece]:
        """Read one of the files, ahead of the work on another thread."""
        source = self._open(at)
        done = sum(other.n_rows or 0 for other in self.sources[:at])
        with closing(read_ahead(self._read(at, all_columns))) as pieces:
            for piece in pieces:
                yield piece
                done += len(piece.values)
                if progress is not None:
                    part = source.position / max(source.file.size, 1)
                    progress(done, (at + part) / len(self.paths))

    def _read(self, at: int, all_columns: bool) -> Generator[Piece]:
        source, rows = self.sources[at], 0
        source.file.check_unchanged()
        if self.counts is None:
            if at > 0:
                self._check_columns(source)
            for option in ("columns", "exclude", "id") if at == 0 else ():
                why: Text = (" (named in ", Option(option), ")")
                if self.reason is not None and option == "columns":
                    why = f", which {self.reason}"
                self.check_has(getattr(self.options, option) or (), why)
            self._settle_typed(at, source)
        columns = None if all_columns or source.is_text else self.names
        cells = Cells(source.options)
        for batch in source.batches(columns):
            if not batch.num_rows:
                continue
            if source.is_text:
                values = self._numbers(at, batch, rows, cells)
            else:
                values = cast_numbers(columns_of(batch, self.names), self.options)
            yield Piece(source, rows, batch, self.names, values)
            rows += batch.num_rows
        source.file.check_unchanged()
        if source.n_rows not in (None, rows):
            raise FileFormatError(
                f"{source.file.name} had {counted(source.n_rows or 0, 'row')} and now "
                f"has {rows:,}: it changed while it was being read. Nothing was "
                "written."
            )
        source.n_rows = rows

    # ------------------------------------------------------------ which columns
    def _choose(self, kinds: dict[str, Kind], index: Sequence[str] = ()) -> Choice:
        options = self.options
        has_index = bool(index) and options.id is None
        kinds = {n: kind for n, kind in kinds.items() if not (has_index and n in index)}
        choice = choose(
            kinds,
            options.id,
            options.columns,
            options.exclude,
            data=self.data,
            has_index=has_index,
            has_axis=self.first.has_axis,
            former_keys=self._former_keys(kinds),
            name=self.name,
        )
        if has_index:
            choice.ids = list(index)
        self.choice = choice
        self.id = tuple(choice.ids)
        # The columns of a fit keep its order, others that of the file.
        self.col_labels = list((self.reason and options.columns) or choice.table)
        self.names, self.n_cols = tuple(self.col_labels), len(self.col_labels)
        own = set(self.names)
        self.passed_through = [n for n in self.first.names if n not in own]
        return choice

    def _former_keys(self, kinds: Mapping[str, Kind]) -> Sequence[str]:
        """Columns of a cross-table in a typed file that may come from its index."""
        first = self.first
        is_named = any(not is_stored_index(name) for name in first.index)
        if not first.has_axis or (first.has_categories and is_named):
            return ()
        types = [first.schema.field(name).type for name in kinds]
        return former_keys(kinds, types, has_named_index=is_named)

    def _settle_typed(self, at: int, source: Source) -> None:
        """Choose the columns of the first file by its types, and check all files."""
        if source.kinds is None:
            return
        if at == 0:
            self._choose(source.kinds, source.index)
        for name in self.names:
            if source.kinds[name] not in ("number", "bool"):
                raise NotNumericError(
                    f"{source.file.name}: column {name!r} holds "
                    f"{source.schema.field(name).type}, not numbers. ",
                    faults.not_data(name, self.options, self.reason),
                )

    def _settle_text(
        self, source: Source, batch: pa.RecordBatch, cells: Cells
    ) -> Floats:
        """Decide the kind of every column by the first rows; return their numbers."""
        options = self.options
        skipped = {*options.exclude, *(options.id or ())}
        tried = [name for name in source.names if name not in skipped]
        tried = tried if options.columns is None else list(options.columns)
        values, others = cells.cast(batch, tried)
        is_number: Bools = np.logical_not(np.isnan(values).all(axis=0))
        kinds: dict[str, Kind] = dict.fromkeys(source.names, "text")
        mixed: dict[str, Others] = {}
        words: dict[str, Others] = {}  # columns of text that were asked for
        for name, has_number in zip(tried, is_number, strict=True):
            other = others.get(name)
            if other is None:
                kinds[name] = "number"
            elif has_number or not other.are_words:
                mixed[name] = other
            elif options.columns is not None:
                words[name] = other
            elif {text.lower() for text in other.texts} <= {"true", "false"}:
                kinds[name] = "bool"
        try:
            choice = self._choose(kinds)
        except (LabelError, NotNumericError) as error:
            self._check_mixed(source, mixed)
            raise faults.no_numbers(source, batch, error) from error
        own = set(self.names)
        first = next(j for j, name in enumerate(source.names) if name in own)
        has_times = have_times(source.names)
        labels = {
            name
            for j, name in enumerate(source.names)
            if name not in own
            and is_label(name, leads=j < first, is_first=j == 0, has_times=has_times)
        }
        self._check_mixed(source, mixed, labels)
        self._check_mixed(source, words, are_words=True)
        self._texts = {
            name: others[name]
            for name in choice.inferred
            if kinds[name] == "text" and name not in labels
        }
        place_in = {name: j for j, name in enumerate(tried)}
        chosen = [place_in[name] for name in self.names]
        return values if chosen == list(range(len(tried))) else values.T[chosen].T

    def _check_mixed(
        self,
        source: Source,
        mixed: dict[str, Others],
        labels: Collection[str] = (),
        first_row: int = 0,
        are_words: bool = False,
    ) -> None:
        """Raise for the first column with text among numbers that labels no rows."""
        for name, other in mixed.items():
            if name not in labels:
                place = source.place_of(first_row + other.first)
                raise faults.mixed_column(
                    place, name, other.texts, self.options, self.reason, are_words
                )

    def _numbers(
        self, at: int, batch: pa.RecordBatch, first_row: int, cells: Cells
    ) -> Floats:
        """Cast the text of a batch, or take what the pass before has kept of it."""
        if self.counts is not None and (at, first_row) in self._kept:
            return self._kept.pop((at, first_row))
        source = self.sources[at]
        if at == 0 and first_row == 0 and self.counts is None:
            self._kept = {}
            values = self._settle_text(source, batch, cells)
        else:
            values, others = cells.cast(batch, self.names)
            self._check_mixed(source, others, first_row=first_row)
            is_first = at == 0 and self.counts is None
            for name, other in self._texts.items() if is_first else ():
                if has_numbers(batch.column(name), self.options):
                    self._check_mixed(source, {name: other})
        n_cells = values.size + sum(kept.size for kept in self._kept.values())
        if self._is_keeping and n_cells < MOST_CELLS_KEPT:
            self._kept[at, first_row] = values
        return values

    # ---------------------------------------------------------------- other reads
    def in_pieces(self) -> Iterator[tuple[slice, Floats]]:
        """Read all files: yield (rows, their numbers with NaN where missing)."""
        with closing(self.pieces()) as pieces:
            for first_row, piece in pieces:
                yield slice(first_row, first_row + len(piece.values)), piece.values

    def check_cells(
        self, negatives: Negatives, progress: Progress | None = None
    ) -> None:
        """Read all files; raise for cells that cannot be fitted."""
        with closing(self.pieces(progress=progress)) as pieces:
            for _, piece in pieces:
                piece.check_cells(negatives)

    @property
    def n_observed(self) -> int:
        """Number of the cells that are not missing, as the first pass has counted."""
        assert self.counts is not None
        return (self.n_rows or 0) * self.n_cols - int(self.counts.missing.sum())

    def in_memory(
        self,
        *,
        negatives: Negatives | None = None,
        all_columns: bool = False,
        progress: Progress | None = None,
    ) -> tuple[Rows, Any]:
        """Hold the table in memory with its labels; with ``all_columns`` also as it is.

        Files may have further columns, in another order, and integers beside floats.
        Bad cells are refused with their places, unless ``negatives`` is None.
        """
        import pyarrow as pa

        values: list[Floats] = []
        tables: list[pa.Table] = []
        options: Any = {"all_columns": all_columns, "progress": progress}
        with closing(self.pieces(**options)) as pieces:
            for first_row, piece in pieces:
                if first_row == 0:
                    values, tables = [], []
                if negatives is not None:
                    piece.check_cells(negatives)
                values.append(piece.values)
                if all_columns:
                    tables.append(pa.Table.from_batches([piece.batch]))
        rows = replace(
            table_of(np.concatenate(values)),
            row_labels=self.row_labels,
            col_labels=self.col_labels,
            name=self.name,
            choice=self.choice,
        )
        if not all_columns:
            return rows, None
        return rows, pa.concat_tables(tables, promote_options="permissive")

    def id_batches(self) -> Iterator[pa.RecordBatch]:
        """Read the columns that label the rows, of all files; else number the rows."""
        import pyarrow as pa

        n_rows = 0 if self.id else self.n_rows or 0
        for start in range(0, n_rows, _ROWS_AT_ONCE):
            some = range(start, min(start + _ROWS_AT_ONCE, n_rows))
            yield pa.RecordBatch.from_pydict({"row": some})
        for source in self.sources if self.id else ():
            source.file.check_unchanged()
            for batch in source.batches(self.id):
                for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
                    yield batch.slice(start, _ROWS_AT_ONCE)

    def check_unchanged(self) -> None:
        """Raise FileFormatError if a file has changed since it was fitted."""
        for source in self.sources:
            source.file.check_unchanged(is_fitted=True)

    # --------------------------------------------------------------- naming things
    def place_of(self, row: int) -> str:
        """Name a row of the table by its labels, or by file and line."""
        for source in self.sources[:-1]:
            if row < (source.n_rows or 0):
                return source.place_of(row)
            row -= source.n_rows or 0
        return self.sources[-1].place_of(row)

    def name_rows(self, rows: Sequence[int]) -> tuple[str, list[str]]:
        """Name some rows for messages: a noun, and the names that follow it.

        Rows go by the columns ``id``, else by the lines of a text file (the header is
        line 1), else by their number from 0.
        """
        if rows and self.row_labels is not None:
            return "row", [repr(self.row_labels[row]) for row in rows]
        if rows and len(self.paths) == 1:
            lines = self.first.lines_of(rows)
            return self.first.row_noun, [str(line) for line in lines]
        return "row", [str(row) for row in rows]

    # -------------------------------------------------------------- several files
    def _open(self, at: int) -> Source:
        if at == len(self.sources):
            file = open_input(self.paths[at])  # the bytes decide the format
            extra = "excel" if file.format == "spreadsheet" else "pyarrow"
            require("pyarrow", extra, "Reading a table file")
            readers = {"csv": TextSource, "spreadsheet": SheetSource}
            reader = readers.get(file.format, TypedSource)
            self.sources.append(reader(file, self.options))
        return self.sources[at]

    def _leave_out(self, at: int, error: FileFormatError) -> bool:
        """Go on without a file that is empty, among several."""
        if len(self.paths) == 1 or not getattr(error, "is_empty", False):
            return False
        self.empty.append(self.paths.pop(at))
        del self.sources[at:]
        return True

    def _check_columns(self, source: Source) -> None:
        name, own = source.file.name, set(source.names)
        first = self.first.file.name
        remedy = (
            "Files of one table must have the same columns; pass ",
            Option("columns"),
            " with those that all have.",
        )
        absent = [column for column in self.names if column not in own]
        if absent:
            raise LabelError(
                f"{name} has no column {absent[0]!r}, which {first} has. ", remedy
            )
        extra = own - set(self.first.names) - set(self.options.exclude)
        if extra and self.options.columns is None:
            raise LabelError(
                f"{name} has a column {min(extra)!r}, which {first} lacks. ", remedy
            )

    # ------------------------------------------------------------------ warnings
    def _warn(self, head: Piece | None) -> None:
        """Warn of what was inferred, may not be meant, or was left out."""
        assert self.choice is not None
        inferred = self.choice.warning(self.name)
        self.warned = [] if inferred is None else [inferred]
        if head is not None:
            self.warned += hints(
                self._first_rows(head),
                self.choice,
                self.n_rows,
                name=self.name,
                is_asked=self.options.columns is not None,
                in_file=True,
            )
        for source in self.sources:
            if source.hint:
                self.warned.append(DataHintWarning(source.hint))
        self.warned += self._left_out_files()
        for warning in self.warned:
            warn_user(warning)

    def _first_rows(self, head: Piece) -> dict[str, Any]:
        """Return the first rows of the columns, and of a few of those beside."""
        beside, batch = self.passed_through[:_MOST_LABELS], head.batch
        if not head.source.is_text and beside:
            with closing(self.first.batches(beside)) as batches:
                batch = next(batches)
        rows = min(MOST_ROWS, len(head.values), batch.num_rows)
        columns: dict[str, Any] = batch.select(beside).slice(0, rows).to_pydict()
        return columns | dict(zip(self.names, head.values[:rows].T, strict=True))

    def _left_out_files(self) -> Iterator[SkippedWarning]:
        words, others = [], self.found.not_tables
        for names, one, many in (
            (self.empty, "file has no rows", "files have no rows"),
            (others, "is not a table", "are not tables"),
        ):
            if names:
                files = counted(len(names), one, many)
                words.append(f"{files} ({listed(names, 3)})")
        if words:
            n = len(self.empty) + len(others)
            yield SkippedWarning(
                f"Left out of {self.name}: {'; '.join(words)}.", count=n
            )


def title_of(name: str) -> str:
    """Return the name of a column in messages."""
    return shown(name) or "a column without a name"


def _ids_of(batch: pa.RecordBatch) -> list[str]:
    columns = []
    for column in batch.columns:
        texts = ["" if x is None else plain_text(x) for x in column.to_pylist()]
        # Whole numbers with a hole between them are often stored as 4.0.
        are_whole = all(map(_WHOLE.fullmatch, texts))
        columns.append([x.removesuffix(".0") for x in texts] if are_whole else texts)
    return list(map(SEPARATOR.join, zip(*columns, strict=True)))


def read_ahead(items: Generator[_Item], depth: int = 3) -> Generator[_Item]:
    """Yield the items in order, taken from the generator on a second thread.

    At most ``depth`` items are read or wait. An error of the generator is raised where
    its item would have come. It is closed at the end, also when the consumer stops
    early.
    """
    end: Any = object()
    waiting: deque[Future[_Item]] = deque()
    with ThreadPoolExecutor(1, "a1gm-read-ahead") as pool:
        try:
            for _ in range(depth):
                waiting.append(pool.submit(next, items, end))
            while (item := waiting.popleft().result()) is not end:
                waiting.append(pool.submit(next, items, end))
                yield item
        finally:
            for future in waiting:
                future.cancel()
            pool.submit(items.close)  # the thread may be at work on them


# ------------------------------------------------------------------- in memory
def read_beside(given: Any, files: TableFiles) -> Any:
    """Read weights that lie in files, by the columns of ``files``; others are as given.

    A file that has none of these columns has one number per row.
    """
    paths = paths_in(given)
    if not paths:
        return given
    other = _open_beside(paths, files, [*files.names, *files.id])
    known = other.first.names
    columns = list(files.names) if {*known} & {*files.names} else None
    ids = [name for name in files.id if name in known]
    other = other.choosing(
        columns=columns, exclude=(), id=ids or None, reason=f"{files.name} has"
    )
    rows, _ = other.in_memory()
    if columns is None:  # its one column has another name
        rows = replace(rows, col_labels=None)
    return rows


def totals_beside(given: Any, files: TableFiles, names: Any) -> Any:
    """Read totals that lie in files; others are as given.

    A file has a line per total, its name before the number, below a header or without
    one; or numbers alone; or one line of totals below ``names`` of the table.
    """
    paths = paths_in(given)
    if not paths:
        return given
    known = set() if names is None else {plain_text(name) for name in names}
    other = _open_beside(paths, files, known.union(files.id), known)
    header = list(other.first.names)
    n_known = sum(name in known for name in header)
    is_line = n_known > 0 if len(header) > 2 else n_known == len(header)
    columns = header if is_line else header[-1:]
    ids = [] if is_line else header[:-1]
    rows, _ = other.choosing(columns=columns, exclude=(), id=ids or None).in_memory()
    if ids and known:
        _check_first_line(other, files, rows, known)
    return rows


def _check_first_line(
    other: TableFiles, files: TableFiles, totals: Rows, known: Collection[str]
) -> None:
    """Raise where a header was read as a total, or a total as a header."""
    *ids, number = other.first.names
    if isinstance(other.first, TypedSource):
        if ids[0] not in files.id:
            check_header(ids[0], number, totals.name, known, totals.row_labels)
        return
    label = totals.row_labels[0]
    if other.options == files.options or label in known:
        return
    number = other.first.first_record()[-1]
    raise LabelError(
        f"{totals.name}, line 1: the table has no {label!r}, which was read as the "
        f"name of a total because the last cell, {number!r}, is a number or missing."
        f"{did_you_mean(label, known)} If this line is a header, write a word in its "
        "last cell, such as 'total'."
    )


def _open_beside(
    given: PathOrPaths,
    files: TableFiles,
    names: Collection[str],
    labels: Collection[str] = (),
) -> TableFiles:
    """Open numbers beside a table, with a header unless their first line is data.

    That is a line that begins with one of the ``labels``, or that ends with a number,
    in whatever notation, and has none of the ``names`` of a header.
    """
    found = find_files(given)
    with_header = TableFiles(found, files.options)
    without = TableFiles(found, replace(files.options, header=False))
    if not files.options.header or not without.first.is_text:
        return with_header
    record = without.first.first_record()
    *label, number = record
    if number in names or label[:1] == [""]:  # as pandas writes a Series
        return with_header
    is_data = SEPARATOR.join(label) in labels
    if set(names).isdisjoint(record):
        is_word = number.lstrip()[:1].isalpha() or not any(map(str.isdigit, number))
        is_amount = bool(label) and not is_word  # such as $70
        is_data = is_data or is_amount or is_number_like(number, files.options)
    return without if is_data else with_header


def row_names(files: TableFiles, rows: Ints | None = None) -> list[str]:
    """The labels of some or all rows, or where they are: "line 2" or "row 0"."""
    places = range(files.n_rows or 0) if rows is None else rows.tolist()
    labels = files.row_labels
    if labels is not None:
        return [labels[place] for place in places]
    noun, numbers = files.name_rows(places)
    return [f"{noun} {number}" for number in numbers]


def hole_shares(files: TableFiles, height: int, width: int) -> Floats:
    """Return the share of missing cells in each of some bands of rows and columns.

    The files are read again, after the pass that counts their rows.
    """
    n_rows, n_cols = files.n_rows or 0, files.n_cols
    height, width = min(height, n_rows), min(width, n_cols)
    left = np.arange(width) * n_cols // width
    holes, cells = np.zeros((height, width)), np.zeros((height, 1))
    for rows, values in files.in_pieces():
        missing = np.add.reduceat(np.isnan(values), left, axis=1, dtype=np.int64)
        band = np.arange(rows.start, rows.stop) * height // n_rows
        top = np.flatnonzero(np.diff(band, prepend=-1))
        holes[band[top]] += np.add.reduceat(missing, top, axis=0)
        cells[:, 0] += np.bincount(band, minlength=height)
    shares: Floats = holes / (cells * np.diff(left, append=n_cols))
    return shares
