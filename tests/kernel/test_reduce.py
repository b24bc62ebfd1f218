"""Twins and leaves: compiled against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.kernels import (
    SAME,
    core_cells,
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


def reduce_alike(name, *args, same_core=True, rtol=1e-10):
    """Reduce by both kernels; return the compiled one's fit and where it holds."""
    got, expected = (getattr(kernel, name)(*args) for kernel in (native, reference))
    assert (got is None) == (expected is None)
    if got is None:
        return None
    if same_core:
        counts = {r.n_roots + r.n_core_blocks for r in (got, expected)}
        assert len(counts) == 1
        assert got.core_shape == expected.core_shape
    for sums in ("core_row_sums", "core_col_sums") if same_core else ():
        mine, theirs = (np.sort(getattr(core, sums)) for core in (got, expected))
        np.testing.assert_allclose(mine, theirs, rtol=SAME)
    mine, theirs = solve_core(got), solve_core(expected)
    inside, other = (
        (of_row[:, None] == of_col) & (of_row >= 0)[:, None]
        for _, _, of_row, of_col, *_ in (mine, theirs)
    )
    np.testing.assert_array_equal(inside, other)
    for k in (2, 3):
        np.testing.assert_array_equal(mine[k] < 0, theirs[k] < 0)
        np.testing.assert_array_equal(np.isnan(mine[k - 2]), mine[k] < 0)
    fitted, other = np.outer(*mine[:2]), np.outer(*theirs[:2])
    np.testing.assert_allclose(fitted[inside], other[inside], rtol=rtol)
    return np.where(inside, fitted, 0.0)


@given(tables(max_rows=10, max_cols=10), st.booleans())
@example(make_table("mostly missing", 8, 6, seed=79), True)  # sweeps are slow
def test_reduce_tables_pairs_and_masks(X, force):
    reduce_alike("reduce_table", *statistics_of(X))
    reduce_alike("reduce_pairs", *pairs_of(X))
    mask = pack_bits(~np.isnan(X)), np.nansum(X, axis=1), np.nansum(X, axis=0)
    # Margins right to 1e-12 know what lies across a bridge of 1e-6 to 1e-6.
    reduce_alike("reduce_mask", *mask, False, force, rtol=1e-6 if force else 1e-10)


@given(st.integers(2, 40), st.integers(2, 40), st.floats(0.02, 0.5), st.integers(0, 99))
def test_both_kernels_peel_to_the_same_core(n, m, share, seed):
    # Sparse patterns, where twins and leaves make one another.
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, m)) < share, 1.0, np.nan)
    X[rng.integers(n), rng.integers(m)] = 1.0
    cores = [kernel.reduce_pairs(*pairs_of(X)) for kernel in (native, reference)]
    assert len({(c.core_shape, c.n_roots, c.n_core_blocks) for c in cores}) == 1


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_core_mask_names_the_same_cells(kind):
    X = make_table(kind, 30, 30, seed=12)
    reduced = native.reduce_table(*statistics_of(X))
    _, index, lists_missing, weights = reduced.core_mask
    mask = core_cells(reduced) > 0.0
    assert weights is None
    assert reduced.n_listed == len(index) <= mask.size / 2 or not lists_missing
    blocks = reduced.core_row_block[:, None] == reduced.core_col_block
    assert not (mask & ~blocks).any()
    assert mask.any(axis=1).all()
    assert mask.any(axis=0).all()


@given(tables(max_rows=8, max_cols=8), st.integers(0, 2**31))
def test_reduce_weighted_pairs(X, seed):
    rng = np.random.default_rng(seed)
    # Few distinct weights, in powers of two: proportional rows are common.
    weights = 2.0 ** rng.integers(0, 2, X.shape)
    pairs = pairs_of(X, weights)
    # Weights leave cores across a bridge of 1e-6.
    fitted = reduce_alike("reduce_pairs", *pairs, same_core=False, rtol=1e-6)
    fitted, sums = weights * fitted * ~np.isnan(X), np.nansum(X, axis=0)
    np.testing.assert_allclose(fitted.sum(axis=0), sums, rtol=1e-10, atol=1e-300)


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
