"""Fits with cell weights.

The weighted cost has the same form with a matrix of weights P in place of the 0/1
mask: w_i (P h)_i = sum_j P_ij X_ij. When the weights are a product a_i b_j on the
observed cells, w' = a w and h' = b h make it the unweighted problem; otherwise rows and
columns with proportional weights are twins, and the core keeps its weights.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from a1gm._input import Source, read_input
from a1gm._labels import check_same_labels
from a1gm._observe import Observation, observe
from a1gm._statistics import PairStatistics
from a1gm._types import Floats, SmallInts
from a1gm.exceptions import WeightsError

__all__ = ["observe_weighted"]

SAFE_BITS = 900  # powers of two within which no sum or product leaves the floats
DIGITS = 44  # bits of a weight's mantissa that count when rows are grouped


def observe_weighted(source: Source, weights: Any) -> tuple[Observation, Floats]:
    """Observe a table whose cells have weights; 0 means that a cell is ignored."""
    V = read_weights(weights, source)
    X = np.where(V > 0.0, source.rows(slice(0, source.n_rows)), np.nan)
    observe(replace(source, parts=[(X, None, None, 0, 0)]))  # no bad cell that counts
    return _observe_weighted(X, V), V


def read_weights(weights: Any, source: Source) -> Floats:
    """Check that the weights are non-negative numbers, one per cell."""
    given = read_input(weights, name="weights")
    if (given.n_rows, given.n_cols) != (source.n_rows, source.n_cols):
        msg = (
            f"weights have shape ({given.n_rows}, {given.n_cols}), but X has shape "
            f"({source.n_rows}, {source.n_cols}). Give one weight per cell."
        )
        raise WeightsError(msg)
    check_same_labels("row", given.row_labels, source.row_labels, "weights", "X")
    check_same_labels("column", given.col_labels, source.col_labels, "weights", "X")
    V: Floats = given.rows(slice(0, given.n_rows))
    faults = {"NaN": np.isnan(V), "infinite": np.isinf(V), "negative": V < 0.0}
    for what, bad in faults.items():
        if bad.any():
            row, col = divmod(int(bad.argmax()), V.shape[1])
            msg = (
                f"weights[{row}, {col}] = {V[row, col]} is {what} "
                f"({int(bad.sum())} in all). Weights must be finite and >= 0; use 0 "
                "for a cell to be ignored."
            )
            raise WeightsError(msg)
    if not V.any():
        msg = "All weights are zero: nothing is left to fit."
        raise WeightsError(msg)
    return V


def _observe_weighted(X: Floats, V: Floats) -> Observation:
    """Pairs of (group of rows with proportional weights, column)."""
    X, V, exponent = _in_range(X, V)
    used = np.where(np.isnan(X), 0.0, V)
    group, base = _group_proportional_rows(used)
    sums = np.where(used > 0.0, used * np.nan_to_num(X), 0.0)
    row_sums = sums.sum(axis=1)
    n_groups = int(group.max()) + 1
    first = np.unique(group, return_index=True)[1]
    block_sums = np.zeros((n_groups, X.shape[1]))
    np.add.at(block_sums, group, sums)
    weights = used[first]
    lines, cols = np.nonzero(weights)
    counts = np.bincount(lines, minlength=n_groups)
    statistics = PairStatistics(
        np.concatenate(([0], np.cumsum(counts))),
        cols.astype(np.int32),
        block_sums[lines, cols],
        weights[lines, cols],
        X.shape[1],
    )
    # A row's weights are `ratio` times those of its group's first row.
    ratio = base / base[first][group]
    return Observation(row_sums / ratio, group, statistics, exponent, 0)


def _in_range(X: Floats, V: Floats) -> tuple[Floats, Floats, int]:
    """Data times 2**-exponent and weights on a scale where products stay finite."""
    of_data = int(np.frexp(np.nan_to_num(X).max())[1])
    of_weights = int(np.frexp(V.max())[1])
    if max(abs(of_data), abs(of_weights), abs(of_data + of_weights)) < SAFE_BITS:
        return X, V, 0
    return np.ldexp(X, -of_data), np.ldexp(V, -of_weights), of_data


def _group_proportional_rows(used: Floats) -> tuple[SmallInts, Floats]:
    """Group of each row, rows with proportional weights together, and its scale."""
    largest = used.max(axis=1)
    base = np.where(largest > 0.0, largest, 1.0)
    mantissa, exponent = np.frexp(used / base[:, None])
    shape = np.ldexp(np.round(np.ldexp(mantissa, DIGITS)), exponent - DIGITS)
    _, first, group = np.unique(shape, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))  # groups in order of their first row
    return order[group.ravel()].astype(np.int32), base
