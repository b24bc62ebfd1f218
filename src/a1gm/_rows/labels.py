"""Names of rows and columns: what messages call them, and whether tables agree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from numbers import Number
from typing import Any

import numpy as np

from a1gm._base.words import MOST_NAMED, did_you_mean, listed, named
from a1gm.exceptions import A1gmError, LabelError, ParameterError, Text

MIDNIGHT = " 00:00:00"


@dataclass(frozen=True, kw_only=True)
class Names:
    """What messages call rows, columns and cells: by labels, or by places from 0."""

    row_labels: Any = None
    col_labels: Any = None

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


def names_in(given: Any) -> tuple[Any, ...]:
    """Names that an option was given: one, or a list, Index, array or Series of them.

    Examples
    --------
    >>> names_in("sales"), names_in(["a", "b"]), names_in(None)
    (('sales',), ('a', 'b'), ())
    """
    if given is None:
        return ()
    is_one = isinstance(given, str | bytes) or not isinstance(given, Iterable)
    return (given,) if is_one else tuple(given)


def check_there(
    what: str,
    names: Iterable[Any],
    known: Sequence[Any],
    error: type[A1gmError] = ParameterError,
    asked: Text = "",
) -> None:
    """Raise for columns that a frame or a file lacks; ``asked`` says who asks."""
    own = set(known)
    for name in names:
        if name not in own:
            columns = listed([repr(one) for one in known[:10]], 10, len(known))
            raise error(
                f"{what} has no column {name!r}",
                asked,
                f". Its columns are: {columns}.{did_you_mean(name, known)}",
            )


def first_difference(labels: Any, others: Any) -> int | None:
    """First place where two lists of names differ; None when they cannot or do not."""
    if labels is None or others is None or labels is others:
        return None
    if isinstance(labels, tuple) and isinstance(others, tuple) and labels == others:
        return None
    equals = getattr(labels, "equals", None)
    if equals is not None and type(labels) is type(others) and equals(others):
        return None
    some, rest = list(labels), list(others)
    with suppress(TypeError, ValueError):  # pd.NA equals nothing
        if some == rest:
            return None
    if _only_count(some, rest) or _only_count(rest, some):
        return None
    for at, (label, other) in enumerate(zip(some, rest, strict=True)):
        # A saved fit keeps names other than numbers as text.
        if label is other or plain_text(label) == plain_text(other):
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
    """Write a name the way its owner would type it."""
    if isinstance(label, tuple):  # of a pandas MultiIndex
        return f"({', '.join(map(text_of_label, label))})"
    return repr(str(label)) if isinstance(label, str) else plain_text(label)


def plain_text(label: Any) -> str:
    """Write a name without quotes, the same for all types that mean the same.

    Days are written as days, whatever type holds them, and whole numbers as such: a
    saved fit, which keeps other names than numbers as text, knows them again.

    Examples
    --------
    >>> import datetime
    >>> plain_text(datetime.datetime(2024, 5, 1)), plain_text(2024.0), plain_text("a")
    ('2024-05-01', '2024', 'a')
    """
    if isinstance(label, str):
        return label
    if isinstance(label, tuple):
        return f"({', '.join(map(plain_text, label))})"
    if isinstance(label, float | np.floating) and float(label).is_integer():
        return str(int(label))
    if isinstance(label, np.datetime64 | np.timedelta64):  # not to numbers, as [ns] is
        label = label.astype(f"{label.dtype.kind}8[us]").item()
    if type(label) is timedelta:  # as pandas writes it
        rest = str(label - timedelta(label.days))
        return f"{label.days} days {'0' if rest[1] == ':' else ''}{rest}"
    text = str(label)
    return text.removesuffix(MIDNIGHT) if isinstance(label, date) else text
