"""Which entities the tables share, and which block of the joint table each table is.

Every table relates two sets of entities: its rows and its columns. A table is an edge
between two sets, and the joint problem is a missing-data problem on one large table if
the sets have two sides so that every table lies between the sides (the graph is
bipartite).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from a1gm._base.float_range import LEAST
from a1gm._base.types import Floats, Ints, SmallInts
from a1gm._base.words import counted
from a1gm._rows.labels import first_difference, text_of_label
from a1gm._rows.rows import Part, Rows, read_parts
from a1gm.exceptions import (
    DataError,
    LabelError,
    NotRepresentableError,
    ParameterError,
    WeightsError,
)

PROPORTIONAL = 1e-12  # weights are a product of units when they agree to within this
OUT_OF_RANGE = (
    "The shared factors of these tables, or their weighted cells, are outside the "
    "range of float64 (about 1e-308 to 1e308). Multiply the tables by powers of ten "
    "that bring them nearer to 1, or use weights nearer to 1."
)
# Table, "rows" or "columns", how many, and their names if they have any.
Axis = tuple[str, str, int, Any]


@dataclass(frozen=True, eq=False)
class SharedTable:
    """One of the tables, and the names of the entity sets of its rows and columns.

    A table ``is_turned`` if its rows are columns of the joint table.
    """

    key: Hashable
    name: str
    rows: Rows
    row: Hashable
    col: Hashable
    weight: float
    is_turned: bool = False

    @property
    def sets(self) -> tuple[Hashable, Hashable]:
        """Both sets."""
        return self.row, self.col

    @cached_property
    def turned(self) -> Rows:
        """The table as it lies in the joint table."""
        return transpose(self.rows) if self.is_turned else self.rows

    @property
    def shape_text(self) -> str:
        """Rows and columns, in words."""
        return f"{self.rows.n_rows} x {self.rows.n_cols}"

    def without_data(self) -> SharedTable:
        """The same table with its shape and names only."""
        return replace(self, rows=replace(self.rows, parts=[]))


@dataclass(frozen=True, eq=False)
class Entities:
    """A set of entities with one factor each, once the joint table is fitted."""

    name: Hashable
    size: int
    labels: Any  # names of the entities, or positions
    is_column: bool  # whether they are columns of the joint table
    # Position of the first in the joint table; -1 for a set in tables of weight 0 only,
    # which is not in it.
    start: int
    factor: Floats = field(default_factory=lambda: np.zeros(0))
    blocks: Any = 0  # block of each entity; any number for those without data
    # For a set that is not in the joint table: position of the first entity there with
    # the block of each, which leads to the same cells; -1 without a block.
    stand_in: Ints | None = None

    @property
    def is_fitted(self) -> bool:
        """Whether some table of the set has weight."""
        return self.start >= 0

    @property
    def place(self) -> slice:
        """Positions of the entities in the joint table."""
        return slice(self.start, self.start + self.size)

    @property
    def block(self) -> SmallInts:
        """Block of each entity; -1 where the factor is 0 or NaN."""
        return np.where(self.factor > 0.0, self.blocks, -1).astype(np.int32)

    def positions(self, some: Ints) -> Ints:
        """Positions in the joint table of some entities, or of their stand-ins."""
        if self.stand_in is None:
            return some + self.start
        return np.maximum(self.stand_in[some], 0)


@dataclass(frozen=True)
class Layout:
    """The tables, and the entity sets between which they lie."""

    tables: tuple[SharedTable, ...]
    sets: dict[Hashable, Entities]

    @property
    def fitted(self) -> list[SharedTable]:
        """The tables of positive weight."""
        return [table for table in self.tables if table.weight]

    def fitted_sets(self, *, columns: bool) -> list[Entities]:
        """The sets of one side of the joint table, in the order in which they lie."""
        sets = self.sets.values()
        return [s for s in sets if s.is_column == columns and s.is_fitted]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the joint table."""
        rows, columns = (self.fitted_sets(columns=side) for side in (False, True))
        return rows[-1].place.stop, columns[-1].place.stop

    @cached_property
    def units(self) -> dict[Hashable, float] | None:
        """Units of the sets whose products are the weights; None if there are none.

        Factors times these units turn the weighted problem into the plain one.
        """
        units: dict[Hashable, float] = {}
        for table in _each_after_a_neighbour(self.fitted):
            row, col, weight = table.row, table.col, table.weight
            if row not in units:
                units[row] = weight / units[col] if col in units else 1.0
            units.setdefault(col, weight / units[row])
            if abs(units[row] * units[col] - weight) > PROPORTIONAL * weight:
                return None
        return units

    # ---------------------------------------------------------------- the joint table
    @property
    def steps(self) -> tuple[int, ...]:
        """Where the row sets begin in the joint table, and where the last ends."""
        return *(s.start for s in self.fitted_sets(columns=False)), self.shape[0]

    def cut(self, what: str, start: int, stop: int) -> list[Part]:
        """Rows of the joint table: "cells", "weights", or the "product" of both."""
        found = []
        for entities in self.fitted_sets(columns=False):
            first, last = max(start, entities.start), min(stop, entities.place.stop)
            if first < last:
                rows = slice(first - entities.start, last - entities.start)
                found.append(self._parts(what, entities, rows))
        if len(found) == 1:
            return found[0]
        dense = [read_parts(parts, 0, len(parts[0][0])) for parts in found]
        return [(np.concatenate(dense), None, None, 0)]

    def _parts(self, what: str, entities: Entities, rows: slice) -> list[Part]:
        """Some rows of a row set, with the columns of the joint table."""
        parts: list[Part] = []
        tables = {s: t for t in self.fitted for s in t.sets if entities.name in t.sets}
        for columns in self.fitted_sets(columns=True):
            table = tables.get(columns.name)
            if table is None or what == "weights":
                constant = 0.0 if what == "weights" else np.nan
                if table is not None:
                    constant = table.weight
                shape = rows.stop - rows.start, columns.size
                values = np.broadcast_to(np.float64(constant), shape)
                parts.append((values, None, None, 0))
            elif what == "cells" or table.weight == 1.0:
                parts += [
                    (v[rows], None if m is None else m[rows], bits, at + rows.start)
                    for v, m, bits, at in table.turned.parts
                ]
            else:
                cells = weighted(table.turned, rows, table.weight)
                parts.append((cells, None, None, 0))
        return parts


def weighted(table: Rows, rows: slice, weight: float) -> Floats:
    """Cells times the weight of their table; raise where digits are lost."""
    cells = table.rows(rows)
    with np.errstate(over="ignore", under="ignore"):
        found: Floats = cells * weight
    if not (np.fmin.reduce(found, None) >= LEAST and np.fmax.reduce(found, None) < inf):
        is_lost = (found < LEAST) & (cells > 0.0)
        if (is_lost | (np.isinf(found) & np.isfinite(cells))).any():
            raise NotRepresentableError(OUT_OF_RANGE)
    return found


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


# ---------------------------------------------------------------------- laying out
def lay_out(tables: list[SharedTable]) -> Layout:
    """Give every entity set a side, and check that shared sets are the same."""
    axes = _axes(tables)
    is_column = _two_sides(tables)
    fitted = {name for table in tables if table.weight for name in table.sets}
    _check_weights(tables, fitted)
    sets, ends = {}, [0, 0]
    for name, (_, _, size, labels) in axes.items():
        side, start = is_column[name], -1
        if name in fitted:
            start = ends[side]
            ends[side] += size
        names = range(size) if labels is None else labels
        sets[name] = Entities(name, size, names, side, start)
    turned = (replace(table, is_turned=is_column[table.row]) for table in tables)
    return Layout(tuple(turned), sets)


def _axes(tables: list[SharedTable]) -> dict[Hashable, Axis]:
    """An axis for each set; raise for a set that is related to itself, or differs."""
    known: dict[Hashable, Axis] = {}
    for table in tables:
        name, rows = table.name, table.rows
        if table.row == table.col:
            raise ParameterError(
                f"Table {name} relates {table.row!r} to itself: entities are either "
                "row entities or column entities, and cannot be both. Leave this table "
                "out, or give one of its two axes another name."
            )
        for entities, axis in zip(table.sets, axes_of(name, rows), strict=True):
            check_same_entities(entities, axis, known.setdefault(entities, axis))
            if known[entities][3] is None:  # a table with names stands for the others
                known[entities] = axis
    return known


def axes_of(name: str, rows: Rows) -> tuple[Axis, Axis]:
    """Both axes of a table."""
    by_row = name, "rows", rows.n_rows, rows.row_labels
    return by_row, (name, "columns", rows.n_cols, rows.col_labels)


def check_same_entities(entities: Hashable, axis: Axis, other: Axis) -> None:
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


def _two_sides(tables: list[SharedTable]) -> dict[Hashable, bool]:
    """Whether each set is on the side of the columns; the first table lies as it is."""
    found: dict[Hashable, bool] = {}
    for table in _each_after_a_neighbour(tables):
        row, col = table.row, table.col
        if row not in found:
            found[row] = not found.get(col, True)
        if found.setdefault(col, not found[row]) == found[row]:
            raise ParameterError(
                f"Table {table.name} relates {row!r} to {col!r}, but the tables before "
                "it put both on the same side: every table must lie between row "
                "entities and column entities, so a closed chain of tables needs an "
                "even number of them. Leave this table out, or give one of its two "
                "axes another name."
            )
    return found


def _each_after_a_neighbour(tables: Iterable[SharedTable]) -> Iterator[SharedTable]:
    """Yield the tables, those that share a set with one before as early as possible."""
    waiting, known = list(tables), set[Hashable]()
    while waiting:
        table = next((t for t in waiting if known & {*t.sets}), waiting[0])
        waiting.remove(table)
        known.update(table.sets)
        yield table


def _check_weights(tables: list[SharedTable], fitted: set[Hashable]) -> None:
    """Raise for factors that no table of positive weight determines.

    A table of weight 0 gives factors to its entities from those on its other side, so
    these must be in a table of positive weight.
    """
    if not fitted:
        raise WeightsError("All weights are zero: no table is left to fit.")
    pairs: set[frozenset[Hashable]] = set()
    for table in tables:
        pair = frozenset(table.sets)
        if table.weight and pair in pairs:
            raise ParameterError(
                f"Two tables relate the same entities, the second is {table.name}. Add "
                "the tables together if they count the same, or leave one out."
            )
        if table.weight:
            pairs.add(pair)
    for name in {s: None for table in tables for s in table.sets}:
        own = [table for table in tables if name in table.sets]
        across = [table.col if table.row == name else table.row for table in own]
        if name not in fitted and not fitted & {*across}:
            raise WeightsError(
                f"Every table of {name!r} ({' and '.join(t.name for t in own)}) has "
                f"weight 0, and {' and '.join(map(repr, across))} is in no table of "
                f"positive weight, so nothing determines the factors of {name!r}. Give "
                "one of these tables a positive weight, or leave them out."
            )
