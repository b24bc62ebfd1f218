"""What a user would pick instead of a1gm.fit, one small adapter each.

An adapter has a ``NAME`` and ``solve(X)``, which returns the rank-1 table (only its
observed cells are read) or raises `NotApplicableError`. It imports its package inside
``solve``, so that a package that is not installed is skipped.
"""

from __future__ import annotations

import numpy as np


class NotApplicableError(Exception):
    """The rival cannot treat this table; the message says why."""


def margins(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the 0/1 table of observed cells and the sums of rows and columns."""
    observed = ~np.isnan(X)
    data = np.where(observed, X, 0.0)
    return observed.astype(np.float64), data.sum(axis=1), data.sum(axis=0)


def long_format(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return value, row and column of every observed cell."""
    rows, columns = np.nonzero(~np.isnan(X))
    return X[rows, columns], rows, columns


def from_long(values: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Put fitted values back into the observed cells."""
    R = np.full(X.shape, np.nan)
    R[~np.isnan(X)] = values
    return R
