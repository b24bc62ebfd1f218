"""Names of rows and columns: what messages call them, and whether tables agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any, Protocol

import numpy as np

from a1gm.exceptions import LabelError

__all__ = [
    "LabelNames",
    "Names",
    "check_same_labels",
    "first_difference",
    "text_of_label",
]


class Names(Protocol):
    """What messages call the rows, columns and cells of a table."""

    @property
    def see(self) -> str:
        """Where the cells are listed that cannot be known."""

    def rows(self, places: Sequence[int]) -> str:
        """Name some rows."""

    def columns(self, places: Sequence[int]) -> str:
        """Name some columns."""

    def cell(self, row: int, col: int) -> str:
        """Name a cell."""


@dataclass(frozen=True)
class LabelNames:
    """Names as the user of the library knows them: labels, or places from 0."""

    row_labels: Any = None
    col_labels: Any = None
    see: str = "see fit.undetermined"

    def rows(self, places: Sequence[int]) -> str:
        """Name some rows."""
        return _listed("row", self.row_labels, places)

    def columns(self, places: Sequence[int]) -> str:
        """Name some columns."""
        return _listed("column", self.col_labels, places)

    def cell(self, row: int, col: int) -> str:
        """Name a cell."""
        return f"({_text(self.row_labels, row)}, {_text(self.col_labels, col)})"


def _listed(noun: str, labels: Any, places: Sequence[int]) -> str:
    names = ", ".join(_text(labels, place) for place in places)
    return f"{noun}{'s' if len(places) > 1 else ''} {names}"


def _text(labels: Any, place: int) -> str:
    return str(place) if labels is None else text_of_label(labels[place])


def check_same_labels(side: str, labels: Any, others: Any, name: str, of: str) -> None:
    """Refuse names that are not those of the other table, place by place.

    Parameters
    ----------
    side : {"row", "column"}
        What the names are of.
    labels, others : sequence or None
        The names that were given, and the ones they must equal; None is no names.
    name, of : str
        What the message calls the owners of the two.
    """
    at = first_difference(labels, others)
    if at is not None:
        msg = (
            f"The {side}s of {name} are not those of {of}: {side} {at} is "
            f"{text_of_label(labels[at])} in {name} and {text_of_label(others[at])} in "
            f"{of}. Put them in the same order, or pass an array without names."
        )
        raise LabelError(msg)


def first_difference(labels: Any, others: Any) -> int | None:
    """First place where two lists of names differ; None when they cannot or do not."""
    if labels is None or others is None or labels is others:
        return None
    equals = getattr(labels, "equals", None)
    if equals is not None and type(labels) is type(others) and equals(others):
        return None
    some, rest = list(labels), list(others)
    if _only_count(some, rest) or _only_count(rest, some):
        return None
    for at, (label, other) in enumerate(zip(some, rest, strict=True)):
        # A saved fit keeps the text of a name that is no number.
        if label is other or str(label) == str(other):
            continue
        both_numbers = isinstance(label, Number) and isinstance(other, Number)
        if not (both_numbers and label == other):
            return at
    return None


def _only_count(labels: list[Any], others: list[Any]) -> bool:
    """Whether names are 0, 1, 2, ... and the others not these in another order."""
    numbers = list(range(len(labels)))
    if not np.array_equal(np.array(labels, dtype=object), numbers):
        return False
    return {str(label) for label in others} != {str(number) for number in numbers}


def text_of_label(label: Any) -> str:
    """Write a name the way its owner would."""
    return repr(label.item() if isinstance(label, np.generic) else label)
