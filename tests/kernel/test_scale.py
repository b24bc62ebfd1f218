"""Scaling and solving: compiled against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kernels import native, needs_native, part, solve_core, statistics_of
from support.tables import make_table, tables

from a1gm._base.bits import pack_bits, unpack_bits
from a1gm._kernel import reference

pytestmark = needs_native


@pytest.mark.parametrize(
    "kind", ["at random", "banded", "mostly missing", "block-diagonal"]
)
@pytest.mark.parametrize("budget", [1, 5, 12, 200])
def test_sweeps_agree(kind, budget):
    statistics = statistics_of(make_table(kind, 25, 20, seed=13))
    single, many, ends, gaps = [], [], [], []
    for kernel in (native, reference):
        reduced = kernel.reduce_table(*statistics)
        ones = np.ones(reduced.core_shape[1])
        single.append([np.sort(x) for x in reduced.sweep(ones)])
        w, h, n, gap, done = reduced.scale(ones, 1e-9, budget, 60)
        many.append(np.append(np.sort(w), np.sort(h)))
        ends.append((n, done))
        gaps.append(gap)
    assert ends[0] == ends[1]
    assert gaps[0] == pytest.approx(gaps[1], rel=1e-6, abs=1e-14)
    for one, other in zip(*single, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    np.testing.assert_allclose(*many, rtol=1e-9)


@pytest.mark.parametrize("m", [5, 8, 23, 64, 65, 256, 257])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_solve_bits_of_wide_tables(m, n_threads):
    X = make_table("at random", 3000, m, seed=m)
    X[:, 0] = X[0] = 1.0
    X[1:, 1] = 2.0  # no row of one cell
    bits, sums = pack_bits(~np.isnan(X)), np.nan_to_num(X)
    margins = sums.sum(axis=1), sums.sum(axis=0)
    found = native.solve_bits(bits, None, *margins, 1e-10, 60, n_threads)
    w, scale, h, n_iter, _, gap, *_ = found
    fitted = np.where(np.isnan(X), 0.0, np.outer(w, h))
    np.testing.assert_allclose(fitted.sum(axis=1), margins[0], rtol=1e-10)
    np.testing.assert_allclose(fitted.sum(axis=0), margins[1], rtol=1e-9)
    np.testing.assert_allclose(scale * margins[0], w)
    assert h.sum() == pytest.approx(1.0)
    assert 0 < n_iter <= 60
    assert gap <= 1e-10


def test_solve_bits_of_wide_leaves_other_tables_alone():
    full = np.ones((600, 4), bool)
    halves, leaf, few_holes = full.copy(), full.copy(), np.ones((600, 400), bool)
    halves[:300, :2] = halves[300:, 2:] = False
    leaf[2, 1:] = False
    few_holes[1, 1] = False  # lists of the holes are quicker

    def solve(mask, first=1.0):
        margins = [mask.sum(axis=axis).astype(float) for axis in (1, 0)]
        margins[0][0] *= first
        return native.solve_bits(pack_bits(mask), None, *margins, 1e-10, 60, 1)

    for mask in (halves, leaf, few_holes):
        assert solve(mask) is None
    assert solve(full)
    assert solve(full, 0.0) is None  # nor tables with an empty row


def test_sums_over_listed_holes_do_not_cancel():
    # Nearly everything of a row's weight is in the hole it misses: the sum over its
    # observed cells must not be taken as total minus hole.
    truth = np.outer(np.ones(12), np.r_[1e20, np.ones(11)])
    X = np.where(np.eye(12), np.nan, truth)
    reduced = native.reduce_table(*statistics_of(X))
    assert reduced.core_mask[2]
    w, h, *_ = solve_core(reduced)
    np.testing.assert_allclose(np.outer(w, h), truth, rtol=1e-10)


@given(tables(max_rows=30, max_cols=12))
def test_solve_plain_tables(X):
    keys, sums = statistics_of(X)
    found = native.solve_plain(keys, sums, 1e-12, 500, 500)
    if found is None:  # zeros, several blocks, or slow to scale
        return
    w, _, h, _, _, gap, step, is_whole = found
    fitted = np.where(unpack_bits(keys, X.shape[1]), np.outer(w, h), 0.0)
    np.testing.assert_allclose(fitted.sum(axis=1), sums.sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(fitted.sum(axis=0), sums.sum(axis=0), rtol=1e-9)
    assert gap <= 1e-12
    assert step <= 5e-9
    assert is_whole == (w.all() and h.all())


@given(st.integers(1, 40), st.integers(1, 80), st.integers(0, 99), st.booleans())
def test_solve_nested_tables(n, m, seed, is_plain):
    rng = np.random.default_rng(seed)
    order, reach = rng.permutation(m), rng.integers(0, m + 1, n)
    X = rng.random((n, m)) + 0.1
    X[order >= reach[:, None]] = np.nan
    values = X if is_plain else np.asfortranarray(X.astype(np.float32))
    bits, col_sums = pack_bits(~np.isnan(X)), np.nansum(values, axis=0, dtype=float)
    got = native.solve_nested(bits, [part(values)], col_sums, 2)
    assert (got is None) == (reach.max() == 0)
    if got is None:
        return
    h, of_rows = np.nan_to_num(got[0]), got[1]
    observed = ~np.isnan(X)
    np.testing.assert_allclose(of_rows, observed @ h, rtol=1e-9)
    w = np.nansum(values, axis=1, dtype=float) / np.where(of_rows > 0.0, of_rows, 1.0)
    np.testing.assert_allclose(h * (w @ observed), col_sums, rtol=1e-9)


def test_solve_nested_leaves_other_tables_alone():
    X = np.where(np.eye(4, dtype=bool), 1.0, np.nan)
    bits = pack_bits(~np.isnan(X))
    assert native.solve_nested(bits, [part(X)], np.ones(4), 1) is None
