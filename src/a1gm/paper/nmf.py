"""The best rank-1 table of a complete table, and the error."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from a1gm._base.types import Floats
from a1gm.exceptions import DataError
from a1gm.paper._checks import as_complete_table, as_floats, as_table


def rank1_nmf(X: npt.ArrayLike) -> tuple[Floats, Floats]:
    r"""Find the rank-1 table nearest to a complete table.

    Parameters
    ----------
    X : array_like of shape (n_rows, n_columns)
        Non-negative, no missing cell.

    Returns
    -------
    w : ndarray of shape (n_rows,)
    h : ndarray of shape (n_columns,)
        ``np.outer(w, h)`` minimises the Kullback-Leibler divergence from ``X``.
        Both sum to the same number, the square root of the sum of ``X``.

    Raises
    ------
    DataError
        If ``X`` has a missing, negative or infinite cell; use `a1gm.fit` when
        cells are missing.

    Notes
    -----
    With ``S`` the sum of all cells, this is the table of independence::

        w_i = sum_j X_ij / sqrt(S),    h_j = sum_i X_ij / sqrt(S)

    References
    ----------
    Ho & Van Dooren (2008), Non-negative matrix factorization with fixed row and
    column sums, Linear Algebra and its Applications 429.

    Examples
    --------
    >>> from a1gm import paper
    >>> w, h = paper.rank1_nmf([[1.0, 2.0], [3.0, 3.0]])
    >>> w, h
    (array([1., 2.]), array([1.33333333, 1.66666667]))
    """
    return independence(as_complete_table(X))


def independence(table: Floats) -> tuple[Floats, Floats]:
    """Compute the formula of `rank1_nmf` without checks."""
    root = np.sqrt(table.sum())
    if root == 0:
        return np.zeros(table.shape[0]), np.zeros(table.shape[1])
    return table.sum(axis=1) / root, table.sum(axis=0) / root


def kl_divergence(X: npt.ArrayLike, R: npt.ArrayLike) -> float:
    r"""Measure how far a reconstruction is from the observed cells.

    Parameters
    ----------
    X : array_like of shape (n_rows, n_columns)
        Non-negative table; NaN marks a missing cell, which does not count.
    R : array_like of the same shape
        Reconstruction, for example ``np.outer(w, h)``.

    Returns
    -------
    float
        0 when ``R`` equals ``X`` on every observed cell, else positive;
        infinite when ``R`` is 0 on a cell where ``X`` is not.

    Raises
    ------
    DataError
        If ``X`` is not a non-negative table.
    DataError
        If the two shapes differ.

    Notes
    -----
    The sum over the observed cells of ``X_ij log(X_ij / R_ij) - X_ij + R_ij``, with
    ``0 log 0 = 0``: a zero cell costs ``R_ij``.

    Examples
    --------
    >>> import numpy as np
    >>> from a1gm import paper
    >>> X = np.array([[1.0, 2.0], [3.0, np.nan]])
    >>> paper.kl_divergence(X, [[1.0, 2.0], [3.0, 6.0]])
    0.0
    >>> round(paper.kl_divergence(X, [[2.0, 2.0], [3.0, 6.0]]), 4)
    0.3069
    """
    table, fitted = as_table(X), as_floats(R, "R")
    if table.shape != fitted.shape:
        raise DataError(
            f"X has shape {table.shape} and R has shape {fitted.shape}; they must be "
            "equal."
        )
    observed = ~np.isnan(table)
    x, r = table[observed], fitted[observed]
    positive = x > 0
    # a reconstruction of 0 below a positive cell costs infinitely much: no warning
    with np.errstate(divide="ignore"):
        logs = x[positive] * np.log(x[positive] / r[positive])
    return float(logs.sum() + (r - x).sum())
