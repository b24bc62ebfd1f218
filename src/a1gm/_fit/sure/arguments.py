"""Arguments of the methods of ``Uncertainty``, and their validation."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np

from a1gm._base.float_range import float_of
from a1gm.exceptions import ParameterError, Part

Axis: TypeAlias = Literal["column", "row"]
By: TypeAlias = Literal["row", "column", "all"]
Which: TypeAlias = Literal["missing", "fitted"]
Dispersion: TypeAlias = Literal["pearson", "deviance", "poisson"] | float


def check_dispersion(dispersion: Any) -> bool:
    """Return whether the dispersion is a number; raise if it is not valid."""
    if dispersion in ("pearson", "deviance", "poisson"):
        return False
    is_number = isinstance(dispersion, int | float) and not isinstance(dispersion, bool)
    if is_number and 0.0 <= float_of(dispersion) < math.inf:
        return True
    raise ParameterError(
        'dispersion must be "pearson", "deviance", "poisson" or a number >= 0, got '
        f"{dispersion!r}."
    )


def check_level(level: Any, name: Part = "level") -> None:
    """Raise unless 0 < level < 1."""
    if not is_share(level):
        raise ParameterError(name, f" must be between 0 and 1, got {level!r}.")


def is_share(value: Any) -> bool:
    """Whether a value is a number between 0 and 1."""
    return isinstance(value, Real) and 0.0 < float_of(value) < 1.0


def generator_of(random_state: Any) -> np.random.Generator:
    """Generator of a ``random_state`` argument."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            "random_state must be None, an integer of at least 0 or a NumPy Generator, "
            f"got {random_state!r}."
        ) from error


def check_totals(by: Any, cells: Any, n: Any = 1) -> None:
    """Raise for unknown totals, and for fewer than one draw of them."""
    if not (isinstance(n, int | np.integer) and n >= 1):
        raise ParameterError(f"n must be a whole number of draws >= 1, got {n!r}.")
    if by not in ("row", "column", "all"):
        raise ParameterError(f'by must be "row", "column" or "all", got {by!r}.')
    if cells not in ("missing", "fitted"):
        raise ParameterError(f'cells must be "missing" or "fitted", got {cells!r}.')
