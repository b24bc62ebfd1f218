"""Whether names of rows or columns have an order: numbers, dates, spans of time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

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
_MONTH = r"(?P<month>[a-z]{3,})\.?"
_DATED = (  # Jan-2023, January 23, 2023 Jan
    re.compile(rf"{_MONTH}[-/ .']*(?P<year>\d{{4}}|\d\d)"),
    re.compile(rf"(?P<year>\d{{4}})[-/ .]*{_MONTH}"),
)
_TIME = r"(?:y|m|d|w|q|h|t|year|month|day|week|quarter|hour|dev|lag|age)"
_ORDERED = (
    re.compile(r"(-?\d+(?:\.\d+)?)"),  # 12, 2.5, 2024
    re.compile(
        r"(\d{4})[-/. ]?[mqw]?(\d{1,2})(?:[-/.](\d{1,2})(?:[T ].*)?)?", re.IGNORECASE
    ),
    re.compile(rf"{_TIME}[ ._-]?(\d+)", re.IGNORECASE),  # month 3, Q2, dev_12
    re.compile(rf"(\d+)[ ._-]?{_TIME}s?", re.IGNORECASE),  # 12 months
)


def are_ordered(names: Sequence[str], *, of_rows: bool = False) -> bool:
    """Whether names are numbers, dates or spans of time that ascend.

    Plain numbers ``of_rows`` are ids, unless they are years.

    Examples
    --------
    >>> are_ordered(["2023-11", "2023-12", "2024-01"]), are_ordered(["S1", "S2", "S3"])
    (True, False)
    """
    if len(names) < 3:
        return False
    found: list[list[Any]] = [[k for name in names for k in _months(name)]]
    for dated in _DATED:
        matches = [dated.fullmatch(name.strip().lower()) for name in names]
        found.append(
            [(int(m["year"]), k) for m in matches if m for k in _months(m["month"])]
        )
    for rule in _ORDERED:
        matches = [rule.fullmatch(name.strip()) for name in names]
        groups = [filter(None, match.groups()) for match in matches if match]
        found.append([tuple(map(float, group)) for group in groups])
        if of_rows and rule is _ORDERED[0]:
            found[-1] = [x for x in found[-1] if x[0] in range(1800, 2201)]
    return any(
        len(some) == len(names) and all(a < b for a, b in pairwise(some))
        for some in found
    )


def _months(name: str) -> list[int]:
    """Which month it is, short or in full: one number or none."""
    return [
        month
        for month, full in enumerate(_MONTHS)
        if len(name) > 2 and full.startswith(name.lower())
    ]
