"""Totals as whole numbers, so that what is possible is decided exactly.

Totals that are decimals are counted in their last digit: 0.1 + 0.2 against 0.3 decides
between a table that exists and one that does not. Others are whole multiples of a power
of two, and may be off by their rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from a1gm._base.types import AnyArray, Floats, Ints
from a1gm._rows.seed import Cells
from a1gm.exceptions import NotRepresentableError

WHOLE = 1e-14  # relative: decimals that were added up are that near
MOST_DECIMAL, MOST_WHOLE = 1e12, 2.0**53
MOST_DIGITS = 25
ROUNDING = 2.0**-46  # relative: what the sum of a line of a table may be off by
SCALED = 1e-10  # the same, where its cells are known: they may have been scaled


@dataclass(frozen=True)
class Units:
    """What rows and columns still need, in units; None where it is not known.

    ``row_error`` and ``col_error`` are what rounding may have changed, 0 for decimals.
    One is ``num / den`` units.
    """

    rows: list[int | None]
    cols: list[int | None]
    row_error: list[int]
    col_error: list[int]
    num: int = 1
    den: int = 1

    @property
    def is_exact(self) -> bool:
        """Whether no total was rounded."""
        return not any(self.row_error) and not any(self.col_error)

    def floats(self, units: AnyArray | list[int]) -> Floats:
        """Numbers of units in the data's own terms, rounded once."""
        if isinstance(units, np.ndarray) and units.dtype != object and self.den == 1:
            return np.asarray(units / float(self.num))
        try:
            return np.array([int(x) * self.den / self.num for x in units], np.float64)
        except OverflowError as error:
            raise NotRepresentableError(
                "The sum of the totals is outside the range of float64 (up to about "
                "1e308). Divide the totals by a power of ten."
            ) from error


def in_units(totals_of: tuple[Floats, Floats], known: Cells) -> Units:
    """Totals of the rows and columns minus their known cells."""
    (r, c), (i, j, x) = totals_of, known
    digits = _digits(np.concatenate([r, c, x]))
    if digits is not None:
        scale = 10**digits
        cells = np.rint(x * float(scale)).astype(np.int64)
        left: list[list[int | None]] = []
        for totals, places in ((r, i), (c, j)):
            of_known = np.zeros(len(totals), np.int64)
            np.add.at(of_known, places, cells)
            whole = np.rint(np.nan_to_num(totals) * float(scale)).astype(np.int64)
            left.append(_with_unknown(totals, (whole - of_known).tolist()))
        return Units(left[0], left[1], [0] * len(r), [0] * len(c), scale)
    sides = [_less(totals, places, x) for totals, places in ((r, i), (c, j))]
    return _in_powers(*(needs for needs, _ in sides), *(error for _, error in sides))


def _less(totals: Floats, places: Ints, x: Floats) -> tuple[Floats, Floats]:
    """Totals minus the cells ``x`` at places, and what they may be off by."""
    if not len(x):
        return totals, ROUNDING * np.nan_to_num(totals)
    order = np.argsort(places, kind="stable")
    ends = np.cumsum(np.bincount(places, minlength=len(totals)))[:-1]
    parts = [part.tolist() for part in np.split(-x[order], ends)]
    needs = np.array(list(map(math.fsum, map(_join, totals.tolist(), parts))))
    sums = np.array([-math.fsum(part) for part in parts])
    share = np.where([bool(part) for part in parts], SCALED, ROUNDING)
    error: Floats = share * np.fmax(totals, sums)
    needs[np.abs(needs) <= error] = 0.0
    return needs, error


def _join(total: float, part: list[float]) -> list[float]:
    return [total, *part]


def _digits(values: Floats) -> int | None:
    """Digits after the point that all values have at most; None if not decimals."""
    values = values[values > 0.0]
    most = values.max(initial=0.0)
    for digits in range(MOST_DIGITS):
        if most * 10.0**digits >= MOST_DECIMAL:
            break
        scaled = values * 10.0**digits
        if (np.abs(scaled - np.rint(scaled)) <= WHOLE * scaled).all():
            return digits
    is_whole = most <= MOST_WHOLE and bool((values == np.rint(values)).all())
    return 0 if is_whole else None


def _with_unknown(totals: Floats, units: list[int]) -> list[int | None]:
    is_known = (~np.isnan(totals)).tolist()
    return [u if known else None for known, u in zip(is_known, units, strict=True)]


def _in_powers(r: Floats, c: Floats, row_error: Floats, col_error: Floats) -> Units:
    """Multiples of a power of two, of which nothing is lost."""
    known = np.nan_to_num(np.concatenate([r, c]))
    exponent = np.frexp(known)[1]
    shift = 53 - int(exponent[known != 0.0].min(initial=0))
    num, den = (2**shift, 1) if shift >= 0 else (1, 2**-shift)
    units, errors = (
        _times_power(x, shift) for x in (known, np.concatenate([row_error, col_error]))
    )
    n = len(r)
    sides = _with_unknown(r, units[:n]), _with_unknown(c, units[n:])
    return Units(*sides, errors[:n], errors[n:], num, den)


def _times_power(x: Floats, shift: int) -> list[int]:
    """Whole parts of x times 2**shift."""
    mantissa, exponent = np.frexp(x)
    whole = np.ldexp(mantissa, 53).astype(np.int64).tolist()
    moves = (exponent + (shift - 53)).tolist()
    return [m << k if k >= 0 else m >> -k for m, k in zip(whole, moves, strict=True)]
