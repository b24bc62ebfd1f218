"""The proof of optimality: the fitted table has the margins of the data."""

from __future__ import annotations

import numpy as np

from a1gm._base.float_range import product
from a1gm._base.types import Floats
from a1gm._observe.patterns import Patterns, weighted_counts
from a1gm._solve.factors import Factors, relative_gap


def margin_mismatch(factors: Factors, patterns: Patterns) -> float:
    """Largest relative mismatch of a row or column sum, over the observed cells.

    Cells between components count as fitted by 0. Of sums of either sign, a row of sum
    1 stands for all rows of its pattern, and columns are compared in units of their
    cells where these cancel.
    """
    w, h, scale = (
        np.nan_to_num(x)
        for x in (factors.pattern_factor, factors.col_factor, factors.pattern_scale)
    )
    inside = patterns
    labels = factors.pattern_block, factors.col_block
    if max(label.max(initial=0) for label in labels) > 0:  # else the others have 0
        inside = patterns.inside(*labels)
    row_sums, col_sums = patterns.row_sums, patterns.col_sums
    rows, cols = _margins(inside, w, h)
    if not patterns.n_negative:
        gaps = [relative_gap(rows, row_sums), relative_gap(cols, col_sums)]
    else:
        has_data = patterns.has_row_sums() | (scale != 0.0)
        ones = _margins(inside, scale, h)[0][has_data]
        size = _margins(inside, np.abs(w), np.abs(h))[1]
        unit = np.maximum(size, np.abs(col_sums))
        with np.errstate(all="ignore"):
            off = np.abs(cols - col_sums)[unit > 0.0] / unit[unit > 0.0]
        gaps = [np.abs(ones - 1.0).max(initial=0.0), off.max(initial=0.0)]
    gap = float(np.max(gaps))
    return gap if np.isfinite(gap) else np.inf


def _margins(patterns: Patterns, w: Floats, h: Floats) -> tuple[Floats, Floats]:
    """Sums of the fitted cells; by cells where factors times weights leave float64."""
    with np.errstate(all="ignore"):
        rows, cols = patterns.margins(w, h)
    if np.isfinite(rows).all() and np.isfinite(cols).all():
        return rows, cols
    from scipy.sparse import csr_array

    rows[:] = cols[:] = 0.0
    for some, weights in patterns.matrices():
        P = csr_array(weights)
        i = np.repeat(np.arange(P.shape[0]), np.diff(P.indptr))
        cells = product(w[some][i], P.data, h[P.indices])
        with np.errstate(over="ignore"):  # what leaves the range misses its margin
            rows[some] = weighted_counts(i, cells, P.shape[0])
            cols += weighted_counts(P.indices, cells, len(cols))
    return rows, cols
