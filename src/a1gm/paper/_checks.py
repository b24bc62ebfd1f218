"""Checks shared by the published algorithms; each raises before any work."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from a1gm._base.types import Bools, Floats
from a1gm._base.words import counted
from a1gm.exceptions import (
    DataError,
    InfiniteValuesError,
    NegativeValuesError,
    NotNumericError,
    ParameterError,
)


def as_floats(
    X: npt.ArrayLike, name: str = "X", *, may_be_empty: bool = False
) -> Floats:
    """Return ``X`` as a 2-D float64 table in which NaN marks a missing cell."""
    if isinstance(X, np.ma.MaskedArray):  # asarray would drop the mask
        X = np.ma.filled(X.astype(np.float64), np.nan)
    table = np.asarray(X)
    if table.dtype.kind not in "biufO":
        raise NotNumericError(
            f"{name} holds {table.dtype} values, not real numbers. "
            "Convert it to numbers, with NaN for the missing cells."
        )
    try:
        table = table.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise NotNumericError(
            f"{name} holds a value that is not a real number ({error}). "
            "Convert it to numbers, with NaN for the missing cells."
        ) from error
    check_2d(table, name)
    if table.size == 0 and not may_be_empty:
        raise DataError(f"{name} is empty: its shape is {table.shape}.")
    return table


def check_2d(table: npt.NDArray[Any], name: str) -> None:
    """Refuse arrays that are not a table."""
    if table.ndim != 2:
        raise DataError(
            f"{name} has {counted(table.ndim, 'dimension')}; a table has 2: rows × "
            "columns."
        )


def as_table(X: npt.ArrayLike) -> Floats:
    """Return ``X`` as a non-negative 2-D table with at least one observed cell."""
    table = as_floats(X)
    check_cells(table, "X")
    if np.isnan(table).all():
        raise DataError("X has no observed cell: every cell is NaN.")
    return table


def as_complete_table(
    X: npt.ArrayLike, name: str = "X", *, may_be_empty: bool = False
) -> Floats:
    """Return ``X`` as a non-negative 2-D table without missing cells."""
    table = as_floats(X, name, may_be_empty=may_be_empty)
    check_cells(table, name)
    missing = np.isnan(table)
    if missing.any():
        raise DataError(
            f"{name}{_first(missing)} is missing ({missing.sum()} in all), and this "
            "formula is for complete tables. Use a1gm.fit, or a1gm.fit_nmmf for "
            "several tables: they accept missing cells."
        )
    return table


def as_mask(mask: npt.ArrayLike) -> Bools:
    """Return ``mask`` as a 2-D boolean array."""
    holes = np.asarray(mask)
    if holes.dtype != np.bool_:
        raise NotNumericError(
            f"The mask holds {holes.dtype} values; it must be boolean, True where a "
            "cell is missing. np.isnan(X) makes one."
        )
    check_2d(holes, "The mask")
    return holes


def check_cells(table: Floats, name: str) -> None:
    """Refuse infinite and negative cells."""
    infinite = np.isinf(table)
    if infinite.any():
        raise InfiniteValuesError(
            f"{name}{_first(infinite)} is infinite ({infinite.sum()} in all). "
            "Mark unknown cells as NaN."
        )
    negative = table < 0
    if negative.any():
        raise NegativeValuesError(
            f"Negative values in data: {name}{_first(negative)} = "
            f"{table[negative][0]:g} ({negative.sum()} in all). Entries must be >= 0; "
            "mark unknown ones as NaN."
        )


def check_positive_int(value: Any, name: str) -> None:
    """Refuse what is no integer, and a count below 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ParameterError(f"{name} must be an integer >= 1, got {value!r}.")


def check_not_negative(value: Any, name: str) -> None:
    """Refuse what is no number, NaN, infinity and numbers below 0."""
    if not (isinstance(value, Real) and 0.0 <= float(value) < math.inf):
        raise ParameterError(f"{name} must be a finite number >= 0, got {value!r}.")


def _first(where: Bools) -> str:
    """Write the first true cell as an index, like ``[3, 1]``."""
    row, column = np.argwhere(where)[0]
    return f"[{row}, {column}]"
