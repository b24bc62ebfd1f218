"""The friendly layer: any array a user may hold becomes a checked `Source`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from a1gm._types import Absent, AnyArray, Floats
from a1gm.exceptions import DimensionError, NotNumericError, ParameterError

__all__ = ["Source", "read_input"]

# What the kernel reads where it lies; everything else becomes float64 first.
KERNEL_DTYPES = frozenset(
    np.dtype(t)
    for t in ("f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")
)
BLOCK_CELLS = 1 << 17  # cells per block of rows when the table is read again


@dataclass(frozen=True, slots=True)
class Source:
    """A table as the kernel reads it: stretches of columns, and the user's names."""

    parts: list[tuple[AnyArray, AnyArray | None, AnyArray | None, int, int]]
    n_rows: int
    n_cols: int
    row_labels: Any = None
    col_labels: Any = None

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield the rows in blocks of float64 with NaN for the missing cells."""
        step = max(1, BLOCK_CELLS // self.n_cols)
        for start in range(0, self.n_rows, step):
            rows = slice(start, min(start + step, self.n_rows))
            yield rows, self.rows(rows)

    def rows(self, rows: slice) -> Floats:
        """Read some rows as float64 with NaN for the missing cells."""
        columns = []
        for values, mask, validity, offset, _ in self.parts:
            block = values[rows].astype(np.float64)
            if mask is not None:
                block[mask[rows].astype(bool)] = np.nan
            if validity is not None:
                first, last = offset + rows.start, offset + rows.stop
                bits = np.unpackbits(
                    validity[first // 8 : -(-last // 8)], bitorder="little"
                )
                skip = first % 8
                block[bits[skip : skip + last - first] == 0] = np.nan
            columns.append(block)
        return columns[0] if len(columns) == 1 else np.hstack(columns)

    def observed_as_ones(self) -> Source:
        """The same holes, with 1 in every observed cell."""
        ones = np.vstack([np.where(np.isnan(b), np.nan, 1.0) for _, b in self.blocks()])
        return Source([(ones, None, None, 0, 0)], self.n_rows, self.n_cols)

    def where(self, row: int, col: int) -> str:
        """Name a cell the way its owner does."""
        i = row if self.row_labels is None else repr(self.row_labels[row])
        j = col if self.col_labels is None else repr(self.col_labels[col])
        return f"X[{i}, {j}]"


def read_input(X: Any, *, absent: Absent | None = None, name: str = "X") -> Source:
    """Turn what the user gave into a `Source`, or say why it cannot be one."""
    if type(X) is not np.ndarray:
        X, mask = _as_array(X, name)
    else:
        mask = None
    if absent is not None:
        msg = f"absent={absent!r} is for sparse tables; {name} is dense. Leave it out."
        raise ParameterError(msg)
    check_shape(X, name)
    values = as_kernel_array(X, name)
    return Source([(values, mask, None, 0, 0)], *values.shape)


def _as_array(X: Any, name: str) -> tuple[AnyArray, AnyArray | None]:
    if isinstance(X, np.matrix):
        msg = (
            f"{name} is an np.matrix, which is not supported; pass np.asarray({name})."
        )
        raise NotNumericError(msg)
    if isinstance(X, np.ma.MaskedArray):
        mask = np.ma.getmask(X)
        return np.asarray(X.data), None if mask is np.ma.nomask else np.asarray(mask)
    if isinstance(X, np.ndarray):
        return np.asarray(X), None
    try:
        return np.asarray(X), None
    except ValueError as error:
        msg = f"{name} cannot be read as a table: its rows have different lengths."
        raise DimensionError(msg) from error


def check_shape(X: AnyArray, name: str) -> None:
    """Refuse what is not a table with at least one row and one column."""
    if X.ndim != 2:
        what = "scalar" if X.ndim == 0 else f"{X.ndim}D"
        msg = (
            f"Expected 2D array, got {what} array instead: {name} has shape {X.shape}. "
            "Reshape your data using array.reshape(-1, 1) if it is a single column "
            "or array.reshape(1, -1) if it is a single row."
        )
        raise DimensionError(msg)
    for axis, kind in enumerate(("sample", "feature")):
        if X.shape[axis] == 0:
            msg = (
                f"Found array with 0 {kind}(s) (shape={X.shape}) while a minimum of 1 "
                f"is required: {name} needs at least one row and one column."
            )
            raise DimensionError(msg)


def as_kernel_array(X: AnyArray, name: str) -> AnyArray:
    """Return X itself when the kernel can read it, else a float64 copy."""
    if X.dtype in KERNEL_DTYPES:
        aligned = X.flags.aligned and all(s % X.itemsize == 0 for s in X.strides)
        return X if aligned and X.dtype.isnative else np.ascontiguousarray(X, X.dtype)
    if X.dtype.kind in "fiu":  # float16, longdouble, big-endian
        return X.astype(np.float64)
    if X.dtype.kind == "O":
        return _objects_to_floats(X, name)
    what = {
        "U": "text",
        "S": "bytes",
        "M": "dates",
        "m": "time spans",
        "c": "complex numbers",
        "V": "structured records",
        "T": "text",
    }.get(X.dtype.kind, "values that are not numbers")
    advice = (
        "Complex data not supported."
        if X.dtype.kind == "c"
        else "Convert or drop the columns that are not numeric."
    )
    msg = f"{name} holds {what} (dtype {X.dtype}), not real numbers. {advice}"
    raise NotNumericError(msg)


def _objects_to_floats(X: AnyArray, name: str) -> Floats:
    out = np.empty(X.shape)
    for place, value in np.ndenumerate(X):
        out[place] = _float_of(value, place, name)
    return out


def _float_of(value: Any, place: tuple[int, ...], name: str) -> float:
    # pd.NA cannot be compared or converted; it is told by its type's name, so that
    # pandas need not be imported.
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return np.nan
    if not isinstance(value, str | bytes | complex):
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
    row, col = place
    msg = (
        f"{name}[{row}, {col}] = {value!r} is a {type(value).__name__}, not a number. "
        "Mark unknown cells as NaN or None, and convert the others to numbers."
    )
    raise NotNumericError(msg)
