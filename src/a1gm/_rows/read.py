"""Which kind of table was given: the one place that decides."""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

import numpy as np

from a1gm._base.types import Absent
from a1gm._rows.columns import BY_RULE, ColumnOptions
from a1gm._rows.frames import library_of, read_frame
from a1gm._rows.rows import Rows, read_array
from a1gm._rows.sparse import SparseRows, read_sparse
from a1gm.exceptions import NotNumericError, ParameterError

AnyRows: TypeAlias = Rows | SparseRows


def read_input(
    X: Any,
    *,
    absent: Absent | None = None,
    name: str = "X",
    columns: ColumnOptions = BY_RULE,
) -> Any:
    """Read a table of any kind; raise if it cannot be one.

    Parameters
    ----------
    X : table
        NumPy, masked array, pandas, polars, pyarrow, SciPy sparse, or rows of numbers.
    absent : {"missing", "zero"}, optional
        What an absent cell of a sparse table is.
    name : str
        Name of the table in messages.
    columns : ColumnOptions
        Which columns of a frame are the table.

    Returns
    -------
    Rows or SparseRows
    """
    if isinstance(X, Rows):  # read already, by the file layer
        return X
    if columns is not BY_RULE and columns.has_names and not hasattr(X, "columns"):
        raise ParameterError(
            f"id=, columns= and exclude= need a DataFrame; {name} is a "
            f"{type(X).__name__}. Select the columns first."
        )
    if is_sparse(X):
        return read_sparse(X, absent, name)
    if absent is not None:
        check_absent(absent)
        raise ParameterError(
            f"absent={absent!r} is for SciPy sparse tables; {name} is dense. "
            "Leave it out."
        )
    if isinstance(X, np.ndarray | list | tuple):
        return read_array(X, name)
    library = library_of(X)
    if library.startswith("dask"):
        _refuse_dask(X, name)
    if library or hasattr(X, "__narwhals_dataframe__"):
        return read_frame(X, name, columns)
    return read_array(X, name)


def is_sparse(X: Any) -> bool:
    """Whether X is a SciPy sparse table; SciPy is not loaded for this."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(X))


def same_cells(one: AnyRows, other: AnyRows) -> bool:
    """Whether two tables of one shape have the same cells, missing ones included."""
    if isinstance(one, SparseRows) and isinstance(other, SparseRows):
        return (
            one.absent == other.absent
            and np.array_equal(one.ptr, other.ptr)
            and np.array_equal(one.cols, other.cols)
            and np.array_equal(one.values, other.values, equal_nan=True)
        )
    if isinstance(one, Rows) and isinstance(other, Rows):
        return all(
            np.array_equal(piece, other.rows(rows), equal_nan=True)
            for rows, piece in one.blocks()
        )
    return False


def check_absent(absent: str | None) -> None:
    """Raise unless the option says what an absent cell is."""
    if absent not in (None, "missing", "zero"):
        raise ParameterError(
            f"absent must be one of ('missing', 'zero'), got {absent!r}."
        )


def _refuse_dask(X: Any, name: str) -> None:
    raise NotNumericError(
        f"{name} is a Dask {type(X).__name__}, which is not loaded into memory "
        "silently. Use a1gm.distributed to fit it where it is, or pass "
        f"{name}.compute() if it fits in memory."
    )
