"""Two iterative baselines: the em-algorithm, and KL-WNMF (multiplicative updates)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from a1gm._base.types import Bools, Floats
from a1gm._base.warn import warn_user
from a1gm._base.words import counted
from a1gm.exceptions import ConvergenceWarning, DataError
from a1gm.paper._checks import as_table, check_not_negative, check_positive_int
from a1gm.paper.nmf import independence


def em(
    X: npt.ArrayLike, tol: float = 1e-10, max_iter: int = 10_000
) -> tuple[Floats, Floats]:
    """Find the best rank-1 table by filling the holes over and over.

    The e-step fills the holes with the current rank-1 table; the m-step replaces
    the table by the best rank-1 one of the filled table (`rank1_nmf`).

    Parameters
    ----------
    X : array_like of shape (n_rows, n_columns)
        Non-negative table; NaN marks a missing cell.
    tol : float, default 1e-10
        Stop when no filled cell moves by more than ``tol`` of itself.
    max_iter : int, default 10_000
        Largest number of repetitions.

    Returns
    -------
    w : ndarray of shape (n_rows,)
    h : ndarray of shape (n_columns,)
        ``np.outer(w, h)`` is the rank-1 table; both factors have the same sum.

    Raises
    ------
    DataError
        If ``X`` is not a non-negative table, or has a row or a column without
        observed cell.
    ParameterError
        If an option is outside its range.

    Warns
    -----
    ConvergenceWarning
        If ``max_iter`` repetitions are not enough.

    See Also
    --------
    a1gm.fit : the limit of this iteration, exact and much sooner.

    Notes
    -----
    The holes start at the mean of the observed cells. The error shrinks by a
    constant factor each time, the closer to 1 the more cells are missing.

    Examples
    --------
    >>> import numpy as np
    >>> from a1gm import paper
    >>> X = np.array([[1.0, 2.0, 3.0], [2.0, np.nan, 6.0], [3.0, 6.0, np.nan]])
    >>> w, h = paper.em(X)
    >>> np.outer(w, h).round(6)
    array([[1., 2., 3.],
           [2., 4., 6.],
           [3., 6., 9.]])
    """
    table, missing = _checked(X, tol, max_iter)
    rows, columns = np.nonzero(missing)
    filled = np.where(missing, table[~missing].mean(), table)
    for _ in range(max_iter):
        w, h = independence(filled)
        before, after = filled[rows, columns], w[rows] * h[columns]
        filled[rows, columns] = after
        if (abs(after - before) <= tol * after).all():
            return w, h
    warn_user(
        f"em stopped after {counted(max_iter, 'repetition')} before the filled cells "
        f"settled to {tol:g}. Raise max_iter, or use a1gm.fit, which is exact.",
        ConvergenceWarning,
    )
    return w, h


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
    With ``M`` the 0/1 table of observed cells, one sweep is::

        V = V / (U.T @ M) * (U.T @ (M * X / (U @ V)))
        U = U / (M @ V.T) * ((M * X / (U @ V)) @ V.T)

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
    table, missing = _checked(X, tol, max_iter)
    check_positive_int(rank, "rank")
    rng = np.random.default_rng(random_state)
    U, V = rng.random((table.shape[0], rank)), rng.random((rank, table.shape[1]))
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


def _checked(X: npt.ArrayLike, tol: float, max_iter: int) -> tuple[Floats, Bools]:
    """Validate a table and the options; return it with its missing cells."""
    table = as_table(X)
    missing = np.isnan(table)
    for axis, line in ((1, "row"), (0, "column")):
        empty = missing.all(axis=axis)
        if empty.any():  # nothing determines its factor
            raise DataError(
                f"X has no observed cell in {line} {int(np.argmax(empty))} "
                f"({empty.sum()} in all). Drop it, or use a1gm.fit, which leaves "
                "its factor NaN."
            )
    check_not_negative(tol, "tol")
    check_positive_int(max_iter, "max_iter")
    return table, missing
