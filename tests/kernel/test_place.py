"""Rows placed by column factors: the compiled kernel against the definitions."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
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


def targets_like(parts, dtype="f8", order="K"):
    return [np.full_like(p[0], -1.0, dtype=dtype, order=order) for p in parts]


def cells_and_factors(parts, h):
    """Cells of the table, and the factors of its rows."""
    X = read_rows(parts)
    with np.errstate(all="ignore"):
        return X, np.nansum(X, axis=1) / np.where(np.isnan(X), 0.0, h).sum(axis=1)


def filled_by_hand(X, w, h, otherwise):
    filled = np.where(np.isnan(X), w[:, None] * h, X)
    empty = np.isnan(w)
    filled[empty] = otherwise
    return filled, (int(empty.sum()), int(empty.argmax()) if empty.any() else -1)


def pearson_by_hand(X, w, h):
    f = w[:, None] * h
    own = ~np.isnan(X) & (f > 0.0)
    return ((X - f)[own] * ((X - f)[own] / f[own])).sum()


def assert_same(parts, h, *, targets=targets_like, threads=1):
    """Compare all functions with their definitions; return the filled columns."""
    otherwise = np.where(np.arange(len(h)) % 2, nan, 7.0)
    X, w = cells_and_factors(parts, h)
    found = native.row_factors(parts, h, False, threads)
    np.testing.assert_allclose(found, w, rtol=SAME)
    outs = targets(parts)
    expected, empty = filled_by_hand(X, w, h, otherwise)
    assert native.fill_rows(parts, h, otherwise, outs, False, threads) == empty
    at = 0
    for out in outs:
        width = 1 if out is None else out.shape[1]
        if out is not None:
            rtol = 1e-6 if out.dtype == np.float32 else SAME
            np.testing.assert_allclose(out, expected[:, at : at + width], rtol=rtol)
            assert not np.signbit(out[out == 0.0]).any()
        at += width
    ours, factors = native.divergence(parts, h, threads)
    theirs, _ = reference.divergence(parts, h, threads)
    assert ours == pytest.approx(theirs, rel=1e-12, abs=1e-14 * np.nansum(X))
    assert factors == pytest.approx(np.nansum(w), rel=1e-11)
    ours, factors = native.pearson(parts, h, False, threads)
    assert ours == pytest.approx(pearson_by_hand(X, w, h), rel=1e-11)
    assert factors == pytest.approx(np.nansum(w), rel=1e-11)
    assert_same_squares(parts, threads)
    return outs


def assert_same_squares(parts, threads, scale=1.0):
    """Compare the sums of squares over the rows' sums."""
    n = len(parts[0][0])
    sums = native.row_factors(
        parts, np.ones(sum(p[0].shape[1] for p in parts)), True, 1
    )
    if sums is None:
        return
    sums, lines = np.nan_to_num(sums) * scale, (np.arange(n) % 3).astype(np.int32)
    args = parts, sums, lines, 4, scale, threads
    ours, theirs = native.square_sums(*args), reference.square_sums(*args)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    assert not ours[3].any()


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


@pytest.mark.parametrize("target", ["f8", "f4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_targets_of_other_layouts(target, order):
    X, h = make_table(150, 11)
    for table in (X, np.asfortranarray(X), X.astype("f4")):

        def targets(parts):
            return targets_like(parts, target, order)

        def columns(parts):
            cells = np.full_like(X, -1.0, target, order)
            return [None if j % 5 == 1 else cells[:, j : j + 1] for j in range(11)]

        assert_same([part(table)], h, targets=targets)
        assert_same([part(table)], h, targets=columns)
        split = [part(table[:, :4]), part(table[:, 4:5]), part(table[:, 5:])]
        assert_same(split, h, targets=columns)


def test_masks_and_validity_bits():
    X, h = make_table(300, 6)
    mask = np.random.default_rng(1).random(X.shape) < 0.2
    assert_same([part(X, mask)], h)
    bits = [
        np.packbits(~m, bitorder="little") for m in np.pad(mask, ((5, 0), (0, 0))).T
    ]
    columns = [np.ascontiguousarray(x)[:, None] for x in X.T]
    parts = [part(x, None, b, 5) for x, b in zip(columns, bits, strict=True)]
    for some in (parts, [*parts[:3], part(columns[3].astype("f4")), *parts[4:]]):
        assert_same(some, h)


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
    for threads in (1, 2):
        outs = assert_same(parts, rng.random(6) + 0.1, threads=threads)
        if outs is not None:
            np.testing.assert_array_equal(
                np.hstack(outs)[valid[offset:]], X[valid[offset:]]
            )


def test_any_number_of_threads_gives_the_same_divergence():
    X, h = make_table(120_000, 20)
    for table in (X, np.asfortranarray(X)):
        for measure in (
            native.divergence,
            lambda p, h, k: native.pearson(p, h, False, k),
        ):
            found = {measure([part(table)], h, k) for k in (1, 2, 5)}
            assert len(found) == 1
        outs = assert_same([part(table)], h, threads=3)
        w = native.row_factors([part(table)], h, False, 2)
        filled = np.where(np.isnan(X), w[:, None] * h, X)
        known = ~np.isnan(w)
        np.testing.assert_array_equal(outs[0][known], filled[known])


def test_a_table_may_be_filled_in_place():
    for order in "CF":
        X, h = make_table(2000, 20)
        X = np.asarray(X, order=order)
        expected = assert_same([part(X)], h)[0]
        otherwise = np.where(np.arange(20) % 2, nan, 7.0)
        native.fill_rows([part(X)], h, otherwise, [X], False, 2)
        np.testing.assert_array_equal(X, expected)


@pytest.mark.parametrize("bad", [-1.0, np.inf, -np.inf, 1e308])
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_is_out_of_range_is_declined(bad, order):
    X, h = make_table(200, 7)
    X[150, 2:4] = bad
    X, out = np.asarray(X, order=order), np.empty_like(X)
    otherwise = np.full(7, nan)
    assert native.row_factors([part(X)], h, False, 1) is None
    assert native.fill_rows([part(X)], h, otherwise, [out], False, 1) is None
    assert native.divergence([part(X)], h, 1) is None
    assert reference.divergence([part(X)], h, 1) is None
    assert native.pearson([part(X)], h, False, 1) is None
    takes = native.row_factors([part(X)], h, True, 1)
    assert (takes is not None) == (bad == -1.0)


def test_factors_out_of_range_are_declined():
    h = np.array([1e-10, 1.0])
    tiny = [part(np.array([[nan, 5e-310]]))]
    huge = [part(np.array([[1e300, nan]]))]
    single = [part(np.array([[1e-4, nan]]))]
    otherwise = np.full(2, nan)
    assert native.row_factors(tiny, h, False, 1) is None
    assert native.row_factors(huge, h, False, 1) is None
    out = np.empty((1, 2), np.float32)
    assert native.fill_rows(single, h, otherwise, [out], False, 1) == (0, -1)
    single = [part(np.array([[1e30, nan]]))]
    assert native.fill_rows(single, h, otherwise, [out], False, 1) is None


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
    h = np.array([0.25, 0.75])
    if not 1e-290 < y < 1e290:
        return
    w = (x + y) / 1.0
    expected = exact(x, w * 0.25) + exact(y, w * 0.75)
    for rows in (1, 9):  # the loops of four, and the rest
        X = np.tile([x, y], (rows, 1))
        for order in "CF":
            found, _ = native.divergence([part(np.asarray(X, order=order))], h, 1)
            assert found >= 0.0
            # The rounding of w alone moves the answer by so much of x + y.
            assert found / rows == pytest.approx(
                float(expected), rel=1e-13, abs=1e-15 * abs(x + y)
            )


def test_ratios_beyond_float64_are_right(kernel):
    """x / f overflows, or underflows: their logarithms do not."""
    X = np.array([[1e-300, 1e300], [1e300, 1e-300]])
    h = np.array([0.5, 0.5])
    found, _ = kernel.divergence([part(X)], h, 1)
    w = 1e300
    expected = 2 * (exact(1e-300, w * 0.5) + exact(1e300, w * 0.5))
    assert found == pytest.approx(float(expected), rel=1e-14)
    h = np.array([1e-300, 1.0])
    X = np.array([[1e100, 1e-100]])
    expected = exact(1e100, Decimal(X[0, 0]) * Decimal(h[0])) + exact(1e-100, 1e100)
    assert kernel.divergence([part(X)], h, 1)[0] == pytest.approx(float(expected))


def test_zeros_add_what_is_fitted_there(kernel):
    X = np.array([[0.0, 3.0, nan], [0.0, 0.0, 0.0], [nan, nan, nan]])
    h = np.array([0.5, 0.25, 0.25])
    w = 3.0 / 0.75
    expected = Decimal(w * 0.5) + exact(3.0, w * 0.25)
    assert kernel.divergence([part(X)], h, 1)[0] == pytest.approx(float(expected))


# ------------------------------------------------------------------ the other sums
def test_cells_without_a_positive_fit_have_no_part_in_pearson():
    X = np.array([[1.0, -3.0], [0.0, 0.0], [2.0, 2.0]])
    h = np.array([0.5, 0.5])
    found, _ = native.pearson([part(X)], h, True, 1)
    assert found == 0.0  # the first row sums to less than 0, the second to 0
    assert native.pearson([part(X)], h, False, 1) is None


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_squares_are_their_definition(kernel, scale):
    X = np.array([[1.0, 3.0], [nan, 2.0], [0.0, 0.0], [4.0, nan]])
    lines = np.array([0, 1, 0, 1], np.int32)
    sums = scale * np.array([4.0, 2.0, 0.0, 4.0])
    found = kernel.square_sums([part(X)], sums, lines, 2, scale, 1)
    np.testing.assert_allclose(found, scale * np.array([[0.25, 2.25], [4.0, 2.0]]))


def test_rows_without_a_positive_sum_have_no_squares(kernel):
    X = np.array([[1.0, -1.0], [1.0, 1.0]])
    lines, sums = np.array([0, 1], np.int32), X.sum(axis=1)
    found = kernel.square_sums([part(X)], sums, lines, 2, 1.0, 1)
    np.testing.assert_array_equal(found, [[nan, nan], [0.5, 0.5]])
