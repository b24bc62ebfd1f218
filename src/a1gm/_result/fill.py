"""Fill the missing cells of a table and give back the kind of table it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from a1gm._base.types import AnyArray, Floats, Ints
from a1gm._result.fill_frames import Values, fill_frame
from a1gm._sources import AnySource, Source, SparseSource
from a1gm.exceptions import ParameterError

__all__ = ["Filled", "fill_table"]


@dataclass(frozen=True, slots=True)
class Filled:
    """A filled table, and the cells that stay missing: how many, and the first."""

    table: Any
    n_left: int
    first_left: tuple[int, int] | None


class _Tally:
    """Counts the cells that stay missing while values are asked for."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.n_left = 0
        self.first_left: tuple[int, int] | None = None

    def __call__(self, i: Ints, j: Ints) -> Floats:
        found = self.values(i, j)
        left = np.flatnonzero(np.isnan(found))
        if len(left):
            if self.first_left is None:
                self.first_left = int(i[left[0]]), int(j[left[0]])
            self.n_left += len(left)
        return found


def fill_table(
    X: Any,
    source: AnySource,
    values: Values,
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
    source : Source or SparseSource
        X as ``read_input`` reads it.
    values : callable
        Gives the values of the cells (rows[k], cols[k]), NaN where there is none.
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
    tally = _Tally(values)
    if isinstance(source, SparseSource):
        table = _fill_sparse(X, source, tally, in_place=in_place)
    elif source.backend is not None and not as_array:
        table = fill_frame(X, source, tally)
    else:
        table = _fill_array(X, source, tally, in_place=in_place, as_array=as_array)
    return Filled(table, tally.n_left, tally.first_left)


# ------------------------------------------------------------------------- arrays
def _fill_array(
    X: Any, source: Source, values: Values, *, in_place: bool, as_array: bool
) -> AnyArray:
    is_masked = isinstance(X, np.ma.MaskedArray) and not as_array
    if isinstance(X, np.ndarray) or source.backend is None:
        array = np.asarray(np.ma.getdata(X))
    else:
        array, in_place = source.rows(slice(0, source.n_rows)), True
    has_mask = any(part[1] is not None for part in source.parts)
    if array.dtype.kind in "iub" and not has_mask:
        return array if in_place else array.copy()
    out = array if in_place and _is_writeable(array) else _float_copy(array, source)
    left = np.zeros(out.shape, bool) if is_masked else None
    for rows, piece in source.blocks():
        i, j = np.nonzero(np.isnan(piece))
        if len(i):
            found = values(i + rows.start, j)
            out[i + rows.start, j] = found
            if left is not None:
                left[i + rows.start, j] = np.isnan(found)
    np.add(out, 0.0, out=out)  # -0.0 becomes 0.0
    return out if left is None else np.ma.MaskedArray(out, mask=left)


def _is_writeable(array: AnyArray) -> bool:
    return array.flags.writeable and array.dtype in (np.float64, np.float32)


def _float_copy(array: AnyArray, source: Source) -> AnyArray:
    if array.dtype.kind == "O":
        return source.rows(slice(0, source.n_rows))
    dtype = np.float32 if array.dtype == np.float32 else np.float64
    return np.array(array, dtype=dtype)


# ------------------------------------------------------------------------- sparse
def _fill_sparse(
    X: Any, source: SparseSource, values: Values, *, in_place: bool
) -> Any:
    if source.absent == "missing":
        raise ParameterError(
            'With absent="missing" every absent cell would be filled, and the table '
            "would no longer be sparse. For chosen cells multiply fit.row_factor[rows] "
            "and fit.col_factor[cols]; for the whole table use fit.reconstruct()."
        )
    holes = np.flatnonzero(source.missing)
    if not len(holes) and X.dtype.kind in "iub":
        return X if in_place else X.copy()
    out = X if in_place and _shares_cells(X, source) else _sparse_copy(X, source)
    rows = np.searchsorted(source.ptr, holes, side="right") - 1
    out.data[holes] = values(rows, source.cols[holes].astype(np.int64))
    return out.asformat(X.format)


def _shares_cells(X: Any, source: SparseSource) -> bool:
    return X.format == "csr" and np.shares_memory(X.data, source.values)


def _sparse_copy(X: Any, source: SparseSource) -> Any:
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
