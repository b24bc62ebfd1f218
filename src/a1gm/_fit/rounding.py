"""Fills that look like the numbers beside them: rounded where that is asked for."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, TypeAlias

import numpy as np

from a1gm._base.types import Bools, Floats
from a1gm._fit.fill import Values
from a1gm._rows import AnyRows, SparseRows
from a1gm.exceptions import ParameterError

#: Digits after the point, or ``"auto"``: whole numbers in columns of whole numbers.
Rounding: TypeAlias = Literal["auto"] | int | None


MOST_DIGITS = 17


def check_rounding(how: Any) -> None:
    """Raise unless ``round`` is None, ``"auto"`` or a number of digits."""
    is_number = isinstance(how, Integral) and not isinstance(how, bool)
    if how is not None and how != "auto" and not is_number:
        raise ParameterError(
            f'round must be None, "auto" or a whole number of digits, got {how!r}.'
        )
    if is_number and abs(how) > MOST_DIGITS:
        raise ParameterError(
            f"round must be between -{MOST_DIGITS} and {MOST_DIGITS}, got {how}: a "
            "float64 has no more digits."
        )


def rounded(values: Floats, is_whole: Bools | bool, how: Rounding) -> Floats:
    """Round values; ``is_whole`` tells which are of columns of whole numbers."""
    if how is None:
        return values
    if how != "auto":
        return np.round(values, int(how))
    return np.where(is_whole, np.round(values), values)


def values_rounded(values: Values, source: AnyRows, how: Rounding) -> Values:
    """Return a function that gives the values of cells, rounded."""
    is_whole = (
        _whole_columns(source) if how == "auto" else np.zeros(source.n_cols, bool)
    )
    return lambda rows, cols: rounded(values(rows, cols), is_whole[cols], how)


def _whole_columns(source: AnyRows) -> Bools:
    """Columns whose known cells are all whole."""
    whole = np.ones(source.n_cols, bool)
    if isinstance(source, SparseRows):
        known = source.values[~source.missing]
        whole[source.cols[~source.missing][known != np.floor(known)]] = False
        return whole
    for _, piece in source.blocks():
        whole &= ((piece == np.floor(piece)) | np.isnan(piece)).all(axis=0)
    return whole
