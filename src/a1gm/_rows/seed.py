"""Seeds that are scaled to totals: read as a matrix, and given back in their kind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from a1gm._base.types import Floats, Ints
from a1gm._rows.columns import BY_RULE, columns_like
from a1gm._rows.frames import open_frame
from a1gm._rows.labels import check_same_labels
from a1gm._rows.read import AnyRows, is_sparse, read_input
from a1gm._rows.rows import Rows, check_values
from a1gm._rows.sparse import SparseRows
from a1gm.exceptions import Call, DataError, Option

Cells = tuple[Ints, Ints, Floats]


def read_seed(seed: Any) -> tuple[AnyRows, Any]:
    """Read a seed as rows and as a matrix, an array or a CSR one."""
    rows = read_input(seed, absent="zero" if is_sparse(seed) else None, name="seed")
    rows = replace(rows, name="seed")
    A = matrix_of(rows)
    cells = A if isinstance(A, np.ndarray) else A.data
    low, high = float(cells.min(initial=0.0)), float(cells.max(initial=0.0))
    if np.isnan(low) or np.isnan(high):
        missing = np.isnan(cells)
        where = rows.where(*rows.position(int(missing.argmax())))
        raise DataError(
            f"{where} is missing ({int(missing.sum())} in all), and a seed has no "
            "missing cells.",
            advice=(
                "Put 0 for a cell that must be 0, and a positive number, such as 1, "
                "for one that may be above 0; or fill the missing cells of a table to "
                "its totals: ",
                Call("impute", "X", (Option("row_totals"), Option("col_totals"))),
                ".",
            ),
        )
    if low < 0.0 or high == np.inf:
        try:
            check_values(rows, cells, None)
        except DataError as error:
            zero = "A seed must be finite and >= 0; 0 is for a cell that must be 0."
            raise error.advised(zero) from None
    return rows, A


def matrix_of(rows: AnyRows) -> Any:
    """The cells as an array or, of a sparse table, as a CSR array; not copied."""
    if isinstance(rows, SparseRows):
        from scipy.sparse import csr_array

        index = np.int32 if rows.ptr[-1] < 2**31 else np.int64
        cells = rows.values, rows.cols, rows.ptr.astype(index)
        return csr_array(cells, shape=(rows.n_rows, rows.n_cols))
    if rows.cut is None and len(rows.parts) == 1:
        values, mask, validity, _ = rows.parts[0]
        if mask is None and validity is None and values.dtype == np.float64:
            return values
    return rows.cells


def read_known(known: Any, rows: AnyRows) -> AnyRows | None:
    """Read a table like the seed that has the cells that are known."""
    if known is None:
        return None
    is_named = hasattr(known, "columns")
    columns = columns_like(getattr(rows, "choice", None), rows.col_labels)
    absent: Any = "missing" if is_sparse(known) else None
    how: Any = {"absent": absent, "columns": columns if is_named else BY_RULE}
    table: AnyRows = replace(read_input(known, name="known", **how), name="known")
    shape = rows.n_rows, rows.n_cols
    if (table.n_rows, table.n_cols) != shape:
        raise DataError(
            f"known has shape ({table.n_rows}, {table.n_cols}), but the seed has shape "
            f"{shape}. Pass a table like the seed, NaN where a cell is free."
        )
    check_same_labels("row", table.row_labels, rows.row_labels, "known", "the seed")
    check_same_labels("column", table.col_labels, rows.col_labels, "known", "the seed")
    check_values(table, table.cells, None)
    return table


def known_cells(table: AnyRows | None) -> Cells:
    """Places and values of the cells of a table that are not missing."""
    if table is None:
        none = np.zeros(0, np.int64)
        return none, none, np.zeros(0)
    if isinstance(table, SparseRows):
        own = table.without_missing()
        return own.row_of_cell, own.cols.astype(np.int64), own.values
    cells = table.cells
    i, j = np.nonzero(~np.isnan(cells))
    return i, j, cells[i, j]


def missing_cells(table: AnyRows) -> tuple[Ints, Ints]:
    """Places of the missing cells, of a sparse table those that are stored."""
    if isinstance(table, SparseRows):
        holes = table.missing
        return table.row_of_cell[holes], table.cols[holes].astype(np.int64)
    i, j = np.nonzero(np.isnan(table.cells))
    return i, j


def without_cells(A: Any, i: Ints, j: Ints) -> Any:
    """A copy of the matrix with 0 in some cells."""
    if isinstance(A, np.ndarray):
        A = A.copy()
        A[i, j] = 0.0
        return A
    return A - A * listed_cells(i, j, np.ones(len(i)), A.shape)


def listed_cells(i: Ints, j: Ints, values: Any, shape: tuple[int, int]) -> Any:
    """Cells at (i, j) as a CSR array."""
    from scipy.sparse import csr_array

    return csr_array((values, (i, j)), shape=shape)


def cells_at(A: Any, i: Ints, j: Ints) -> Any:
    """Cells of an array or a sparse matrix at (i, j)."""
    found = A[i, j] if len(i) else np.zeros(0, A.dtype)
    return np.ravel(found.toarray() if hasattr(found, "toarray") else found)


def positive_cells(A: Any) -> Cells:
    """Places and values of the cells above 0, row by row."""
    from scipy.sparse import csr_array

    table = csr_array(A)
    table.sort_indices()
    found = table.tocoo()
    some = found.data > 0.0
    i, j = (np.asarray(place[some], np.int64) for place in found.coords)
    return i, j, found.data[some]


# ------------------------------------------------------------------------- and back
def blank(rows: AnyRows, i: Ints, j: Ints) -> AnyRows:
    """The same table with all cells missing, to be filled.

    A sparse one stores its own cells and those at (i, j).
    """
    if isinstance(rows, Rows):
        cells = np.broadcast_to(np.nan, (rows.n_rows, rows.n_cols))
        parts: Any = [(cells, None, None, 0)]
        return replace(rows, parts=parts, cut=None, steps=(), is_float64=False)
    if not len(i):
        return rows.with_values(np.full(len(rows.values), np.nan))
    m = rows.n_cols
    places = np.union1d(rows.row_of_cell * m + rows.cols, i * m + j)
    counts = np.bincount(places // m, minlength=rows.n_rows)
    return replace(
        rows,
        ptr=np.concatenate(([0], np.cumsum(counts))),
        cols=(places % m).astype(np.int32),
        values=np.full(len(places), np.nan),
    )


def as_type(table: Any, rows: AnyRows, dtype: str = "float64") -> Any:
    """A table with cells of another type; float64 has room for the digits of totals."""
    if rows.backend is None:
        is_array = is_sparse(table) or isinstance(table, np.ndarray)
        table = table if is_array else np.asarray(table)
        return table.astype(dtype, copy=False)
    choice = getattr(rows, "choice", None)
    names = list(rows.col_labels) if choice is None else choice.table
    if rows.backend == "pandas":
        return table.astype(dict.fromkeys(names, dtype))
    import narwhals as nw

    kind = nw.Float64 if dtype == "float64" else nw.Int64
    frame = open_frame(table, "seed")
    return frame.with_columns(nw.col(names).cast(kind())).to_native()
