"""The best rank-1 table of a complete table."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from a1gm._base.types import Floats
from a1gm.exceptions import DimensionError
from a1gm.paper._checks import as_complete_table

__all__ = ["rank1_nmf"]


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
    .. math:: w_i = \frac{\sum_j X_{ij}}{\sqrt{S(X)}}, \qquad
              h_j = \frac{\sum_i X_{ij}}{\sqrt{S(X)}}

    with :math:`S(X)` the sum of all cells: the table of independence.

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
    table = as_complete_table(X)
    if table.size == 0:
        raise DimensionError(f"X is empty: its shape is {table.shape}.")
    return independence(table)


def independence(table: Floats) -> tuple[Floats, Floats]:
    """Compute the formula of `rank1_nmf` without checks."""
    root = np.sqrt(table.sum())
    if root == 0:
        return np.zeros(table.shape[0]), np.zeros(table.shape[1])
    return table.sum(axis=1) / root, table.sum(axis=0) / root
