"""Checks of values that were read from a file."""

from __future__ import annotations

from typing import Any

import numpy as np


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
