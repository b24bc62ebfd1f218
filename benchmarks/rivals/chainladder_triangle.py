"""chainladder: the actuaries' method, for run-off triangles only."""

import warnings

import numpy as np

from rivals import NotApplicableError

NAME = "chainladder"
FIRST_YEAR = 2001


def solve(X: np.ndarray) -> np.ndarray:
    import chainladder as cl

    if not _is_triangle(X):
        raise NotApplicableError("run-off triangles only")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cumulative = cl.Triangle(
            _frame(X),
            origin="origin",
            development="paid",
            columns="value",
            cumulative=False,
        ).incr_to_cum()
        model = cl.Chainladder().fit(cl.Development().fit_transform(cumulative))
        ultimate = model.ultimate_.values[0, 0, :, -1]
        to_ultimate = np.append(model.cdf_.values[0, 0, 0], 1.0)[: X.shape[1]]
    return np.outer(ultimate, np.diff(1 / to_ultimate, prepend=0.0))


def _is_triangle(X: np.ndarray) -> bool:
    n = X.shape[0]
    triangle = np.add.outer(np.arange(n), np.arange(n)) >= n
    return X.shape == (n, n) and np.array_equal(np.isnan(X), triangle)


def _frame(X: np.ndarray):
    import pandas as pd

    rows, columns = np.nonzero(~np.isnan(X))
    origin = FIRST_YEAR + rows
    return pd.DataFrame(
        {
            "origin": pd.to_datetime(origin, format="%Y"),
            "paid": pd.to_datetime(origin + columns, format="%Y"),
            "value": X[rows, columns],
        }
    )
