"""Tables with negative cells: the fit has their margins, or is refused."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import a1gm
from a1gm import PatternTable
from a1gm._observe.observe import observe
from a1gm._rows import read_input
from a1gm._solve.certificate import margin_mismatch
from a1gm._solve.dispatch import solve_patterns
from a1gm.exceptions import A1gmError, A1gmWarning, DataError

nan = np.nan
CELLS = st.sampled_from([*range(-3, 4), nan])
SHAPES = st.tuples(st.integers(1, 5), st.integers(1, 4))


def check(fit, X):
    """The factors have the margins of the data, and place its rows where they are."""
    w, h, seen = np.asarray(fit.row_factor), fit.col_factor, ~np.isnan(X)
    fitted = np.where(seen, np.outer(w, h), 0.0)
    for axis in (0, 1):
        sums = np.nansum(X, axis=axis)
        assert np.allclose(fitted.sum(axis=axis), sums, rtol=1e-9, atol=1e-9)
    near = {"rtol": 1e-9, "atol": 1e-9}
    assert np.allclose(fit.reconstruct()[seen], fitted[seen], **near)
    known = np.isfinite(w)
    assert np.allclose(fit.transform(X)[known], w[known], **near)


@given(arrays(float, SHAPES, elements=CELLS))
@example(np.array([[-3.0, 2.0], [2.0, 2.0], [0.0, nan]]))  # a factor below 0
def test_a_signed_fit_has_the_margins_of_the_data(X):
    assume((X < 0.0).any())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", A1gmWarning)
        try:
            fit = a1gm.fit(X, negatives="allow")
        except A1gmError:
            return
        if fit.converged:
            check(fit, X)


@pytest.mark.parametrize(
    ("X", "rows", "cols"),
    [
        ([[-2.0], [2.0]], [-2.0, 2.0], [1.0]),
        ([[1.0, nan], [-2.0, 0.0], [2.0, 0.0]], [1.0, -2.0, 2.0], [1.0, 0.0]),
    ],
)
def test_rows_that_cancel_in_their_pattern_keep_their_factors(X, rows, cols):
    X = np.array(X)
    fit = a1gm.fit(X, negatives="allow")
    assert np.allclose(fit.row_factor, rows)
    assert np.allclose(fit.col_factor, cols)
    assert np.allclose(fit.reconstruct(), np.outer(rows, cols))
    assert fit.converged
    check(fit, X)


@pytest.mark.parametrize(
    "X",
    [
        [[1.0, 2.0], [-1.0, -2.0]],  # no column has a factor
        [[1.0, nan], [1.0, 2.0], [-1.0, -2.0], [nan, 3.0]],  # two blocks have
    ],
)
def test_rows_that_cancel_and_have_no_factor_are_refused(X):
    with pytest.raises(DataError, match="Column 1: The cells from which"):
        a1gm.fit(X, negatives="allow")


def test_rows_that_cancel_in_files_and_pieces(tmp_path):
    X = np.array([[1.0, nan], [-2.0, 0.0], [2.0, 0.0]])
    path = tmp_path / "x.csv"
    for rows in (slice(0, 3), slice(1, 3)):
        np.savetxt(path, X[rows], delimiter=",", header="a,b", comments="")
        table = PatternTable(negatives="allow", keep_rows=False).update(X[rows])
        if rows.start:
            for call in (partial(a1gm.fit_file, path, negatives="allow"), table.solve):
                with pytest.raises(DataError, match="is projected sum to 0"):
                    call()
            continue
        fit = a1gm.fit_file(path, negatives="allow")
        assert fit.row_factor[:].tolist() == [1.0, -2.0, 2.0]
        fit = table.solve()
        assert fit.transform(X).tolist() == [1.0, -2.0, 2.0]
        assert fit.n_undetermined == 0


def test_rows_that_cancel_beside_a_cycle_of_holes():
    X = np.array([[1, nan, 2], [3, 1, nan], [nan, 2, 5], [-2, 1, 1], [2, -1, 3.0]])
    X = np.vstack([X, [[nan, 2.0, nan], [nan, -2.0, nan]]])
    fit = a1gm.fit(X, negatives="allow")
    assert fit.solver != "closed form"
    assert fit.row_factor[5] == -fit.row_factor[6] != 0.0
    check(fit, X)


def test_a_zero_beside_a_column_of_factor_0_places_its_row():
    X = np.array([[4.0, 2.0], [2.0, 3.0], [0.0, -3.0], [-1.0, -2.0]])
    fit = a1gm.fit(X, negatives="allow")
    assert fit.row_factor.tolist() == [6.0, 5.0, -3.0, -3.0]
    check(fit, X)


def test_rows_of_sum_0_in_two_blocks_have_factor_0():
    X = np.array([[4.0, nan], [nan, 3.0], [1.0, -1.0], [-1.0, 1.0]])
    fit = a1gm.fit(X, negatives="allow", on_undetermined="ignore")
    assert fit.n_blocks == 2
    assert fit.row_factor.tolist()[2:] == [0.0, 0.0]
    check(fit, X)


@pytest.mark.parametrize("side", ["pattern_scale", "col_factor"])
def test_the_certificate_sees_negative_margins_that_are_missed(side):
    X = np.array([[4.0, -2.0, 1.0], [2.0, -3.0, nan], [-7.0, 1.0, 1.0]])
    solved = solve_patterns(
        observe(read_input(X), negatives="allow"), tol=1e-10, max_iter=1000
    )
    assert margin_mismatch(solved.factors, solved.statistics) <= 1e-14
    getattr(solved.factors, side)[1] *= 1.5
    assert margin_mismatch(solved.factors, solved.statistics) > 0.1


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
def test_sums_of_any_sign_will_do_in_closed_form(X):
    X = np.array(X)
    fit = a1gm.fit(X, negatives="allow")
    assert fit.solver == "closed form"
    assert fit.certificate <= 1e-12
    assert np.isnan(fit.divergence)
    check(fit, X)


def test_a_zero_denominator_is_named():
    with pytest.raises(DataError, match=r"Column [01]: .* sum to 0"):
        a1gm.fit([[1.0, 2.0], [1.0, -4.0]], negatives="allow")


def test_a_core_needs_positive_sums():
    X = HOLLOW.copy()
    X[2, 1] = -6.0
    with pytest.raises(DataError, match=r"Column 1: .* no closed form.*sums to -1"):
        a1gm.fit(X, negatives="allow")
    with pytest.raises(DataError, match=r"no closed form.*some rows sum to -1"):
        a1gm.fit(X.T, negatives="allow")


def test_columns_of_zeros_beside_sums_of_either_sign():
    X = np.array([[127.0, 0.0, 0.0], [-187.0, 0.0, nan], [62.0, nan, nan]])
    fit = a1gm.fit(X, negatives="allow")
    np.testing.assert_allclose(fit.impute(X), [[127, 0, 0], [-187, 0, 0], [62, 0, 0]])


def test_allowed_negatives_in_a_wide_table_with_leaves():
    # As many patterns as rows and a leaf: the sums of the cells are read again, and
    # still only the margins count.
    rng = np.random.default_rng(2)
    X = rng.uniform(1.0, 2.0, (2000, 600))
    X[rng.random(X.shape) < 0.3] = nan
    X[:, 7] = X[5] = nan
    X[5, 7], X[6, 7], X[8, 7] = 1.5, -0.1, 1.0  # row 5 is a leaf of column 7
    fit = a1gm.fit(X, negatives="allow")
    assert fit.n_blocks == 1
    check(fit, X)
