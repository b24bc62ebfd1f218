"""Which columns of a file name its rows instead of being data.

`role_of` is the rule. It needs a column's name, its place, and what its cells have
shown; a pass gathers that in `ColumnFacts` for the few columns that may be names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from a1gm._base.types import AnyArray
from a1gm._rows.files.numbers import read_cells
from a1gm._rows.files.options import TableOptions

if TYPE_CHECKING:
    import pyarrow as pa

#: ``names``: the column names the rows; ``unclear``: nobody but the user can tell.
Role: TypeAlias = Literal["data", "names", "unclear"]

#: Whole numbers that are compared with each other, at most: 64 MB. Those that go up
#: are compared with their neighbours only, and are not counted here.
MOST_COMPARED = 1 << 23
_FEWEST_THAT_COUNT = 3  # 1, 2 is as likely to be data
_FEWEST_AGAIN = 6  # counts of something may well be 0, 1, 2, 0
_YEARS = range(1700, 2201)
_CALENDAR = {"month": range(1, 13), "quarter": range(1, 5), "week": range(1, 54)}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ID_WORDS = _words("id ids uid uuid guid idx pk key nr no num number code")
#: Words that say it alone; "no" and "number" do not: yes,no are answers.
_ID_ALONE = _words(
    "id ids uid uuid guid idx pk key nr index row rowid rownum rownr rowno rowname "
    "rownames rownumber recno serial sn zip zipcode postcode plz"
)
#: Words of amounts: number_of_visits, total_no.
_AMOUNTS = _words("n of number num no total sum count mean average avg")
_TOTALS = _words("total totals totale totaal subtotal sum sums summe gesamt suma soma")
_WHOSE = (
    "user|customer|client|member|person|patient|subject|student|employee|account|"
    "policy|claim|contract|shop|store|site|plot|station|item|product|article|order|"
    "invoice|record|case|sample|movie|row|line|part|school|house|household|company"
)
_ID_COMPOUND = re.compile(rf"({_WHOSE})(id|nr|no|num|number|key|code)")
_YEAR_WORDS = _words("year yr jahr annee année anno año ano jaar rok fy")
_YEAR_OF = _words(
    "accident origin calendar fiscal financial underwriting uw birth report reporting "
    "policy survey model school season loss development tax crop harvest"
)
_SERIES = (
    _words("jan feb mar apr may jun jul aug sep oct nov dec"),
    _words("mon tue wed thu fri sat sun"),
)
_TOKENS = re.compile(r"[^\W\d_]+|\d+")
_HUMPS = re.compile(r"(?<=[a-zß-ÿ])(?=[A-Z])")


class Verdict(NamedTuple):
    """What a column is, and why, in words that follow the name of the column."""

    role: Role
    why: str = ""


@dataclass
class ColumnFacts:
    """What the cells of a column have shown so far."""

    name: str
    place: int  # in the file, from 0
    is_text: bool = False
    n_rows: int = 0
    n_missing: int = 0
    is_whole: bool = True
    counts_up: bool = True  # from 0 or 1, one by one
    counts_again: bool = True  # the same, and now and then from the start
    goes_up: bool = True  # every number above the one before
    least: float = np.inf
    most: float = -np.inf
    _first: float = field(default=np.nan, repr=False)
    _last: float = field(default=np.nan, repr=False)
    _seen: list[AnyArray] = field(default_factory=list, repr=False)

    def add(self, cells: pa.Array, options: TableOptions) -> None:
        """Look at the next cells."""
        if self.is_text or not len(cells):
            return
        if str(cells.type) in ("float", "double"):  # a typed file: ids are whole there
            self.counts_up = self.counts_again = False
        numbers, self.is_text = read_cells(cells, options)
        known = ~np.isnan(numbers)
        self.n_missing += len(cells) - int(known.sum())
        values = numbers[known]
        if len(values):
            self._add_numbers(values)
        self.n_rows += len(cells)

    def _add_numbers(self, values: AnyArray) -> None:
        if np.isnan(self._first):
            self._first, self._last = values[0], values[0] - 1
            self.counts_again &= bool(values[0] in (0, 1))
            self.counts_up &= self.counts_again
        before = np.concatenate(([self._last], values[:-1]))
        goes_on = values == before + 1
        starts = (values == self._first) & (before >= self._first + 2)
        self.counts_up &= bool(goes_on.all())
        self.counts_again &= bool((goes_on | starts).all())
        self.goes_up &= bool((values > before).all())
        self.is_whole &= bool((values == np.floor(values)).all())
        self.least = min(self.least, float(values.min()))
        self.most = max(self.most, float(values.max()))
        self._last = values[-1]
        if sum(map(len, self._seen)) + len(values) <= MOST_COMPARED:
            self._seen.append(values)

    @property
    def are_different(self) -> bool:
        """Whether no number comes twice, as far as they were compared."""
        if self.goes_up or not self._seen:
            return True
        seen = np.sort(np.concatenate(self._seen))  # ten times faster than np.unique
        return bool((seen[1:] != seen[:-1]).all())


def may_name_rows(name: str, place: int) -> bool:
    """Whether a column may name the rows, so that its cells must be looked at."""
    return place == 0 or _is_id(name) or _year_kind(name) != "" or _calendar(name) != []


def role_of(column: ColumnFacts, names: Sequence[str]) -> Verdict:
    """The rule: whether a column is data, names the rows, or is unclear.

    Parameters
    ----------
    column : ColumnFacts
        What is known of the column.
    names : sequence of str
        The names of all columns of the file.

    Returns
    -------
    Verdict
    """
    if column.is_text:
        return Verdict("names" if column.place == 0 else "data", "holds text")
    is_complete = column.is_whole and not column.n_missing
    if column.place == 0 and is_unnamed(column.name):
        if is_complete:
            return Verdict("names", "has no name")
        return Verdict("unclear", f"has no name, and {_fault(column)}")
    if _is_id(column.name):
        if is_complete and column.are_different:
            return Verdict("names", "holds whole numbers that are all different")
        return Verdict("unclear", f"is named like an id, but {_fault(column)}")
    return _role_by_time(column) or _role_by_counting(column, names)


def _fault(column: ColumnFacts) -> str:
    if column.n_missing:
        return "some of its cells are missing"
    if not column.is_whole:
        return "some of its numbers are not whole"
    return "some of its numbers come twice"


def _role_by_time(column: ColumnFacts) -> Verdict | None:
    known = column.n_rows - column.n_missing
    kind = _year_kind(column.name)
    is_whole = column.is_whole and known > 0
    if is_whole and column.least >= _YEARS[0] and column.most <= _YEARS[-1] and kind:
        if kind == "year" and not column.n_missing:
            return Verdict("names", "holds years")
        return Verdict("unclear", "is named like a year and may hold years")
    span = _calendar(column.name)
    if is_whole and span and column.least >= span[0] and column.most <= span[-1]:
        return Verdict("unclear", f"may say which {column.name.strip().lower()} it is")
    return None


def _role_by_counting(column: ColumnFacts, names: Sequence[str]) -> Verdict:
    is_first = column.place == 0 and column.n_rows >= _FEWEST_THAT_COUNT
    if not is_first or column.n_missing or not column.counts_again:
        return Verdict("data")
    counts = f"counts up from {int(column.least)}"
    if not column.counts_up:
        if column.n_rows < _FEWEST_AGAIN:
            return Verdict("data")
        return Verdict("unclear", f"{counts} again and again")
    if _in_series(names):
        return Verdict("unclear", f"{counts}, but is named like the other columns")
    return Verdict("names", counts)


def is_unnamed(name: str) -> bool:
    """Whether a header cell is empty, or says so in the words of a frame library."""
    return not name.strip() or re.fullmatch(r"Unnamed: \d+", name) is not None


def is_total(name: str) -> bool:
    """Whether a row or column is called a total."""
    return not _TOTALS.isdisjoint(_tokens(name))


@lru_cache(1 << 15)  # several rules ask for the words of every column
def _tokens(name: str) -> tuple[str, ...]:
    return tuple(token.lower() for token in _TOKENS.findall(_HUMPS.sub(" ", name)))


def _is_id(name: str) -> bool:
    words = _tokens(name)
    if not words:
        return name.strip() == "#"
    if len(words) == 1:
        return words[0] in _ID_ALONE or _ID_COMPOUND.fullmatch(words[0]) is not None
    if words[:-1] in (("unnamed",), ("level",), ("index", "level")):
        return words[-1].isdigit()
    is_amount = not _AMOUNTS.isdisjoint(words[:-1])
    row_index = words[-1] == "index" and words[-2] == "row"
    ends = words[-1] in _ID_WORDS or _ID_COMPOUND.fullmatch(words[-1]) is not None
    return not is_amount and (ends or row_index or words[0] in ("id", "uid"))


def _year_kind(name: str) -> str:
    """``year`` for a name that can only mean one, ``maybe`` for sales_last_year."""
    words = _tokens(name)
    if not words or not (words[-1] in _YEAR_WORDS or words[0] in _YEAR_WORDS):
        return ""
    others = [word for word in words if word not in _YEAR_WORDS]
    return "year" if all(word in _YEAR_OF for word in others) else "maybe"


def _calendar(name: str) -> Sequence[int]:
    return _CALENDAR.get(name.strip().lower(), [])


def _in_series(names: Sequence[str]) -> bool:
    """Whether the first name goes on in the second: x,y, jan,feb, q1,q2 or 10,20."""
    if len(names) < 2:
        return True
    one, two = (name.strip().lower() for name in names[:2])
    if any(one[:3] in series and two[:3] in series for series in _SERIES):
        return True
    shapes = [re.sub(r"[\d.]+", "9", name) for name in (one, two)]
    alike = shapes[0] == shapes[1] and "9" in shapes[0]
    return alike or (len(one) == len(two) == 1 and one.isalpha() and two.isalpha())
