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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from a1gm._base.warn import warn_user
from a1gm._base.words import listed
from a1gm._rows.labels import check_there, names_in, plain_text
from a1gm.exceptions import DataHintWarning, LabelError, NotNumericError, Option

Kind: TypeAlias = Literal["number", "bool", "text", "date", "other"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Last words that make a label of a number column with no data column before it:
#: "customer_id", "AccidentYear".
KEYS = _words("id ids index year no nbr number code key date")

#: Whole names that make a label of a number column anywhere, and last words that make
#: one of the first column.
LABELS = _words(
    "id ids index year yr ay uy origin cohort season quarter month week day date "
    "datekey period timestamp site plot station shop store branch customer client "
    "user item product sku article patient subject gene fips zip zipcode postcode "
    "code nbr no number key region county country "
    "plz filiale kunde artikel jahr monat"
)

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
    has_index: bool = False,
    name: str = "X",
) -> Choice:
    """Choose the columns of a table, its row labels, and those that are kept as is.

    ``schema`` has the kind of each column by its name, in the order of the table.
    ``id``, ``columns`` and ``exclude`` are names that the caller asks for: row labels,
    data, neither. ``fitted`` are the columns of a fit, which are data here as well; no
    others become row labels then, and ``id`` and ``exclude`` need not be there.
    ``has_index``: the container's own index labels the rows.

    Raises LabelError for a name that is not there or where no column is left to fit,
    NotNumericError where no column holds numbers.

    Examples
    --------
    >>> schema = {"shop": "text", "year": "number", "jan": "number", "note": "text"}
    >>> choice = choose(schema)
    >>> choice.table, choice.ids, choice.kept
    (['jan'], ['shop', 'year'], ['note'])
    """
    ids, asked, left_out = (
        dict.fromkeys(names_in(names)) for names in (id, columns, exclude)
    )
    known = {plain_text(label) for label in names_in(fitted)}
    if fitted is None:
        check_there(name, (*ids, *asked, *left_out), list(schema), LabelError)
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
        elif (known and plain_text(column) in known) or (
            kind == "number"
            and not is_label(column, leads=leads, is_first=position == 0)
        ):
            choice.table.append(column)
        else:
            labels_rows = leads and infers_ids and kind != "bool"
            (choice.ids if labels_rows else choice.kept).append(column)
            choice.inferred.append(column)
    if not choice.table:
        raise _nothing_left(name, choice)
    return choice


@dataclass
class ColumnOptions:
    """Which columns of a frame the caller asks for, as in ``choose``.

    ``every``: every column is a feature.
    """

    id: Any = None
    columns: Any = None
    exclude: Any = None
    fitted: Any = None
    every: bool = False

    @property
    def has_names(self) -> bool:
        """Whether the caller names columns."""
        is_asked = not (self.id is None is self.columns is self.exclude)
        return is_asked and self.fitted is None

    def unused(self, names: Iterable[Any]) -> set[Any]:
        """Columns whose kind does not matter."""
        if self.columns is not None:
            return {*names}.difference(names_in(self.columns))
        return {*names_in(self.id), *names_in(self.exclude)}

    def choose(
        self, kinds: Mapping[Any, Kind], name: str, *, has_index: bool
    ) -> Choice | None:
        """Choose among columns of these kinds, and warn of what was inferred.

        None where every column is the table.
        """
        if self.every:
            choice = Choice(table=list(kinds))
        else:
            choice = choose(
                kinds,
                self.id,
                self.columns,
                self.exclude,
                fitted=self.fitted,
                has_index=has_index,
                name=name,
            )
            if self.fitted is None and (warning := choice.warning(name)):
                warn_user(warning)
        bad = [c for c in choice.table if kinds[c] not in ("number", "bool")]
        if bad:
            words = [f"{column!r} ({kinds[column]})" for column in bad]
            raise NotNumericError(
                f"{name} has columns that do not hold numbers: {listed(words)}. "
                "Convert or drop them.",
                columns=tuple(bad),
            )
        return choice if len(choice.table) < len(kinds) else None


BY_RULE = ColumnOptions()
EVERY_COLUMN = ColumnOptions(every=True)


def columns_like(choice: Choice | None, labels: Any) -> ColumnOptions:
    """Options that take the columns of another table, by its labels."""
    if labels is None:
        return BY_RULE
    if choice is None:
        return ColumnOptions(fitted=labels)
    return ColumnOptions(choice.ids, exclude=choice.kept, fitted=labels)


def is_label(name: Any, *, leads: bool, is_first: bool) -> bool:
    """Whether a number column is a label by its name, not data.

    ``leads``: no data column is before it. A name that is a number or ends in a digit
    is never a label.

    Examples
    --------
    >>> is_label("store_nbr", leads=True, is_first=True)
    True
    >>> is_label("week_1", leads=True, is_first=True)
    False
    """
    text = str(name).strip()
    if (leads and _UNNAMED.fullmatch(text)) or _STORED_INDEX.fullmatch(text):
        return True
    if not text or text[-1].isdigit():
        return False
    words = words_of(text)
    if not words:
        return False
    last = words[-1]
    return (
        "".join(words) in LABELS
        or (leads and last in KEYS)
        or (is_first and last in LABELS)
    )


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


def _nothing_left(name: str, choice: Choice) -> LabelError | NotNumericError:
    labels = [c for c in choice.inferred if choice.kinds[c] == "number"]
    if choice.inferred and not labels:
        return NotNumericError(
            f"{name} has no number column. It has: {_titles(choice.inferred)}.",
            columns=tuple(choice.inferred),
        )
    were = "was" if len(labels) == 1 else "were"
    why = f"; {_titles(labels)} {were} taken for labels" if labels else ""
    advice = "Pass ", Option("columns"), " with the columns to fit."
    return LabelError(f"{name} has no column left to fit{why}.", advice=advice)
