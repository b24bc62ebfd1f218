"""The proof of optimality: the fitted table has the margins of the data."""

from __future__ import annotations

import numpy as np

from a1gm._base.float_range import product
from a1gm._base.types import Floats
from a1gm._observe.patterns import Patterns, weighted_counts
from a1gm._solve.factors import Factors, relative_gap


def margin_mismatch(factors: Factors, patterns: Patterns) -> float:
    """Largest relative mismatch of a row or column sum, over the observed cells.

    Cells between components count as fitted by 0.
    """
    h = np.nan_to_num(factors.col_factor)
    w = np.nan_to_num(factors.pattern_factor)
    inside = _inside(factors, patterns)
    with np.errstate(all="ignore"):  # what leaves the range misses its margin
        rows, cols = inside.margins(w, h)
    sums = patterns.row_sums, patterns.col_sums
    if min(sums[0].min(initial=0.0), sums[1].min(initial=0.0), h.min()) < 0.0:
        return _signed_mismatch(factors, patterns, inside, cols)
    if not (np.isfinite(rows).all() and np.isfinite(cols).all()):
        rows, cols = _margins_by_cells(inside, w, h)
    gap = np.max([relative_gap(rows, sums[0]), relative_gap(cols, sums[1])])
    return float(gap) if np.isfinite(gap) else np.inf


def _margins_by_cells(
    patterns: Patterns, w: Floats, h: Floats
) -> tuple[Floats, Floats]:
    """Margins of the fitted cells where factors times weights leave float64."""
    from scipy.sparse import csr_array

    rows, cols = np.zeros(patterns.n_patterns), np.zeros(patterns.n_cols)
    for some, weights in patterns.matrices():
        P = csr_array(weights)
        i = np.repeat(np.arange(P.shape[0]), np.diff(P.indptr))
        cells = product(w[some][i], P.data, h[P.indices])
        with np.errstate(over="ignore"):
            rows[some] = weighted_counts(i, cells, P.shape[0])
            cols += weighted_counts(P.indices, cells, len(cols))
    return rows, cols


def _inside(factors: Factors, patterns: Patterns) -> Patterns:
    """Cells inside their components."""
    labels = factors.pattern_block, factors.col_block
    if labels[0].max(initial=0) == 0 == labels[1].max(initial=0):
        return patterns  # what is in no block has factor 0
    return patterns.inside(*labels)


def _signed_mismatch(
    factors: Factors, statistics: Patterns, inside: Patterns, cols: Floats
) -> float:
    """Compare margins of either sign: ``cols`` are those of the fitted columns.

    A row of sum 1 stands for all rows of its pattern. Columns are compared in units of
    their cells where these cancel.
    """
    w, h, scale = (
        np.nan_to_num(x)
        for x in (factors.pattern_factor, factors.col_factor, factors.pattern_scale)
    )
    with np.errstate(all="ignore"):
        ones = inside.margins(scale, h)[0]
        size = inside.margins(np.abs(w), np.abs(h))[1]
        unit = np.maximum(size, np.abs(statistics.col_sums))
        off = np.abs(cols - statistics.col_sums)[unit > 0.0] / unit[unit > 0.0]
    has_data = (statistics.row_sums != 0.0) | (scale != 0.0)
    found = np.append(np.abs(ones - 1.0)[has_data], off).max(initial=0.0)
    return float(found) if np.isfinite(found) else np.inf
