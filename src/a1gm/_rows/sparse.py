"""SciPy sparse tables, read by their stored cells only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from a1gm._base.types import (
    Absent,
    Bools,
    Floats,
    Ints,
    SmallInts,
)
from a1gm._rows.rows import Named
from a1gm.exceptions import DataError, NotNumericError, ParameterError

CELLS_AT_ONCE = 1 << 20  # of a sparse table that is read as a dense one


@dataclass(frozen=True, slots=True)
class SparseRows(Named):
    """Stored cells row by row, columns ascending, each once.

    A stored NaN is a missing cell; so is an absent one with ``absent="missing"``,
    while with ``absent="zero"`` it is an observed 0. ``weights`` stores the same cells.
    """

    ptr: Ints
    cols: SmallInts
    values: Floats
    n_rows: int
    n_cols: int
    absent: Absent
    row_labels: Any = None
    col_labels: Any = None
    backend: str | None = None
    name: str = "X"
    weights: SparseRows | None = None
    exposed: bool = False

    @property
    def row_of_cell(self) -> Ints:
        """Row of each stored cell."""
        return np.repeat(np.arange(self.n_rows), np.diff(self.ptr))

    @property
    def cells(self) -> Floats:
        """The stored cells."""
        return self.values

    def position(self, cell: int) -> tuple[int, int]:
        """Row and column of a stored cell."""
        row = int(np.searchsorted(self.ptr, cell, side="right")) - 1
        return row, int(self.cols[cell])

    @property
    def missing(self) -> Bools:
        """Which stored cells are NaN."""
        return np.isnan(self.values)

    def without_missing(self) -> SparseRows:
        """The stored cells that hold a number."""
        missing = self.missing
        return self.with_cells(~missing) if missing.any() else self

    def with_cells(self, chosen: Bools) -> SparseRows:
        """Some of the stored cells."""
        counts = np.bincount(self.row_of_cell[chosen], minlength=self.n_rows)
        ptr = np.concatenate(([0], np.cumsum(counts)))
        return replace(
            self, ptr=ptr, cols=self.cols[chosen], values=self.values[chosen]
        )

    def to_dense(self) -> Floats:
        """The stored cells as an array, 0 elsewhere."""
        from scipy.sparse import csr_array

        shape = self.n_rows, self.n_cols
        cells: Floats = csr_array((self.values, self.cols, self.ptr), shape).toarray()
        return cells

    def stores_cells_of(self, other: SparseRows) -> bool:
        """Whether another table stores cells at the same places."""
        return np.array_equal(self.ptr, other.ptr) and np.array_equal(
            self.cols, other.cols
        )

    def with_values(self, values: Floats) -> SparseRows:
        """The same stored cells with other values."""
        return replace(self, values=values)

    def values_at(self, i: Ints, j: Ints | SmallInts) -> Floats:
        """Values of some cells; NaN for those that are not stored."""
        stored, wanted = self.row_of_cell * self.n_cols + self.cols, i * self.n_cols + j
        if np.array_equal(stored, wanted):
            return self.values
        at = np.searchsorted(stored, wanted)
        is_there = np.append(stored, -1)[at] == wanted
        found: Floats = np.where(is_there, np.append(self.values, np.nan)[at], np.nan)
        return found

    def has_cells_of(self, other: SparseRows) -> bool:
        """Whether another table stores the same cells with the same values."""
        return (
            self.absent == other.absent
            and self.stores_cells_of(other)
            and np.array_equal(self.values, other.values, equal_nan=True)
        )

    def rows(self, rows: slice) -> Floats:
        """Read some rows as a dense table, NaN for the missing cells."""
        fill = np.nan if self.absent == "missing" else 0.0
        out = np.full((rows.stop - rows.start, self.n_cols), fill)
        ptr = self.ptr[rows.start : rows.stop + 1]
        cells = slice(int(ptr[0]), int(ptr[-1]))
        within = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        out[within, self.cols[cells]] = self.values[cells]
        return out

    def observed(self) -> Iterator[tuple[Ints, Ints, Floats]]:
        """Yield row, column and value of the stored cells that are not missing."""
        own = self.without_missing()
        yield own.row_of_cell, own.cols.astype(np.int64), own.values

    def take(self, rows: Ints, cols: Ints | slice = slice(None)) -> Floats:
        """Read any rows, or some of their columns, as a dense table with NaN."""
        counts = np.diff(self.ptr)[rows]
        within, ends = np.repeat(np.arange(len(rows)), counts), np.cumsum(counts)
        cells = np.arange(len(within)) + np.repeat(
            self.ptr[rows] + counts - ends, counts
        )
        place = np.full(self.n_cols, -1)
        n_taken = len(place[cols])
        place[cols] = np.arange(n_taken)
        col = place[self.cols[cells]]
        is_taken = col >= 0
        fill = np.nan if self.absent == "missing" else 0.0
        out = np.full((len(rows), n_taken), fill)
        out[within[is_taken], col[is_taken]] = self.values[cells[is_taken]]
        return out

    def in_pieces(self) -> Iterator[tuple[slice, Floats]]:
        """Yield the rows as dense tables, a bounded number of cells at a time."""
        step = max(1, CELLS_AT_ONCE // self.n_cols)
        for start in range(0, self.n_rows, step):
            rows = slice(start, min(start + step, self.n_rows))
            yield rows, self.rows(rows)

    def scaled_rows(self, scale: Floats) -> SparseRows:
        """The table with each row multiplied by a number; rows times 0 are left out."""
        kept, of_cell = scale > 0.0, scale[self.row_of_cell]
        some = self.with_values(self.values * of_cell).with_cells(of_cell > 0.0)
        ptr = np.append(0, some.ptr[1:][kept])
        return replace(some, ptr=ptr, n_rows=len(ptr) - 1, row_labels=None)

    def observed_as_ones(self) -> SparseRows:
        """The same holes, with 1 in every other stored cell."""
        return self.with_values(np.where(self.missing, np.nan, 1.0))


def read_sparse(X: Any, absent: Absent | None, name: str) -> SparseRows:
    """Read a sparse array or matrix; the input is never modified."""
    if absent not in ("missing", "zero"):
        raise ParameterError(
            f"{name} is sparse. Pass absent='missing' or absent='zero' for its absent "
            f"cells (got absent={absent!r})."
        )
    if X.ndim != 2 or 0 in X.shape:
        raise DataError(
            "Expected a 2D sparse table with at least one row and one column, but "
            f"{name} has shape {X.shape}: a minimum of 1 is required."
        )
    if X.shape[1] >= 2**31:
        raise DataError(f"{name} has {X.shape[1]} columns; at most 2**31 - 1 can be.")
    if X.dtype.kind not in "fiub":
        hint = " Complex data not supported." if X.dtype.kind == "c" else ""
        raise NotNumericError(
            f"{name} is a sparse table of dtype {X.dtype}; real numbers are needed."
            f"{hint}"
        )
    table = X.tocsr()
    if not table.has_canonical_format:
        if table is X or np.shares_memory(table.data, X.data):
            table = table.copy()
        table.sum_duplicates()
    try:  # the kernel trusts the indices
        table.check_format(full_check=True)
    except ValueError as error:
        raise DataError(f"{name} is not a valid sparse table: {error}.") from error
    with np.errstate(over="ignore"):
        values = np.asarray(table.data, np.float64)
    ptr, cols = np.asarray(table.indptr, np.int64), np.asarray(table.indices, np.int32)
    n_rows, n_cols = map(int, table.shape)
    return SparseRows(ptr, cols, values, n_rows, n_cols, absent)
