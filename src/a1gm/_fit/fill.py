"""Fill the missing cells of a table and give back the kind of table it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from a1gm._base.float_range import as_float32
from a1gm._base.types import AnyArray, Bools, Floats
from a1gm._fit.place import Fills, Left, Target
from a1gm._rows import AnyRows, Rows, SparseRows
from a1gm._rows.libraries import WHOLE, check_exact
from a1gm.exceptions import ParameterError


class Filled(NamedTuple):
    """A filled table, and the cells of it that stay missing."""

    table: Any
    left: Left


def fill_table(X: Any, fills: Fills) -> Filled:
    """Fill a copy of X; columns without a missing cell keep their type."""
    rows = fills.rows
    if isinstance(rows, SparseRows):
        return _fill_sparse(X, rows, fills)
    if rows.frame is None:
        return _fill_array(X, rows, fills.write)
    return _fill_frame(rows, fills.write)


# ------------------------------------------------------------------------- arrays
Write: TypeAlias = Callable[[Sequence[Target]], Left]


def _fill_array(X: Any, rows: Rows, write: Write) -> Filled:
    array = np.asarray(np.ma.getdata(X))
    has_mask = any(part[1] is not None for part in rows.parts)
    if array.dtype.kind in "iub" and not has_mask:
        left = write([None] * rows.n_cols)  # raises for bad cells
        return Filled(array.copy(), left)
    out: AnyArray = np.empty_like(array, np.float64, subok=False)
    left = write([out])
    if array.dtype.newbyteorder("=") == np.float32:
        out = as_float32(out, rows.where)
    elif left.has_holes.any() and (
        array.dtype.kind == "O"
        or (array.dtype.kind in "iu" and max(-int(X.min()), int(X.max())) > WHOLE)
    ):
        holed = np.ma.getmaskarray(X)[:, left.has_holes]
        known = array[:, left.has_holes][~holed].tolist()
        check_exact(known, "The table")
    if isinstance(X, np.ma.MaskedArray):
        out = np.ma.MaskedArray(out, mask=np.isnan(out))
    return Filled(out, left)


# ------------------------------------------------------------------------- sparse
def _fill_sparse(X: Any, rows: SparseRows, fills: Fills) -> Filled:
    from scipy.sparse import csr_array, csr_matrix, sparray

    fills.check()
    if rows.absent == "missing":
        raise ParameterError(
            'With absent="missing" every absent cell would be filled, and the table '
            "would no longer be sparse. fit.predict(rows, columns) gives the values of "
            "chosen cells, fit.reconstruct() the whole table."
        )
    holes = np.flatnonzero(rows.missing)
    if not len(holes) and X.dtype.kind in "iub":
        return Filled(X.copy(), Left(0, None, np.zeros(rows.n_cols, bool)))
    make = csr_array if isinstance(X, sparray) else csr_matrix
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    index = np.int32 if rows.ptr[-1] < 2**31 else np.int64
    cells: Any = rows.values.astype(dtype), rows.cols.copy(), rows.ptr.astype(index)
    out = make(cells, shape=X.shape)
    i = np.searchsorted(rows.ptr, holes, side="right") - 1
    j = rows.cols[holes].astype(np.int64)
    found: AnyArray = fills.values(i, j)
    if out.dtype == np.float32:
        found = as_float32(found, lambda k: rows.where(int(i[k]), int(j[k])))
    out.data[holes] = found
    left = np.flatnonzero(np.isnan(found))
    first = (int(i[left[0]]), int(j[left[0]])) if len(left) else None
    has_holes = np.zeros(rows.n_cols, bool)
    has_holes[j] = True
    return Filled(out.asformat(X.format), Left(len(left), first, has_holes))


# ------------------------------------------------------------------------- frames
def _fill_frame(rows: Rows, write: Write) -> Filled:
    """The frame of the rows with its missing cells filled; other columns are shared."""
    cells = rows.frame.room()
    left = write([cells])
    has_missing = left.n > 0
    return Filled(
        rows.frame.filled(cells, left.has_holes, has_missing=has_missing), left
    )


# ----------------------------------------------------------------------- rounding
#: Digits after the point, or ``"auto"``: whole numbers in columns of whole numbers.
Rounding: TypeAlias = Literal["auto"] | int | None
MOST_DIGITS = 17


def check_rounding(how: Any) -> None:
    """Raise unless ``round`` is None, ``"auto"`` or a number of digits."""
    if how is None or how == "auto":
        return
    is_number = isinstance(how, Integral) and not isinstance(how, bool)
    if not is_number or abs(how) > MOST_DIGITS:  # a float64 has no more digits
        raise ParameterError(
            'round must be None, "auto" or a whole number of digits between '
            f"-{MOST_DIGITS} and {MOST_DIGITS}, got {how!r}."
        )


def rounded(values: Floats, is_whole: Bools | bool, how: Rounding) -> Floats:
    """Round values; ``is_whole``: which are in columns of whole numbers."""
    if how is None:
        return values
    if how != "auto":
        return np.round(values, int(how))
    return np.where(is_whole, np.round(values), values)


def rounded_fills(fills: Fills, how: Rounding) -> Fills:
    """Return the same fills with rounded values."""
    rows = fills.rows
    is_whole = _whole_columns(rows) if how == "auto" else np.zeros(rows.n_cols, bool)
    return Fills(rows, lambda i, j: rounded(fills.values(i, j), is_whole[j], how))


def _whole_columns(source: AnyRows) -> Bools:
    """Columns in which all known cells are whole numbers."""
    whole = np.ones(source.n_cols, bool)
    for _, j, x in source.observed():
        whole[j[x != np.floor(x)]] = False
    return whole
