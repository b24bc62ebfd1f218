"""Which entities the tables share, and on which side of the joint table each stands.

Every table relates two sets of entities: those of its rows and those of its columns.
A table is an edge between two sets, and the joint problem is a missing-data problem on
one large table when the sets can be given two sides so that every table lies between
the sides (the graph is bipartite).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from a1gm._base.types import Floats
from a1gm._rows import Rows
from a1gm._rows.rows import Part, name_cell
from a1gm.exceptions import ParameterError, WeightsError
from a1gm.nmmf.entities import Axis, check_same_entities

PROPORTIONAL = 1e-12  # weights are a product a_r b_c when they agree to within this


@dataclass(frozen=True, slots=True)
class SharedTable:
    """One of the tables, turned so that its rows stand on the row side."""

    key: Hashable
    name: str
    source: Rows
    row_set: int
    col_set: int
    weight: float
    transposed: bool
    columns: slice  # among the columns of all tables of its row set

    @property
    def is_passive(self) -> bool:
        """Whether the table does not steer the factors it shares."""
        return self.weight == 0.0

    @property
    def n_rows(self) -> int:
        """Rows, as turned."""
        return self.source.n_rows

    @property
    def n_cols(self) -> int:
        """Columns, as turned."""
        return self.source.n_cols

    @property
    def parts(self) -> list[Part]:
        """Stretches of columns, as the kernel reads them."""
        return self.source.parts

    @property
    def shape_text(self) -> str:
        """Shape as its owner sees it."""
        n, m = self.n_rows, self.n_cols
        return f"{m} x {n}" if self.transposed else f"{n} x {m}"

    def without_data(self) -> SharedTable:
        """The same table with its shape and names only."""
        return replace(self, source=replace(self.source, parts=[]))

    def where(self, row: int, col: int, row_offset: int = 0) -> str:
        """Name a cell the way its owner does."""
        rows, cols = self.source.row_labels, self.source.col_labels
        row += row_offset
        if self.transposed:
            rows, cols, row, col = cols, rows, col, row
        return name_cell(rows, cols, row, col, name=self.name)


@dataclass(frozen=True, slots=True)
class EntitySet:
    """A set of entities with one factor each, and its tables by number."""

    name: Hashable
    size: int
    tables: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The entity sets of both sides and the tables between them."""

    row_sets: tuple[EntitySet, ...]
    col_sets: tuple[EntitySet, ...]
    tables: tuple[SharedTable, ...]

    def of_rows(self, r: int) -> list[SharedTable]:
        """Tables that share the rows of a row set."""
        return [self.tables[t] for t in self.row_sets[r].tables]

    def is_passive_set(self, entities: EntitySet) -> bool:
        """Whether no table of these entities steers."""
        return all(self.tables[t].is_passive for t in entities.tables)

    def labels_of(self, name: Hashable) -> Any:
        """Names of the entities of a set, from the first table that has them."""
        found = [
            labels
            for t in self.tables
            for entities, labels in (
                (self.row_sets[t.row_set], t.source.row_labels),
                (self.col_sets[t.col_set], t.source.col_labels),
            )
            if entities.name == name and labels is not None
        ]
        return found[0] if found else None

    def without_data(self) -> Layout:
        """The same layout with tables that know their shape only."""
        return replace(self, tables=tuple(t.without_data() for t in self.tables))

    @property
    def steering(self) -> list[SharedTable]:
        """The tables that decide the factors they share."""
        return [table for table in self.tables if not table.is_passive]

    def spanning_order(self) -> Iterator[tuple[SharedTable, bool]]:
        """Yield the steering tables, each after one that shares a set with it.

        The second is True for tables that share no set with those before.
        """
        rows: set[int] = set()
        cols: set[int] = set()
        waiting = self.steering
        while waiting:
            joined = [t for t in waiting if t.row_set in rows or t.col_set in cols]
            table = joined[0] if joined else waiting[0]
            waiting.remove(table)
            rows.add(table.row_set)
            cols.add(table.col_set)
            yield table, not joined

    def split_weights(self) -> tuple[Floats, Floats] | None:
        """Find a, b with weight = a[row_set] * b[col_set]; None if they do not exist.

        Then w' = a w and h' = b h turn the weighted problem into the plain one. The
        factors are read off a spanning forest, and the other tables checked.
        """
        pairs = [(table.row_set, table.col_set) for table in self.steering]
        if len(set(pairs)) < len(pairs):  # two tables relate the same sets
            return None
        a, b = np.zeros(len(self.row_sets)), np.zeros(len(self.col_sets))
        for table, is_first in self.spanning_order():
            r, c = table.row_set, table.col_set
            if is_first:
                a[r] = 1.0
            if not a[r]:
                a[r] = table.weight / b[c]
            elif not b[c]:
                b[c] = table.weight / a[r]
            if abs(a[r] * b[c] - table.weight) > PROPORTIONAL * table.weight:
                return None
        return a, b


def lay_out(
    declared: Iterable[tuple[Hashable, str, Hashable, Hashable, Rows, float]],
) -> Layout:
    """Give every entity set a side, and check that shared sets have one size.

    ``declared`` yields (key, name, row entities, column entities, table, weight).
    """
    entries = list(declared)
    _check_sets(entries)
    side = _two_sides([(name, row, col) for _, name, row, col, _, _ in entries])
    rows: dict[Hashable, list[int]] = {}  # numbers of the tables of each set
    cols: dict[Hashable, list[int]] = {}
    sizes: dict[Hashable, int] = {}
    tables: list[SharedTable] = []
    for k, (key, name, row, col, source, weight) in enumerate(entries):
        turned = side[row] == 1
        if turned:
            row, col, source = col, row, transpose(source)  # noqa: PLW2901
        sizes[row], sizes[col] = source.n_rows, source.n_cols
        rows.setdefault(row, []).append(k)
        cols.setdefault(col, []).append(k)
        r, c = list(rows).index(row), list(cols).index(col)
        start = sum(table.n_cols for table in tables if table.row_set == r)
        columns = slice(start, start + source.n_cols)
        tables.append(SharedTable(key, name, source, r, c, weight, turned, columns))
    row_sets, col_sets = (
        tuple(EntitySet(name, sizes[name], tuple(of)) for name, of in sets.items())
        for sets in (rows, cols)
    )
    return Layout(row_sets, col_sets, tuple(tables))


def check_passive_sets(layout: Layout) -> None:
    """Raise for entities whose tables, and those of their partners, all have weight 0.

    A table of weight 0 gives factors to its entities from those on its other side, so
    these must be in a table that steers.
    """
    sides = (layout.row_sets, layout.col_sets)
    for own, other in (sides, sides[::-1]):
        for entities in own:
            if not layout.is_passive_set(entities):
                continue
            tables = [layout.tables[t] for t in entities.tables]
            across = [
                other[t.col_set if own is layout.row_sets else t.row_set]
                for t in tables
            ]
            if all(layout.is_passive_set(s) for s in across):
                _refuse_passive_set(entities, tables, across)


def _refuse_passive_set(
    entities: EntitySet, tables: list[SharedTable], across: list[EntitySet]
) -> None:
    names = " and ".join(t.name for t in tables)
    others = " and ".join(repr(s.name) for s in across)
    has, its = ("have", "their") if len(tables) > 1 else ("has", "its")
    msg = (
        f"{names} {has} weight 0, and {others} on {its} other side is in no table of "
        f"positive weight, so nothing determines the factors of {entities.name!r}. "
        f"Give a table of {entities.name!r} or {others} a positive weight, or leave "
        f"{names} out."
    )
    raise WeightsError(msg)


def _check_sets(
    entries: list[tuple[Hashable, str, Hashable, Hashable, Rows, float]],
) -> None:
    """Raise for a set that is related to itself, or differs between two tables."""
    known: dict[Hashable, Axis] = {}
    for _, name, row, col, source, _ in entries:
        if row == col:
            msg = (
                f"Table {name} relates {row!r} to itself: entities are either row "
                "entities or column entities, and cannot be both. Leave this table "
                "out, or give one of its two axes a name of its own."
            )
            raise ParameterError(msg)
        for entities, axis in (
            (row, (name, "rows", source.n_rows, source.row_labels)),
            (col, (name, "columns", source.n_cols, source.col_labels)),
        ):
            check_same_entities(entities, axis, known.setdefault(entities, axis))
            if known[entities][3] is None:  # a table with names speaks for the others
                known[entities] = axis


def _two_sides(edges: list[tuple[str, Hashable, Hashable]]) -> dict[Hashable, int]:
    """Side (0 rows, 1 columns) of each entity set; the first table keeps its sides."""
    side: dict[Hashable, int] = {}
    waiting = list(edges)
    while waiting:
        joined = next((e for e in waiting if e[1] in side or e[2] in side), None)
        name, row, col = joined or waiting[0]
        waiting.remove((name, row, col))
        if joined is None:
            side[row] = 0
        if row in side:
            side.setdefault(col, 1 - side[row])
        else:
            side[row] = 1 - side[col]
        if side[row] == side[col]:
            msg = (
                f"Table {name} relates {row!r} to {col!r}, but the tables before it "
                "put both on the same side: every table must lie between row entities "
                "and column entities, so a closed chain of tables needs an even number "
                "of them. Leave this table out, or give one of its two axes a name of "
                "its own."
            )
            raise ParameterError(msg)
    return side


def transpose(source: Rows) -> Rows:
    """Return the same table with rows and columns exchanged, without copying it."""
    parts: list[Part]
    if len(source.parts) == 1 and source.parts[0][2] is None:
        values, mask, _, offset, group = source.parts[0]
        parts = [(values.T, None if mask is None else mask.T, None, offset, group)]
    else:  # column frames do not lie in one piece
        parts = [(source.rows(slice(0, source.n_rows)).T, None, None, 0, 0)]
    return Rows(
        parts,
        source.n_cols,
        source.n_rows,
        source.col_labels,
        source.row_labels,
        name=source.name,
    )
