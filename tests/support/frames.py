"""One table of random numbers as frames of every library."""

import numpy as np
import pandas as pd
import polars as pl

RTOL = 1e-9  # two ways to the same optimum, both certified to 1e-10


def holed_table(n=60, m=6, share=0.2, seed=0):
    """A table with holes; its first row and column are complete."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=(n, m)) * rng.uniform(0.5, 2.0, size=m)
    X[rng.random(X.shape) < share] = np.nan
    X[0], X[:, 0] = 1.0, 1.0
    return X


def names(m=6):
    return [f"c{j}" for j in range(m)]


def as_pandas(X):
    return pd.DataFrame(X, columns=names(X.shape[1]))


def as_polars(X):
    return pl.DataFrame(X, schema=names(X.shape[1]))


def as_nulls(X):
    return as_polars(X).fill_nan(None)


def assert_same_fit(found, expected, rtol=RTOL):
    """Two fits of one table."""
    np.testing.assert_allclose(found.row_factor, expected.row_factor, rtol=rtol)
    np.testing.assert_allclose(found.col_factor, expected.col_factor, rtol=rtol)
    np.testing.assert_allclose(found.divergence, expected.divergence, rtol=rtol)
    assert found.row_factor.dtype == found.col_factor.dtype == np.float64
