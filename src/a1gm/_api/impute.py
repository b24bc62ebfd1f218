"""``a1gm.impute``: fit and fill in one call."""

from __future__ import annotations

from typing import Any

from a1gm._api.fit import fit


def impute(X: Any, *, weights: Any = None, exposure: Any = None, **options: Any) -> Any:
    """Fill the missing cells of a table with its best rank-1 explanation.

    Parameters
    ----------
    X : table of shape (n_rows, n_cols)
        Non-negative numbers; NaN (or the container's own mark) is a missing cell. The
        input is never modified.
    weights : array or sparse table of shape (n_rows, n_cols), optional
        Non-negative weight of each cell; 0 means that the cell is ignored.
    exposure : array or sparse table of shape (n_rows, n_cols), optional
        How much there was to count in each cell, as in ``a1gm.fit``.
    **options
        As in ``a1gm.fit``.

    Returns
    -------
    table
        A copy of X, of the same kind, with its missing cells filled. Cells that the
        data do not determine stay missing, with a warning.

    Examples
    --------
    >>> import numpy as np, a1gm
    >>> a1gm.impute(np.array([[1.0, 2.0, 3.0], [2.0, np.nan, 6.0]]))
    array([[1., 2., 3.],
           [2., 4., 6.]])
    """
    fitted = fit(X, weights=weights, exposure=exposure, **options)
    return fitted._fill(X, fitted._table.source, fitted._columns)  # read once
