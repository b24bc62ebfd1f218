"""Rows are filled as the whole table would be."""

import numpy as np
import pytest

import a1gm
from a1gm._result.fill_rows import RowRule

nan = np.nan
BLOCKS = np.array([[1.0, 2, nan], [2, nan, nan], [nan, nan, 3], [nan, nan, nan]])
pytestmark = pytest.mark.filterwarnings("ignore::a1gm.exceptions.A1gmWarning")


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.poisson(5, (30, 6)).astype(float)
    X[rng.random(X.shape) < 0.3] = nan
    return X


def test_rows_of_the_fitted_table(table):
    fit = a1gm.fit(table)
    rule, expected = RowRule.of(fit), fit.impute(table)
    for start in (0, 10, 29):
        rows = table[start : start + 10]
        before = rows.copy()
        filled = rule.fill(rows, fit.row_factor[start : start + 10])
        np.testing.assert_array_equal(filled, expected[start : start + 10])
        np.testing.assert_array_equal(rows, before)


@pytest.mark.parametrize("name", ["table", "blocks"])
def test_rows_of_a_fit_that_did_not_keep_them(table, name):
    X = BLOCKS if name == "blocks" else table
    statistics = a1gm.PatternTable(keep_rows=False)
    for start in range(0, len(X), 7):
        statistics.update(X[start : start + 7])
    filled = RowRule.of(statistics.solve()).fill(X)
    np.testing.assert_allclose(filled, a1gm.fit(X).impute(X), rtol=1e-9)


def test_new_rows_are_placed_by_their_own_cells():
    rule = RowRule.of(a1gm.fit(BLOCKS))
    new = np.array([[nan, 10, nan], [nan, nan, 7], [5, nan, 1], [nan, nan, nan]])
    filled = rule.fill(new)
    np.testing.assert_allclose(filled[0], [5, 10, nan])
    np.testing.assert_allclose(filled[1], [nan, nan, 7])
    # Both blocks at once: nothing says how they compare.
    np.testing.assert_allclose(filled[2], [5, nan, 1])
    assert np.isnan(filled[3]).all()


@pytest.mark.parametrize(
    "X",
    [
        [[10, 5, 1, nan], [20, -1, nan, nan], [30, 14, nan, nan], [nan, nan, nan, 2]],
        [[10, 5, 0], [20, -1, 0], [0, nan, nan]],
    ],
)
def test_negative_cells_tie_rows_to_columns(X):
    X = np.array(X, float)
    fit = a1gm.fit(X, negatives="allow")
    filled = RowRule.of(fit).fill(X, fit.row_factor)
    np.testing.assert_allclose(filled, fit.impute(X))
