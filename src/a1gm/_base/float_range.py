"""Products and sums that leave the range of float64 only when the answer does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np

from a1gm._base.types import AnyArray, Bools, Floats
from a1gm.exceptions import NotRepresentableError

Side: TypeAlias = Literal["row", "column"]

LARGEST = 1e140  # of the numbers and sums that are fitted
SMALLEST = 1e-140  # of the positive sums
LEAST = float(np.finfo(np.float64).tiny)  # below it digits are lost


def check_range(
    numbers: Floats, name: Callable[[int], str], side: Side | None = None
) -> None:
    """Raise where squares would leave float64: above 1e140, or below 1e-140 but not 0.

    The one refusal of cells, sums, weights and totals that are too large or too small.

    Parameters
    ----------
    numbers : ndarray of shape (n,)
        Sums, or cells that may be large; NaN is no number.
    name : callable
        Writes what the number at a position belongs to: "Row 3".
    side : {"row", "column"}, optional
        Field of the error that has the position.
    """
    size = np.abs(numbers).ravel()
    is_out = (size > LARGEST) | ((size < SMALLEST) & (size > 0.0))
    if not is_out.any():
        return
    at = int(is_out.argmax())
    number = np.ravel(numbers)[at]
    raise NotRepresentableError(
        f"A cell or a sum is {number:.3g}. Cells and sums above {LARGEST:.0e} "
        f"and positive sums below {SMALLEST:.0e} are not fitted, because their squares "
        "leave the range of float64.",
        advice="Multiply the table by a power of ten first.",
        where=name(at),
        row=at if side == "row" else None,
        column=at if side == "column" else None,
    )


def float_of(number: Any) -> float:
    """A number as a float; an integer above all floats is infinite."""
    try:
        return float(number)
    except OverflowError:
        return np.inf


def keeps_digits(x: Floats) -> Bools:
    """Which numbers are 0, NaN, or where float64 has all its digits."""
    size = np.abs(x)
    kept: Bools = np.isnan(x) | (size == 0.0) | ((size >= LEAST) & (size < np.inf))
    return kept


def out_of_range(line: str, number: int | None = None) -> NotRepresentableError:
    """Return the error for the factor of a row or column without a float64."""
    which = f"a {line}" if number is None else f"{line} {number}"
    return NotRepresentableError(
        f"The factor of {which} is outside the range of float64 (about 1e-308 to "
        "1e308). Multiply rows or columns by powers of ten that bring the cells closer "
        "together, or leave out extreme ones."
    )


def check_rows(factor: Floats, sums: Floats, first: int = 0) -> None:
    """Raise if the factor of a row is infinite, or 0 though its sum is not.

    Below 1e-308 it has fewer digits. The factors of columns are at most 1, so fills are
    right to the last bit of such a number all the same.
    """
    lost = np.isinf(factor) | ((factor == 0.0) & (sums != 0.0))
    if lost.any():
        raise out_of_range("row", first + int(lost.argmax()))


def check_cells(fitted: Floats) -> None:
    """Raise for a cell above the largest float64."""
    if np.isinf(fitted).any():
        raise NotRepresentableError(
            "The value of a cell is above the largest float64 (1.8e308). Divide the "
            "rows by a power of ten first."
        )


def as_float32(cells: Floats, where: Callable[..., str]) -> AnyArray:
    """Cast to float32; ``where`` names a cell above its range by its position."""
    with np.errstate(over="ignore"):
        found = cells.astype(np.float32)
    lost = np.isinf(found) & np.isfinite(cells)
    if lost.any():
        at = tuple(np.argwhere(lost)[0].tolist())
        raise NotRepresentableError(
            f"The value of {where(*at)} is {cells[at]:.3g}, above the largest float32 "
            "(3.4e38). Convert the table to float64 first."
        )
    return found


def product(*factors: Any, over: Any = 1.0) -> Floats:
    """Multiply, and divide by ``over``, rounding once at the end.

    What is divided by 0 is infinite, or NaN where it is 0 itself.
    """
    mantissa: Any = 1.0
    power: Any = 0
    with np.errstate(all="ignore"):
        for factor in factors:
            own, shift = np.frexp(factor)
            mantissa = mantissa * own
            power = power + shift
        own, shift = np.frexp(over)
        numbers: Floats = np.ldexp(mantissa / own, power - shift)
    return numbers
