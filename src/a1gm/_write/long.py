"""Long tables in files: one row per cell, read, and written with their fills."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._base.types import AnyArray, Floats, Negatives
from a1gm._fit.fill import Rounding, rounded
from a1gm._rows.files.table import Progress, TableFiles
from a1gm._rows.files.text import joined
from a1gm._rows.libraries import WHOLE
from a1gm._write.fill import MARK, as_text, check_new_column, format_of, write_table

if TYPE_CHECKING:
    import pyarrow as pa


class LongFile:
    """The rows of files: the cells as they are, and the numbers of one column.

    Bad values are refused with their place; None for ``negatives`` leaves that to the
    fit, which may be one of many. ``reason`` is why the column of the values is needed,
    for messages; ``weight`` is the column of the weights or exposures. ``table`` has
    all columns as they are, ``frame`` has numbers in these two.
    """

    n_filled = n_left = 0  # pairs, when written; a pair may be in several rows

    def __init__(
        self,
        files: TableFiles,
        keys: Sequence[str],
        value: str,
        negatives: Negatives | None = "raise",
        progress: Progress | None = None,
        reason: str | None = None,
        weight: str | None = None,
    ) -> None:
        import pyarrow as pa

        names = [value] if weight is None else [value, weight]
        files = files.choosing(columns=names, exclude=(), id=keys, reason=reason)
        self.files, self.keys, self.value = files, list(keys), value
        # Of weighted values some do not count.
        checked = negatives if weight is None else None
        options: Any = {"negatives": checked, "progress": progress}
        rows, self.table = files.in_memory(all_columns=True, **options)
        cells = rows.cells
        self.numbers: Floats = cells[:, 0]
        self.frame = self.table
        for name, column in zip(names, cells.T, strict=True):
            at = self.frame.column_names.index(name)
            self.frame = self.frame.set_column(at, name, pa.array(column))

    def write(
        self,
        target: str | os.PathLike[str],
        filled: pa.Table,
        *,
        only_filled: bool,
        mark: bool,
        round: Rounding,
        **how: Any,
    ) -> None:
        """Write the table with filled pairs; the file appears whole or not at all.

        ``filled`` are the missing pairs, in the columns of the keys and of the value,
        and of what is to be added for them. Rows that hold a value stay as they are,
        those without one get it, and pairs that are in no row come last, with nothing
        in other columns. ``mark`` adds a column: which values were filled; ``how`` is
        for `open_writer`.
        """
        import pyarrow as pa

        value, keys, n = self.value, self.keys, len(self.table)
        source = self.files.first
        to_text = format_of(target, source) == "csv" and source.is_text
        bounds = filled.column_names[len(keys) + 1 :]
        for name in (*bounds, *[value + MARK] * mark):
            check_new_column(self.files.name, name, self.table.column_names)
        row = self._rows(filled)
        absent = filled.select(keys).filter(pa.array(row < 0))
        places = np.where(row < 0, n + np.cumsum(row < 0) - 1, row)
        numbers = self.numbers[~np.isnan(self.numbers)]
        is_whole = bool((numbers == np.floor(numbers)).all())
        cells: dict[str, AnyArray] = {}  # one for each row of the result
        for name in (value, *bounds):
            found = np.asarray(filled[name].to_numpy(), np.float64)
            cells[name] = np.full(n + len(absent), np.nan)
            cells[name][places] = rounded(found, is_whole, round)
        fills = cells.pop(value)
        is_filled = ~np.isnan(fills)
        self.n_filled = int(is_filled.sum())
        self.n_left = len(filled) - self.n_filled
        if mark:
            cells[value + MARK] = is_filled
        types = pa.schema([self.table.schema.field(name) for name in keys])
        parts = [self.table, absent.cast(types)]
        table = pa.concat_tables(parts, promote_options="default")
        if source.is_text or len(filled):
            column = self._values(table[value], fills, is_filled, to_text=to_text)
            is_integer = source.is_text or pa.types.is_integer(table[value].type)
            is_whole = is_whole and is_integer and round == "auto"
            if is_whole and column.type == pa.float64():
                with suppress(pa.ArrowInvalid):  # beyond int64
                    column = column.cast(pa.int64())
            at = table.schema.get_field_index(value)
            table = table.set_column(at, value, column)
        for name, new in cells.items():
            added = pa.array(new, from_pandas=True)
            added = as_text(added, source.options.point) if to_text else added
            table = table.append_column(name, added)
        if only_filled:
            table = table.filter(pa.array(is_filled))
        write_table(target, table, like=source, **how)

    def _rows(self, filled: pa.Table) -> Any:
        """Return for each pair the row that gets its value, -1 without such a row.

        Of several rows of one pair the first: their values would be added.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        keys = self.keys
        row, place = (max(keys, key=len) + mark for mark in "+-")
        empty = np.flatnonzero(np.isnan(self.numbers))
        rows = self.frame.select(keys).take(pa.array(empty))
        rows = rows.append_column(row, pa.array(empty)).group_by(keys)
        pairs = filled.select(keys)
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
            new = as_text(pa.array(fills[is_filled]), self.files.first.options.point)
            return pc.replace_with_mask(joined(column.chunks), pa.array(is_filled), new)
        if pa.types.is_integer(column.type) and np.nanmax(self.numbers) >= WHOLE:
            new = pa.array(np.rint(fills[is_filled])).cast(column.type)
            return pc.replace_with_mask(joined(column.chunks), pa.array(is_filled), new)
        numbers, known = fills.copy(), np.flatnonzero(~np.isnan(self.numbers))
        numbers[known] = self.numbers[known]
        return pa.array(numbers, from_pandas=True)
