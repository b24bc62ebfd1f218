"""Long tables, one row per cell, as a sparse source: keys are coded, never pivoted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from a1gm._base.types import Floats, Ints, Negatives
from a1gm._base.words import counted, listed
from a1gm._rows.frames import EVERY_COLUMN, open_frame, read_frame
from a1gm._rows.keys import Key, code_key, row_number
from a1gm._rows.labels import check_there, text_of_label
from a1gm._rows.rows import Fault, check_faults
from a1gm._rows.sparse import SparseRows
from a1gm._rows.triangles import is_triangle
from a1gm.exceptions import (
    DataError,
    LabelError,
    NotNumericError,
    Option,
    ParameterError,
    WeightsError,
)

Duplicates: TypeAlias = Literal["raise", "sum"]
NAMES = ("row", "column", "value")  # of a Series whose index has none


class PlacedFrame(NamedTuple):
    """A long frame whose rows have places of their own, such as lines of a file."""

    frame: Any
    place_of: Callable[[int], str]


@dataclass(frozen=True, slots=True)
class LongColumns:
    """Which columns of a long frame hold the keys and the value."""

    row: Any
    column: Any
    value: Any
    weight: Any = None
    place_of: Callable[[int], str] = row_number  # what messages call a row

    @property
    def keys(self) -> tuple[Any, Any]:
        """Names of both keys."""
        return self.row, self.column


@dataclass(frozen=True)
class LongCells:
    """The rows of a long frame: coded keys, values, and weights if there are some."""

    frame: Any
    columns: LongColumns
    row: Key
    column: Key
    values: Floats
    weights: Floats | None = None
    name: str = "frame"
    places: Ints | None = None  # of these rows, where they are not the whole frame

    def place_of(self, at: int) -> str:
        """Name a row by its place in the frame."""
        return self.columns.place_of(at if self.places is None else self.places[at])

    def pair(self, at: int) -> str:
        """Name the pair of keys in a row."""
        return ", ".join(
            text_of_label(key.labels[int(key.codes[at])])
            for key in (self.row, self.column)
        )

    def where(self, row: int, col: int, row_offset: int = 0) -> str:
        """Name the value in a row by its keys and by the row."""
        return f"{self.columns.value}[{self.pair(row)}] in {self.place_of(row)}"

    def check(self, negatives: Negatives | None) -> None:
        """Raise for values and weights that cannot be fitted."""
        V = self.weights
        if V is not None:
            self._check_weights(V)
        x = self.values if V is None else np.where(V > 0.0, self.values, np.nan)
        with np.errstate(invalid="ignore"):
            if np.fmin.reduce(x) >= 0.0 and np.fmax.reduce(x) < np.inf:
                return
        infinite = np.isinf(x)
        faults: list[Fault] = []
        for bad in ((x < 0.0) & ~infinite, infinite):
            at = int(bad.argmax())
            faults.append((int(bad.sum()), at, 0, float(x[at])))
        check_faults(self, faults[0], faults[1], negatives)

    def _check_weights(self, V: Floats) -> None:
        bad = ~((V >= 0.0) & (np.inf > V)) & ~np.isnan(self.values)
        if bad.any():
            at = int(bad.argmax())
            where = f"{self.columns.weight}[{self.pair(at)}]"
            raise WeightsError(
                f"{where} in {self.place_of(at)} = {V[at]} "
                f"({int(bad.sum())} in all). Weights must be finite and >= 0; use 0 "
                "for a cell to be ignored."
            )
        if not (V > 0.0).any():
            raise WeightsError("All weights are zero: nothing is left to fit.")

    def source(self, duplicates: Duplicates) -> SparseRows:
        """The cells as a sparse table whose absent cells are missing."""
        table = self._sorted(self.values)
        if table.nnz < len(self.values):
            if duplicates == "raise":
                self._refuse_duplicates()
            table = self._sums()
        source = SparseRows(
            table.indptr.astype(np.int64),
            table.indices.astype(np.int32, copy=False),
            table.data,
            len(self.row.values),
            len(self.column.values),
            absent="missing",
            row_labels=self.row.labels,
            col_labels=self.column.labels,
            backend=str(self.frame.implementation.value),
        )
        if self.weights is None:
            return source
        # A weight of 0 takes the cell out: the one of a missing value does not matter.
        weights = np.where(np.isnan(self.values), 0.0, self.weights)
        V = source.with_values(self._sorted(weights).data)
        return replace(source, weights=V)

    def _sorted(self, values: Floats, chosen: Any = slice(None)) -> Any:
        """Cells row by row, columns ascending; pairs that are there twice are added."""
        from scipy.sparse import coo_array

        places = self.row.codes[chosen], self.column.codes[chosen]
        shape = len(self.row.values), len(self.column.values)
        return coo_array((values, places), shape=shape).tocsr()

    def _sums(self) -> Any:
        """Sums of the values of each pair; a pair without a value stays missing."""
        known = ~np.isnan(self.values)
        with np.errstate(over="ignore"):
            return self._sorted(self.values[known], known)

    def _refuse_duplicates(self) -> None:
        pairs: Ints = self.row.codes * np.int64(len(self.column.values))
        pairs += self.column.codes
        _, first, place = np.unique(pairs, return_index=True, return_inverse=True)
        again = np.flatnonzero(first[place] != np.arange(len(pairs)))
        at = int(again[0])
        two = " and ".join(map(self.place_of, (int(first[place[at]]), at)))
        raise LabelError(
            f"The pair ({self.pair(at)}) is there twice, in {two} "
            f"({counted(len(again), 'such row')} in all). A cell has one value: pass ",
            Option("duplicates", "sum"),
            " to add them up, or drop the rows that repeat others.",
        )


def read_long(
    given: Any,
    keys: Sequence[Any] | None,
    value: Any,
    weight: Any = None,
    negatives: Negatives = "raise",
) -> LongCells:
    """Read a long frame, and raise for keys and values that cannot be fitted."""
    frame, columns = open_long(given, keys, value, weight)
    values = numbers_of(frame, columns.value)
    weights = None if weight is None else numbers_of(frame, weight)
    row, column = (code_key(frame, key, columns.place_of) for key in columns.keys)
    cells = LongCells(frame, columns, row, column, values, weights)
    is_advised = weight is None or negatives == "allow"  # which weights refuse
    cells.check(negatives if is_advised else None)
    return cells


def open_long(
    given: Any,
    keys: Sequence[Any] | None,
    value: Any,
    weight: Any = None,
    also: Sequence[Any] = (),
) -> tuple[Any, LongColumns]:
    """Open a long frame, or a pandas Series with two levels, and find its columns.

    ``also`` are further columns, which may be levels of the index, as the keys may.
    """
    place_of: Callable[[int], str] = row_number
    if isinstance(given, PlacedFrame):
        given, place_of = given
    if _is_series(given):
        given, own = _frame_of_series(given)
        keys, value = keys or own[:2], own[2] if value is None else value
    if keys is None or value is None:
        raise ParameterError(
            "Say which columns hold the two keys and the value: "
            'keys=["shop", "month"], value="sales".'
        )
    if isinstance(keys, str) or len(keys) != 2:
        raise ParameterError(
            "keys must be two names, the column with the rows' keys and the one with "
            f"the columns', got {keys!r}."
        )
    columns = LongColumns(keys[0], keys[1], value, weight, place_of)
    frame = open_pairs(given, (*columns.keys, *also))
    names = [name for name in (*keys, value, weight) if name is not None]
    check_there("The frame", names, frame.columns)
    if len(set(names)) < len(names):
        raise ParameterError(f"Each of {listed(names)} must be a column of its own.")
    if len(frame) == 0:
        raise DataError("The frame has no rows: there is nothing to fit.")
    return frame, columns


def open_pairs(given: Any, keys: Sequence[Any]) -> Any:
    """Open a frame with narwhals; keys may be levels of the index of pandas."""
    index = getattr(given, "index", None)
    inside = [name for name in getattr(index, "names", ()) if name in keys]
    frame = open_frame(given.reset_index(inside) if inside else given, "frame")
    if frame is None:
        other = " Fit it with a1gm.fit_many." if is_triangle(given) else ""
        raise NotNumericError(
            "A long table is a frame of pandas, polars or pyarrow, or a pandas Series "
            f"with two levels; this is a {type(given).__name__}.{other}"
        )
    return frame


def _is_series(given: Any) -> bool:
    return type(given).__name__ == "Series" and hasattr(given, "index")


def _frame_of_series(series: Any) -> tuple[Any, tuple[Any, Any, Any]]:
    if series.index.nlevels != 2:
        raise DataError(
            "A Series is a long table when its index has two levels, one for the rows "
            f"and one for the columns; this one has {series.index.nlevels}. Make a "
            "frame of it with series.reset_index(), and name its columns."
        )
    given = (*series.index.names, series.name)
    pairs = zip(given, NAMES, strict=True)
    row, column, value = (own if n is None else n for n, own in pairs)
    frame = series.rename(value).rename_axis([row, column]).reset_index()
    return frame, (row, column, value)


def numbers_of(frame: Any, column: Any) -> Floats:
    """A column as float64, where it lies if it is one; NaN where it is missing."""
    source = read_frame(
        frame.get_column(column).to_frame().to_native(), "frame", EVERY_COLUMN
    )
    if source.cut is None:
        ((values, mask, validity, *_),) = source.parts
        if values.dtype == np.float64 and mask is None and validity is None:
            return values[:, 0]
    return source.rows(slice(0, source.n_rows))[:, 0]
