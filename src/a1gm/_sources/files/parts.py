"""Columns of a record batch as the kernel reads them, without copying numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from a1gm._base.types import AnyArray, Floats
from a1gm._sources.files.numbers import cast_numbers
from a1gm._sources.files.options import TableOptions

if TYPE_CHECKING:
    import pyarrow as pa

#: Values (one column), mask, validity bitmap, offset of its first bit, group of sums.
Part: TypeAlias = tuple[AnyArray, AnyArray | None, AnyArray | None, int, int]


def part_of_floats(values: Floats) -> Part:
    """Wrap numbers in which NaN marks a missing cell."""
    return values[:, None], None, None, 0, 0


def part_of_column(column: pa.Array, options: TableOptions) -> Part:
    """Wrap the buffers of a numeric column, or a float64 copy where none will do."""
    import pyarrow as pa

    kind = column.type
    plain = pa.types.is_integer(kind) or kind in (pa.float64(), pa.float32())
    if options.missing_numbers or not plain:
        return part_of_floats(cast_numbers(column, options))
    validity, data = column.buffers()
    dtype = np.dtype(kind.to_pandas_dtype())
    start = column.offset * dtype.itemsize
    values = np.frombuffer(data, dtype, len(column), start)[:, None]
    if validity is None or column.null_count == 0:
        return values, None, None, 0, 0
    return values, None, np.frombuffer(validity, np.uint8), column.offset, 0


def stacked_parts(parts: list[Part], n_rows: int) -> Floats:
    """Copy the columns into one array, NaN where a cell is missing."""
    # Column by column is how the cells arrive, so Fortran order is the cheaper one.
    out = np.empty((n_rows, len(parts)), order="F")
    for j, (values, _, validity, offset, _) in enumerate(parts):
        out[:, j] = values[:, 0]
        if validity is not None:
            first = offset // 8
            bits = np.unpackbits(
                validity[first : -(-(offset + n_rows) // 8)], bitorder="little"
            )
            skip = offset - 8 * first
            out[bits[skip : skip + n_rows] == 0, j] = np.nan
    return out
