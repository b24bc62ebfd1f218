"""SciPy sparse tables, read by their stored cells only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from a1gm._base.types import (
    Absent,
    AnyArray,
    Bools,
    Floats,
    Ints,
    Negatives,
    SmallInts,
)
from a1gm._rows.rows import check_values, name_cell
from a1gm.exceptions import DataError, NotNumericError, ParameterError

CELLS_AT_ONCE = 1 << 20  # of a sparse table that is read as a dense one


@dataclass(frozen=True, slots=True)
class SparseRows:
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

    def place(self, cell: int) -> tuple[int, int]:
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

    def with_values(self, values: Floats) -> SparseRows:
        """The same stored cells with other values."""
        return replace(self, values=values)

    def values_at(self, other: SparseRows) -> Floats:
        """Values of the cells that another table stores; NaN where this has none."""
        same_rows = np.array_equal(self.ptr, other.ptr)
        if same_rows and np.array_equal(self.cols, other.cols):
            return self.values
        mine, theirs = (t.row_of_cell * t.n_cols + t.cols for t in (self, other))
        place = np.searchsorted(mine, theirs)
        found = np.zeros(len(theirs), bool)
        inside = place < len(mine)
        found[inside] = mine[place[inside]] == theirs[inside]
        values = np.full(len(theirs), np.nan)
        values[found] = self.values[place[found]]
        return values

    def rows(self, rows: slice) -> Floats:
        """Read some rows as a dense table, NaN for the missing cells."""
        fill = np.nan if self.absent == "missing" else 0.0
        out = np.full((rows.stop - rows.start, self.n_cols), fill)
        ptr = self.ptr[rows.start : rows.stop + 1]
        cells = slice(int(ptr[0]), int(ptr[-1]))
        within = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        out[within, self.cols[cells]] = self.values[cells]
        return out

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield the rows as dense tables, a bounded number of cells at a time."""
        step = max(1, CELLS_AT_ONCE // self.n_cols)
        for start in range(0, self.n_rows, step):
            rows = slice(start, min(start + step, self.n_rows))
            yield rows, self.rows(rows)

    def scaled_rows(self, scale: Floats) -> SparseRows:
        """The table with each row multiplied by a number; rows times 0 are left out."""
        kept = np.flatnonzero(scale > 0.0)
        counts = np.diff(self.ptr)
        chosen = np.repeat(scale > 0.0, counts)
        ptr = np.concatenate(([0], np.cumsum(counts[kept])))
        values = self.values[chosen] * np.repeat(scale[kept], counts[kept])
        return SparseRows(
            ptr, self.cols[chosen], values, len(kept), self.n_cols, self.absent
        )

    def observed_as_ones(self) -> SparseRows:
        """The same holes, with 1 in every other stored cell."""
        return self.with_values(np.where(self.missing, np.nan, 1.0))

    def where(self, row: int, col: int, row_offset: int = 0) -> str:
        """Name a cell the way its owner does."""
        labels = self.row_labels, self.col_labels
        return name_cell(*labels, row, col, row_offset, name=self.name)


def read_sparse(X: Any, absent: Absent | None, name: str) -> SparseRows:
    """Read a sparse array or matrix; the input is never modified."""
    if absent not in ("missing", "zero"):
        raise ParameterError(
            f"{name} is sparse: say what its absent cells are, with absent='missing' "
            f"or absent='zero' (got absent={absent!r})."
        )
    _check_sparse(X, name)
    table = X.tocsr()
    if not table.has_canonical_format:
        if table is X or np.shares_memory(table.data, X.data):
            table = table.copy()
        table.sum_duplicates()
    try:  # the kernel trusts the indices
        table.check_format(full_check=True)
    except ValueError as error:
        raise DataError(f"{name} is not a valid sparse table: {error}.") from error
    n_rows, n_cols = table.shape
    return SparseRows(
        np.asarray(table.indptr, np.int64),
        np.asarray(table.indices, np.int32),
        np.asarray(_as_floats(table.data), np.float64),
        int(n_rows),
        int(n_cols),
        absent,
    )


def _check_sparse(X: Any, name: str) -> None:
    if X.ndim != 2 or 0 in X.shape:
        raise DataError(
            f"Expected a 2D sparse table with at least one row and one column, but "
            f"{name} has shape {X.shape}: a minimum of 1 is required."
        )
    if X.shape[1] >= 2**31:
        raise DataError(
            f"{name} has {X.shape[1]} columns; at most 2**31 - 1 are supported."
        )
    if X.dtype.kind not in "fiub":
        hint = " Complex data not supported." if X.dtype.kind == "c" else ""
        raise NotNumericError(
            f"{name} is a sparse table of dtype {X.dtype}; real numbers are needed."
            f"{hint}"
        )


def _as_floats(data: AnyArray) -> AnyArray:
    with np.errstate(over="ignore"):
        return data.astype(np.float64, copy=False)


def check_stored_cells(
    source: SparseRows, negatives: Negatives | None, row_offset: int = 0
) -> int:
    """Raise for bad cells of a sparse table; returns how many are negative."""
    return check_values(source, source.values, source.place, negatives, row_offset)
