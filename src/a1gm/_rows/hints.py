"""What a table may not be meant to be: warnings from its first rows.

Hints look at values and never decide anything: which columns are fitted is settled by
`a1gm._rows.columns`. Each names the call or the option that helps. One function,
`hints`, for every container.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import isnan
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from a1gm._base.types import Floats
from a1gm._base.warn import warn_user
from a1gm._base.words import listed
from a1gm._rows.columns import Choice, is_label, words_of
from a1gm._rows.rows import Part, Rows
from a1gm.exceptions import Call, DataHintWarning, Option, Text

Hint: TypeAlias = tuple[Text, Text]  # what may not be meant, and what helps

MOST_ROWS = 1 << 14  # rows that are looked at
MOST_COLUMNS = 200  # columns that are looked at one by one
MOST_KEYS = 6  # columns that are tried as keys
NO_KEYS = ("bool", "other")  # kinds of columns that are not keys
MOST_VALUES = 3  # number columns of a long table
FEWEST_RISING = 6  # rows in which a column rises not by chance
HINT_CELLS = 1 << 16  # of a frame that are looked at
MISSING = ("", "NA", "NaN", "nan", "None", "<NA>")  # cells of text, written as text
NEAR = 0.25  # totals may be rounded, or count cells that are missing here

_TOTALS = set("total totals totale totaal subtotal sum sums summe gesamt".split())  # noqa: SIM905
_WHOLE, _GROUPED = re.compile(r"[+-]?\d+"), re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}")
_SIGN = r"(?:[^\w\s.,()+\u2212\u2013-]|[A-Z]{2,3}|[A-Z]{1,2}\$|kr\.?|zł|Kč|Ft|Fr\.)"
_DIGITS = r"\d(?:[\d.,'\u2019\s]*\d)?"
_PLAIN = re.compile(rf"[+-]?{_DIGITS}")
_WITH_SIGN = re.compile(rf"-?{_SIGN}\s?-?{_DIGITS}|-?{_DIGITS}\s?{_SIGN}")
_NEGATIVE = re.compile(
    rf"\({_SIGN}?\s?({_DIGITS})\s?{_SIGN}?\)|({_DIGITS})-|[\u2212\u2013]({_DIGITS})"
)


@dataclass(frozen=True)
class _Head:
    """The first rows of a table: all columns, and the first numbers as an array.

    ``others`` are the columns that are not fitted.
    """

    first: Mapping[Any, Any]
    choice: Choice
    names: list[Any]
    others: list[Any]
    values: Floats
    in_file: bool
    has_all_rows: bool


def hints(
    first: Mapping[Any, Any],
    choice: Choice,
    n_rows: int | None,
    *,
    name: str = "X",
    is_asked: bool = False,
    in_file: bool = False,
    texts: Collection[Sequence[str]] = (),
) -> list[DataHintWarning]:
    """Return warnings about a table by its first rows.

    ``first`` has these rows of the columns, the others in their order: a float array
    with NaN where a cell is missing for numbers, any sequence for others. The whole
    table has ``n_rows``. Where the caller ``is_asked`` for columns, hints on what they
    are used for are left out. ``texts`` are the first cells of the columns, where the
    decimal mark is not known.
    """
    names, table = choice.table[:MOST_COLUMNS], set(choice.table)
    values = np.column_stack([first[column] for column in names])
    others = [column for column in first if column not in table]
    head = _Head(first, choice, names, others, values, in_file, len(values) == n_rows)
    found = list(_about_thousands(texts))
    if not is_asked:
        found += [hint for rule in RULES for hint in rule(head)]
    return [DataHintWarning(what, advice=how, where=name) for what, how in found]


def may_hint(rows: Rows) -> bool:
    """Whether a rule may apply to columns of numbers, by a look at four cells.

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
    if not _ends_in_hole(last):
        return False
    is_array = last[0].shape[1] > 1
    return isnan(last[0].item(-2)) if is_array else _ends_in_hole(parts[-2])


def _ends_in_hole(part: Part) -> bool:
    """Whether the last cell of the last column is missing."""
    values, _, validity, offset = part
    is_valid = True
    if validity is not None:
        byte, bit = divmod(offset + len(values) - 1, 8)
        is_valid = bool(validity.item(byte) >> bit & 1)
    return not is_valid or isnan(values.item(-1))


def warn_hints(
    rows: Rows,
    choice: Choice,
    others: Mapping[Any, Any] = MappingProxyType({}),
    *,
    is_asked: bool = False,
) -> None:
    """Warn about a frame by its first rows; ``others`` are not the table."""
    n = min(rows.n_rows, MOST_ROWS, max(64, HINT_CELLS // rows.n_cols))
    values = dict(zip(choice.table, rows.head(n, MOST_COLUMNS).T, strict=False))
    first = values | {name: cells[:n].to_list() for name, cells in others.items()}
    for warning in hints(first, choice, rows.n_rows, name=rows.name, is_asked=is_asked):
        warn_user(warning)


@lru_cache(maxsize=1 << 12)
def is_total(name: Any) -> bool:
    """Whether a row or a column is called a total."""
    return not _TOTALS.isdisjoint(words_of(name))


def sign_remedy(text: str) -> str | None:
    """Return what makes a number of a text with a sign, such as $5 or (5)."""
    if found := _NEGATIVE.fullmatch(text):
        return f"write it as -{found[found.lastindex or 0]} to have numbers"
    if _WITH_SIGN.fullmatch(text):
        return "take the sign off to have numbers"
    return None


# -------------------------------------------------------------------------------- rules
def _about_long(head: _Head) -> Iterator[Hint]:
    """One row per cell: two keys or more repeat, their combinations hardly do.

    Keys are columns that are not data, or the first columns of whole numbers.
    """
    kinds, values, n = head.choice.kinds, list(head.choice.table), len(head.values)
    keys = [c for c in head.others if c != "" and kinds.get(c) not in NO_KEYS]
    if n < 3 or len(values) > MOST_VALUES + 2 or (len(keys) < 2 and n < 12):
        return
    for column in values[: max(2 - len(keys), 0)]:
        if (np.floor(head.first[column]) == head.first[column]).all():
            keys.append(column)
            values.remove(column)
    if not 1 <= len(values) <= MOST_VALUES:
        return
    cells = {key: list(head.first[key]) for key in keys[:MOST_KEYS]}
    counts = {key: len(set(column)) for key, column in cells.items()}
    repeated = [key for key in cells if 1.3 * counts[key] <= n]
    tried: list[tuple[Any, float]]  # some keys, and how many combinations they have
    sizes = range(2, MOST_KEYS + 1)
    tried = [(some, n) for k in sizes for some in combinations(repeated, k)]
    for pair in combinations(repeated, 2) if n >= 12 else ():
        tried.append((pair, max(n / 2, 1.3 * max(map(counts.__getitem__, pair)))))
    for some, fewest in tried:
        size = np.prod([float(counts[key]) for key in some])
        is_dense = 2 * n >= size or n >= 50
        if not is_dense or len(set(zip(*map(cells.get, some), strict=True))) < fewest:
            continue
        frame, value = "frame" if head.in_file else "X", Option("value", values[0])
        found = Call("fit_long", frame, (Option("keys", list(some)), value))
        more: Text = ""
        if len(some) == 3:
            by = min(some, key=counts.__getitem__)
            others = Option("keys", [key for key in some if key != by])
            groups = Call("fit_groups", frame, (Option("by", by), others, value))
            more = f", or one table for each {by!r} with ", groups
        elif fewest < n:
            more = "; pairs that occur again need ", Option("duplicates", "sum")
        yield "it may have one row per cell.", ("Then fit it with ", found, more, ".")
        return


def _about_rising(head: _Head) -> Iterator[Hint]:
    """A first column that may label the rows."""
    values, column = head.values, head.names[0]
    whole = (np.floor(values) == values).all(axis=0)  # NaN is not
    rising = whole & (np.diff(values, axis=0) > 0.0).all(axis=0)
    if len(values) < FEWEST_RISING or len(rising) < 2:
        return
    if rising[0] and not rising[1:].any():  # several: sorted or cumulative data
        yield (
            f"column {column!r} holds whole numbers that only rise, and is fitted as "
            "data.",
            ("If it labels the rows, pass ", Option("id", [column]), "."),
        )


def _about_triangle(head: _Head) -> Iterator[Hint]:
    """Amounts that are added up from left to right, in a triangle."""
    known = ~np.isnan(head.values)
    lengths = known.sum(axis=1)
    is_staircase = (known[:, :-1] >= known[:, 1:]).all() and (
        np.diff(lengths) <= 0
    ).all()
    if not is_staircase or len(set(lengths.tolist())) < 3 or lengths[-1] == 0:
        return
    steps = np.diff(head.values, axis=1)
    rises, falls = (steps > 0.0).sum(), (steps < 0.0).sum()
    if rises > 0 and 20 * falls <= rises:  # recoveries make single amounts fall
        yield (
            "its missing cells form a triangle, and its rows rise from left to right.",
            "If the amounts are cumulative, fit the increments: the first column, and "
            "the difference of each other column and the one before it.",
        )


def _about_totals(head: _Head) -> Iterator[Hint]:
    """Columns, or a last row, that are called totals and are near to the others."""
    is_named = np.array([is_total(name) for name in head.names], bool)
    labels = [
        str(head.first[column][-1]) for column in head.others if head.has_all_rows
    ]
    label = next(filter(is_total, labels), None)
    known = ~np.isnan(head.values[-1])
    with np.errstate(over="ignore"):
        sums = np.nansum(head.values, axis=0)
        others = sums[~is_named].sum()
        row, rows = head.values[-1][known].sum(), np.nansum(head.values[:-1, known])
    like = "looks like the total of the others and counts as one of them."
    for j in np.flatnonzero(is_named).tolist():
        if _is_near(sums[j], others):
            how = Option("exclude", [head.names[j]]), " leaves it out."
            yield f"column {head.names[j]!r} {like}", how
    if label is not None and len(head.values) > 2 and _is_near(row, rows):
        yield f"row {label!r} {like}", "Delete that row to leave it out."


def _is_near(total: float, others: float) -> bool:
    return bool(others > 0.0 and abs(total - others) <= NEAR * others < np.inf)


def _about_text(head: _Head) -> Iterator[Hint]:
    """Columns of text in which every cell looks like a number."""
    kinds, inferred = head.choice.kinds, set(head.choice.inferred)
    for column in head.others[:MOST_COLUMNS]:
        is_text = column in inferred and kinds[column] == "text"
        if not is_text or is_label(column, leads=True, is_first=False, has_times=False):
            continue
        cells = [x for x in map(str, head.first[column][:100]) if x not in MISSING]
        how = sign_remedy(cells[0]) if cells and all(map(sign_remedy, cells)) else None
        if how is None and all(map(_PLAIN.fullmatch, cells)):
            how = "convert it to have numbers"
        if how is not None and len(cells) > 1:
            yield (
                f"column {column!r} is text such as {cells[0]!r} and is not fitted.",
                f"{how[0].upper()}{how[1:]}.",
            )


def _about_header(head: _Head) -> Iterator[Hint]:
    """A first line of data: names that are numbers, or missing, without a rule."""
    names = head.choice.table
    if not head.in_file:
        return
    try:
        numbers = np.array(
            ["nan" if name in ("", "NA") else name for name in names], float
        )
    except ValueError:
        return
    steps = np.diff(numbers)
    is_even = len(steps) > 1 and (steps == steps[0]).all()
    if not is_even and not np.isnan(numbers).all():
        some = listed([name or "''" for name in names], 5)
        yield (
            f"the names of the columns are numbers ({some}).",
            ("If the first line is data, pass ", Option("header", False), "."),
        )


def _about_thousands(texts: Collection[Sequence[str]]) -> Iterator[Hint]:
    """Points between thousands: 1.329 beside 821 in one column."""
    marked, has_both, others = [], False, []
    for cells in texts:
        with_point = [cell for cell in cells if "." in cell]
        plain = [abs(float(cell)) for cell in cells if _WHOLE.fullmatch(cell)]
        has_both |= bool(with_point) and max(plain, default=0.0) >= 100.0
        marked += with_point
        others += plain
    is_grouped = all(map(_GROUPED.fullmatch, marked))
    if has_both and len(marked) > 2 and is_grouped and max(others) < 1000.0:
        yield (
            f"every number with a fraction has three digits behind the point "
            f"({listed(marked[:3])}), and the others are below 1,000: the points may "
            "separate thousands.",
            (
                "If they do, pass ",
                Option("decimal", ","),
                " and ",
                Option("thousands", "."),
                "; if not, ",
                Option("decimal", "."),
            ),
        )


RULES = (  # frames of numbers come here only where `may_hint` expects one of them
    _about_long,
    _about_rising,
    _about_triangle,
    _about_totals,
    _about_text,
    _about_header,
)
