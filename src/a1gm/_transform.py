"""Row factors of any rows for given column factors."""

from __future__ import annotations

import numpy as np

from a1gm._input import AnySource, SparseSource
from a1gm._observe import check_faults
from a1gm._sparse import check_cells
from a1gm._types import AnyArray, Bools, Floats, Negatives

__all__ = ["find_faults", "refuse_bad_cells", "row_factors"]

Fault = tuple[int, int, int, float]


def row_factors(
    source: AnySource, col_factor: Floats, negatives: Negatives = "raise"
) -> Floats:
    """Return r_i divided by the sum of the observed columns' factors.

    NaN for a row that observes nothing, or nothing but zero columns.
    """
    known = ~np.isnan(col_factor)
    h = np.where(known, col_factor, 0.0)
    if isinstance(source, SparseSource):
        check_cells(source, negatives, 0)
        return _sparse_row_factors(source, h, known)
    out = np.empty(source.n_rows)
    for rows, block in source.blocks():
        refuse_bad_cells(source, block, rows.start, negatives)
        observed = ~np.isnan(block) & known
        sums = np.where(observed, block, 0.0).sum(axis=1)
        out[rows] = _ratio(sums, observed @ h, observed.any(axis=1))
    return out


def _sparse_row_factors(source: SparseSource, h: Floats, known: Bools) -> Floats:
    rows = source.lines
    seen = ~source.missing & known[source.cols]
    n = source.n_rows
    sums = np.bincount(rows[seen], source.values[seen], minlength=n)
    if source.absent == "missing":
        fitted = np.bincount(rows[seen], h[source.cols[seen]], minlength=n)
        return _ratio(sums, fitted, np.bincount(rows[seen], minlength=n) > 0)
    hole = source.missing & known[source.cols]
    holes = np.bincount(rows[hole], minlength=n)
    fitted = h.sum() - np.bincount(rows[hole], h[source.cols[hole]], minlength=n)
    # h.sum() less nearly all of itself would cancel: there the cells are read.
    for row in np.flatnonzero(fitted < 0.25 * h.sum()):
        fitted[row] = h[~np.isnan(source.rows(slice(row, row + 1))[0])].sum()
    return _ratio(sums, fitted, holes < int(known.sum()))


def _ratio(sums: AnyArray, fitted: AnyArray, observes: AnyArray | np.bool) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        factors: Floats = np.asarray(sums / fitted, np.float64)
    factors[(sums == 0.0) & observes] = 0.0
    factors[~np.isfinite(factors)] = np.nan
    return factors


def refuse_bad_cells(
    source: AnySource,
    block: Floats,
    start: int,
    negatives: Negatives = "raise",
    row_offset: int = 0,
) -> None:
    """Raise for negative and infinite cells of a block of rows."""
    negative, infinite = find_faults(block, start)
    check_faults(source, negative, infinite, negatives, row_offset)


def find_faults(block: Floats, start: int) -> tuple[Fault, Fault]:
    """Negative and infinite cells of a block: how many, and the first with its value.

    ``start`` is the place of the block's first row in the table.
    """
    faults: list[Fault] = []
    for bad in ((block < 0.0) & ~np.isinf(block), np.isinf(block)):
        n = int(bad.sum())
        row, col = divmod(int(bad.argmax()), block.shape[1])
        faults.append(
            (n, row + start, col, float(block[row, col])) if n else (0, 0, 0, 0.0)
        )
    return faults[0], faults[1]
