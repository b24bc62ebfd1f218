"""Frames of any library as `Rows`.

Columns are read in place: NumPy-backed ones as views, others through their Arrow
buffers. Columns in several chunks are read in pieces of rows, so that no dense copy of
the table is made. The rule in `columns` decides which columns are the table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import groupby
from math import isnan
from typing import Any
from weakref import ref

import numpy as np

from a1gm._base.types import AnyArray
from a1gm._base.warn import warn_user
from a1gm._base.words import listed
from a1gm._kernel import SMALL, is_compiled, kernel
from a1gm._rows.columns import Choice, Kind, choose, is_label
from a1gm._rows.hints import MOST_COLUMNS, hints, is_total
from a1gm._rows.labels import NamedLabels, names_in, plain_text
from a1gm._rows.rows import (
    KERNEL_DTYPES,
    Part,
    Rows,
    as_kernel_array,
    check_shape,
    kind_of_cells,
    objects_to_floats,
    read_array,
)
from a1gm.exceptions import (
    A1gmError,
    Call,
    DataError,
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
HINT_CELLS = 1 << 16
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
            if warning := choice.warning(name):
                warn_user(warning)
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


def columns_like(choice: Choice | None, labels: Any) -> ColumnOptions:
    """Options that take the columns of another table, by its labels."""
    if labels is None:
        return BY_RULE
    if choice is None:
        return ColumnOptions(fitted=labels)
    return ColumnOptions(choice.ids, exclude=choice.kept, fitted=labels)


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
            if options is BY_RULE and _may_hint(X, whole):
                _warn_hints(whole, Choice(table=list(names)), {}, options)
            return whole
    frame = open_frame(X, name)
    if frame is None:
        _check_no_long_series(X, name)
        return read_array(X, name)
    check_shape(np.broadcast_to(0, frame.shape), name)
    names = names or tuple(frame.columns)
    index = getattr(frame.to_native(), "index", None)
    kinds = _kinds_of(frame, name, options)
    choice = options.choose(kinds, name, has_index=_labels_rows(index))
    if choice is not None:
        names = _like(names, choice.table)
        if choice.ids:
            index = _row_labels(frame, choice.ids)
    _check_types(names, name)
    backend = str(frame.implementation.value)
    rows = Rows([], len(frame), len(names), index, names, backend, choice=choice)
    if backend == "pandas":
        rows.parts = _parts_of_pandas(frame.to_native(), names, name)
    else:
        _read_numbers(_with_numbers(frame, names, name), rows)
    if options.fitted is None and not options.every:
        kept = {} if choice is None else {c: frame.get_column(c) for c in kinds}
        _warn_hints(rows, choice or Choice(table=list(names)), kept, options)
    return rows


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


# -------------------------------------------------------------------------------- hints
def _may_hint(X: Any, rows: Rows) -> bool:
    """Whether hints may find something, by a look at a few cells: small fits are hot.

    A column of whole numbers that rises, or a triangle: the last two cells are missing.
    """
    if rows.n_rows < 3 or rows.n_cols < 2:
        return False
    if rows.backend == "polars":
        first, second, last = X.row(0), X.row(1), X.row(-1)[-2:]
    elif rows.backend == "pandas":
        cells = rows.parts[0][0]
        first, second = cells[0].tolist(), cells[1].tolist()
        last = cells.item(-2), cells.item(-1)
    else:
        first, second = rows.rows(slice(0, 2)).tolist()
        last = rows.rows(slice(rows.n_rows - 1, rows.n_rows))[0, -2:].tolist()
    if _is_missing(last[1]) and _is_missing(last[0]):
        return True
    may_rise = False
    for a, b in zip(first[:MOST_COLUMNS], second, strict=False):
        if not (a is None or b is None) and a < b and a % 1 == 0 == b % 1:
            may_rise = True
            break
    if may_rise:
        values = rows.rows(slice(0, min(rows.n_rows, 6)))
        may_rise = bool((values[1:] > values[:-1]).all(axis=0).any())
    may_be_long = len(first) <= 5 and None not in first[:2] and first[0] % 1 == 0
    return may_rise or may_be_long or _have_totals(rows.col_labels)


def _is_missing(x: float | None) -> bool:
    return x is None or isnan(x)


@lru_cache(maxsize=64)
def _have_totals(names: tuple[Any, ...]) -> bool:
    return any(map(is_total, names))


def _warn_hints(
    rows: Rows, choice: Choice, others: dict[Any, Any], options: ColumnOptions
) -> None:
    """Warn of what a frame may not be meant to be, by its first rows."""
    n = min(rows.n_rows, max(64, HINT_CELLS // rows.n_cols))
    values = dict(zip(choice.table, rows.rows(slice(0, n)).T, strict=True))
    names = list(others or values)
    first = {c: values[c] if c in values else others[c][:n].to_list() for c in names}
    found = hints(
        first, choice, name=rows.name, n_rows=rows.n_rows, is_asked=options.has_names
    )
    for warning in found:
        warn_user(warning)


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


def _check_no_long_series(X: Any, name: str) -> None:
    if getattr(getattr(X, "index", None), "nlevels", 1) == 2:
        raise DataError(
            f"Expected 2D array, got 1D array instead: {name} is a Series with two "
            "levels, a long table. Fit it with ",
            Call("fit_long", name),
            ".",
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


def chosen_columns(
    X: Any, name: str, options: ColumnOptions = BY_RULE
) -> tuple[Any, ...]:
    """Names of the columns of a frame that are the table; no row is needed."""
    names = _checked_names(X, name) or ()
    frame = open_frame(X, name)
    kinds = _kinds_of(frame, name, options)
    has_index = _labels_rows(getattr(X, "index", None))
    choice = options.choose(kinds, name, has_index=has_index)
    names = names if choice is None else _like(names, choice.table)
    _check_types(names, name)
    return names


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
    backend = library_of(X)
    if backend == "pandas":
        cells, is_one = _cells_of_pandas(X)
        if cells is None or (cells.dtype.kind == "b" and not takes_bools):
            return None
        n_rows, n_cols = cells.shape
        parts: Any = [(cells, None, None, 0, 0)]
        rows = Rows(parts, n_rows, n_cols, X.index, names, backend)
        rows.is_float64 = is_one and cells.dtype == np.float64
        return rows
    if not (hasattr(X, "__arrow_c_stream__") and _is_in_one_piece(X, backend)):
        return None
    if "\0" in "".join(names):  # texts of C end there: polars aborts
        return None
    parts = kernel.read_stream(X.__arrow_c_stream__())
    if parts is None:
        return None
    rows = Rows(parts, len(X), len(names), None, names, backend)
    rows.is_float64 = parts.are_float64
    return rows


def _cells_of_pandas(X: Any) -> tuple[AnyArray | None, bool]:
    """Cells of a frame of numbers, and whether they lie in it as this one array.

    A second call gives the same memory then. The first row of a large frame is tried
    before all cells are converted.
    """
    n_rows, n_cols = X.shape
    if n_rows * n_cols == 0:
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
def _parts_of_pandas(X: Any, names: tuple[Any, ...], name: str) -> list[Part]:
    """Columns of a pandas frame, those of one type side by side together.

    Columns in one block of pandas are read in place.
    """
    place = {column: j for j, column in enumerate(X.columns)}
    dtypes = X.dtypes.tolist()

    def run(at: tuple[int, int]) -> Any:
        k, j = at
        return j - k, dtypes[j]

    parts: list[Part] = []
    for _, some in groupby(enumerate(place[column] for column in names), run):
        js = [j for _, j in some]
        cells = X.iloc[:, js[0] : js[-1] + 1]
        dtype = dtypes[js[0]]
        if isinstance(dtype, np.dtype) and dtype.kind == "O":
            values = objects_to_floats(cells.to_numpy(), name, cells.columns)
        elif _is_plain(dtype):
            values = as_kernel_array(cells.to_numpy(), name)
        else:  # nullable, or of Arrow
            values = cells.to_numpy(np.float64, na_value=np.nan)
        parts.append((values, None, None, 0, 0))
    return parts


def _with_numbers(frame: Any, names: tuple[Any, ...], name: str) -> Any:
    """The table's columns of a frame; those of types without buffers as float64."""
    import narwhals as nw

    frame = frame.select(nw.col(list(names)))
    odd = [c for c, dtype in frame.schema.items() if dtype not in _kernel_types()]
    fresh = []
    for column in odd:
        series = frame.get_column(column)
        if series.dtype == nw.Object:
            cells = np.array([*series.to_list(), None], object)[:-1, None]
            values = objects_to_floats(cells, name, [column])[:, 0]
            like = {"backend": frame.implementation}
            fresh.append(nw.new_series(column, values, nw.Float64, **like))
        else:
            fresh.append(series.cast(nw.Float64))
    return frame.with_columns(*fresh) if fresh else frame


@cache
def _kernel_types() -> frozenset[Any]:
    import narwhals as nw

    sizes = [getattr(nw, f"{u}Int{n}") for u in ("", "U") for n in (8, 16, 32, 64)]
    return frozenset((nw.Float64, nw.Float32, *sizes))


def _read_numbers(frame: Any, rows: Rows) -> None:
    """Read a frame of numbers into ``rows``: by Arrow's stream, else as an array."""
    native, is_polars = frame.to_native(), frame.implementation.is_polars()
    has_stream = is_polars or frame.implementation.is_pyarrow()
    # Texts of C end at a zero byte: polars aborts.
    if not (is_compiled and has_stream) or "\0" in "".join(rows.col_labels):
        cells = as_kernel_array(np.asarray(frame.to_numpy()), rows.name)
        rows.parts = [(cells, None, None, 0, 0)]
        return
    if is_polars:
        lengths = native.to_series(0).chunk_lengths()
    else:
        lengths = [len(chunk) for chunk in native.column(0).chunks]

    def cut(start: int, stop: int) -> Any:
        piece = native[start:stop]
        piece = piece.rechunk() if is_polars else piece.combine_chunks()
        return kernel.read_stream(piece.__arrow_c_stream__())

    steps = piece_steps(np.cumsum(lengths).tolist(), rows.n_rows)
    if len(steps) == 2:
        rows.parts = cut(*steps)
    else:
        rows.cut, rows.steps = cut, steps


def piece_steps(ends: list[int], n_rows: int) -> tuple[int, ...]:
    """Rows where pieces begin and end.

    They end where chunks do, and hold at least ``PIECE_ROWS`` rows: tiny chunks are
    joined, which copies no more than a piece at a time.
    """
    steps = [0]
    for end in ends:
        if end - steps[-1] >= PIECE_ROWS and end < n_rows:
            steps.append(end)
    return (*steps, n_rows)


def _table_of_batch(batch: Any) -> Any:
    import pyarrow as pa

    return pa.Table.from_batches([batch])


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
