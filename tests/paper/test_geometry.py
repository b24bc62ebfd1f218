"""Coordinates, rank-1 conditions and the projection, as the module states them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.nmmf_oracle import nmmf_cost

from a1gm.exceptions import DataError, ParameterError
from a1gm.paper import geometry, kl_divergence, rank1_nmmf

SIZES = st.tuples(*[st.integers(1, 4)] * 2, *[st.integers(0, 3)] * 2)
WITH_CORNER = st.tuples(*[st.integers(2, 4)] * 2, *[st.integers(1, 3)] * 2)
SEEDS = st.integers(0, 10_000)


def random_triple(sizes, seed):
    n, m, below, right = sizes
    rng = np.random.default_rng(seed)
    tables = (rng.random(s) + 0.05 for s in ((n, m), (below, m), (n, right)))
    return tuple(tables)


def rank_one_triple(sizes, seed):
    rng = np.random.default_rng(seed)
    w, h, a, b = (rng.random(n) + 0.05 for n in sizes)
    return np.outer(w, h), np.outer(a, h), np.outer(w, b)


def normalised(triple):
    total = sum(table.sum() for table in triple)
    return tuple(table / total for table in triple)


def assert_same_triple(left, right) -> None:
    for one, other in zip(left, right, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def cells(triple):
    """List Ω with the probability of each of its cells, one by one."""
    X, Y, Z = triple
    n, m = X.shape
    listed = {(i, j): X[i, j] for i in range(n) for j in range(m)}
    listed |= {(n + i, j): Y[i, j] for i in range(Y.shape[0]) for j in range(m)}
    listed |= {(i, m + j): Z[i, j] for i in range(n) for j in range(Z.shape[1])}
    return listed


@given(SIZES, SEEDS)
def test_coordinates_as_defined_on_the_poset_and_back(sizes, seed) -> None:
    triple = normalised(random_triple(sizes, seed))
    theta, eta = geometry.natural(*triple), geometry.expectation(*triple)
    omega, shape = cells(triple), triple[0].shape
    for (k, m), p in omega.items():
        below = sum(theta[s, t] for s, t in omega if s <= k and t <= m)
        assert np.exp(below) == pytest.approx(p, rel=1e-9)
        above = sum(p for (s, t), p in omega.items() if k <= s and m <= t)
        assert eta[k, m] == pytest.approx(above, rel=1e-9)
    assert np.isnan(eta).sum() == eta.size - len(omega)
    assert eta[0, 0] == pytest.approx(1.0)
    assert_same_triple(geometry.from_natural(theta, shape), triple)
    assert_same_triple(geometry.from_expectation(eta, shape), triple)
    unscaled = random_triple(sizes, seed)
    np.testing.assert_allclose(geometry.natural(*unscaled), theta, atol=1e-9)
    np.testing.assert_allclose(geometry.expectation(*unscaled), eta, rtol=1e-9)


@given(SIZES, SEEDS)
def test_proposition_1_no_two_body_theta_means_rank_one(sizes, seed) -> None:
    n, m, below, right = sizes
    rng = np.random.default_rng(seed)
    theta = np.zeros((n + below, m + right))
    theta[:, 0], theta[0, :] = rng.normal(size=n + below), rng.normal(size=m + right)
    X, Y, Z = geometry.from_natural(theta, (n, m))
    w, h = X[:, 0] / X[0, 0], X[0]
    np.testing.assert_allclose(X, np.outer(w, h), rtol=1e-9)
    np.testing.assert_allclose(Y, np.outer(Y[:, 0] / h[0], h), rtol=1e-9)
    np.testing.assert_allclose(Z, np.outer(w, Z[0]), rtol=1e-9)


@given(st.tuples(st.integers(2, 4), st.integers(2, 4), SIZES), SEEDS)
def test_both_conditions_agree(sizes, seed) -> None:
    n, m, (_, _, below, right) = sizes
    for make in (random_triple, rank_one_triple):
        triple = make((n, m, below, right), seed)
        by_theta = geometry.has_rank_one_theta(geometry.natural(*triple))
        by_eta = geometry.has_rank_one_eta(geometry.expectation(*triple), (n, m))
        assert by_theta == by_eta == (make is rank_one_triple)


@given(SIZES, SEEDS, st.booleans())
def test_proposition_2_without_a_corner_eta_is_a_product(sizes, seed, drop_y) -> None:
    n, m, below, right = sizes
    sizes = (n, m, 0, right) if drop_y else (n, m, below, 0)
    eta = geometry.expectation(*rank_one_triple(sizes, seed))
    np.testing.assert_allclose(eta, np.outer(*geometry.one_body(eta)), rtol=1e-10)


@given(WITH_CORNER, SEEDS)
def test_with_a_corner_eta_misses_the_product_by_a_known_amount(sizes, seed) -> None:
    triple = normalised(rank_one_triple(sizes, seed))
    X, Y, Z = triple
    n, m = X.shape
    eta = geometry.expectation(*triple)
    column, row = geometry.one_body(eta)
    before = np.zeros((n, m))  # mass of X above and left of each cell
    before[1:, 1:] = X.cumsum(axis=0).cumsum(axis=1)[:-1, :-1]
    gap = np.outer(column[:n], row[:m]) - eta[:n, :m]
    np.testing.assert_allclose(gap, Y.sum() * Z.sum() / X.sum() * before, atol=1e-13)
    assert (gap[1:, 1:] > 0).all()


@given(SIZES, SEEDS)
def test_the_projection_is_theorem_1_with_rank_one_and_the_same_one_body_eta(
    sizes, seed
) -> None:
    triple = random_triple(sizes, seed)
    projected = geometry.project(*triple)
    w, h, a, b = rank1_nmmf(*triple)
    assert_same_triple(projected, (np.outer(w, h), np.outer(a, h), np.outer(w, b)))
    assert geometry.has_rank_one_theta(geometry.natural(*projected))
    before = geometry.one_body(geometry.expectation(*triple))
    after = geometry.one_body(geometry.expectation(*projected))
    for left, right in zip(before, after, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-10)


def test_two_body_eta_are_not_kept() -> None:
    """The sentence in the paper that says two-body is a misprint."""
    triple = random_triple((2, 2, 1, 1), 0)
    before = geometry.two_body(geometry.expectation(*triple))
    after = geometry.two_body(geometry.expectation(*geometry.project(*triple)))
    assert abs(before - after).max() > 1e-3


@given(SIZES, SEEDS, SEEDS)
def test_pythagoras(sizes, seed, other) -> None:
    """D(p, q) = D(p, projection) + D(projection, q) for every q of rank 1."""
    triple, q = random_triple(sizes, seed), rank_one_triple(sizes, other)
    projected = geometry.project(*triple)

    def distance(left, right):
        pairs = zip(left, right, strict=True)
        return sum(kl_divergence(p, r) for p, r in pairs if p.size)

    assert distance(triple, q) == pytest.approx(
        distance(triple, projected) + distance(projected, q), rel=1e-9, abs=1e-12
    )
    assert distance(triple, projected) == pytest.approx(
        nmmf_cost(triple, rank1_nmmf(*triple)), rel=1e-12, abs=1e-12
    )


def test_zeros() -> None:
    X = [[0.0, 1.0], [1.0, 2.0]]
    with pytest.raises(DataError, match="zero cell"):
        geometry.natural(X)
    assert geometry.expectation(X)[1, 1] == 0.5
    with pytest.raises(DataError, match="no distribution"):
        geometry.expectation(np.zeros((2, 2)))


@pytest.mark.parametrize("where", ["above", "below"])
def test_a_small_row_breaks_both_conditions_wherever_it_is(where) -> None:
    small, ones = np.array([[1e-10, 5e-10]]), np.ones((2, 2))
    triple = (np.vstack((small, ones)), None) if where == "above" else (ones, small)
    shape = triple[0].shape
    assert not geometry.has_rank_one_theta(geometry.natural(*triple))
    assert not geometry.has_rank_one_eta(geometry.expectation(*triple), shape)


@given(SIZES, SEEDS)
def test_proposition_1_rank_one_keeps_both_conditions(sizes, seed) -> None:
    """However small some rows and columns are."""
    rng = np.random.default_rng(seed)
    w, h, a, b = (10.0 ** rng.uniform(-8, 0, n) for n in sizes)
    triple = np.outer(w, h), np.outer(a, h), np.outer(w, b)
    assert geometry.has_rank_one_theta(geometry.natural(*triple))
    assert geometry.has_rank_one_eta(geometry.expectation(*triple), triple[0].shape)


def test_arguments_are_checked() -> None:
    for tol in ("a", None, -1.0):
        with pytest.raises(ParameterError, match="tol"):
            geometry.has_rank_one_theta(np.zeros((2, 2)), tol)
        with pytest.raises(ParameterError, match="tol"):
            geometry.has_rank_one_eta(np.ones((2, 2)), (2, 2), tol)
    for function in (geometry.one_body, geometry.two_body):
        with pytest.raises(DataError, match="The table of coordinates has 1"):
            function([1.0, 2.0])
    for shape in ((3, 2), (0, 1), (1, 1, 1), (1,), 2, None, (1.5, 1)):
        with pytest.raises(DataError, match="must fit"):
            geometry.from_natural(np.zeros((2, 2)), shape)
