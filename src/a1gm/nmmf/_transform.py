"""Shared row factors of new rows, for given column factors."""

from __future__ import annotations

import numpy as np

from a1gm._transform import find_faults
from a1gm._types import Floats
from a1gm.nmmf._layout import SharedTable
from a1gm.nmmf._observe import check_faults

__all__ = ["shared_row_factors"]

ROWS_AT_ONCE = 1 << 12


def shared_row_factors(tables: list[tuple[SharedTable, Floats]]) -> Floats:
    """Best factor of each row for tables side by side with their column factors.

    With the column factors fixed it is the weighted sum of the row's observed cells
    over the weighted sum of their factors; NaN where nothing is observed. A table of
    weight 0 is checked, but says nothing of the rows.
    """
    n_rows = tables[0][0].source.n_rows
    sums, fitted = np.zeros(n_rows), np.zeros(n_rows)
    seen = np.zeros(n_rows, bool)
    for table, factor in tables:
        known = ~np.isnan(factor)
        h = np.where(known, factor, 0.0)
        for start in range(0, n_rows, ROWS_AT_ONCE):
            rows = slice(start, min(start + ROWS_AT_ONCE, n_rows))
            block = table.source.rows(rows)
            check_faults([table], *find_faults(block, start))
            if table.is_passive:
                continue
            observed = ~np.isnan(block) & known
            sums[rows] += table.weight * np.where(observed, block, 0.0).sum(axis=1)
            fitted[rows] += table.weight * (observed @ h)
            seen[rows] |= observed.any(axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        factors = sums / fitted
    factors[(sums == 0.0) & seen] = 0.0
    factors[~np.isfinite(factors)] = np.nan
    return factors
