"""Rows are filled as the whole table would be."""

import numpy as np
import pytest

import a1gm
from a1gm.io.row_fill import fill_kept_rows, fill_new_rows, row_fill_of

nan = np.nan
BLOCKS = np.array([[1.0, 2, nan], [2, nan, nan], [nan, nan, 3], [nan, nan, nan]])


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.poisson(5, (30, 6)).astype(float)
    X[rng.random(X.shape) < 0.3] = nan
    return X


def streamed(X):
    statistics = a1gm.PatternTable(keep_rows=False)
    for start in range(0, len(X), 7):
        statistics.update(X[start : start + 7])
    return statistics.solve()


def test_kept_rows(table):
    fit = a1gm.fit(table)
    expected = fit.impute(table)
    for start in (0, 10, 29):
        rows = table[start : start + 10]
        before = rows.copy()
        np.testing.assert_array_equal(
            fill_kept_rows(fit, start, rows), expected[start : start + 10]
        )
        np.testing.assert_array_equal(rows, before)


def test_rows_of_a_streamed_fit(table):
    fill = row_fill_of(streamed(table))
    expected = a1gm.fit(table).impute(table)
    np.testing.assert_allclose(fill(0, table), expected, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::a1gm.exceptions.A1gmWarning")
def test_what_cannot_be_known_needs_the_rows():
    assert row_fill_of(streamed(BLOCKS)) is None
    fit = a1gm.fit(BLOCKS)
    filled = row_fill_of(fit)(0, BLOCKS)
    np.testing.assert_array_equal(filled, fit.impute(BLOCKS))
    np.testing.assert_allclose(filled[1, 1], 4)
    assert np.isnan(filled[1, 2])


@pytest.mark.filterwarnings("ignore::a1gm.exceptions.A1gmWarning")
def test_new_rows_are_placed_by_their_own_cells():
    fit = a1gm.fit(BLOCKS)
    new = np.array([[nan, 10, nan], [nan, nan, 7], [5, nan, 1], [nan, nan, nan]])
    filled = fill_new_rows(fit, new)
    np.testing.assert_allclose(filled[0], [5, 10, nan])
    np.testing.assert_allclose(filled[1], [nan, nan, 7])
    # Both blocks at once: nothing says how they compare.
    np.testing.assert_allclose(filled[2], [5, nan, 1])
    assert np.isnan(filled[3]).all()
