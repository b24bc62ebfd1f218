"""Typed tables: Parquet and Arrow (Feather) files, read by pyarrow in batches."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from a1gm._base.words import shown
from a1gm._rows.files.csv import no_rows
from a1gm._rows.files.options import TableOptions
from a1gm._rows.files.origin import Origin
from a1gm.exceptions import FileFormatError

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS = 1 << 16
_BATCH_CELLS = 1 << 21
# Column chunks are read through buffers instead of whole, so that memory does not grow
# with the row groups; reading ahead (pre_buffer) would hold the file.
_BUFFER_BYTES = 1 << 18
_ALL_BUFFERS_BYTES = 1 << 25


def batch_rows_for(n_cols: int, options: TableOptions) -> int:
    """Rows per batch: as asked for, else so that a batch has a million cells."""
    if options.batch_rows is not None:
        return options.batch_rows
    return min(_BATCH_ROWS, max(1024, _BATCH_CELLS // max(n_cols, 1)))


class ParquetSource:
    """A Parquet file; page checksums are verified where the file has them."""

    def __init__(self, origin: Origin, options: TableOptions) -> None:
        self.origin = origin
        self.options = options
        self.position = 0
        self._metadata: Any = None
        with self._opened("the footer") as file:
            self._metadata = file.metadata
            self.schema: pa.Schema = file.schema_arrow
            self.n_rows: int | None = file.metadata.num_rows
            self._group_rows = [
                file.metadata.row_group(group).num_rows
                for group in range(file.metadata.num_row_groups)
            ]
        _check_table(origin.name, self.schema, self.n_rows)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read the file from its start, row group by row group.

        ``columns`` are the only ones read, all by default.
        """
        rows = 0
        wanted = self.schema.names if columns is None else list(columns)
        limit = batch_rows_for(len(wanted), self.options)
        for group in range(len(self._group_rows)):
            with self._opened(f"row group {group}") as file:
                for batch in file.iter_batches(
                    limit, row_groups=[group], columns=wanted
                ):
                    rows += batch.num_rows
                    self.position = self.origin.size * rows // max(self.n_rows or 1, 1)
                    yield batch

    def place_of(self, row: int) -> str:
        """Name a row (0-based) by its number and row group."""
        first = 0
        for group, length in enumerate(self._group_rows):
            if row < first + length:
                return f"{self.origin.name}, row {row} (row group {group})"
            first += length
        return f"{self.origin.name}, row {row}"

    @contextlib.contextmanager
    def _opened(self, where: str) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import parquet

        columns = 1 if self._metadata is None else self._metadata.num_columns
        buffer = min(_BUFFER_BYTES, max(1 << 14, _ALL_BUFFERS_BYTES // columns))
        try:
            # Not a Python file: its reads would need the interpreter's lock.
            with pa.OSFile(str(self.origin.path)) as raw:
                yield parquet.ParquetFile(
                    raw,
                    metadata=self._metadata,
                    page_checksum_verification=True,
                    pre_buffer=False,
                    buffer_size=buffer,
                )
        except FileFormatError:
            raise
        # pyarrow reports damage as either kind, depending on the place.
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _damaged(self.origin.name, where, error) from error


class ArrowSource:
    """An Arrow IPC file (Feather) or stream."""

    def __init__(self, origin: Origin, options: TableOptions) -> None:
        self.origin = origin
        self.options = options
        self.position = 0
        self.n_rows: int | None = None
        with self._opened() as reader:
            self.schema: pa.Schema = reader.schema
            if origin.format == "feather":
                self.n_rows = sum(
                    reader.get_batch(k).num_rows
                    for k in range(reader.num_record_batches)
                )
        _check_table(origin.name, self.schema, self.n_rows)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read the file from its start; only some columns if so asked."""
        limit = batch_rows_for(len(self.schema.names), self.options)
        rows = 0
        with self._opened() as reader:
            for batch in self._stored_batches(reader):
                for start in range(0, batch.num_rows, limit):
                    piece = batch.slice(start, limit)
                    if columns is not None:
                        piece = piece.select(list(columns))
                    rows += piece.num_rows
                    if self.n_rows:
                        self.position = self.origin.size * rows // self.n_rows
                    yield piece
        if rows == 0:
            raise no_rows(self.origin.name)

    def place_of(self, row: int) -> str:
        """Name a row (0-based)."""
        return f"{self.origin.name}, row {row}"

    def _stored_batches(self, reader: Any) -> Iterator[pa.RecordBatch]:
        if self.origin.format == "feather":
            for k in range(reader.num_record_batches):
                batch = reader.get_batch(k)
                batch.validate(full=True)
                yield batch
        else:
            yield from reader

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Any]:
        import pyarrow as pa

        try:
            with self.origin.open() as raw:
                if self.origin.format == "feather":
                    yield pa.ipc.open_file(raw)
                else:
                    yield pa.ipc.open_stream(raw)
        except FileFormatError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _damaged(self.origin.name, "its record batches", error) from error


def _damaged(name: str, where: str, error: Exception) -> FileFormatError:
    return FileFormatError(
        f"{name} is damaged: {where} cannot be read ({shown(error).rstrip('.')}). "
        "Get the file again."
    )


def _check_table(name: str, schema: pa.Schema, n_rows: int | None) -> None:
    names = schema.names
    repeated = [column for column, times in Counter(names).items() if times > 1]
    if repeated:
        raise FileFormatError(
            f"{name} has several columns called {repeated[0]!r}. Rename them: names "
            "tell the columns apart."
        )
    if not names:
        raise FileFormatError(f"{name} has no columns.")
    if n_rows == 0:
        raise no_rows(name)
