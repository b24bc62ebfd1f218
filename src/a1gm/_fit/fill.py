"""Fill the missing cells of a table and give back the kind of table it was."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from a1gm._base.types import AnyArray
from a1gm._fit.fill_columns import Left, OnePass, Values, fill_columns
from a1gm._fit.fill_frames import Fill, fill_frame
from a1gm._rows import AnyRows, Rows, SparseRows
from a1gm.exceptions import ParameterError


@dataclass(frozen=True, slots=True)
class Filled:
    """A filled table, and the cells of it that stay missing."""

    table: Any
    left: Left


def fill_table(
    X: Any,
    source: AnyRows,
    values: Values,
    one_pass: OnePass | None = None,
    *,
    in_place: bool = False,
    as_array: bool = False,
) -> Filled:
    """Fill the missing cells of X, which ``source`` reads.

    Parameters
    ----------
    X : table
        What the user gave; it is not modified unless ``in_place`` is set and it is a
        writeable array of floats.
    source : Rows or SparseRows
        X as ``read_input`` reads it.
    values : callable
        Gives the values of the cells (rows[k], cols[k]), NaN where there is none.
    one_pass : callable, optional
        Fills the columns of a dense table at once, where that is possible.
    in_place : bool
        Write into X itself where that is possible.
    as_array : bool
        Give a NumPy array for a dense table of any kind.

    Returns
    -------
    Filled
        A table of the kind of X, with its labels; columns without a missing cell keep
        their type.
    """
    if isinstance(source, SparseRows):
        return _fill_sparse(X, source, values, in_place=in_place)
    fill = partial(fill_columns, source, values, one_pass)
    if source.backend is not None and not as_array:
        return Filled(*fill_frame(X, source, fill))
    return _fill_array(X, source, fill, in_place=in_place, as_array=as_array)


# ------------------------------------------------------------------------- arrays
def _fill_array(
    X: Any, source: Rows, fill: Fill, *, in_place: bool, as_array: bool
) -> Filled:
    is_array = isinstance(X, np.ndarray) or source.backend is None
    array = np.asarray(np.ma.getdata(X)) if is_array else None
    has_mask = any(part[1] is not None for part in source.parts)
    if array is not None and array.dtype.kind in "iub" and not has_mask:
        fill([None] * source.n_cols)  # raises for bad cells
        return Filled(array if in_place else array.copy(), Left(0, None))
    if array is None:
        out: AnyArray = np.empty((source.n_rows, source.n_cols))
    else:
        is_own = in_place and _is_writeable(array)
        out = array if is_own else _room_for(array)
    left = fill([out])
    if isinstance(X, np.ma.MaskedArray) and not as_array:
        out = np.ma.MaskedArray(out, mask=np.isnan(out))
    return Filled(out, left)


def _is_writeable(array: AnyArray) -> bool:
    return array.flags.writeable and array.dtype in (np.float64, np.float32)


def _room_for(array: AnyArray) -> AnyArray:
    dtype = np.float32 if array.dtype == np.float32 else np.float64
    return np.empty_like(array, dtype, subok=False)


# ------------------------------------------------------------------------- sparse
def _fill_sparse(
    X: Any, source: SparseRows, values: Values, *, in_place: bool
) -> Filled:
    if source.absent == "missing":
        raise ParameterError(
            'With absent="missing" every absent cell would be filled, and the table '
            "would no longer be sparse. fit.predict(rows, columns) gives the values of "
            "chosen cells, fit.reconstruct() the whole table."
        )
    holes = np.flatnonzero(source.missing)
    if not len(holes) and X.dtype.kind in "iub":
        return Filled(X if in_place else X.copy(), Left(0, None))
    out = X if in_place and _shares_cells(X, source) else _sparse_copy(X, source)
    rows = np.searchsorted(source.ptr, holes, side="right") - 1
    cols = source.cols[holes].astype(np.int64)
    out.data[holes] = found = values(rows, cols)
    left = np.flatnonzero(np.isnan(found))
    first = (int(rows[left[0]]), int(cols[left[0]])) if len(left) else None
    return Filled(out.asformat(X.format), Left(len(left), first))


def _shares_cells(X: Any, source: SparseRows) -> bool:
    return X.format == "csr" and np.shares_memory(X.data, source.values)


def _sparse_copy(X: Any, source: SparseRows) -> Any:
    from scipy.sparse import csr_array, csr_matrix, sparray

    make = csr_array if isinstance(X, sparray) else csr_matrix
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    index = np.int32 if source.ptr[-1] < 2**31 else np.int64
    cells: Any = (
        source.values.astype(dtype),
        source.cols.copy(),
        source.ptr.astype(index),
    )
    return make(cells, shape=X.shape)
