"""Which kind of table an object is: the one place that decides."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from a1gm._base.types import Absent, Bools, Floats
from a1gm._base.warn import warn_user
from a1gm._base.words import counted
from a1gm._rows.columns import BY_RULE, EVERY_COLUMN, ColumnOptions
from a1gm._rows.frames import library_of, read_frame
from a1gm._rows.rows import Rows, read_array, table_of
from a1gm._rows.sparse import SparseRows, read_sparse
from a1gm.exceptions import (
    Call,
    DataError,
    DataHintWarning,
    NotNumericError,
    ParameterError,
)

AnyRows: TypeAlias = Rows | SparseRows


def read_input(
    X: Any,
    *,
    absent: Absent | None = None,
    name: str = "X",
    columns: ColumnOptions = BY_RULE,
) -> Any:
    """Read a table of any kind as Rows or SparseRows; raise if it cannot be one.

    ``absent`` is what an absent cell of a sparse table is, ``name`` what messages call
    the table, ``columns`` which columns of a frame are the table.
    """
    if isinstance(X, Rows | SparseRows):  # read already
        return X
    if columns is not BY_RULE and columns.has_names and not hasattr(X, "columns"):
        raise ParameterError(
            f"id=, columns= and exclude= need a DataFrame; {name} is a "
            f"{type(X).__name__}. Select the columns first."
        )
    if is_sparse(X):
        return read_sparse(X, absent, name)
    library = "" if isinstance(X, np.ndarray) else library_of(X)
    if not library and hasattr(X, "to_scipy_sparse"):  # frames take long to look
        raise NotNumericError(
            f"{name} is a sparse {type(X).__name__}. Pass {name}.to_scipy_sparse() to "
            f"a1gm.fit with absent=, or {name} to a1gm.fit_tensor if its fill_value is "
            "NaN."
        )
    if absent is not None:
        raise ParameterError(
            f"absent={absent!r} is for SciPy sparse tables; {name} is dense. "
            "Leave it out."
        )
    if isinstance(X, np.ndarray | list | tuple):
        return read_array(X, name)
    if is_triangle(X):
        return read_triangle(X, name)
    if library.startswith("dask"):
        raise NotNumericError(
            f"{name} is a Dask {type(X).__name__}, which is not loaded into memory "
            "silently. Use a1gm.distributed to fit it where it is, or pass "
            f"{name}.compute() if it fits in memory."
        )
    if library or hasattr(X, "__narwhals_dataframe__"):
        return read_frame(X, name, columns)
    return read_array(X, name)


def read_dense(table: Any, name: str) -> Rows:
    """Read a table of a joint fit, which messages call ``name``, into one piece."""
    if is_sparse(table):
        raise ParameterError(
            f"{name} is a SciPy sparse table, which a joint fit does not read. Make it "
            "dense: toarray() gives zeros for the cells that are not stored; where "
            "these are missing and not zero, put NaN instead."
        )
    rows: Rows = read_input(table, name=name)
    return replace(rows, name=name).in_one_piece()


def is_sparse(X: Any) -> bool:
    """Whether X is a SciPy sparse table; SciPy is not loaded for this."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(X))


def same_cells(one: Any, other: Any) -> bool:
    """Whether two tables of one shape have the same cells, missing ones included."""
    return type(one) is type(other) and bool(one.has_cells_of(other))


# ---------------------------------------------------------------- chainladder triangles
def is_triangle(given: Any) -> bool:
    """Whether this is a Triangle; chainladder is not loaded for this."""
    kind = type(given)
    return kind.__name__ == "Triangle" and kind.__module__.startswith("chainladder")


def read_triangle(triangle: Any, name: str) -> Rows:
    """The increments of a Triangle that holds a single one, as a frame of pandas."""
    import pandas as pd

    tables = read_triangles(triangle)[2]
    if len(tables) > 1:
        raise DataError(
            f"{name} is a Triangle that holds {len(tables)} triangles. Fit them with ",
            Call("fit_many", name),
            f", or select one, such as {name}.iloc[0, 0].",
        )
    (table,) = tables
    frame = pd.DataFrame(table.cells, table.row_labels, table.col_labels)
    return read_frame(frame, name, EVERY_COLUMN)


def read_triangles(
    triangle: Any,
) -> tuple[list[tuple[Any, ...]], tuple[Any, ...], list[Rows]]:
    """Keys, what their parts are called, and the increments of every triangle.

    Cells before the valuation are known, 0 where chainladder holds NaN for it; the
    others are missing. Cumulative amounts before the first known one of their origin
    are those of chain-ladder, with a warning.
    """
    given = triangle.set_backend("numpy")
    if given.is_cumulative:
        given = given.copy()
        given.values, is_early = _with_first_ages(np.asarray(given.values, np.float64))
        _warn_early(given, is_early)
        given = given.cum_to_incr()
    known = np.asarray(given.nan_triangle) == 1.0
    cells = np.asarray(given.values, np.float64)
    cells = np.where(known, np.nan_to_num(cells), np.nan)
    origins, ages = given.origin, list(given.development)
    names = [tuple(name) for name in given.index.to_numpy().tolist()]
    keys = [(*name, column) for name in names for column in given.columns]
    tables = map(table_of, cells.reshape(-1, *cells.shape[2:]))
    labels: Any = {"row_labels": origins, "col_labels": ages, "backend": "pandas"}
    sources = [replace(table, **labels) for table in tables]
    return keys, (*given.key_labels, "column"), sources


def _with_first_ages(C: Floats) -> tuple[Floats, Bools]:
    """Cumulative amounts with the ages before the first known one of each origin.

    An age has the share in the next one that the origins with both have. So split, the
    first known amount leaves every development factor as it is. Also which cells these
    are.
    """
    has, C = ~np.isnan(C), C.copy()
    is_early = ~np.logical_or.accumulate(has, -1) & has.any(-1, keepdims=True)
    for k in reversed(range(C.shape[-1] - 1)):
        both = has[..., k] & has[..., k + 1]
        one, other = (np.where(both, C[..., at], 0.0).sum(-1) for at in (k, k + 1))
        share = np.divide(one, other, out=np.zeros_like(one), where=other != 0.0)
        early = C[..., k + 1] * share[..., None]
        C[..., k] = np.where(is_early[..., k], early, C[..., k])
    return C, is_early


def _warn_early(triangle: Any, is_early: Bools) -> None:
    """Warn of cells before the first known amount of their origin."""
    n = int(is_early.sum())
    if n:
        a, b, i, j = np.argwhere(is_early)[0]
        name = ", ".join(map(str, [*triangle.index.to_numpy()[a], triangle.columns[b]]))
        warn_user(
            f"{counted(n, 'cell')} of the triangle, before the first known amount of "
            f"the origin, held no number (the first: {name}, origin "
            f"{triangle.origin[i]}, age {triangle.development.iloc[j]}). They get "
            "parts of that amount, by the development of the other origins, as in "
            "chain-ladder.",
            DataHintWarning,
        )
