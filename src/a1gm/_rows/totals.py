"""Totals of rows or columns that a user gives, found by their labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from a1gm._base.types import AnyArray, Floats
from a1gm._base.words import counted
from a1gm._rows.frames import library_of
from a1gm._rows.labels import Lookup, label_at
from a1gm._rows.read import read_input
from a1gm._rows.rows import Rows, objects_to_floats, read_array
from a1gm.exceptions import (
    DataError,
    InfiniteValuesError,
    LabelError,
    NegativeValuesError,
)


def read_totals(given: Any, side: str, labels: Any, n: int, of: str) -> Floats:
    """One total per row or column, NaN where it is not known.

    ``side`` is "row" or "column", ``labels`` are those of the table, which has ``n`` of
    them and is called ``of`` in messages.
    """
    name = "row_totals" if side == "row" else "col_totals"
    totals = np.full(n, np.nan)
    if given is None:
        return totals
    own, values = _labels_and_values(given, name)
    is_named = own is not None and (labels is not None or isinstance(given, Mapping))
    if is_named:
        places = np.atleast_1d(Lookup(side, labels, n, of).find(list(own)))
        if len(np.unique(places)) < len(places):
            twice = label_at(labels, int(np.bincount(places).argmax()))
            raise LabelError(
                f"{name} has two totals of {side} {twice}. Keep one of them."
            )
        totals[places] = values
    elif len(values) == n:
        totals[:] = values
    else:
        raise DataError(
            f"{name} has {counted(len(values), 'number')}, but {of} has "
            f"{counted(n, side)}. Pass one total per {side}, NaN where it is not "
            "known, or a dict or a Series with names."
        )
    _check(totals, side, labels, name)
    return totals


def _labels_and_values(given: Any, name: str) -> tuple[Any, Floats]:
    """Names, if there are any, and numbers."""
    if isinstance(given, Mapping):
        return list(given), _numbers(list(given.values()), name)
    if hasattr(given, "columns") or isinstance(given, Rows):
        rows = read_input(given, name=name)
        if rows.n_rows == 1 < rows.n_cols:  # totals below their names
            return rows.col_labels, rows.cells[0]
        if rows.n_cols != 1:
            raise DataError(
                f"{name} is a table with {rows.n_cols} columns of numbers. Pass one "
                "column of totals, beside names or without."
            )
        return rows.row_labels, rows.cells[:, 0]
    labels = given.index if hasattr(given, "iloc") else None
    if library_of(given):
        given = np.asanyarray(given)
    return labels, _numbers(given, name)


def _numbers(given: Any, name: str) -> Floats:
    """Numbers of a list, an array or a Series; None is NaN."""
    if isinstance(given, list | tuple):
        values: AnyArray = np.empty((len(given), 1), object)
        values[:, 0] = given
        return objects_to_floats(values, name)[:, 0]
    array = np.asanyarray(given)
    if array.ndim != 1:
        is_line = array.ndim == 2 and 1 in array.shape
        if not is_line:
            raise DataError(
                f"{name} has shape {array.shape}. Pass one total per row or column."
            )
        array = array.reshape(-1)
    if not len(array):
        return np.zeros(0)
    return read_array(array.reshape(-1, 1), name).cells[:, 0]


def _check(totals: Floats, side: str, labels: Any, name: str) -> None:
    """Raise for a total that is negative or infinite."""
    faults = {
        "infinite": (np.isinf(totals), InfiniteValuesError),
        "negative": (totals < 0.0, NegativeValuesError),
    }
    for what, (bad, error) in faults.items():
        if bad.any():
            at = int(bad.argmax())
            raise error(
                f"{name}: the total of {side} {label_at(labels, at)} is {what} "
                f"({totals[at]:g}; {int(bad.sum())} in all).",
                advice="Totals must be finite and >= 0; NaN is for an unknown one.",
                count=int(bad.sum()),
            )
