"""NumPy arrays, masked arrays and rows of Python numbers as a `Rows`."""

from __future__ import annotations

from datetime import date, time, timedelta
from math import isnan
from numbers import Number
from typing import Any

import numpy as np

from a1gm._base.types import AnyArray, Floats
from a1gm._rows.columns import Kind
from a1gm._rows.rows import Rows
from a1gm.exceptions import DataError, NotNumericError

# What the kernel reads where it lies; everything else becomes float64 first.
KERNEL_DTYPES = frozenset(
    np.dtype(t)
    for t in ("f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")
)
# Recognised by name, so that pandas need not be imported; pd.NA cannot be compared.
MISSING_TYPES = frozenset(("NAType", "NaTType", "MaskedConstant"))
NOT_NUMBERS = {
    "U": "text",
    "S": "bytes",
    "M": "dates",
    "m": "time spans",
    "c": "complex numbers",
    "V": "structured records",
    "T": "text",
}


def read_array(X: Any, name: str) -> Rows:
    """Read an array, or what NumPy can make one of."""
    mask = None
    if type(X) is not np.ndarray:
        X, mask = _as_array(X, name)
    check_shape(X, name)
    if mask is not None and X.dtype.kind == "O":
        X = np.where(mask, None, X)  # whatever is under the mask need not be a number
    values = as_kernel_array(X, name)
    return Rows([(values, mask, None, 0, 0)], *values.shape)


def _as_array(X: Any, name: str) -> tuple[AnyArray, AnyArray | None]:
    if isinstance(X, np.matrix):
        raise NotNumericError(
            f"{name} is an np.matrix, which is not supported; pass np.asarray({name})."
        )
    if isinstance(X, np.ma.MaskedArray):
        mask = np.ma.getmask(X)
        return np.asarray(X.data), None if mask is np.ma.nomask else np.asarray(mask)
    if isinstance(X, np.ndarray):
        return np.asarray(X), None
    try:
        return np.asarray(X), None
    except ValueError as error:
        raise DataError(
            f"{name} cannot be read as a table: its rows have different lengths."
        ) from error


def check_shape(X: AnyArray, name: str) -> None:
    """Raise unless X is a table with at least one row and one column."""
    if X.ndim == 0:
        kind = type(X.item()).__name__ if X.dtype.kind in "OUS" else str(X.dtype)
        msg = (
            f"Expected 2D array, got scalar array instead: {name} is a single {kind}, "
            "not a table."
        )
        if kind == "str":
            msg += " To fit a file use a1gm.fit_file(path)."
        raise DataError(msg)
    if X.ndim == 3:
        raise DataError(
            f"Expected 2D array, got 3D array instead: {name} has shape {X.shape}. For "
            f"a stack of tables use a1gm.fit_many({name}); a single one is {name}[0]."
        )
    if X.ndim != 2:
        remedy = (
            "Reshape your data using array.reshape(-1, 1) if it is a single column or "
            "array.reshape(1, -1) if it is a single row."
        )
        if X.ndim > 2:
            remedy = "Of a stack of tables, each is fitted by a1gm.fit_many(stack)."
        elif name == "weights":
            remedy = (
                "Give each cell its weight: np.broadcast_to(v[:, None], X.shape) "
                "repeats one weight per row, np.broadcast_to(v, X.shape) one per "
                "column."
            )
        raise DataError(
            f"Expected 2D array, got {X.ndim}D array instead: {name} has shape "
            f"{X.shape}. {remedy}"
        )
    for axis, kind in enumerate(("sample", "feature")):
        if X.shape[axis] == 0:
            raise DataError(
                f"Found array with 0 {kind}(s) (shape={X.shape}) while a minimum of 1 "
                f"is required: {name} needs at least one row and one column."
            )


def as_kernel_array(X: AnyArray, name: str) -> AnyArray:
    """Return X itself when the kernel can read it, else a float64 copy."""
    if X.dtype in KERNEL_DTYPES:
        gaps = X.strides[0] % X.itemsize or X.strides[-1] % X.itemsize
        whole = X.flags.aligned and not gaps
        return X if whole and X.dtype.isnative else np.ascontiguousarray(X, X.dtype)
    if X.dtype.kind in "fiu":  # float16, longdouble, big-endian
        with np.errstate(over="ignore"):
            return X.astype(np.float64)
    if X.dtype.kind == "O":
        return objects_to_floats(X, name)
    raise NotNumericError(_describe_dtype(X.dtype, name))


def _describe_dtype(dtype: Any, name: str) -> str:
    what = NOT_NUMBERS.get(dtype.kind, "values that are not numbers")
    if dtype.kind == "V" and dtype.names:
        shown = ", ".join(f"{field!r}: {dtype[field]}" for field in dtype.names[:5])
        what = f"structured records with the fields {shown}"
    hint = (
        "Complex data not supported."
        if dtype.kind == "c"
        else "Convert or drop the columns that are not numeric."
    )
    text = f"{name} holds {what} (dtype {dtype}); a table of real numbers is needed."
    return f"{text} {hint}"


def objects_to_floats(X: AnyArray, name: str, col_names: Any = None) -> Floats:
    """Read Python numbers, None and pd.NA one by one."""
    out = np.empty(X.shape)
    for place, value in np.ndenumerate(X):
        out[place] = _float_of(value, place, name, col_names)
    return out


def kind_of_cells(cells: list[Any], column: Any, name: str) -> Kind:
    """Kind of a column of Python objects: that of all its cells.

    Raises
    ------
    NotNumericError
        Some cells are numbers and others are not; the first of these is named.
    """
    kinds = {kind: _kind_of_type(kind) for kind in set(map(type, cells))}
    if len(set(kinds.values())) > 1:  # NaN is a float, and missing
        kinds = {
            type(cell): kinds[type(cell)]
            for cell in cells
            if not (isinstance(cell, float) and isnan(cell))
        }
    found = {kind for kind in kinds.values() if kind is not None}
    if not found or found == {"number", "bool"}:
        return "number"
    if len(found) > 1 and "number" in found:
        objects_to_floats(np.array([*cells, None], object)[:-1, None], name, [column])
    return found.pop() if len(found) == 1 else "other"


def _kind_of_type(kind: type) -> Kind | None:
    """Kind of the cells of a Python type; None for marks of missing cells."""
    if kind is type(None) or kind.__name__ in MISSING_TYPES:
        return None
    if issubclass(kind, bool | np.bool_):
        return "bool"
    if issubclass(kind, str | bytes):
        return "text"
    if issubclass(kind, date | time | timedelta | np.datetime64 | np.timedelta64):
        return "date"
    is_number = issubclass(kind, Number) and not issubclass(kind, complex)
    return "number" if is_number else "other"


def _float_of(
    value: Any, place: tuple[int, ...], name: str, col_names: Any = None
) -> float:
    if value is None or type(value).__name__ in MISSING_TYPES:
        return np.nan
    why = ""
    if not isinstance(value, str | bytes | complex | np.timedelta64 | np.datetime64):
        try:
            return float(value)
        except OverflowError:  # an integer above 1.8e308: refused with its place
            return np.inf if value > 0 else -np.inf
        except (TypeError, ValueError) as error:
            why = f" ({error})"
    row, col = place
    column = col if col_names is None else repr(col_names[col])
    raise NotNumericError(
        f"{name}[{row}, {column}] = {value!r} is a {type(value).__name__}, not a "
        f"number{why}. Mark unknown cells as NaN or None, and convert the others to "
        "numbers."
    )
