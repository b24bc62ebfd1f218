"""Fill the missing cells of a frame of any library, column by column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from a1gm._base.types import AnyArray, Bools, Floats
from a1gm._fit.fill_columns import Left, Target
from a1gm._kernel import kernel
from a1gm._rows import Rows
from a1gm._rows.frames import names_of, open_frame, with_types
from a1gm._rows.rows import Part, read_parts

#: Writes the columns of the table, filled, to targets.
Fill: TypeAlias = Callable[[Sequence[Target]], Left]
ROWS_AT_ONCE = 1 << 14  # when holes are looked for
TURNED = 20  # columns per row: taking over a column costs as much as copying 50 cells


def fill_frame(X: Any, source: Rows, fill: Fill) -> tuple[Any, Left]:
    """Return X with new columns where it had holes; the others are its own.

    A frame of float64 alone, which has its types whatever is filled, is made anew.
    """
    if _can_be_made_anew(X, source):
        whole = _room_for_all(source)
        left = fill([whole])
        made = _whole_frame(X, source, whole, has_nan=left.n > 0)
        if made is not None:
            return made, left
        room = _Room([whole], {j: whole[:, j] for j in range(source.n_cols)})
    else:
        room = _room_for(source)
        left = fill(room.targets)
    if source.choice is not None:
        place = {name: j for j, name in enumerate(names_of(X) or ())}
        places = [place[name] for name in source.choice.table]
        room.columns = {places[j]: values for j, values in room.columns.items()}
    filled, has_nan = room.columns, left.n > 0
    if type(X).__name__ == "RecordBatch":
        return _fill_batch(X, filled, has_nan=has_nan), left
    frame = open_frame(X, "X")
    if frame.implementation.is_pandas_like():
        return _fill_pandas(frame.to_native(), room), left
    if frame.implementation.is_pyarrow():
        return _fill_arrow(frame.to_native(), filled, has_nan=has_nan), left
    return _fill_any(frame, filled, has_nan=has_nan), left


# ----------------------------------------------------------------------------- whole
def _can_be_made_anew(X: Any, source: Rows) -> bool:
    """Whether a frame has columns of float64 alone, and nothing else to be kept."""
    if source.backend == "pandas" and not _is_plain(X):
        return False
    return source.is_float64


def _room_for_all(source: Rows) -> Floats:
    """Room for all columns, laid out as they are."""
    if len(source.parts) == 1:
        return np.empty_like(source.parts[0][0], np.float64, subok=False)
    if _is_turned(source):
        return np.empty((source.n_rows, source.n_cols))
    return np.empty((source.n_cols, source.n_rows)).T


def _is_turned(source: Rows) -> bool:
    """Whether polars makes the frame faster from its rows than from its columns."""
    return source.backend == "polars" and source.n_cols >= TURNED * source.n_rows


def _whole_frame(X: Any, source: Rows, cells: Floats, *, has_nan: bool) -> Any:
    """A frame like X of these cells, which are not copied; None where it must be."""
    if source.backend == "pandas":
        return _new_pandas(X, cells)
    if has_nan:
        return None
    names = list(source.col_labels)
    if _is_turned(source):
        rows = kernel.write_stream(cells.T, list(map(str, range(len(cells)))))
        return rows and type(X)(_Stream(rows)).transpose(column_names=names)
    stream = kernel.write_stream(cells, names)
    if stream is None or source.backend == "polars":
        return None if stream is None else type(X)(_Stream(stream))
    import pyarrow as pa

    made = pa.table(_Stream(stream)).replace_schema_metadata(X.schema.metadata)
    is_alike = type(X) is pa.Table and made.schema.equals(X.schema, check_metadata=True)
    return made if is_alike else None


class _Stream:
    """Columns that a frame library takes over by address."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._capsule


# --------------------------------------------------------------------------- columns
@dataclass
class _Room:
    """Room for the columns that have holes; ``targets`` is the same for all columns."""

    targets: list[Target] = field(default_factory=list)
    columns: dict[int, Floats] = field(default_factory=dict)


def _room_for(source: Rows) -> _Room:
    """Room for the columns with holes, laid out as they are."""
    room, at = _Room(), 0
    has_holes = _columns_with_holes(source)
    widths = [part[0].shape[1] for part in source.parts] or [1] * source.n_cols
    chosen = np.split(has_holes, np.cumsum(widths)[:-1])
    whole = [len(holes) > 1 and holes.all() for holes in chosen]
    n_apart = sum(holes.sum() for holes, w in zip(chosen, whole, strict=True) if not w)
    # In one array, too: the system gives out long ones by large pages.
    apart = iter(np.empty((n_apart, source.n_rows, 1)))
    for k, holes in enumerate(chosen):
        if whole[k]:
            matrix = np.empty_like(source.parts[k][0], np.float64, subok=False)
            room.targets.append(matrix)
            room.columns |= {at + j: matrix[:, j] for j in range(len(holes))}
        else:
            own = [next(apart) if hole else None for hole in holes]
            room.targets += own
            columns = enumerate(own, at)
            room.columns |= {j: own[:, 0] for j, own in columns if own is not None}
        at += len(holes)
    return room


def _columns_with_holes(source: Rows) -> Bools:
    """Which columns have a missing cell."""
    found = np.zeros(source.n_cols, bool)
    for _, piece in source.pieces():
        at = 0
        for part in piece.parts:
            width = part[0].shape[1]
            if not found[at : at + width].all():
                found[at : at + width] |= _holes_of(part)
            at += width
    return found


def _holes_of(part: Part) -> Bools:
    """Which columns of a part have a missing cell, reading no more than is needed."""
    values, mask, validity, _, _ = part
    n_rows, width = values.shape
    found = np.zeros(width, bool)
    if mask is None and validity is None and values.dtype.kind != "f":
        return found
    if width > 1 and abs(values.strides[0]) < abs(values.strides[1]):  # by columns
        for j in range(width):
            mask_of = None if mask is None else mask[:, j : j + 1]
            found[j] = _holes_of((values[:, j : j + 1], mask_of, None, 0, 0))[0]
        return found
    step = max(1, ROWS_AT_ONCE // width)
    for start in range(0, n_rows, step):
        piece = read_parts([part], start, min(start + step, n_rows))
        found |= np.isnan(piece).any(axis=0)
        if found.all():
            break
    return found


def _fill_any(frame: Any, filled: dict[int, Floats], *, has_nan: bool) -> Any:
    import narwhals as nw

    fresh = []
    for j, values in filled.items():
        old = frame[:, j]
        is_single = old.dtype == nw.Float32
        dtype = nw.Float32 if is_single else nw.Float64
        series = nw.new_series(old.name, values, dtype, backend=frame.implementation)
        fresh.append(series.fill_nan(None) if has_nan else series)
    return frame.with_columns(*fresh).to_native() if fresh else frame.to_native()


# ------------------------------------------------------------------------ pyarrow
def _arrow_values(values: Floats, kind: Any, *, has_nan: bool) -> Any:
    import pyarrow as pa

    dtype = pa.float32() if pa.types.is_float32(kind) else pa.float64()
    return pa.array(values, mask=np.isnan(values) if has_nan else None).cast(dtype)


def _fill_arrow(table: Any, filled: dict[int, Floats], *, has_nan: bool) -> Any:
    import pyarrow as pa

    changed, columns, fields = [], list(table.columns), list(table.schema)
    for j, values in filled.items():
        columns[j] = _arrow_values(values, fields[j].type, has_nan=has_nan)
        if columns[j].type != fields[j].type:
            fields[j] = fields[j].with_type(columns[j].type)
            changed.append(fields[j].name)
    metadata = with_types(table.schema.metadata, dict.fromkeys(changed, "float64"))
    return pa.table(columns, schema=pa.schema(fields, metadata=metadata))


def _fill_batch(batch: Any, filled: dict[int, Floats], *, has_nan: bool) -> Any:
    import pyarrow as pa

    table = pa.Table.from_batches([batch])
    table = _fill_arrow(table, filled, has_nan=has_nan).combine_chunks()
    return pa.RecordBatch.from_arrays(
        [column.chunk(0) for column in table.columns], schema=table.schema
    )


# ------------------------------------------------------------------------- pandas
def _fill_pandas(frame: Any, room: _Room) -> Any:
    """Make a new frame of new columns, or set them in a copy that shares the others."""
    dtypes = list(frame.dtypes)
    columns = {j: _pandas_values(v, dtypes[j]) for j, v in room.columns.items()}
    if len(columns) == frame.shape[1] and _is_plain(frame):
        return _new_pandas(frame, columns)
    out = frame.copy(deep=False)
    for j, values in columns.items():
        out.isetitem(j, values)
    return out


def _is_plain(frame: Any) -> bool:
    """Whether a frame of pandas has nothing that a new one would not have."""
    import pandas as pd

    is_plain = type(frame) is pd.DataFrame and not frame.attrs
    return bool(is_plain and frame.flags.allows_duplicate_labels)


def _new_pandas(frame: Any, cells: Any) -> Any:
    """A frame of new columns, which are not copied: setting a column copies it."""
    import pandas as pd

    out = pd.DataFrame(cells, index=frame.index, copy=False)
    out.columns = frame.columns
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
        is_sparse = isinstance(dtype, pd.SparseDtype)
        return pd.array(values, dtype=dtype if is_sparse else f"Float{bits}")  # type: ignore[no-any-return]
    return values.astype(f"float{bits}", copy=False)


def filled_dtype(dtype: Any) -> Any:
    """Type of a filled pandas column: floats keep theirs, others become float64."""
    return _pandas_values(np.zeros(1), dtype).dtype
