"""Seeds that are scaled to totals: read as a matrix, and given back in their kind."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from a1gm._base.float_range import check_range
from a1gm._base.types import Absent, Floats, Ints
from a1gm._rows.columns import BY_RULE, ColumnOptions, columns_like
from a1gm._rows.frames import open_frame
from a1gm._rows.labels import check_same_labels, label_at
from a1gm._rows.read import AnyRows, is_sparse, read_input
from a1gm._rows.rows import check_values
from a1gm._rows.sparse import SparseRows
from a1gm.exceptions import Call, DataError, Option

Cells = tuple[Ints, Ints, Floats]


def read_seed(seed: Any, data: Any = None) -> tuple[AnyRows, Any]:
    """Read a seed as rows and as a matrix, an array or a CSR one.

    ``data`` are names of columns that are not labels: they have totals.
    """
    columns = BY_RULE if data is None else ColumnOptions(data=tuple(data))
    absent: Absent | None = "zero" if is_sparse(seed) else None
    rows = read_input(seed, absent=absent, name="seed", columns=columns)
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
    for axis, side, labels in (
        (1, "row", rows.row_labels),
        (0, "column", rows.col_labels),
    ):
        with np.errstate(over="ignore"):
            sums = np.asarray(A.sum(axis=axis, dtype=np.float64)).ravel()
        check_range(sums, partial(_line_of_seed, side, labels))
    return rows, A


def _line_of_seed(side: str, labels: Any, at: int) -> str:
    return f"The seed, {side} {label_at(labels, at)}"


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


def known_cells(table: AnyRows | None, *, missing: bool = False) -> Cells:
    """Places and values of the cells of a table that are not missing; or are."""
    if table is None:
        none = np.zeros(0, np.int64)
        return none, none, np.zeros(0)
    cells = table.cells
    some = np.isnan(cells) == missing
    if isinstance(table, SparseRows):
        return table.row_of_cell[some], table.cols[some].astype(np.int64), cells[some]
    i, j = np.nonzero(some)
    return i, j, cells[some]


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


def in_container(seed: Any, rows: AnyRows, cells: Any) -> Any:
    """The seed, which was read as ``rows``, with other cells: an array or a CSR one."""
    if isinstance(rows, SparseRows):
        return type(seed)(cells)
    cells = cells if isinstance(cells, np.ndarray) else cells.toarray()
    if rows.backend is None:
        is_masked = isinstance(seed, np.ma.MaskedArray)
        return np.ma.MaskedArray(cells) if is_masked else cells
    names = list(rows.col_labels if rows.choice is None else rows.choice.table)
    if rows.backend == "pandas":
        frame = seed.copy(deep=False)
        for name, column in zip(names, cells.T, strict=True):
            frame[name] = column
        return frame
    import narwhals as nw

    frame = open_frame(seed, "seed")
    columns = zip(names, cells.T.copy(), strict=True)
    new = [nw.new_series(*pair, backend=frame.implementation) for pair in columns]
    return frame.with_columns(*new).to_native()
