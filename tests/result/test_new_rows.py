"""Row factors of any rows, for the column factors of a fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from support.tables import tables

import a1gm
from a1gm._sources import read_input
from a1gm._result.new_rows import row_factors
from a1gm.exceptions import NotRepresentableError

nan = np.nan


@pytest.mark.filterwarnings("ignore::a1gm.exceptions.UndeterminedWarning")
@pytest.mark.filterwarnings("ignore::a1gm.exceptions.EmptyLineWarning")
@given(tables(max_rows=12))
def test_the_rows_of_the_fit_get_their_own_factors(X):
    fit = a1gm.fit(X)
    assume(fit.n_blocks == 1)
    np.testing.assert_allclose(fit.transform(X), fit.row_factor, rtol=1e-8)


def test_the_formula():
    h = np.array([0.2, 0.3, 0.5])
    X = np.array([[1.0, 2.0, 3.0], [1.0, nan, 3.0], [nan, nan, 4.0], [0.0, nan, 0.0]])
    np.testing.assert_allclose(
        row_factors(read_input(X), h), [6.0, 4.0 / 0.7, 8.0, 0.0]
    )


def test_each_row_minimises_its_own_divergence():
    rng = np.random.default_rng(1)
    h = rng.dirichlet(np.ones(6))
    X = rng.uniform(0.0, 2.0, (5, 6))
    X[rng.random(X.shape) < 0.3] = nan
    w = row_factors(read_input(X), h)

    def cost(row: np.ndarray, factor: float) -> float:
        seen = ~np.isnan(row)
        fitted = factor * h[seen]
        return float((fitted - row[seen] * np.log(fitted)).sum())

    for row, best in zip(X, w, strict=True):
        assert cost(row, best) < min(cost(row, best * f) for f in (0.99, 1.01))


def test_rows_that_cannot_be_known():
    h = np.array([0.0, nan, 1.0])
    X = np.array([[0.0, nan, nan], [2.0, nan, nan], [nan, 5.0, nan], [nan, nan, nan]])
    got = row_factors(read_input(X), h)
    assert got[0] == 0.0  # zeros are fitted by zero
    assert np.isnan(got[1:]).all()  # 2 / 0, an unknown column, nothing


def test_columns_without_a_factor_are_left_out():
    h = np.array([0.5, nan, 0.5])
    X = np.array([[1.0, 7.0, 1.0]])
    np.testing.assert_allclose(row_factors(read_input(X), h), [2.0])


def test_many_rows_come_in_blocks():
    rng = np.random.default_rng(2)
    X = rng.uniform(1.0, 2.0, (100_000, 3))
    fit = a1gm.fit(X)
    np.testing.assert_allclose(fit.transform(X), fit.row_factor, rtol=1e-12)


def test_another_number_of_columns_is_refused():
    fit = a1gm.fit(np.ones((2, 3)))
    with pytest.raises(a1gm.exceptions.DimensionError, match="2 columns"):
        fit.transform(np.ones((2, 2)))


def test_bad_cells_are_refused_with_their_place():
    fit = a1gm.fit(np.ones((2, 3)))
    X = np.ones((60_000, 3))
    X[55_555, 1] = -1.0
    with pytest.raises(a1gm.exceptions.NegativeValuesError, match=r"X\[55555, 1\]"):
        fit.transform(X)


def test_a_fit_that_allowed_negatives_allows_them_in_transform():
    X = np.array([[100.0, 50.0, 8.0], [110.0, -4.0, np.nan], [120.0, np.nan, np.nan]])
    fit = a1gm.fit(X, negatives="allow")
    np.testing.assert_allclose(fit.transform(X), fit.row_factor, rtol=1e-10)


def test_a_row_whose_sum_is_above_the_largest_float():
    h = np.array([1.0, 2.0])
    got = row_factors(read_input(np.array([[1e308, 1.5e308], [1.0, nan]])), h)
    np.testing.assert_allclose(got, [8.333333333333333e307, 1.0])


def test_a_row_whose_factor_is_no_float_is_named_in_a_table_of_several_blocks():
    X = np.ones((300_000, 8))
    X[250_000] = 1e200
    with pytest.raises(NotRepresentableError, match="row 250000 "):
        row_factors(read_input(X), np.full(8, 1e-200))


def test_a_row_whose_factor_is_no_float_is_refused():
    with pytest.raises(NotRepresentableError, match="row 1"):
        row_factors(read_input(np.array([[1.0], [1e200]])), np.array([1e-200]))
