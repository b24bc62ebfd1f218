"""Rows placed by column factors: the compiled kernel against the definitions."""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.kernels import native, needs_native, part
from support.tables import tables

from a1gm._kernel import reference
from a1gm._kernel.reference.passes import read_rows

pytestmark = needs_native

SAME = 1e-13  # the order of a few thousand additions
nan = np.nan
WIDTHS = [1, 2, 3, 4, 5, 8, 20, 33, 64, 130, 5000]
DTYPES = ["f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"]


def make_table(n, m, seed=0, dtype="f8"):
    rng = np.random.default_rng(seed)
    X = (rng.random((n, m)) * 100).astype(dtype)
    if X.dtype.kind == "f":
        X[rng.random(X.shape) < 0.3] = nan
        X[rng.random(X.shape) < 0.1] = 0.0
        X[n // 2] = nan
    return X, rng.random(m) + 0.01


def targets_like(parts, order="K"):
    return [np.full_like(p[0], -1.0, dtype="f8", order=order) for p in parts]


def len_of(out):
    return 1 if out is None else out.shape[1]


def assert_same(parts, h, *, targets=targets_like, threads=1):
    """Compare all functions with their definitions; return the filled columns."""
    X, outs = read_rows(parts), targets(parts)
    with np.errstate(all="ignore"):
        w = np.nansum(X, axis=1) / np.where(np.isnan(X), 0.0, h).sum(axis=1)
    found = native.row_factors(parts, h, False, threads)
    np.testing.assert_allclose(found, w, rtol=SAME)
    fitted, empty = w[:, None] * h, np.isnan(w)
    expected = np.where(np.isnan(X), fitted, X)
    expected[empty] = otherwise = np.where(np.arange(len(h)) % 2, nan, 7.0)
    n_empty, first = empty.sum(), empty.argmax() if empty.any() else -1
    *found, holes = native.fill_rows(parts, h, otherwise, outs, False, threads)
    assert found == [n_empty, first]
    asked = np.repeat([out is not None for out in outs], [len_of(out) for out in outs])
    has_holes = np.isnan(X).any(axis=0)
    np.testing.assert_array_equal(np.isnan(holes)[asked], has_holes[asked])
    at = 0
    for out in outs:
        width = len_of(out)
        if out is not None:
            np.testing.assert_allclose(out, expected[:, at : at + width], rtol=SAME)
            assert not np.signbit(out[out == 0.0]).any()
        at += width
    ours, factors = native.divergence(parts, h, threads)
    theirs, _ = reference.divergence(parts, h, threads)
    assert ours == pytest.approx(theirs, rel=1e-12, abs=1e-14 * np.nansum(X))
    assert factors == pytest.approx(np.nansum(w), rel=1e-11)
    own = ~np.isnan(X) & (fitted > 0.0)
    off, fitted = (X - fitted)[own], fitted[own]
    ours, factors = native.pearson(parts, h, False, threads)
    assert ours == pytest.approx((off * (off / fitted)).sum(), rel=1e-11)
    assert factors == pytest.approx(np.nansum(w), rel=1e-11)
    lines = (np.arange(len(X)) % 3).astype(np.int32)
    args = parts, np.nansum(X, axis=1), lines, 4, threads
    ours, theirs = native.square_sums(*args), reference.square_sums(*args)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    assert not ours[3].any()
    return outs


@pytest.mark.parametrize("m", WIDTHS)
@pytest.mark.parametrize("n", [1, 3, 64, 1100])
def test_every_width(n, m):
    X, h = make_table(n if m < 1000 else min(n, 70), m)
    for table in (X, np.asfortranarray(X), X[:, ::-1], X[::-1]):
        assert_same([part(table)], h)


@pytest.mark.parametrize("threads", [1, 2])
def test_long_columns_that_begin_anywhere(threads):
    X, h = make_table(180_001, 6)  # written past the caches

    def targets(_):
        memory = [np.full(180_006, -1.0) for _ in range(6)]
        return [own[j : j + 180_001, None] for j, own in enumerate(memory)]

    columns = [part(np.ascontiguousarray(X[:, j : j + 1])) for j in range(6)]
    filled = assert_same(columns, h, targets=targets, threads=threads)
    for j, column in enumerate(filled):  # nothing beside them
        assert (column.base[:j] == -1.0).all()
        assert (column.base[j + 180_001 :] == -1.0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_dtype(dtype, order):
    X, h = make_table(90, 9, dtype=dtype)
    assert_same([part(np.asarray(X, order=order))], h)
    assert_same([part(X[:, j : j + 1]) for j in range(9)], h)


@pytest.mark.parametrize("order", ["C", "F"])
def test_targets_of_other_layouts(order):
    X, h = make_table(150, 11)

    def columns(parts):
        cells = np.full_like(X, -1.0, order=order)
        return [None if j % 5 == 1 else cells[:, j : j + 1] for j in range(11)]

    whole = partial(targets_like, order=order)
    for table in (X, np.asfortranarray(X), X.astype("f4")):
        assert_same([part(table)], h, targets=whole)
        assert_same([part(table)], h, targets=columns)
        split = [part(table[:, :4]), part(table[:, 4:5]), part(table[:, 5:])]
        assert_same(split, h, targets=columns)


def test_masks():
    X, h = make_table(300, 6)
    assert_same([part(X, np.random.default_rng(1).random(X.shape) < 0.2)], h)


@pytest.mark.parametrize("n_rows", [1, 3, 63, 64, 65, 131, 9000])
@pytest.mark.parametrize("offset", [0, 3, 8, 61])
def test_nulls_hide_whatever_is_stored(n_rows, offset):
    rng = np.random.default_rng(offset)
    valid = rng.random((n_rows + offset, 6)) < 0.8
    X = rng.random((n_rows, 6)) + 0.1
    X[~valid[offset:]] = rng.choice([nan, np.inf, -1.0], (~valid[offset:]).sum())
    bits = np.packbits(valid, axis=0, bitorder="little").T.copy()
    columns = np.ascontiguousarray(X.T)[:, :, None]
    parts = [part(x, None, b, offset) for x, b in zip(columns, bits, strict=True)]
    X[~valid[offset:]] = nan
    parts[2] = part(np.ascontiguousarray(X[:, 2:3]))
    parts[3] = part(np.ascontiguousarray(X[:, 3:4], np.float32))
    for threads in (1, 2):
        outs = assert_same(parts, rng.random(6) + 0.1, threads=threads)
        seen = valid[offset:]
        np.testing.assert_allclose(np.hstack(outs)[seen], X[seen], rtol=1e-7)


@pytest.mark.parametrize("order", ["C", "F"])
def test_any_number_of_threads_gives_the_same_and_may_fill_in_place(order):
    X, h = make_table(120_000, 20)
    X = np.asarray(X, order=order)
    assert len({native.divergence([part(X)], h, k) for k in (1, 2, 5)}) == 1
    assert len({native.pearson([part(X)], h, False, k) for k in (1, 2, 5)}) == 1
    [filled] = assert_same([part(X)], h, threads=3)
    w = native.row_factors([part(X)], h, False, 2)
    by_hand, known = np.where(np.isnan(X), w[:, None] * h, X), ~np.isnan(w)
    np.testing.assert_array_equal(filled[known], by_hand[known])
    otherwise = np.where(np.arange(20) % 2, nan, 7.0)
    native.fill_rows([part(X)], h, otherwise, [X], False, 2)
    np.testing.assert_array_equal(X, filled)


@pytest.mark.parametrize("bad", [-1.0, np.inf, -np.inf, 1e308])
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_is_out_of_range_is_declined(bad, order):
    X, h = make_table(200, 7)
    X[150, 2:4] = bad
    parts, out = [part(np.asarray(X, order=order))], np.empty_like(X)
    assert native.row_factors(parts, h, False, 1) is None
    assert native.fill_rows(parts, h, np.full(7, nan), [out], False, 1) is None
    assert native.divergence(parts, h, 1) is reference.divergence(parts, h, 1) is None
    assert native.pearson(parts, h, False, 1) is None
    assert (native.row_factors(parts, h, True, 1) is None) == (bad != -1.0)


def test_factors_out_of_range_are_declined():
    h = np.array([1e-10, 1.0])
    for row in ([nan, 5e-310], [1e300, nan]):
        assert native.row_factors([part(np.array([row]))], h, False, 1) is None


@given(tables(max_rows=20, max_cols=9, zeros=0.3), st.integers(0, 10**6))
def test_any_table(X, seed):
    h = np.random.default_rng(seed).random(X.shape[1]) + 1e-3
    assert_same([part(X)], h)
    assert_same([part(np.asfortranarray(X))], h)


# ----------------------------------------------------------------------- the divergence
def exact(x, f):
    with localcontext(prec=60):
        x, f = Decimal(x), Decimal(f)
        return f if x == 0 else x * (x / f).ln() - x + f


@given(
    st.floats(1e-290, 1e290),
    st.floats(1e-290, 1e290) | st.floats(0.999999, 1.000001),
    st.booleans(),
)
def test_two_cells_to_the_last_digits(x, ratio, is_near):
    """Row sums fix w, so two cells of a row give any x and f that we want."""
    y = x * ratio if is_near else ratio
    assume(1e-290 < y < 1e290)
    h, w = np.array([0.25, 0.75]), x + y
    # The rounding of w alone moves the answer by so much of x + y.
    expected = float(exact(x, w * 0.25) + exact(y, w * 0.75))
    expected = pytest.approx(expected, rel=1e-13, abs=1e-15 * w)
    for rows, order in product((1, 9), "CF"):  # the loops of four, and the rest
        X = np.asarray(np.tile([x, y], (rows, 1)), order=order)
        found, _ = native.divergence([part(X)], h, 1)
        assert found >= 0.0
        assert found / rows == expected


HUGE, SMALL = map(Decimal, (1e100, 1e-300))


@pytest.mark.parametrize(
    ("X", "h", "expected"),
    [
        # x / f overflows, or underflows: their logarithms do not.
        (
            [[1e-300, 1e300], [1e300, 1e-300]],
            [0.5, 0.5],
            2 * (exact(1e-300, 5e299) + exact(1e300, 5e299)),
        ),
        (
            [[1e100, 1e-100]],
            [1e-300, 1.0],
            exact(HUGE, HUGE * SMALL) + exact(1e-100, HUGE),
        ),
        # Zeros add what is fitted there; w is 4 in the first row.
        ([[0, 3, nan], [0, 0, 0], [nan] * 3], [0.5, 0.25, 0.25], 2 + exact(3.0, 1.0)),
    ],
)
def test_divergences_to_the_last_digits(kernel, X, h, expected):
    found, _ = kernel.divergence([part(np.array(X, float))], np.array(h), 1)
    assert found == pytest.approx(float(expected), rel=1e-14)


# ------------------------------------------------------------------ the other sums
def test_cells_without_a_positive_fit_have_no_part_in_pearson():
    X = np.array([[1.0, -3.0], [0.0, 0.0], [2.0, 2.0]])
    h = np.array([0.5, 0.5])
    found, _ = native.pearson([part(X)], h, True, 1)
    assert found == 0.0  # the first row sums to less than 0, the second to 0
    assert native.pearson([part(X)], h, False, 1) is None


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        ([[1, 3], [nan, 2], [0, 0], [4, nan]], [[0.25, 2.25], [4, 2]]),
        ([[1, -1], [1, 1]], [[nan, nan], [0.5, 0.5]]),  # a row without a positive sum
    ],
)
def test_squares_are_their_definition(kernel, X, expected):
    X = np.array(X, float)
    lines, sums = np.arange(len(X), dtype=np.int32) % 2, np.nansum(X, axis=1)
    found = kernel.square_sums([part(X)], sums, lines, 2, 1)
    np.testing.assert_allclose(found, expected, rtol=1e-15)


@pytest.mark.parametrize("order", ["C", "F"])
def test_columns_of_factor_0_hold_zeros_or_the_rows_are_declined(order):
    X = np.array([[2.0, 0.0, nan], [nan, 0.0, 3.0], [1.0, nan, 1.0]], order=order)
    parts = [part(X)] if order == "C" else [part(X[:, [j]]) for j in range(3)]
    h = np.array([0.5, 0.0, 0.5])
    np.testing.assert_array_equal(native.row_factors(parts, h, False, 1), [4, 6, 2])
    X[1, 1] = 1e-9  # held by a column of zeros
    parts = [part(X)] if order == "C" else [part(X[:, [j]]) for j in range(3)]
    assert native.row_factors(parts, h, False, 1) is None
    assert native.row_factors(parts, h, True, 1) is not None
