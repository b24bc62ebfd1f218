"""The divergence is its definition, safe at zero."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from support import oracles
from support.tables import quiet, tables

import a1gm
from a1gm._fit.residuals import divergence_of_cells
from a1gm.exceptions import NegativeValuesError

nan = np.nan
pytestmark = quiet


def test_one_cell_by_hand():
    x, fitted = np.array([3.0, 0.0, 0.0, 2.0]), np.array([2.0, 4.0, 0.0, 2.0])
    expected = [3.0 * np.log(1.5) - 1.0, 4.0, 0.0, 0.0]
    np.testing.assert_allclose(divergence_of_cells(x, fitted), expected, atol=1e-15)
    assert divergence_of_cells(np.array([1.0]), np.array([0.0]))[0] == np.inf


@given(tables(max_rows=20, max_cols=9, zeros=0.3))
def test_the_divergence_of_a_fit(X):
    fit = a1gm.fit(X)
    expected = oracles.divergence(X, oracles.fitted_cells(X, fit))
    assert fit.divergence == pytest.approx(expected, rel=1e-10, abs=1e-12)
    assert fit.divergence_of(X) == pytest.approx(expected, rel=1e-10, abs=1e-12)
    assert fit.divergence >= 0.0


def test_cells_that_span_the_range_have_a_divergence():
    X = np.array([[1.0, 1e-30], [1.0, 4.9e-324], [1e-310, 1e100], [1e100, 1e-310]])
    X = np.column_stack([[1e100, 9e139, 1e-100, np.nan], X])
    assert np.isfinite(a1gm.fit(X).divergence)


def test_blocks_of_rows_add_up():
    rng = np.random.default_rng(1)
    X = rng.uniform(0.0, 1.0, (70_000, 5))  # more than one block
    X[rng.random(X.shape) < 0.1] = nan
    fit = a1gm.fit(X)
    expected = oracles.divergence(X, np.outer(fit.row_factor, fit.col_factor))
    assert fit.divergence == pytest.approx(expected, rel=1e-11)


def test_weights_count_cells_as_often_as_they_say():
    X = np.array([[1.0, 2.0, 3.0], [2.0, nan, 5.0], [4.0, 4.0, 4.0]])
    V = np.array([[1.0, 2.0, 1.0], [1.0, 1.0, 0.0], [3.0, 1.0, 2.0]])
    fit = a1gm.fit(X, weights=V)
    fitted = np.outer(fit.row_factor, fit.col_factor)
    used = ~np.isnan(X) & (V > 0)
    cells = divergence_of_cells(X[used], fitted[used])
    assert fit.divergence == pytest.approx(float(cells @ V[used]), rel=1e-12)


def test_of_other_rows_is_theirs():
    fit = a1gm.fit(np.array([[1.0, 3.0], [2.0, 6.0]]))
    assert fit.divergence_of(np.array([[10.0, 30.0]])) == pytest.approx(0.0, abs=1e-12)
    expected = 4 * np.log(4 / 1.5) - 4 + 1.5 + 2 * np.log(2 / 4.5) - 2 + 4.5
    assert fit.divergence_of(np.array([[4.0, 2.0]])) == pytest.approx(expected)


def test_a_bad_cell_of_new_rows_is_named():
    fit = a1gm.fit(np.ones((5, 3)))
    X = pd.DataFrame(np.ones((4, 3)), columns=[*"abc"], index=[*"rstu"])
    X.loc["u", "b"] = -3.0
    for asked in (fit.divergence_of, fit.residuals):
        with pytest.raises(NegativeValuesError, match=r"X\['u', 'b'\] = -3"):
            asked(X)
