"""The statistics of a fit as queries, written once for every engine.

Expressions of narwhals: an engine turns them into its own query. Columns are given
plain names first (``c0``, ``c1``, ...), so no name of a user's is ever written into an
expression.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from operator import add, and_
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw

from a1gm._base.optional import require
from a1gm._base.words import shown
from a1gm._rows.frames import library_of
from a1gm.exceptions import EngineError

BITS = 62  # of a key: they fit into a signed integer of 64 bits everywhere
MAX = 1.7976931348623157e308
INFINITY = float("inf")  # as a number: SQLite reads no such text
FENCED = ("postgres", "sqlite")  # they write out an expression wherever it is used

Frame: TypeAlias = "nw.LazyFrame[Any]"

log = logging.getLogger("a1gm")


# ------------------------------------------------------------------------------ numbers
def double(value: float) -> nw.Expr:
    """A number that is a double everywhere: in PostgreSQL ``0.5`` is a decimal."""
    return nw.lit(repr(float(value))).cast(nw.Float64)


def whole(value: int) -> nw.Expr:
    """A number that is an integer of 64 bits everywhere."""
    return nw.lit(value, nw.Int64)


def combined(op: Callable[[Any, Any], Any], parts: Sequence[nw.Expr]) -> nw.Expr:
    """Join expressions as a balanced tree: engines limit the depth of a chain."""
    half = len(parts) // 2
    if not half:
        return parts[0]
    joined: nw.Expr = op(combined(op, parts[:half]), combined(op, parts[half:]))
    return joined


def number(name: str, dtype: Any, *, may_be_nan: bool = True) -> nw.Expr:
    """A column as doubles; NaN, which engines order above all numbers, as NULL."""
    x = nw.col(name)
    if dtype == nw.Boolean:  # PostgreSQL casts these to integers only
        x = x.cast(nw.Int32)
    if dtype != nw.Float64:
        x = x.cast(nw.Float64)
    if may_be_nan and dtype.is_float():
        return nw.when(x <= INFINITY).then(x)
    return x


# ------------------------------------------------------------------------------- frames
def open_lazy(X: Any) -> Any:
    """Open a lazy frame with narwhals; None when X is not one."""
    try:
        frame = nw.from_native(X, pass_through=True)
    except (TypeError, nw.exceptions.NarwhalsError):
        return None
    return frame if isinstance(frame, nw.LazyFrame) else None


def with_plain_names(frame: Frame) -> Frame:
    """The same columns, called c0, c1, ... in their order."""
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


def needs_fences(frame: Frame) -> bool:
    """Whether an engine needs fences between steps: see `LazyTable.step`."""
    if not frame.implementation.is_ibis():
        return False
    backends = frame.to_native()._find_backends()[0]
    return any(backend.name in FENCED for backend in backends)


def collect(frame: Frame, what: str) -> Any:
    """Run a query and return its lines as a table of pyarrow; ``what`` it does.

    Raises EngineError with the message of the engine.
    """
    require("pyarrow", "sql", "Fitting a table where it is")
    native, engine = frame.to_native(), frame.implementation.value
    if log.isEnabledFor(logging.DEBUG):
        log.debug("query that %s, on %s:\n%s", what, engine, text_of(native))
    try:
        return frame.collect(backend="pyarrow").to_native()
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise EngineError(
            f"The query that {what} failed on {engine}: {shown(lines[0])}",
            advice="Nothing was changed; the engine's own error is the cause of this.",
        ) from error


def text_of(native: Any) -> str:
    """The query of a lazy frame in the words of its engine, for logs."""
    library = library_of(native)
    if library == "ibis":
        return str(require("ibis", "sql", "The text of a query").to_sql(native))
    name = {"duckdb": "sql_query", "sqlframe": "sql"}.get(library, "__repr__")
    return str(getattr(native, name)())


# -------------------------------------------------------------------------------- cells
def cells_of(
    frame: Frame, places: list[int], *, may_be_nan: bool, exponent: int = 0
) -> Frame:
    """The columns at some places as doubles x0, x1, ..., times ``2**-exponent``."""
    dtypes = frame.collect_schema().dtypes()
    x = [number(f"c{k}", dtypes[k], may_be_nan=may_be_nan) for k in places]
    if exponent:
        x = [v * double(2.0**-exponent) for v in x]
    return frame.select(**{f"x{j}": v for j, v in enumerate(x)})


def column(j: int) -> nw.Expr:
    """A column of `cells_of`."""
    return nw.col(f"x{j}")


def keys_of(marks: Sequence[nw.Expr], letter: str) -> dict[str, nw.Expr]:
    """Marks of the columns as bits of integers, 62 each, by the first column."""
    bits = [
        nw.when(mark).then(whole(1 << j % BITS)).otherwise(whole(0))
        for j, mark in enumerate(marks)
    ]
    return {
        f"{letter}{first}": combined(add, bits[first : first + BITS])
        for first in range(0, len(marks), BITS)
    }


def observed_keys(m: int) -> dict[str, nw.Expr]:
    """Which cells of a row are observed."""
    return keys_of([~column(j).is_null() for j in range(m)], "k")


def row_sum(m: int) -> nw.Expr:
    """Sum of the observed cells of a row."""
    return combined(add, [column(j).fill_null(0) for j in range(m)])


def wide_lines(cells: Frame, m: int, *, signed: bool) -> Frame:
    """One line per pattern of holes, with the sum of each column.

    Keys k*, rows n, rows of zeros (``signed``: that sum to zero), sums s*, least a*.
    """
    keys = observed_keys(m)
    if signed:
        is_zero = row_sum(m) == 0
    else:  # stops at the first column that is not 0
        is_zero = combined(and_, [column(j).fill_null(0) == 0 for j in range(m)])
    zero = nw.when(is_zero).then(whole(1))
    return (
        cells.with_columns(**keys, zero=zero)
        .group_by(*keys)
        .agg(
            n=nw.len(),
            zero=nw.col("zero").sum(),
            **{f"s{j}": column(j).sum() for j in range(m)},
            **{f"a{j}": column(j).min() for j in range(m)},
        )
    )


def narrow_lines(cells: Frame, m: int, *, has_zeros: bool) -> Frame:
    """One line per pattern of observed and positive cells: n rows, and their sum r."""
    keys = observed_keys(m)
    if has_zeros:
        keys |= keys_of([column(j).fill_null(0) > 0 for j in range(m)], "p")
    rows = cells.select(r=row_sum(m), **keys)
    return rows.group_by(*keys).agg(n=nw.len(), r=nw.col("r").sum())


def margins(cells: Frame, some: range) -> Frame:
    """Sum and least cell of some columns, in one line."""
    sums = {f"s{j}": column(j).sum() for j in some}
    return cells.select(**sums, **{f"a{j}": column(j).min() for j in some})


def faults(cells: Frame, some: range) -> Frame:
    """Negative and infinite cells of some columns, counted, in one line."""
    counts = {}
    for j in some:
        x = column(j)
        is_infinite = (x > double(MAX)) | (x < double(-MAX))
        counts[f"inf{j}"] = nw.when(is_infinite).then(whole(1)).sum()
        is_negative = (x < double(0.0)) & (x >= double(-MAX))
        counts[f"neg{j}"] = nw.when(is_negative).then(whole(1)).sum()
    return cells.select(**counts)
