"""What the paper's algorithms and a1gm.fit have to do with each other."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import a1gm
from a1gm import paper

SEEDS = st.integers(0, 10_000)


def table_with_holes(seed, shape=(7, 6), n_holes=5):
    """Draw a table whose first row and column are complete."""
    rng = np.random.default_rng(seed)
    X = rng.random(shape) + 0.05
    X[rng.integers(1, shape[0], n_holes), rng.integers(1, shape[1], n_holes)] = np.nan
    return X


def on_a_grid(X):
    return np.where(paper.complete_to_grid(np.isnan(X)), np.nan, X)


@given(SEEDS)
def test_on_a_grid_algorithm_1_is_fit(seed) -> None:
    X = on_a_grid(table_with_holes(seed))
    fit = a1gm.fit(X)
    np.testing.assert_allclose(np.outer(*paper.a1gm(X)), fit.reconstruct(), rtol=1e-10)
    assert fit.solver == "closed form"


@given(SEEDS, st.booleans())
def test_the_limits_of_em_and_of_kl_wnmf_are_fit(seed, grid) -> None:
    X = table_with_holes(seed, n_holes=4)
    X = on_a_grid(X) if grid else X
    fitted = a1gm.fit(X).reconstruct()
    np.testing.assert_allclose(np.outer(*paper.em(X, tol=1e-12)), fitted, rtol=1e-7)
    U, V = paper.kl_wnmf(X, tol=0.0, max_iter=1000, random_state=0)
    # it stops when rounding makes the error grow: half the digits of the factors
    np.testing.assert_allclose(U @ V, fitted, rtol=1e-5)


@given(SEEDS)
def test_off_the_grid_algorithm_1_is_never_better(seed) -> None:
    X = table_with_holes(seed, n_holes=8)
    published = paper.kl_divergence(X, np.outer(*paper.a1gm(X)))
    assert published >= a1gm.fit(X).divergence - 1e-12 * np.nansum(X)


def test_off_the_grid_algorithm_1_can_be_much_worse() -> None:
    """The cell it throws away is the one that matters."""
    X = np.array([[1.0, 1.0, 1.0], [1.0, np.nan, 9.0], [1.0, 9.0, np.nan]])
    published = paper.kl_divergence(X, np.outer(*paper.a1gm(X)))
    assert published > 1.5 * a1gm.fit(X).divergence


@given(SEEDS)
def test_a_grid_is_that_of_the_pattern(seed) -> None:
    X = table_with_holes(seed)
    grid = paper.grid_like(np.isnan(X))
    pattern = a1gm.MissingPattern(X)
    assert pattern.is_grid_like == bool(grid)
    assert pattern.n_missing == grid.n_holes
