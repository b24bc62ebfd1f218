"""Row factors of any rows for given column factors."""

from __future__ import annotations

import numpy as np

from a1gm._input import Source
from a1gm._observe import check_faults
from a1gm._types import Floats

__all__ = ["row_factors"]


def row_factors(source: Source, col_factor: Floats) -> Floats:
    """Return r_i divided by the sum of the observed columns' factors.

    NaN for a row that observes nothing, or nothing but zero columns.
    """
    out = np.empty(source.n_rows)
    known = ~np.isnan(col_factor)
    h = np.where(known, col_factor, 0.0)
    for rows, block in source.blocks():
        _refuse_bad_cells(source, block, rows.start)
        observed = ~np.isnan(block) & known
        sums = np.where(observed, block, 0.0).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = sums / (observed @ h)
        factors[(sums == 0.0) & observed.any(axis=1)] = 0.0
        factors[~np.isfinite(factors)] = np.nan
        out[rows] = factors
    return out


def _refuse_bad_cells(source: Source, block: Floats, start: int) -> None:
    faults = []
    for bad in ((block < 0.0) & ~np.isinf(block), np.isinf(block)):
        n = int(bad.sum())
        row, col = divmod(int(bad.argmax()), block.shape[1])
        faults.append(
            (n, row + start, col, float(block[row, col])) if n else (0, 0, 0, 0.0)
        )
    check_faults(source, faults[0], faults[1], "raise")
