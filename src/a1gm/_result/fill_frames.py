"""Fill the missing cells of a frame of any library, column by column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from a1gm._base.types import AnyArray, Bools, Floats, Ints
from a1gm._sources import Source
from a1gm._sources.arrow import with_floats
from a1gm._sources.frames import open_frame

__all__ = ["Values", "fill_frame", "filled_dtype"]

# The values of the cells (rows[k], cols[k]); NaN for a cell that stays missing.
Values: TypeAlias = Callable[[Ints, Ints], Floats]


def fill_frame(X: Any, source: Source, values: Values) -> Any:
    """Return X with new columns where it had holes; the others are its own."""
    filled = _filled_columns(source, values)
    if type(X).__name__ == "RecordBatch":
        return _fill_batch(X, filled)
    frame = open_frame(X, "X")
    if frame.implementation.is_pandas_like():
        return _fill_pandas(frame.to_native(), filled)
    if frame.implementation.is_pyarrow():
        return _fill_arrow(frame.to_native(), filled)
    return _fill_any(frame, filled)


def _filled_columns(source: Source, values: Values) -> dict[int, Floats]:
    """The columns that have holes, as float64, NaN where a cell stays missing."""
    chosen = np.flatnonzero(_columns_with_holes(source))
    columns = {int(j): np.empty(source.n_rows) for j in chosen}
    for rows, piece in source.blocks():
        i, j = np.nonzero(np.isnan(piece))
        if len(i):
            piece[i, j] = values(i + rows.start, j)
        for column, out in columns.items():
            out[rows] = piece[:, column]
    return columns


def _fill_any(frame: Any, filled: dict[int, Floats]) -> Any:
    import narwhals as nw

    fresh = []
    for j, values in filled.items():
        old = frame[:, j]
        is_single = old.dtype == nw.Float32
        dtype = nw.Float32 if is_single else nw.Float64
        series = nw.new_series(old.name, values, dtype, backend=frame.implementation)
        fresh.append(series.fill_nan(None) if np.isnan(values).any() else series)
    return frame.with_columns(*fresh).to_native() if fresh else frame.to_native()


# ------------------------------------------------------------------------ pyarrow
def _arrow_values(values: Floats, kind: Any) -> Any:
    import pyarrow as pa

    dtype = pa.float32() if pa.types.is_float32(kind) else pa.float64()
    return pa.array(values, mask=np.isnan(values)).cast(dtype)


def _fill_arrow(table: Any, filled: dict[int, Floats]) -> Any:
    changed = []
    for j, values in filled.items():
        field = table.schema.field(j)
        array = _arrow_values(values, field.type)
        table = table.set_column(j, field.with_type(array.type), array)
        if array.type != field.type:
            changed.append(field.name)
    metadata = with_floats(table.schema.metadata, changed)
    return table.replace_schema_metadata(metadata)


def _fill_batch(batch: Any, filled: dict[int, Floats]) -> Any:
    import pyarrow as pa

    table = _fill_arrow(pa.Table.from_batches([batch]), filled).combine_chunks()
    return pa.RecordBatch.from_arrays(
        [column.chunk(0) for column in table.columns], schema=table.schema
    )


# ------------------------------------------------------------------------- pandas
def _fill_pandas(frame: Any, filled: dict[int, Floats]) -> Any:
    """Set the columns by place; a shallow copy shares the others."""
    out = frame.copy(deep=False)
    for j, values in filled.items():
        out.isetitem(j, _pandas_values(values, frame.dtypes.iloc[j]))
    return out


def _pandas_values(values: Floats, dtype: Any) -> AnyArray:
    """Values in the family of the old type: NumPy, nullable or Arrow-backed."""
    import pandas as pd

    bits = "32" if str(dtype).lower().startswith(("float32", "float[")) else "64"
    if isinstance(dtype, pd.ArrowDtype):
        import pyarrow as pa

        kind = pd.ArrowDtype(pa.float32() if bits == "32" else pa.float64())
        return pd.array(pa.array(values, mask=np.isnan(values)), dtype=kind)  # type: ignore[no-any-return]
    if isinstance(dtype, pd.api.extensions.ExtensionDtype):
        return pd.array(values, dtype=f"Float{bits}")  # type: ignore[no-any-return]
    return values.astype(f"float{bits}")


def filled_dtype(dtype: Any) -> Any:
    """Type of a filled pandas column: floats keep theirs, others become float64."""
    return _pandas_values(np.zeros(1), dtype).dtype


def _columns_with_holes(source: Source) -> Bools:
    """Which columns have a missing cell."""
    found = np.zeros(source.n_cols, bool)
    for _, piece in source.blocks():
        found |= np.isnan(piece).any(axis=0)
    return found
