"""The sums of the first pass from which the scatter of the cells follows.

With them a fit that does not keep its data has its dispersion and its divergence
without a second look: sums of ``x² / r`` by pattern and column (r is the row's sum),
the divergence of the rows from their own means, and the sum of ``r log r``.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from a1gm._base.types import Floats
from a1gm._kernel import kernel, threads_for
from a1gm._observe.observation import Observation
from a1gm._observe.statistics import PatternStatistics
from a1gm._rows.rows import Rows


def with_scatter(
    source: Rows, seen: Observation, n_threads: int | None = None
) -> Observation:
    """Add the sums to the pattern statistics of a piece; not where float64 has none.

    A row with negative cells may sum to zero or less: then there are none, either.
    """
    table = seen.statistics
    if not isinstance(table, PatternStatistics) or seen.line_of_row is None:
        return seen
    squares, of_cells = np.zeros(table.sums.shape), 0.0
    ones, scale = np.ones(table.n_cols), math.ldexp(1.0, -seen.exponent)
    lines = seen.line_of_row.astype(np.int32, copy=False)
    for first, piece in source.pieces():
        rows = slice(first, first + piece.n_rows)
        threads = threads_for(piece.n_rows * piece.n_cols, n_threads)
        squares += kernel.square_sums(
            piece.parts, seen.row_sums[rows], lines[rows], table.n_lines, scale, threads
        )
        # Factors of 1 fit every row by its mean.
        found = kernel.divergence(piece.parts, ones, threads)
        of_cells += math.nan if found is None else found[0]
    logs = np.array([of_cells * scale, _sum_of_logs(seen.row_sums, seen.exponent)])
    if seen.n_negative:
        logs[:] = 0.0  # there is no divergence
    if not (np.isfinite(squares).all() and np.isfinite(logs).all()):
        return seen
    return replace(seen, statistics=replace(table, squares=squares, logs=logs))


def _sum_of_logs(row_sums: Floats, exponent: int) -> float:
    """Sum of r log r; r counts on the scale of the sums, its logarithm in the data."""
    from scipy.special import xlogy

    of_scale = exponent * math.log(2.0) * row_sums.sum()
    return float(xlogy(row_sums, row_sums).sum() + of_scale)
