"""Typed tables: Parquet and Arrow (Feather) files, read by pyarrow in batches."""

from __future__ import annotations

import base64
import contextlib
import json
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._base.types import Floats
from a1gm._base.words import shown
from a1gm._rows.columns import Kind
from a1gm._rows.files import faults
from a1gm._rows.files.options import TableOptions
from a1gm._rows.files.paths import InputFile
from a1gm._rows.rows import Part
from a1gm.exceptions import FileFormatError

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS = 1 << 16
_BATCH_CELLS = 1 << 21
# Column chunks are read through buffers instead of whole, so that memory does not grow
# with the row groups; reading ahead (pre_buffer) would hold the file.
_BUFFER_BYTES = 1 << 18
_ALL_BUFFERS_BYTES = 1 << 25


class _TypedSource:
    """What typed files share: a schema, and batches of some columns."""

    is_text, row_noun = False, "row"
    schema: pa.Schema
    n_rows: int | None
    categories: tuple[str, ...] = ()  # that the reader does not restore

    def __init__(self, file: InputFile, options: TableOptions) -> None:
        self.file, self.options = file, options
        self.position = 0

    @property
    def names(self) -> list[str]:
        """The columns of the file."""
        return list(self.schema.names)

    @cached_property
    def index(self) -> tuple[str, ...]:
        """The index of a pandas frame, which typed files keep among the columns."""
        about = (self.schema.metadata or {}).get(b"pandas")
        try:
            index = json.loads(about or b"{}").get("index_columns", [])
        except (ValueError, AttributeError):  # not as pandas writes it
            return ()
        return tuple(name for name in self.names if name in index)

    def place_of(self, row: int) -> str:
        """Name a row (0-based)."""
        return f"{self.file.name}, row {row}"

    def lines_of(self, rows: Sequence[int]) -> list[int]:
        """Return what rows (0-based) are called."""
        return list(rows)

    def _check(self) -> None:
        """Raise for a file that is not a table."""
        times = Counter(self.names)
        repeated = next((column for column, n in times.items() if n > 1), None)
        if repeated is not None:
            raise FileFormatError(
                f"{self.file.name} has several columns called {repeated!r}. Rename "
                "them: names tell the columns apart."
            )
        if not times:
            raise FileFormatError(f"{self.file.name} has no columns.")
        if self.n_rows == 0:
            raise faults.no_rows(self.file.name)

    def _batch_rows(self, n_cols: int) -> int:
        """Return the rows per batch: as asked for, else for a million cells or two."""
        most = min(_BATCH_ROWS, max(1024, _BATCH_CELLS // max(n_cols, 1)))
        return self.options.batch_rows or most

    @contextlib.contextmanager
    def _damage_named(self, where: list[str]) -> Iterator[None]:
        import pyarrow as pa

        try:
            yield
        except FileFormatError:
            raise
        # pyarrow reports damage as either kind, depending on the place.
        except (pa.ArrowException, OSError, ValueError) as error:
            raise FileFormatError(
                f"{self.file.name} is damaged: {where[0]} cannot be read "
                f"({shown(error).rstrip('.')}). Get the file again."
            ) from error


class ParquetSource(_TypedSource):
    """A Parquet file; page checksums are verified where the file has them."""

    def __init__(self, file: InputFile, options: TableOptions) -> None:
        super().__init__(file, options)
        with self._damage_named(["the footer"]), self._opened(None) as parquet:
            self._metadata = parquet.metadata
            self.schema = parquet.schema_arrow
            self.n_rows = self._metadata.num_rows
            groups = range(self._metadata.num_row_groups)
            lengths = [self._metadata.row_group(group).num_rows for group in groups]
            self._ends = list(accumulate(lengths))  # of the row groups
            self.categories = self._stored_categories()
        self._check()

    def batches(
        self, columns: Sequence[str] | None = None
    ) -> Generator[pa.RecordBatch]:
        """Read the file from its start; only some columns if so asked."""
        wanted = self.names if columns is None else list(columns)
        rows, where = 0, [""]
        with self._damage_named(where), self._opened(self._metadata) as parquet:
            for group in range(len(self._ends)):
                where[0] = f"row group {group}"
                for batch in parquet.iter_batches(
                    self._batch_rows(len(wanted)), row_groups=[group], columns=wanted
                ):
                    rows += batch.num_rows
                    self.position = self.file.size * rows // max(self.n_rows or 1, 1)
                    yield batch

    def _stored_categories(self) -> tuple[str, ...]:
        """Return the columns that were categories in Arrow; numbers come back plain."""
        import pyarrow as pa

        stored = (self._metadata.metadata or {}).get(b"ARROW:schema")
        if stored is None:
            return ()
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored)))
        return tuple(f.name for f in schema if pa.types.is_dictionary(f.type))

    def place_of(self, row: int) -> str:
        """Name a row (0-based) by its number and row group."""
        group = int(np.searchsorted(self._ends, row, side="right"))
        return f"{super().place_of(row)} (row group {group})"

    @contextlib.contextmanager
    def _opened(self, metadata: Any) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import parquet

        columns = 1 if metadata is None else metadata.num_columns
        buffer = min(_BUFFER_BYTES, max(1 << 14, _ALL_BUFFERS_BYTES // max(columns, 1)))
        # Not a Python file: its reads would need the interpreter's lock.
        with pa.OSFile(str(self.file.path)) as raw:
            yield parquet.ParquetFile(
                raw,
                metadata=metadata,
                page_checksum_verification=True,
                pre_buffer=False,
                buffer_size=buffer,
            )


class ArrowSource(_TypedSource):
    """An Arrow IPC file (Feather) or stream."""

    def __init__(self, file: InputFile, options: TableOptions) -> None:
        super().__init__(file, options)
        self.n_rows = None
        with self._opened() as reader:
            self.schema = reader.schema
            if file.format == "feather":
                counts = range(reader.num_record_batches)
                self.n_rows = sum(reader.get_batch(k).num_rows for k in counts)
        self._check()

    def batches(
        self, columns: Sequence[str] | None = None
    ) -> Generator[pa.RecordBatch]:
        """Read the file from its start; only some columns if so asked."""
        limit, rows = self._batch_rows(len(self.names)), 0
        with self._opened() as reader:
            for batch in self._stored_batches(reader):
                for start in range(0, batch.num_rows, limit):
                    piece = batch.slice(start, limit)
                    rows += piece.num_rows
                    self.position = self.file.size * rows // max(self.n_rows or rows, 1)
                    yield piece if columns is None else piece.select(list(columns))
        if rows == 0:
            raise faults.no_rows(self.file.name)

    def _stored_batches(self, reader: Any) -> Iterator[pa.RecordBatch]:
        if self.file.format != "feather":
            yield from reader
            return
        for k in range(reader.num_record_batches):
            batch = reader.get_batch(k)
            batch.validate(full=True)
            yield batch

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Any]:
        import pyarrow as pa

        is_file = self.file.format == "feather"
        with self._damage_named(["its record batches"]), self.file.open() as raw:
            yield pa.ipc.open_file(raw) if is_file else pa.ipc.open_stream(raw)


def kind_of(kind: pa.DataType) -> Kind:
    """Return the kind of a column by its type; categories are text."""
    import pyarrow as pa

    types = pa.types
    numbers = types.is_integer, types.is_floating, types.is_decimal, types.is_null
    if any(is_kind(kind) for is_kind in numbers):
        return "number"
    if types.is_boolean(kind):
        return "bool"
    if types.is_temporal(kind):
        return "date"
    texts = types.is_string, types.is_large_string, types.is_string_view
    is_text = any(is_kind(kind) for is_kind in (*texts, types.is_dictionary))
    return "text" if is_text else "other"


def cast_numbers(column: pa.Array, options: TableOptions) -> Floats:
    """Read a column that is numeric by type; nulls become NaN."""
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if column.type != pa.float64():
        # Integers above 2**53 are rounded to the nearest double, as documented.
        column = column.cast(pa.float64(), safe=False)
    values: Floats = column.to_numpy(zero_copy_only=False)
    if options.missing_numbers:
        values = values.copy()
        for number in options.missing_numbers:
            values[values == number] = np.nan
    return values


def part_of_column(column: pa.Array, options: TableOptions) -> Part:
    """Wrap the buffers of a numeric column, or a float64 copy if they do not serve."""
    import pyarrow as pa

    kind = column.type
    plain = pa.types.is_integer(kind) or kind in (pa.float64(), pa.float32())
    if options.missing_numbers or not plain:
        return cast_numbers(column, options)[:, None], None, None, 0
    validity, data = column.buffers()
    dtype = np.dtype(kind.to_pandas_dtype())
    start = column.offset * dtype.itemsize
    values = np.frombuffer(data, dtype, len(column), start)[:, None]
    if validity is None or column.null_count == 0:
        return values, None, None, 0
    return values, None, np.frombuffer(validity, np.uint8), column.offset
