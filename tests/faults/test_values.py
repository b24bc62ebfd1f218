"""Bad values, rows 1-10 of the list of faults: what each one gets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from support import oracles
from support.tables import make_table

import a1gm
from a1gm.exceptions import (
    DataError,
    InfiniteValuesError,
    NegativeValuesError,
    ParameterError,
)

nan, inf = np.nan, np.inf
pytestmark = [
    pytest.mark.filterwarnings("ignore::a1gm.exceptions.UndeterminedWarning"),
    pytest.mark.filterwarnings("ignore::a1gm.exceptions.EmptyLineWarning"),
]


# ------------------------------------------------------------------------ fault 1
def test_fault_01_nan_is_missing_whatever_its_bits():
    X = np.array([[1.0, 2.0, 3.0], [2.0, nan, 6.0]])
    odd = X.copy()
    odd.view(np.uint64)[1, 1] = 0xFFF8_0000_DEAD_BEEF  # a NaN with sign and payload
    assert np.isnan(odd[1, 1])
    for one in (X, odd):
        np.testing.assert_allclose(a1gm.fit(one).impute(one)[1, 1], 4.0)


@pytest.mark.parametrize("junk", [0.0, -1.0, inf, -inf, 1e308, 5e-324])
def test_fault_01_junk_under_a_mask_never_matters(junk):
    X = make_table("at random", 30, 9, seed=1)
    hidden = np.isnan(X)
    masked = np.ma.masked_array(np.where(hidden, junk, X), hidden)
    plain, other = a1gm.fit(X), a1gm.fit(masked)
    np.testing.assert_array_equal(plain.row_factor, other.row_factor)
    np.testing.assert_array_equal(plain.col_factor, other.col_factor)
    assert plain.divergence == other.divergence


# ------------------------------------------------------------------------ fault 2
@pytest.mark.parametrize("bad", [inf, -inf])
@pytest.mark.parametrize("place", [(0, 0), (0, 6), (99, 0), (99, 6), (50, 3)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_fault_02_infinite_cells_are_refused_with_their_place(bad, place, order, dtype):
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


def test_fault_02_the_count_and_the_first_of_many():
    X = np.ones((300_000, 4))
    X[200_000:, 2] = inf
    with pytest.raises(InfiniteValuesError, match=r"X\[200000, 2\].*100000 in all"):
        a1gm.fit(X)
    with pytest.raises(InfiniteValuesError, match=r"X\[200000, 2\]"):
        a1gm.fit(np.ones((2, 4))).transform(X)


def test_fault_02_infinity_is_named_before_a_negative_cell():
    with pytest.raises(InfiniteValuesError, match=r"X\[1, 0\] = -inf"):
        a1gm.fit([[-1.0, 2.0], [-inf, 1.0]])


# ------------------------------------------------------------------------ fault 3
@pytest.mark.parametrize("bad", [-1.0, -1e-300, -5e-324, -1e308])
def test_fault_03_negative_cells_are_refused(bad):
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


def test_fault_03_negative_integers_are_refused():
    with pytest.raises(NegativeValuesError, match=r"X\[0, 1\] = -2"):
        a1gm.fit(np.array([[1, -2], [3, 4]]))


def test_fault_03_negatives_may_be_allowed():
    X = np.array([[5.0, -1.0, 2.0], [3.0, 4.0, nan], [6.0, 2.0, 1.0]])
    fit = a1gm.fit(X, negatives="allow")
    fitted = np.where(np.isnan(X), 0.0, np.outer(fit.row_factor, fit.col_factor))
    for axis in (0, 1):
        np.testing.assert_allclose(
            fitted.sum(axis=axis), np.nansum(X, axis=axis), rtol=1e-10
        )
    assert np.isnan(fit.divergence)
    assert fit.attained


def test_fault_03_allowed_negatives_with_a_row_that_sums_to_zero():
    # Its factor is 0, and its cells still count in the sums of their columns.
    X = np.array([[1.0, -1.0, nan], [3.0, 4.0, 5.0], [5.0, 6.0, 7.0]])
    for table in (X, X.T):
        fit = a1gm.fit(table, negatives="allow")
        fitted = np.outer(fit.row_factor, fit.col_factor)
        fitted[np.isnan(table)] = 0.0
        for axis in (0, 1):
            np.testing.assert_allclose(
                fitted.sum(axis=axis), np.nansum(table, axis=axis), atol=1e-9
            )
        assert fit.converged


def test_fault_03_allowed_negatives_beside_an_empty_row(recwarn):
    X = np.array([[5.0, -1.0, 2.0], [3.0, 4.0, nan], [nan, nan, nan]])
    with pytest.warns(a1gm.exceptions.EmptyLineWarning, match="row 2"):
        fit = a1gm.fit(X, negatives="allow")
    assert fit.row_block.tolist() == [0, 0, -1]
    assert [w.category for w in recwarn] == []


HOLLOW = np.array([[nan, 5.0, 6.0], [7.0, nan, 8.0], [9.0, 4.0, nan]])


@pytest.mark.parametrize(
    "X",
    [
        [[5.0, 1.0], [-3.0, 2.0]],
        [[-4.0, 6.0], [3.0, 2.0]],
        [[5.0, nan], [-2.0, 10.0]],
        [[5.0, nan, 1.0], [-2.0, 10.0, nan]],
    ],
)
def test_fault_03_sums_of_any_sign_will_do_in_closed_form(X):
    X = np.array(X)
    fit = a1gm.fit(X, negatives="allow")
    assert fit.solver == "closed form"
    assert fit.certificate <= 1e-12
    fitted = np.where(np.isnan(X), 0.0, np.outer(fit.row_factor, fit.col_factor))
    for axis in (0, 1):
        expected = np.nansum(X, axis=axis)
        np.testing.assert_allclose(fitted.sum(axis=axis), expected, atol=1e-12)


def test_fault_03_a_zero_denominator_is_named():
    with pytest.raises(DataError, match=r"Column [01]: .* sum to 0"):
        a1gm.fit([[1.0, 2.0], [1.0, -4.0]], negatives="allow")


def test_fault_03_a_core_needs_positive_sums():
    X = HOLLOW.copy()
    X[2, 1] = -6.0
    with pytest.raises(DataError, match=r"Column 1: .* no closed form.*sums to -1"):
        a1gm.fit(X, negatives="allow")
    with pytest.raises(DataError, match=r"no closed form.*some rows sum to -1"):
        a1gm.fit(X.T, negatives="allow")


def test_fault_03_columns_of_zeros_beside_sums_of_either_sign():
    X = np.array([[127.0, 0.0, 0.0], [-187.0, 0.0, nan], [62.0, nan, nan]])
    fit = a1gm.fit(X, negatives="allow")
    np.testing.assert_allclose(fit.impute(X), [[127, 0, 0], [-187, 0, 0], [62, 0, 0]])


def test_fault_03_allowed_negatives_in_a_wide_table_with_leaves():
    # As many patterns as rows and a leaf: the sums of the cells are read again, and
    # still only the margins count.
    rng = np.random.default_rng(2)
    X = rng.uniform(1.0, 2.0, (2000, 600))
    X[rng.random(X.shape) < 0.3] = nan
    X[:, 7] = X[5] = nan
    X[5, 7], X[6, 7], X[8, 7] = 1.5, -0.1, 1.0  # row 5 is a leaf of column 7
    fit = a1gm.fit(X, negatives="allow")
    assert fit.n_blocks == 1
    fitted = np.where(np.isnan(X), 0.0, np.outer(fit.row_factor, fit.col_factor))
    for axis in (0, 1):
        np.testing.assert_allclose(
            fitted.sum(axis=axis), np.nansum(X, axis=axis), rtol=1e-9
        )
    X[8, 7] = nan  # the leaf now asks for more than the column holds
    with pytest.raises(DataError, match="No non-negative factors"):
        a1gm.fit(X, negatives="allow")


# ------------------------------------------------------------------------ fault 4
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_fault_04_minus_zero_is_zero_and_never_comes_back(dtype):
    X = np.array(
        [[-0.0, 1.0, 2.0], [3.0, nan, 1.0], [-0.0, -0.0, -0.0], [2.0, 1.0, -0.0]],
        dtype=dtype,
    )
    fit, plain = a1gm.fit(X), a1gm.fit(np.abs(X))
    np.testing.assert_array_equal(fit.row_factor, plain.row_factor)
    np.testing.assert_array_equal(fit.col_factor, plain.col_factor)
    outputs = {
        "row_factor": fit.row_factor,
        "col_factor": fit.col_factor,
        "reconstruct": fit.reconstruct(),
        "impute": fit.impute(X),
        "transform": fit.transform(X),
    }
    for name, values in outputs.items():
        assert not np.signbit(np.nan_to_num(values)).any(), name


def test_fault_04_a_table_of_minus_zeros():
    X = np.full((3, 2), -0.0)
    fit = a1gm.fit(X)
    for values in (fit.row_factor, fit.impute(X), fit.transform(X), fit.reconstruct()):
        assert (values == 0.0).all()
        assert not np.signbit(values).any()


@pytest.mark.parametrize("shape", [(50, 3), (50, 20), (4000, 20), (300, 600)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_fault_04_rows_and_columns_of_minus_zeros(shape, dtype):
    X = np.random.default_rng(0).gamma(2.0, size=shape).astype(dtype)
    X[::7], X[:, -1] = -0.0, -0.0
    fit, streamed = a1gm.fit(X), a1gm.PatternTable().update(X).solve()
    several = a1gm.fit_nmmf(X, X[:3])
    for factor in (
        *(fit.row_factor, fit.col_factor, streamed.row_factor, streamed.col_factor),
        *(several.w, several.h, several.a),
    ):
        assert not np.signbit(factor).any()


# ------------------------------------------------------------------------ fault 5
@pytest.mark.parametrize("sentinel", [-1, -999])
def test_fault_05_negative_sentinels_are_not_guessed(sentinel):
    with pytest.raises(NegativeValuesError, match="mark unknown ones as NaN"):
        a1gm.fit([[1, 2], [3, sentinel]])


@pytest.mark.parametrize("sentinel", [0.0, 9999.0])
def test_fault_05_other_sentinels_are_data(sentinel):
    X = np.array([[1.0, 2.0], [3.0, sentinel]])
    np.testing.assert_array_equal(a1gm.fit(X).impute(X), X)
    assert a1gm.fit(X).pattern.is_complete


# ------------------------------------------------------------------------ fault 6


@pytest.mark.parametrize("kind", ["complete", "staircase", "at random", "banded"])
@pytest.mark.parametrize("k", [1e-300, 3e-290, 7e-150, 1e150, 1e290, 1e300])
def test_fault_06_and_07_any_factor_scales_the_fit(kind, k):
    X = make_table(kind, 9, 8, seed=3)
    one, other = a1gm.fit(X), a1gm.fit(k * X)
    np.testing.assert_allclose(other.row_factor / k, one.row_factor, rtol=1e-9)
    np.testing.assert_allclose(other.col_factor, one.col_factor, rtol=1e-9)
    np.testing.assert_allclose(other.impute(k * X) / k, one.impute(X), rtol=1e-9)
    assert other.divergence / k == pytest.approx(one.divergence, rel=1e-6)


@pytest.mark.parametrize("kind", ["complete", "staircase", "at random"])
def test_fault_06_subnormal_cells(kind):
    counts = np.ceil(20.0 * make_table(kind, 6, 5, seed=4))
    X = counts * 5e-324
    assert (X[~np.isnan(X)] > 0.0).all()
    one, other = a1gm.fit(counts), a1gm.fit(X)
    np.testing.assert_allclose(other.col_factor, one.col_factor, rtol=1e-9)
    # Row factors are themselves subnormal: right to the last bit they have.
    np.testing.assert_allclose(
        other.row_factor / 5e-324, one.row_factor, rtol=1e-9, atol=1.0
    )


# ------------------------------------------------------------------------ fault 7


@pytest.mark.parametrize("kind", ["complete", "staircase", "at random"])
def test_fault_07_column_sums_that_overflow(kind):
    X = make_table(kind, 40, 2, seed=5)
    small = a1gm.fit(X)
    k = 1e308 / np.nanmax(small.row_factor)
    fit = a1gm.fit(k * X)
    assert np.nansum(X / 1e9) * 1e9 * (k / 1e308) > 2.0  # the total is no float64
    np.testing.assert_allclose(fit.col_factor, small.col_factor, rtol=1e-9)
    np.testing.assert_allclose(fit.row_factor / k, small.row_factor, rtol=1e-9)


# ------------------------------------------------------------------------ fault 8
@pytest.mark.parametrize("kind", ["complete", "corner", "staircase", "grid"])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [200, 300])
def test_fault_08_rows_of_very_different_scales(kind, seed, size):
    X = make_table(kind, 8, 6, seed)
    scale = 10.0 ** np.random.default_rng(seed).uniform(-size, size, 8)
    X *= scale[:, None]
    fit = a1gm.fit(X)
    assert oracles.certificate(X, fit) <= 1e-10
    assert fit.converged


@pytest.mark.parametrize(
    ("kind", "orders"), [("at random", 100), ("few patterns", 100), ("banded", 10)]
)
@pytest.mark.parametrize("seed", range(5))
def test_fault_08_exact_tables_of_very_different_scales(kind, orders, seed):
    rng = np.random.default_rng(seed)
    observed = ~np.isnan(make_table(kind, 12, 10, seed))
    observed[:, observed.sum(axis=0) == 0] = True
    w = 10.0 ** rng.uniform(-2 * orders, orders, 12)
    h = 10.0 ** rng.uniform(-orders, 0, 10)
    X = np.where(observed, np.outer(w, h), nan)
    fit = a1gm.fit(X)
    assert oracles.certificate(X, fit) <= 1e-10


def test_fault_08_a_small_row_beside_a_large_leaf():
    X = np.array([[1e-300, 1e-300], [1e300, nan]])
    fit = a1gm.fit(X)
    np.testing.assert_allclose(fit.col_factor, 0.5, rtol=1e-12)
    np.testing.assert_allclose(fit.row_factor, [2e-300, 2e300], rtol=1e-12)


def test_fault_08_scales_inside_one_row():
    X = np.array([[1e-100, 1e200], [1e-100, nan], [nan, 1e200]])
    fit = a1gm.fit(X)
    assert oracles.certificate(X, fit) <= 1e-10
    np.testing.assert_allclose(fit.impute(X)[1, 1], 1e200, rtol=1e-9)
    np.testing.assert_allclose(fit.impute(X)[2, 0], 1e-100, rtol=1e-9)


# ------------------------------------------------------------------------ fault 9
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_fault_09_integers_above_two_to_the_53(dtype):
    X = np.array([[2**60 + 1, 2**62], [2**53 + 1, 2**61]], dtype=dtype)
    fit, rounded = a1gm.fit(X), a1gm.fit(X.astype(np.float64))
    np.testing.assert_array_equal(fit.row_factor, rounded.row_factor)
    np.testing.assert_array_equal(fit.impute(X), X)


def test_fault_09_the_largest_unsigned_integer():
    X = np.full((2, 2), 2**64 - 1, dtype=np.uint64)
    np.testing.assert_allclose(a1gm.fit(X).row_factor, 2.0**65)


def test_fault_09_python_integers_beyond_any_dtype():
    X = [[10**30, 2 * 10**30], [10**31, 2 * 10**31]]
    np.testing.assert_allclose(a1gm.fit(X).col_factor, [1 / 3, 2 / 3])
    with pytest.raises(DataError, match=r"X\[0, 1\]"):
        a1gm.fit([[1, 10**400], [1, 1]])


# ----------------------------------------------------------------------- fault 10
@pytest.mark.slow
def test_fault_10_many_rows_of_float32():
    X = np.full((20_000_000, 1), 0.1, np.float32)
    fit = a1gm.fit(X)
    assert fit.row_factor[0] == pytest.approx(float(np.float32(0.1)), rel=1e-14)
    total = float(fit._solved.statistics.sums.sum())
    assert total == pytest.approx(20_000_000 * float(np.float32(0.1)), rel=1e-14)


def test_fault_10_float32_sums_are_those_of_float64():
    X = np.random.default_rng(6).uniform(0, 1, (300_000, 3)).astype(np.float32)
    one, other = a1gm.fit(X), a1gm.fit(X.astype(np.float64))
    np.testing.assert_allclose(one.col_factor, other.col_factor, rtol=1e-14)


def test_advice_on_negative_cells_can_be_followed():
    frame = pd.DataFrame(
        {"r": [*"aabb"], "c": [*"xyxy"], "v": [1.0, -2.0, 3.0, 4.0], "w": 1.0}
    )
    with pytest.raises(NegativeValuesError) as told:
        a1gm.fit_long(frame, keys=["r", "c"], value="v", weight="w")
    assert "allow" not in str(told.value)  # it cannot be combined with weights
    with pytest.raises(ParameterError, match="cannot be combined"):
        a1gm.fit_long(frame, keys=["r", "c"], value="v", weight="w", negatives="allow")
    with pytest.raises(NegativeValuesError, match="pass negatives='allow'"):
        a1gm.fit_long(frame, keys=["r", "c"], value="v")
    with pytest.raises(NegativeValuesError, match="negatives='allow'"):
        a1gm.PatternTable().update(np.array([[1.0, -2.0]]))
