"""A long table to a file, its missing pairs filled."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._base.types import AnyArray, Floats, Ints
from a1gm._fit.rounding import Rounding, rounded
from a1gm._rows.files.table import TableFiles
from a1gm._rows.files.text import joined
from a1gm._rows.files.whole import LongFile
from a1gm._write.fill import MARK, check_new_column
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

    files: TableFiles
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

        source = self.files.first
        kind = format_for(target, source.file.format)
        to_text = kind == "csv" and self.files.first.is_text
        for name in (*self._bounds, *[self.long.value + MARK] * self.mark):
            check_new_column(self.files.name, name, self.long.table.column_names)
        self._round()
        inside, found, absent = self._matched()
        numbers = _floats(found[self.long.value])
        known = ~np.isnan(numbers)
        new = _floats(absent[self.long.value])
        has_value = ~np.isnan(new)
        is_left = np.isnan(_floats(self.filled[self.long.value]))
        self.n_filled, self.n_left = int((~is_left).sum()), int(is_left.sum())
        table = self._with_values(inside[known], numbers[known], to_text=to_text)
        more = self._rows_of(absent, new, table.schema, to_text=to_text)
        for name, beside, below in self._added(inside, found, absent):
            columns = [self._column(x, to_text=to_text) for x in (beside, below)]
            table = table.append_column(name, columns[0])
            more = more.append_column(name, columns[1])
        if self.only_filled:
            table = table.take(pa.array(inside[known]))
            more = more.filter(pa.array(has_value))
        dialect = getattr(source, "dialect", None)
        with open_writer(
            target, table.schema, kind=kind, dialect=dialect, overwrite=overwrite
        ) as writer:
            for batch in (*table.to_batches(), *more.to_batches()):
                writer.write(batch)

    def _round(self) -> None:
        """Round the filled values and their bounds."""
        import pyarrow as pa

        numbers = self.long.numbers
        is_whole = not (numbers != np.floor(numbers))[~np.isnan(numbers)].any()
        for name in (self.long.value, *self._bounds):
            at = self.filled.schema.get_field_index(name)
            values = rounded(_floats(self.filled[name]), is_whole, self.round)
            column = pa.array(values, from_pandas=True)
            self.filled = self.filled.set_column(at, name, column)

    @property
    def _bounds(self) -> list[str]:
        return list(self.filled.column_names[len(self.long.keys) + 1 :])

    def _added(
        self, inside: Ints, found: pa.Table, absent: pa.Table
    ) -> Iterator[tuple[str, AnyArray, AnyArray]]:
        """Columns that are added: their cells in the rows that are there, and below."""
        for name in self._bounds:
            beside = np.full(len(self.long.table), np.nan)
            beside[inside] = _floats(found[name])
            yield name, beside, _floats(absent[name])
        if self.mark:
            value, is_filled = self.long.value, np.zeros(len(self.long.table), bool)
            is_filled[inside] = ~np.isnan(_floats(found[value]))
            yield value + MARK, is_filled, ~np.isnan(_floats(absent[value]))

    def _column(self, cells: AnyArray, *, to_text: bool) -> pa.Array:
        import pyarrow as pa

        return self._text(cells) if to_text else pa.array(cells, from_pandas=True)

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

    def _with_values(self, rows: Ints, numbers: Floats, *, to_text: bool) -> pa.Table:
        """The table as it stands, with numbers in the rows that had none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        table, value = self.long.table, self.long.value
        column: Any
        if to_text:
            mask = np.zeros(len(table), bool)
            mask[rows] = True
            text = joined(table[value].chunks)
            column = pc.replace_with_mask(text, pa.array(mask), self._text(numbers))
        elif len(rows) or self.files.first.is_text or len(self.filled):
            every = self.long.numbers.copy()
            every[rows] = numbers
            column = pa.array(every, from_pandas=True)
        else:
            return table
        return table.set_column(table.schema.get_field_index(value), value, column)

    def _rows_of(
        self, pairs: pa.Table, numbers: Floats, schema: pa.Schema, *, to_text: bool
    ) -> pa.Table:
        """Pairs as rows of the file: keys and value, and nothing else."""
        import pyarrow as pa

        columns: list[Any] = []
        for field in schema:
            if field.name == self.long.value:
                column = self._column(numbers, to_text=to_text)
            elif field.name in self.long.keys:
                column = pairs[field.name].cast(field.type)
            else:
                column = pa.nulls(len(pairs), field.type)
            columns.append(column)
        return pa.table(columns, schema=schema)

    def _text(self, cells: AnyArray) -> pa.Array:
        import pyarrow as pa

        text = pa.array(cells, from_pandas=True).cast(pa.string())
        if self.files.first.options.point == ",":
            import pyarrow.compute as pc

            text = pc.replace_substring(text, ".", ",")
        return text.cast(self.long.table[self.long.value].type)


def _floats(column: Any) -> Floats:
    return np.asarray(column.to_numpy(), np.float64)
