"""Typed tables: Parquet and Arrow (Feather) files, read by pyarrow in batches."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._base.types import Floats
from a1gm._base.words import shown
from a1gm._rows.columns import Kind
from a1gm._rows.files.source import InputFile, Source, TableOptions
from a1gm.exceptions import FileFormatError

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS = 1 << 16
_BATCH_CELLS = 1 << 21
# Column chunks are read through buffers instead of whole, so that memory does not grow
# with the row groups; reading ahead (pre_buffer) would hold the file.
_BUFFER_BYTES = 1 << 18
_ALL_BUFFERS_BYTES = 1 << 25


class TypedSource(Source):
    """A Parquet file, an Arrow IPC file (Feather) or an Arrow stream.

    Page checksums of Parquet are verified where the file has them.
    """

    is_text = False

    def __init__(self, file: InputFile, options: TableOptions) -> None:
        super().__init__(file, options)
        with self._opened() as reader:
            is_parquet = file.format == "parquet"
            self.schema = reader.schema_arrow if is_parquet else reader.schema
            self.names = list(self.schema.names)
            self.check_names()
            kind_by_type = {kind: _kind_of(kind) for kind in set(self.schema.types)}
            self.kinds = {
                name: kind_by_type[kind]
                for name, kind in zip(self.names, self.schema.types, strict=True)
            }
            if is_parquet:
                self.n_rows = reader.metadata.num_rows
                # Categories of numbers are read as numbers.
                self.kinds.update(dict.fromkeys(_categories_of(reader), "text"))
        if self.n_rows == 0:
            raise self.no_rows()
        self._read_pandas()

    def batches(
        self, columns: Sequence[str] | None = None
    ) -> Generator[pa.RecordBatch]:
        """Read the file from its start; only ``columns`` unless it is None."""
        n_cols = len(self.names if columns is None else columns)
        most = min(_BATCH_ROWS, max(1024, _BATCH_CELLS // max(n_cols, 1)))
        rows = 0
        with self._opened() as reader:
            for batch in self._stored_batches(reader, columns, most):
                rows += batch.num_rows
                self.position = self.file.size * rows // (self.n_rows or rows or 1)
                yield from self.slices(batch, columns, most)
        if rows == 0:
            raise self.no_rows()

    def _stored_batches(
        self, reader: Any, columns: Sequence[str] | None, most: int
    ) -> Iterator[pa.RecordBatch]:
        if self.file.format == "parquet":
            size = self.options.batch_rows or most
            yield from reader.iter_batches(size, columns=columns and list(columns))
        elif self.file.format == "arrow stream":
            yield from reader
        else:
            for k in range(reader.num_record_batches):
                batch = reader.get_batch(k)
                batch.validate(full=True)
                yield batch

    def _read_pandas(self) -> None:
        """Read from the notes of pandas which columns are its index, and the axis."""
        about = (self.schema.metadata or {}).get(b"pandas")
        try:
            notes = json.loads(about or b"{}")
            index = notes.get("index_columns", [])
            axes = notes.get("column_indexes", [])
            self.has_axis = any(axis["name"] is not None for axis in axes)
            self.has_categories = any(
                axis["pandas_type"] == "categorical" for axis in axes
            )
        except (ValueError, AttributeError, TypeError, KeyError):  # not of pandas
            return
        self.index = tuple(name for name in self.names if name in index)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import parquet

        try:
            # Not a Python file: its reads would need the interpreter's lock.
            with pa.OSFile(str(self.file.path)) as raw:
                if self.file.format == "feather":
                    yield pa.ipc.open_file(raw)
                elif self.file.format == "arrow stream":
                    yield pa.ipc.open_stream(raw)
                else:
                    n_cols = len(getattr(self, "names", ())) or 1
                    buffer = max(1 << 14, _ALL_BUFFERS_BYTES // n_cols)
                    yield parquet.ParquetFile(
                        raw,
                        page_checksum_verification=True,
                        pre_buffer=False,
                        buffer_size=min(_BUFFER_BYTES, buffer),
                    )
        except FileFormatError:
            raise
        # pyarrow reports damage as any of these, depending on the place.
        except (pa.ArrowException, OSError, ValueError) as error:
            raise FileFormatError(
                f"{self.file.name} is damaged: it cannot be read "
                f"({shown(error).rstrip('.')}). Get the file again."
            ) from error


def _categories_of(parquet: Any) -> list[str]:
    """Return the columns of a Parquet file that were categories in Arrow."""
    import pyarrow as pa

    stored = (parquet.metadata.metadata or {}).get(b"ARROW:schema")
    if stored is None:
        return []
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored)))
    return [f.name for f in schema if pa.types.is_dictionary(f.type)]


def _kind_of(kind: pa.DataType) -> Kind:
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


def exact(column: pa.Array) -> pa.Array:
    """Return decimals as text: Arrow computes 6.60 as 660 * 0.01, which is not 6.6."""
    import pyarrow as pa

    return column.cast(pa.string()) if pa.types.is_decimal(column.type) else column


def check_digits(column: pa.Array, numbers: pa.Array) -> None:
    """Raise ArrowInvalid if decimals have lost digits when they became ``numbers``."""
    import pyarrow as pa

    if pa.types.is_decimal(column.type) and numbers.cast(column.type) != column:
        raise pa.ArrowInvalid("Decimals have more digits than float64.")


def cast_numbers(columns: Sequence[pa.Array], options: TableOptions) -> Floats:
    """Put numeric columns into one array, one after the other; null becomes NaN."""
    import pyarrow as pa

    values = np.empty((len(columns), len(columns[0])))
    for j, column in enumerate(columns):
        # Integers above 2**53 are rounded to the nearest double, as documented.
        numbers = exact(column).cast(pa.float64(), safe=False)
        values[j] = numbers.to_numpy(zero_copy_only=False)
    for number in options.missing_numbers:
        values[values == number] = np.nan
    return values.T
