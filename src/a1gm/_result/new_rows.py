"""Row factors of any rows for given column factors."""

from __future__ import annotations

import numpy as np

from a1gm._sources import AnySource, SparseSource
from a1gm._observe.one_pass import check_faults
from a1gm._base.float_range import product, row_sums
from a1gm._observe.sparse import check_cells
from a1gm._base.types import AnyArray, Bools, Floats, Negatives
from a1gm.exceptions import NotRepresentableError

__all__ = ["checked_factors", "find_faults", "refuse_bad_cells", "row_factors"]

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
    n = source.n_rows
    sums, exponents = np.empty(n), np.empty(n, np.int32)
    fitted, observes = np.empty(n), np.empty(n, bool)
    for rows, block in source.blocks():
        refuse_bad_cells(source, block, rows.start, negatives)
        observed = ~np.isnan(block) & known
        sums[rows], exponents[rows] = row_sums(np.where(observed, block, 0.0))
        fitted[rows] = observed @ h
        observes[rows] = observed.any(axis=1)
    return _ratio(sums, fitted, observes, exponents)


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


def _ratio(
    sums: AnyArray,
    fitted: AnyArray,
    observes: AnyArray | np.bool,
    exponent: AnyArray | int = 0,
) -> Floats:
    factors = product(sums, over=fitted, exponent=exponent)
    return checked_factors(factors, sums != 0.0, observes, fitted)


def checked_factors(
    factors: Floats, has_data: Bools, observes: AnyArray | np.bool, fitted: AnyArray
) -> Floats:
    """Factor 0 for rows of zeros, NaN for unknown ones; no other may be 0 or infinite.

    ``fitted`` is what the sum of a row's data was divided by.
    """
    known = has_data & (fitted != 0.0)
    out = factors[known]
    if not (np.isfinite(out).all() and out.all()):
        row = int(np.flatnonzero(known)[np.argmin(np.isfinite(out) & (out != 0.0))])
        msg = (
            f"The factor of row {row} is outside the range of float64 (about 1e-308 to "
            "1e308). Multiply the rows by a power of ten first."
        )
        raise NotRepresentableError(msg)
    factors[~known] = np.nan
    factors[~has_data & observes] = 0.0
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
