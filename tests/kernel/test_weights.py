"""Tables with weights: compiled against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kernels import SAME, native, needs_native, part
from support.tables import make_table, tables

import a1gm
from a1gm._base.bits import pack_bits
from a1gm._kernel import reference
from a1gm.exceptions import EmptyLineWarning

nan = np.nan

pytestmark = needs_native


def weights_like(X, seed, *, zeros=0.2, kinds=None):
    rng = np.random.default_rng(seed)
    V = rng.uniform(0.2, 3.0, X.shape)
    if kinds:  # rows of few shapes, each times a number of its own
        # Powers of two: rows that are proportional but for rounding may be twins or
        # not, and both are right.
        V = V[rng.integers(min(kinds, len(V)), size=len(V))]
        V = V * 2.0 ** rng.integers(-4, 5, size=(len(V), 1))
    V[rng.random(X.shape) < zeros] = 0.0
    return V


def observe_alike(X, V, *, cells=1 << 18, exposed=False):
    """Observe by both kernels; return what the compiled one found."""
    parts, weights = (x if isinstance(x, list) else [part(x)] for x in (X, V))
    got, expected = (
        kernel.observe_weighted(parts, weights, 1, cells, exposed)
        for kernel in (native, reference)
    )
    assert got[1] == expected[1]
    np.testing.assert_allclose(got[0], expected[0], rtol=SAME)
    for both in zip(got[2], expected[2], strict=True):
        np.testing.assert_allclose(*(np.asarray(x, float) for x in both), rtol=SAME)
    for mine, theirs in zip(got[3:5], expected[3:5], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert got[5] == expected[5]
    return got


@pytest.mark.parametrize("kinds", [None, 3])
@given(tables(max_rows=40, max_cols=40, zeros=0.2), st.integers(0, 2**31))
def test_any_table(kinds, X, seed):
    observe_alike(X, weights_like(X, seed, kinds=kinds))


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_a_row_without_weights_is_like_no_other(order):
    """The holes of these two rows have the same place in the table of patterns."""
    X = np.array([[nan, nan, nan, nan, 1, nan, nan, 1, nan, nan], [nan] * 10])[order]
    X[order.index(1), [1, 4, 5, 6, 9]] = [0.0, 1.0, 0.0, 1.0, 0.0]
    V = np.ones(X.shape)
    V[order.index(0), [4, 7]] = V[order.index(1), 4] = 0.0
    row_sums = observe_alike(X, V)[0]
    assert row_sums[order.index(1)] == 1.0
    with pytest.warns(EmptyLineWarning):
        fit = a1gm.fit(X, weights=V)
    assert np.isnan(fit.row_factor[order.index(0)])


@pytest.mark.parametrize("n_cols", [*range(1, 20), 31, 32, 33, 63, 64, 65, 129, 200])
def test_any_width(n_cols):
    X = make_table("at random", 70, n_cols, seed=n_cols, zeros=0.1)
    V = weights_like(X, n_cols)
    observe_alike(X, V)
    if n_cols > 8:
        assert observe_alike(X, V, cells=0)[1]


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u2", "?"])
@pytest.mark.parametrize("cells", [0, 1 << 18])
def test_any_type_layout_and_mark_of_a_hole(dtype, cells):
    X = make_table("at random", 90, 21, seed=3)
    V = (10.0 * weights_like(X, 4)).astype(dtype)
    holes = np.isnan(X)
    whole = np.nan_to_num(X, nan=-7.0)
    wide = np.zeros((90, 42), dtype)
    wide[:, ::2] = V
    for values in (X, np.asfortranarray(X), [part(whole, holes)]):
        for weights in (V, np.asfortranarray(V), wide[:, ::2]):
            observe_alike(values, weights, cells=cells)
    columns = [part(V[:, k : k + 1]) for k in range(21)]
    observe_alike([part(X[:, :8]), part(X[:, 8:])], columns, cells=cells)


@pytest.mark.parametrize("kinds", [None, 5])
def test_threads_change_nothing(kinds):
    X = make_table("at random", 3000, 400, seed=5)
    V = weights_like(X, 6, kinds=kinds, zeros=0.0)
    one, two = (
        native.observe_weighted([part(X)], [part(V)], n, 1 << 16) for n in (1, 3)
    )
    assert one[1] == two[1]
    np.testing.assert_allclose(one[0], two[0], rtol=SAME)
    np.testing.assert_allclose(one[2][-1], two[2][-1], rtol=SAME)


@pytest.mark.parametrize("cells", [0, 1 << 18])
def test_exposures_are_not_multiplied(cells):
    X = make_table("at random", 40, 21, seed=5)
    V = weights_like(X, 6, kinds=4)
    found = observe_alike(X, V, cells=cells, exposed=True)
    totals = np.nansum(np.where(V > 0, X, 0.0), axis=0)
    columns = found[2][2] if found[1] else found[2][2].sum(axis=0)
    np.testing.assert_allclose(columns, totals, rtol=SAME)


def test_proportional_rows_are_one_kind():
    rng = np.random.default_rng(7)
    base = np.array([1e-60, 1.0, 1e30, 3.0])
    V = base * (10.0 ** rng.integers(-25, 25, 40))[:, None]
    X = rng.uniform(1.0, 2.0, V.shape)
    found = observe_alike(X, V)
    assert len(found[2][1]) == 1
    for off in (1e-9, 1e-14):
        V[7, 0] *= 1.0 + off
        assert len(observe_alike(X, V)[2][1]) == 2
        near = np.array([[1.0, 2.0, 3.0]] * 3)  # which is looked at another way
        near[1, 1] *= 1.0 + off
        assert len(observe_alike(near, near)[2][1]) == 2


def test_sums_that_float64_does_not_have_are_nan():
    V = np.array([[1e-300, 2e-300], [1e300, 2e300]])
    X = np.array([[1.0, 1.0], [1e-300, 1e-300]])
    sums = observe_alike(X, V)[0]
    np.testing.assert_array_equal(np.isnan(sums), [False, True])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_what_cannot_be_used_is_told(bad):
    X, V = np.ones((5, 7)), np.ones((5, 7))
    V[3, 6] = bad
    assert not observe_alike(X, V)[5]
    V[3, 6], X[3, 6] = 0.0, bad  # nobody looks at a cell of weight 0
    assert observe_alike(X, V)[5]
    V[3, 6] = 1.0
    for kernel in (native, reference):
        found = kernel.observe_weighted([part(X)], [part(V)], 1, 99)
        assert found[5] == np.isnan(bad)


@pytest.mark.parametrize("n_cols", [1, 2, 3, 4, 5, 7, 20, 63, 64, 65, 67, 130])
@pytest.mark.parametrize("n_rows", [1, 2, 5, 33])
def test_products(n_rows, n_cols):
    rng = np.random.default_rng(n_cols)
    V = rng.uniform(0.5, 2.0, (n_rows, n_cols))
    bits = pack_bits(rng.random(V.shape) < 0.7)
    d, x = rng.random(n_rows), rng.random(n_cols)
    for weights in (None, V, np.asfortranarray(V), V.astype("f4")):
        options = bits, None if weights is None else [part(weights)], d, x, 2
        got, expected = native.bits_product(*options), reference.bits_product(*options)
        np.testing.assert_allclose(got, expected, rtol=SAME)


def test_weights_beyond_the_table_are_never_read():
    rng = np.random.default_rng(1)
    V = np.full((8, 10), np.nan)
    V[:7, :7] = rng.uniform(0.5, 2.0, (7, 7))
    bits = pack_bits(np.ones((7, 7), bool))
    d, x = rng.random(7), rng.random(7)
    found = native.bits_product(bits, [part(V[:7, :7])], d, x, 1)
    np.testing.assert_allclose(found, (d * (V[:7, :7] @ x)) @ V[:7, :7], rtol=SAME)
