"""A long table to a file, its missing pairs filled."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._base.types import AnyArray, Bools, Floats, Ints
from a1gm._fit.fill import Rounding, rounded
from a1gm._rows.files.table import LongFile
from a1gm._rows.files.text import joined
from a1gm._write.fill import MARK, as_text, check_new_column
from a1gm._write.writers import format_for, open_writer

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class FillLong:
    """Puts filled pairs into the rows of a long file, and behind them.

    ``filled`` are the missing pairs, in the columns of the keys and of the value, and
    of what is to be added for them. Rows that hold a value stay as they are, those
    without one get it, and pairs that are in no row come last, with nothing in other
    columns.
    """

    long: LongFile
    filled: pa.Table
    only_filled: bool = False
    mark: bool = False  # add a column that marks which values were filled
    round: Rounding = None
    n_filled: int = 0  # pairs, which may be in several rows
    n_left: int = 0

    def write(self, target: str | os.PathLike[str], *, overwrite: bool) -> None:
        """Write the table; the file appears whole or not at all."""
        import pyarrow as pa

        long, source = self.long, self.long.files.first
        kind, value = format_for(target, source.file.format), long.value
        self._to_text = kind == "csv" and source.is_text
        bounds = self.filled.column_names[len(long.keys) + 1 :]
        for name in (*bounds, *[value + MARK] * self.mark):
            check_new_column(long.files.name, name, long.table.column_names)
        self._round([value, *bounds])
        is_left = np.isnan(_floats(self.filled[value]))
        self.n_filled, self.n_left = int((~is_left).sum()), int(is_left.sum())
        inside, found, absent = self._matched()
        cells: dict[str, tuple[AnyArray, AnyArray]] = {}  # in rows there are, and below
        for name in (value, *bounds):
            beside = np.full(len(long.table), np.nan)
            beside[inside] = _floats(found[name])
            cells[name] = beside, _floats(absent[name])
        fills, new = cells.pop(value)
        is_filled, is_new = ~np.isnan(fills), ~np.isnan(new)
        if self.mark:
            cells[value + MARK] = is_filled, is_new
        table = self._with_values(fills, is_filled)
        columns: list[Any] = [
            self._column(new)
            if column.name == value
            else absent[column.name].cast(column.type)
            if column.name in long.keys
            else pa.nulls(len(absent), column.type)
            for column in table.schema
        ]
        more = pa.table(columns, schema=table.schema)
        for name, (beside, below) in cells.items():
            table = table.append_column(name, self._column(beside))
            more = more.append_column(name, self._column(below))
        if self.only_filled:
            table = table.filter(pa.array(is_filled))
            more = more.filter(pa.array(is_new))
        how: Any = {"kind": kind, "dialect": getattr(source, "dialect", None)}
        with open_writer(target, table.schema, **how, overwrite=overwrite) as writer:
            for batch in (*table.to_batches(), *more.to_batches()):
                writer.write(batch)

    def _round(self, names: list[str]) -> None:
        """Round the filled values and their bounds."""
        import pyarrow as pa

        numbers = self.long.numbers
        is_whole = not (numbers != np.floor(numbers))[~np.isnan(numbers)].any()
        for name in names:
            at = self.filled.schema.get_field_index(name)
            values = rounded(_floats(self.filled[name]), is_whole, self.round)
            column = pa.array(values, from_pandas=True)
            self.filled = self.filled.set_column(at, name, column)

    def _matched(self) -> tuple[Ints, pa.Table, pa.Table]:
        """Rows without a value, what they get, and the pairs that are in no row.

        Of several rows of one pair the first: their values would be added.
        """
        import pyarrow as pa

        long, keys = self.long, list(self.long.keys)
        inside = np.flatnonzero(np.isnan(long.numbers))
        if not len(inside):
            return inside, self.filled.slice(0, 0), self.filled
        at = max([*keys, self.long.value, *self.filled.column_names], key=len) + "+"
        rows = long.frame.select(keys).take(pa.array(inside))
        rows = rows.append_column(at, pa.array(inside)).group_by(keys)
        rows = rows.aggregate([(at, "min")]).select([*keys, f"{at}_min"])
        rows = rows.rename_columns([*keys, at])
        found = rows.join(self.filled, keys, join_type="left outer").sort_by(at)
        places = pa.array(np.arange(len(self.filled)))
        absent = self.filled.append_column(at, places)
        absent = absent.join(rows.select(keys), keys, join_type="left anti")
        absent = absent.sort_by(at).drop_columns([at])
        return found[at].to_numpy(), found, absent

    def _with_values(self, fills: Floats, is_filled: Bools) -> pa.Table:
        """The table as it stands, with fills in the rows that had no value."""
        import pyarrow as pa
        import pyarrow.compute as pc

        table, value = self.long.table, self.long.value
        column: Any
        if self._to_text:
            text, new = joined(table[value].chunks), self._column(fills[is_filled])
            column = pc.replace_with_mask(text, pa.array(is_filled), new)
        elif self.long.files.first.is_text or len(self.filled):
            every = np.where(is_filled, fills, self.long.numbers)
            column = pa.array(every, from_pandas=True)
        else:
            return table
        return table.set_column(table.schema.get_field_index(value), value, column)

    def _column(self, cells: AnyArray) -> pa.Array:
        import pyarrow as pa

        column, long = pa.array(cells, from_pandas=True), self.long
        if not self._to_text:
            return column
        text = as_text(column, long.files.first.options.point)
        return text.cast(long.table[long.value].type)


def _floats(column: Any) -> Floats:
    return np.asarray(column.to_numpy(), np.float64)
