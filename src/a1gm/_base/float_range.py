"""Arithmetic that leaves the range of float64 only when the answer does.

Where a product or a quotient may, numbers are kept as `Wide`: mantissa and power of two
apart. Ordinary tables never are: plain arrays stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from a1gm._base.types import Bools, Floats, Ints, SmallInts
from a1gm.exceptions import NotRepresentableError

LEAST = float(np.finfo(np.float64).tiny)  # below it digits are lost
FURTHEST = 1 << 14  # no float64 is further from 1 than this power of two
TOO_FAR_APART = (
    "Some sums of this table are above the largest float64 (1.8e308), and others so "
    "near to the smallest (about 1e-308) that no power of two brings all of them into "
    "range. Multiply rows or columns by powers of ten first."
)


@dataclass(frozen=True, slots=True)
class Wide:
    """Numbers of any size, ``mantissa * 2**exponent``; a mantissa is in [0.5, 1)."""

    mantissa: Floats
    exponent: Ints

    def __len__(self) -> int:
        return len(self.mantissa)

    def __getitem__(self, at: Any) -> Wide:
        return Wide(self.mantissa[at], self.exponent[at])


Numbers: TypeAlias = Floats | Wide


def wide(x: Any) -> Wide:
    """Mantissa and exponent apart, if they are not yet."""
    return x if isinstance(x, Wide) else _normal(x, 0)


def joined(mantissa: Floats, exponent: Ints | None) -> Numbers:
    """Numbers whose exponents are kept beside them where they need it."""
    return mantissa if exponent is None else Wide(mantissa, exponent)


def mantissas(x: Numbers) -> Floats:
    """Numbers that are 0, NaN or below zero where those of x are."""
    return x.mantissa if isinstance(x, Wide) else x


def narrow(x: Numbers) -> Floats:
    """Round to float64: 0 or infinite where that has no such number."""
    if not isinstance(x, Wide):
        return x
    return _ldexp(x.mantissa, x.exponent)


def keeps_digits(x: Floats) -> Bools:
    """Which numbers are 0, NaN, or where float64 has all its digits."""
    size = np.abs(x)
    kept: Bools = np.isnan(x) | (size == 0.0) | ((size >= LEAST) & (size < np.inf))
    return kept


def narrow_if_exact(x: Wide) -> Numbers:
    """Plain numbers if none of them loses a digit."""
    plain = narrow(x)
    exact = keeps_digits(plain) & ((plain == 0.0) == (x.mantissa == 0.0))
    return plain if exact.all() else x


def check_narrow(x: Numbers, line: str, first: int = 0) -> Floats:
    """Round factors to float64; raise if the factor of a ``line`` has none."""
    if not isinstance(x, Wide):
        return x
    plain = narrow(x)
    lost = np.isinf(plain) | ((plain == 0.0) & (x.mantissa != 0.0))
    if lost.any():
        at = int(lost.argmax())
        power = float(log2_of(x[at])) * math.log10(2.0)
        raise NotRepresentableError(
            f"The factor of {line} {first + at} is about 1e{power:+.0f}, outside the "
            "range of float64 (about 1e-308 to 1e308), so the factors of the "
            f"{line}s cannot be read. impute, reconstruct and divergence work without "
            "them; or multiply rows or columns by powers of ten and fit again."
        )
    return plain


def check_cells(fitted: Floats) -> None:
    """Raise for a cell above the largest float64."""
    if np.isinf(fitted).any():
        raise NotRepresentableError(
            "The value of a cell is above the largest float64 (1.8e308). Divide the "
            "rows by a power of ten first."
        )


def concatenated(parts: Sequence[Numbers]) -> Numbers:
    """Put numbers one after the other."""
    if not any(isinstance(part, Wide) for part in parts):
        return np.concatenate([mantissas(part) for part in parts])
    both = [wide(part) for part in parts]
    return Wide(
        np.concatenate([part.mantissa for part in both]),
        np.concatenate([part.exponent for part in both]),
    )


def product(*factors: Any, over: Any = 1.0, exponent: Any = 0) -> Floats:
    """Multiply, divide by ``over`` and times 2**exponent, rounding once at the end.

    What is divided by 0 is infinite, or NaN where it is 0 itself.
    """
    return _ldexp(*_multiplied(factors, over, exponent))


def wide_product(*factors: Any, over: Any = 1.0, exponent: Any = 0) -> Wide:
    """Do as ``product``, for answers that float64 may not have."""
    return _normal(*_multiplied(factors, over, exponent))


def shifted(x: Floats, shift: int | Ints) -> Floats:
    """Multiply sums by 2**shift; raise where digits would be lost."""
    if isinstance(shift, int) and shift == 0:
        return x
    moved = _ldexp(x, shift)
    if (_ldexp(moved, -np.asarray(shift)) != x).any():
        raise NotRepresentableError(TOO_FAR_APART)
    return moved


def sum_groups(x: Numbers, place: Ints | SmallInts, n: int) -> Wide:
    """Sum the numbers that share a place, each group at its own power of two."""
    x = wide(x)
    top = np.full(n, -(2**62))
    some = x.mantissa != 0.0
    np.maximum.at(top, place[some], x.exponent[some])
    top[top == -(2**62)] = 0
    shifted = _ldexp(x.mantissa, x.exponent - top[place])
    sums = np.bincount(place, shifted, minlength=n).astype(np.float64)
    return _normal(sums, top)


def log2_of(x: Numbers) -> Floats:
    """Binary logarithm; -inf for 0."""
    x = wide(x)
    with np.errstate(divide="ignore"):
        logarithm: Floats = np.log2(x.mantissa) + x.exponent
    return logarithm


def _multiplied(factors: Any, over: Any, exponent: Any) -> tuple[Any, Any]:
    """Mantissa, as the products and quotients give it, and exponent."""
    mantissa: Any = 1.0
    power: Any = np.asarray(exponent, np.int64)
    for factor in map(wide, factors):
        mantissa, power = mantissa * factor.mantissa, power + factor.exponent
    over = wide(over)
    with np.errstate(divide="ignore", invalid="ignore"):
        return mantissa / over.mantissa, power - over.exponent


def _normal(x: Any, exponent: Any) -> Wide:
    mantissa, shift = np.frexp(x)
    return Wide(mantissa, shift.astype(np.int64) + exponent)


def _ldexp(x: Any, exponent: Any) -> Floats:
    within = np.clip(exponent, -FURTHEST, FURTHEST).astype(np.int32)
    with np.errstate(over="ignore", under="ignore"):
        numbers: Floats = np.ldexp(x, within)
    return numbers
