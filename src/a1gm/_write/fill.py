"""Fill the holes of a file's batches and leave everything else as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from a1gm._base.types import Bools, Floats
from a1gm._sources.arrow import with_floats
from a1gm._sources.files.counts import ColumnCounts
from a1gm._sources.files.options import hint
from a1gm._sources.files.piece import Piece
from a1gm._sources.files.table_file import TableFile
from a1gm.exceptions import DataError, LabelError

if TYPE_CHECKING:
    import pyarrow as pa

_MARK = "_filled"


@dataclass
class Filler:
    """Turns pieces as read into batches to write, which have the columns ``schema``.

    ``fill_rows`` gives rows with their holes filled, NaN where nothing can be known. A
    column with holes keeps its type if that can hold a fraction; integers with holes
    become float64. Text that goes from a text file to another is kept letter by letter.
    """

    file: TableFile  # its columns must be settled
    fill_rows: Callable[[Floats], Floats]
    counts: ColumnCounts  # of the whole table
    mark: bool = False  # add a column per filled one: which cells were filled
    to_text: bool = True
    n_filled: int = 0  # so far
    n_left: int = 0  # holes that stay because nothing can be known
    schema: pa.Schema = field(init=False)

    def __post_init__(self) -> None:
        import pyarrow as pa

        self._position = {name: j for j, name in enumerate(self.file.names)}
        self._is_filled = np.zeros(len(self.file.names), bool)
        fields = [self._field(column) for column in self.file.source.schema]
        self._marked = [
            name for name in self.file.names if self.mark and self._has_holes(name)
        ]
        for name in self._marked:
            if name + _MARK in self.file.source.schema.names:
                raise LabelError(
                    f"{self.file.name} already has a column {name + _MARK!r}, which "
                    f"{hint('mark', True)} would add. Rename it."
                )
            kind = pa.string() if self.to_text else pa.bool_()
            fields.append(pa.field(name + _MARK, kind))
        before = self.file.source.schema
        pairs = zip(before, fields, strict=False)
        changed = [old.name for old, new in pairs if old.type != new.type]
        metadata = with_floats(before.metadata, changed)
        self.schema = pa.schema(fields, metadata=metadata)

    @property
    def columns_filled(self) -> list[str]:
        """Columns of the table in which cells were filled."""
        named = zip(self.file.names, self._is_filled, strict=True)
        return [name for name, is_filled in named if is_filled]

    def fill(self, piece: Piece) -> pa.RecordBatch:
        """Fill the holes of a piece, which has all columns of the file."""
        import pyarrow as pa

        values = piece.values
        holes = np.isnan(values)
        if holes.any():
            values = self.fill_rows(values)
        filled = holes & ~np.isnan(values)
        self.n_filled += int(filled.sum())
        self._is_filled |= filled.any(axis=0)
        self.n_left += int(holes.sum()) - int(filled.sum())
        columns = [
            self._column(piece, column, values, filled)
            for column in self.file.source.schema
        ]
        columns += [self._mark_of(filled[:, self._position[n]]) for n in self._marked]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _has_holes(self, name: str) -> bool:
        return bool(self.counts.missing[self._position[name]])

    def _field(self, column: pa.Field) -> pa.Field:
        import pyarrow as pa

        name, kind = column.name, column.type
        if name not in self._position:
            return column
        if self.file.is_text:
            if self.to_text:
                return column
            whole = self.counts.is_whole[self._position[name]]
            is_integer = whole and not self._has_holes(name)
            return pa.field(name, pa.int64() if is_integer else pa.float64())
        keeps = pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        if keeps or not self._has_holes(name):
            return column
        return pa.field(name, pa.float64(), metadata=column.metadata)

    def _column(
        self, piece: Piece, column: pa.Field, values: Floats, filled: Bools
    ) -> pa.Array:
        import pyarrow as pa

        cells = piece.batch.column(column.name)
        if column.name not in self._position:
            return cells
        j = self._position[column.name]
        target = self.schema.field(column.name).type
        if self.file.is_text and not self.to_text:
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
                f"{self.file.name}, column {name!r}: integers above 2**53 cannot "
                "stand beside filled fractions without being rounded. Leave the column "
                f"out with {hint('exclude', name)}, or store it as float64."
            ) from error

    def _replaced(
        self, cells: pa.Array, where: Bools, numbers: Floats, target: pa.DataType
    ) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        fills = pa.array(numbers)
        if pa.types.is_string(target):
            fills = fills.cast(pa.string())
            if self.file.options.decimal == ",":
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
