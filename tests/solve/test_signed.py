"""Tables with negative cells: the fit has their margins, or is refused."""

from __future__ import annotations

import warnings
from functools import partial
from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import a1gm
from a1gm import PatternTable
from a1gm._kernel import is_compiled
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
    fitted, known = np.where(seen, np.outer(w, h), 0.0), np.isfinite(w)
    for found, expected in (
        (fitted.sum(axis=0), np.nansum(X, axis=0)),
        (fitted.sum(axis=1), np.nansum(X, axis=1)),
        (fit.reconstruct()[seen], fitted[seen]),
        (fit.transform(X)[known], w[known]),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


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
        # Sums of any sign.
        ([[5, 1], [-3, 2]], [6, -1], [2 / 5, 3 / 5]),
        ([[-4, 6], [3, 2]], [2, 5], [-1 / 7, 8 / 7]),
        ([[5, nan], [-2, 10]], [-20, 8], [-1 / 4, 5 / 4]),
        ([[5, nan, 1], [-2, 10, nan]], [-19, 7.6], [-5 / 19, 25 / 19, -1 / 19]),
        # Rows that cancel in their pattern.
        ([[-2], [2]], [-2, 2], [1]),
        ([[1, nan], [-2, 0], [2, 0]], [1, -2, 2], [1, 0]),
        # A zero beside a column of factor 0, and columns of zeros.
        ([[4, 2], [2, 3], [0, -3], [-1, -2]], [6, 5, -3, -3], [1, 0]),
        ([[127, 0, 0], [-187, 0, nan], [62, nan, nan]], [127, -187, 62], [1, 0, 0]),
        # A column of sum 0 that has a factor.
        pytest.param(
            *([[5, 1, nan, 0], [nan, -1, 7, nan]], [-1, 1], [-5, -1, 7, 0]),
            marks=pytest.mark.skipif(not is_compiled, reason="refused by that kernel"),
        ),
    ],
)
def test_factors_in_closed_form(X, rows, cols):
    X = np.array(X, float)
    fit = a1gm.fit(X, negatives="allow")
    np.testing.assert_allclose(fit.row_factor, rows, rtol=1e-14)
    if cols == [1, 0]:  # whole numbers throughout
        assert fit.row_factor.tolist() == rows
    np.testing.assert_allclose(fit.col_factor, cols, rtol=1e-14)
    product = np.outer(rows, cols)
    np.testing.assert_allclose(fit.reconstruct(), product, rtol=1e-14)
    filled = np.where(np.isnan(X), product, X)
    np.testing.assert_allclose(fit.impute(X), filled, rtol=1e-14)
    assert fit.solver == "closed form"
    assert fit.converged
    assert fit.certificate <= 1e-12
    assert np.isnan(fit.divergence)
    check(fit, X)


HOLLOW = np.array([[nan, 5.0, 6.0], [7.0, nan, 8.0], [9.0, -6.0, nan]])


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([[1, 2], [-1, -2]], "No factors reproduce"),
        ([[1, nan], [1, 2], [-1, -2], [nan, 3]], "No factors reproduce"),
        ([[1, 2], [1, -4]], "No factors reproduce"),
        ([[1, 2, 3], [-1, 4, nan], [5, nan, nan]], "Column 1: The cells from which"),
        ([[4, 2, 3], [1, -7, 2], [5, 1, nan]], "Column 2: The cells from which"),
        ([[4, nan], [nan, 3], [1, -1], [-1, 1]], "No factors reproduce"),
        (HOLLOW, "no closed form"),
        (HOLLOW.T, "no closed form"),
        ([[1, nan, 2], [3, 1, nan], [nan, 2, 5], [-2, 1, 1]], "no closed form"),
    ],
)
def test_tables_without_factors_are_refused(X, words):
    with pytest.raises(DataError, match=words):
        a1gm.fit(np.array(X, float), negatives="allow")


@pytest.mark.parametrize("first", [[0.0, 2.0], [0.0, 200.0]])
def test_rows_that_cancel_beside_a_factor_of_zero_are_refused(first, tmp_path):
    """Seen: 1000 and -1000 fitted by 0, with a certificate of 0."""
    X = np.array([first, [-1000.0, nan], [1000.0, nan]])
    path = tmp_path / "x.csv"
    np.savetxt(path, X, delimiter=",", header="a,b", comments="")
    in_pieces = PatternTable(negatives="allow").update(X[:2]).update(X[2:])
    without_rows = PatternTable(negatives="allow", keep_rows=False).update(X)
    for call in (
        partial(a1gm.fit, X, negatives="allow"),
        partial(a1gm.fit, X[:, ::-1], negatives="allow"),
        partial(a1gm.fit_file, path, negatives="allow"),
        in_pieces.solve,
        without_rows.solve,
    ):
        with pytest.raises(DataError, match="No factors reproduce"):
            call()


def test_rows_that_cancel_in_files_and_pieces(tmp_path):
    X = np.array([[1.0, nan], [-2.0, 0.0], [2.0, 0.0]])
    path = tmp_path / "x.csv"
    in_file = partial(a1gm.fit_file, path, negatives="allow")
    for rows in (X, X[1:]):
        np.savetxt(path, rows, delimiter=",", header="a,b", comments="")
        in_pieces = PatternTable(negatives="allow", keep_rows=False).update(rows).solve
        if rows is X:
            assert in_file().row_factor[:].tolist() == [1.0, -2.0, 2.0]
            assert in_pieces().transform(X).tolist() == [1.0, -2.0, 2.0]
            assert in_pieces().n_undetermined == 0
            continue
        for call in (in_file, in_pieces):
            with pytest.raises(DataError, match="No factors reproduce"):
                call()


@pytest.mark.parametrize("side", ["pattern_scale", "col_factor"])
def test_the_certificate_sees_negative_margins_that_are_missed(side):
    X = np.array([[4.0, -2.0, 1.0], [2.0, -3.0, nan], [-7.0, 1.0, 1.0]])
    solved = solve_patterns(
        observe(read_input(X), negatives="allow"), tol=1e-10, max_iter=1000
    )
    assert margin_mismatch(solved.factors, solved.statistics) <= 1e-14
    getattr(solved.factors, side)[1] *= 1.5
    assert margin_mismatch(solved.factors, solved.statistics) > 0.1


def test_a_wide_table_without_a_closed_form_is_refused():
    X = np.random.default_rng(2).uniform(1.0, 2.0, (2000, 600))
    X[np.random.default_rng(3).random(X.shape) < 0.3] = nan
    X[6, 7] = -0.1
    with pytest.raises(DataError, match="no closed form"):
        a1gm.fit(X, negatives="allow")


def test_deviance_residuals_beside_a_negative_fit_are_nan():
    X = np.array([[4.0, 3.0], [1.0, -2.0], [2.0, nan]])
    fit = a1gm.fit(X, negatives="allow")
    fitted = fit.reconstruct()
    assert (fitted[~np.isnan(X)] < 0.0).any()
    found = fit.residuals(X, kind="deviance")
    np.testing.assert_array_equal(np.isnan(found), np.isnan(X) | (X < 0) | (fitted < 0))
    assert np.isfinite(found[~np.isnan(found)]).all()


def test_cells_fitted_by_zero_have_no_scaled_residual_and_no_errors():
    """Seen: residuals of inf beside a finite dispersion."""
    X = [[5, 3, -1, 2], [4, 2, 1, nan], [6, -2, nan, nan], [3, nan, nan, nan]]
    X = np.array(X, float)
    fit = a1gm.fit(X, negatives="allow")
    assert (fit.reconstruct()[:, 2] == 0.0).all()
    for kind in ("pearson", "deviance"):
        expected = np.isnan(X)
        expected[:2, 2] = True
        expected |= (X < 0.0) & (kind == "deviance")
        found = fit.residuals(X, kind=kind)
        np.testing.assert_array_equal(~np.isfinite(found), expected)
        np.testing.assert_array_equal(np.isnan(found), expected)
    table = PatternTable(negatives="allow", keep_rows=False, uncertainty=True)
    for one in (fit, table.update(X).solve()):
        with pytest.raises(DataError, match=r"0 where the data are not.*Mack's"):
            one.uncertainty()
    X[:2, 2] = 0.0
    X[2, 0] = 2.0  # a row of sum 0
    with pytest.raises(DataError, match="Mack's"):
        a1gm.fit(X, negatives="allow").uncertainty()
    X[2, :2] = 6.0, -1.0
    assert a1gm.fit(X, negatives="allow").uncertainty().dispersion > 0.0


def test_a_column_of_factor_zero_has_the_value_zero():
    X = np.array([[1.0, -0.5, 2.0, 1.0], [3.0, 4.0, 5.0, -1.0], [1.0, 2.0, nan, nan]])
    for X[:2, 3] in ([0.0, -0.0], [1.0, -1.0]):
        fit = a1gm.fit(X, negatives="allow")
        assert fit.solver == "closed form"
        assert fit.impute(X)[2, 3] == 0.0 != fit.impute(X)[2, 2]
        assert fit.n_undetermined == 0
        check(fit, X)


@pytest.mark.parametrize("first", [0.9 - 2.0**-52, -2.6])
def test_cells_that_cancel_to_rounding_are_refused_in_every_order(first):
    X = np.full((4, 4), nan)
    X[0], X[1, :3], X[2, :2], X[3, 0] = [first, -0.5, 0.2, -1], [-0.2, -0.2, 0.5], 0, 2
    X[2, :2] = (0.4, -0.7) if first > 0.0 else (1.0, 0.2)
    X[1, 0] = -0.2 if first > 0.0 else 1.6 + 2.0**-51
    for order in permutations(range(4)):
        for rows in (X, np.vstack([X, X])):  # of as many patterns as rows, and fewer
            with pytest.raises(DataError, match="cancel to rounding"):
                a1gm.fit(rows[:, order], negatives="allow")


def test_signed_triangles_of_any_order_are_one_fit():
    rng = np.random.default_rng(0)
    for _ in range(20):
        X = rng.normal(1.0, 1.0, (4, 4))
        X[np.add(*np.indices((4, 4))) > 3] = nan
        expected = a1gm.fit(X, negatives="allow").reconstruct()
        order = rng.permutation(4)
        found = a1gm.fit(X[:, order], negatives="allow").reconstruct()
        np.testing.assert_allclose(found, expected[:, order], rtol=1e-6)


def test_no_factor_is_minus_zero():
    """Seen: a column of zeros beside columns of negative sums."""
    X = np.array([[0.0, -2.0], [0.0, -2.0], [np.nan, 4.0]])
    fit = a1gm.fit(X, negatives="allow")
    for numbers in (fit.col_factor, fit.row_factor, fit.impute(X)):
        assert not np.signbit(numbers[numbers == 0.0]).any()
