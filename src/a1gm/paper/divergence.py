"""The Kullback-Leibler divergence of a table with missing cells."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from a1gm.exceptions import DimensionError
from a1gm.paper._checks import as_floats, as_table

__all__ = ["kl_divergence"]


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
    DimensionError
        If the two shapes differ.

    Notes
    -----
    .. math:: D(X, R) = \sum_{(i,j)\ \text{observed}}
              X_{ij} \log\frac{X_{ij}}{R_{ij}} - X_{ij} + R_{ij}

    with ``0 log 0 = 0``: a zero cell costs ``R_ij``.

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
        raise DimensionError(
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
