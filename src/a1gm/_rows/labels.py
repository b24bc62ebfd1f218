"""Labels of rows and columns: how messages write them, whether tables agree, lookup."""

from __future__ import annotations

import operator
import re
from calendar import month_name
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from itertools import pairwise
from numbers import Integral, Number
from typing import Any, overload

import numpy as np

from a1gm._base.types import AnyArray, Bools, Ints
from a1gm._base.words import MOST_NAMED, counted, did_you_mean, listed, named
from a1gm.exceptions import A1gmError, LabelError, ParameterError, Text

MIDNIGHT = " 00:00:00"
UNKNOWN, TWICE = -1, -2
_TIME = re.compile(r"(y|m|d|w|q|h|t|year|month|day|week|quarter|hour|dev|lag|age)s?")
_NUMBER = re.compile(r"\s*-?\d+(\.\d+)?\s*")
_WORD = re.compile(r"[^\W\d_]+|\d+(?:\.\d+)?")


# ----------------------------------------------------------------------------- as text
def text_of_label(label: Any) -> str:
    """Format a label as a user would type it."""
    if isinstance(label, tuple):  # of a pandas MultiIndex
        return f"({', '.join(map(text_of_label, label))})"
    return repr(str(label)) if isinstance(label, str) else plain_text(label)


def plain_text(label: Any) -> str:
    """Write a label without quotes, the same for all types that mean the same.

    Days are written as days, whatever type holds them, and whole numbers as such: a
    saved fit, which keeps labels other than numbers as text, knows them again.

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


def label_at(labels: Any, position: int, offset: int = 0) -> str:
    """Write the label at a position, or the position plus an offset without labels."""
    return str(position + offset) if labels is None else text_of_label(labels[position])


# ------------------------------------------------------------------------------ order
def are_ordered(labels: Sequence[Any], *, of_rows: bool = False) -> bool:
    """Whether labels are numbers, dates or spans of time that ascend.

    Plain numbers ``of_rows`` are labels, unless they are years.
    """
    names = [plain_text(label).strip().lower() for label in labels]
    if of_rows and all(map(_NUMBER.fullmatch, names)):
        names = [name for name in names if float(name) in range(1800, 2201)]
    times = pairwise(map(_time_of, names))  # the first that does not ascend ends it
    return len(names) > 2 and all(a and b and a < b for a, b in times)


def follow_in_order(labels: Any) -> bool:
    """Whether columns follow one another, by labels that are not mere positions."""
    return labels is not None and not only_count(labels) and are_ordered(labels)


def _time_of(name: str) -> tuple[float, ...]:
    """The numbers in a name and then its month; nothing if it has other words."""
    if _NUMBER.fullmatch(name):
        return (float(name),)
    numbers, months = [], []
    full_names = [full.lower() for full in month_name]
    for word in _WORD.findall(name):
        month = [k for k, full in enumerate(full_names) if full.startswith(word)]
        if word[0].isdigit():
            numbers.append(float(word))
        elif len(word) > 2 and month:
            months += month
        elif not _TIME.fullmatch(word):
            return ()
    return (*numbers, *months)


@dataclass(frozen=True, kw_only=True)
class Names:
    """What messages call rows, columns and cells: their labels, or positions from 0."""

    row_labels: Any = None
    col_labels: Any = None

    def rows(self, positions: Sequence[int], total: int) -> str:
        """Name the first of some rows, with their noun; empty without rows."""
        names = [label_at(self.row_labels, i) for i in positions[:MOST_NAMED]]
        return named("row", names, total)

    def columns(self, positions: Sequence[int], total: int) -> str:
        """Name the first of some columns, with their noun; empty without columns."""
        names = [label_at(self.col_labels, j) for j in positions[:MOST_NAMED]]
        return named("column", names, total)

    def cell(self, row: int, col: int) -> str:
        """Name a cell."""
        return f"({label_at(self.row_labels, row)}, {label_at(self.col_labels, col)})"


def names_in(given: Any) -> tuple[Any, ...]:
    """Names in the value of an option: one, or a list, Index, array or Series of them.

    Examples
    --------
    >>> names_in("sales"), names_in(["a", "b"]), names_in(None)
    (('sales',), ('a', 'b'), ())
    """
    if given is None:
        return ()
    is_one = isinstance(given, str | bytes) or not isinstance(given, Iterable)
    if isinstance(given, np.ndarray):
        given = given.tolist()  # names of Python
    names = (given,) if is_one else tuple(given)
    if not all(issubclass(kind, Hashable) for kind in set(map(type, names))):
        odd = next(name for name in names if not isinstance(name, Hashable))
        raise ParameterError(f"{odd!r} is not the name of one column.")
    return names


def check_there(
    what: str,
    names: Iterable[Any],
    known: Sequence[Any],
    error: type[A1gmError] = ParameterError,
    why: Text = "",
) -> None:
    """Raise for columns that a frame or a file lacks; ``why`` they are needed."""
    there = set(known)
    for name in names:
        if name not in there:
            columns = listed([repr(one) for one in known[:10]], 10, len(known))
            raise error(
                f"{what} has no column {name!r}",
                why,
                f". Its columns are: {columns}.{did_you_mean(name, known)}",
            )


# ----------------------------------------------------------------- labels of two tables
def check_same_labels(side: str, labels: Any, others: Any, name: str, of: str) -> None:
    """Raise unless labels are those of the other table, position by position.

    ``side`` is "row" or "column", ``name`` and ``of`` are the names of the two tables.
    A table without labels agrees with any other.
    """
    at = first_difference(labels, others)
    if at is not None:
        raise LabelError(
            f"The {side}s of {name} are not those of {of}: {side} {at} is "
            f"{text_of_label(labels[at])} in {name} and {text_of_label(others[at])} in "
            f"{of}. Put them in the same order, or pass an array without names."
        )


def first_difference(labels: Any, others: Any) -> int | None:
    """First position where labels differ; None where they are equal or absent."""
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
    for these, those in ((labels, others), (others, labels)):
        # A default index, and labels that are not the same numbers in another order.
        if only_count(these) and set(map(str, those)) != set(map(str, these)):
            return None
    for at, (label, other) in enumerate(zip(some, rest, strict=True)):
        # A saved fit keeps labels other than numbers as text.
        if label is other or plain_text(label) == plain_text(other):
            continue
        both_numbers = isinstance(label, Number) and isinstance(other, Number)
        if not (both_numbers and label == other):
            return at
    return None


def positions_among(labels: Any, others: Any) -> list[int]:
    """Position among labels of each of the others, by its text; -1 for an unknown."""
    place = {plain_text(label): k for k, label in enumerate(labels)}
    return [place.get(plain_text(other), -1) for other in others]


def only_count(labels: Any) -> bool:
    """Whether labels are the positions themselves: 0, 1, 2, ..."""
    n = len(labels)
    if n == 0 or not _is_whole(labels[0]) or int(labels[0]) != 0:
        return False
    return np.array_equal(np.asarray(labels), np.arange(n))


def _is_whole(name: Any) -> bool:
    no_number = bool | np.bool_ | np.timedelta64
    return isinstance(name, Integral) and not isinstance(name, no_number)


# --------------------------------------------------------------------------------- lazy
class LazyLabels(Sequence[str]):
    """Labels of many rows, read where they are looked at; equal to a list of them.

    ``read`` starts over and yields lists of labels. The last list stays, and so does
    the place in the reading: labels that ascend are found in one pass.
    """

    def __init__(self, n: int, read: Callable[[], Iterator[list[str]]]) -> None:
        self._n, self._read = n, read
        self._start, self._some = 0, list[str]()
        self._rest: Iterator[list[str]] = iter(())

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[str]:
        for some in self._read():
            yield from some

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        places = range(self._n)[at]  # IndexError outside
        if isinstance(places, int):
            return self._at(places)
        found = [self._at(k) for k in sorted(places)]
        return found if places.step > 0 else found[::-1]

    def _at(self, position: int) -> str:
        if position < self._start or not self._some:
            self._start, self._some, self._rest = 0, [], self._read()
        while position >= self._start + len(self._some):
            self._start += len(self._some)
            self._some = next(self._rest)
        return self._some[position - self._start]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        return np.fromiter(self, object, self._n).astype(dtype or object)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(other) == self._n and all(map(operator.eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        few = 12
        names = ", ".join(map(repr, self[:few]))
        return f"[{names}]" if self._n <= few else f"[{names}, ...] ({self._n:,} rows)"

    def __reduce__(self) -> Any:
        return list, (list(self),)


# ------------------------------------------------------------------------------- lookup
class Lookup:
    """Positions of the rows, or the columns, of a table that a user names.

    Labels come first. A whole number is a position, counted from 0 or from the end when
    negative, where there are no labels, or where no label is a number: labels that
    only count 0, 1, 2, ... are positions as well. ``side`` is "row" or "column", ``n``
    how many there are, ``owner`` the table in messages.
    """

    def __init__(self, side: str, labels: Any, n: int, owner: str = "the fit") -> None:
        self.side, self.labels, self.n, self.owner = side, labels, n, owner

    @property
    def names(self) -> Any:
        """The labels, or the positions where there are none."""
        return range(self.n) if self.labels is None else self.labels

    @cached_property
    def _every_position(self) -> dict[str, int]:
        """Position of each label, by its text; TWICE for a label of several."""
        found: dict[str, int] = {}
        for position, label in enumerate(() if self.labels is None else self.labels):
            text = plain_text(label)
            found[text] = TWICE if text in found else position
        return found

    def _positions(self, names: Iterable[Any]) -> dict[str, int]:
        """Position of labels with these names, by text; others may be there as well."""
        if not isinstance(self.labels, LazyLabels):
            return self._every_position
        wanted, found = set(map(plain_text, names)), dict[str, int]()
        for position, text in enumerate(self.labels if wanted else ()):
            if text in wanted:
                found[text] = TWICE if text in found else position
        return found

    @cached_property
    def _takes_positions(self) -> bool:
        """Whether whole numbers are positions, not labels."""
        if self.labels is None or only_count(self.labels):
            return True
        # The text "7" is a number, too: labels from text files are never anything else.
        is_lazy = isinstance(self.labels, LazyLabels)
        texts = self.labels if is_lazy else self._every_position
        return not any(text.removeprefix("-").isdecimal() for text in texts)

    def base(self, given: Any, has_factor: Bools) -> int:
        """Position of what others are compared with; 0, if not a label, is the first.

        None is the first that has a factor; one without is refused.
        """
        if given is None and has_factor.any():
            return int(has_factor.argmax())
        is_first = _is_whole(given) and given == 0 and "0" not in self._positions("0")
        found = 0 if given is None or is_first else self.find(given)
        if np.ndim(found):
            raise ParameterError(f"base must be one {self.side}, got {given!r}.")
        at = int(found)
        if has_factor[at]:
            return at
        advice = f"Choose another; base=None takes the first {self.side} that has one."
        if not has_factor.any():
            advice = f"No other {self.side} has one, so there is no index."
        raise ParameterError(
            f"The base, {self.side} {label_at(self.labels, at)}, has no factor above "
            f"0, so nothing is a multiple of it. {advice}"
        )

    def find(self, given: Any) -> Ints:
        """Positions of a label or a position, or of an array of these, in its shape.

        Raises LabelError where there is no such row or column, or more than one.
        """
        positions = self.find_known(given)
        self._refuse(given, positions == UNKNOWN)
        return positions

    def find_known(self, given: Any, *, are_labels: bool = False) -> Ints:
        """As ``find``, with a negative number for unknown labels.

        Positions that do not exist and labels of several are refused. Keys of a long
        frame ``are_labels``, also when they are whole numbers.
        """
        names = _as_array(given)
        are_whole = names.dtype.kind in "iu"
        has_whole = are_whole or any(map(_is_whole, names.flat))
        takes_positions = has_whole and not are_labels and self._takes_positions
        if takes_positions and are_whole:
            return self._checked(names)
        positions = self._positions(names.flat)
        found = [self._find(name, takes_positions, positions) for name in names.flat]
        known = np.array(found, np.int64).reshape(names.shape)
        self._refuse(given, known == TWICE)
        return known

    def unknown(self, given: Any, positions: Ints) -> str:
        """Name what ``find_known`` did not find; empty for nothing."""
        names = _as_array(given)[positions < 0]
        return named(self.side, list(dict.fromkeys(map(text_of_label, names))))

    def _find(self, name: Any, takes_positions: bool, positions: dict[str, int]) -> int:
        if takes_positions and _is_whole(name):
            return int(self._checked(np.array(int(name))))
        if self.labels is None:
            raise LabelError(
                f"There is no {self.side} {text_of_label(name)}: the {self.side}s of "
                f"{self.owner} have no names. Give a whole number from 0 to "
                f"{self.n - 1}."
            )
        return positions.get(plain_text(name), UNKNOWN)

    def _checked(self, positions: Ints) -> Ints:
        n = self.n
        outside = (positions >= n) | (positions < -n)
        if outside.any():
            raise LabelError(
                f"There is no {self.side} {int(positions[outside].flat[0])}: "
                f"{self.owner} has {counted(n, self.side)}. Give a whole number from 0 "
                f"to {n - 1}, or from {-n} to -1 to count from the end."
            )
        inside = positions.astype(np.int64)  # small integers cannot hold the sum below
        return np.where(inside < 0, inside + n, inside)

    def _refuse(self, given: Any, bad: Bools) -> None:
        """Raise for the first name that no label or several labels have."""
        if not bad.any():
            return
        name = _as_array(given).flat[int(bad.argmax())]
        text = plain_text(name)
        several = [k for k, x in enumerate(self.labels) if plain_text(x) == text]
        what, which = f"No {self.side} is", ""
        if several:
            what, which = f"{len(several):,} {self.side}s are", f" ({listed(several)})"
        position = f", or a whole number from 0 to {self.n - 1}"
        hint = "" if several else did_you_mean(text, map(plain_text, self.labels))
        raise LabelError(
            f"{what} called {text_of_label(name)}{which}. Give a name that one "
            f"{self.side} has{position if self._takes_positions else ''}.{hint}"
        )


def paired(*positions: Ints) -> tuple[Ints, ...]:
    """Positions of cells along each mode; raise if they do not pair up."""
    try:
        return tuple(np.broadcast_arrays(*positions))
    except ValueError as error:
        shapes = " and ".join(f"of shape {own.shape}" for own in positions)
        raise ParameterError(
            f"Positions {shapes} do not pair up. Give as many of one mode as of the "
            "other, or one of them."
        ) from error


def _as_array(given: Any) -> AnyArray:
    """Names as an array of integers or objects, of no dimension for a single one."""
    is_list = isinstance(given, list | range)
    if not is_list and not (hasattr(given, "__array__") and np.ndim(given) > 0):
        one = np.empty((), object)
        one[()] = given  # also a tuple, the name of a row of a pandas MultiIndex
        return one
    if is_list and any(isinstance(name, tuple) for name in given):
        return np.fromiter(given, object, len(given))
    names = np.asarray(given)
    if names.dtype.kind in "iu":
        return names
    if names.dtype.kind in "mM":  # nanoseconds would become numbers
        names = names.astype(f"{names.dtype.kind}8[us]")
    return np.array(given, object) if is_list else names.astype(object)
