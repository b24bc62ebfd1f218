"""Cells of a table: missing, infinite, negative, signed zeros, large integers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import a1gm
from a1gm.exceptions import (
    DataError,
    InfiniteValuesError,
    NegativeValuesError,
)

nan, inf = np.nan, np.inf


def test_nan_is_missing_whatever_its_bits():
    X = np.array([[1.0, 2.0, 3.0], [2.0, nan, 6.0]])
    odd = X.copy()
    odd.view(np.uint64)[1, 1] = 0xFFF8_0000_DEAD_BEEF  # a NaN with sign and payload
    assert np.isnan(odd[1, 1])
    for one in (X, odd):
        np.testing.assert_allclose(a1gm.fit(one).impute(one)[1, 1], 4.0)


@pytest.mark.parametrize("bad", [inf, -inf])
@pytest.mark.parametrize("place", [(0, 0), (0, 6), (99, 0), (99, 6), (50, 3)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_infinite_cells_are_refused_with_their_place(bad, place, order, dtype):
    X = np.asarray(np.ones((100, 7)), order=order, dtype=dtype)
    X[place] = bad
    X[10, 1] = nan
    where = rf"X\[{place[0]}, {place[1]}\] = {bad}"
    with pytest.raises(InfiniteValuesError, match=where):
        a1gm.fit(X)
    with pytest.raises(InfiniteValuesError, match=where):
        a1gm.fit(X, negatives="allow")
    good = a1gm.fit(np.ones((100, 7)))
    with pytest.raises(InfiniteValuesError, match=where):
        good.transform(X)


def test_the_count_and_the_first_of_many():
    X = np.ones((300_000, 4))
    X[200_000:, 2] = inf
    with pytest.raises(InfiniteValuesError, match=r"X\[200000, 2\].*100000 in all"):
        a1gm.fit(X)
    with pytest.raises(InfiniteValuesError, match=r"X\[200000, 2\]"):
        a1gm.fit(np.ones((2, 4))).transform(X)


@pytest.mark.parametrize("bad", [-1, inf])
def test_bad_cells_are_named_by_their_labels(bad):
    frame = pd.DataFrame(np.ones((9, 3)), [f"r{i}" for i in range(9)], ["a", "b", "c"])
    frame.loc["r7", "c"] = bad
    with pytest.raises(DataError, match=rf"X\['r7', 'c'\] = {bad}"):
        a1gm.fit(frame)


def test_infinity_is_named_before_a_negative_cell():
    with pytest.raises(InfiniteValuesError, match=r"X\[1, 0\] = -inf"):
        a1gm.fit([[-1.0, 2.0], [-inf, 1.0]])


@pytest.mark.parametrize("bad", [-1.0, -1e-300, -5e-324, -1e308])
def test_negative_cells_are_refused(bad):
    X = np.array([[1.0, nan, 3.0], [4.0, bad, 6.0], [bad, 1.0, nan]])
    with pytest.raises(NegativeValuesError, match="Negative values in data") as told:
        a1gm.fit(X)
    text = str(told.value)
    assert f"X[1, 1] = {bad:g}" in text
    assert "2 in all" in text
    assert "negatives=" in text
    assert "missing_values" not in text  # fit has no such option
    assert isinstance(told.value, ValueError)
    with pytest.raises(NegativeValuesError, match=r"X\[1, 1\]"):
        a1gm.fit(np.ones((2, 3))).transform(X)


@pytest.mark.parametrize("shape", [(50, 3), (50, 20), (4000, 20), (300, 600)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_and_columns_of_minus_zeros(shape, dtype):
    X = np.random.default_rng(0).gamma(2.0, size=shape).astype(dtype)
    X[::7], X[:, -1] = -0.0, -0.0
    fit, streamed = a1gm.fit(X), a1gm.PatternTable().update(X).solve()
    several = a1gm.fit_nmmf(X, X[:3])
    for factor in (
        *(fit.row_factor, fit.col_factor, streamed.row_factor, streamed.col_factor),
        *(several.w, several.h, several.a),
    ):
        assert not np.signbit(factor).any()


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_integers_above_two_to_the_53(dtype):
    X = np.array([[2**60 + 1, 2**62], [2**53 + 1, 2**61]], dtype=dtype)
    fit, rounded = a1gm.fit(X), a1gm.fit(X.astype(np.float64))
    np.testing.assert_array_equal(fit.row_factor, rounded.row_factor)
    np.testing.assert_array_equal(fit.impute(X), X)


def test_python_integers_beyond_any_dtype():
    X = [[10**30, 2 * 10**30], [10**31, 2 * 10**31]]
    np.testing.assert_allclose(a1gm.fit(X).col_factor, [1 / 3, 2 / 3])
    with pytest.raises(DataError, match=r"X\[0, 1\]"):
        a1gm.fit([[1, 10**400], [1, 1]])


def test_advice_on_negative_cells_can_be_followed():
    frame = pd.DataFrame(
        {"r": [*"aabb"], "c": [*"xyxy"], "v": [1.0, -2.0, 3.0, 4.0], "w": 1.0}
    )
    with pytest.raises(NegativeValuesError) as told:
        a1gm.fit_long(frame, keys=["r", "c"], value="v", weights="w")
    assert "allow" not in str(told.value)  # it cannot be combined with weights
    with pytest.raises(NegativeValuesError, match="pass negatives='allow'"):
        a1gm.fit_long(frame, keys=["r", "c"], value="v")
    with pytest.raises(NegativeValuesError, match="negatives='allow'"):
        a1gm.PatternTable().update(np.array([[1.0, -2.0]]))
