"""Fill the holes of a file's batches and leave everything else as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from a1gm._base.types import Bools, Floats, Ints
from a1gm.exceptions import DataError, LabelError
from a1gm._sources.files.csv import CsvSource
from a1gm._sources.files.reader import Block, TableReader

if TYPE_CHECKING:
    import pyarrow as pa

_MARK = "_filled"
#: Takes the number of the first row and the rows, returns them with holes filled and
#: NaN where nothing can be known.
RowFill: TypeAlias = Callable[[int, Floats], Floats]


@dataclass
class HoleCount:
    """Holes and fractions per column, counted in one pass.

    Attributes
    ----------
    missing : ndarray of int64
        Missing cells of each column of the table.
    is_whole : ndarray of bool
        Whether all observed numbers of the column are known to be whole.
    """

    missing: Ints
    is_whole: Bools

    @classmethod
    def of_columns(cls, n_columns: int, *, check_whole: bool = False) -> HoleCount:
        """Start counting; whole numbers are looked for only when asked."""
        return cls(np.zeros(n_columns, dtype=np.int64), np.full(n_columns, check_whole))

    def add(self, values: Floats) -> HoleCount:
        """Count a block."""
        self.missing += np.isnan(values).sum(axis=0)
        for j in np.flatnonzero(self.is_whole):
            column = values[:, j]
            with np.errstate(invalid="ignore"):
                whole = (column == np.floor(column)) & (np.abs(column) < 2**53)
            self.is_whole[j] = bool(np.all(whole | np.isnan(column)))
        return self


@dataclass
class Filler:
    """Turns blocks as read into batches to write.

    Parameters
    ----------
    table : TableReader
        The file; its columns must be settled.
    row_fill : callable
        Given the number of the first row and some rows, gives them with their holes
        filled.
    holes : HoleCount
        The holes of its table.
    mark : bool
        Whether to add a column per filled column that says which cells were filled.
    to_text : bool
        Whether the batches go to a text file. Text that came from a text file is then
        kept letter by letter.

    Attributes
    ----------
    schema : pyarrow.Schema
        The columns of the batches to write. A column with holes keeps its type if that
        can hold a fraction; integers with holes become float64.
    n_filled, n_left : int
        Cells filled so far, and holes that stay because nothing can be known.
    """

    table: TableReader
    row_fill: RowFill
    holes: HoleCount
    mark: bool = False
    to_text: bool = True
    n_filled: int = 0
    n_left: int = 0
    schema: pa.Schema = field(init=False)

    def __post_init__(self) -> None:
        import pyarrow as pa

        self._position = {name: j for j, name in enumerate(self.table.names)}
        self._is_filled = np.zeros(len(self.table.names), bool)
        fields = [self._field(column) for column in self.table.source.schema]
        self._marked = [
            name for name in self.table.names if self.mark and self._has_holes(name)
        ]
        for name in self._marked:
            if name + _MARK in self.table.source.schema.names:
                raise LabelError(
                    f"{self.table.name} already has a column {name + _MARK!r}, which "
                    "--mark would add. Rename it."
                )
            kind = pa.string() if self.to_text else pa.bool_()
            fields.append(pa.field(name + _MARK, kind))
        self.schema = pa.schema(fields, metadata=self.table.source.schema.metadata)

    @property
    def columns_filled(self) -> list[str]:
        """Columns of the table in which cells were filled."""
        named = zip(self.table.names, self._is_filled, strict=True)
        return [name for name, is_filled in named if is_filled]

    def fill(self, block: Block) -> pa.RecordBatch:
        """Fill the holes of a block."""
        import pyarrow as pa

        holes = np.isnan(block.values)
        values = block.values
        if holes.any():
            values = self.row_fill(block.first_row, block.values)
        filled = holes & ~np.isnan(values)
        self.n_filled += int(filled.sum())
        self._is_filled |= filled.any(axis=0)
        self.n_left += int(holes.sum()) - int(filled.sum())
        columns = [
            self._column(block, column, values, filled)
            for column in self.table.source.schema
        ]
        columns += [self._mark_of(filled[:, self._position[n]]) for n in self._marked]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _has_holes(self, name: str) -> bool:
        return bool(self.holes.missing[self._position[name]])

    def _field(self, column: pa.Field) -> pa.Field:
        import pyarrow as pa

        name, kind = column.name, column.type
        if name not in self._position:
            return column
        if isinstance(self.table.source, CsvSource):
            if self.to_text:
                return column
            whole = self.holes.is_whole[self._position[name]]
            return pa.field(
                name,
                pa.int64() if whole and not self._has_holes(name) else pa.float64(),
            )
        keeps = pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        if keeps or not self._has_holes(name):
            return column
        return pa.field(name, pa.float64(), metadata=column.metadata)

    def _column(
        self, block: Block, column: pa.Field, values: Floats, filled: Bools
    ) -> pa.Array:
        import pyarrow as pa

        cells = block.batch.column(block.batch.schema.get_field_index(column.name))
        if column.name not in self._position:
            return cells
        j = self._position[column.name]
        target = self.schema.field(column.name).type
        if isinstance(self.table.source, CsvSource) and not self.to_text:
            return pa.array(values[:, j], target, from_pandas=True)
        where = filled[:, j]
        cells = self._as_type(cells, target, column.name)
        if not where.any():
            return cells
        return self._replaced(cells, where, values[where, j], target)

    def _as_type(self, cells: pa.Array, target: pa.DataType, name: str) -> pa.Array:
        import pyarrow as pa

        if cells.type == target:
            return cells
        try:
            return cells.cast(target)
        except pa.ArrowInvalid as error:
            raise DataError(
                f"{self.table.name}, column {name!r}: integers above 2**53 cannot "
                "stand beside filled fractions without being rounded. Leave the column "
                f"out with --exclude {name}, or store it as float64."
            ) from error

    def _replaced(
        self, cells: pa.Array, where: Bools, numbers: Floats, target: pa.DataType
    ) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        fills = pa.array(numbers)
        if pa.types.is_string(target):
            fills = fills.cast(pa.string())
            if self.table.options.decimal == ",":
                fills = pc.replace_substring(fills, ".", ",")
        elif pa.types.is_decimal(target):
            # Rounded to the digits the column has.
            fills = pc.round(fills, ndigits=target.scale).cast(target, safe=False)
        elif fills.type != target:
            fills = fills.cast(target, safe=False)
        return pc.replace_with_mask(cells, pa.array(where), fills)

    def _mark_of(self, filled: Bools) -> pa.Array:
        import pyarrow as pa

        marks = pa.array(filled)
        return marks.cast(pa.string()) if self.to_text else marks
