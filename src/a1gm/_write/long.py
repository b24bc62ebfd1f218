"""A long table to a file, its missing pairs filled."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._base.types import AnyArray, Floats
from a1gm._fit.fill import Rounding, rounded
from a1gm._rows.files.table import LongFile
from a1gm._rows.files.text import joined
from a1gm._write.fill import MARK, as_text, check_new_column, format_of, open_writer

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

        long, value, n = self.long, self.long.value, len(self.long.table)
        source, keys = long.files.first, list(long.keys)
        to_text = format_of(target, source) == "csv" and source.is_text
        bounds = self.filled.column_names[len(keys) + 1 :]
        for name in (*bounds, *[value + MARK] * self.mark):
            check_new_column(long.files.name, name, long.table.column_names)
        row = self._rows()
        absent = self.filled.select(keys).filter(pa.array(row < 0))
        places = np.where(row < 0, n + np.cumsum(row < 0) - 1, row)
        numbers = long.numbers[~np.isnan(long.numbers)]
        is_whole = bool((numbers == np.floor(numbers)).all())
        cells: dict[str, AnyArray] = {}  # one for each row of the result
        for name in (value, *bounds):
            found = np.asarray(self.filled[name].to_numpy(), np.float64)
            cells[name] = np.full(n + len(absent), np.nan)
            cells[name][places] = rounded(found, is_whole, self.round)
        fills = cells.pop(value)
        is_filled = ~np.isnan(fills)
        self.n_filled = int(is_filled.sum())
        self.n_left = len(self.filled) - self.n_filled
        if self.mark:
            cells[value + MARK] = is_filled
        types = pa.schema([long.table.schema.field(name) for name in keys])
        parts = [long.table, absent.cast(types)]
        table = pa.concat_tables(parts, promote_options="default")
        if source.is_text or len(self.filled):
            column = self._values(table[value], fills, is_filled, to_text=to_text)
            at = table.schema.get_field_index(value)
            table = table.set_column(at, value, column)
        for name, new in cells.items():
            added = pa.array(new, from_pandas=True)
            added = as_text(added, source.options.point) if to_text else added
            table = table.append_column(name, added)
        if self.only_filled:
            table = table.filter(pa.array(is_filled))
        with open_writer(
            target, table.schema, like=source, overwrite=overwrite
        ) as writer:
            for batch in table.to_batches():
                writer.write(batch)

    def _rows(self) -> Any:
        """Return for each pair the row that gets its value, -1 without such a row.

        Of several rows of one pair the first: their values would be added.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        keys = list(self.long.keys)
        row, place = (max(keys, key=len) + mark for mark in "+-")
        empty = np.flatnonzero(np.isnan(self.long.numbers))
        rows = self.long.frame.select(keys).take(pa.array(empty))
        rows = rows.append_column(row, pa.array(empty)).group_by(keys)
        pairs = self.filled.select(keys)
        pairs = pairs.append_column(place, pa.array(np.arange(len(pairs))))
        pairs = pairs.join(rows.aggregate([(row, "min")]), keys).sort_by(place)
        return pc.fill_null(pairs[f"{row}_min"], -1).to_numpy()

    def _values(
        self, column: Any, fills: Floats, is_filled: AnyArray, *, to_text: bool
    ) -> Any:
        """Return the column of the values with the fills in it."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if to_text:
            new = as_text(
                pa.array(fills[is_filled]), self.long.files.first.options.point
            )
            return pc.replace_with_mask(joined(column.chunks), pa.array(is_filled), new)
        numbers = np.pad(
            self.long.numbers,
            (0, len(fills) - len(self.long.numbers)),
            constant_values=np.nan,
        )
        return pa.array(np.where(is_filled, fills, numbers), from_pandas=True)
