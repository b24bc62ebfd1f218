"""Rows and columns that a user names, found by label, or by place without labels."""

from __future__ import annotations

from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from a1gm._base.types import Bools, Ints
from a1gm._base.words import counted, did_you_mean, listed, named
from a1gm._rows.labels import plain_text, text_of_label
from a1gm.exceptions import LabelError, ParameterError

UNKNOWN, TWICE = -1, -2


class Lookup:
    """Finds the rows, or the columns, of a table.

    Labels come first. A whole number is a place, counted from 0 or from the end when
    negative, where there are no labels, or where no label is a number: labels that
    only count 0, 1, 2, ... are places as well.

    Parameters
    ----------
    side : {"row", "column"}
        What is looked for.
    labels : sequence or None
        The names; None if there are none.
    n : int
        How many rows or columns there are.
    owner : str
        What messages say has them.
    """

    def __init__(self, side: str, labels: Any, n: int, owner: str = "the fit") -> None:
        self.side, self.labels, self.n, self.owner = side, labels, n, owner

    @cached_property
    def _places(self) -> dict[str, int]:
        """Place of each label, by its text; TWICE if several are called so."""
        found: dict[str, int] = {}
        for place, label in enumerate(() if self.labels is None else self.labels):
            text = plain_text(label)
            found[text] = TWICE if text in found else place
        return found

    @cached_property
    def takes_places(self) -> bool:
        """Whether whole numbers are places, not labels."""
        if self.labels is None or _only_count(self.labels, self.n):
            return True
        # The text "7" is a number, too: names from text files are never anything else.
        return not any(text.lstrip("-").isdecimal() for text in self._places)

    def base(self, given: Any, has_factor: Bools) -> int:
        """Place of what others are compared with; 0, if no label, is the first.

        None is the first that has a factor; one that has none is refused.
        """
        if given is None and has_factor.any():
            return int(has_factor.argmax())
        is_first = isinstance(given, Integral) and given == 0
        if given is None or (is_first and "0" not in self._places):
            at = 0
        else:
            at = int(self.find(given))
        if has_factor[at]:
            return at
        name = text_of_label(at if self.labels is None else self.labels[at])
        advice = f"Choose another; base=None takes the first {self.side} that has one."
        if not has_factor.any():
            advice = f"No other {self.side} has one, so there is no index."
        raise ParameterError(
            f"The base, {self.side} {name}, has no factor above 0: what was observed "
            f"of it is nothing or 0, and nothing is a multiple of that. {advice}"
        )

    def find(self, given: Any) -> Ints:
        """Places of what is given: a label or a place, or an array of these.

        Returns
        -------
        ndarray of int
            Of the shape of what is given.

        Raises
        ------
        LabelError
            There is no such row or column, or more than one.
        """
        places = self.find_known(given)
        self._refuse(given, places == UNKNOWN)
        return places

    def find_known(self, given: Any, *, are_labels: bool = False) -> Ints:
        """As ``find``, with a negative number for names that no label has.

        Places that do not exist and names of several are refused. Keys of a long frame
        ``are_labels``, also when they are whole numbers.
        """
        takes_places = self.takes_places and not are_labels
        if takes_places and _is_many(given) and not _has_tuples(given):
            places = np.asarray(given)
            if places.dtype.kind in "iu":
                return self._checked(places)
        names = _objects(given)
        found = [self._find(name, takes_places) for name in names.ravel()]
        known = np.array(found, np.int64).reshape(names.shape)
        self._refuse(given, known == TWICE)
        return known

    def unknown(self, given: Any, places: Ints) -> str:
        """Name what ``find_known`` did not find; empty for nothing."""
        names = _objects(given)[places < 0]
        if not len(names):
            return ""
        texts = dict.fromkeys(text_of_label(name) for name in names)
        return named(self.side, list(texts))

    def _find(self, name: Any, takes_places: bool) -> int:
        if _is_whole(name) and takes_places:
            return int(self._checked(np.array(int(name))))
        if self.labels is None:
            raise LabelError(
                f"There is no {self.side} {text_of_label(name)}: the {self.side}s of "
                f"{self.owner} have no names. Give a whole number from 0 to "
                f"{self.n - 1}."
            )
        return self._places.get(plain_text(name), UNKNOWN)

    def _checked(self, places: Ints) -> Ints:
        n = self.n
        outside = (places >= n) | (places < -n)
        if outside.any():
            number = int(places[outside].flat[0])
            raise LabelError(
                f"There is no {self.side} {number}: {self.owner} has "
                f"{counted(n, self.side)}. Give a whole number from 0 to {n - 1}, or "
                f"from {-n} to -1 to count from the end."
            )
        inside = places.astype(np.int64)  # small integers cannot hold the sum below
        return np.where(inside < 0, inside + n, inside)

    def _refuse(self, given: Any, bad: Bools) -> None:
        """Raise for the first of what is given that no label or several labels have."""
        if not bad.any():
            return
        name = _objects(given).flat[int(bad.argmax())]
        text = plain_text(name)
        own = [k for k, x in enumerate(self.labels) if plain_text(x) == text]
        what, which = f"No {self.side} is", ""
        if own:
            what, which = f"{len(own):,} {self.side}s are", f" ({listed(own)})"
        place = f", or a whole number from 0 to {self.n - 1}"
        hint = "" if own else did_you_mean(text, self._places)
        raise LabelError(
            f"{what} called {text_of_label(name)}{which}. Give a name that one "
            f"{self.side} has{place if self.takes_places else ''}.{hint}"
        )


def paired(rows: Ints, cols: Ints) -> tuple[Ints, Ints]:
    """Rows and columns that are places of cells; raise if they do not pair up."""
    try:
        rows, cols = np.broadcast_arrays(rows, cols)
    except ValueError as error:
        raise ParameterError(
            f"Rows of shape {rows.shape} and columns of shape {cols.shape} do not pair "
            "up. Give as many of one as of the other, or one of them."
        ) from error
    return rows, cols


def _is_whole(name: Any) -> bool:
    no_number = bool | np.bool_ | np.timedelta64
    return isinstance(name, Integral) and not isinstance(name, no_number)


def _is_many(given: Any) -> bool:
    # A tuple is the name of a row of a pandas MultiIndex, not an array.
    is_array = hasattr(given, "__array__") and np.ndim(given) > 0
    return is_array or isinstance(given, list | range)


def _has_tuples(given: Any) -> bool:
    return isinstance(given, list) and any(isinstance(name, tuple) for name in given)


def _objects(given: Any) -> Any:
    """What is given as an array of names, of no dimension for a single one."""
    if not _is_many(given):
        name = np.empty((), object)
        name[()] = given
        return name
    if _has_tuples(given):
        names = np.empty(len(given), object)
        for k, name in enumerate(given):
            names[k] = name
        return names
    names = np.asarray(given)
    if names.dtype.kind in "mM":  # nanoseconds would become numbers
        names = names.astype(f"{names.dtype.kind}8[us]")
    return np.array(given, object) if isinstance(given, list) else names.astype(object)


def _only_count(labels: Any, n: int) -> bool:
    """Whether labels are the places themselves: 0, 1, 2, ..."""
    if n == 0 or not _is_whole(labels[0]) or int(labels[0]) != 0:
        return False
    return np.array_equal(np.asarray(labels), np.arange(n))
