"""Twins and leaves: compiled against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.kernels import (
    SAME,
    native,
    needs_native,
    solve_core,
    statistics_of,
)
from support.tables import KINDS, make_table, tables

from a1gm._base.bits import pack_bits
from a1gm._kernel import reference

pytestmark = needs_native


def pairs_of(X, weights=None):
    observed = ~np.isnan(X)
    rows, cols = np.nonzero(observed)
    ptr = np.concatenate(([0], np.cumsum(observed.sum(axis=1)))).astype(np.int64)
    given_weights = None if weights is None else weights[rows, cols]
    return ptr, cols.astype(np.int32), X[rows, cols], given_weights, X.shape[1]


def assert_same_reduction(got, expected):
    assert got.n_roots + got.n_core_blocks == expected.n_roots + expected.n_core_blocks
    assert got.core_shape == expected.core_shape
    np.testing.assert_allclose(
        np.sort(got.core_row_sums), np.sort(expected.core_row_sums), rtol=SAME
    )
    np.testing.assert_allclose(
        np.sort(got.core_col_sums), np.sort(expected.core_col_sums), rtol=SAME
    )
    mine, theirs = solve_core(got), solve_core(expected)
    inside = (mine[2][:, None] == mine[3]) & (mine[2] >= 0)[:, None]
    other = (theirs[2][:, None] == theirs[3]) & (theirs[2] >= 0)[:, None]
    np.testing.assert_array_equal(inside, other)
    for k in (2, 3):
        np.testing.assert_array_equal(mine[k] < 0, theirs[k] < 0)
        np.testing.assert_array_equal(np.isnan(mine[k - 2]), mine[k] < 0)
    np.testing.assert_allclose(
        np.outer(*mine[:2])[inside], np.outer(*theirs[:2])[inside], rtol=1e-6
    )


@given(tables(max_rows=10, max_cols=10))
def test_reduce_tables_and_pairs(X):
    table, pairs = statistics_of(X), pairs_of(X)
    assert_same_reduction(native.reduce_table(*table), reference.reduce_table(*table))
    assert_same_reduction(native.reduce_pairs(*pairs), reference.reduce_pairs(*pairs))


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


@given(tables(max_rows=10, max_cols=10), st.booleans())
@example(make_table("mostly missing", 8, 6, seed=79), True)  # sweeps are slow
def test_reduce_mask(X, force):
    observed = ~np.isnan(X)
    bits = pack_bits(observed)
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


@given(tables(max_rows=8, max_cols=8), st.integers(0, 2**31))
def test_reduce_weighted_pairs(X, seed):
    rng = np.random.default_rng(seed)
    # Few distinct weights, in powers of two: proportional lines are common.
    weights = 2.0 ** rng.integers(0, 2, X.shape)
    got = native.reduce_pairs(*pairs_of(X, weights))
    expected = reference.reduce_pairs(*pairs_of(X, weights))
    mine, theirs = solve_core(got), solve_core(expected)
    inside = (mine[2][:, None] == mine[3]) & (mine[2] >= 0)[:, None]
    np.testing.assert_allclose(
        np.outer(*mine[:2])[inside], np.outer(*theirs[:2])[inside], rtol=1e-6
    )
    fitted = np.where(inside & ~np.isnan(X), weights * np.outer(*mine[:2]), 0.0)
    np.testing.assert_allclose(
        fitted.sum(axis=0), np.nansum(X, axis=0), rtol=1e-10, atol=1e-300
    )


@pytest.mark.parametrize(
    "X",
    [
        [[1e-200, 1e200]],
        [[1e300, np.nan], [1.0, 1e300]],
        [[1e26, 1e-97, np.nan], [np.nan, 1e98, 2e-99]],
    ],
)
def test_lost_digits_are_noticed(kernel, X):
    nothing = np.zeros(0)
    with np.errstate(all="ignore"):
        reduced = kernel.reduce_pairs(*pairs_of(np.array(X)))
        w, h, *_, exact = reduced.replay(nothing, nothing)
        h = h / h.sum()
    small = not (np.concatenate([w, h]) >= np.finfo(float).tiny).all()
    assert small or not exact
