"""The paper's preparation of its real data sets."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from a1gm._base.types import Floats
from a1gm.exceptions import DimensionError, InfiniteValuesError
from a1gm.paper._checks import as_floats

__all__ = ["prepare"]


def prepare(X: npt.ArrayLike) -> Floats:
    """Make a table positive in the way the paper's experiments do.

    Needed only to reproduce the paper: `a1gm.fit` accepts zeros as they are, and
    refuses negative cells rather than to change their meaning.

    Parameters
    ----------
    X : array_like of shape (n_rows, n_columns)
        Any real numbers; NaN marks a missing cell.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        A new table: absolute values, each zero replaced by the mean of the whole
        table of absolute values, in which a missing cell counts as 1. Missing
        cells stay missing.

    Raises
    ------
    DataError
        If ``X`` is empty, not 2-D, not numeric, or has an infinite cell.

    Examples
    --------
    >>> import numpy as np
    >>> from a1gm import paper
    >>> paper.prepare([[0.0, -2.0], [5.0, np.nan]])
    array([[ 2.,  2.],
           [ 5., nan]])
    """
    table = as_floats(X, "X")
    if table.size == 0:
        raise DimensionError(f"X is empty: its shape is {table.shape}.")
    if np.isinf(table).any():
        raise InfiniteValuesError("X holds an infinite cell. Mark it as NaN.")
    positive = np.abs(table)
    mean = np.where(np.isnan(positive), 1.0, positive).mean()
    return np.where(positive == 0, mean, positive)
