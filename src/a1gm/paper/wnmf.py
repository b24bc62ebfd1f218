"""KL-WNMF: multiplicative updates with a mask, the paper's baseline."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from a1gm._base.types import Bools, Floats
from a1gm.paper._checks import (
    as_table,
    check_no_empty_line,
    check_not_negative,
    check_positive_int,
)

__all__ = ["kl_wnmf"]


def kl_wnmf(
    X: npt.ArrayLike,
    rank: int = 1,
    tol: float = 1e-4,
    max_iter: int = 200,
    random_state: int | np.random.Generator | None = None,
) -> tuple[Floats, Floats]:
    r"""Factorise by multiplicative updates, ignoring the missing cells.

    Parameters
    ----------
    X : array_like of shape (n_rows, n_columns)
        Non-negative table; NaN marks a missing cell.
    rank : int, default 1
        Number of factors.
    tol : float, default 1e-4
        Stop when one sweep lowers the error by less than ``tol`` times the error
        of the random start. The default is the paper's; with 0 the sweeps go on
        until rounding makes the error grow.
    max_iter : int, default 200
        Largest number of sweeps. The default is the paper's. Reaching it is no
        error and gives no warning, as in the paper.
    random_state : int, numpy.random.Generator or None, default None
        Seed of the start, which is uniform on (0, 1).

    Returns
    -------
    row_factors : ndarray of shape (n_rows, rank)
    col_factors : ndarray of shape (rank, n_columns)
        Their product approximates ``X``.

    Raises
    ------
    DataError
        If ``X`` is not a non-negative table, or has a row or a column without
        observed cell.
    ParameterError
        If an option is outside its range.

    Notes
    -----
    With :math:`Φ` the 0/1 table of observed cells, one sweep is

    .. math::
        V \leftarrow \frac{V}{U^\top Φ} \circ
            \Big(U^\top \frac{Φ \circ X}{U V}\Big), \qquad
        U \leftarrow \frac{U}{Φ V^\top} \circ
            \Big(\frac{Φ \circ X}{U V} V^\top\Big).

    The error is compared with that of the *start*, which is far away, so the
    default stopping rule can end long before the optimum. At rank 1 this is
    alternating scaling, and `a1gm.fit` returns its limit.

    Examples
    --------
    >>> import numpy as np
    >>> from a1gm import paper
    >>> X = np.array([[1.0, 2.0, 3.0], [2.0, np.nan, 6.0], [3.0, 6.0, np.nan]])
    >>> U, V = paper.kl_wnmf(X, tol=1e-12, random_state=0)
    >>> (U @ V).round(3)
    array([[1., 2., 3.],
           [2., 4., 6.],
           [3., 6., 9.]])
    """
    table = as_table(X)
    missing = np.isnan(table)
    check_no_empty_line(missing)
    check_positive_int(rank, "rank")
    check_positive_int(max_iter, "max_iter")
    check_not_negative(tol, "tol")
    rng = np.random.default_rng(random_state)
    n_rows, n_columns = table.shape
    U, V = rng.random((n_rows, rank)), rng.random((rank, n_columns))
    return _descend(table, missing, U, V, tol, max_iter)


def _descend(
    table: Floats, missing: Bools, U: Floats, V: Floats, tol: float, max_iter: int
) -> tuple[Floats, Floats]:
    """Sweep until the stopping rule of the authors' experiments holds."""
    weights = (~missing).astype(np.float64)
    data = np.where(missing, 0.0, table)
    first = previous = _error(data, weights, U @ V)
    for _ in range(max_iter):
        V = _update(V, U.T @ weights, U.T @ _ratio(data, U @ V))
        U = _update(U, weights @ V.T, _ratio(data, U @ V) @ V.T)
        error = _error(data, weights, U @ V)
        if previous - error < tol * first:
            break
        previous = error
    return U, V


def _error(data: Floats, weights: Floats, fitted: Floats) -> float:
    """Compute the divergence; as `kl_divergence`, without checks and copies."""
    # where the data are 0 the logarithm is of 1, so that 0 log 0 = 0
    ratio = np.divide(data, fitted, out=np.ones_like(data), where=data > 0)
    return float((data * np.log(ratio)).sum() + (weights * fitted - data).sum())


def _ratio(data: Floats, fitted: Floats) -> Floats:
    """Divide cell by cell; a cell fitted as exactly 0 is a zero of the data."""
    return np.divide(data, fitted, out=np.zeros_like(data), where=fitted > 0)


def _update(factor: Floats, weight: Floats, gradient: Floats) -> Floats:
    """Multiply a factor by its update; a factor that weighs nothing stays as is."""
    step = np.divide(gradient, weight, out=np.ones_like(factor), where=weight > 0)
    return np.asarray(factor * step)
