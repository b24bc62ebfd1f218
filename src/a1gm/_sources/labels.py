"""Names of rows and columns: what messages call them, and whether tables agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Number
from typing import Any

import numpy as np

from a1gm._base.types import Ints
from a1gm._base.words import MOST_NAMED, counted, listed, named
from a1gm.exceptions import LabelError, NoSuchCellError

__all__ = [
    "Names",
    "check_same_labels",
    "find_places",
    "first_difference",
    "text_of_label",
]


@dataclass(frozen=True, kw_only=True)
class Names:
    """What messages call rows, columns and cells: by labels, or by places from 0.

    ``see`` tells where the cells are listed that cannot be known.
    """

    row_labels: Any = None
    col_labels: Any = None
    see: str = "see fit.undetermined"

    def rows(self, places: Sequence[int], total: int) -> str:
        """Name the first of some rows, with their noun; empty for none."""
        names = [_name(self.row_labels, place) for place in places[:MOST_NAMED]]
        return named("row", names, total)

    def columns(self, places: Sequence[int], total: int) -> str:
        """Name the first of some columns, with their noun; empty for none."""
        names = [_name(self.col_labels, place) for place in places[:MOST_NAMED]]
        return named("column", names, total)

    def cell(self, row: int, col: int) -> str:
        """Name a cell."""
        return f"({_name(self.row_labels, row)}, {_name(self.col_labels, col)})"


def _name(labels: Any, place: int) -> str:
    return str(place) if labels is None else text_of_label(labels[place])


def check_same_labels(side: str, labels: Any, others: Any, name: str, of: str) -> None:
    """Raise unless names are those of the other table, place by place.

    Parameters
    ----------
    side : {"row", "column"}
        What the names are of.
    labels, others : sequence or None
        The names that were given, and the ones they must equal; None without names.
    name, of : str
        What the message calls the owners of the two.
    """
    at = first_difference(labels, others)
    if at is not None:
        raise LabelError(
            f"The {side}s of {name} are not those of {of}: {side} {at} is "
            f"{text_of_label(labels[at])} in {name} and {text_of_label(others[at])} in "
            f"{of}. Put them in the same order, or pass an array without names."
        )


def first_difference(labels: Any, others: Any) -> int | None:
    """First place where two lists of names differ; None when they cannot or do not."""
    if labels is None or others is None or labels is others:
        return None
    if type(labels) is type(others) is tuple and labels == others:
        return None
    equals = getattr(labels, "equals", None)
    if equals is not None and type(labels) is type(others) and equals(others):
        return None
    some, rest = list(labels), list(others)
    if _only_count(some, rest) or _only_count(rest, some):
        return None
    for at, (label, other) in enumerate(zip(some, rest, strict=True)):
        # A saved fit keeps names other than numbers as text.
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


def find_places(side: str, given: Any, labels: Any, n: int) -> Ints:
    """Places of the rows or columns that a user names, counted from 0.

    Parameters
    ----------
    side : {"row", "column"}
        What is asked for.
    given : int, name, or array of these
        Whole numbers are places, from the end when negative; anything else is a name.
    labels : sequence or None
        The names; None if there are none.
    n : int
        How many rows or columns there are.

    Returns
    -------
    ndarray of int
        Of the shape of ``given``.

    Raises
    ------
    NoSuchCellError
        There is no such row or column, or more than one.
    """
    if not _is_many(given):
        return np.array(_find_place(side, given, labels, n), np.int64)
    places = np.asarray(given)
    if places.dtype.kind not in "iu":
        names = np.array(given, dtype=object)
        found = [_find_place(side, name, labels, n) for name in names.ravel()]
        return np.array(found, np.int64).reshape(names.shape)
    outside = (places >= n) | (places < -n)
    if outside.any():
        _refuse_number(side, places[outside].flat[0], n)
    inside = places.astype(np.int64)  # small integers cannot hold the sum below
    return np.where(inside < 0, inside + n, inside)


def _is_many(given: Any) -> bool:
    # A tuple is the name of a row of a pandas MultiIndex, not an array.
    is_array = hasattr(given, "__array__") and np.ndim(given) > 0
    return is_array or isinstance(given, list | range)


def _find_place(side: str, given: Any, labels: Any, n: int) -> int:
    is_bool = isinstance(given, bool)
    if isinstance(given, Integral) and not is_bool:
        if not -n <= int(given) < n:
            _refuse_number(side, given, n)
        return int(given) % n
    name = text_of_label(given)
    if labels is None:
        raise NoSuchCellError(
            f"There is no {side} {name}: the {side}s of this fit have no names. Give a "
            f"whole number from 0 to {n - 1}."
        )
    # A saved fit keeps names other than numbers as text.
    found = [k for k, label in enumerate(labels) if str(label) == str(given)]
    if len(found) != 1:
        what = f"{len(found):,} {side}s are" if found else f"No {side} is"
        which = f" ({listed(found)})" if found else ""
        raise NoSuchCellError(
            f"{what} called {name}{which}. Give a name that fit.{_ATTRIBUTE[side]} has "
            f"once, or a whole number from 0 to {n - 1}."
        )
    return found[0]


_ATTRIBUTE = {"row": "row_labels", "column": "col_labels"}


def _refuse_number(side: str, number: Any, n: int) -> None:
    raise NoSuchCellError(
        f"There is no {side} {int(number)}: the fit has {counted(n, side)}. Give a "
        f"whole number from 0 to {n - 1}, or from {-n} to -1 to count from the end."
    )


def text_of_label(label: Any) -> str:
    """Write a name the way its owner would."""
    return repr(label.item() if isinstance(label, np.generic) else label)
