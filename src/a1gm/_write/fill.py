"""Tables to files: the holes of what was read filled, all else as it was.

`FillFiles` is the second pass over files; `open_writer` writes text, Parquet and Arrow
batch by batch.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from a1gm._base.atomic import atomic_write, is_special, output_folder
from a1gm._base.float_range import as_float32
from a1gm._base.types import AnyArray, Bools, Floats, OnUndetermined
from a1gm._base.warn import warn_user
from a1gm._base.words import listed, shown
from a1gm._fit.fill import Rounding, rounded
from a1gm._fit.fit import RankOneFit
from a1gm._fit.frames import check_new_name
from a1gm._fit.messages import text_of_left_cells
from a1gm._fit.place import Columns, Values
from a1gm._rows.files.source import (
    FORMATS,
    SPREADSHEETS,
    TAB_SUFFIXES,
    Dialect,
    Format,
    Source,
    suffix_of,
)
from a1gm._rows.files.table import Piece, Progress, TableFiles
from a1gm._rows.files.text import joined
from a1gm._rows.files.typed import check_digits, exact
from a1gm._rows.libraries import with_types
from a1gm._rows.rows import Rows
from a1gm.exceptions import (
    DataError,
    LabelError,
    Option,
    OutputError,
    ParameterError,
    See,
    Text,
    UndeterminedError,
    UndeterminedWarning,
)

if TYPE_CHECKING:
    import pyarrow as pa

MARK, BOUNDS = "_filled", ("_low", "_high")  # behind the names of columns

SIGNED_NUMBER = r"^[+-][0-9.,' ]*[0-9][0-9.,]*([eE][+-]?[0-9]+)?$"

# The offsets of pyarrow's text arrays have 32 bits; lines of a batch must fit.
_MOST_BYTES = 1 << 28


# ------------------------------------------------------------------------- filling
@dataclass
class FillFiles:
    """Writes files that were read once with their holes filled.

    Integers, decimals and float16 with missing cells become float64, which can hold any
    fill, and integers that are filled with whole numbers int64. Integers above 2**53,
    which float64 would round, keep their type, and are filled with whole numbers;
    decimals that it would round are refused. Text that goes from a text file to another
    is kept letter by letter.
    """

    files: TableFiles
    fit: RankOneFit
    on_undetermined: OnUndetermined
    progress: Progress | None
    takes_negatives: bool
    mark: bool  # add a column per column with holes: which cells were filled
    interval: float | None  # add two: the bounds of the filled cells
    round: Rounding
    overwrite: bool
    escape_formulas: bool
    n_filled: int = 0
    n_left: int = 0  # missing cells that the data do not determine
    is_filled: Bools = field(init=False)  # columns of the table with a filled cell
    columns: Columns = field(init=False)  # the fitted ones, which place a row
    bounds: Callable[..., tuple[Floats, Floats]] | None = None
    weights: Rows | None = None  # or exposures, of all cells
    values: Values | None = None  # of the missing cells, where they are known already

    def write(self, dst: str | os.PathLike[str]) -> None:
        """Write all files: one to its target, several to a folder."""
        self.is_filled = np.zeros(self.files.n_cols, bool)
        self._suffixes = [MARK] * self.mark
        self.columns = self.fit._columns
        if self.takes_negatives:
            self.columns = replace(self.columns, takes_negatives=True)
        if self.interval is not None:
            with interval_advice():
                sure = self.fit.uncertainty()
            self.bounds = partial(sure.interval, level=self.interval)
            self._suffixes += BOUNDS
        if not self.files.found.go_to_folder(dst):
            self._write_file(0, dst)
        else:
            with output_folder(dst, overwrite=self.overwrite) as place:
                for at, path in enumerate(self.files.paths):
                    self._write_file(at, place(self.files.found.names[path]))
        if self.n_left and self.on_undetermined == "warn":
            warn_user(UndeterminedWarning(self._left_over()))

    def _write_file(self, at: int, target: str | os.PathLike[str]) -> None:
        self._source = source = self.files.sources[at]
        self._rows_before = sum(other.n_rows or 0 for other in self.files.sources[:at])
        self._to_text = format_of(target, source) == "csv"
        self._set_types()
        pieces = self.files.pieces_of(at, all_columns=True, progress=self.progress)
        how: Any = {"like": source, "overwrite": self.overwrite}
        how["escape_formulas"] = self.escape_formulas
        with (
            contextlib.closing(pieces),
            open_writer(target, self._schema, **how) as writer,
        ):
            for piece in pieces:
                writer.write(self._fill(piece))
            if self.n_left and self.on_undetermined == "raise":
                raise UndeterminedError(self._left_over())

    def _left_over(self) -> Text:
        text = text_of_left_cells(self.n_left)
        if self.files is not self.fit._table.source:
            return text
        return text[:-1], See("fit.undetermined"), "."

    def _set_types(self) -> None:
        """Choose the types of the columns of a filled file."""
        import pyarrow as pa

        before, names, counts = self._source.schema, self.files.names, self.files.counts
        assert counts is not None
        self._has_holes, self._is_whole = counts.missing > 0, counts.is_whole
        self._is_large = np.zeros(len(names), bool)
        if not self._source.is_text:
            kinds = [before.field(name).type for name in names]
            self._is_whole = np.array([pa.types.is_integer(kind) for kind in kinds])
            self._is_large = self._is_whole & ~counts.is_whole
        # Columns with the same types before and after are filled at once: for each,
        # its place in the file and in the table.
        self._alike: dict[tuple[Any, Any], list[tuple[int, int]]] = defaultdict(list)
        fields, changed = list(before), {}
        for j, name in enumerate(names):
            place = before.get_field_index(name)
            old = before.field(place)
            new = self._type(old.type, j)
            self._alike[old.type, new].append((place, j))
            if new != old.type:
                fields[place] = old.with_type(new)
                changed[name] = new.to_pandas_dtype().__name__
        metadata = before.metadata and with_types(before.metadata, changed)
        if self._suffixes:
            fields += self._more_fields()
        self._schema = pa.schema(fields, metadata=metadata)

    def _type(self, own: pa.DataType, j: int) -> pa.DataType:
        """Return the type of a filled column: unchanged, or one that holds any fill."""
        import pyarrow as pa

        has_holes, is_text = self._has_holes[j], self._source.is_text
        if is_text and self._to_text:
            return own
        if not is_text and (not has_holes or own in (pa.float32(), pa.float64())):
            return own
        if self._is_large[j]:
            return own
        is_integer = self._is_whole[j] and (not has_holes or self.round == "auto")
        return pa.int64() if is_integer else pa.float64()

    def _more_fields(self) -> Iterator[pa.Field]:
        """Yield the columns that are added: for each with holes, one per suffix."""
        import pyarrow as pa

        known = set(self._source.names)
        for j in np.flatnonzero(self._has_holes):
            for suffix in self._suffixes:
                name = self.files.names[j] + suffix
                check_new_column(self._source.file.name, name, known)
                kind = pa.bool_() if suffix == MARK else pa.float64()
                yield pa.field(name, pa.string() if self._to_text else kind)

    def _fill(self, piece: Piece) -> pa.RecordBatch:
        """Fill the holes of a piece, which has all columns of the file."""
        import pyarrow as pa

        values, holes = piece.values, np.isnan(piece.values)
        weights, first = None, self._rows_before + piece.first_row
        if self.weights is not None:
            weights = self.weights.rows(slice(first, first + len(values)))
        if holes.any() and self.values is not None:
            i, j = np.nonzero(holes)
            values = values.copy()
            values[i, j] = self.values(i + first, j)
        elif holes.any():
            values = self.columns.fill(values, weights)
        if holes.any():
            if self.round is not None:
                whole = rounded(values, self._is_whole, self.round)
                values = np.where(holes, whole, values)
            values = np.where(holes & self._is_large, np.rint(values), values)
        filled = holes & ~np.isnan(values)
        is_filled = np.asarray(filled.any(axis=0))
        self.n_filled += int(filled.sum())
        self.n_left += int(holes.sum()) - int(filled.sum())
        self.is_filled |= is_filled
        columns = piece.batch.columns
        for (old, new), places in self._alike.items():
            chosen = [at for at in places if old != new or is_filled[at[1]]]
            if chosen:
                self._fill_columns(columns, chosen, new, values, filled)
        if self._suffixes:
            columns += self._more_columns(piece.values, filled, weights)
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _fill_columns(
        self,
        columns: list[pa.Array],
        chosen: list[tuple[int, int]],
        target: pa.DataType,
        values: Floats,
        filled: Bools,
    ) -> None:
        """Put filled columns of one type in place of those that were read."""
        import pyarrow as pa
        import pyarrow.compute as pc

        places, positions = map(list, zip(*chosen, strict=True))
        numbers, where = values.T[positions].ravel(), filled.T[positions].ravel()

        def place_of(k: int) -> str:
            name = self._source.names[places[k // len(values)]]
            return f"a missing cell of {name!r}"

        try:
            if self._source.is_text and not self._to_text:
                cells = pa.array(numbers, target, from_pandas=True)
            else:
                if target == pa.float32():
                    numbers = as_float32(numbers, place_of)
                fills = pa.array(numbers[where])
                if pa.types.is_string(target):
                    fills = as_text(fills, self._source.options.point)
                else:
                    fills = fills.cast(target, safe=pa.types.is_integer(target))
                own = joined([columns[place] for place in places])
                same = exact(own).cast(target)
                check_digits(own, same)
                cells = pc.replace_with_mask(same, pa.array(where), fills)
        except pa.ArrowInvalid as error:
            some = [self._source.names[place] for place in places]
            raise DataError(
                f"{listed(list(map(repr, some)), 3)}: the cells and the fills do not "
                f"fit in {target} without being rounded. Leave columns out with ",
                Option("exclude", some[:1]),
                ", or store them as float64.",
                where=self._source.file.name,
            ) from error
        for k, place in enumerate(places):
            columns[place] = cells.slice(k * len(values), len(values))

    def _more_columns(
        self, values: Floats, filled: Bools, weights: Floats | None
    ) -> Iterator[pa.Array]:
        import pyarrow as pa

        tables: list[AnyArray] = [filled] * self.mark
        if self.bounds is not None:
            name = "exposure" if self.columns.exposed else "weights"
            for bound in self.bounds(values, **{name: weights}):
                whole = rounded(bound, self._is_whole, self.round)
                tables.append(np.where(filled, whole, np.nan))
        for j in np.flatnonzero(self._has_holes):
            for table in tables:
                cells = pa.array(table[:, j], from_pandas=True)
                point = self._source.options.point
                yield as_text(cells, point) if self._to_text else cells


@contextlib.contextmanager
def interval_advice() -> Iterator[None]:
    """Add to the error of a fit without intervals that they may be left out."""
    try:
        yield
    except (DataError, ParameterError) as error:
        raise error.advised("Leave out ", Option("interval"), ".") from error


def check_new_column(file: str, name: str, known: Collection[str]) -> None:
    """Raise if a file already has a column that is to be added to it."""
    if name in known:
        by = Option("mark", True) if name.endswith(MARK) else Option("interval")
        raise LabelError(
            f"{file} already has a column {name!r}, which ",
            by,
            " would add. Rename it.",
        )


# ------------------------------------------------------------------------- writing
def format_of(path: str | os.PathLike[str], like: Source | None = None) -> Format:
    """Return the format that a file name asks for; raise for an unknown extension.

    A stream or a device gets the format of ``like``.
    """
    if like is not None and is_stream(path):
        return "csv" if like.is_text else like.file.format
    kind = FORMATS.get(suffix_of(path))
    if kind is None or (kind != "csv" and Path(path).suffix.lower() == ".gz"):
        why = "no table format goes by this extension"
        if suffix_of(path) in SPREADSHEETS:
            why = "spreadsheets are read, not written"
        raise ParameterError(
            f"{shown(path)}: {why}. Use .csv, .tsv, .csv.gz, .parquet or .feather."
        )
    return kind


def is_stream(target: str | os.PathLike[str]) -> bool:
    """Whether a target is standard output, a pipe or a device."""
    return os.fspath(target) == "-" or is_special(Path(target))


def dialect_for(path: str | os.PathLike[str], dialect: Dialect | None) -> Dialect:
    """Return how to write a text table: by its extension, or as it was read."""
    dialect, suffix = dialect or Dialect(), suffix_of(path)
    if suffix in TAB_SUFFIXES:
        return replace(dialect, delimiter="\t")
    if suffix == ".csv" and dialect.by_name:
        return replace(dialect, delimiter=",")
    return dialect


@contextlib.contextmanager
def open_writer(
    path: str | os.PathLike[str],
    schema: pa.Schema,
    *,
    like: Source | None = None,
    overwrite: bool = False,
    escape_formulas: bool = False,
) -> Iterator[Any]:
    """Open a writer of record batches, to a file that appears whole or not at all.

    The extension of the path decides the format; ``"-"`` is standard output. A stream
    is written in the format of ``like``, and text in its dialect; ``escape_formulas``
    puts ``'`` before text cells that a spreadsheet would take for formulas.
    """
    import pyarrow as pa
    from pyarrow import parquet

    kind, known = format_of(path, like), set[str]()
    for name in schema.names:
        check_new_name(name, known)
        known.add(name)
    with contextlib.ExitStack() as stack:
        file: Any
        if os.fspath(path) == "-":
            file = sys.stdout.buffer  # not there in notebooks
        else:
            file = stack.enter_context(atomic_write(path, overwrite=overwrite))
        if Path(path).suffix.lower() == ".gz":
            # Without a time stamp: the same table gives the same bytes.
            zipped = gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, mtime=0)
            file = stack.enter_context(zipped)
        try:
            if kind == "csv":
                dialect = None if like is None else like.dialect
                how = dialect_for(path, dialect)
                yield CsvWriter(file, schema, how, escape_formulas=escape_formulas)
                return
            if kind == "parquet":
                # Measured numbers hardly repeat: a dictionary of them doubles the time.
                repeating = [c.name for c in schema if not pa.types.is_floating(c.type)]
                new: Any = parquet.ParquetWriter(
                    file, schema, write_page_checksum=True, use_dictionary=repeating
                )
            elif kind == "arrow stream":
                new = pa.ipc.new_stream(file, schema)
            else:
                new = pa.ipc.new_file(file, schema)
            with new as writer:
                yield writer
        except pa.ArrowInvalid as error:
            raise OutputError(
                f"The table cannot be written as {kind}: {error}"
            ) from error


def write_table(path: str | os.PathLike[str], table: pa.Table, **how: Any) -> None:
    """Write a table to a file; ``how`` as in `open_writer`."""
    with open_writer(path, table.schema, **how) as writer:
        for batch in table.to_batches():
            writer.write(batch)


def write_factor(
    path: str | os.PathLike[str],
    names: Iterable[pa.RecordBatch],
    columns: dict[str, Any],
    block: Any,
    progress: Progress | None = None,
    **how: Any,
) -> None:
    """Write a factor and the blocks of its rows or columns, beside their ``names``.

    ``columns`` are the factor and its errors; None is a column of nulls. Slices are
    taken of them, and of ``block``: they may be computed where they are looked at.
    ``how`` as in `open_writer`.
    """
    import pyarrow as pa

    batches, start = iter(names), 0
    first = next(batches)
    added = [pa.field(name, pa.float64()) for name in columns]
    added.append(pa.field("block", pa.int64()))
    schema = pa.schema([*first.schema, *added])
    with open_writer(path, schema, **how) as writer:
        for batch in chain([first], batches):
            stop, cells = start + batch.num_rows, batch.columns
            for field, values in zip(added, (*columns.values(), block), strict=True):
                some = [None] * batch.num_rows if values is None else values[start:stop]
                cells.append(pa.array(some, field.type, from_pandas=True))
            writer.write(pa.RecordBatch.from_arrays(cells, schema=schema))
            start = stop
            if progress is not None:
                progress(start, start / len(block))


class CsvWriter:
    """Text, with quotes only where a cell needs them.

    pyarrow's own writer quotes every text cell, which would put quotes around numbers
    that are kept as the text they were read as. Joining columns with its kernels gives
    the bytes of a whole batch in one go, three times as fast as formatting numbers.
    """

    def __init__(
        self,
        sink: IO[bytes],
        schema: pa.Schema,
        dialect: Dialect,
        *,
        escape_formulas: bool = False,
    ) -> None:
        import pyarrow as pa

        self._sink, self._dialect = sink, dialect
        self._escapes = escape_formulas
        self._marks = dialect.delimiter.encode(), b'"', b"\n", b"\r"
        self._special = f'[{re.escape(dialect.delimiter)}"\r\n]'
        codec = codecs.lookup(dialect.encoding).name
        # An encoder with a byte order mark writes it once, before the header.
        is_utf8 = codec == "utf-8"
        self._encoder = None if is_utf8 else codecs.getincrementalencoder(codec)()
        if dialect.bom and is_utf8:
            sink.write(codecs.BOM_UTF8)
        if dialect.has_header:
            header = [pa.array([name]) for name in schema.names]
            self.write(pa.RecordBatch.from_arrays(header, names=schema.names))

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows of a batch."""
        import pyarrow.compute as pc

        if batch.num_rows == 0:
            return
        if batch.nbytes > _MOST_BYTES and batch.num_rows > 1:
            half = batch.num_rows // 2
            self.write(batch.slice(0, half))
            self.write(batch.slice(half))
            return
        cells = list(map(self._as_text, batch.columns, batch.schema.names))
        if self._escapes:
            cells = list(map(_without_formulas, cells))
        # One look at the bytes of all columns: a call per column takes longer.
        if self._is_special(joined(cells)):
            cells = [self._quoted(c) if self._is_special(c) else c for c in cells]
        if len(cells) == 1:  # readers skip a blank line
            is_empty = pc.equal(pc.fill_null(cells[0], ""), "")
            cells = [pc.if_else(is_empty, '""', cells[0])]
        how = {"null_handling": "replace"}
        newline, delimiter = self._dialect.newline, self._dialect.delimiter
        cells[-1] = pc.binary_join_element_wise(cells[-1], "", newline, **how)
        lines = _bytes_of(pc.binary_join_element_wise(*cells, delimiter, **how))
        self._sink.write(lines if self._encoder is None else self._encoded(lines))

    def _is_special(self, text: pa.Array) -> bool:
        data = _bytes_of(text)  # a search for each mark is faster than a pattern
        return any(mark in data for mark in self._marks)

    def _quoted(self, column: pa.Array) -> pa.Array:
        import pyarrow.compute as pc

        needs_quotes = pc.match_substring_regex(column, self._special)
        doubled = pc.replace_substring(column, '"', '""')
        quoted = pc.binary_join_element_wise('"', doubled, '"', "")
        return pc.if_else(needs_quotes, quoted, column)

    def _as_text(self, column: pa.Array, name: str) -> pa.Array:
        import pyarrow as pa

        kind = column.type
        if pa.types.is_string(kind):
            return column
        try:
            text = as_text(column, self._dialect.decimal)
        except pa.ArrowException as error:
            raise OutputError(
                f"Column {name!r} holds {kind}, which cannot be written as text "
                f"({error}). Write to .parquet, or leave the column out."
            ) from error
        return _without_zeros(text) if pa.types.is_timestamp(kind) else text

    def _encoded(self, lines: bytes) -> bytes:
        assert self._encoder is not None
        try:
            return self._encoder.encode(lines.decode("utf-8"))
        except UnicodeEncodeError as error:
            raise DataError(
                f"{error.object[error.start]!r} cannot be written in "
                f"{self._dialect.encoding}. Pass ",
                Option("encoding", "utf-8"),
                ".",
            ) from error


def _without_formulas(text: pa.Array) -> pa.Array:
    """Put ' before cells that a spreadsheet would take for formulas, not numbers."""
    import pyarrow.compute as pc

    is_formula = pc.match_substring_regex(text, r"^[=+\-@\t\r]")
    is_number = pc.match_substring_regex(text, SIGNED_NUMBER)
    escaped = pc.binary_join_element_wise("'", text, "")
    return pc.if_else(pc.and_not(is_formula, is_number), escaped, text)


def as_text(cells: pa.Array, point: str) -> pa.Array:
    """Return cells as text, numbers with this decimal mark."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = cells.cast(pa.string())
    is_number = pa.types.is_floating(cells.type) or pa.types.is_decimal(cells.type)
    if is_number and point != ".":
        return pc.replace_substring(text, ".", point)
    return text


def _without_zeros(times: pa.Array) -> pa.Array:
    """Shorten times: dates if all are midnight, no fractions if all seconds are whole.

    Times with a zone stay as they are.
    """
    import pyarrow.compute as pc

    for zeros in (r" 00:00:00(\.0+)?$", r"\.0+$"):
        if pc.all(pc.match_substring_regex(times, zeros)).as_py():
            return pc.replace_substring_regex(times, zeros, "")
    return times


def _bytes_of(text: pa.Array) -> bytes:
    """Return all cells of a text column, one after the other."""
    offsets = np.frombuffer(text.buffers()[1], np.int32)
    start, stop = offsets[text.offset], offsets[text.offset + len(text)]
    data: bytes = text.buffers()[2].slice(int(start), int(stop - start)).to_pybytes()
    return data
