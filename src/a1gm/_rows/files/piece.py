"""Some rows of a file: their cells as they stand, and their numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from a1gm._base.types import Floats, Ints, Negatives
from a1gm._rows.files.numbers import cast_numbers
from a1gm._rows.files.options import TableOptions
from a1gm._rows.rows import Part, Rows
from a1gm.exceptions import DataError, InfiniteValuesError, NegativeValuesError, Option

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Piece:
    """Some consecutive rows of a file.

    ``parts`` are the numbers of the columns ``names``, where they lie; those that were
    read from text lie in one array. ``place_of`` names a cell, given its row in the
    file and its column.
    """

    first_row: int  # its number in the file, from 0
    batch: pa.RecordBatch  # the columns as they stand in the file
    names: tuple[str, ...]
    parts: list[Part]
    is_text: bool
    options: TableOptions
    place_of: Callable[[int, str | None], str]

    @property
    def n_rows(self) -> int:
        """Rows of the piece."""
        return int(self.batch.num_rows)

    @property
    def source(self) -> Rows:
        """The rows as the kernel reads them."""
        return Rows(self.parts, self.n_rows, len(self.names), None, list(self.names))

    @cached_property
    def values(self) -> Floats:
        """The numbers as one array, NaN where a cell is missing."""
        if self.is_text:
            array: Floats = self.parts[0][0]
            return array
        # Column by column is how the cells arrive and leave.
        array = np.empty((self.n_rows, len(self.parts)), order="F")
        for j, column in enumerate(columns_of(self.batch, self.names)):
            array[:, j] = cast_numbers(column, self.options)
        return array

    def n_missing(self) -> Ints:
        """Missing cells of each column."""
        if self.is_text:
            counts: Ints = np.count_nonzero(np.isnan(self.values), axis=0)
            return counts
        return np.array([_n_missing(part, self.n_rows) for part in self.parts])

    def last_row(self) -> Floats:
        """The numbers of the last row, without a cast of the others."""
        if self.is_text:
            return self.parts[0][0][-1].copy()  # type: ignore[no-any-return]
        return np.array([_last_number(part, self.n_rows) for part in self.parts])

    def last_texts(self) -> list[str]:
        """What stands beside the numbers in the last row."""
        own = set(self.names)
        others = [name for name in self.batch.schema.names if name not in own]
        last = self.batch.select(others).slice(self.n_rows - 1).to_pylist()
        return [str(text) for text in last[0].values()] if others else []

    @contextlib.contextmanager
    def placing_faults(self, negatives: Negatives) -> Iterator[None]:
        """Raise errors about values again with the place of the cell in the file."""
        try:
            yield
        except DataError:
            self.check_cells(negatives)
            raise

    def check_cells(self, negatives: Negatives) -> None:
        """Raise for infinite cells, and for what ``negatives`` does not allow."""
        values = self.values
        infinite = np.argwhere(np.isinf(values))
        if len(infinite):
            place, token = self._cell(*infinite[0])
            raise InfiniteValuesError(
                f"{token} is not a finite number. If it marks a missing cell pass ",
                Option("missing", [token]),
                ".",
                where=place,
            )
        below = np.argwhere(values < 0.0)
        if len(below) and negatives == "raise":
            place, token = self._cell(*below[0])
            raise NegativeValuesError(
                f"{token} is negative (Negative values in data). If it marks a missing "
                "cell pass ",
                Option("missing", [token]),
                "; if negative increments are meant, ",
                Option("negatives", "allow"),
                ".",
                where=place,
            )

    def _cell(self, row: int, col: int) -> tuple[str, str]:
        place = self.place_of(self.first_row + int(row), self.names[col])
        return place, repr(float(self.values[row, col])).removesuffix(".0")


def columns_of(batch: pa.RecordBatch, names: Sequence[str]) -> list[pa.Array]:
    """Some columns; found in one go, as pyarrow takes long to find one by its name."""
    places = {name: place for place, name in enumerate(batch.schema.names)}
    every = batch.columns
    return [every[places[name]] for name in names]


def part_of_column(column: pa.Array, options: TableOptions) -> Part:
    """Wrap the buffers of a numeric column, or a float64 copy if they do not serve."""
    import pyarrow as pa

    kind = column.type
    plain = pa.types.is_integer(kind) or kind in (pa.float64(), pa.float32())
    if options.missing_numbers or not plain:
        return cast_numbers(column, options)[:, None], None, None, 0, 0
    validity, data = column.buffers()
    dtype = np.dtype(kind.to_pandas_dtype())
    start = column.offset * dtype.itemsize
    values = np.frombuffer(data, dtype, len(column), start)[:, None]
    if validity is None or column.null_count == 0:
        return values, None, None, 0, 0
    return values, None, np.frombuffer(validity, np.uint8), column.offset, 0


def _last_number(part: Part, n_rows: int) -> float:
    values, _, validity, offset, _ = part
    at = offset + n_rows - 1
    if validity is not None and not validity[at >> 3] >> (at & 7) & 1:
        return np.nan
    return float(values[-1, 0])


def _n_missing(part: Part, n_rows: int) -> int:
    values, _, validity, offset, _ = part
    is_missing = np.isnan(values[:, 0])
    if validity is not None:
        own = validity[offset >> 3 : (offset + n_rows + 7) >> 3]
        bits = np.unpackbits(own, bitorder="little")
        is_missing |= bits[offset & 7 :][:n_rows] == 0
    return int(is_missing.sum())
