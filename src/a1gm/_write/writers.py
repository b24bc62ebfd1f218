"""Tables and factors to files: text, Parquet and Arrow, batch by batch."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from a1gm._base.atomic import atomic_write, is_special
from a1gm._base.words import shown
from a1gm._rows.files.paths import (
    FORMATS,
    SPREADSHEETS,
    TAB_SUFFIXES,
    Format,
    suffix_of,
)
from a1gm._rows.files.source import Dialect, Source
from a1gm._rows.files.table import TableFiles
from a1gm._rows.files.text import joined
from a1gm.exceptions import DataError, Option, OutputError, ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

# The offsets of pyarrow's text arrays have 32 bits; lines of a batch must fit.
_MOST_BYTES = 1 << 28
_ROWS_AT_ONCE = 1 << 16


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
) -> Iterator[Any]:
    """Open a writer of record batches, to a file that appears whole or not at all.

    The extension of the path decides the format; ``"-"`` is standard output. A stream
    is written in the format of ``like``, and text in its dialect.
    """
    import pyarrow as pa
    from pyarrow import parquet

    kind = format_of(path, like)
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
                yield CsvWriter(file, schema, dialect_for(path, dialect))
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


def write_factor(
    path: str | os.PathLike[str],
    names: Iterable[pa.RecordBatch],
    columns: dict[str, Any],
    block: Any,
    *,
    overwrite: bool = False,
) -> None:
    """Write a factor and the blocks of its rows or columns, beside their ``names``.

    ``columns`` are the factor and its errors; None is a column of nulls. Slices are
    taken of them, and of ``block``: they may be computed where they are looked at.
    """
    import pyarrow as pa

    batches, start = iter(names), 0
    first = next(batches)
    added = [pa.field(name, pa.float64()) for name in columns]
    added.append(pa.field("block", pa.int64()))
    schema = pa.schema([*first.schema, *added])
    with open_writer(path, schema, overwrite=overwrite) as writer:
        for batch in chain([first], batches):
            stop, cells = start + batch.num_rows, batch.columns
            for field, values in zip(added, (*columns.values(), block), strict=True):
                some = [None] * batch.num_rows if values is None else values[start:stop]
                cells.append(pa.array(some, field.type, from_pandas=True))
            writer.write(pa.RecordBatch.from_arrays(cells, schema=schema))
            start = stop


def names_of_rows(files: TableFiles) -> Iterator[pa.RecordBatch]:
    """Read the columns that name the rows of files, or number the rows from 0."""
    if files.id:
        yield from files.id_batches()
        return
    n_rows = files.n_rows or 0
    for start in range(0, n_rows, _ROWS_AT_ONCE):
        yield one_batch("row", range(start, min(start + _ROWS_AT_ONCE, n_rows)))


def one_batch(title: str, names: Sequence[object]) -> pa.RecordBatch:
    """Put names that are in memory into one column."""
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.array(names)], names=[title])


class CsvWriter:
    """Text, with quotes only where a cell needs them.

    pyarrow's own writer quotes every text cell, which would put quotes around numbers
    that are kept as the text they were read as. Joining columns with its kernels gives
    the bytes of a whole batch in one go, three times as fast as formatting numbers.
    """

    def __init__(self, sink: IO[bytes], schema: pa.Schema, dialect: Dialect) -> None:
        import pyarrow as pa

        self._sink, self._dialect = sink, dialect
        self._special = re.compile(f'[{re.escape(dialect.delimiter)}"\r\n]'.encode())
        codec = codecs.lookup(dialect.encoding).name
        # An encoder with a mark of its own writes it once, in front of the header.
        is_utf8 = codec == "utf-8"
        self._encoder = None if is_utf8 else codecs.getincrementalencoder(codec)()
        if dialect.bom and is_utf8:
            sink.write(codecs.BOM_UTF8)
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
        return self._special.search(_bytes_of(text)) is not None

    def _quoted(self, column: pa.Array) -> pa.Array:
        import pyarrow.compute as pc

        needs_quotes = pc.match_substring_regex(column, self._special.pattern)
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
