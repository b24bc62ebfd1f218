"""Row factors of any rows, for the column factors of a fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from support.files import open_file
from support.tables import tables

import a1gm
from a1gm._fit.place import Columns, kernel_sums
from a1gm._rows import read_input
from a1gm._solve.components import ColumnGraph
from a1gm.exceptions import NotRepresentableError, ParameterError

nan = np.nan


def row_factors(X, h):
    """Factors of rows in a table of one component; columns of NaN have no data."""
    label = np.where(np.isnan(h), -1, 0).astype(np.int32)
    columns = Columns(h, ColumnGraph(label, 1))
    return columns.place(read_input(X)).factors


@pytest.mark.filterwarnings("ignore::a1gm.exceptions.UndeterminedWarning")
@pytest.mark.filterwarnings("ignore::a1gm.exceptions.EmptyLineWarning")
@given(tables(max_rows=12))
def test_the_rows_of_the_fit_get_their_own_factors(X):
    fit = a1gm.fit(X)
    assume(fit.n_blocks == 1)
    np.testing.assert_allclose(fit.transform(X), fit.row_factor, rtol=1e-8)


def test_each_row_minimises_its_own_divergence():
    rng = np.random.default_rng(1)
    h = rng.dirichlet(np.ones(6))
    X = rng.uniform(0.0, 2.0, (5, 6))
    X[rng.random(X.shape) < 0.3] = nan
    w = row_factors(X, h)

    def cost(row: np.ndarray, factor: float) -> float:
        seen = ~np.isnan(row)
        fitted = factor * h[seen]
        return float((fitted - row[seen] * np.log(fitted)).sum())

    for row, best in zip(X, w, strict=True):
        assert cost(row, best) < min(cost(row, best * f) for f in (0.99, 1.01))


def test_rows_that_cannot_be_known():
    h = np.array([0.0, nan, 1.0])
    X = np.array([[0.0, nan, nan], [2.0, nan, nan], [nan, 5.0, nan], [nan, nan, nan]])
    got = row_factors(X, h)
    assert got[0] == 0.0  # zeros are fitted by zero
    assert np.isnan(got[1:]).all()  # 2 / 0, an unknown column, nothing


def test_a_row_whose_sum_is_above_the_largest_float():
    rows = np.array([[1.0, nan], [1e308, 1.5e308]])
    with pytest.raises(NotRepresentableError, match="row 1 "):
        row_factors(rows, np.array([0.4, 0.6]))


def test_a_row_whose_factor_is_no_float_is_named_in_a_table_of_several_blocks():
    X = np.ones((300_000, 8))
    X[250_000] = 1e200
    with pytest.raises(NotRepresentableError, match="row 250000 "):
        row_factors(X, np.full(8, 1e-200))


# ------------------------------------------------------------------- filling rows
@pytest.mark.filterwarnings("ignore::a1gm.exceptions.A1gmWarning")
@pytest.mark.parametrize(
    "X",
    [
        [[10, 5, 1, nan], [20, -1, nan, nan], [30, 14, nan, nan], [nan, nan, nan, 2]],
        [[10, 5, 0], [20, -1, 0], [0, nan, nan]],
    ],
)
def test_negative_cells_tie_rows_to_columns(X):
    X = np.array(X, float)
    fit = a1gm.fit(X, negatives="allow")
    filled, hole = fit._columns.fill(X), np.isnan(X)
    np.testing.assert_allclose(filled[hole], fit.reconstruct()[hole])


@pytest.mark.filterwarnings("ignore::a1gm.exceptions.A1gmWarning")
def test_a_stored_row_of_nothing_has_no_factor():
    # With absent zeros every row observes all but its stored holes; this one nothing.
    S = sp.csr_array(np.array([[1.0, 0.0], [nan, nan]]))
    fit = a1gm.fit(S, absent="zero")
    np.testing.assert_array_equal(fit.row_factor, [1.0, nan])
    np.testing.assert_array_equal(fit.transform(S), [1.0, nan])


def test_a_row_of_zeros_before_a_negative_column_has_the_factor_zero():
    X = np.array([[5.0, -2.0, 3.0], [4.0, -1.0, nan], [nan, 0.0, nan]])
    fit = a1gm.fit(X, negatives="allow")
    assert fit.col_factor[1] < 0.0
    for factors in (fit.row_factor, fit.transform(X)):
        assert factors[2] == 0.0
        assert not np.signbit(factors[2])


def test_a_fit_that_may_see_negatives_takes_them_in_new_rows():
    fit = a1gm.fit(np.ones((2, 2)), negatives="allow")
    np.testing.assert_allclose(fit.impute([[-1.0, 4.0]]), [[-1.0, 4.0]])


# ------------------------------------------------------------- seen by an attacker
TWO = np.array(
    [[1, 2, nan, nan], [2, nan, nan, nan], [nan, nan, 3, 1], [nan, nan, 6, nan]]
)
TWO_FILLED = np.array(
    [[1, 2, nan, nan], [2, 4, nan, nan], [nan, nan, 3, 1], [nan, nan, 6, 2]]
)
quiet = pytest.mark.filterwarnings("ignore::a1gm.exceptions.A1gmWarning")


@quiet
@pytest.mark.parametrize(
    ("scale", "weight"), [(1e65, 1e65), (1e-65, 1e-65), (1, 1e-139)]
)
def test_weights_of_any_size_place_rows(scale, weight):
    V = np.full(TWO.shape, weight)
    fit = a1gm.fit(TWO * scale, weights=V)
    filled = fit.impute(TWO * scale) / scale
    np.testing.assert_allclose(filled, TWO_FILLED, rtol=1e-12)
    assert fit.divergence == pytest.approx(0.0, abs=1e-12 * scale)


def test_only_ratios_of_the_weights_of_a_row_count():
    fit = a1gm.fit(np.array([[1.0, 2, 3], [2, 4, 6]]), weights=np.full((2, 3), 2.0))
    rows, V = [[1, nan, 1], [2, nan, 2]], [[1e-200] * 3, [1e200] * 3]
    np.testing.assert_allclose(fit.transform(rows, weights=V), [3.0, 6.0])


@quiet
def test_huge_rows_beside_tiny_ones():
    fit = a1gm.fit(TWO)
    rows = np.array([[1e-300, nan, nan, nan], [5e307, 5e307, 5e307, nan]])
    filled = fit.impute(rows)
    assert filled[0, 1] == pytest.approx(2e-300, rel=1e-14)
    assert filled[1, 3] == pytest.approx(5e307 / 3, rel=1e-14)
    with pytest.raises(NotRepresentableError, match="value of a cell is above"):
        fit.impute([[1.5e308, nan, nan, nan]])
    with pytest.raises(NotRepresentableError, match="factor of row 0"):
        fit.impute([[1.7e308, 1.7e308, 1.7e308, nan]])


def test_files_are_not_filled_without_the_weights_of_their_rows(tmp_path):
    frame = pd.DataFrame([[1.0, 2.0], [2.0, nan]], columns=list("ab"))
    fit = a1gm.fit(frame, weights=np.ones((2, 2)))
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(ParameterError, match="weighted cells"):
        a1gm.impute_file(tmp_path / "t.csv", tmp_path / "o.csv", fit=fit)
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.parametrize("of", ["pearson", "divergence"])
def test_the_kernel_sums_tables_in_files_piece_by_piece(of, tmp_path):
    rng = np.random.default_rng(4)
    X = rng.poisson(rng.uniform(1.0, 9.0, (50, 4))).astype(float)
    X[rng.random(X.shape) < 0.2] = nan
    path = tmp_path / "x.csv"
    pd.DataFrame(X, columns=list("abcd")).to_csv(path, index=False)
    fit, source = a1gm.fit(X), open_file(path, batch_rows=7)
    for _ in source.in_pieces():
        pass  # the first pass settles the columns
    found = kernel_sums(fit._columns, source, of)
    expected = kernel_sums(fit._columns, read_input(X), of)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
