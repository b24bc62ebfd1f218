"""The em-algorithm."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from a1gm import paper
from a1gm.exceptions import ConvergenceWarning


def table_with_holes(seed, shape=(6, 5), n_holes=6):
    rng = np.random.default_rng(seed)
    X = rng.random(shape) + 0.05
    X[rng.integers(1, shape[0], n_holes), rng.integers(1, shape[1], n_holes)] = np.nan
    return X


@given(st.integers(0, 1000))
def test_the_limit_has_the_observed_margins(seed) -> None:
    X = table_with_holes(seed)
    holes = np.isnan(X)
    R = np.where(holes, 0, np.outer(*paper.em(X, tol=1e-12)))
    data = np.where(holes, 0, X)
    np.testing.assert_allclose(R.sum(axis=0), data.sum(axis=0), rtol=1e-8)
    np.testing.assert_allclose(R.sum(axis=1), data.sum(axis=1), rtol=1e-8)


@given(st.integers(0, 1000))
def test_on_a_grid_the_limit_is_algorithm_1(seed) -> None:
    # em crawls when most cells are missing, so the grid is kept small
    X = table_with_holes(seed, n_holes=3)
    X[paper.complete_to_grid(np.isnan(X))] = np.nan
    np.testing.assert_allclose(
        np.outer(*paper.em(X, tol=1e-12)), np.outer(*paper.a1gm(X)), rtol=1e-8
    )


def test_no_repetition_makes_the_error_larger() -> None:
    X = table_with_holes(0)
    errors = []
    for repetitions in range(1, 12):
        with pytest.warns(ConvergenceWarning):
            factors = paper.em(X, tol=0.0, max_iter=repetitions)
        errors.append(paper.kl_divergence(X, np.outer(*factors)))
    assert all(later <= earlier for earlier, later in itertools.pairwise(errors))


def test_each_repetition_fills_with_the_table_of_the_one_before() -> None:
    X = table_with_holes(2)
    holes = np.isnan(X)
    filled = np.where(holes, np.nanmean(X), X)
    for _ in range(3):
        w, h = paper.rank1_nmf(filled)
        filled = np.where(holes, np.outer(w, h), X)
    with pytest.warns(ConvergenceWarning):
        factors = paper.em(X, tol=0.0, max_iter=3)
    np.testing.assert_allclose(np.outer(*factors), np.outer(w, h), rtol=1e-13)


def test_it_says_so_when_the_budget_ends_and_points_to_fit() -> None:
    with pytest.warns(ConvergenceWarning, match=r"after 2 repetitions.*a1gm\.fit"):
        paper.em(table_with_holes(0), max_iter=2)


def test_a_complete_table_needs_one_step() -> None:
    X = np.random.default_rng(0).random((4, 3))
    for left, right in zip(paper.em(X, max_iter=1), paper.rank1_nmf(X), strict=True):
        np.testing.assert_array_equal(left, right)


def test_zeros_are_data() -> None:
    X = table_with_holes(1)
    X[2], X[:, 3] = 0.0, 0.0
    w, h = paper.em(X)
    assert w[2] == 0
    assert h[3] == 0
