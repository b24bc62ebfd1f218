"""Single numbers of any size, the twin of the kernel's `Wide`."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from a1gm._base.float_range import LEAST
from a1gm._base.types import Floats, Ints


class Big:
    """``mantissa * 2**exponent``; the mantissa is 0, NaN or within [0.5, 1)."""

    __slots__ = ("exponent", "mantissa")

    def __init__(self, x: float, exponent: int = 0) -> None:
        self.mantissa, shift = math.frexp(x)
        self.exponent = exponent + shift

    def __mul__(self, other: Big) -> Big:
        return Big(self.mantissa * other.mantissa, self.exponent + other.exponent)

    def __truediv__(self, other: Big) -> Big:
        quotient = np.float64(self.mantissa) / other.mantissa  # 0 divides without error
        return Big(quotient, self.exponent - other.exponent)


def apart(numbers: Iterable[Big]) -> tuple[Floats, Ints]:
    """Mantissas and exponents as two arrays."""
    found = list(numbers)
    return (
        np.array([x.mantissa for x in found], np.float64),
        np.array([x.exponent for x in found], np.int64),
    )


def is_normal(x: float) -> bool:
    """Whether float64 has all digits of a number."""
    return LEAST <= abs(x) < math.inf
