"""The call for a long table that was given as a wide one."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from a1gm._base.types import Floats
from a1gm.exceptions import Call, Option, Text

MOST_KEYS = 3
MOST_TRIED = 6  # columns that are tried as keys
REPEATS = 1.3  # how often a key comes, at least, on average
FEWEST_ROWS, MANY_ROWS = 12, 50


def hint_if_long(frame: Any, not_numbers: list[Any]) -> Text:
    """The call that fits a frame that looks long; empty for any other frame.

    A long frame has few columns, among them a key that repeats: two columns that are no
    numbers and one or two that are, or one key of numbers beside one that is not.
    """
    numbers = [name for name in frame.columns if name not in not_numbers]
    if not (1 <= len(not_numbers) <= MOST_KEYS and 1 <= len(numbers) <= 2):
        return ()
    keys = not_numbers
    if len(keys) == 1:
        keys = [*keys, *numbers[:-1]]
    if len(keys) < 2 or len(frame) < 3:
        return ()
    if not any(frame.get_column(key).n_unique() < len(frame) for key in keys):
        return ()
    value = next(name for name in reversed(numbers) if name not in keys)
    call = call_for_keys("X", frame, keys, value)
    return " If it has one row per cell, fit it with ", call, "."


def call_for_keys(name: str, frame: Any, keys: list[Any], value: Any) -> Call:
    """The call for columns that may be keys: by two, or by groups, none of them twice.

    ``frame``, which narwhals has opened, may be the first rows of the table.
    """
    counts = {key: len(frame.unique(subset=[key])) for key in keys}
    repeated = [key for key in keys if counts[key] < len(frame)]
    few = (repeated if len(repeated) >= 2 else keys)[:MOST_TRIED]
    for n in (2, 3):
        for some in combinations(few, n):
            if len(few) > 2 and len(frame.unique(subset=list(some))) == len(frame):
                by = min(some, key=counts.__getitem__) if n == 3 else None
                return long_call(name, [key for key in some if key != by], value, by)
    return long_call(name, few[:2], value)


def long_call(frame: str, keys: list[Any], value: Any, by: Any = None) -> Call:
    """The call that fits a long table; the command line writes it as its option."""
    options = Option("keys", keys), Option("value", value)
    if by is not None:
        return Call("fit_groups", frame, (Option("by", by), *options))
    return Call("fit_long", frame, options)


def looks_long(values: Floats) -> bool:
    """Whether the first two of a few columns are likely to be keys.

    They hold whole numbers that repeat, and no pair of them is there twice. Counts of
    a few rows may do so by chance; keys of a few rows have most of all pairs.
    """
    n_rows, keys = len(values), values[:, :2]
    if n_rows < FEWEST_ROWS or (keys != np.floor(keys)).any():
        return False
    n_rows_of, n_cols_of = (len(np.unique(key)) for key in keys.T)
    if n_rows < MANY_ROWS and 2 * n_rows < n_rows_of * n_cols_of:
        return False
    most = max(n_rows_of, n_cols_of)
    return bool(REPEATS * most <= n_rows == len(np.unique(keys, axis=0)))
