"""What a table may not be meant to be: warnings from its first rows.

Hints look at values and never decide anything: which columns are fitted is settled by
`a1gm._rows.columns`. Each names the call or the option that helps. One function,
`hints`, for every container.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import isnan
from types import MappingProxyType
from typing import Any

import numpy as np

from a1gm._base.types import Bools, Floats
from a1gm._base.warn import warn_user
from a1gm._base.words import listed
from a1gm._rows.columns import Choice, is_label, words_of
from a1gm._rows.rows import Rows, read_parts
from a1gm.exceptions import Call, DataHintWarning, Option, Text

MOST_ROWS = 1 << 14  # rows that are looked at
MOST_COLUMNS = 200  # columns whose numbers are looked at one by one
MOST_KEYS = 6  # columns that are tried as keys
MOST_VALUES = 3  # number columns of a long table
FEWEST_RISING = 6  # rows in which a column rises not by chance
HINT_CELLS = 1 << 16  # of a frame that are looked at
NEAR = 0.25  # totals may be rounded, or count cells that are missing here

_TOTALS = set("total totals totale totaal subtotal sum sums summe gesamt".split())  # noqa: SIM905
_SIGN = r"(?:[^\w\s.,()+-]|[A-Z]{2,3}|[A-Z]{1,2}\$|kr\.?|zł|Kč|Ft|Fr\.)"
_DIGITS = r"\d(?:[\d.,'\u2019\s]*\d)?"
_PLAIN = re.compile(rf"[+-]?{_DIGITS}")
_WITH_SIGN = re.compile(rf"-?{_SIGN}\s?-?{_DIGITS}|-?{_DIGITS}\s?{_SIGN}")
_NEGATIVE = re.compile(rf"\({_SIGN}?\s?({_DIGITS})\s?{_SIGN}?\)|({_DIGITS})-")


def hints(
    columns: Mapping[Any, Any],
    choice: Choice,
    *,
    name: str = "X",
    n_rows: int | None = None,
    is_asked: bool = False,
    in_file: bool = False,
    decimal: str | None = None,
) -> list[DataHintWarning]:
    """Look at the first rows of a table, and return what to warn of.

    Parameters
    ----------
    columns : mapping
        The first rows of each column, in the order of the table: a float array with
        NaN where a cell is missing for numbers, any sequence for others.
    choice : Choice
        What each column is used for.
    name : str, default="X"
        Name of the table in messages.
    n_rows : int, optional
        Rows of the whole table, where these may not be all.
    is_asked : bool, default=False
        Whether the caller has named the columns of the table; hints on what columns
        are used for are left out then.
    in_file : bool, default=False
        Whether the table is in a file, so that it is not at hand as a frame.
    decimal : str, optional
        The decimal mark, if the caller has given it.

    Returns
    -------
    list of DataHintWarning
    """
    n_seen = len(next(iter(columns.values()), ()))
    first = {column: cells[:MOST_ROWS] for column, cells in columns.items()}
    few = choice.table[:MOST_COLUMNS]
    numbers = [np.asarray(first[column], np.float64) for column in few]
    values = np.column_stack(numbers) if numbers else np.empty((0, 0))
    found: list[Text | None] = []
    if decimal is None:
        found.append(_about_thousands(few, values, in_file=in_file))
    if not is_asked:
        is_whole = n_rows in (None, n_seen) and n_seen <= MOST_ROWS
        found += [
            _about_long(first, choice, in_file=in_file),
            _about_rising(few, values) if n_seen >= FEWEST_RISING else None,
            _about_triangle(values),
            *_about_total_columns(few, values),
            _about_total_row(first, choice, values) if is_whole else None,
            *_about_text(first, choice),
            _about_header(choice.table) if in_file else None,
        ]
    return [DataHintWarning(text, where=name) for text in found if text is not None]


def may_hint(rows: Rows) -> bool:
    """Whether hints may apply to columns of numbers, by a look at four cells.

    A first column of whole numbers that rises or repeats, or a triangle: the last two
    cells are missing. Small fits are hot.
    """
    n, parts = rows.n_rows, rows.parts
    if n < 3 or rows.n_cols < 2:
        return False
    a, b = parts[0][0][:2, 0].tolist()
    if a % 1 == 0 and ((a < b and b % 1 == 0) or rows.n_cols <= MOST_VALUES + 2):
        return True
    last = parts[-1]
    tail = [last] if last[0].shape[1] > 1 else [parts[-2], last]
    x, y = read_parts(tail, n - 1, n)[0, -2:].tolist()
    return isnan(x) and isnan(y)


def warn_hints(
    rows: Rows,
    choice: Choice,
    others: Mapping[Any, Any] = MappingProxyType({}),
    *,
    is_asked: bool = False,
) -> None:
    """Warn about a frame by its first rows; ``others`` are all columns of narwhals."""
    n = min(rows.n_rows, max(64, HINT_CELLS // rows.n_cols))
    values = dict(zip(choice.table, rows.rows(slice(0, n)).T, strict=True))
    names = list(others or values)
    first = {c: values[c] if c in values else others[c][:n].to_list() for c in names}
    for warning in hints(
        first, choice, name=rows.name, n_rows=rows.n_rows, is_asked=is_asked
    ):
        warn_user(warning)


def is_total(name: Any) -> bool:
    """Whether a row or a column is called a total."""
    return not _TOTALS.isdisjoint(words_of(name))


# ------------------------------------------------------------------- one row per cell
def _about_long(
    first: Mapping[Any, Any], choice: Choice, *, in_file: bool
) -> Text | None:
    call = long_call(first, choice, "frame" if in_file else "X")
    if call is None:
        return None
    return "if it has one row per cell, fit it with ", call, "."


def long_call(first: Mapping[Any, Any], choice: Choice, name: str) -> Call | None:
    """Find the keys of a table with one row per cell; None for any other table.

    Keys are columns that are not data, or the first columns of whole numbers: two of
    them repeat, and no pair of theirs is there twice.
    """
    table, own = choice.table, set(choice.table)
    keys = [
        c for c in first if c not in own and c != "" and choice.kinds.get(c) != "bool"
    ]
    n_seen = len(next(iter(first.values()), ()))
    if n_seen < 3 or not 1 <= len(table) <= MOST_VALUES + 2:
        return None
    values = list(table)
    if len(keys) < 2:  # keys may be among the numbers
        more = [c for c in table[: 2 - len(keys)] if _is_whole(first[c])]
        keys, values = [*keys, *more], [c for c in table if c not in more]
        if len(keys) < 2 or n_seen < 12:
            return None
    if not 1 <= len(values) <= MOST_VALUES:
        return None
    codes = {key: _codes(first[key]) for key in keys[:MOST_KEYS]}
    counts = {key: int(code.max()) + 1 for key, code in codes.items()}
    repeated = [key for key in codes if 1.3 * counts[key] <= n_seen]
    for n in (2, 3):
        for some in combinations(repeated, n):
            if _are_different([codes[key] for key in some], n_seen, counts, some):
                by = min(some, key=counts.__getitem__) if n == 3 else None
                two = [key for key in some if key != by]
                return _call(name, two, values[0], by)
    return None


def _call(name: str, keys: Sequence[Any], value: Any, by: Any = None) -> Call:
    options = (Option("keys", list(keys)), Option("value", value))
    if by is None:
        return Call("fit_long", name, options)
    return Call("fit_groups", name, (Option("by", by), *options))


def _is_whole(cells: Floats) -> bool:
    return bool(len(cells) and (np.floor(cells) == cells).all())


def _codes(cells: Any) -> Floats:
    """Number the distinct values of a column."""
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(cell, len(numbers)) for cell in list(cells)])


def _are_different(
    codes: list[Any], n_rows: int, counts: Mapping[Any, int], keys: Sequence[Any]
) -> bool:
    """Whether no combination of keys is there twice, and most of them are."""
    if len(set(zip(*codes, strict=True))) < n_rows:
        return False
    size = np.prod([float(counts[key]) for key in keys])
    return bool(2 * n_rows >= size or n_rows >= 50)


# ------------------------------------------------------------------------ what counts
def _about_rising(names: Sequence[Any], values: Floats) -> Text | None:
    """Hint at a first column that may label the rows."""
    whole = (np.floor(values) == values).all(axis=0)  # NaN is not
    rising = whole & (np.diff(values, axis=0) > 0.0).all(axis=0)
    if len(names) < 2 or not rising[0] or rising[1:].any():  # cumulative data
        return None
    return (
        f"column {names[0]!r} holds whole numbers that only rise, and is fitted as "
        "data. If it labels the rows, pass ",
        Option("id", [names[0]]),
        ".",
    )


def _about_triangle(values: Floats) -> Text | None:
    """Hint at amounts that are added up from left to right, in a triangle."""
    if min(values.shape, default=0) < 3:
        return None
    known = ~np.isnan(values)
    lengths = known.sum(axis=1)
    is_staircase = (known[:, :-1] >= known[:, 1:]).all() and (
        np.diff(lengths) <= 0
    ).all()
    if not is_staircase or len(set(lengths.tolist())) < 3 or lengths[-1] == 0:
        return None
    steps = np.diff(values, axis=1)
    steps = steps[~np.isnan(steps)]
    if not (steps >= 0.0).all() or not steps.any():
        return None
    return (
        "its missing cells form a triangle, and every row rises from left to right. If "
        "the amounts are cumulative, fit the increments: the first column, and the "
        "difference of each other column and the one before it."
    )


# ----------------------------------------------------------------------------- totals
def _about_total_columns(names: Sequence[Any], values: Floats) -> list[Text]:
    is_named = np.array([is_total(name) for name in names], bool)
    if not is_named.any():
        return []
    with np.errstate(over="ignore"):
        sums = np.nansum(values, axis=0)
        others = float(sums[~is_named].sum())
    return [
        (
            f"column {names[j]!r} looks like the total of the others and counts as one "
            "of them; ",
            Option("exclude", [names[j]]),
            " leaves it out.",
        )
        for j in np.flatnonzero(is_named).tolist()
        if _is_near(float(sums[j]), others)
    ]


def _about_total_row(
    first: Mapping[Any, Any], choice: Choice, values: Floats
) -> Text | None:
    if len(values) < 3:
        return None
    own = set(choice.table)
    labels = [str(cells[-1]) for c, cells in first.items() if c not in own]
    label = next(filter(is_total, labels), None)
    if label is None:
        return None
    known = ~np.isnan(values[-1])
    with np.errstate(over="ignore"):
        total, others = values[-1][known].sum(), np.nansum(values[:-1, known])
    if not _is_near(float(total), float(others)):
        return None
    return (
        f"row {label!r} looks like the total of the others and counts as one of them; "
        "delete that row to leave it out."
    )


def _is_near(total: float, others: float) -> bool:
    return bool(others > 0.0 and abs(total - others) <= NEAR * others < np.inf)


# ---------------------------------------------------------------- numbers and marks
def _about_thousands(
    names: Sequence[Any], values: Floats, *, in_file: bool
) -> Text | None:
    """Hint at points between thousands: 1.329 beside 821 in one column."""
    if not len(values):
        return None
    known = ~np.isnan(values)
    fraction = known & (np.floor(values) != values)
    if not fraction.any():
        return None
    numbers = values[fraction]
    thousands = numbers * 1000.0
    whole: Bools = np.abs(thousands - np.round(thousands)) < 1e-6
    digits: Bools = np.abs(numbers * 100.0 - np.round(numbers * 100.0)) > 1e-6
    grouped = whole & (np.abs(numbers) >= 1.0) & (np.abs(numbers) < 1000.0)
    plain = np.abs(np.where(known & ~fraction, values, 0.0))
    if (
        not grouped.all()
        or digits.sum() < max(3.0, 0.7 * len(numbers))
        or plain.max() >= 1000.0
        or not ((plain >= 100.0).any(axis=0) & fraction.any(axis=0)).any()
    ):
        return None
    few = listed([f"{number:.3f}" for number in numbers[digits][:3]])
    text = (
        f"every number with a fraction has three digits behind the point ({few}), and "
        "the others are below 1,000: the points may separate thousands. "
    )
    if not in_file:
        return text + "If they do, read the table with the right decimal mark."
    swapped = Option("decimal", ","), " and ", Option("thousands", ".")
    return (text, "If they do, pass ", *swapped, "; if not, ", Option("decimal", "."))


def sign_remedy(text: str) -> str | None:
    """Return what makes a number of a text with a sign, such as $5 or (5)."""
    if found := _NEGATIVE.fullmatch(text):
        return f"write it as -{found[1] or found[2]} to have numbers"
    if _WITH_SIGN.fullmatch(text):
        return "take the sign off to have numbers"
    return None


def _about_text(first: Mapping[Any, Any], choice: Choice) -> list[Text]:
    """Hint at columns of text in which every cell looks like a number."""
    found: list[Text] = []
    for column in choice.inferred[:MOST_COLUMNS]:
        if choice.kinds[column] != "text" or is_label(
            column, leads=True, is_first=False
        ):
            continue
        cells = [
            str(cell) for cell in list(first[column][:100]) if cell not in (None, "")
        ]
        if len(cells) < 2:
            continue
        if all(map(sign_remedy, cells)):
            how = str(sign_remedy(cells[0]))
        elif all(map(_PLAIN.fullmatch, cells)):
            how = "convert it to have numbers"
        else:
            continue
        found.append(
            f"column {column!r} is text such as {cells[0]!r} and is not fitted; {how}."
        )
    return found


def _about_header(names: Sequence[Any]) -> Text | None:
    """Hint at a first line of data: names that are numbers in no order."""
    try:
        numbers = np.array([float(name) for name in names])
    except ValueError:
        return None
    steps = np.diff(numbers)
    if (numbers == np.floor(numbers)).all() and (steps > 0).all() | (steps < 0).all():
        return None
    return (
        f"the names of the columns are numbers ({listed(names, 5)}). If the first line "
        "is data, add a header before it."
    )
