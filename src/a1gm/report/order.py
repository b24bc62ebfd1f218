"""Whether names of rows or columns have an order: numbers, dates, spans of time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

__all__ = ["are_ordered"]

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_TIME = r"(?:y|m|d|w|q|h|t|year|month|day|week|quarter|hour|dev|lag|age)"
_ORDERED = (
    re.compile(r"(-?\d+(?:\.\d+)?)"),  # 12, 2.5, 2024
    re.compile(
        r"(\d{4})[-/. ]?[mqw]?(\d{1,2})(?:[-/.](\d{1,2})(?:[T ].*)?)?", re.IGNORECASE
    ),
    re.compile(rf"{_TIME}[ ._-]?(\d+)", re.IGNORECASE),  # month 3, Q2, dev_12
    re.compile(rf"(\d+)[ ._-]?{_TIME}s?", re.IGNORECASE),  # 12 months
)


def are_ordered(names: Sequence[str]) -> bool:
    """Whether names are numbers, dates or spans of time that ascend.

    Examples
    --------
    >>> are_ordered(["2023-11", "2023-12", "2024-01"]), are_ordered(["S1", "S2", "S3"])
    (True, False)
    """
    if len(names) < 3:
        return False
    months = [
        month
        for name in names
        for month, full in enumerate(_MONTHS)
        if len(name) > 2 and full.startswith(name.lower())
    ]
    found: list[list[Any]] = [months]
    for rule in _ORDERED:
        matches = [rule.fullmatch(name.strip()) for name in names]
        groups = [filter(None, match.groups()) for match in matches if match]
        found.append([tuple(map(float, group)) for group in groups])
    return any(
        len(some) == len(names) and all(a < b for a, b in pairwise(some))
        for some in found
    )
