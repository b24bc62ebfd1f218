"""One pass over rows of any layout, type and mark of a hole: compiled against NumPy."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.kernels import (
    TABLE_CELLS,
    assert_same_observation,
    native,
    needs_native,
    observe_both,
    part,
)
from support.tables import make_table, tables

from a1gm._base.bits import unpack_bits
from a1gm._kernel import reference

pytestmark = needs_native

DTYPES = ["f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"]
WIDTHS = [1, 3, 5, 20, 40, 64, 70, 130]
MANY = 1 << 30  # cells of a pattern table: always kept


def observe_alike(*tables, **options):
    """Observe by both kernels; return what the compiled one found."""
    parts = [x if isinstance(x, tuple) else part(x) for x in tables]
    got, expected = observe_both(parts, **options)
    assert_same_observation(got, expected)
    return got


def observe(X, n_threads=1, *, keep_table=False):
    return native.observe([part(X)], n_threads, TABLE_CELLS, keep_table)


@given(
    tables(max_rows=40, max_cols=40, zeros=0.2),
    st.sampled_from(["f8", "f4", "i4", "?"]),
    st.permutations(range(4)),
)
def test_any_table_mask_and_order_of_parts(X, dtype, order):
    hidden = np.isnan(X)
    values = np.where(hidden, -3.0, np.ceil(X)).astype(dtype)
    whole = np.arange(1, 1 + X.size, dtype=np.int16).reshape(X.shape)
    masked = part(np.where(hidden, np.inf, X), hidden)
    parts = [X, part(values, hidden), np.asfortranarray(whole), masked]
    for some in (*([x] for x in parts), [parts[k] for k in order]):
        observe_alike(*some)
    observe_alike(part(values[::-1, ::-1], hidden[::-1, ::-1]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_cols", [*range(1, 40), 63, 64, 65, 127, 128, 129, 200])
def test_observe_any_width(n_cols, dtype):
    X = make_table("at random", 70, n_cols, seed=n_cols, zeros=0.1).astype(dtype)
    observe_alike(X)
    if n_cols > 8:  # below, patterns repeat, and the wide form is a matter of taste
        observe_alike(X, cells=0)


@given(
    widths=st.lists(st.integers(1, 35), min_size=1, max_size=3),
    bad=st.sampled_from([0.0, np.nan, np.inf, -np.inf, -1.0]),
    n_bad=st.integers(0, 3),
    seed=st.integers(0, 1000),
)
def test_long_tables_with_few_holes(widths, bad, n_bad, seed):
    """Complete rows are read in a shorter way, until a cell shows that they are not."""
    rng = np.random.default_rng(seed)
    tables = [rng.random((400, width)) for width in widths]
    for _ in range(n_bad):
        X = tables[rng.integers(len(tables))]
        X[rng.integers(150, 400), rng.integers(X.shape[1])] = bad
    got, expected = observe_both([part(X) for X in tables])
    if np.isinf(bad):  # the sums are of no use
        assert [*map(tuple, got[4:])] == [*map(tuple, expected[4:])]
    else:
        assert_same_observation(got, expected)


@pytest.mark.parametrize("n_rows", [3_000, 6_000])
def test_patterns_that_share_a_place(n_rows):
    """More patterns than the cache in front of their table has places."""
    rng = np.random.default_rng(0)
    holes = rng.random((500, 12)) < 0.4
    X = rng.random((n_rows, 12))
    X[holes[rng.integers(500, size=n_rows)]] = np.nan
    observe_alike(X)
    observe_alike(X.astype(np.float32))
    observe_alike(*X.T.copy()[:, :, None])


@pytest.mark.parametrize("n_threads", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["few patterns", "at random", "complete"])
def test_observe_gives_the_same_for_any_number_of_threads(kind, n_threads):
    X = make_table(kind, 60_000, 12, seed=5)
    X[::7001, 3] = np.nan
    assert_same_observation(observe(X, n_threads), observe(X))
    X = make_table("at random", 2_000, 300, seed=6, zeros=0.05)
    assert observe_alike(X, n_threads=n_threads, cells=10_000)[1]


@pytest.mark.parametrize("n_patterns", [256, 257, 65_536, 65_537])
def test_pattern_numbers_of_every_width(n_patterns):
    n_cols = 17
    keys = np.arange(n_patterns, dtype=np.uint32)[:, None]
    observed = ((keys >> np.arange(n_cols, dtype=np.uint32)) & 1).astype(bool)
    X = np.where(observed, 1.0 + np.arange(n_cols), np.nan)
    ids, packed, counts, sums = native.observe([part(X)], 2, MANY, True)[2]
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
    observed = unpack_bits(keys, 128)
    X = np.where(observed, rng.uniform(1.0, 2.0, observed.shape), np.nan)
    assert len(observe_alike(np.vstack([X, X]))[2][1]) == 300


@pytest.mark.parametrize("shape", [(100_000, 3), (7, 30_000), (3_000, 90)])
def test_sums_are_no_worse_than_pairwise(shape):
    rng = np.random.default_rng(9)
    X = rng.uniform(0.0, 1.0, shape) * 10.0 ** rng.integers(-8, 8, shape)
    row_sums, _, (_, _, _, sums), *_ = observe(X, 2, keep_table=True)
    for got, lines, numpy_sums in (
        (row_sums, X, X.sum(axis=1)),
        (sums[0], X.T, np.ascontiguousarray(X.T).sum(axis=1)),
    ):
        exact = np.array([math.fsum(line) for line in lines[:200]])
        ours = np.abs(got[:200] - exact) / exact
        pairwise = np.abs(numpy_sums[:200] - exact) / exact
        assert ours.max() <= max(2.0 * pairwise.max(), 4e-16)


def test_sums_of_float32_are_made_in_float64():
    X = np.full((200_000, 2), 0.1, np.float32)
    sums = observe(X, 2, keep_table=True)[2][3]
    np.testing.assert_allclose(sums[0], 200_000 * float(np.float32(0.1)), rtol=1e-14)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, -1.0, -(2.0**-140)])
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_first_bad_cell_is_named(bad, n_threads, order, dtype):
    X = np.ones((120_000, 6), dtype, order=order)
    X[50_001, 4] = X[50_001, 2] = X[110_000, 0] = bad
    X[7, 5] = np.nan
    *_, negative, infinite = observe(X, n_threads)
    found, other = (infinite, negative) if np.isinf(bad) else (negative, infinite)
    assert found == (3, 50_001, 2, bad)
    assert other[0] == 0


@given(tables(max_rows=20, max_cols=20), st.integers(0, 2**31))
def test_bad_cells_are_counted_alike(X, seed):
    rng = np.random.default_rng(seed)
    bad = rng.choice([np.inf, -np.inf, -2.0], X.shape)
    X = np.where(rng.random(X.shape) < 0.1, bad, X)
    got, expected = observe_both([part(X)])
    assert [*map(tuple, got[4:])] == [*map(tuple, expected[4:])]


@pytest.mark.parametrize("shape", [(2, 1), (1, 2), (5000, 70)])
@pytest.mark.parametrize("cells", [TABLE_CELLS, 0])
def test_sums_beyond_the_range_are_told(shape, cells):
    for x, is_right in ((1e137, True), (1e-140, True), (2e140, False), (1e-143, False)):
        X = np.full(shape, np.nan)
        X[-1] = x
        X[0, 0] = 1.0 if shape[0] > 1 else x
        for found in observe_both([part(X)], cells=cells):
            assert found[3] == is_right
    X = np.array([[1e141, -1e141, 1.0]])
    assert not any(found[3] for found in observe_both([part(X)], cells=cells))


def test_the_interpreter_is_free_during_the_pass():
    X = np.ones((1_000_000, 10))
    ticks, during = 0, []

    def run():
        while len(during) < 300 and max(during, default=0) < 100:  # a busy machine
            before = ticks
            observe(X)
            during.append(ticks - before)

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive():
        ticks += 1
    assert max(during) >= 100


@pytest.mark.parametrize("n_threads", [1, 3])
def test_expand_rows(n_threads):
    rng = np.random.default_rng(11)
    sums = rng.uniform(size=400_000)
    ids = rng.integers(0, 200, len(sums), np.int32)
    scale = rng.uniform(size=200)
    got, expected = sums.copy(), sums.copy()
    native.expand_rows(got, ids, scale, n_threads)
    reference.expand_rows(expected, ids, scale, 1)
    np.testing.assert_array_equal(got, expected)


# ------------------------------------------------------------- layouts and holes
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "view",
    [
        np.ascontiguousarray,
        np.asfortranarray,
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
def test_every_dtype_and_any_strides(dtype, view):
    X = np.random.default_rng(4).integers(0, 100, (40, 20)).astype(dtype)
    if dtype.startswith("f"):
        X[3, ::2] = X[::5, 1] = np.nan
    copied = observe(np.ascontiguousarray(view(X)))
    assert_same_observation(observe_alike(view(X)), copied)


@given(*(st.integers(*ends) for ends in ((1, 200), (0, 70), (1, 5), (0, 2**31))))
def test_observe_validity_bitmaps(n, offset, n_cols, seed):
    rng = np.random.default_rng(seed)
    parts = []
    for k in range(n_cols):
        bits = rng.random(offset + n + 13) < 0.7
        bitmap = np.packbits(bits, bitorder="little")
        values = rng.integers(0, 50, (n, 1)).astype(["f8", "i4", "f4"][k % 3])
        parts.append(part(values, None, bitmap, offset))
    observe_alike(*parts)


LAYOUTS = {
    "plain": np.ascontiguousarray,
    "float32": np.float32,
    "fortran": np.asfortranarray,
    "strided": lambda cells: np.repeat(cells, 2, axis=0)[::2],
}


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 200),
    widths=st.lists(st.sampled_from(WIDTHS), min_size=1, max_size=4),
    layout=st.sampled_from([*LAYOUTS]),
    wide=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_parts(seed, n, widths, layout, wide):
    rng, parts = np.random.default_rng(seed), []
    for width in widths:
        cells = rng.random((n, width))
        cells[rng.random((n, width)) < rng.choice([0.0, 0.01, 0.3])] = np.nan
        cells[rng.random((n, width)) < 0.05] = 0.0
        parts.append(part(LAYOUTS[layout](cells)))
    got, expected = observe_both(parts, n_threads=2, cells=0 if wide else MANY)
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-13)
    if got[1] == expected[1]:  # the compiled one decides before it has seen all rows
        assert_same_observation(got, expected)


@pytest.mark.parametrize("n_rows", [1, 7, 9])
@pytest.mark.parametrize("n_cols", [150, 154, 400])
def test_a_wide_matrix_stored_by_columns_is_read_by_rows(n_rows, n_cols):
    rng = np.random.default_rng(n_cols)
    X = rng.integers(0, 9, (n_rows, n_cols)).astype(float)
    X[rng.random(X.shape) < 0.3] = np.nan
    room = np.full((n_rows + 3, 2 * n_cols), np.inf, order="F")
    room[2 : n_rows + 2, ::2] = X  # columns with a gap, which begin anywhere
    cells = room[2 : n_rows + 2, ::2]
    for table_cells in (0, MANY):
        assert_same_observation(*observe_both([part(cells)], cells=table_cells))
