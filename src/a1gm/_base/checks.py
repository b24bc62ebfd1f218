"""Checks of keywords, and of values that were read from a file."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import numpy as np


def check_keywords(
    function: str, names: Iterable[str], allowed: Container[str] | None
) -> None:
    """Raise TypeError, as Python does, for keywords that a function does not take."""
    for name in names:
        if name not in (allowed or ()):
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def need(owner: str, holds: Any, what: str) -> None:
    """Raise ValueError unless the condition ``holds`` for a value that was read."""
    if not holds:
        raise ValueError(f"{what} is not valid for {owner}")


def is_array(value: Any, dtype: str, shape: tuple[int, ...]) -> bool:
    """Whether a value is an array of this type and shape."""
    is_right = isinstance(value, np.ndarray) and value.dtype == np.dtype(dtype)
    return is_right and value.shape == shape


def is_count(value: Any, least: int = 0, most: int = 2**62) -> bool:
    """Whether a value is a whole number from ``least`` up, below ``most``."""
    return type(value) is int and least <= value < most
