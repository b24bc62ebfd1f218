"""The em-algorithm: fill the holes, project to rank 1, repeat."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from a1gm._base.types import Floats
from a1gm._base.warn import warn_user
from a1gm._base.words import counted
from a1gm.exceptions import ConvergenceWarning
from a1gm.paper._checks import (
    as_table,
    check_no_empty_line,
    check_not_negative,
    check_positive_int,
)
from a1gm.paper.nmf import independence

__all__ = ["em"]


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
    table = as_table(X)
    missing = np.isnan(table)
    check_no_empty_line(missing)
    check_not_negative(tol, "tol")
    check_positive_int(max_iter, "max_iter")
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
