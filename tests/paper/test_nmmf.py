"""Theorem 1: the closed form is the minimum of the NMMF cost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.nmmf_oracle import minimise, nmmf_cost

from a1gm.exceptions import DataError
from a1gm.paper import rank1_nmf, rank1_nmmf

WEIGHTS = [(1.0, 1.0), (0.3, 2.5), (7.0, 0.1), (0.0, 1.0), (1.0, 0.0)]
SIZES = [(3, 4, 2, 3), (2, 2, 1, 0), (2, 3, 0, 2), (1, 1, 1, 1), (4, 2, 0, 0)]


def random_triple(sizes, seed=0):
    n, m, below, right = sizes
    rng = np.random.default_rng(seed)
    return rng.random((n, m)), rng.random((below, m)), rng.random((n, right))


@pytest.mark.parametrize(("alpha", "beta"), WEIGHTS)
@pytest.mark.parametrize("sizes", SIZES)
def test_theorem_1_against_a_numerical_minimiser(sizes, alpha, beta) -> None:
    tables = random_triple(sizes)
    closed_form = nmmf_cost(tables, rank1_nmmf(*tables, alpha, beta), alpha, beta)
    weights = {("w", "h"): 1.0, ("a", "h"): alpha, ("w", "b"): beta}
    named = dict(zip(weights, tables, strict=True))
    numerical, _ = minimise(named, weights, dict(zip("whab", sizes, strict=True)))
    assert closed_form <= numerical + 1e-10
    assert closed_form == pytest.approx(numerical, abs=1e-6)


sizes_strategy = st.tuples(
    st.integers(1, 4), st.integers(1, 4), st.integers(0, 3), st.integers(0, 3)
)
weight_strategy = st.floats(0.0, 10.0)


@given(sizes_strategy, st.integers(0, 10_000), weight_strategy, weight_strategy)
def test_weighted_margins_are_kept(sizes, seed, alpha, beta) -> None:
    """The gradient of a convex cost vanishes: the minimum, for every weight."""
    X, Y, Z = random_triple(sizes, seed)
    w, h, a, b = rank1_nmmf(X, Y, Z, alpha, beta)
    np.testing.assert_allclose(
        w * (h.sum() + beta * b.sum()), X.sum(1) + beta * Z.sum(1), rtol=1e-10
    )
    np.testing.assert_allclose(
        h * (w.sum() + alpha * a.sum()), X.sum(0) + alpha * Y.sum(0), rtol=1e-10
    )
    np.testing.assert_allclose(a * h.sum(), Y.sum(1), rtol=1e-10)
    np.testing.assert_allclose(b * w.sum(), Z.sum(0), rtol=1e-10)


@given(sizes_strategy, st.integers(0, 10_000))
def test_proposition_3_permuting_lines_permutes_the_factors(sizes, seed) -> None:
    X, Y, Z = random_triple(sizes, seed)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(X.shape[0]), rng.permutation(X.shape[1])
    below, right = rng.permutation(Y.shape[0]), rng.permutation(Z.shape[1])
    w, h, a, b = rank1_nmmf(X, Y, Z)
    permuted = rank1_nmmf(
        X[np.ix_(rows, columns)], Y[np.ix_(below, columns)], Z[np.ix_(rows, right)]
    )
    expected = w[rows], h[columns], a[below], b[right]
    for left, want in zip(permuted, expected, strict=True):
        np.testing.assert_allclose(left, want, rtol=1e-12)


@pytest.mark.parametrize("empty", [None, "no rows or columns"])
def test_without_y_and_z_it_is_rank1_nmf(empty) -> None:
    X = random_triple((3, 4, 0, 0))[0]
    others = (None, None) if empty is None else (np.empty((0, 4)), np.empty((3, 0)))
    w, h, a, b = rank1_nmmf(X, *others)
    np.testing.assert_allclose(np.outer(w, h), np.outer(*rank1_nmf(X)), rtol=1e-13)
    assert a.shape == b.shape == (0,)


def parts(n_y=2, n_z=3):
    rng = np.random.default_rng(5)
    return np.zeros((2, 4)), rng.random((n_y, 4)), rng.random((2, n_z))


@pytest.mark.parametrize("other", [None, 0.0, 1.0])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_zero_x_beside_one_table_is_that_table_alone(other, transposed) -> None:
    """The other is absent, zero, or has weight 0; transposed, Y and Z trade places."""
    X, Y, Z = parts()
    Z = None if other is None else other * Z
    weights = 0.7, 0.0 if other == 1.0 else 1.0
    tables = (X, Y, Z)
    if transposed:
        tables = (X.T, None if Z is None else Z.T, Y.T)
        h, w, b, a = rank1_nmmf(*tables, *weights[::-1])
    else:
        w, h, a, b = rank1_nmmf(*tables, *weights)
    assert not w.any()
    assert h.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(np.outer(a, h), np.outer(*rank1_nmf(Y)), rtol=1e-13)
    assert b.shape == (0 if Z is None else 3,)
    least = nmmf_cost((Y, None, None), (*rank1_nmf(Y), [], []))
    cost = nmmf_cost((X, Y, Z), (w, h, a, b), *weights)
    assert cost == pytest.approx(0.7 * least, rel=1e-12)


def test_a_zero_x_beside_tables_of_weight_zero() -> None:
    X, Y, Z = parts()
    w, h, a, b = rank1_nmmf(X, Y, alpha=0)
    assert not w.any()
    np.testing.assert_allclose(h, 0.25)
    np.testing.assert_allclose(a, Y.sum(axis=1))
    w, h, a, b = rank1_nmmf(X, None, Z, beta=0)
    assert not h.any()
    np.testing.assert_allclose(w, 0.5)
    np.testing.assert_allclose(b, Z.sum(axis=0))
    factors = rank1_nmmf(X, Y, Z, alpha=0, beta=0)
    assert nmmf_cost((X, Y, Z), factors, 0, 0) == 0.0
    np.testing.assert_allclose(factors[2], Y.sum(axis=1))


def test_a_zero_x_beside_both_has_an_infimum_but_no_minimum() -> None:
    X, Y, Z = parts()
    with pytest.raises(DataError, match=r"no minimum exists.*a1gm\.fit_nmmf"):
        rank1_nmmf(X, Y, Z)
    (a, h), (w, b) = rank1_nmf(Y), rank1_nmf(Z)
    least = nmmf_cost((Y, None, None), (a, h, [], []))
    least += nmmf_cost((Z, None, None), (w, b, [], []))
    costs = [
        nmmf_cost((X, Y, Z), (t * w, t * h, a / t, b / t)) for t in (1.0, 1e-3, 1e-6)
    ]
    assert costs[0] > costs[1] > costs[2] > least
    assert costs[2] == pytest.approx(least, rel=1e-9)
