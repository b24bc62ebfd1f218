"""Which columns are the table: one rule, by names and types, for every container.

Frames in memory, lazy frames, databases, text files, typed files, spreadsheets and
Dask all use `choose`, before a row is read. Estimators of scikit-learn do not: there
every column is a feature.

A container without types (text files, sheets, object columns) finds the kind of a
column in the pass that reads it: ``"number"`` if all cells are numbers or missing,
``"text"`` if none is a number; anything between is refused with the first cell that
disagrees. A column without any value is ``"number"``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from a1gm._base.warn import warn_user
from a1gm._base.words import listed
from a1gm._rows.labels import check_there, names_in, plain_text
from a1gm.exceptions import (
    Call,
    DataHintWarning,
    LabelError,
    NotNumericError,
    Option,
    Text,
)

Kind: TypeAlias = Literal["number", "bool", "text", "date", "other"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Last words of a label that no data column precedes: "customer_id", "AccidentYear".
KEYS = _words("id ids index year no nbr number code key date")

#: Whole names of labels that no data column precedes. Behind data they are labels
#: where there are two or more of them: "Month" and "Day" after the measurements.
TIMES = _words(
    "id ids year yr ay uy quarter month week day date datekey period timestamp"
)

#: Further whole names of labels that no data column precedes. The last word of the
#: first column may be one of these, or of the times.
PLACES = _words(
    "index origin cohort season site plot station shop store branch customer client "
    "user item product sku article patient subject gene fips zip zipcode postcode "
    "code nbr no number key region county country"
)
LABELS = TIMES | PLACES

MOST_KEYS = 6  # of a long table, in advice

_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WORD = re.compile(r"[^\W\d_]+")
_UNNAMED = re.compile(r"(Unnamed: ?\d+|index|level_\d+)?")
_STORED_INDEX = re.compile(r"__index_level_\d+__")  # as pandas writes it to Arrow


@dataclass
class Choice:
    """What each column of a table is used for."""

    table: list[Any] = field(default_factory=list)  # numbers: fitted and filled
    ids: list[Any] = field(default_factory=list)  # labels of the rows
    kept: list[Any] = field(default_factory=list)  # returned as they are
    inferred: list[Any] = field(default_factory=list)  # not named by the caller
    kinds: Mapping[Any, Kind] = field(default_factory=dict)

    def warning(self, name: str) -> DataHintWarning | None:
        """Return the warning about inferred columns; None if none needs one.

        Leading columns of text or dates are row labels in every table and need none.
        """
        kept = [c for c in self.inferred if c not in self.ids]
        ids = [c for c in self.inferred if c in self.ids and self.kinds[c] == "number"]
        parts = []
        if ids:
            parts.append(f"{_titles(ids)} as row labels")
        if kept:
            parts.append(f"{_titles(kept)} as not part of the table")
        if not parts:
            return None
        return DataHintWarning(
            f"took {' and '.join(parts)}, by name and type.",
            advice=(
                "Pass ",
                Option("columns"),
                " for the columns to fit, ",
                Option("id"),
                " for row labels, or ",
                Option("exclude"),
                " for columns to leave out.",
            ),
            where=name,
            is_inferred=True,
        )


def choose(
    schema: Mapping[Any, Kind],
    id: Any = None,
    columns: Any = None,
    exclude: Any = None,
    *,
    fitted: Iterable[Any] | None = None,
    data: Iterable[Any] = (),
    fewest: int = 2,
    has_index: bool = False,
    has_axis: bool = False,
    former_keys: Collection[Any] = (),
    name: str = "X",
) -> Choice:
    """Choose the columns of a table, its row labels, and those that are kept as is.

    ``schema`` has the kind of each column by its name, in the order of the table.
    ``id``, ``columns`` and ``exclude`` are names that the caller asks for: row labels,
    data, neither. ``fitted`` are the columns of a fit, which are data here as well; no
    others become row labels then, and ``id`` and ``exclude`` need not be there.
    ``data`` are names of data columns where the schema has them, such as those with a
    total. ``has_index``: the container's own index labels the rows; ``has_axis``: its
    columns are levels of a named key, as in a cross-table, so that no number column is
    a label but ``former_keys``, which names decide on. At least ``fewest`` columns are
    left where number columns are taken for labels.

    Raises LabelError for a name that is not there or where too few columns are left to
    fit, NotNumericError where no column holds numbers.

    Examples
    --------
    >>> kinds = {"shop": "text", "year": "number", "jan": "number", "feb": "number"}
    >>> choice = choose(kinds | {"note": "text"})
    >>> choice.table, choice.ids, choice.kept
    (['jan', 'feb'], ['shop', 'year'], ['note'])
    """
    ids = dict.fromkeys(names_in(id))
    asked = dict.fromkeys(names_in(columns))
    left_out = dict.fromkeys(names_in(exclude))
    if fitted is None:
        check_there(name, (*ids, *asked, *left_out), list(schema), LabelError)
    rule = _Rule(
        known={plain_text(label) for label in (*names_in(fitted), *data)},
        has_axis=has_axis,
        former_keys=former_keys,
        has_times=have_times(schema),
    )
    infers_ids = fitted is None and not ids and not has_index
    choice = Choice(ids=[c for c in ids if c in schema], kinds=schema)
    for position, (column, kind) in enumerate(schema.items()):
        if column in ids:
            continue
        leads = not choice.table
        if columns is not None:
            is_data = column in asked and column not in left_out
            (choice.table if is_data else choice.kept).append(column)
        elif column in left_out:
            choice.kept.append(column)
        elif rule.is_data(column, kind, leads=leads, is_first=position == 0):
            choice.table.append(column)
        else:
            labels_rows = leads and infers_ids and kind != "bool"
            (choice.ids if labels_rows else choice.kept).append(column)
            choice.inferred.append(column)
    if len(choice.table) < (fewest if fitted is None else 1):
        _check_enough(name, choice)
    return choice


@dataclass
class _Rule:
    """Which columns are data where nobody names them."""

    known: set[str]  # names of data columns
    has_axis: bool
    former_keys: Collection[Any]
    has_times: bool

    def is_data(self, column: Any, kind: Kind, *, leads: bool, is_first: bool) -> bool:
        """Whether a column is data; ``leads``: no data column is before it."""
        if self.known and plain_text(column) in self.known:
            return True
        is_level = self.has_axis and not (leads and column in self.former_keys)
        if kind != "number" or is_level:
            return kind == "number"
        times = self.has_times
        return not is_label(column, leads=leads, is_first=is_first, has_times=times)


@dataclass
class ColumnOptions:
    """Which columns of a frame the caller asks for, as in ``choose``.

    ``every``: every column is a feature.
    """

    id: Any = None
    columns: Any = None
    exclude: Any = None
    fitted: Any = None
    data: Iterable[Any] = ()
    fewest: int = 2
    every: bool = False

    @property
    def has_names(self) -> bool:
        """Whether the caller names columns."""
        has_none = self.id is None and self.columns is None and self.exclude is None
        return not has_none and self.fitted is None

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """What the choice depends on, beside the columns."""
        return (
            None if self.columns is None else names_in(self.columns),
            *map(names_in, (self.id, self.exclude, self.fitted, self.data)),
            self.fewest,
            self.every,
        )

    def unused(self, names: Iterable[Any]) -> set[Any]:
        """Columns whose kind does not matter."""
        if self.columns is not None:
            return {*names}.difference(names_in(self.columns))
        return {*names_in(self.id), *names_in(self.exclude)}

    def choose(
        self,
        kinds: Mapping[Any, Kind],
        name: str,
        *,
        has_index: bool = False,
        has_axis: bool = False,
        former_keys: Collection[Any] = (),
    ) -> Choice | None:
        """Choose among columns of these kinds; None where every one is the table."""
        if self.every:
            choice = Choice(table=list(kinds))
        else:
            choice = choose(
                kinds,
                self.id,
                self.columns,
                self.exclude,
                fitted=self.fitted,
                data=self.data,
                fewest=self.fewest,
                has_index=has_index,
                has_axis=has_axis,
                former_keys=former_keys,
                name=name,
            )
        bad = [c for c in choice.table if kinds[c] not in ("number", "bool")]
        if bad:
            words = [f"{column!r} ({kinds[column]})" for column in bad]
            raise NotNumericError(
                f"{name} has columns that do not hold numbers: {listed(words)}. "
                "Convert or drop them.",
                columns=tuple(bad),
            )
        return choice if len(choice.table) < len(kinds) else None

    def warn(self, choice: Choice | None, name: str) -> None:
        """Warn of what was inferred."""
        if choice is None or self.every or self.fitted is not None:
            return
        warning = choice.warning(name)
        if warning is not None:
            warn_user(warning)


BY_RULE = ColumnOptions()
EVERY_COLUMN = ColumnOptions(every=True)


def columns_like(choice: Choice | None, labels: Any) -> ColumnOptions:
    """Options that take the columns of another table, by its labels."""
    if labels is None:
        return BY_RULE
    if choice is None:
        return ColumnOptions(fitted=labels)
    return ColumnOptions(choice.ids, exclude=choice.kept, fitted=labels)


def is_label(name: Any, *, leads: bool, is_first: bool, has_times: bool) -> bool:
    """Whether a number column is a label by its name, not data.

    ``leads``: no data column is before it; ``has_times``: see ``have_times``. A name
    that is a number, ends in a digit or has the word "per" is never a label.

    Examples
    --------
    >>> is_label("store_nbr", leads=True, is_first=True, has_times=False)
    True
    >>> is_label("births per year", leads=True, is_first=True, has_times=False)
    False
    """
    text = str(name).strip()
    if (leads and _UNNAMED.fullmatch(text)) or is_stored_index(text):
        return True
    words = words_of(text)
    if not words or "per" in words or text[-1].isdigit():
        return False
    whole = "".join(words)
    if not leads:
        return has_times and whole in TIMES
    last = words[-1]
    return whole in LABELS or last in KEYS or (is_first and last in LABELS)


def is_stored_index(name: str) -> bool:
    """Whether pandas gave a column of a typed file this name: an index without one."""
    return _STORED_INDEX.fullmatch(name) is not None


def former_keys(
    kinds: Mapping[Any, Kind], types: Sequence[Any], *, has_named_index: bool
) -> list[Any]:
    """Leading columns of a pivot or a cross-table that may come from its index.

    ``kinds`` and ``types`` are those of its columns. pandas sorts the levels of a key
    and gives them one type; ``reset_index()`` puts the keys of the rows before them. A
    leading name of a label is a level where the names rise from there to the first
    other name and the types stay the same.

    Examples
    --------
    >>> kinds = {"year": "number", "apples": "number", "pears": "number"}
    >>> former_keys(kinds, [int, int, int], has_named_index=True)
    ['year']
    >>> kinds = {"No": "number", "Yes": "number"}
    >>> former_keys(kinds, [int, int], has_named_index=True)
    []
    """
    names = list(kinds)
    n_keys = 0 if has_named_index else 1
    for at, (name, next_name) in enumerate(pairwise(names)):
        if types[at] != types[at + 1] or not _rises(name, next_name):
            n_keys = at + 1
        if kinds[next_name] == "number" and not is_label(
            next_name, leads=True, is_first=False, has_times=False
        ):
            break
    return names[:n_keys]


def _rises(name: Any, next_name: Any) -> bool:
    """Whether names are in the order of their sort; other types are in none."""
    try:
        return bool(name < next_name)
    except TypeError:
        return False


def have_times(names: Iterable[Any]) -> bool:
    """Whether two or more columns are called like times.

    Examples
    --------
    >>> have_times(["Ozone", "Month", "Day"]), have_times(["Morning", "Day", "Night"])
    (True, False)
    """
    return sum("".join(words_of(name)) in TIMES for name in names) > 1


def words_of(name: Any) -> list[str]:
    """Lower-case words of a name.

    Examples
    --------
    >>> words_of("AccidentYear"), words_of("store_nbr")
    (['accident', 'year'], ['store', 'nbr'])
    """
    return _WORD.findall(_HUMP.sub(" ", str(name)).lower())


def _titles(columns: list[Any]) -> str:
    return listed([repr(column) for column in columns])


def _check_enough(name: str, choice: Choice) -> None:
    """Raise where no column is left to fit, or one by guesses about the others."""
    labels = [c for c in choice.inferred if choice.kinds[c] == "number"]
    if choice.table and not labels:
        return
    if choice.inferred and not labels:
        raise NotNumericError(
            f"{name} has no number column. It has: {_titles(choice.inferred)}.",
            columns=tuple(choice.inferred),
        )
    left = f"one column left to fit, {_titles(choice.table)}"
    if not choice.table:
        left = "no column left to fit"
    were = "was" if len(labels) == 1 else "were"
    why = f"; {_titles(labels)} {were} taken for labels" if labels else ""
    raise LabelError(
        f"{name} has {left}{why}.",
        advice=(
            "Pass ",
            Option("columns"),
            " with the columns to fit, or ",
            Option("id"),
            " with the row labels",
            _long_advice(name, choice),
            ".",
        ),
    )


def _long_advice(name: str, choice: Choice) -> Text:
    """The call that fits one column as a long table, where others may be its keys."""
    keys = [c for c in choice.inferred if choice.kinds[c] not in ("bool", "other")]
    if not choice.table or not 1 < len(keys) <= MOST_KEYS:
        return ()
    frame = "X" if name == "X" else "frame"
    options = Option("keys", keys), Option("value", choice.table[0])
    return "; if the table has one row per cell, ", Call("fit_long", frame, options)
