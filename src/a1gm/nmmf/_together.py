"""Alternating scaling of one pattern table for many margins at once."""

from __future__ import annotations

import numpy as np

from a1gm._types import Bools, Floats

__all__ = ["scale_together"]

MAX_SWEEPS = 60  # more are needed by few tables, which are then solved one by one


def scale_together(
    mask: Floats, row_sums: Floats, col_sums: Floats, tol: float
) -> tuple[Floats, Floats, Bools]:
    """Scale of the lines, factors of the columns, and whether ``tol`` was reached.

    ``mask`` (lines x columns) is 1 where a cell is observed; every row of ``row_sums``
    and ``col_sums`` is a problem of its own, w = R / (P h) and h = C / (P' w).
    """
    h = col_sums / np.maximum(col_sums.max(axis=1, keepdims=True), np.finfo(float).tiny)
    gap = np.full(len(h), np.inf)
    positive = row_sums > 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        fitted = h @ mask.T
        for _ in range(MAX_SWEEPS):
            w = row_sums / fitted
            h = col_sums / (w @ mask)
            fitted = h @ mask.T
            off = np.abs(w * fitted - row_sums) / row_sums
            gap = np.where(positive, off, 0.0).max(axis=1)
            if not (gap > tol).any():  # NaN does not get better either
                break
        scale = 1.0 / fitted
    return scale, h, gap <= tol
