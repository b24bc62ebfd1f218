"""Reducing, scaling and solving: the compiled kernel does what its NumPy twin says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tables import KINDS, make_table, tables

from a1gm._kernel import reference

native = pytest.importorskip("a1gm._kernel._native")

SAME = 1e-12  # sums of a few thousand cells: rounding only
TABLE_CELLS = 1 << 18
NO_BRIDGE = sorted(set(KINDS) - {"bridge"})  # on which plain scaling takes for ever


def statistics_of(X):
    _, _, found, *_ = reference.observe(
        [(X, None, None, 0, 0)], 1, 1, 1.0, TABLE_CELLS, True
    )
    _, keys, _, sums = found
    return keys, sums


def pairs_of(X, weights=None):
    observed = ~np.isnan(X)
    rows, cols = np.nonzero(observed)
    ptr = np.concatenate(([0], np.cumsum(observed.sum(axis=1)))).astype(np.int64)
    given_weights = None if weights is None else weights[rows, cols]
    return ptr, cols.astype(np.int32), X[rows, cols], given_weights, X.shape[1]


def solve(reduced):
    """Both kernels' cores, solved by the kernel's own scaling."""
    if reduced.core_shape[0] == 0:
        nothing = np.zeros(0)
        return reduced.replay(nothing, nothing)
    C = reduced.core_col_sums
    w, h, _, gap, done = reduced.scale(C / C.max(), 1e-13, 20_000, 20_000)
    assert done or gap < 1e-12
    return reduced.replay(w, h)


def assert_same_reduction(got, expected):
    assert got.n_roots + got.n_core_blocks == expected.n_roots + expected.n_core_blocks
    assert got.core_shape == expected.core_shape
    np.testing.assert_allclose(
        np.sort(got.core_row_sums), np.sort(expected.core_row_sums), rtol=SAME
    )
    np.testing.assert_allclose(
        np.sort(got.core_col_sums), np.sort(expected.core_col_sums), rtol=SAME
    )
    mine, theirs = solve(got), solve(expected)
    inside = (mine[2][:, None] == mine[3]) & (mine[2] >= 0)[:, None]
    other = (theirs[2][:, None] == theirs[3]) & (theirs[2] >= 0)[:, None]
    np.testing.assert_array_equal(inside, other)
    for k in (2, 3):
        np.testing.assert_array_equal(mine[k] < 0, theirs[k] < 0)
        np.testing.assert_array_equal(np.isnan(mine[k - 2]), mine[k] < 0)
    np.testing.assert_allclose(
        np.outer(*mine[:2])[inside], np.outer(*theirs[:2])[inside], rtol=1e-8
    )


@given(tables(max_rows=10, max_cols=10))
def test_reduce_table(X):
    keys, sums = statistics_of(X)
    assert_same_reduction(
        native.reduce_table(keys, sums), reference.reduce_table(keys, sums)
    )


@given(st.integers(2, 40), st.integers(2, 40), st.floats(0.02, 0.5), st.integers(0, 99))
def test_both_kernels_peel_to_the_same_core(n, m, share, seed):
    # Sparse patterns, where twins and leaves make one another.
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, m)) < share, 1.0, np.nan)
    X[rng.integers(n), rng.integers(m)] = 1.0
    got = native.reduce_pairs(*pairs_of(X))
    expected = reference.reduce_pairs(*pairs_of(X))
    assert got.core_shape == expected.core_shape
    assert got.n_roots == expected.n_roots
    assert got.n_core_blocks == expected.n_core_blocks


@given(tables(max_rows=10, max_cols=10))
def test_reduce_pairs(X):
    assert_same_reduction(
        native.reduce_pairs(*pairs_of(X)), reference.reduce_pairs(*pairs_of(X))
    )


@given(tables(kinds=NO_BRIDGE, max_rows=8, max_cols=8), st.integers(0, 2**31))
def test_reduce_weighted_pairs(X, seed):
    rng = np.random.default_rng(seed)
    # Few distinct weights, in powers of two: proportional lines are common.
    weights = 2.0 ** rng.integers(0, 2, X.shape)
    got = native.reduce_pairs(*pairs_of(X, weights))
    expected = reference.reduce_pairs(*pairs_of(X, weights))
    mine, theirs = solve(got), solve(expected)
    inside = (mine[2][:, None] == mine[3]) & (mine[2] >= 0)[:, None]
    np.testing.assert_allclose(
        np.outer(*mine[:2])[inside], np.outer(*theirs[:2])[inside], rtol=1e-8
    )
    fitted = np.where(inside & ~np.isnan(X), weights * np.outer(*mine[:2]), 0.0)
    np.testing.assert_allclose(
        fitted.sum(axis=0), np.nansum(X, axis=0), rtol=1e-10, atol=1e-300
    )


@given(tables(kinds=NO_BRIDGE, max_rows=10, max_cols=10), st.booleans())
def test_reduce_mask(X, force):
    observed = ~np.isnan(X)
    bits = reference.pack_bits(observed)
    margins = np.nansum(X, axis=1), np.nansum(X, axis=0)
    got = native.reduce_mask(bits, *margins, False, force)
    expected = reference.reduce_mask(bits, *margins, False, force)
    assert (got is None) == (expected is None)
    if got is not None:
        assert_same_reduction(got, expected)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_core_mask_names_the_same_cells(kind):
    X = make_table(kind, 30, 30, seed=12)
    keys, sums = statistics_of(X)
    reduced = native.reduce_table(keys, sums)
    ptr, index, lists_missing, weights = reduced.core_mask
    rows = np.repeat(np.arange(reduced.core_shape[0]), np.diff(ptr))
    listed = np.zeros(reduced.core_shape, bool)
    listed[rows, index] = True
    assert weights is None
    assert reduced.n_listed == len(index) <= listed.size / 2 or not lists_missing
    mask = ~listed if lists_missing else listed
    blocks = reduced.core_row_block[:, None] == reduced.core_col_block
    assert not (mask & ~blocks).any()
    assert mask.any(axis=1).all()
    assert mask.any(axis=0).all()


@pytest.mark.parametrize("kind", ["at random", "banded", "mostly missing"])
@pytest.mark.parametrize("budget", [1, 5, 12, 200])
def test_scaling_sweeps_agree(kind, budget):
    X = make_table(kind, 25, 20, seed=13)
    keys, sums = statistics_of(X)
    got, expected = native.reduce_table(keys, sums), reference.reduce_table(keys, sums)
    results = []
    for reduced in (got, expected):
        C = reduced.core_col_sums
        w, h, n, gap, done = reduced.scale(np.ones(len(C)), 1e-9, budget, 60)
        results.append((np.sort(w), np.sort(h), n, gap, done))
    (w, h, n, gap, done), (w2, h2, n2, gap2, done2) = results
    assert (n, done) == (n2, done2)
    assert gap == pytest.approx(gap2, rel=1e-6, abs=1e-14)
    np.testing.assert_allclose(w, w2, rtol=1e-9)
    np.testing.assert_allclose(h, h2, rtol=1e-9)


@pytest.mark.parametrize("m", [5, 8, 23, 64, 65, 256, 257])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_solve_wide_tables(m, n_threads):
    X = make_table("at random", 300, m, seed=m)
    X[:, 0] = X[0] = 1.0
    X[1:, 1] = 2.0  # no row of one cell
    bits, sums = reference.pack_bits(~np.isnan(X)), np.nan_to_num(X)
    margins = sums.sum(axis=1), sums.sum(axis=0)
    found = native.solve_wide(bits, *margins, 1e-10, 60, n_threads)
    if m > 256:
        assert found is None
        return
    w, scale, h, n_iter, gap = found
    fitted = np.where(np.isnan(X), 0.0, np.outer(w, h))
    np.testing.assert_allclose(fitted.sum(axis=1), margins[0], rtol=1e-10)
    np.testing.assert_allclose(fitted.sum(axis=0), margins[1], rtol=1e-9)
    np.testing.assert_allclose(scale * margins[0], w)
    assert h.sum() == pytest.approx(1.0)
    assert 0 < n_iter <= 60
    assert gap <= 1e-10


def test_solve_wide_leaves_other_tables_alone():
    full = np.ones((6, 4), bool)
    halves, leaf = full.copy(), full.copy()
    halves[:3, :2] = halves[3:, 2:] = False
    leaf[2, 1:] = False
    for mask in (halves, leaf):
        margins = mask.sum(axis=1).astype(float), mask.sum(axis=0).astype(float)
        bits = reference.pack_bits(mask)
        assert native.solve_wide(bits, *margins, 1e-10, 60, 1) is None
    # Nor tables that sweeps would take too long for, or with an empty line.
    margins = [full.sum(axis=axis).astype(float) for axis in (1, 0)]
    assert native.solve_wide(reference.pack_bits(full), *margins, 1e-10, 60, 1)
    margins[0][0] = 0.0
    assert native.solve_wide(reference.pack_bits(full), *margins, 1e-10, 60, 1) is None


def test_sums_over_listed_holes_do_not_cancel():
    # Nearly everything of a row's weight is in the hole it misses: the sum over its
    # observed cells must not be taken as total minus hole.
    n = 12
    observed = ~np.eye(n, dtype=bool)
    truth = np.outer(np.ones(n), np.r_[1e20, np.ones(n - 1)])
    X = np.where(observed, truth, np.nan)
    keys, sums = statistics_of(X)
    reduced = native.reduce_table(keys, sums)
    assert reduced.core_mask[2]
    w, h, *_ = solve(reduced)
    np.testing.assert_allclose(np.outer(w, h), truth, rtol=1e-10)
