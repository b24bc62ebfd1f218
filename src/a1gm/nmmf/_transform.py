"""Shared row factors of new rows, for given column factors."""

from __future__ import annotations

import numpy as np

from a1gm._input import Source
from a1gm._transform import refuse_bad_cells
from a1gm._types import Floats

__all__ = ["shared_row_factors"]

ROWS_AT_ONCE = 1 << 12


def shared_row_factors(tables: list[tuple[Source, Floats, float]]) -> Floats:
    """Best factor of each row for (table, column factors, weight) side by side.

    With the column factors fixed it is the weighted sum of the row's observed cells
    over the weighted sum of their factors; NaN where nothing is observed.
    """
    n_rows = tables[0][0].n_rows
    sums, fitted = np.zeros(n_rows), np.zeros(n_rows)
    seen = np.zeros(n_rows, bool)
    for source, factor, weight in tables:
        known = ~np.isnan(factor)
        h = np.where(known, factor, 0.0)
        for start in range(0, n_rows, ROWS_AT_ONCE):
            rows = slice(start, min(start + ROWS_AT_ONCE, n_rows))
            block = source.rows(rows)
            refuse_bad_cells(source, block, start)
            observed = ~np.isnan(block) & known
            sums[rows] += weight * np.where(observed, block, 0.0).sum(axis=1)
            fitted[rows] += weight * (observed @ h)
            seen[rows] |= observed.any(axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        factors = sums / fitted
    factors[(sums == 0.0) & seen] = 0.0
    factors[~np.isfinite(factors)] = np.nan
    return factors
