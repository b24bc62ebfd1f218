"""Frames of any library, through narwhals, as a `Rows`.

Columns are read where they lie: NumPy-backed ones as views, the others through their
Arrow buffers. Columns in several chunks are read in pieces of rows, so that no dense
copy of the table is made.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np

from a1gm._rows.arrays import (
    as_kernel_array,
    check_shape,
    objects_to_floats,
    read_array,
)
from a1gm._rows.arrow import arrow_part, join_neighbours, piece_steps
from a1gm._rows.labels import NamedLabels
from a1gm._rows.long_hint import check_no_long_series, hint_if_long
from a1gm._rows.rows import Part, Rows
from a1gm._rows.whole_frames import read_whole
from a1gm.exceptions import LabelError, NotNumericError

PIECE_ROWS = 1 << 17
STORED_INDEX = "__index_level_0__"  # as pandas names it in an Arrow table


def read_frame(X: Any, name: str) -> Rows:
    """Read a frame, or what its library holds instead of one."""
    labels = None if type(X).__name__ == "LazyFrame" else _checked_names(X, name)
    if labels is not None:
        whole = read_whole(X, labels)
        if whole is not None:
            return whole
    frame = open_frame(X, name)
    if frame is None:
        check_no_long_series(X, name)
        return read_array(X, name)
    check_shape(np.broadcast_to(0, frame.shape), name)
    check_columns(frame, name)
    backend = str(frame.implementation.value)
    labels = labels or tuple(frame.columns)
    index = getattr(frame.to_native(), "index", None)
    return _source_of(frame, name, index, labels, backend)


def open_frame(X: Any, name: str) -> Any:
    """Open a frame with narwhals; None when X is a column of its library."""
    import narwhals as nw

    if type(X).__name__ == "RecordBatch":
        X = _table_of_batch(X)
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError:
        check_names(names_of(X), name)
        raise
    if isinstance(frame, nw.LazyFrame):
        raise NotNumericError(
            f"{name} is a lazy frame ({type(X).__module__}.{type(X).__name__}), which "
            f"is not loaded into memory silently. Pass {name}.collect(), or fit the "
            "file behind it with a1gm.fit_file, or a Dask frame with a1gm.distributed."
        )
    if not isinstance(frame, nw.DataFrame):
        return None
    check_names(names_of(X), name)
    return frame


class _LastIndex:
    """The names in the pandas Index that was read last: nobody can change an Index.

    A frame is read by its fit and again to be filled, and listing 4,000 names takes as
    long as half of the fit.
    """

    def __init__(self) -> None:
        self._found: tuple[Any, tuple[Any, ...]] = (lambda: None, ())

    def names(self, index: Any) -> tuple[Any, ...] | None:
        known, names = self._found
        return names if index is not None and known() is index else None

    def remember(self, index: Any, names: tuple[Any, ...]) -> None:
        self._found = (ref(index), names)


_last_index = _LastIndex()


def _checked_names(X: Any, name: str) -> tuple[Any, ...] | None:
    """Column names of a frame that are fit to be names; None if it has none."""
    columns = getattr(X, "columns", None) if hasattr(X, "_mgr") else None
    labels = _last_index.names(columns)
    if labels is not None:
        return labels
    names = names_of(X)
    if names is None:
        return None
    check_names(names, name)
    if STORED_INDEX in names:
        raise LabelError(
            f"{name} has the index of a pandas frame as its column {STORED_INDEX!r}. "
            f"a1gm.fit(X, id=[{STORED_INDEX!r}]) takes it for the names of the rows; "
            "else drop the column, or give it a name of its own."
        )
    labels = tuple(names)
    if columns is not None:
        if any(part is not None for part in columns.names):
            labels = NamedLabels(names)
            labels.names = tuple(columns.names)
        _last_index.remember(columns, labels)
    return labels


def names_of(X: Any) -> list[Any] | None:
    """Column names of a frame; None if it has none."""
    columns = getattr(X, "column_names", None)  # pyarrow
    if columns is None:
        columns = getattr(X, "columns", None)
    if columns is None or callable(columns):
        return None
    return columns.tolist() if hasattr(columns, "tolist") else list(columns)


def check_names(names: list[Any] | None, name: str) -> None:
    """Raise for repeated column names, and for text mixed with other types."""
    if not names:
        return
    if len(set(names)) < len(names):
        seen: set[Any] = set()
        repeated = [n for n in names if n in seen or seen.add(n)]  # type: ignore[func-returns-value]
        shown = ", ".join(repr(n) for n in dict.fromkeys(repeated))
        raise LabelError(
            f"{name} has repeated column names: {shown}. Give every column its own."
        )
    types = set(map(type, names))
    kinds = sorted({kind.__qualname__ for kind in types})
    if len(kinds) > 1 and "str" in kinds:
        odd = [n for n in names if not isinstance(n, str)]
        raise LabelError(
            f"{name} has column names of mixed types {kinds}; not text: {odd[:10]}. "
            "Feature names are only supported if all input features have string names: "
            "convert them all, for example with X.columns = X.columns.astype(str)."
        )


def check_columns(frame: Any, name: str) -> None:
    """Raise for columns that do not hold numbers, and name them."""
    odd = _no_numbers(frame)
    bad = [f"{column!r} ({_word_of_type(frame, column)})" for column in odd]
    if bad:
        more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
        raise NotNumericError(
            f"{name} has columns that do not hold numbers: {', '.join(bad[:5])}{more}. "
            "Convert or drop them; categories are not numbers, even when they look so.",
            hint_if_long(frame, odd),
            columns=tuple(odd),
        )


def _no_numbers(frame: Any) -> list[Any]:
    import narwhals as nw

    # Object columns are read cell by cell, and bad cells raise then.
    odd = [
        name
        for name, dtype in frame.schema.items()
        if not (dtype.is_numeric() or dtype in (nw.Boolean, nw.Object))
    ]
    return [name for name in odd if not _is_number(frame.get_column(name))]


def _is_number(series: Any) -> bool:
    """Whether a column of a type that narwhals does not know holds numbers."""
    kind = _type_of(series)
    if str(kind).lower().startswith(("object", "null")):  # no type: the fit warns of it
        return bool(series.null_count() == len(series))
    return _is_plain(kind) or str(kind).startswith("decimal")


def _word_of_type(frame: Any, column: Any) -> str:
    """The word of narwhals for a type, or that of its library where it has none."""
    word = str(frame.schema[column])
    return str(_type_of(frame.get_column(column))) if word == "Unknown" else word


def _type_of(series: Any) -> Any:
    """Type of a column in its own library."""
    native = series.to_native()
    kind = getattr(native, "dtype", None) or getattr(native, "type", None)
    return series.dtype if kind is None else kind


def _is_plain(dtype: Any) -> bool:
    """Whether a column of this type is an array of numbers, sparse or not."""
    if type(dtype).__name__ == "SparseDtype":
        dtype = dtype.subtype
    return isinstance(dtype, np.dtype) and dtype.kind in "fiub"


# ------------------------------------------------------------------ the columns
def _source_of(frame: Any, name: str, index: Any, labels: Any, backend: str) -> Rows:
    columns = [_Column(frame, j, name) for j in range(len(labels))]
    n_rows = len(frame)
    common = {"row_labels": index, "col_labels": labels, "backend": backend}

    def cut(start: int, stop: int) -> list[Part]:
        return join_neighbours([column.part(start, stop) for column in columns])

    steps = piece_steps([column.ends for column in columns], n_rows, PIECE_ROWS)
    if len(steps) == 2:
        return Rows(cut(0, n_rows), n_rows, len(labels), **common)
    return Rows([], n_rows, len(labels), cut=cut, steps=steps, **common)


class _Column:
    """One column, and the rows where its chunks end."""

    def __init__(self, frame: Any, j: int, name: str) -> None:
        self.series = frame[:, j]
        self.native = self.series.to_native()
        self.name = name
        self.is_object = str(_type_of(self.series)).lower() == "object"
        self.view = _numpy_view(self.native, name)
        self.chunks = None if self.view is not None else _arrow_chunks(self)
        self.ends: list[int] | None = None
        if self.chunks is not None:
            self.ends = np.cumsum([len(c) for c in self.chunks.chunks]).tolist()
        elif self.view is None:  # neither: read through narwhals, in pieces
            self.ends = list(range(PIECE_ROWS, len(self.series), PIECE_ROWS))

    def part(self, start: int, stop: int) -> Part:
        """Rows of this column as the kernel reads them."""
        if self.view is not None:
            return (self.view[start:stop, None], None, None, 0, 0)
        if self.chunks is not None:
            return arrow_part(self.chunks, start, stop)
        return (self._floats(start, stop)[:, None], None, None, 0, 0)

    def _floats(self, start: int, stop: int) -> Any:
        import narwhals as nw

        series = self.series[start:stop]
        if self.is_object:
            values = np.asarray(series.to_list(), dtype=object)[:, None]
            label = [self.series.name]
            return objects_to_floats(values, self.name, label)[:, 0]
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)


def _numpy_view(native: Any, name: str) -> Any:
    """The column where it lies, if it is an array; a copy if the kernel needs one."""
    if _is_plain(getattr(native, "dtype", None)):
        return as_kernel_array(np.asarray(native), name)
    return None


def _arrow_chunks(column: _Column) -> Any:
    """The column as Arrow chunks of numbers, without a copy where that is possible."""
    if column.is_object:
        return None
    try:
        import pyarrow as pa
    except ImportError:
        return None
    native = column.native
    if column.series.implementation.is_pandas_like():
        native = pa.array(native.array)
    elif column.series.implementation.is_polars():
        return _numbers_of(_chunks_of_polars(native, pa), pa)
    return _numbers_of(native, pa)


def _chunks_of_polars(series: Any, pa: Any) -> Any:
    series = series.alias("")  # names with a zero byte cannot be handed on
    if str(series.dtype).endswith("Int128"):  # Arrow has no such type
        series = series.cast(float)
    # A series of several chunks would be joined by to_arrow.
    if series.n_chunks() == 1:
        return series.to_arrow()
    return pa.chunked_array([chunk.to_arrow() for chunk in series.get_chunks()])


def _numbers_of(native: Any, pa: Any) -> Any:
    """Chunks of a type whose buffers the kernel reads."""
    chunked = (
        native if isinstance(native, pa.ChunkedArray) else pa.chunked_array([native])
    )
    kind = chunked.type
    if pa.types.is_boolean(kind):
        return chunked.cast(pa.uint8())
    plain = pa.types.is_integer(kind) or pa.types.is_float32(kind)
    if plain or pa.types.is_float64(kind):
        return chunked
    if pa.types.is_decimal(kind):
        return chunked.cast(pa.float64(), safe=False)
    return chunked.cast(pa.float64())


def _table_of_batch(batch: Any) -> Any:
    import pyarrow as pa

    return pa.Table.from_batches([batch])
