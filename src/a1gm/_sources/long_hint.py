"""The call for a long table that was given as a wide one."""

from __future__ import annotations

from typing import Any

from a1gm.exceptions import DimensionError

__all__ = ["check_no_long_series", "hint_if_long"]

MOST_KEYS = 3


def hint_if_long(frame: Any, not_numbers: list[Any]) -> str:
    """The call that fits a frame that looks long; empty for any other frame.

    A long frame has few columns, among them a key that repeats: two columns that are no
    numbers and one or two that are, or one key of numbers beside one that is not.
    """
    numbers = [name for name in frame.columns if name not in not_numbers]
    if not (1 <= len(not_numbers) <= MOST_KEYS and 1 <= len(numbers) <= 2):
        return ""
    keys = not_numbers[:2]
    if len(keys) == 1:
        keys = [*keys, *numbers[:-1]]
    if len(keys) < 2 or len(frame) < 3:
        return ""
    if not any(frame.get_column(key).n_unique() < len(frame) for key in keys):
        return ""
    value = next(name for name in reversed(numbers) if name not in keys)
    return (
        " If it has one row per cell, fit it with "
        f"a1gm.fit_long(X, keys={keys!r}, value={value!r})."
    )


def check_no_long_series(X: Any, name: str) -> None:
    """Raise for a Series with two levels, with the call that fits it."""
    if getattr(getattr(X, "index", None), "nlevels", 1) == 2:
        raise DimensionError(
            f"Expected 2D array, got 1D array instead: {name} is a Series with two "
            f"levels, a long table. Fit it with a1gm.fit_long({name})."
        )
