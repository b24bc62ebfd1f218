"""The em-algorithm and the multiplicative updates; their limits: test_against_fit."""

import itertools

import numpy as np
import pytest

from a1gm import paper
from a1gm.exceptions import ConvergenceWarning


def table_with_holes(seed=0, shape=(12, 9), share=0.2):
    rng = np.random.default_rng(seed)
    X = rng.random(shape)
    X[rng.random(shape) < share] = np.nan
    X[0], X[:, 0] = 0.5, 0.5
    return X


def test_no_repetition_makes_the_error_larger() -> None:
    X = table_with_holes(0)
    errors = []
    for repetitions in range(1, 12):
        words = rf"after {repetitions} repetition.*a1gm\.fit"
        with pytest.warns(ConvergenceWarning, match=words):
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


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_no_sweep_makes_the_error_larger(rank) -> None:
    X = table_with_holes()
    errors = [
        paper.kl_divergence(
            X, np.matmul(*paper.kl_wnmf(X, rank, 0.0, sweeps, random_state=1))
        )
        for sweeps in range(1, 15)
    ]
    # At rank 1 the last sweeps change nothing but the rounding of the matrix products.
    most = 1.0 + 1e-14
    assert all(later <= earlier * most for earlier, later in itertools.pairwise(errors))


def test_it_stops_as_in_the_authors_experiments() -> None:
    """The first sweep that gains less than tol of the starting error is the last."""
    X, tol = 50 * table_with_holes(seed=2), 1e-2
    rng = np.random.default_rng(5)
    U, V = rng.random((12, 1)), rng.random((1, 9))
    start = previous = paper.kl_divergence(X, U @ V)
    for sweeps in range(1, 200):
        U, V = paper.kl_wnmf(X, 1, 0.0, sweeps, random_state=5)
        error = paper.kl_divergence(X, U @ V)
        if (previous - error) / start < tol:
            break
        previous = error
    stopped = paper.kl_wnmf(X, tol=tol, random_state=5)
    np.testing.assert_allclose(stopped[0] @ stopped[1], U @ V, rtol=1e-13)
    # compared with the sweep before, not with the start, it would have gone on
    assert (previous - error) / previous > tol


def test_a_seed_gives_the_same_answer_and_a_generator_works() -> None:
    X = table_with_holes()
    first = paper.kl_wnmf(X, 2, random_state=7)
    again = paper.kl_wnmf(X, 2, random_state=np.random.default_rng(7))
    for left, right in zip(first, again, strict=True):
        np.testing.assert_array_equal(left, right)
    assert first[0].shape == (12, 2)
    assert first[1].shape == (2, 9)


def test_zero_rows_and_columns_are_fitted_as_zero() -> None:
    X = table_with_holes()
    X[3], X[:, 4] = 0.0, 0.0
    U, V = paper.kl_wnmf(X, random_state=0)
    assert (U[3] == 0).all()
    assert (V[:, 4] == 0).all()
    assert np.isfinite(U @ V).all()
