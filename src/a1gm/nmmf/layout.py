"""Which entities the tables share, and which block of the joint table each table is.

Every table relates two sets of entities: its rows and its columns. A table is an edge
between two sets, and the joint problem is a missing-data problem on one large table if
the sets can be given two sides so that every table lies between the sides (the graph is
bipartite).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from a1gm._base.words import counted
from a1gm._rows import Rows, read_input
from a1gm._rows.columns import BY_RULE, ColumnOptions
from a1gm._rows.labels import first_difference, text_of_label
from a1gm._rows.read import is_sparse
from a1gm._rows.rows import Part
from a1gm.exceptions import (
    DataError,
    LabelError,
    ParameterError,
    WeightsError,
)

PROPORTIONAL = 1e-12  # weights are a product a_r b_c when they agree to within this
# Key, name in messages, row entities, column entities, table and weight.
Declared = tuple[Hashable, str, Hashable, Hashable, Rows, float]
# Table, "rows" or "columns", how many, and their names if they have any.
Axis = tuple[str, str, int, Any]


@dataclass(frozen=True, slots=True)
class SharedTable:
    """One of the tables; ``rows`` is turned so that it lies as in the joint table."""

    key: Hashable
    name: str
    rows: Rows
    row_set: int
    col_set: int
    weight: float
    transposed: bool

    @property
    def own(self) -> Rows:
        """The table as its owner has it."""
        return transpose(self.rows) if self.transposed else self.rows

    @property
    def shape_text(self) -> str:
        """Shape as its owner has it."""
        n, m = self.rows.n_rows, self.rows.n_cols
        return f"{m} x {n}" if self.transposed else f"{n} x {m}"

    def where(self, row: int, col: int) -> str:
        """Name a cell the way its owner does."""
        return self.own.where(col, row) if self.transposed else self.own.where(row, col)


@dataclass(frozen=True, slots=True)
class EntitySet:
    """A set of entities with one factor each, and where it is in the joint table.

    Sets in tables of weight 0 only are nowhere there: their slice is empty.
    """

    name: Hashable
    size: int
    place: slice

    @property
    def is_fitted(self) -> bool:
        """Whether some table of the set has weight."""
        return bool(self.place.stop > self.place.start)


@dataclass(frozen=True)
class Layout:
    """The entity sets of both sides and the tables between them."""

    row_sets: tuple[EntitySet, ...]
    col_sets: tuple[EntitySet, ...]
    tables: tuple[SharedTable, ...]

    @property
    def fitted(self) -> list[SharedTable]:
        """The tables of positive weight."""
        return [table for table in self.tables if table.weight]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the joint table."""
        return self.row_sets[-1].place.stop, self.col_sets[-1].place.stop

    def labels_of(self, name: Hashable) -> Any:
        """Names of the entities of a set, from the first table with any; or numbers."""
        size = 0
        for table in self.tables:
            for entities, labels in (
                (self.row_sets[table.row_set], table.rows.row_labels),
                (self.col_sets[table.col_set], table.rows.col_labels),
            ):
                if entities.name == name:
                    if labels is not None:
                        return labels
                    size = entities.size
        return range(size)

    def without_data(self) -> Layout:
        """The same layout with tables that know their shape and names only."""
        tables = (replace(t, rows=replace(t.rows, parts=[])) for t in self.tables)
        return replace(self, tables=tuple(tables))

    @cached_property
    def units(self) -> tuple[dict[int, float], dict[int, float]] | None:
        """Units a, b with weight = a[row_set] * b[col_set]; None if there are none.

        Then w' = a w and h' = b h turn the weighted problem into the plain one. They
        are read off a spanning forest of the tables; the other tables are checked.
        """
        a: dict[int, float] = {}
        b: dict[int, float] = {}
        waiting = self.fitted
        while waiting:
            joined = [t for t in waiting if t.row_set in a or t.col_set in b]
            table = joined[0] if joined else waiting[0]
            waiting.remove(table)
            r, c = table.row_set, table.col_set
            if r not in a:
                a[r] = table.weight / b[c] if c in b else 1.0
            b.setdefault(c, table.weight / a[r])
            if abs(a[r] * b[c] - table.weight) > PROPORTIONAL * table.weight:
                return None
        return a, b


def lay_out(declared: Iterable[Declared]) -> Layout:
    """Give every entity set a side, and check that shared sets are the same."""
    entries = list(declared)
    _check_sets(entries)
    side = _two_sides([(name, row, col) for _, name, row, col, _, _ in entries])
    numbers: tuple[dict[Hashable, int], ...] = ({}, {})  # of the sets of each side
    sizes: dict[Hashable, int] = {}
    tables: list[SharedTable] = []
    for key, name, row, col, rows, weight in entries:
        sizes[row], sizes[col] = rows.n_rows, rows.n_cols
        pair, turned, given = (row, col), side[row] == 1, rows
        if turned:
            pair, given = (col, row), transpose(rows)
        r, c = (
            of_side.setdefault(entities, len(of_side))
            for of_side, entities in zip(numbers, pair, strict=True)
        )
        tables.append(SharedTable(key, name, given, r, c, weight, turned))
    fitted = {s for _, _, row, col, _, weight in entries if weight for s in (row, col)}
    sets: tuple[list[EntitySet], ...] = ([], [])
    for of_side, found in zip(numbers, sets, strict=True):
        start = 0
        for entities in of_side:
            stop = start + sizes[entities] * (entities in fitted)
            found.append(EntitySet(entities, sizes[entities], slice(start, stop)))
            start = stop
    layout = Layout(tuple(sets[0]), tuple(sets[1]), tuple(tables))
    _check_weights(layout)
    return layout


def _check_weights(layout: Layout) -> None:
    """Raise for factors that no table of positive weight determines.

    A table of weight 0 gives factors to its entities from those on its other side, so
    these must be in a table of positive weight.
    """
    if not layout.fitted:
        raise WeightsError("All weights are zero: no table is left to fit.")
    pairs = [(table.row_set, table.col_set) for table in layout.fitted]
    for k, table in enumerate(layout.fitted):
        if pairs[k] in pairs[:k]:
            raise ParameterError(
                f"Two tables relate the same entities, the second is {table.name}. Add "
                "the tables together if they count the same, or leave one out."
            )
    for side, own, other in (
        ("row_set", layout.row_sets, layout.col_sets),
        ("col_set", layout.col_sets, layout.row_sets),
    ):
        across_side = "col_set" if side == "row_set" else "row_set"
        for number, entities in enumerate(own):
            tables = [t for t in layout.tables if getattr(t, side) == number]
            across = [other[getattr(t, across_side)] for t in tables]
            if not (entities.is_fitted or any(s.is_fitted for s in across)):
                names = " and ".join(t.name for t in tables)
                others = " and ".join(repr(s.name) for s in across)
                raise WeightsError(
                    f"Every table of {entities.name!r} ({names}) has weight 0, and "
                    f"{others} is in no table of positive weight, so nothing "
                    f"determines the factors of {entities.name!r}. Give one of these "
                    "tables a positive weight, or leave them out."
                )


def _check_sets(entries: list[Declared]) -> None:
    """Raise for a set that is related to itself, or differs between two tables."""
    known: dict[Hashable, Axis] = {}
    for _, name, row, col, rows, _ in entries:
        if row == col:
            raise ParameterError(
                f"Table {name} relates {row!r} to itself: entities are either row "
                "entities or column entities, and cannot be both. Leave this table "
                "out, or give one of its two axes a name of its own."
            )
        for entities, axis in (
            (row, (name, "rows", rows.n_rows, rows.row_labels)),
            (col, (name, "columns", rows.n_cols, rows.col_labels)),
        ):
            _check_same_entities(entities, axis, known.setdefault(entities, axis))
            if known[entities][3] is None:  # a table with names stands for the others
                known[entities] = axis


def _check_same_entities(entities: Hashable, axis: Axis, other: Axis) -> None:
    """Raise if the two axes differ in their number of entities, or in their names."""
    name, side, size, labels = axis
    other_name, other_side, other_size, other_labels = other
    if size != other_size:
        raise DataError(
            f"{name} has {counted(size, side[:-1])}, but {other_name} has "
            f"{counted(other_size, other_side[:-1])}: both are the entities "
            f"{entities!r} and must have the same number, in the same order."
        )
    at = first_difference(labels, other_labels)
    if at is not None:
        raise LabelError(
            f"The {side} of {name} and the {other_side} of {other_name} are the same "
            f"entities, but number {at} is {text_of_label(labels[at])} in {name} and "
            f"{text_of_label(other_labels[at])} in {other_name}. Put them in the same "
            "order, or pass arrays without names."
        )


def _two_sides(edges: list[tuple[str, Hashable, Hashable]]) -> dict[Hashable, int]:
    """Side (0 rows, 1 columns) of each entity set; the first table keeps its sides."""
    side: dict[Hashable, int] = {}
    waiting = list(edges)
    while waiting:
        joined = next((e for e in waiting if e[1] in side or e[2] in side), None)
        name, row, col = joined or waiting[0]
        waiting.remove((name, row, col))
        if row not in side:
            side[row] = 1 - side[col] if col in side else 0
        if side.setdefault(col, 1 - side[row]) == side[row]:
            raise ParameterError(
                f"Table {name} relates {row!r} to {col!r}, but the tables before it "
                "put both on the same side: every table must lie between row entities "
                "and column entities, so a closed chain of tables needs an even number "
                "of them. Leave this table out, or give one of its two axes a name of "
                "its own."
            )
    return side


# ------------------------------------------------------------------ reading the tables
def open_table(table: Any, name: str, columns: ColumnOptions = BY_RULE) -> Rows:
    """Read a table that messages call ``name``; sparse ones are refused."""
    if is_sparse(table):
        raise ParameterError(
            f"{name} is a SciPy sparse table, which a joint fit does not read. Make it "
            "dense: toarray() gives zeros for the cells that are not stored; where "
            "these are missing and not zero, put NaN instead."
        )
    rows: Rows = read_input(table, name=name, columns=columns)
    return replace(rows, name=name)


def read_table(table: Any, name: str, columns: ColumnOptions = BY_RULE) -> Rows:
    """Read a table into one piece."""
    return open_table(table, name, columns).in_one_piece()


def read_side(
    table: Any, name: str, axis: int, x: Rows, columns: ColumnOptions = BY_RULE
) -> Rows | None:
    """Read a table that shares an axis with X; None if it has no entities of its own.

    ``axis`` is the shared one. A table of no rows (or, for Z, no columns) of its own
    must still have the columns (rows) of X.
    """
    if table is None:
        return None
    shape = getattr(table, "shape", None)
    is_empty = isinstance(shape, tuple) and len(shape) == 2 and shape[1 - axis] == 0
    rows = None if is_empty else read_table(table, name, columns)
    size = shape[axis] if rows is None else (rows.n_rows, rows.n_cols)[axis]  # type: ignore[index]
    what, of_x = ("column", x.n_cols) if axis else ("row", x.n_rows)
    if size != of_x:
        raise DataError(
            f"{name} has {counted(size, what)}, but X has {of_x}: it shares the "
            f"{what}s of X and needs the same ones in the same order."
        )
    return rows


def transpose(rows: Rows) -> Rows:
    """Return the same table with rows and columns exchanged, copied only if it must."""
    parts: list[Part] = []
    if len(rows.parts) == 1 and rows.parts[0][2] is None:
        values, mask, *rest = rows.parts[0]
        parts = [(values.T, None if mask is None else mask.T, *rest)]  # type: ignore[list-item]
    elif rows.parts:  # columns of a frame do not lie in one piece
        parts = [(rows.rows(slice(0, rows.n_rows)).T, None, None, 0)]
    labels = rows.col_labels, rows.row_labels
    return Rows(parts, rows.n_cols, rows.n_rows, *labels, name=rows.name)
