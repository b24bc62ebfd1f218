"""The best rank-1 table of a complete table."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from a1gm.paper import kl_divergence, rank1_nmf

SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, max_side=6)
TABLES = hnp.arrays(np.float64, SHAPES, elements=st.floats(0.01, 100))


@given(TABLES)
def test_margins_are_kept_and_factors_have_equal_sums(X) -> None:
    w, h = rank1_nmf(X)
    R = np.outer(w, h)
    np.testing.assert_allclose(R.sum(axis=0), X.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(R.sum(axis=1), X.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(w.sum(), h.sum(), rtol=1e-12)


@given(TABLES, st.integers(0, 1000))
def test_no_other_factors_are_better(X, seed) -> None:
    w, h = rank1_nmf(X)
    rng = np.random.default_rng(seed)
    other = np.outer(
        w * np.exp(rng.normal(0, 0.1, w.size)), h * np.exp(rng.normal(0, 0.1, h.size))
    )
    best = kl_divergence(X, np.outer(w, h))
    assert best <= kl_divergence(X, other) + 1e-10 * X.sum()


def test_zero_rows_and_the_zero_table() -> None:
    w, _ = rank1_nmf([[0.0, 0.0], [1.0, 2.0]])
    assert w[0] == 0
    for factor in rank1_nmf(np.zeros((2, 3))):
        assert (factor == 0).all()


def test_integers_give_the_float_answer() -> None:
    X = np.array([[1, 2], [3, 4]])
    for left, right in zip(rank1_nmf(X), rank1_nmf(X.astype(float)), strict=True):
        np.testing.assert_array_equal(left, right)
