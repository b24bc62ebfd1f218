"""Totals of rows or columns that a user gives, found by their labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from a1gm._base.types import AnyArray, Floats
from a1gm._base.words import counted, did_you_mean
from a1gm._rows.columns import ColumnOptions
from a1gm._rows.frames import library_of
from a1gm._rows.labels import Lookup, label_at, plain_text
from a1gm._rows.read import read_input
from a1gm._rows.rows import Rows, check_values, read_array, table_of
from a1gm.exceptions import DataError, LabelError


def read_totals(given: Any, side: str, labels: Any, n: int, of: str) -> Floats:
    """One total per row or column, NaN where it is not known.

    ``side`` is "row" or "column", ``labels`` are those of the table, which has ``n`` of
    them and is called ``of`` in messages.
    """
    name = "row_totals" if side == "row" else "col_totals"
    name = given.name if isinstance(given, Rows | LabelledTotals) else name
    totals = np.full(n, np.nan)
    if given is None:
        return totals
    known = () if labels is None else labels
    read = labelled_totals(given, name, known)
    values = read.values
    has_lookup = labels is not None or isinstance(given, Mapping)
    if read.labels is not None and has_lookup:
        places = np.atleast_1d(Lookup(side, labels, n, of).find(list(read.labels)))
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
            f"{counted(n, side)}. Give one total per {side}, missing where it is not "
            f"known, or give the totals by the names of the {side}s."
        )
    names = {"name": name, "row_labels": labels, "col_labels": ["total"]}
    check_values(replace(table_of(totals[:, None]), **names), totals, None)
    return totals


class LabelledTotals(NamedTuple):
    """Totals as numbers; ``labels`` are those of rows or columns, if there are any."""

    labels: Any
    values: Floats
    name: str  # in messages


def labelled_totals(given: Any, name: str, known: Iterable[Any]) -> LabelledTotals:
    """Read totals of any kind; ``known`` are the labels of the table."""
    if isinstance(given, LabelledTotals):
        return given
    if isinstance(given, Mapping):
        return LabelledTotals(list(given), _numbers(list(given.values()), name), name)
    if hasattr(given, "columns") or isinstance(given, Rows):
        rows = read_input(given, name=name, columns=ColumnOptions(fewest=1))
        if rows.n_rows == 1 < rows.n_cols:  # totals below their names
            return LabelledTotals(rows.col_labels, rows.cells[0], rows.name)
        if rows.n_cols != 1:
            raise DataError(
                f"{name} has {rows.n_cols} columns of numbers. Give one column of "
                "totals, beside names or without."
            )
        if not isinstance(given, Rows):  # of a file: its reader has checked it
            label = getattr(getattr(given, "index", None), "name", None)
            if rows.choice is not None and rows.choice.ids:
                label = rows.choice.ids[0]
            check_header(label, rows.col_labels[0], name, known, rows.row_labels)
        return LabelledTotals(rows.row_labels, rows.cells[:, 0], rows.name)
    labels = given.index if hasattr(given, "iloc") else None
    if labels is not None:
        check_header(labels.name, given.name, name, known, labels)
    if library_of(given):
        given = np.asanyarray(given)
    return LabelledTotals(labels, _numbers(given, name), name)


def check_header(
    label: Any, total: Any, name: str, known: Iterable[Any], labels: Any
) -> None:
    """Raise where a reader took the first total for the names of the columns.

    Its ``label`` is then one of those ``known``, or like one that has no total among
    the ``labels``.
    """
    if not isinstance(total, str) or label in (None, getattr(known, "name", None)):
        return
    names = {plain_text(one) for one in known}
    without = names.difference(map(plain_text, () if labels is None else labels))
    is_name = str(label).casefold() in map(str.casefold, names)
    if not is_name and not did_you_mean(label, without):
        return
    try:
        float(total)
    except ValueError:
        return
    raise DataError(
        f"The columns of {name} are called {label!r} and {total!r}, which is a total. "
        "Read its file without a header, or call the totals by a word, such as 'total'."
    )


def _numbers(given: Any, name: str) -> Floats:
    """Numbers of a list, an array or a Series; None is NaN."""
    if isinstance(given, list | tuple):
        array: AnyArray = np.array([*given, None], object)[:-1]
    else:
        array = np.asanyarray(given)
    if array.size != max(array.shape, default=0) or not array.ndim:
        raise DataError(
            f"{name} has shape {array.shape}. Pass one total per row or column."
        )
    return read_array(array.reshape(-1, 1), name).cells[:, 0] if len(array) else array
