"""What a table may not be meant to be: nine hints from its first rows.

Hints look at values and never decide anything: which columns are fitted is settled by
`a1gm._rows.columns`. Each is one function of at most twenty lines, and names the call
or the option that helps. One function, `hints`, for every container.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, takewhile
from math import isnan
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from a1gm._base.types import Bools, Floats, Ints
from a1gm._base.warn import warn_user
from a1gm._base.words import counted, listed
from a1gm._rows.columns import Choice, Kind, is_label, words_of
from a1gm._rows.rows import Part, Rows
from a1gm.exceptions import Call, DataHintWarning, Option, Text

Hint: TypeAlias = tuple[Text, Text]  # what may not be meant, and what helps

MOST_ROWS = 1 << 14  # rows that are looked at
MOST_COLUMNS = 200  # columns that are looked at one by one
HINT_CELLS = 1 << 16  # of a frame that are looked at
RANK_1_ROWS = 256  # that are fitted roughly
LOOK_ROWS = 24  # that decide whether to look at more
LOOK_COLUMNS = 5  # of them
FEWEST_ROWS = 20  # that show whether columns are unlike
MOST_KEYS = 6  # columns that are tried as keys
NO_KEYS = ("bool", "other")  # kinds of columns that are not keys
MOST_VALUES = 3  # number columns of a long table
FEWEST_RISING = 6  # rows in which a column rises not by chance
MISSING = ("", "NA", "NaN", "nan", "None", "<NA>")  # cells of text, written as text
NEAR = 0.25  # totals may be rounded, or count cells that are missing here
MANY_ZEROS = 0.1  # of the cells
SMALL_COUNT = 20.0  # counts below are 0 by chance; codes are, too
LARGEST_LOGARITHM = 40.0
LEAST_RANGE = 5.0  # of natural logarithms, whose amounts differ 150-fold
WIDEST_MIDDLE = 0.4  # of the range, in which half of the logarithms of amounts lie
LIKE = 1.1  # columns of logarithms have means as near as this
UNLIKE = 10.0  # and columns of different measures means as far apart

_TOTALS = set("all total totals totale totaal subtotal sum sums summe gesamt".split())  # noqa: SIM905
_SIGN = r"(?:[^\w\s.,()<>=+\u2212\u2013-]|EUR|USD|US\$|GBP|CHF|JPY|kr\.?|zł|Kč|Ft|Fr\.)"
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
    last_labels: tuple[str, ...] = ()  # of an index of the frame

    @cached_property
    def known(self) -> Bools:
        """True where a number is not missing."""
        return ~np.isnan(self.values)

    @cached_property
    def ends(self) -> Ints:
        """Columns up to the last known number of each row."""
        n_cols = self.values.shape[1]
        behind = self.known[:, ::-1].argmax(axis=1)
        return np.where(self.known.any(axis=1), n_cols - behind, 0)

    @cached_property
    def ratio(self) -> float:
        """The largest mean of a column by the smallest."""
        return _ratio_of_means(self.values[:RANK_1_ROWS])

    @cached_property
    def rough(self) -> tuple[Floats, float]:
        """Each cell of some rows by the others of its row, and how good that is.

        A rough rank-1 fit; its skill is 1 - its mean error / that of the column means,
        the error of each column in units of its standard deviation.
        """
        X = self.values[:RANK_1_ROWS]
        known = self.known[:RANK_1_ROWS]
        Z = np.where(known, X, 0.0)
        n = known.sum(axis=0)
        with np.errstate(all="ignore"):
            h = Z.sum(axis=0) / Z.sum()
            for _ in range(3):
                w = Z.sum(axis=1) / (known @ h)
                h = Z.sum(axis=0) / (known.T @ w)
            fitted = h * (Z.sum(axis=1)[:, None] - Z)
            fitted /= (known @ h)[:, None] - known * h
            means = Z.sum(axis=0) / n
            spread = np.sqrt((np.where(known, X - means, 0.0) ** 2).sum(axis=0) / n)
            errors = [np.abs(X - F)[known] for F in (fitted, means)]
            units = np.broadcast_to(spread, X.shape)[known]
            of_fit, of_means = (_mean((e / units)[units > 0.0]) for e in errors)
            return fitted, 1.0 - of_fit / of_means

    @property
    def are_unlike(self) -> bool:
        """Whether columns are different measures, which their means fit better."""
        if len(self.values) < FEWEST_ROWS or len(self.names) < 3:
            return False
        skill = self.rough[1]
        return self.ratio > UNLIKE and skill < -0.1


def hints(
    first: Mapping[Any, Any],
    choice: Choice,
    n_rows: int | None,
    *,
    name: str = "X",
    is_asked: bool = False,
    in_file: bool = False,
    last_labels: tuple[str, ...] = (),
) -> list[DataHintWarning]:
    """Return warnings about a table by its first rows.

    ``first`` has these rows of the columns, the others in their order: a float array
    with NaN where a cell is missing for numbers, any sequence for others. The whole
    table has ``n_rows``; ``last_labels`` name the last one in an index. Where the
    caller ``is_asked`` for columns, there is no hint.
    """
    if is_asked:
        return []
    names = choice.table[:MOST_COLUMNS]
    values = np.column_stack([first[column] for column in names])
    table = set(choice.table)
    others = [column for column in first if column not in table]
    has_all = len(values) == n_rows
    head = _Head(first, choice, names, others, values, in_file, has_all, last_labels)
    advice = [hint for rule in RULES for hint in rule(head)]
    if not advice:  # else the columns are unlike for another reason
        advice += _about_unlike(head)
    return [DataHintWarning(what, advice=how, where=name) for what, how in advice]


def may_hint(
    rows: Rows,
    choice: Choice | None = None,
    others: Mapping[Any, Any] = MappingProxyType({}),
) -> bool:
    """Whether a rule may apply to columns of numbers, by a look at a few cells.

    A first column of whole numbers that rises or repeats, a triangle (the last two
    cells are missing), zeros, columns with maxima far apart or below that of a
    logarithm. Of ``others``, a last cell that is called a total, or text that begins
    with a number. Small fits are hot.
    """
    if choice is not None:
        if rows.n_cols <= MOST_VALUES + 2 or len(others) > MOST_KEYS:
            return True
        kinds = choice.kinds
        if any(_may_hint(cells, kinds[name]) for name, cells in others.items()):
            return True
    if rows.n_rows < 3 or rows.n_cols < 2:
        return False
    parts = rows.parts if rows.cut is None else rows.cut(0, rows.steps[1])
    is_array = parts[0][0].shape[1] > 1
    if is_array:
        cells = parts[0][0][:LOOK_ROWS, :LOOK_COLUMNS]
    else:
        some = [parts[j] for j in range(min(len(parts), LOOK_COLUMNS))]
        cells = np.array([part[0][:LOOK_ROWS, 0] for part in some]).T
    a, b = cells[:2, 0].tolist()  # of the first column
    if a % 1 == 0 and ((a < b and b % 1 == 0) or rows.n_cols <= MOST_VALUES + 2):
        return True
    last = parts[-1]
    if _ends_in_hole(last) and (
        isnan(last[0].item(-2)) if is_array else _ends_in_hole(parts[-2])
    ):
        return True
    if rows.n_rows < FEWEST_RISING:
        return False
    if 2 * np.count_nonzero(cells == 0) > MANY_ZEROS * cells.size:
        return True
    largest = np.fmax.reduce(cells, axis=0).tolist()
    low, high = min(largest), max(largest)
    is_logarithm = high < LARGEST_LOGARITHM and high < 2 * low
    if not (is_logarithm or 2 * high > UNLIKE * low):
        return False
    n_rows = min(_n_head(rows, others), RANK_1_ROWS)
    return not LIKE <= _ratio_of_means(rows.head(n_rows, MOST_COLUMNS)) <= UNLIKE


def _n_head(rows: Rows, others: Mapping[Any, Any]) -> int:
    """Number of the first rows that are looked at."""
    most = HINT_CELLS // rows.n_cols if others else RANK_1_ROWS
    return min(rows.n_rows, MOST_ROWS, max(64, most))


def _ratio_of_means(X: Floats) -> float:
    """The largest mean of a column by the smallest."""
    known = ~np.isnan(X)
    with np.errstate(all="ignore"):
        means = np.where(known, X, 0.0).sum(axis=0) / known.sum(axis=0)
        return float(np.fmax.reduce(means) / np.fmin.reduce(means))


def _may_hint(cells: Any, kind: Kind) -> bool:
    """Whether a rule may apply to a column that is not the table."""
    if is_total(str(cells[-1])):
        return True
    text = str(cells[0])
    is_like_number = _PLAIN.fullmatch(text) or sign_remedy(text)
    return kind == "text" and (text in MISSING or bool(is_like_number))


def _ends_in_hole(part: Part) -> bool:
    """Whether the last cell of the last column is missing."""
    values, _, validity, offset = part
    is_valid = True
    if validity is not None:
        byte, bit = divmod(offset + len(values) - 1, 8)
        is_valid = bool(validity.item(byte) >> bit & 1)
    return not is_valid or isnan(values.item(-1))


def hints_of_array(rows: Rows) -> list[DataHintWarning]:
    """Hints about an array, whose columns are called by their numbers."""
    names = list(range(min(rows.n_cols, MOST_COLUMNS)))
    n = _n_head(rows, {})
    first = dict(zip(names, rows.head(n, MOST_COLUMNS).T, strict=True))
    return hints(first, Choice(table=names), rows.n_rows, name=rows.name)


def warn_hints(
    rows: Rows,
    choice: Choice,
    others: Mapping[Any, Any] = MappingProxyType({}),
    *,
    is_asked: bool = False,
    last_labels: tuple[str, ...] = (),
) -> None:
    """Warn about a frame by its first rows; ``others`` are not the table."""
    n = _n_head(rows, others)
    values = dict(zip(choice.table, rows.head(n, MOST_COLUMNS).T, strict=False))
    first = values | {name: cells[:n].to_list() for name, cells in others.items()}
    rows.hints = hints(
        first,
        choice,
        rows.n_rows,
        name=rows.name,
        is_asked=is_asked,
        last_labels=last_labels,
    )
    for warning in rows.hints:
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
    """One row per cell: two keys or more repeat, their combinations hardly do."""
    values = list(head.choice.table)
    keys = [c for c in head.others if head.choice.kinds.get(c) not in NO_KEYS]
    for column in values[: max(2 - len(keys), 0)] if len(values) < 5 else ():
        if (np.floor(head.first[column]) == head.first[column]).all():
            keys.append(column)
            values.remove(column)
    is_panel = len(values) > MOST_VALUES and head.are_unlike
    if not (values and (len(values) <= MOST_VALUES or is_panel)):
        return
    cells = {key: list(head.first[key]) for key in keys[:MOST_KEYS] if key != ""}
    if some := _keys_of(cells, len(head.values), head.choice.table):
        frame = "frame" if head.in_file else "X"
        each = "each measure" if is_panel else "it"
        options = Option("keys", list(some)), Option("value", values[0])
        more: Text = ""
        if len(set(zip(*(cells[key] for key in some), strict=True))) < len(head.values):
            more = "; pairs that occur again need ", Option("duplicates", "sum")
        how = f"Then fit {each} with ", Call("fit_long", frame, options), more, "."
        yield "it may have one row per cell.", how


def _keys_of(
    cells: Mapping[Any, list[Any]], n: int, numbers: list[Any]
) -> tuple[Any, ...]:
    """Columns whose combinations name the rows, each of which repeats; or nothing."""
    counts = {key: len(set(column)) for key, column in cells.items()}
    repeated = [key for key in cells if 1.3 * counts[key] <= n]
    tried: list[tuple[tuple[Any, ...], float]] = []  # and how many combinations
    for size in range(2, len(repeated) + 1):
        tried += [(some, n) for some in combinations(repeated, size)]
    for pair in combinations(repeated, 2) if n >= 12 else ():
        tried.append((pair, max(n / 2, 1.3 * max(counts[key] for key in pair))))
    for some, fewest in tried:
        n_possible = np.prod([float(counts[key]) for key in some])
        is_number = any(key in numbers for key in some)
        is_dense = 2 * n >= n_possible or (n >= 50 and not is_number)
        if is_dense and n > 2 and (n > 11 or not is_number):
            found = set(zip(*(cells[key] for key in some), strict=True))
            if len(found) >= fewest:
                return some
    return ()


def _about_rising(head: _Head) -> Iterator[Hint]:
    """A first column that may label the rows."""
    if len(head.values) < FEWEST_RISING or len(head.names) < 2:
        return
    column = head.values[:, 0]
    if not ((np.floor(column) == column).all() and (np.diff(column) > 0.0).all()):
        return
    others = head.values[:, 1:]
    is_whole = (np.floor(others) == others).all(axis=0)  # NaN is not
    if not (is_whole & (np.diff(others, axis=0) > 0.0).all(axis=0)).any():
        yield (  # where several rise, the data are sorted or cumulative
            f"column {head.names[0]!r} holds whole numbers that only rise, and is "
            "fitted as data.",
            ("If it labels the rows, pass ", Option("id", [head.names[0]]), "."),
        )


def _about_cumulative(head: _Head) -> Iterator[Hint]:
    """Amounts that are added up from left to right, in a triangle."""
    is_triangle = (np.diff(head.ends) <= 0).all() and len(set(head.ends.tolist())) > 2
    if not is_triangle or head.ends[-1] == 0 or head.known.sum() < head.ends.sum():
        return
    steps = np.diff(head.values, axis=1)
    rises = np.count_nonzero(steps > 0.0)
    falls = np.count_nonzero(steps < 0.0)
    if rises > 0 and 20 * falls <= rises:  # recoveries make single amounts fall
        yield (
            "its missing cells form a triangle, and its rows rise from left to right.",
            "If the amounts are cumulative, fit the increments: the first column, and "
            "the difference of each other column and the one before it.",
        )


def _about_inner_holes(head: _Head) -> Iterator[Hint]:
    """Holes in a triangle before observed cells: readers write 0 as missing."""
    ends = np.maximum.accumulate(head.ends[::-1])[::-1]  # a last cell may be a hole
    n_steps = len(set(ends.tolist()))
    if n_steps < max(4, 0.7 * min(head.values.shape)) or ends[0] < len(head.names):
        return
    holes = int(head.ends.sum()) - int(head.known.sum())
    if holes:
        yield (
            f"its missing cells form a triangle, with {counted(holes, 'more hole')} "
            "before known cells of the same row; such holes are filled like the "
            "others.",
            "If nothing was paid there, write 0. The frames of chainladder have NaN "
            "for 0: pass the Triangle itself to a1gm.fit or a1gm.fit_many.",
        )


def _about_totals(head: _Head) -> Iterator[Hint]:
    """Columns, or a last row, that are called totals and are near to the others."""
    is_named = np.array([is_total(name) for name in head.names], bool)
    last = [str(head.first[c][-1]) for c in head.others]
    last += head.last_labels
    label = next(filter(is_total, last), None) if head.has_all_rows else None
    if label is None and not is_named.any():
        return
    sums = np.nansum(head.values, axis=0)
    like = "looks like the total of the others and counts as one of them."
    for j in np.flatnonzero(is_named).tolist():
        if _is_near(sums[j], sums[~is_named].sum()):
            how = Option("exclude", [head.names[j]]), " leaves it out."
            yield f"column {head.names[j]!r} {like}", how
    known = head.known[-1]
    row = float(head.values[-1][known].sum())
    rows = float(np.nansum(head.values[:-1, known]))
    if label is not None and len(head.values) > 2 and _is_near(row, rows):
        yield f"row {label!r} {like}", "Delete that row to leave it out."


def _is_near(total: float, others: float) -> bool:
    return bool(others > 0.0 and abs(total - others) <= NEAR * others < np.inf)


def _about_text(head: _Head) -> Iterator[Hint]:
    """Columns of text in which every cell looks like a number.

    A leading one that names each row, such as versions, or of digits is a label.
    """
    kinds = head.choice.kinds
    leading = {*takewhile(lambda column: column != head.names[0], kinds)}
    texts = [c for c in head.choice.inferred if kinds[c] == "text" and c in head.first]
    for column in texts[:MOST_COLUMNS]:
        if is_label(column, leads=True, is_first=False, has_times=False):
            continue
        some = [str(cell) for cell in head.first[column][:100]]
        cells = [cell for cell in some if cell not in MISSING]
        names_rows = column in leading and (
            len(cells) == len(some) or all(map(str.isdigit, cells))
        )
        if len(cells) < 2:
            continue
        how = sign_remedy(cells[0]) if all(map(sign_remedy, cells)) else None
        if how is None and not names_rows and all(map(_PLAIN.fullmatch, cells)):
            how = "convert it to have numbers"
        if how is not None:
            what = f"column {column!r} is text such as {cells[0]!r} and is not fitted."
            yield what, f"{how[0].upper()}{how[1:]}."


def _about_header(head: _Head) -> Iterator[Hint]:
    """A first line of data: names that are numbers, or missing, without a rule."""
    if not head.in_file:
        return
    names = head.choice.table
    texts = ["nan" if name in ("", "NA") else name for name in names]
    try:
        numbers = np.array(texts, float)
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


def _about_zeros(head: _Head) -> Iterator[Hint]:
    """Zeros in place of large values, in a table that rank 1 fits apart from them."""
    is_zero = head.values[:RANK_1_ROWS] == 0.0
    share = is_zero.sum() / max(head.known[:RANK_1_ROWS].sum(), 1)
    if not MANY_ZEROS <= share < 1.0 or len(is_zero) < FEWEST_RISING:
        return
    fitted, skill = head.rough
    typical = _mean(fitted[head.values[:RANK_1_ROWS] > 0.0])
    is_large = 2.0 * _mean(fitted[is_zero]) >= typical > SMALL_COUNT
    if is_large and skill > 0.2:
        mark: Text = "pass RankOneImputer(missing_values=0), or replace it by NaN"
        if head.in_file:
            mark = "pass ", Option("missing", ["0"])
        what = (
            f"{share:.0%} of its cells are 0, as often where large values are expected."
        )
        yield what, ("If 0 marks a missing cell, ", mark, ".")


def _mean(values: Floats) -> float:
    """The mean of the finite values; NaN without any."""
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else np.nan


def _about_unlike(head: _Head) -> Iterator[Hint]:
    """Columns that are different measures, or logarithms: rank 1 multiplies."""
    X = head.values
    sure = Call("assess", "frame" if head.in_file else "X")
    if head.are_unlike:
        yield (
            "its columns look like different measures: their means are nearer to the "
            "cells than rank 1 is.",
            ("See ", sure, "."),
        )
        return
    has_equal_means = len(head.names) > 2 and 1.0 <= head.ratio < LIKE
    is_long = len(X) >= FEWEST_ROWS / 2
    if has_equal_means and is_long and _are_like_logarithms(X[head.known]):
        yield (
            f"all values are below {LARGEST_LOGARITHM:g}, and the columns have nearly "
            "the same mean, as logarithms do.",
            ("If they are, fit the amounts themselves, and see ", sure, "."),
        )


def _are_like_logarithms(known: Floats) -> bool:
    """Whether cells are spread as logarithms of amounts: wide, and most in the middle.

    Prices and degrees have two decimals at most, or a small range.
    """
    low, first, third, high = np.quantile(known, [0.0, 0.25, 0.75, 1.0])
    is_bell = third - first < WIDEST_MIDDLE * (high - low)
    is_wide = low > 0.0 and high - low > LEAST_RANGE and high < LARGEST_LOGARITHM
    return bool(is_bell and is_wide and (np.round(known, 2) != known).any())


RULES = (
    _about_long,
    _about_rising,
    _about_cumulative,
    _about_inner_holes,
    _about_totals,
    _about_text,
    _about_header,
    _about_zeros,
)
