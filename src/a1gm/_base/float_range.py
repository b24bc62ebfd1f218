"""Arithmetic that leaves the range of float64 only when the answer does."""

from __future__ import annotations

from typing import Any

import numpy as np

from a1gm._base.types import Floats
from a1gm.exceptions import NotRepresentableError

__all__ = ["LEAST", "product", "raise_rows"]

LEAST = float(np.finfo(np.float64).tiny)  # below it digits are lost
FURTHEST = 1 << 14  # no sum of a few exponents of float64 is further from 0


def product(*factors: Any, over: Any = 1.0, exponent: Any = 0) -> Floats:
    """Multiply, divide by ``over`` and times 2**exponent, rounding once at the end.

    What is divided by 0 is infinite, or NaN where it is 0 itself.
    """
    mantissa: Any = 1.0
    power: Any = np.asarray(exponent, np.int64)
    for factor in factors:
        m, e = np.frexp(factor)
        mantissa, power = mantissa * m, power + e
    m, e = np.frexp(over)
    with np.errstate(divide="ignore", invalid="ignore"):
        mantissa, power = mantissa / m, power - e
    with np.errstate(over="ignore", under="ignore"):
        numbers: Floats = np.ldexp(
            mantissa, np.clip(power, -FURTHEST, FURTHEST).astype(np.int32)
        )
    return numbers


def raise_rows(row_factor: Floats, exponent: int) -> Floats:
    """Undo the power of two that an observation was scaled by."""
    if not exponent:
        return row_factor
    with np.errstate(over="ignore"):
        raised: Floats = np.ldexp(row_factor, exponent)
    if np.isinf(raised).any():
        raise NotRepresentableError(
            "The total of a row of the fitted table is above the largest float64 "
            "(1.8e308). Divide the data by a power of ten first."
        )
    return raised
