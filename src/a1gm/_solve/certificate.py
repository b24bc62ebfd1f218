"""The proof of optimality: the fitted table has the margins of the data."""

from __future__ import annotations

import numpy as np

from a1gm._observe.patterns import Patterns
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
    with np.errstate(all="ignore"):  # what leaves the range misses its margin
        rows, cols = inside.margins(w, h)
        if min(row_sums.min(initial=0.0), col_sums.min(initial=0.0), h.min()) >= 0.0:
            gaps = [relative_gap(rows, row_sums), relative_gap(cols, col_sums)]
        else:
            has_data = (row_sums != 0.0) | (scale != 0.0)
            ones = inside.margins(scale, h)[0][has_data]
            size = inside.margins(np.abs(w), np.abs(h))[1]
            unit = np.maximum(size, np.abs(col_sums))
            off = np.abs(cols - col_sums)[unit > 0.0] / unit[unit > 0.0]
            gaps = [np.abs(ones - 1.0).max(initial=0.0), off.max(initial=0.0)]
    gap = float(np.max(gaps))
    return gap if np.isfinite(gap) else np.inf
