"""Fill the missing cells of a table and give back the kind of table it was."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from numbers import Integral
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from a1gm._base.float_range import as_float32
from a1gm._base.types import AnyArray, Bools, Floats
from a1gm._base.words import shown
from a1gm._fit.place import Fills, Left, Target
from a1gm._kernel import kernel
from a1gm._rows import AnyRows, Rows, SparseRows
from a1gm._rows.frames import names_of, open_frame, with_types
from a1gm._rows.rows import MISSING_TYPES
from a1gm.exceptions import NotRepresentableError, ParameterError

WHOLE = 2**53  # float64 holds every whole number up to it
TURNED = 20  # columns per row: taking over a column costs as much as copying 50 cells


class Filled(NamedTuple):
    """A filled table, and the cells of it that stay missing."""

    table: Any
    left: Left


def fill_table(X: Any, fills: Fills) -> Filled:
    """Fill a copy of X; columns without a missing cell keep their type."""
    rows = fills.rows
    if isinstance(rows, SparseRows):
        return _fill_sparse(X, rows, fills)
    fill = _fill_array if rows.backend is None else _fill_frame
    return fill(X, rows, fills.write)


# ------------------------------------------------------------------------- arrays
Write: TypeAlias = Callable[[Sequence[Target]], Left]


def _fill_array(X: Any, rows: Rows, write: Write) -> Filled:
    array = np.asarray(np.ma.getdata(X))
    has_mask = any(part[1] is not None for part in rows.parts)
    if array.dtype.kind in "iub" and not has_mask:
        write([None] * rows.n_cols)  # raises for bad cells
        return Filled(array.copy(), Left(0, None))
    out: AnyArray = np.empty_like(array, np.float64, subok=False)
    left, mask, is_masked = write([out]), None, isinstance(X, np.ma.MaskedArray)
    if array.dtype.newbyteorder("=") == np.float32:
        out = as_float32(out, rows.where)
    elif array.dtype.kind == "O" or (
        array.dtype.kind in "iu" and max(-int(X.min()), int(X.max())) > WHOLE
    ):
        own = array.astype(object)
        own[np.ma.getmaskarray(X)] = None
        is_integer = array.dtype.kind != "O"
        most = float(np.iinfo(array.dtype).max) if is_integer else math.inf
        kept = _kept_cells(own, out, "the table", most)
        if kept is not None:
            mask = kept == None  # noqa: E711 - cell by cell
            out = np.where(mask, 0, kept).astype(array.dtype) if is_masked else kept
    if is_masked:
        out = np.ma.MaskedArray(out, mask=np.isnan(out) if mask is None else mask)
    return Filled(out, left)


# ------------------------------------------------------------------------- sparse
def _fill_sparse(X: Any, rows: SparseRows, fills: Fills) -> Filled:
    from scipy.sparse import csr_array, csr_matrix, sparray

    fills.check()
    if rows.absent == "missing":
        raise ParameterError(
            'With absent="missing" every absent cell would be filled, and the table '
            "would no longer be sparse. fit.predict(rows, columns) gives the values of "
            "chosen cells, fit.reconstruct() the whole table."
        )
    holes = np.flatnonzero(rows.missing)
    if not len(holes) and X.dtype.kind in "iub":
        return Filled(X.copy(), Left(0, None))
    make = csr_array if isinstance(X, sparray) else csr_matrix
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    index = np.int32 if rows.ptr[-1] < 2**31 else np.int64
    cells: Any = rows.values.astype(dtype), rows.cols.copy(), rows.ptr.astype(index)
    out = make(cells, shape=X.shape)
    i = np.searchsorted(rows.ptr, holes, side="right") - 1
    j = rows.cols[holes].astype(np.int64)
    found: AnyArray = fills.values(i, j)
    if out.dtype == np.float32:
        found = as_float32(found, lambda k: rows.where(int(i[k]), int(j[k])))
    out.data[holes] = found
    left = np.flatnonzero(np.isnan(found))
    first = (int(i[left[0]]), int(j[left[0]])) if len(left) else None
    return Filled(out.asformat(X.format), Left(len(left), first))


# ------------------------------------------------------------------------- frames
def _fill_frame(X: Any, rows: Rows, write: Write) -> Filled:
    """Return X with new columns where cells were missing; the others are shared.

    A frame with float64 columns only keeps its types, so it is built as a whole.
    """
    is_pandas = rows.backend == "pandas"
    is_new = rows.is_float64 and (not is_pandas or _is_plain_pandas(X))
    has_holes = np.ones(rows.n_cols, bool) if is_new else _columns_with_holes(rows)
    cells, targets = _room_for(rows, has_holes)
    left = write(targets)
    has_nan = left.n > 0
    if is_new:
        frame = _whole_frame(X, rows, cells, has_nan=has_nan)
        if frame is not None:
            return Filled(frame, left)
    places = np.arange(rows.n_cols)
    if rows.choice is not None:
        place = {name: j for j, name in enumerate(names_of(X))}
        places = np.array([place[name] for name in rows.choice.table])
    columns = dict(zip(places[has_holes].tolist(), cells.T, strict=True))
    frame = None if type(X).__name__ == "RecordBatch" else open_frame(X, "X")
    if frame is None or frame.implementation.is_pyarrow():
        table = X if frame is None else frame.to_native()
        return Filled(_fill_arrow(table, columns, has_nan=has_nan), left)
    if frame.implementation.is_pandas_like():
        return Filled(_fill_pandas(frame.to_native(), columns), left)
    return Filled(_fill_any(frame, columns, has_nan=has_nan), left)


def _room_for(rows: Rows, has_holes: Bools) -> tuple[Floats, list[Target]]:
    """Room for the columns with holes, and the targets of all columns."""
    n = int(has_holes.sum())
    if n < rows.n_cols:
        # One array: the system hands out long ones by large pages.
        cells = np.empty((n, rows.n_rows)).T
        found = iter(range(n))
        some = [next(found) if has else None for has in has_holes]
        return cells, [None if k is None else cells[:, k : k + 1] for k in some]
    if len(rows.parts) == 1:  # laid out as the table is
        cells = np.empty_like(rows.parts[0][0], np.float64, subok=False)
    elif _is_turned(rows):
        cells = np.empty((rows.n_rows, n))
    else:
        cells = np.empty((n, rows.n_rows)).T
    return cells, [cells]


def _columns_with_holes(rows: Rows) -> Bools:
    """Which columns have a missing cell."""
    has_holes = np.zeros(rows.n_cols, bool)
    for _, piece in rows.tables():
        has_holes |= np.concatenate([_part_has_holes(*part) for part in piece.parts])
    return has_holes


def _part_has_holes(values: AnyArray, mask: Any, validity: Any, offset: int) -> Bools:
    """Which columns of a part have a missing cell; no cell is copied."""
    has_holes = np.zeros(values.shape[1], bool)
    if len(values) and values.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            has_holes |= np.isnan(values.min(axis=0))  # NaN if one is
    if mask is not None:
        has_holes |= mask.any(axis=0)
    if validity is not None:
        bits = np.unpackbits(validity, bitorder="little", count=offset + len(values))
        has_holes |= not bits[offset:].all()
    return has_holes


def _is_turned(rows: Rows) -> bool:
    """Whether polars makes the frame faster from its rows than from its columns."""
    return rows.backend == "polars" and rows.n_cols >= TURNED * rows.n_rows


def _whole_frame(X: Any, rows: Rows, cells: Floats, *, has_nan: bool) -> Any:
    """A frame like X of these cells, which are not copied; None where it must be."""
    if rows.backend == "pandas":
        return _new_pandas(X, cells)
    if has_nan:
        return None
    names = list(rows.col_labels)
    is_turned = _is_turned(rows)
    numbered = [str(k) for k in range(len(cells))] if is_turned else names
    stream = kernel.write_stream(cells.T if is_turned else cells, numbered)
    if stream is None:
        return None
    if rows.backend == "polars":
        frame = type(X)(_Stream(stream))
        return frame.transpose(column_names=names) if is_turned else frame
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


def _fill_any(frame: Any, columns: dict[int, Floats], *, has_nan: bool) -> Any:
    import narwhals as nw

    fresh = []
    for j, values in columns.items():
        old = frame[:, j]
        kept = _kept_column(old, values, old.name)
        if kept is not None:
            native = old.to_native()
            series = type(native)(old.name, kept.tolist(), native.dtype)
            fresh.append(nw.from_native(series, series_only=True))
            continue
        cells = _in_type(values, str(old.dtype), old.name)
        series = nw.new_series(old.name, cells, backend=frame.implementation)
        fresh.append(series.fill_nan(None) if has_nan else series)
    return (frame.with_columns(*fresh) if fresh else frame.clone()).to_native()


def _fill_arrow(X: Any, columns: dict[int, Floats], *, has_nan: bool) -> Any:
    """A table, or a batch, with new columns."""
    import narwhals as nw
    import pyarrow as pa

    changed, arrays, fields = [], list(X.columns), list(X.schema)
    is_table = isinstance(X, pa.Table)
    for j, values in columns.items():
        old = pa.chunked_array(X.column(j).chunks if is_table else [X.column(j)])
        series = nw.from_native(old, series_only=True)
        kept = _kept_column(series, values, fields[j].name)
        if kept is not None:
            arrays[j] = pa.array(kept.tolist(), fields[j].type)
            continue
        mask = np.isnan(values) if has_nan else None
        cells = _in_type(values, str(fields[j].type), fields[j].name)
        arrays[j] = pa.array(cells, mask=mask)
        if arrays[j].type != fields[j].type:
            fields[j] = fields[j].with_type(arrays[j].type)
            changed.append(fields[j].name)
    metadata = with_types(X.schema.metadata, dict.fromkeys(changed, "float64"))
    return type(X).from_arrays(arrays, schema=pa.schema(fields, metadata=metadata))


# ------------------------------------------------------------------------- pandas
def _fill_pandas(frame: Any, columns: dict[int, Floats]) -> Any:
    """Make a new frame of new columns, or set them in a copy that shares the others."""
    import narwhals as nw
    import pandas as pd

    dtypes, names = list(frame.dtypes), frame.columns
    fresh: dict[int, Any] = {}
    for j, values in columns.items():
        kept = None
        if not isinstance(dtypes[j], np.dtype) or dtypes[j].kind == "O":
            old = nw.from_native(frame.iloc[:, j], series_only=True)
            kept = _kept_column(old, values, names[j])
        if kept is None:
            fresh[j] = _pandas_values(values, dtypes[j], names[j])
        else:
            fresh[j] = pd.array(kept, dtype=dtypes[j])
    if len(fresh) == frame.shape[1] and _is_plain_pandas(frame):
        return _new_pandas(frame, fresh)
    out = frame.copy(deep=False)
    for j, values in fresh.items():
        out.isetitem(j, values)
    return out


def _is_plain_pandas(frame: Any) -> bool:
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


def _in_type(values: Floats, dtype: str, name: Any) -> AnyArray:
    """Values of a column as float32 if that was its type."""
    if not dtype.lower().startswith(("float32", "float[")) and dtype != "float":
        return values
    return as_float32(values, lambda i: f"row {i} of column {shown(name)}")


def _pandas_values(values: Floats, dtype: Any, name: Any = "") -> AnyArray:
    """Values in the family of the old type: NumPy, nullable or Arrow-backed."""
    import pandas as pd

    cells = _in_type(values, str(dtype), name)
    if isinstance(dtype, pd.ArrowDtype):
        import pyarrow as pa

        made = pa.array(cells, mask=np.isnan(cells))
        return pd.array(made, dtype=pd.ArrowDtype(made.type))  # type: ignore[no-any-return]
    if isinstance(dtype, pd.api.extensions.ExtensionDtype):
        is_sparse = isinstance(dtype, pd.SparseDtype)
        kind = str(cells.dtype).capitalize()
        return pd.array(cells, dtype=dtype if is_sparse else kind)  # type: ignore[no-any-return]
    return cells


def filled_dtype(dtype: Any) -> Any:
    """Type of a filled pandas column: floats keep theirs, others become float64."""
    return _pandas_values(np.zeros(1), dtype).dtype


# ------------------------------------------------------- cells that float64 rounds
def _kept_cells(
    own: AnyArray, values: Floats, name: str, most: float = math.inf
) -> AnyArray | None:
    """Known cells as they are, with values for the others; None for missing ones.

    Returns None where float64 holds every known cell: decimals to all their digits.
    Otherwise values are rounded to whole numbers beside integers, and to the digits of
    decimals. ``own`` are the cells of a column, integers up to ``most`` or objects.
    """
    cells = own.ravel().tolist()
    known = [cell for cell in cells if not _is_missing(cell)]
    if all(map(_is_exact, known)):
        return None
    places = [-int(x.as_tuple().exponent) for x in known if isinstance(x, Decimal)]
    kept = np.empty(len(cells), object)
    for k, (cell, value) in enumerate(zip(cells, values.ravel().tolist(), strict=True)):
        if not _is_missing(cell):
            kept[k] = cell
        elif value >= most:
            raise NotRepresentableError(
                f"A value for {name} is {value:.3g}, which its type does not hold, and "
                "float64 would round its known cells. Convert it to float64 first."
            )
        elif not math.isnan(value):
            kept[k] = Decimal(repr(value)) if places else round(value)
            if places:
                kept[k] = round(kept[k], max(places))
    return kept.reshape(own.shape)


def _kept_column(series: Any, values: Floats, name: Any) -> AnyArray | None:
    """As `_kept_cells`, of a column that narwhals has opened."""
    dtype, known = series.dtype, series.drop_nulls()
    if dtype.is_integer():
        may_round = len(known) > 0 and max(-int(known.min()), int(known.max())) > WHOLE
    else:
        may_round = dtype.is_decimal() or str(dtype) == "Object"
    if not may_round:
        return None
    own = np.array([*series.to_list(), None], object)[:-1]
    most = math.inf
    if dtype.is_integer() and "128" not in str(dtype):
        most = float(np.iinfo(str(dtype).lower()).max)
    return _kept_cells(own, values, f"column {shown(name)}", most)


def _is_missing(cell: Any) -> bool:
    if isinstance(cell, float | Decimal) and math.isnan(cell):
        return True
    return cell is None or type(cell).__name__ in MISSING_TYPES


def _is_exact(cell: Any) -> bool:
    """Whether float64 holds a number, or a decimal to all its digits."""
    if isinstance(cell, Decimal):
        return Decimal(repr(float(cell))) == cell
    return not isinstance(cell, int) or int(float(cell)) == cell


# ----------------------------------------------------------------------- rounding
#: Digits after the point, or ``"auto"``: whole numbers in columns of whole numbers.
Rounding: TypeAlias = Literal["auto"] | int | None
MOST_DIGITS = 17


def check_rounding(how: Any) -> None:
    """Raise unless ``round`` is None, ``"auto"`` or a number of digits."""
    if how is None or how == "auto":
        return
    is_number = isinstance(how, Integral) and not isinstance(how, bool)
    if not is_number or abs(how) > MOST_DIGITS:  # a float64 has no more digits
        raise ParameterError(
            'round must be None, "auto" or a whole number of digits between '
            f"-{MOST_DIGITS} and {MOST_DIGITS}, got {how!r}."
        )


def rounded(values: Floats, is_whole: Bools | bool, how: Rounding) -> Floats:
    """Round values; ``is_whole``: which are in columns of whole numbers."""
    if how is None:
        return values
    if how != "auto":
        return np.round(values, int(how))
    return np.where(is_whole, np.round(values), values)


def rounded_fills(fills: Fills, how: Rounding) -> Fills:
    """Return the same fills with rounded values."""
    rows = fills.rows
    is_whole = _whole_columns(rows) if how == "auto" else np.zeros(rows.n_cols, bool)
    return Fills(rows, lambda i, j: rounded(fills.values(i, j), is_whole[j], how))


def _whole_columns(source: AnyRows) -> Bools:
    """Columns in which all known cells are whole numbers."""
    whole = np.ones(source.n_cols, bool)
    for _, j, x in source.observed():
        whole[j[x != np.floor(x)]] = False
    return whole
