"""Negative cells that are allowed, and cells of any scale."""

from __future__ import annotations

import numpy as np
import pytest
from support import oracles
from support.tables import make_table

import a1gm
from a1gm.exceptions import (
    DataError,
)

nan, inf = np.nan, np.inf
pytestmark = [
    pytest.mark.filterwarnings("ignore::a1gm.exceptions.UndeterminedWarning"),
    pytest.mark.filterwarnings("ignore::a1gm.exceptions.EmptyLineWarning"),
]


# ------------------------------------------------------------------------ fault 1
# ------------------------------------------------------------------------ fault 2
# ------------------------------------------------------------------------ fault 3
def test_fault_03_negatives_may_be_allowed():
    X = np.array([[5.0, -1.0, 2.0], [3.0, 4.0, nan], [6.0, 2.0, 1.0]])
    fit = a1gm.fit(X, negatives="allow")
    fitted = np.where(np.isnan(X), 0.0, np.outer(fit.row_factor, fit.col_factor))
    for axis in (0, 1):
        np.testing.assert_allclose(
            fitted.sum(axis=axis), np.nansum(X, axis=axis), rtol=1e-10
        )
    assert np.isnan(fit.divergence)
    assert fit.attained


def test_fault_03_allowed_negatives_with_a_row_that_sums_to_zero():
    # Its factor is 0, and its cells still count in the sums of their columns.
    X = np.array([[1.0, -1.0, nan], [3.0, 4.0, 5.0], [5.0, 6.0, 7.0]])
    for table in (X, X.T):
        fit = a1gm.fit(table, negatives="allow")
        fitted = np.outer(fit.row_factor, fit.col_factor)
        fitted[np.isnan(table)] = 0.0
        for axis in (0, 1):
            np.testing.assert_allclose(
                fitted.sum(axis=axis), np.nansum(table, axis=axis), atol=1e-9
            )
        assert fit.converged


def test_fault_03_allowed_negatives_beside_an_empty_row(recwarn):
    X = np.array([[5.0, -1.0, 2.0], [3.0, 4.0, nan], [nan, nan, nan]])
    with pytest.warns(a1gm.exceptions.EmptyLineWarning, match="row 2"):
        fit = a1gm.fit(X, negatives="allow")
    assert fit.row_block.tolist() == [0, 0, -1]
    assert [w.category for w in recwarn] == []


HOLLOW = np.array([[nan, 5.0, 6.0], [7.0, nan, 8.0], [9.0, 4.0, nan]])


@pytest.mark.parametrize(
    "X",
    [
        [[5.0, 1.0], [-3.0, 2.0]],
        [[-4.0, 6.0], [3.0, 2.0]],
        [[5.0, nan], [-2.0, 10.0]],
        [[5.0, nan, 1.0], [-2.0, 10.0, nan]],
    ],
)
def test_fault_03_sums_of_any_sign_will_do_in_closed_form(X):
    X = np.array(X)
    fit = a1gm.fit(X, negatives="allow")
    assert fit.solver == "closed form"
    assert fit.certificate <= 1e-12
    fitted = np.where(np.isnan(X), 0.0, np.outer(fit.row_factor, fit.col_factor))
    for axis in (0, 1):
        expected = np.nansum(X, axis=axis)
        np.testing.assert_allclose(fitted.sum(axis=axis), expected, atol=1e-12)


def test_fault_03_a_zero_denominator_is_named():
    with pytest.raises(DataError, match=r"Column [01]: .* sum to 0"):
        a1gm.fit([[1.0, 2.0], [1.0, -4.0]], negatives="allow")


def test_fault_03_a_core_needs_positive_sums():
    X = HOLLOW.copy()
    X[2, 1] = -6.0
    with pytest.raises(DataError, match=r"Column 1: .* no closed form.*sums to -1"):
        a1gm.fit(X, negatives="allow")
    with pytest.raises(DataError, match=r"no closed form.*some rows sum to -1"):
        a1gm.fit(X.T, negatives="allow")


def test_fault_03_columns_of_zeros_beside_sums_of_either_sign():
    X = np.array([[127.0, 0.0, 0.0], [-187.0, 0.0, nan], [62.0, nan, nan]])
    fit = a1gm.fit(X, negatives="allow")
    np.testing.assert_allclose(fit.impute(X), [[127, 0, 0], [-187, 0, 0], [62, 0, 0]])


def test_fault_03_allowed_negatives_in_a_wide_table_with_leaves():
    # As many patterns as rows and a leaf: the sums of the cells are read again, and
    # still only the margins count.
    rng = np.random.default_rng(2)
    X = rng.uniform(1.0, 2.0, (2000, 600))
    X[rng.random(X.shape) < 0.3] = nan
    X[:, 7] = X[5] = nan
    X[5, 7], X[6, 7], X[8, 7] = 1.5, -0.1, 1.0  # row 5 is a leaf of column 7
    fit = a1gm.fit(X, negatives="allow")
    assert fit.n_blocks == 1
    fitted = np.where(np.isnan(X), 0.0, np.outer(fit.row_factor, fit.col_factor))
    for axis in (0, 1):
        np.testing.assert_allclose(
            fitted.sum(axis=axis), np.nansum(X, axis=axis), rtol=1e-9
        )


# ------------------------------------------------------------------------ fault 4
# ------------------------------------------------------------------------ fault 5
# ------------------------------------------------------------------------ fault 6


@pytest.mark.parametrize("kind", ["complete", "staircase", "at random", "banded"])
@pytest.mark.parametrize("k", [1e-300, 3e-290, 7e-150, 1e150, 1e290, 1e300])
def test_fault_06_and_07_any_factor_scales_the_fit(kind, k):
    X = make_table(kind, 9, 8, seed=3)
    one, other = a1gm.fit(X), a1gm.fit(k * X)
    np.testing.assert_allclose(other.row_factor / k, one.row_factor, rtol=1e-9)
    np.testing.assert_allclose(other.col_factor, one.col_factor, rtol=1e-9)
    np.testing.assert_allclose(other.impute(k * X) / k, one.impute(X), rtol=1e-9)
    assert other.divergence / k == pytest.approx(one.divergence, rel=1e-6)


@pytest.mark.parametrize("kind", ["complete", "staircase", "at random"])
def test_fault_06_subnormal_cells(kind):
    counts = np.ceil(20.0 * make_table(kind, 6, 5, seed=4))
    X = counts * 5e-324
    assert (X[~np.isnan(X)] > 0.0).all()
    one, other = a1gm.fit(counts), a1gm.fit(X)
    np.testing.assert_allclose(other.col_factor, one.col_factor, rtol=1e-9)
    # Row factors are themselves subnormal: right to the last bit they have.
    np.testing.assert_allclose(
        other.row_factor / 5e-324, one.row_factor, rtol=1e-9, atol=1.0
    )


# ------------------------------------------------------------------------ fault 7


@pytest.mark.parametrize("kind", ["complete", "staircase", "at random"])
def test_fault_07_column_sums_that_overflow(kind):
    X = make_table(kind, 40, 2, seed=5)
    small = a1gm.fit(X)
    k = 1e308 / np.nanmax(small.row_factor)
    fit = a1gm.fit(k * X)
    assert np.nansum(X / 1e9) * 1e9 * (k / 1e308) > 2.0  # the total is no float64
    np.testing.assert_allclose(fit.col_factor, small.col_factor, rtol=1e-9)
    np.testing.assert_allclose(fit.row_factor / k, small.row_factor, rtol=1e-9)


# ------------------------------------------------------------------------ fault 8
@pytest.mark.parametrize("kind", ["complete", "corner", "staircase", "grid"])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [200, 300])
def test_fault_08_rows_of_very_different_scales(kind, seed, size):
    X = make_table(kind, 8, 6, seed)
    scale = 10.0 ** np.random.default_rng(seed).uniform(-size, size, 8)
    X *= scale[:, None]
    fit = a1gm.fit(X)
    assert oracles.certificate(X, fit) <= 1e-10
    assert fit.converged


@pytest.mark.parametrize(
    ("kind", "orders"), [("at random", 100), ("few patterns", 100), ("banded", 10)]
)
@pytest.mark.parametrize("seed", range(5))
def test_fault_08_exact_tables_of_very_different_scales(kind, orders, seed):
    rng = np.random.default_rng(seed)
    observed = ~np.isnan(make_table(kind, 12, 10, seed))
    observed[:, observed.sum(axis=0) == 0] = True
    w = 10.0 ** rng.uniform(-2 * orders, orders, 12)
    h = 10.0 ** rng.uniform(-orders, 0, 10)
    X = np.where(observed, np.outer(w, h), nan)
    fit = a1gm.fit(X)
    assert oracles.certificate(X, fit) <= 1e-10


def test_fault_08_a_small_row_beside_a_large_leaf():
    X = np.array([[1e-300, 1e-300], [1e300, nan]])
    fit = a1gm.fit(X)
    np.testing.assert_allclose(fit.col_factor, 0.5, rtol=1e-12)
    np.testing.assert_allclose(fit.row_factor, [2e-300, 2e300], rtol=1e-12)


def test_fault_08_scales_inside_one_row():
    X = np.array([[1e-100, 1e200], [1e-100, nan], [nan, 1e200]])
    fit = a1gm.fit(X)
    assert oracles.certificate(X, fit) <= 1e-10
    np.testing.assert_allclose(fit.impute(X)[1, 1], 1e200, rtol=1e-9)
    np.testing.assert_allclose(fit.impute(X)[2, 0], 1e-100, rtol=1e-9)


# ------------------------------------------------------------------------ fault 9
# ----------------------------------------------------------------------- fault 10
