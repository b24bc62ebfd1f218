"""Frames of any library as `Rows`.

Columns are read in place: NumPy-backed ones as views, others through their Arrow
buffers. Columns in several chunks are read in pieces of rows, so that no dense copy of
the table is made. The rule in `columns` decides which columns are the table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any
from weakref import ref

import numpy as np

from a1gm._base.types import AnyArray
from a1gm._base.warn import warn_user
from a1gm._base.words import listed
from a1gm._kernel import SMALL, kernel
from a1gm._rows.arrays import (
    KERNEL_DTYPES,
    as_kernel_array,
    check_shape,
    kind_of_cells,
    objects_to_floats,
    read_array,
)
from a1gm._rows.columns import Choice, Kind, choose, is_label
from a1gm._rows.labels import NamedLabels, names_in, plain_text
from a1gm._rows.long_hint import check_no_long_series
from a1gm._rows.rows import Part, Rows
from a1gm.exceptions import (
    A1gmError,
    DataHintWarning,
    LabelError,
    NotNumericError,
)

IN_MEMORY = ("pandas", "polars", "pyarrow", "narwhals", "modin", "cudf")
FRAME_MODULES = frozenset((*IN_MEMORY, "duckdb", "ibis", "pyspark", "sqlframe"))
NUMPY_KINDS: dict[str, Kind] = {
    **dict.fromkeys("fiu", "number"),
    "b": "bool",
    **dict.fromkeys("Mm", "date"),
    **dict.fromkeys("SUT", "text"),
    **dict.fromkeys("cV", "other"),
}
PIECE_ROWS = 1 << 17
TALL = 1 << 12  # rows; columns of shorter pandas frames are read together
FEW_CELLS = 1 << 15  # of a pandas frame that is cheap to convert


# ------------------------------------------------------------------------ which columns
@dataclass(slots=True)
class ColumnOptions:
    """Which columns of a frame the caller asks for.

    ``id``, ``columns`` and ``exclude`` are as in ``a1gm.fit``. ``fitted`` are the
    labels of a fit's columns: these are the table, and other columns of a new frame are
    kept where the rule keeps them. ``every``: every column is a feature.
    """

    id: Any = None
    columns: Any = None
    exclude: Any = None
    fitted: Any = None
    every: bool = False

    @property
    def has_names(self) -> bool:
        """Whether the caller names columns."""
        asked = self.id, self.columns, self.exclude
        return self.fitted is None and any(names is not None for names in asked)

    def may_take_all(self, names: tuple[Any, ...]) -> bool:
        """Whether all columns with these names are the table if they hold numbers."""
        if self.every:
            _check_types(names, "X")
            return True
        if self.fitted is not None:
            return names == tuple(self.fitted)
        return not self.has_names and _are_data(names)

    def choose(
        self, kinds: Mapping[Any, Kind], name: str, *, has_index: bool
    ) -> Choice | None:
        """Choose among columns of these kinds, and warn of what was inferred.

        None where every column is the table.
        """
        if self.every:
            choice = Choice(table=list(kinds))
        elif self.fitted is not None:
            choice = self._choose_fitted(kinds)
        else:
            asked = None if self.columns is None else names_in(self.columns)
            choice = choose(
                kinds,
                names_in(self.id) or None,
                asked,
                names_in(self.exclude),
                has_index=has_index,
                name=name,
            )
            if text := choice.warning(name):
                warn_user(DataHintWarning(text, is_inferred=True))
        bad = [c for c in choice.table if kinds[c] not in ("number", "bool")]
        if bad:
            words = [f"{column!r} ({kinds[column]})" for column in bad]
            raise NotNumericError(
                f"{name} has columns that do not hold numbers: {listed(words)}. "
                "Convert or drop them.",
                columns=tuple(bad),
            )
        return choice if len(choice.table) < len(kinds) else None

    def _choose_fitted(self, kinds: Mapping[Any, Kind]) -> Choice:
        known = set(map(plain_text, self.fitted))
        choice = Choice(ids=[c for c in names_in(self.id) if c in kinds], kinds=kinds)
        others = {*choice.ids, *names_in(self.exclude)}
        for at, (column, kind) in enumerate(kinds.items()):
            is_data = plain_text(column) in known
            if not is_data and column not in others and kind == "number":
                leads = not choice.table
                is_data = not is_label(column, leads=leads, is_first=at == 0)
            if is_data:
                choice.table.append(column)
            elif column not in choice.ids:
                choice.kept.append(column)
        return choice

    def may_be_used(self, column: Any) -> bool:
        """Whether the kind of a column can matter."""
        if self.columns is not None:
            return column in names_in(self.columns)
        return column not in (*names_in(self.id), *names_in(self.exclude))


BY_RULE = ColumnOptions()
EVERY_COLUMN = ColumnOptions(every=True)


@lru_cache(maxsize=64)
def _are_data(names: tuple[Any, ...]) -> bool:
    """Whether the rule takes all number columns with these names for data."""
    try:
        is_all = len(choose(dict.fromkeys(names, "number")).table) == len(names)
    except A1gmError:
        return False
    if is_all:
        _check_types(names, "X")
    return is_all


# ------------------------------------------------------------------------------ reading
def library_of(X: Any) -> str:
    """Name of the library of frames that made the class of X, or a base class of it.

    Empty for other objects; no library is imported for this.

    Examples
    --------
    >>> import pandas as pd
    >>> class Own(pd.DataFrame): ...
    >>> library_of(Own()), library_of([1.0])
    ('pandas', '')
    """
    for kind in type(X).__mro__:
        module = kind.__module__.partition(".")[0]
        if module in FRAME_MODULES or module.startswith("dask"):
            return module
    return ""


def read_frame(X: Any, name: str, options: ColumnOptions = BY_RULE) -> Rows:
    """Read a frame; a column of a frame library is read as an array."""
    names = None if type(X).__name__ == "LazyFrame" else _checked_names(X, name)
    if names is not None and options.may_take_all(names):
        whole = _read_whole(X, names, takes_bools=options.fitted is not None)
        if whole is not None:
            return whole
    frame = open_frame(X, name)
    if frame is None:
        check_no_long_series(X, name)
        return read_array(X, name)
    check_shape(np.broadcast_to(0, frame.shape), name)
    names = names or tuple(frame.columns)
    index = getattr(frame.to_native(), "index", None)
    kinds = _kinds_of(frame, name, options)
    choice = options.choose(kinds, name, has_index=_labels_rows(index))
    if choice is not None:
        if choice.ids:
            index = _row_labels(frame, choice.ids)
        names = _like(names, choice.table)
        X = None if frame.implementation.is_pandas() else select(X, choice.table)
        whole = None if X is None else _read_whole(X, names)
        if whole is not None:
            whole.row_labels, whole.choice, whole.is_float64 = index, choice, False
            return whole
    _check_types(names, name)
    columns = _columns_of(frame, names, name)
    n_rows, n_cols = len(frame), len(names)

    def cut(start: int, stop: int) -> list[Part]:
        return join_neighbours([column.part(start, stop) for column in columns])

    steps = piece_steps([column.ends for column in columns], n_rows)
    is_one = len(steps) == 2
    return Rows(
        cut(0, n_rows) if is_one else [],
        n_rows,
        n_cols,
        index,
        names,
        str(frame.implementation.value),
        cut=None if is_one else cut,
        steps=() if is_one else steps,
        choice=choice,
    )


def open_frame(X: Any, name: str) -> Any:
    """Open a frame with narwhals; None when X is a column of its library."""
    import narwhals as nw

    if type(X).__name__ == "RecordBatch":
        X = _table_of_batch(X)
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError:
        _check_repeated(names_of(X) or [], name)
        raise
    if isinstance(frame, nw.LazyFrame):
        raise NotNumericError(
            f"{name} is a lazy frame ({type(X).__module__}.{type(X).__name__}), which "
            f"is not loaded into memory implicitly. Pass {name}.collect(), or use "
            "a1gm.fit_file for the file behind it, a1gm.distributed for a Dask frame."
        )
    if not isinstance(frame, nw.DataFrame):
        return None
    _check_repeated(names_of(X) or [], name)
    return frame


def select(X: Any, columns: list[Any]) -> Any:
    """Some columns of a frame, as a frame of its kind."""
    import narwhals as nw

    return open_frame(X, "X").select(nw.col(columns)).to_native()


def _row_labels(frame: Any, ids: list[Any]) -> AnyArray:
    values = [frame.get_column(name).to_list() for name in ids]
    labels = np.empty(len(frame), object)
    labels[:] = values[0] if len(ids) == 1 else list(zip(*values, strict=True))
    return labels


def _labels_rows(index: Any) -> bool:
    """Whether the index of a pandas frame labels its rows: a default one does not."""
    if index is None:
        return False
    return type(index).__name__ != "RangeIndex" or index.name is not None


# -------------------------------------------------------------------------------- names
class _LastIndex:
    """The names in the pandas Index that was read last: an Index is immutable.

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
    """Column names of a frame, none of them twice; None if it has none."""
    columns = getattr(X, "columns", None)
    columns = columns if hasattr(columns, "get_indexer") else None  # pandas
    labels = _last_index.names(columns)
    if labels is not None:
        return labels
    names = names_of(X)
    if names is None:
        return None
    _check_repeated(names, name)
    labels = tuple(names)
    if columns is not None:
        if any(part is not None for part in columns.names):
            labels = NamedLabels(names)
            labels.names = tuple(columns.names)
        _last_index.remember(columns, labels)
    return labels


def _like(names: tuple[Any, ...], chosen: Iterable[Any]) -> tuple[Any, ...]:
    """Some of the names, with the names of their levels."""
    if not isinstance(names, NamedLabels):
        return tuple(chosen)
    labels = NamedLabels(chosen)
    labels.names = names.names
    return labels


def names_of(X: Any) -> list[Any] | None:
    """Column names of a frame; None if it has none."""
    columns = getattr(X, "column_names", None)  # pyarrow
    if columns is None:
        columns = getattr(X, "columns", None)
    if columns is None or callable(columns):
        return None
    return columns.tolist() if hasattr(columns, "tolist") else list(columns)


def _check_repeated(names: list[Any], name: str) -> None:
    if len(set(names)) == len(names):
        return
    seen: set[Any] = set()
    repeated = [n for n in names if n in seen or seen.add(n)]  # type: ignore[func-returns-value]
    shown = listed(list(dict.fromkeys(map(repr, repeated))))
    raise LabelError(
        f"{name} has repeated column names: {shown}. Give every column its own."
    )


def _check_types(names: tuple[Any, ...], name: str) -> None:
    """Raise where the names of the table's columns mix text with other types."""
    kinds = sorted({kind.__qualname__ for kind in set(map(type, names))})
    if len(kinds) > 1 and "str" in kinds:
        odd = [n for n in names if not isinstance(n, str)]
        raise LabelError(
            f"{name} has column names of mixed types {kinds}; not text: {odd[:10]}. "
            "Feature names are only supported if all input features have string names: "
            "convert them all, for example with X.columns = X.columns.astype(str)."
        )


# -------------------------------------------------------------------------------- kinds
def _kinds_of(frame: Any, name: str, options: ColumnOptions) -> dict[Any, Kind]:
    """Kind of each column of a frame that narwhals has opened."""
    native = frame.to_native()
    is_pandas = frame.implementation.is_pandas()
    dtypes = native.dtypes.tolist() if is_pandas else [None] * frame.shape[1]
    kinds: dict[Any, Kind] = {}
    for j, (column, dtype) in enumerate(zip(frame.columns, dtypes, strict=True)):
        if not options.may_be_used(column):
            kinds[column] = "other"
        elif isinstance(dtype, np.dtype) and dtype.kind != "O":
            kinds[column] = NUMPY_KINDS[dtype.kind]
        else:
            kinds[column] = _kind_of(frame[:, j], column, name)
    return kinds


def check_columns(frame: Any, name: str) -> None:
    """Raise for columns of a frame that do not hold numbers, and name them."""
    kinds = _kinds_of(frame, name, EVERY_COLUMN)
    EVERY_COLUMN.choose(kinds, name, has_index=False)


def _kind_of(series: Any, column: Any, name: str) -> Kind:
    import narwhals as nw

    native = _type_of(series)
    text = str(native).lower()
    if text == "object":  # narwhals guesses
        return kind_of_cells(series.to_list(), column, name)
    dtype = series.dtype
    if dtype.is_numeric():
        return "number"
    if dtype == nw.Boolean:
        return "bool"
    if dtype.is_temporal():
        return "date"
    if dtype in (nw.String, nw.Categorical, nw.Enum, nw.Binary):
        return "text"
    if text.startswith("null") and series.null_count() == len(series):
        return "number"
    return "number" if _is_plain(native) or text.startswith("decimal") else "other"


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


# ------------------------------------------------------------------ all columns at once
def _read_whole(
    X: Any, names: tuple[Any, ...], *, takes_bools: bool = False
) -> Rows | None:
    """Read a frame whose columns are all numbers at once; None where that fails."""
    backend, index = library_of(X), None
    parts: Any = None
    is_float64 = False
    if backend == "pandas":
        index = getattr(X, "index", None)
        cells, is_one_array = _cells_of_pandas(X)
        if cells is not None and (cells.dtype.kind != "b" or takes_bools):
            parts = [(cells, None, None, 0, 0)]
            is_float64 = is_one_array and cells.dtype == np.float64
    elif hasattr(X, "__arrow_c_stream__") and _is_in_one_piece(X, backend):
        if "\0" in "".join(names):  # texts of C end there: polars aborts
            return None
        parts = kernel.read_stream(X.__arrow_c_stream__())
        is_float64 = bool(getattr(parts, "are_float64", False))
    if parts is None:
        return None
    return Rows(parts, len(X), len(names), index, names, backend, is_float64=is_float64)


def _cells_of_pandas(X: Any) -> tuple[AnyArray | None, bool]:
    """Cells of a frame of numbers, and whether they lie in it as this one array.

    A second call gives the same memory then. The first row of a large frame is tried
    before all cells are converted.
    """
    n_rows, n_cols = X.shape
    if n_rows == 0 or n_cols == 0:
        return None, False
    is_small = n_rows * n_cols < FEW_CELLS
    some = X if is_small else X.iloc[:1]
    cells = some.to_numpy()
    if cells.dtype not in KERNEL_DTYPES:
        return None, False
    if n_cols > 1 and np.may_share_memory(cells, some.to_numpy()):
        return cells if is_small else X.to_numpy(), True
    # Categories of numbers are numbers as an array, but not by the rule.
    is_plain = is_small and all(_is_plain(dtype) for dtype in set(X.dtypes))
    return cells if is_plain else None, False


def _is_in_one_piece(frame: Any, backend: str) -> bool:
    """Whether Arrow's stream of a frame copies nothing; one of pyarrow never does."""
    if backend != "polars" or type(frame).__name__ != "DataFrame":
        return backend == "pyarrow"
    # Looking at all columns takes longer than joining those of a small frame.
    is_small = frame.height * frame.width < SMALL
    return frame.n_chunks() == 1 and (is_small or set(frame.n_chunks("all")) == {1})


# -------------------------------------------------------------------- column by column
class _Column:
    """One column, or several side by side, and the rows where their chunks end."""

    def __init__(self, series: Any, name: str, view: AnyArray | None = None) -> None:
        self.series, self.name, self.view = series, name, view
        self.chunks: Any = None
        self.ends: list[int] | None = None
        if view is not None:
            return
        self.is_object = str(_type_of(series)).lower() == "object"
        if _is_plain(_type_of(series)):
            self.view = as_kernel_array(np.asarray(series.to_native()), name)[:, None]
            return
        self.chunks = None if self.is_object else _arrow_chunks(series)
        if self.chunks is not None:
            self.ends = np.cumsum([len(c) for c in self.chunks.chunks]).tolist()
        else:  # read through narwhals, in pieces
            self.ends = list(range(PIECE_ROWS, len(series), PIECE_ROWS))

    def part(self, start: int, stop: int) -> Part:
        """Rows of this column as the kernel reads them."""
        if self.view is not None:
            return (self.view[start:stop], None, None, 0, 0)
        if self.chunks is not None:
            return _arrow_part(self.chunks, start, stop)
        return (self._floats(start, stop)[:, None], None, None, 0, 0)

    def _floats(self, start: int, stop: int) -> Any:
        import narwhals as nw

        series = self.series[start:stop]
        if self.is_object:
            values = np.asarray(series.to_list(), dtype=object)[:, None]
            label = [self.series.name]
            return objects_to_floats(values, self.name, label)[:, 0]
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)


def _columns_of(frame: Any, names: tuple[Any, ...], name: str) -> list[_Column]:
    """Columns of a frame; those of one type side by side in a short one together."""
    if not frame.implementation.is_pandas():
        return [_Column(frame.get_column(column), name) for column in names]
    native = frame.to_native()
    place = {column: j for j, column in enumerate(native.columns)}
    dtypes = native.dtypes.tolist()
    is_short = len(frame) < TALL

    def run(at: tuple[int, int]) -> Any:
        k, j = at
        return (j - k, dtypes[j]) if is_short and _is_plain(dtypes[j]) else j

    found = []
    places = [place[column] for column in names]
    for _, some in groupby(enumerate(places), run):
        js = [j for _, j in some]
        if len(js) == 1:
            found.append(_Column(frame[:, js[0]], name))
        else:
            cells = native.iloc[:, js[0] : js[-1] + 1].to_numpy()
            found.append(_Column(None, name, as_kernel_array(cells, name)))
    return found


def _arrow_chunks(series: Any) -> Any:
    """The column as Arrow chunks of numbers, without a copy where that is possible."""
    try:
        import pyarrow as pa
    except ImportError:
        return None
    native = series.to_native()
    if series.implementation.is_pandas_like():
        native = pa.array(native.array)
    elif series.implementation.is_polars():
        native = _chunks_of_polars(native, pa)
    chunked = (
        native if isinstance(native, pa.ChunkedArray) else pa.chunked_array([native])
    )
    kind = chunked.type
    if pa.types.is_boolean(kind):
        return chunked.cast(pa.uint8())
    plain = pa.types.is_integer(kind) or pa.types.is_float32(kind)
    if plain or pa.types.is_float64(kind):
        return chunked
    return chunked.cast(pa.float64(), safe=not pa.types.is_decimal(kind))


def _chunks_of_polars(series: Any, pa: Any) -> Any:
    series = series.alias("")  # names with a zero byte cannot be handed on
    if str(series.dtype).endswith("Int128"):  # Arrow has no such type
        series = series.cast(float)
    # A series of several chunks would be joined by to_arrow.
    if series.n_chunks() == 1:
        return series.to_arrow()
    return pa.chunked_array([chunk.to_arrow() for chunk in series.get_chunks()])


def _table_of_batch(batch: Any) -> Any:
    import pyarrow as pa

    return pa.Table.from_batches([batch])


def piece_steps(
    ends_of_columns: list[list[int] | None], n_rows: int
) -> tuple[int, ...]:
    """Rows where pieces begin and end.

    They end where chunks do, and hold at least ``PIECE_ROWS`` rows: tiny chunks are
    joined, which copies no more than a piece at a time.
    """
    ends = {end for ends in ends_of_columns if ends for end in ends}
    steps = [0]
    for end in sorted(ends):
        if end - steps[-1] >= PIECE_ROWS and end < n_rows:
            steps.append(end)
    return (*steps, n_rows)


def _arrow_part(chunked: Any, start: int, stop: int) -> Part:
    """Rows of an Arrow column: its values and validity bits, where they lie."""
    piece = chunked.slice(start, stop - start)
    array = piece.chunk(0) if piece.num_chunks == 1 else _joined(piece)
    validity, data = array.buffers()[:2]
    dtype = np.dtype(array.type.to_pandas_dtype())
    values = np.frombuffer(data, dtype)[array.offset : array.offset + len(array), None]
    if validity is None or array.null_count == 0:
        return (values, None, None, 0, 0)
    return (values, None, np.frombuffer(validity, np.uint8), array.offset, 0)


def _joined(piece: Any) -> Any:
    import pyarrow as pa

    joined = piece.combine_chunks()
    return pa.concat_arrays(joined.chunks) if hasattr(joined, "chunks") else joined


def join_neighbours(parts: list[Part]) -> list[Part]:
    """Make one matrix of columns that lie at equal distances in the same memory.

    The blocks of a pandas frame are such matrices; the kernel reads one faster than
    its columns one by one.
    """
    joined: list[Part] = []
    at = 0
    while at < len(parts):
        n, stride = _run_length(parts, at)
        if n == 1:
            joined.append(parts[at])
        else:
            joined.append(_matrix(parts[at][0], n, stride))
        at += n
    return joined


def _run_length(parts: list[Part], at: int) -> tuple[int, int]:
    """How many columns from here on are equally spaced views of one array."""
    owner = _owner(parts[at])
    n, stride = 1, 0
    while owner is not None and at + n < len(parts):
        left, right = parts[at + n - 1][0], parts[at + n][0]
        if _owner(parts[at + n]) is not owner or left.dtype != right.dtype:
            break
        step = _address(right) - _address(left)
        if left.strides[0] != right.strides[0] or (n > 1 and step != stride):
            break
        n, stride = n + 1, step
    return n, stride


def _owner(part: Part) -> AnyArray | None:
    """The array whose memory a plain column without a mask is a view of."""
    values, mask, validity, _, _ = part
    if mask is not None or validity is not None or values.shape[1] > 1:
        return None
    owner = values
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return owner if owner is not values else None


def _address(array: AnyArray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _matrix(first: AnyArray, n_cols: int, stride: int) -> Part:
    # Every column was seen to lie in the memory of the same array, which `first` keeps
    # alive, so the strided view stays inside it.
    shape = (first.shape[0], n_cols)
    values = np.lib.stride_tricks.as_strided(
        first, shape, (first.strides[0], stride), writeable=False
    )
    return (values, None, None, 0, 0)


def with_types(metadata: Any, kinds: Mapping[str, str]) -> Any:
    """Metadata of an Arrow table some of whose columns have become of other types.

    pandas notes its own types there and would cast the columns back to them.
    """
    if not metadata or b"pandas" not in metadata or not kinds:
        return metadata
    noted = json.loads(metadata[b"pandas"])
    for column in noted.get("columns", ()):
        if kind := kinds.get(column.get("field_name")):
            column["pandas_type"] = column["numpy_type"] = kind
    return {**metadata, b"pandas": json.dumps(noted).encode()}
