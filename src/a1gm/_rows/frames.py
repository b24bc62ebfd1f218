"""Frames of any library as `Rows`.

`a1gm._rows.libraries` reads and fills those of pandas, polars and pyarrow; others are
taken to one of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from a1gm._base.types import Floats
from a1gm._rows.columns import BY_RULE, Choice, ColumnOptions, Kind
from a1gm._rows.hints import is_total, may_hint, warn_hints
from a1gm._rows.libraries import (
    ArrowFrame,
    ColumnNames,
    Frame,
    PandasFrame,
    PolarsFrame,
    type_of,
)
from a1gm._rows.rows import Rows, check_shape, read_array
from a1gm.exceptions import Call, DataError, LabelError, NotNumericError

IN_MEMORY = ("pandas", "polars", "pyarrow", "narwhals", "modin", "cudf")
FRAME_MODULES = frozenset((*IN_MEMORY, "duckdb", "ibis", "pyspark", "sqlframe"))
#: What loads a lazy frame into memory.
IN_MEMORY_BY = {
    "duckdb": "to_arrow_table()",
    "ibis": "to_pyarrow()",
    "pyspark": "toArrow()",
    "sqlframe": "toArrow()",
}


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
    frame = frame_of(X, name)
    if frame is None:
        if getattr(getattr(X, "index", None), "nlevels", 1) == 2:
            raise DataError(
                f"Expected 2D array, got 1D array instead: {name} is a Series with two "
                "levels, a long table. Fit it with ",
                Call("fit_long", name),
                ".",
            )
        return read_array(X, name)
    if not (frame.n_rows and frame.names):
        check_shape(np.zeros((frame.n_rows, len(frame.names))), name)
    frame.choose(options, name)
    options.warn(frame.plan.choice, name)
    rows = frame.read(name)
    if options.fitted is None and not options.every:
        _warn_hints(rows, frame, is_asked=options.has_names)
    return rows


def _warn_hints(rows: Rows, frame: Frame, *, is_asked: bool) -> None:
    plan = frame.plan
    others = {column: frame.series(at) for column, at in plan.others.items()}
    labels = frame.last_labels
    has_total = plan.has_total or any(map(is_total, labels))
    in_pieces = rows.cut is not None
    if has_total or in_pieces or may_hint(rows, plan.choice, others):
        choice = plan.choice or Choice(table=list(plan.names))
        warn_hints(rows, choice, others, is_asked=is_asked, last_labels=labels)


def frame_of(X: Any, name: str) -> Frame | None:
    """X as a frame of its library; None for a column."""
    library = library_of(X)
    if library == "polars" and hasattr(X, "get_columns"):
        return PolarsFrame(X)
    if library == "pyarrow" and hasattr(X, "column_names"):
        return ArrowFrame(X)
    if library in ("pandas", "modin", "cudf") and X.ndim == 2:
        return PandasFrame(X, library)
    opened = open_frame(X, name)
    if opened is None:
        return None
    native = opened.to_native()
    return ArrowFrame(opened.to_arrow()) if native is X else frame_of(native, name)


def open_frame(X: Any, name: str) -> Any:
    """Open a frame with narwhals; None when X is a column of its library."""
    import narwhals as nw

    if type(X).__name__ == "RecordBatch":
        import pyarrow as pa

        X = pa.Table.from_batches([X])
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError:
        ColumnNames(names_of(X)).check(name)
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
    ColumnNames(names_of(X)).check(name)
    return frame


def chosen_columns(
    X: Any, name: str, options: ColumnOptions = BY_RULE
) -> tuple[ColumnNames, Choice | None]:
    """Names of the columns of a frame that are the table; no row is needed.

    Also the choice, if there are others.
    """
    frame = frame_of(X, name)
    assert frame is not None
    frame.choose(options, name)
    options.warn(frame.plan.choice, name)
    return frame.plan.names, frame.plan.choice


def kinds_of(schema: Mapping[Any, Any], options: ColumnOptions) -> dict[Any, Kind]:
    """Kind of each column by its type in narwhals."""
    unused = options.unused(schema)
    return {
        column: "other" if column in unused else type_of(dtype).kind
        for column, dtype in schema.items()
    }


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


def names_of(X: Any) -> list[Any]:
    """Column names of a frame."""
    if hasattr(type(X), "column_names"):  # of pyarrow, which takes longer for these
        return list(X.schema.names)
    columns = getattr(X, "columns", None)
    if columns is None or callable(columns):
        return []
    return columns.tolist() if hasattr(columns, "tolist") else list(columns)
