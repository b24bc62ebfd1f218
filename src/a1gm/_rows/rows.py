"""`Rows`: a table as the kernel reads it, with labels and weights; arrays as `Rows`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from itertools import islice, pairwise
from math import isnan
from numbers import Number
from typing import Any, TypeAlias

import numpy as np

from a1gm._base.float_range import LARGEST, check_range
from a1gm._base.types import AnyArray, Floats, Ints, Negatives, SmallInts
from a1gm._rows.columns import Choice, Kind
from a1gm._rows.labels import label_at
from a1gm.exceptions import (
    DataError,
    DataHintWarning,
    InfiniteValuesError,
    NegativeValuesError,
    NotNumericError,
    Option,
    Text,
)

# Values (2-D), mask of missing cells, Arrow validity bitmap of a single column, and the
# offset of its first bit.
Part: TypeAlias = tuple[AnyArray, AnyArray | None, AnyArray | None, int]

#: Cells of one bad kind: how many, and row, column and value of the first.
Fault: TypeAlias = tuple[int, int, int, float]

# Types that the kernel reads in place; everything else becomes float64 first.
KERNEL_DTYPES = frozenset(
    np.dtype(t)
    for t in ("f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")
)
# Recognised by name, so that pandas need not be imported; pd.NA cannot be compared.
MISSING_TYPES = frozenset(("NAType", "NaTType", "MaskedConstant"))
NOT_NUMBERS = {
    "U": "text",
    "S": "bytes",
    "M": "dates",
    "m": "time spans",
    "c": "complex numbers",
    "V": "structured records",
    "T": "text",
}
BLOCK_CELLS = 1 << 17  # cells per piece of rows when the table is read again


class Readable:
    """A table that is read in pieces of rows, and again."""

    __slots__ = ()

    def in_pieces(self) -> Iterator[tuple[slice, Floats]]:
        """Yield rows, and their cells as float64 with NaN for the missing ones."""
        raise NotImplementedError

    def tables(self) -> Iterator[tuple[int, Rows]]:
        """Yield (first row, some rows as a table in one piece)."""
        for some, piece in self.in_pieces():
            yield some.start, table_of(piece)

    def observed(self) -> Iterator[tuple[Ints, Ints, Floats]]:
        """Yield row, column and value of the cells that are not missing, in pieces."""
        for some, piece in self.in_pieces():
            i, j = np.nonzero(~np.isnan(piece))
            yield i + some.start, j, piece[i, j]

    @property
    def n_observed(self) -> int:
        """Number of the cells that are not missing."""
        return sum(len(i) for i, _, _ in self.observed())

    def take(self, rows: Ints, cols: Ints | slice = slice(None)) -> Floats:
        """Read some rows, in ascending order, or some of their columns."""
        cells = []
        for some, piece in self.in_pieces():
            first, last = np.searchsorted(rows, (some.start, some.stop))
            cells.append(piece[rows[first:last] - some.start][:, cols])
        return np.concatenate(cells)


class Named(Readable):
    """A table with labels: what messages call its cells."""

    __slots__ = ()
    row_labels: Any
    col_labels: Any
    name: str

    def where(self, row: int, col: int, row_offset: int = 0) -> str:
        """Name a cell by its labels, or by its position in the whole table."""
        i = label_at(self.row_labels, row, row_offset)
        return f"{self.name}[{i}, {label_at(self.col_labels, col)}]"


@dataclass(slots=True)  # not frozen: that would take a twentieth of a small fit
class Rows(Named):
    """A table in memory, in one piece or in several pieces of rows.

    A table in one piece has its ``parts`` side by side. One with columns in chunks has
    ``cut``, which reads the rows from one position to another as parts, and ``steps``,
    the rows where pieces begin and end. ``backend`` is the frame library it came from,
    ``name`` what messages call it. ``choice`` has the columns of a frame that are the
    table, where it has others, ``frame`` what gives it back filled. ``weights`` are
    those of its cells, or their exposures if the table is ``exposed``; ``hints`` are
    the warnings about what the table may not be.
    """

    parts: list[Part]
    n_rows: int
    n_cols: int
    row_labels: Any = None
    col_labels: Any = None
    backend: str | None = None
    cut: Callable[[int, int], list[Part]] | None = None
    steps: tuple[int, ...] = ()
    name: str = "X"
    choice: Choice | None = None
    frame: Any = None  # a Frame of `a1gm._rows.libraries`
    weights: Rows | None = None
    exposed: bool = False
    hints: Sequence[DataHintWarning] = ()

    def tables(self) -> Iterator[tuple[int, Rows]]:
        """Yield (first row, some rows as a table in one piece), as they lie."""
        if self.cut is None:
            yield 0, self
            return
        columns, name = self.col_labels, self.name
        for start, stop in pairwise(self.steps):
            names = None if self.row_labels is None else self.row_labels[start:stop]
            parts, n = self.cut(start, stop), stop - start
            yield start, Rows(parts, n, self.n_cols, names, columns, name=name)

    def in_one_piece(self) -> Rows:
        """The same table with its pieces joined, which takes a copy."""
        if self.cut is None:
            return self
        return replace(self, parts=self.cut(0, self.n_rows), cut=None, steps=())

    def in_pieces(self, cells: int = BLOCK_CELLS) -> Iterator[tuple[slice, Floats]]:
        """Yield the rows in pieces of float64, NaN for the missing cells."""
        step = max(1, cells // self.n_cols)
        for first, piece in self.tables():
            for start in range(0, piece.n_rows, step):
                stop = min(start + step, piece.n_rows)
                rows = slice(first + start, first + stop)
                yield rows, read_parts(piece.parts, start, stop)

    def rows(self, rows: slice) -> Floats:
        """Read some rows as float64 with NaN for the missing cells."""
        if self.cut is None:
            return read_parts(self.parts, rows.start, rows.stop)
        return read_parts(self.cut(rows.start, rows.stop), 0, rows.stop - rows.start)

    def head(self, n_rows: int, n_cols: int) -> Floats:
        """Read the first columns of the first rows."""
        parts = self.parts if self.cut is None else self.cut(0, n_rows)
        few = [
            (
                values[:, :n_cols],
                None if mask is None else mask[:, :n_cols],
                validity,
                offset,
            )
            for values, mask, validity, offset in islice(parts, n_cols)
        ]
        return read_parts(few, 0, n_rows)[:, :n_cols]

    @property
    def cells(self) -> Floats:
        """All cells as float64 with NaN for the missing ones."""
        return self.rows(slice(0, self.n_rows))

    def position(self, cell: int) -> tuple[int, int]:
        """Row and column of one of the ``cells``."""
        return divmod(cell, self.n_cols)

    def values_at(self, i: Ints, j: Ints | SmallInts) -> Floats:
        """Values of some cells."""
        if not len(i):
            return np.zeros(0)
        first = int(i.min())
        found: Floats = self.rows(slice(first, int(i.max()) + 1))[i - first, j]
        return found

    def has_cells_of(self, other: Rows) -> bool:
        """Whether a table of this shape has the same cells, missing ones included."""
        return all(
            np.array_equal(piece, other.rows(rows), equal_nan=True)
            for rows, piece in self.in_pieces()
        )

    def kept(self) -> Rows:
        """The same table, with copies of arrays that can be written to."""
        parts = [
            (_kept(values), _kept(mask), validity, offset)
            for values, mask, validity, offset in self.parts
        ]
        return replace(self, parts=parts)

    def observed_as_ones(self) -> Rows:
        """The same holes, with 1 in every observed cell."""
        return table_of(np.where(np.isnan(self.cells), np.nan, 1.0))


def _kept(array: Any) -> Any:
    is_open = array is not None and array.flags.writeable
    return array.copy() if is_open else array


def table_of(values: AnyArray) -> Rows:
    """An array of numbers, NaN for the missing ones, as a table."""
    return Rows([(values, None, None, 0)], *values.shape)


def read_parts(parts: list[Part], start: int, stop: int) -> Floats:
    """Read rows of parts that lie side by side as float64, NaN where missing."""
    out = np.empty((stop - start, sum(part[0].shape[1] for part in parts)))
    at = 0
    for values, mask, validity, offset in parts:
        block = out[:, at : at + values.shape[1]]
        block[...] = values[start:stop]
        if mask is not None:
            block[mask[start:stop].astype(bool)] = np.nan
        if validity is not None:
            byte, bit = divmod(offset + start, 8)
            bits = np.unpackbits(
                validity[byte:], bitorder="little", count=bit + len(out)
            )
            block[bits[bit:] == 0] = np.nan
        at += values.shape[1]
    return out


# --------------------------------------------------------- cells that cannot be fitted
def check_faults(
    source: Any,
    negative: Fault,
    infinite: Fault,
    negatives: Negatives | None,
    row_offset: int = 0,
) -> None:
    """Raise for infinite cells, and for negative ones unless they are allowed.

    ``negatives`` is None where the caller has no such option to advise.
    """
    count, row, col, value = infinite
    if count:
        where = source.where(row, col, row_offset)
        raise InfiniteValuesError(
            f"Input {source.name} contains infinity: {where} = {value} ({count} in "
            "all).",
            advice="Entries must be finite; mark unknown ones as NaN.",
            row=row,
            column=col,
            count=count,
        )
    count, row, col, value = negative
    if count and negatives != "allow":
        where = source.where(row, col, row_offset)
        allow: Text = ()
        if negatives is not None:
            option = Option("negatives", "allow")
            allow = ", or pass ", option, " to fit the margins only"
        raise NegativeValuesError(
            f"Negative values in data: {where} = {value:g} ({count} in all).",
            advice=["Entries must be >= 0; mark unknown ones as NaN", allow, "."],
            row=row,
            column=col,
            count=count,
        )


def check_values(
    source: Any,
    x: Floats,
    negatives: Negatives | None = "raise",
    row_offset: int = 0,
    position: Callable[[int], tuple[int, int]] | None = None,
) -> int:
    """Raise for bad cells among values, as ``check_faults``; count negative ones.

    ``position`` gives row and column of a value, without it that of the table.
    """
    if x.size == 0:
        return 0
    if np.fmin.reduce(x, None) >= 0.0 and np.fmax.reduce(x, None) < np.inf:
        return 0
    infinite = np.isinf(x)
    faults: list[Fault] = []
    for bad in ((x < 0.0) & ~infinite, infinite):
        at = int(bad.argmax())
        faults.append(
            (int(bad.sum()), *(position or source.position)(at), float(x.flat[at]))
        )
    check_faults(source, faults[0], faults[1], negatives, row_offset)
    return faults[0][0]


def check_sums(source: Any, x: Floats, row_sums: Floats, row_offset: int = 0) -> None:
    """Raise where a cell, or the sum of a row, is not in the range of those fitted."""

    def cell(at: int) -> str:
        text: str = source.where(*source.position(at), row_offset)
        return text

    def row(at: int) -> str:
        return f"Row {label_at(source.row_labels, at, row_offset)}"

    check_range(np.where(np.abs(x) > LARGEST, x, 0.0), cell)
    check_range(row_sums, row, "row")


# ----------------------------------------------------------------------------- arrays
def read_array(X: Any, name: str) -> Rows:
    """Read an array, or what NumPy can make one of."""
    mask = None
    if type(X) is not np.ndarray:
        X, mask = as_array(X, name)
    check_shape(X, name)
    if mask is not None and X.dtype.kind == "O":
        X = np.where(mask, None, X)  # whatever is under the mask need not be a number
    values = as_kernel_array(X, name)
    return Rows([(values, mask, None, 0)], *values.shape)


def as_array(X: Any, name: str) -> tuple[AnyArray, AnyArray | None]:
    """Return an array of any number of dimensions, and the mask of a masked one."""
    if isinstance(X, np.matrix):
        raise NotNumericError(
            f"{name} is an np.matrix, which is not supported; pass np.asarray({name})."
        )
    mask = np.ma.getmask(X) if isinstance(X, np.ma.MaskedArray) else np.ma.nomask
    try:
        return np.asarray(X), None if mask is np.ma.nomask else np.asarray(mask)
    except ValueError as error:
        raise DataError(
            f"{name} cannot be read as a table: its rows have different lengths."
        ) from error


def check_shape(X: AnyArray, name: str) -> None:
    """Raise unless X is a table with at least one row and one column."""
    if X.ndim == 2:
        for n, kind in zip(X.shape, ("sample", "feature"), strict=True):
            if n == 0:
                raise DataError(
                    f"Found array with 0 {kind}(s) (shape={X.shape}) while a minimum "
                    f"of 1 is required: {name} needs at least one row and one column."
                )
        return
    got, what = f"{X.ndim}D", f"{name} has shape {X.shape}."
    if X.ndim == 0:
        kind = type(X.item()).__name__
        got, what = "scalar", f"{name} is a single {kind}, not a table."
        advice = " To fit a file use a1gm.fit_file(path)." if kind == "str" else ""
    elif X.ndim > 2:
        advice = (
            f" For a table with {X.ndim} keys use a1gm.fit_tensor({name}), for a stack "
            f"of tables a1gm.fit_many({name})."
        )
    else:
        advice = (
            " Reshape your data using array.reshape(-1, 1) if it is a single column or "
            "array.reshape(1, -1) if it is a single row."
        )
    raise DataError(f"Expected 2D array, got {got} array instead: {what}{advice}")


def as_kernel_array(X: AnyArray, name: str) -> AnyArray:
    """Return X itself when the kernel can read it, else a float64 copy."""
    if X.dtype in KERNEL_DTYPES:
        size = X.itemsize
        has_gaps = any(step % size for step in X.strides) or not X.flags.aligned
        return np.ascontiguousarray(X) if has_gaps else X
    if X.dtype.kind in "fiu":  # float16, longdouble, big-endian
        with np.errstate(over="ignore"):
            return X.astype(np.float64)
    if X.dtype.kind == "O":
        return objects_to_floats(X, name)
    what = NOT_NUMBERS.get(X.dtype.kind, "values that are not numbers")
    hint = "Convert or drop the columns that are not numeric."
    if X.dtype.kind == "c":
        hint = "Complex data not supported."
    raise NotNumericError(
        f"{name} holds {what} (dtype {X.dtype}); a table of real numbers is needed. "
        f"{hint}"
    )


def objects_to_floats(X: AnyArray, name: str, col_names: Any = None) -> Floats:
    """Read Python numbers, None and pd.NA one by one."""
    out = np.empty(X.shape)
    for at, value in np.ndenumerate(X):
        out[at] = _float_of(value, at, name, col_names)
    return out


def kind_of_cells(cells: list[Any], column: Any, name: str) -> Kind:
    """Kind of a column of Python objects: that of all its cells.

    Raises NotNumericError for the first other cell where some are numbers.
    """
    kinds = {kind: _kind_of_type(kind) for kind in set(map(type, cells))}
    if len(set(kinds.values())) > 1:  # NaN is a float, and missing
        kinds = {
            type(cell): kinds[type(cell)]
            for cell in cells
            if not (isinstance(cell, float) and isnan(cell))
        }
    found = {kind for kind in kinds.values() if kind is not None}
    if not found or found == {"number", "bool"}:
        return "number"
    if len(found) > 1 and "number" in found:
        objects_to_floats(np.array([*cells, None], object)[:-1, None], name, [column])
    return found.pop() if len(found) == 1 else "other"


def _kind_of_type(kind: type) -> Kind | None:
    """Kind of the cells of a Python type; None for marks of missing cells."""
    if kind is type(None) or kind.__name__ in MISSING_TYPES:
        return None
    if issubclass(kind, bool | np.bool_):
        return "bool"
    if issubclass(kind, str | bytes):
        return "text"
    if issubclass(kind, date | time | timedelta | np.datetime64 | np.timedelta64):
        return "date"
    is_number = issubclass(kind, Number) and not issubclass(kind, complex)
    return "number" if is_number else "other"


def _float_of(value: Any, at: tuple[int, ...], name: str, col_names: Any) -> float:
    if value is None or type(value).__name__ in MISSING_TYPES:
        return np.nan
    why = ""
    if not isinstance(value, str | bytes | complex | np.timedelta64 | np.datetime64):
        try:
            return float(value)
        except OverflowError:  # an integer above 1.8e308: refused with its cell
            return np.inf if value > 0 else -np.inf
        except (TypeError, ValueError) as error:
            why = f" ({error})"
    places = list(map(str, at))
    if col_names is not None:
        places[-1] = repr(col_names[at[-1]])
    raise NotNumericError(
        f"{name}[{', '.join(places)}] = {value!r} is a {type(value).__name__}, not a "
        f"number{why}. Mark unknown cells as NaN or None, and convert the others to "
        "numbers."
    )
