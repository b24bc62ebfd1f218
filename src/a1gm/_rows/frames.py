"""Frames of any library as `Rows`.

Columns are read in place: a pandas frame of one type as a view, others through their
Arrow buffers; other frames of pandas are copied. Columns in several chunks are read in
pieces of rows. The rule in `columns` decides which columns are the table.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from weakref import ref

import numpy as np

from a1gm._base.types import AnyArray, Floats
from a1gm._base.words import listed
from a1gm._kernel import SMALL, is_compiled, kernel
from a1gm._rows.columns import (
    BY_RULE,
    Choice,
    ColumnOptions,
    Kind,
    choose,
    is_cross_table,
)
from a1gm._rows.hints import is_total, may_hint, warn_hints
from a1gm._rows.rows import (
    KERNEL_DTYPES,
    Rows,
    as_kernel_array,
    check_shape,
    kind_of_cells,
    objects_to_floats,
    read_array,
)
from a1gm.exceptions import A1gmError, Call, DataError, LabelError, NotNumericError

IN_MEMORY = ("pandas", "polars", "pyarrow", "narwhals", "modin", "cudf")
FRAME_MODULES = frozenset((*IN_MEMORY, "duckdb", "ibis", "pyspark", "sqlframe"))
#: What loads a lazy frame into memory.
IN_MEMORY_BY = {
    "duckdb": "to_arrow_table()",
    "ibis": "to_pyarrow()",
    "pyspark": "toArrow()",
    "sqlframe": "toArrow()",
}
NUMBERS = KERNEL_DTYPES - {np.dtype(bool)}
FLOAT64 = {np.dtype(np.float64)}
PIECE_ROWS = 1 << 17
SMALL_FRAME = 1 << 12  # cells of pandas that may be copied without need


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
    has_rule = options.fitted is None and not options.every
    if names is not None and _are_table(X, names, options):
        whole = _read_whole(X, names, takes_bools=not has_rule)
        if whole is not None:
            if has_rule and (names.have_total or may_hint(whole)):
                warn_hints(whole, Choice(table=list(names)))
            return whole
    frame = open_frame(X, name)
    if frame is None:
        if getattr(getattr(X, "index", None), "nlevels", 1) == 2:
            raise DataError(
                f"Expected 2D array, got 1D array instead: {name} is a Series with two "
                "levels, a long table. Fit it with ",
                Call("fit_long", name),
                ".",
            )
        return read_array(X, name)
    check_shape(np.broadcast_to(0, frame.shape), name)
    names = names or ColumnNames(frame.columns)
    native, backend = frame.to_native(), str(frame.implementation.value)
    index = getattr(native, "index", None)
    names, choice = _choose(frame, names, name, options)
    if choice is not None and choice.ids:
        index = _row_labels(frame, choice.ids)
    rows = Rows([], len(frame), len(names), index, names, backend, choice=choice)
    if backend == "pandas":
        rows.parts = [(_cells_of_pandas(native, names, name), None, None, 0)]
    else:
        _read_numbers(_with_numbers(frame, names, name), rows)
    if has_rule:
        choice = choice or Choice(table=list(names))
        others = set(choice.kinds).difference(choice.table)
        columns = {column: frame.get_column(column) for column in others}
        warn_hints(rows, choice, columns, is_asked=options.has_names)
    return rows


def open_frame(X: Any, name: str) -> Any:
    """Open a frame with narwhals; None when X is a column of its library."""
    import narwhals as nw

    if type(X).__name__ == "RecordBatch":
        import pyarrow as pa

        X = pa.Table.from_batches([X])
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError:
        _check_repeated(names_of(X), name)
        raise
    if isinstance(frame, nw.LazyFrame):
        here = IN_MEMORY_BY.get(library_of(X), "collect()")
        raise NotNumericError(
            f"{name} is a lazy frame ({type(X).__module__}.{type(X).__name__}), which "
            "a1gm.fit counts where it is and this function does not load into memory "
            f"implicitly. Pass {name}.{here}."
        )
    if not isinstance(frame, nw.DataFrame):
        return None
    _check_repeated(names_of(X), name)
    return frame


def chosen_columns(
    X: Any, name: str, options: ColumnOptions = BY_RULE
) -> tuple[ColumnNames, Choice | None]:
    """Names of the columns of a frame that are the table; no row is needed.

    Also the choice, if there are others.
    """
    names = _checked_names(X, name) or ColumnNames()
    return _choose(open_frame(X, name), names, name, options)


def _choose(
    frame: Any, names: ColumnNames, name: str, options: ColumnOptions
) -> tuple[ColumnNames, Choice | None]:
    """Names of the columns that are the table; the choice, if there are others."""
    has_index = _has_index(frame.to_native())
    kinds = kinds_of(frame.schema, options, name, frame)
    has_axis = names.have_axis and is_cross_table(kinds, has_index=has_index)
    choice = options.choose(kinds, name, has_index=has_index, has_axis=has_axis)
    names = names if choice is None else names.like(choice.table)
    names.check_types(name)
    return names, choice


def _has_index(native: Any) -> bool:
    """Whether the rows of a frame have labels of their own, as in pandas."""
    index: Any = getattr(native, "index", None)
    is_default = type(index).__name__ == "RangeIndex" and index.name is None
    return index is not None and not is_default


def select(X: Any, columns: list[Any]) -> Any:
    """Some columns of a frame, as a frame of its kind."""
    import narwhals as nw

    return open_frame(X, "X").select(nw.col(columns)).to_native()


def with_columns(X: Any, columns: dict[str, Floats]) -> Any:
    """A frame with further columns; NaN is missing there."""
    import narwhals as nw

    frame = open_frame(X, "X")
    backend = frame.implementation
    series = [nw.new_series(name, x, backend=backend) for name, x in columns.items()]
    frame = frame.with_columns(*series)
    return frame.with_columns(nw.col(*columns).fill_nan(None)).to_native()


def new_names(names: Iterable[Any], suffix: str, taken: Iterable[Any]) -> list[str]:
    """Names with a suffix; raise for one that is taken."""
    new = [f"{name}{suffix}" for name in names]
    if both := sorted({*new} & {*map(str, taken)}):
        raise LabelError(f"X has a column {both[0]!r} already. Pass another suffix=.")
    return new


def _row_labels(frame: Any, ids: list[Any]) -> AnyArray:
    values = [frame.get_column(name).to_list() for name in ids]
    labels = np.empty(len(frame), object)
    labels[:] = values[0] if len(ids) == 1 else list(zip(*values, strict=True))
    return labels


# -------------------------------------------------------------------------------- names
class ColumnNames(tuple[Any, ...]):
    """Names of the columns of a frame; a pandas Index names its ``levels``, too.

    ``are_data``: by the rule all columns are the table, if they hold numbers.
    ``have_total``: a column is called a total.
    """

    levels: tuple[Any, ...] = ()
    are_data = have_total = False

    @property
    def have_axis(self) -> bool:
        """Whether the columns are levels of a key that has a name."""
        return any(level is not None for level in self.levels)

    def like(self, chosen: Iterable[Any]) -> ColumnNames:
        """Other names with the same levels."""
        names = ColumnNames(chosen)
        names.levels = self.levels
        return names

    def check_types(self, name: str) -> None:
        """Raise where names mix text with other types."""
        kinds = sorted({kind.__qualname__ for kind in set(map(type, self))})
        if len(kinds) > 1 and "str" in kinds:
            odd = [n for n in self if not isinstance(n, str)]
            raise LabelError(
                f"{name} has column names of mixed types {kinds}; not text: {odd[:10]}."
                " Feature names are only supported if all input features have string "
                "names: convert them all, for example with X.columns = "
                "X.columns.astype(str)."
            )


@lru_cache(maxsize=64)  # looking at every name takes longer than a small fit
def _properties(names: tuple[Any, ...]) -> tuple[bool, bool]:
    """Whether columns of numbers with these names are data; whether one is a total."""
    try:
        are_data = len(choose(dict.fromkeys(names, "number")).table) == len(names)
    except A1gmError:
        are_data = False
    is_mixed = len(set(map(type, names))) > 1
    return are_data and not is_mixed, any(map(is_total, names))


# The pandas Index that was read last, and its names: an Index is immutable but for its
# own name. A frame is read by its fit and again to be filled, and listing 4,000 names
# takes as long as half of the fit. One tuple: other threads replace it as a whole.
_last_index: tuple[Any, ColumnNames] = (lambda: None, ColumnNames())


def _checked_names(X: Any, name: str) -> ColumnNames | None:
    """Column names of a frame, all of them different; None if it has none."""
    global _last_index  # noqa: PLW0603
    columns = _columns_of(X)
    if columns is None:
        return None
    is_pandas = hasattr(columns, "get_indexer")
    if is_pandas:
        last, names = _last_index
        if last() is columns and names.levels == tuple(columns.names):
            return names
    names = ColumnNames(columns.tolist() if is_pandas else columns)
    _check_repeated(names, name)
    names.are_data, names.have_total = _properties(names)
    if is_pandas:
        names.levels = tuple(columns.names)
        _last_index = ref(columns), names
    return names


def _columns_of(X: Any) -> Any:
    """Column names of a frame in the type of its library; None if it has none."""
    if hasattr(type(X), "column_names"):  # of pyarrow, which takes longer for these
        return X.schema.names
    columns = getattr(X, "columns", None)
    return None if callable(columns) else columns


def names_of(X: Any) -> list[Any]:
    """Column names of a frame."""
    columns = _columns_of(X)
    return columns.tolist() if hasattr(columns, "tolist") else list(columns or ())


def _check_repeated(names: Sequence[Any], name: str) -> None:
    if len(set(names)) < len(names):
        repeated = [repr(column) for column, n in Counter(names).items() if n > 1]
        raise LabelError(
            f"{name} has repeated column names: {listed(repeated)}. Rename them."
        )


def _are_table(X: Any, names: ColumnNames, options: ColumnOptions) -> bool:
    """Whether all columns with these names are the table, if they hold numbers."""
    if options.every:
        names.check_types("X")
        return True
    if options.fitted is not None:
        return names == tuple(options.fitted)
    if options.has_names:
        return False
    if names.have_axis and _has_index(X):
        names.check_types("X")
        return True
    return names.are_data


# -------------------------------------------------------------------------------- kinds
def kinds_of(
    schema: Mapping[Any, Any], options: ColumnOptions, name: str, frame: Any = None
) -> dict[Any, Kind]:
    """Kind of each column by its type in narwhals; in a ``frame`` also by its cells."""
    unused = options.unused(schema)
    return {
        column: "other" if column in unused else _kind_of(dtype, column, name, frame)
        for column, dtype in schema.items()
    }


def _kind_of(dtype: Any, column: Any, name: str, frame: Any) -> Kind:
    import narwhals as nw

    if dtype.is_numeric():
        return "number"
    if dtype == nw.Boolean:
        return "bool"
    if dtype.is_temporal():
        return "date"
    is_text = dtype in (nw.String, nw.Categorical, nw.Enum, nw.Binary)
    if frame is None:
        return "text" if is_text else "other"
    series = frame.get_column(column)
    native = series.to_native()
    kind = getattr(native, "dtype", getattr(native, "type", None))
    if str(kind).lower() == "object":  # narwhals guesses
        return kind_of_cells(series.to_list(), column, name)
    if is_text:
        return "text"
    if getattr(kind, "kind", "O") in "fiub":  # of NumPy or sparse
        return "number"
    return "number" if str(kind).lower().startswith(("null", "decimal")) else "other"


# ------------------------------------------------------------------ all columns at once
def _read_whole(X: Any, names: ColumnNames, *, takes_bools: bool) -> Rows | None:
    """Read a frame whose columns are all numbers at once; None where that fails."""
    backend = library_of(X)
    if backend == "pandas":
        n_rows, n_cols = X.shape
        is_small = n_rows * n_cols < SMALL_FRAME
        head = X if is_small else X.iloc[:1]  # text would become a table of objects
        first = head.values
        # Listing the types takes half as long as a small fit. Columns of one type of
        # NumPy need no list: their array is a view, which is the same each time.
        is_view = np.may_share_memory(first, head.values)
        dtypes = {first.dtype} if is_view else set(X.dtypes)
        if not (first.size and dtypes <= (KERNEL_DTYPES if takes_bools else NUMBERS)):
            return None
        cells = first
        if not (is_small and is_view):
            cells = X.to_numpy(None if is_view else np.float64)
        cells = as_kernel_array(cells, "X")
        rows = Rows([(cells, None, None, 0)], n_rows, n_cols, X.index, names, backend)
        rows.is_float64 = dtypes == FLOAT64
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


def _is_in_one_piece(frame: Any, backend: str) -> bool:
    """Whether Arrow's stream of a frame copies nothing; one of pyarrow never does."""
    if backend != "polars" or type(frame).__name__ != "DataFrame":
        return backend == "pyarrow"
    # Looking at all columns takes longer than joining those of a small frame.
    is_small = frame.height * frame.width < SMALL
    return frame.n_chunks() == 1 and (is_small or set(frame.n_chunks("all")) == {1})


def _cells_of_pandas(X: Any, names: ColumnNames, name: str) -> AnyArray:
    """Some columns of a pandas frame as one array, in place if they lie in one."""
    if len(names) < X.shape[1]:
        X = X.iloc[:, X.columns.get_indexer(list(names))]
    dtypes = X.dtypes.to_list()
    if dtypes.count(dtypes[0]) == len(dtypes) and dtypes[0] in KERNEL_DTYPES:
        return as_kernel_array(X.to_numpy(), name)
    cells = np.empty(X.shape, order="F")
    objects = [j for j, dtype in enumerate(dtypes) if dtype == np.dtype(object)]
    for j in objects:
        one = X.iloc[:, j : j + 1].to_numpy()
        cells[:, j : j + 1] = objects_to_floats(one, name, [names[j]])
    others = np.setdiff1d(np.arange(len(names)), objects)
    with np.errstate(over="ignore"):
        cells[:, others] = X.iloc[:, others].to_numpy(np.float64, na_value=np.nan)
    return cells


# -------------------------------------------------------------------- column by column
def _with_numbers(frame: Any, names: tuple[Any, ...], name: str) -> Any:
    """The table's columns of a frame; those of types without buffers as float64."""
    import narwhals as nw

    frame = frame.select(nw.col(list(names)))
    fresh = []
    for column, dtype in frame.schema.items():
        is_odd = str(dtype) in ("Float16", "Int128", "UInt128")
        if (dtype.is_float() or dtype.is_integer()) and not is_odd:
            continue
        series = frame.get_column(column)
        if dtype == nw.Object:
            cells = np.array([*series.to_list(), None], object)[:-1, None]
            values = objects_to_floats(cells, name, [column])[:, 0]
            like = {"backend": frame.implementation}
            fresh.append(nw.new_series(column, values, nw.Float64, **like))
        else:
            # Through text: Arrow computes 6.60 as 660 * 0.01, which is not 6.6.
            exact = series.cast(nw.String) if dtype == nw.Decimal else series
            fresh.append(exact.cast(nw.Float64))
    return frame.with_columns(*fresh) if fresh else frame


def _read_numbers(frame: Any, rows: Rows) -> None:
    """Read a frame of numbers into ``rows``: by Arrow's stream, else as an array."""
    native, is_polars = frame.to_native(), frame.implementation.is_polars()
    has_stream = is_polars or frame.implementation.is_pyarrow()
    # Texts of C end at a zero byte: polars aborts.
    if not (is_compiled and has_stream) or "\0" in "".join(rows.col_labels):
        cells = as_kernel_array(np.asarray(frame.to_numpy()), rows.name)
        rows.parts = [(cells, None, None, 0)]
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


def with_types(metadata: Any, kinds: Mapping[str, str]) -> Any:
    """Metadata of an Arrow table after columns have changed their types.

    pandas notes its own types there and would cast the columns back to them.
    """
    if not metadata or b"pandas" not in metadata or not kinds:
        return metadata
    noted = json.loads(metadata[b"pandas"])
    for column in noted.get("columns", ()):
        if kind := kinds.get(column.get("field_name")):
            column["pandas_type"] = column["numpy_type"] = kind
    return {**metadata, b"pandas": json.dumps(noted).encode()}
