"""The compiled kernel does what its NumPy twin says."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tables import KINDS, make_mask, make_table, tables

from a1gm import _kernel
from a1gm._kernel import reference
from a1gm.exceptions import SlowKernelWarning

native = pytest.importorskip("a1gm._kernel._native")

SAME = 1e-12  # sums of a few thousand cells: rounding only
TABLE_CELLS = 1 << 18
NO_BRIDGE = sorted(set(KINDS) - {"bridge"})  # on which plain scaling takes for ever
DTYPES = ["f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"]


def part(values, mask=None, validity=None, offset=0, group=0):
    return (values, mask, validity, offset, group)


def observe_both(parts, *, n_groups=1, n_threads=1, scale=1.0, cells=TABLE_CELLS):
    options = (n_groups, n_threads, scale, cells, False)
    return native.observe(parts, *options), reference.observe(parts, *options)


def assert_same_observation(got, expected):
    np.testing.assert_allclose(got[0], expected[0], rtol=SAME)
    assert got[1] == expected[1]
    if got[1]:
        for mine, theirs in zip(got[2][:2], expected[2][:2], strict=True):
            np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_allclose(got[2][2], expected[2][2], rtol=SAME)
        assert got[2][3] == expected[2][3]
    else:
        for mine, theirs in zip(got[2][:3], expected[2][:3], strict=True):
            np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_allclose(got[2][3], expected[2][3], rtol=SAME)
    assert got[3] == pytest.approx(expected[3], rel=SAME)
    assert got[4] == expected[4]
    for mine, theirs in zip(got[5:], expected[5:], strict=True):
        assert tuple(mine) == tuple(theirs)


# --------------------------------------------------------------------- observe
@given(tables(max_rows=40, max_cols=40, zeros=0.2))
def test_observe_any_table(X):
    assert_same_observation(*observe_both([part(X)]))


@pytest.mark.parametrize("n_cols", [*range(1, 40), 63, 64, 65, 127, 128, 129, 200])
def test_observe_any_width(n_cols):
    X = make_table("at random", 70, n_cols, seed=n_cols, zeros=0.1)
    assert_same_observation(*observe_both([part(X)]))
    if n_cols > 8:  # below, patterns repeat, and the wide form is a matter of taste
        assert_same_observation(*observe_both([part(X)], cells=0))


@given(
    widths=st.lists(st.integers(1, 35), min_size=1, max_size=3),
    n_groups=st.integers(1, 2),
    bad=st.sampled_from([0.0, np.nan, np.inf, -np.inf, -1.0]),
    n_bad=st.integers(0, 3),
    seed=st.integers(0, 1000),
)
def test_long_tables_with_few_holes(widths, n_groups, bad, n_bad, seed):
    """Complete rows are read in a shorter way, until a cell shows that they are not."""
    rng = np.random.default_rng(seed)
    tables = [rng.random((400, width)) for width in widths]
    for _ in range(n_bad):
        X = tables[rng.integers(len(tables))]
        X[rng.integers(150, 400), rng.integers(X.shape[1])] = bad
    groups = [k % n_groups for k in range(len(tables))]
    parts = [part(X, group=g) for X, g in zip(tables, groups, strict=True)]
    got, expected = observe_both(parts, n_groups=n_groups)
    if np.isinf(bad):  # the sums are of no use
        got, expected = got[5:], expected[5:]
        assert [tuple(fault) for fault in got] == [tuple(fault) for fault in expected]
    else:
        assert_same_observation(got, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_observe_every_dtype(dtype, order):
    rng = np.random.default_rng(3)
    X = np.asarray(rng.integers(0, 100, (50, 9)), dtype=dtype, order=order)
    if dtype.startswith("f"):
        X[rng.random(X.shape) < 0.2] = np.nan
    assert_same_observation(*observe_both([part(X)]))


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1"])
@pytest.mark.parametrize(
    "view",
    [
        lambda X: X[::-1],
        lambda X: X[:, ::-1],
        lambda X: X[::3, 1::2],
        lambda X: X.T,
        lambda X: X[5:6],
        lambda X: X[:, 5:6],
        lambda X: np.broadcast_to(X[0], (30, X.shape[1])),
        lambda X: np.broadcast_to(X[:, :1], (X.shape[0], 30)),
        lambda X: np.lib.stride_tricks.sliding_window_view(X[:, 0], 4),
    ],
)
def test_observe_any_strides(dtype, view):
    X = np.random.default_rng(4).integers(0, 100, (40, 20)).astype(dtype)
    if dtype.startswith("f"):
        X[3, ::2] = X[::5, 1] = np.nan
    got, expected = observe_both([part(view(X))])
    assert_same_observation(got, expected)
    copied = native.observe(
        [part(np.ascontiguousarray(view(X)))], 1, 1, 1.0, TABLE_CELLS, False
    )
    assert_same_observation(got, copied)


def test_observe_reads_read_only_arrays():
    X = np.arange(12.0).reshape(4, 3)
    X.flags.writeable = False
    assert_same_observation(*observe_both([part(X)]))


@given(tables(max_rows=30, max_cols=8), st.sampled_from(["f8", "f4", "i4", "?"]))
def test_observe_masks(X, dtype):
    hidden = np.isnan(X)
    values = np.where(hidden, -3.0, np.ceil(X)).astype(dtype)
    assert_same_observation(*observe_both([part(values, hidden)]))
    backwards = part(values[::-1, ::-1], hidden[::-1, ::-1])
    assert_same_observation(*observe_both([backwards]))


@given(
    st.integers(1, 200),
    st.integers(0, 70),
    st.integers(1, 5),
    st.integers(0, 2**31),
)
def test_observe_validity_bitmaps(n, offset, n_cols, seed):
    rng = np.random.default_rng(seed)
    parts = []
    for k in range(n_cols):
        bits = rng.random(offset + n + 13) < 0.7
        bitmap = np.packbits(bits, bitorder="little")
        values = rng.integers(0, 50, (n, 1)).astype(["f8", "i4", "f4"][k % 3])
        parts.append(part(values, None, bitmap, offset, 0))
    assert_same_observation(*observe_both(parts))


@given(tables(max_rows=20, max_cols=7), st.integers(0, 2**31))
def test_observe_parts_and_groups(X, seed):
    rng = np.random.default_rng(seed)
    whole = np.arange(1, 1 + X.size, dtype=np.int16).reshape(X.shape)
    masked = part(np.where(np.isnan(X), np.inf, X), np.isnan(X), group=1)
    parts = [part(X, group=0), masked, part(np.asfortranarray(whole), group=0)]
    order = rng.permutation(3)
    parts = [parts[k] for k in order]
    got, expected = observe_both(parts, n_groups=2)
    assert got[0].shape == (2, len(X))
    assert_same_observation(got, expected)


@pytest.mark.parametrize("n_threads", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["few patterns", "at random", "complete"])
def test_observe_gives_the_same_for_any_number_of_threads(kind, n_threads):
    X = make_table(kind, 60_000, 12, seed=5)
    X[::7001, 3] = np.nan
    options = (1.0, TABLE_CELLS, False)
    one = native.observe([part(X)], 1, 1, *options)
    many = native.observe([part(X)], 1, n_threads, *options)
    assert_same_observation(many, one)


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_wide_form_for_any_number_of_threads(n_threads):
    X = make_table("at random", 2_000, 300, seed=6, zeros=0.05)
    got, expected = observe_both([part(X)], n_threads=n_threads, cells=10_000)
    assert got[1]
    assert_same_observation(got, expected)


def test_keep_table_overrules_the_wide_form():
    X = make_table("at random", 500, 70, seed=6)
    wide = native.observe([part(X)], 1, 1, 1.0, 100, False)
    kept = native.observe([part(X)], 1, 1, 1.0, 100, True)
    assert wide[1]
    assert not kept[1]
    assert_same_observation(kept, reference.observe([part(X)], 1, 1, 1.0, 100, True))


@pytest.mark.parametrize("n_patterns", [256, 257, 65_536, 65_537])
def test_pattern_numbers_of_every_width(n_patterns):
    n_cols = 17
    keys = np.arange(n_patterns, dtype=np.uint32)[:, None]
    observed = ((keys >> np.arange(n_cols, dtype=np.uint32)) & 1).astype(bool)
    X = np.where(observed, 1.0 + np.arange(n_cols), np.nan)
    found = native.observe([part(X)], 1, 2, 1.0, 1 << 30, True)
    ids, packed, counts, sums = found[2]
    np.testing.assert_array_equal(ids, np.arange(n_patterns))
    np.testing.assert_array_equal(packed.ravel(), np.arange(n_patterns))
    np.testing.assert_array_equal(counts, 1)
    np.testing.assert_array_equal(sums, np.nan_to_num(X))


def _mix(x: int) -> int:
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 % 2**64
    x ^= x >> 27
    x = x * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def _unmix(x: int) -> int:
    x ^= (x >> 31) ^ (x >> 62)
    x = x * pow(0x94D049BB133111EB, -1, 2**64) % 2**64
    x ^= (x >> 27) ^ (x >> 54)
    x = x * pow(0xBF58476D1CE4E5B9, -1, 2**64) % 2**64
    return x ^ (x >> 30) ^ (x >> 60)


def test_patterns_with_colliding_hashes_do_not_merge():
    # The kernel's hash is h = mix(h + c + word): for any first word there is a
    # second word that gives the hash we want.
    c = 0x9E3779B97F4A7C15
    wanted = 0x123456789ABCDEF0
    rng = np.random.default_rng(8)
    words = []
    for first in rng.integers(0, 2**63, 300, dtype=np.uint64).tolist():
        second = (_unmix(wanted) - c - _mix((c + first) % 2**64)) % 2**64
        assert _mix((_mix((c + first) % 2**64) + c + second) % 2**64) == wanted
        words.append((first, second))
    keys = np.array(words, dtype=np.uint64)
    observed = reference.unpack_bits(keys, 128)
    X = np.where(observed, rng.uniform(1.0, 2.0, observed.shape), np.nan)
    X = np.vstack([X, X])
    got, expected = observe_both([part(X)])
    assert len(got[2][1]) == 300
    assert_same_observation(got, expected)


@pytest.mark.parametrize("shape", [(100_000, 3), (7, 30_000), (3_000, 90)])
def test_sums_are_no_worse_than_pairwise(shape):
    rng = np.random.default_rng(9)
    X = rng.uniform(0.0, 1.0, shape) * 10.0 ** rng.integers(-8, 8, shape)
    row_sums, _, (_, _, _, sums), *_ = native.observe(
        [part(X)], 1, 2, 1.0, TABLE_CELLS, True
    )
    for got, lines, numpy_sums in (
        (row_sums[0], X, X.sum(axis=1)),
        (sums[0], X.T, np.ascontiguousarray(X.T).sum(axis=1)),
    ):
        exact = np.array([math.fsum(line) for line in lines[:200]])
        ours = np.abs(got[:200] - exact) / exact
        pairwise = np.abs(numpy_sums[:200] - exact) / exact
        assert ours.max() <= max(2.0 * pairwise.max(), 4e-16)


def test_sums_of_float32_are_made_in_float64():
    X = np.full((200_000, 2), 0.1, np.float32)
    _, _, (_, _, _, sums), *_ = native.observe([part(X)], 1, 2, 1.0, TABLE_CELLS, True)
    np.testing.assert_allclose(sums[0], 200_000 * float(np.float32(0.1)), rtol=1e-14)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, -1.0, -1e-300])
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_first_bad_cell_is_named(bad, n_threads, order):
    X = np.ones((120_000, 6), order=order)
    X[50_001, 4] = X[50_001, 2] = X[110_000, 0] = bad
    X[7, 5] = np.nan
    got = native.observe([part(X)], 1, n_threads, 1.0, TABLE_CELLS, False)
    negative, infinite = got[5:]
    found = infinite if np.isinf(bad) else negative
    assert found == (3, 50_001, 2, bad)
    assert (negative if np.isinf(bad) else infinite)[0] == 0


@given(tables(max_rows=20, max_cols=20), st.integers(0, 2**31))
def test_bad_cells_are_counted_alike(X, seed):
    rng = np.random.default_rng(seed)
    bad = rng.choice([np.inf, -np.inf, -2.0], X.shape)
    X = np.where(rng.random(X.shape) < 0.1, bad, X)
    got, expected = observe_both([part(X)])
    assert tuple(got[5]) == tuple(expected[5])
    assert tuple(got[6]) == tuple(expected[6])


@pytest.mark.parametrize("scale", [0.25, 2.0**-300, 2.0**200])
def test_scale_by_a_power_of_two_is_exact(scale):
    X = make_table("few patterns", 90, 6, seed=10)
    one, other = (
        native.observe([part(X)], 1, 1, s, TABLE_CELLS, False) for s in (1.0, scale)
    )
    np.testing.assert_array_equal(other[0], one[0] * scale)
    np.testing.assert_array_equal(other[2][3], one[2][3] * scale)


@pytest.mark.parametrize("shape", [(2, 1), (1, 2), (5000, 70)])
def test_overflow_is_told(shape):
    X = np.full(shape, 1.7e308)
    for cells in (TABLE_CELLS, 0):
        got, expected = observe_both([part(X)], cells=cells)
        assert got[4]
        assert expected[4]


def test_arrays_the_kernel_cannot_read_are_refused():
    for parts in (
        [],
        [part(np.ones(3))],
        [part(np.ones((2, 2), np.complex128))],
        [part(np.ones((2, 2), np.float16))],
        [part(np.ones((2, 2)), np.zeros((2, 3), bool))],
        [part(np.ones((2, 2)), np.zeros((2, 2)))],
        [part(np.ones((9, 1)), None, np.zeros(1, np.uint8))],
        [part(np.ones((2, 2))), part(np.ones((3, 2)))],
        [part(np.ones((2, 2)), group=1)],
    ):
        with pytest.raises((ValueError, TypeError)):
            native.observe(parts, 1, 1, 1.0, TABLE_CELLS, False)


def test_the_interpreter_is_free_during_the_pass():
    X = np.ones((1_000_000, 10))
    done = threading.Event()
    ticks = 0

    def run():
        for _ in range(3):
            native.observe([part(X)], 1, 1, 1.0, TABLE_CELLS, False)
        done.set()

    thread = threading.Thread(target=run)
    thread.start()
    while not done.is_set():
        ticks += 1
    thread.join()
    assert ticks > 100


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_expand_rows(dtype, n_threads):
    rng = np.random.default_rng(11)
    sums = rng.uniform(size=400_000)
    ids = rng.integers(0, 200, len(sums)).astype(dtype)
    scale = rng.uniform(size=200)
    got, expected = sums.copy(), sums.copy()
    native.expand_rows(got, ids, scale, n_threads)
    reference.expand_rows(expected, ids, scale, 1)
    np.testing.assert_array_equal(got, expected)


# ---------------------------------------------------------------------- reduce
def statistics_of(X):
    _, _, found, *_ = reference.observe([part(X)], 1, 1, 1.0, TABLE_CELLS, True)
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


@given(
    n=st.integers(1, 60),
    m=st.integers(1, 70),
    n_problems=st.integers(1, 40),
    holes=st.sampled_from([0.0, 0.2, 0.7]),
    n_threads=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
def test_scale_many_margins_together(n, m, n_problems, holes, n_threads, seed):
    rng = np.random.default_rng(seed)
    mask = rng.random((n, m)) >= holes
    mask[0] = mask[:, 0] = True
    second = int(rng.integers(n + 1))
    one, two = (np.where(mask, rng.random((n, m)) + 0.1, 0.0) for _ in range(2))
    sums = np.stack([one.sum(axis=1), two.sum(axis=1)], axis=1)
    coef = rng.choice([0.0, 0.5, 3.0], (4, n_problems))
    coef[0] += 0.1
    ahead, behind = slice(second), slice(second, n)
    col_sums = sum(
        coef[2 * k + c][:, None] * (one, two)[c][lines].sum(axis=0)
        for k, lines in enumerate((ahead, behind))
        for c in range(2)
    )
    if not (col_sums.max(axis=1) > 0).all():
        return
    bits = reference.pack_bits(mask)
    start = col_sums / col_sums.max(axis=1, keepdims=True)
    given_ = (bits, sums, second, coef, col_sums, start, 1e-10, 500, n_threads)
    (h, gap), (expected_h, expected_gap) = (
        k.scale_together(*given_) for k in (native, reference)
    )
    np.testing.assert_array_equal(gap <= 1e-10, expected_gap <= 1e-10)
    done = gap <= 1e-10
    scale = h[done].max(axis=1, keepdims=True)
    expected_scale = expected_h[done].max(axis=1, keepdims=True)
    np.testing.assert_allclose(
        h[done] / scale, expected_h[done] / expected_scale, rtol=1e-6, atol=1e-12
    )


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


def test_scale_together_does_not_subtract_what_would_cancel():
    """One column holds nearly all; a line that misses it must keep its digits."""
    mask = np.ones((4, 3), bool)
    mask[3, 0] = False
    X = np.array([[1e12, 1, 2], [1e12, 2, 1], [1e12, 1, 1], [0, 3, 4]])
    sums = np.stack([X.sum(axis=1), np.zeros(4)], axis=1)
    coef = np.array([[1.0], [0.0], [0.0], [0.0]])
    col_sums = X.sum(axis=0)[None]
    bits = reference.pack_bits(mask)
    h, gap = native.scale_together(
        bits, sums, 4, coef, col_sums, col_sums / col_sums.max(), 1e-9, 100, 1
    )
    assert gap[0] <= 1e-9
    w = sums[:, 0] / (mask @ h[0])
    np.testing.assert_allclose((mask * np.outer(w, h[0])).sum(axis=0), X.sum(axis=0))


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


# ------------------------------------------------------------------------ bits
@given(st.integers(1, 30), st.integers(1, 200), st.integers(0, 2**31))
def test_bits_there_and_back(n, m, seed):
    observed = make_mask("at random", n, m, seed)
    packed = reference.pack_bits(observed)
    assert packed.dtype == np.uint64
    assert packed.shape == (n, -(-m // 64))
    np.testing.assert_array_equal(reference.unpack_bits(packed, m), observed)
    i, j = n - 1, m - 1
    assert bool(int(packed[i, j // 64]) >> (j % 64) & 1) == observed[i, j]


# ----------------------------------------------------------------- the choice
def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_numpy_kernel_can_be_chosen():
    code = "import a1gm._kernel as k; print(k.is_compiled, k.kernel.__name__)"
    assert run(code, A1GM_KERNEL="numpy").stdout.split() == [
        "False",
        "a1gm._kernel.reference",
    ]
    assert run(code, A1GM_KERNEL="").stdout.split()[0] == "True"


def test_a_broken_kernel_is_told_once():
    code = """
import sys, warnings
sys.modules["a1gm._kernel._native"] = None
import numpy as np, a1gm
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for _ in range(3):
        a1gm.fit(np.ones((2, 2)))
print([w.category.__name__ for w in said])
"""
    result = run(code, A1GM_KERNEL="")
    assert result.stdout.strip() == "['SlowKernelWarning']", result.stderr


def test_say_if_slow_says_it_once(monkeypatch):
    monkeypatch.setattr(_kernel, "_why_slow", "no compiler")
    with pytest.warns(SlowKernelWarning, match=r"no compiler.*A1GM_KERNEL=numpy"):
        _kernel.say_if_slow()
    _kernel.say_if_slow()


def test_threads_as_asked_for_and_at_least_one():
    assert _kernel.threads_for(10**9, 3) == 3
    assert _kernel.threads_for(10, None) >= 1
    assert _kernel.threads_for(10**9, None) >= 1
