"""What is said of unknown cells is what is left missing, in every table."""

import warnings

import numpy as np
import pytest

import a1gm

WEIGHTS = [(1.0, 1.0), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (0.5, 3.0)]


def made(rng):
    """Three small tables with many zeros and holes, none of them empty."""
    n_rows, n_cols, n_y, n_z = rng.integers(1, 7, 4)
    holes, zeros = rng.random(2)
    tables = []
    for shape in ((n_rows, n_cols), (n_y, n_cols), (n_rows, n_z)):
        T = np.where(rng.random(shape) < zeros, 0.0, 1.0 + rng.poisson(2, shape))
        T[rng.random(shape) < holes] = np.nan
        T.flat[rng.integers(T.size)] = 1.0
        tables.append(T)
    return tables


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_counts_lists_and_filled_tables_agree(weights):
    rng = np.random.default_rng(7)
    alpha, beta = weights
    for _ in range(40):
        tables = made(rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = a1gm.fit_nmmf(*tables, alpha=alpha, beta=beta)
            filled = fit.impute(*tables)
        n_left = 0
        for name, T, F, R in zip("XYZ", tables, filled, fit.reconstruct(), strict=True):
            left = np.argwhere(np.isnan(F))
            assert (np.isnan(F) == (np.isnan(T) & np.isnan(R))).all()
            found = fit.undetermined[name]
            np.testing.assert_array_equal(np.stack([found.row, found.column], 1), left)
            n_left += len(left)
        assert fit.n_undetermined == n_left
