"""Lazy frames: which objects these are, and how they are opened and collected.

Nothing is imported to recognise one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from a1gm._base.optional import require
from a1gm._base.words import shown
from a1gm._rows.frames import library_of
from a1gm._rows.labels import check_there
from a1gm.exceptions import EngineError, NotNumericError

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

Frame: TypeAlias = "nw.LazyFrame[Any]"
Library: TypeAlias = Literal["pyarrow", "polars"]
WITH_QUERIES = ("duckdb", "ibis", "pyspark", "sqlframe")

log = logging.getLogger("a1gm")


def native_of(X: Any) -> Any:
    """The frame of its own library, where narwhals has opened it."""
    return X.to_native() if library_of(X) == "narwhals" else X


def is_lazy(X: Any) -> bool:
    """Whether X is a lazy frame of polars, or a table of an engine with queries."""
    X = native_of(X)
    library = library_of(X)
    return library in WITH_QUERIES or (
        library == "polars" and type(X).__name__ == "LazyFrame"
    )


def open_lazy(X: Any) -> Frame:
    """Open a lazy frame with narwhals; raise for what is not one."""
    import narwhals.stable.v2 as nw

    try:
        frame = nw.from_native(native_of(X), pass_through=True)
    except (TypeError, nw.exceptions.NarwhalsError):
        frame = None
    if isinstance(frame, nw.LazyFrame):
        return frame
    raise NotNumericError(
        f"X is a {type(X).__module__}.{type(X).__name__}, which is not a table. Pass a "
        "relation of DuckDB (con.sql(...), con.table(...)), a table of Ibis or a "
        "DataFrame of Spark."
    )


def with_plain_names(frame: Frame) -> Frame:
    """The same columns, called c0, c1, ... in their order."""
    import narwhals.stable.v2 as nw

    names = frame.collect_schema().names()
    plain = [f"c{k}" for k in range(len(names))]
    if frame.implementation.is_pyspark() or frame.implementation.is_pyspark_connect():
        # Its names may have dots and backquotes, which narwhals does not quote.
        native: Any = frame.to_native()
        renamed: Frame = nw.from_native(native.toDF(*plain))
        return renamed
    return frame.select(
        nw.col(name).alias(new) for name, new in zip(names, plain, strict=True)
    )


def collect(frame: Frame, what: str, library: Library = "pyarrow") -> Any:
    """Run a query and return its lines as a table of a library; ``what`` it does.

    Raises EngineError with the message of the engine.
    """
    require(library, "sql", "Fitting a table where it is")
    native = frame.to_native()
    engine = frame.implementation.value
    if log.isEnabledFor(logging.DEBUG):
        log.debug("query that %s, on %s:\n%s", what, engine, _text_of(native))
    try:
        return frame.collect(backend=library).to_native()
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise EngineError(
            f"The query that {what} failed on {engine}: {shown(lines[0])}",
            advice="Nothing was changed; the engine's own error is the cause of this.",
        ) from error


def _text_of(native: Any) -> str:
    """The query of a lazy frame in the words of its engine, for logs."""
    library = library_of(native)
    if library == "ibis":
        return str(require("ibis", "sql", "The text of a query").to_sql(native))
    name = {"duckdb": "sql_query", "sqlframe": "sql"}.get(library, "__repr__")
    return str(getattr(native, name)())


def in_memory(X: Any, columns: Sequence[str]) -> Any:
    """Columns of a lazy frame, collected; any other object as it is."""
    if not is_lazy(X):
        return X
    import narwhals.stable.v2 as nw

    frame = open_lazy(X)
    names = frame.collect_schema().names()
    check_there("The frame", columns, names)
    cells = with_plain_names(frame).select(
        nw.col(f"c{names.index(name)}").alias(name) for name in dict.fromkeys(columns)
    )
    is_polars = cells.implementation.is_polars()
    library: Library = "polars" if is_polars else "pyarrow"
    return collect(cells, "reads the cells of a long table", library)
