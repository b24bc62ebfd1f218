"""What a fit gives: its factors, its words and its uses."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from support import oracles
from support.tables import make_table, tables

import a1gm
from a1gm.exceptions import (
    DataError,
    LabelError,
    ParameterError,
    UndeterminedError,
    UndeterminedWarning,
)

nan = np.nan
SPLIT = np.array([[1.0, 2.0, nan], [2.0, nan, nan], [nan, nan, 3.0]])
SQUARE = np.array([[1.0, 2.0], [2.0, nan]])
RUNAWAY = np.array([[0.0, 5.0], [5.0, nan]])
ignore_unknown = pytest.mark.filterwarnings(
    "ignore::a1gm.exceptions.UndeterminedWarning"
)
ignore_empty = pytest.mark.filterwarnings("ignore::a1gm.exceptions.EmptyLineWarning")


# ---------------------------------------------------------------------- filling
@ignore_unknown
@ignore_empty
@given(tables(max_rows=10, max_cols=8, zeros=0.3))
def test_reconstruct_and_impute_follow_the_fates(X):
    fit = a1gm.fit(X)
    fates, hole = oracles.fates(X), np.isnan(X)
    table, filled = fit.reconstruct(), fit.impute(X)
    product = np.outer(fit.row_factor, fit.col_factor)
    np.testing.assert_array_equal(filled[~hole], X[~hole])
    np.testing.assert_allclose(filled[hole], table[hole], rtol=1e-9)
    for kind, value in (("finite", product), ("zero", 0.0 * np.nan_to_num(product))):
        at = hole & (fates == kind)
        np.testing.assert_allclose(table[at], value[at], rtol=1e-12)
    unknown = hole & np.isin(fates, ["unbounded", "undetermined"])
    assert np.isnan(table[unknown]).all()
    assert not np.isnan(table[~unknown]).any()
    np.testing.assert_allclose(
        table[~hole], oracles.fitted_cells(X, fit)[~hole], rtol=1e-12
    )


def test_rows_of_other_columns_are_refused():
    fit = a1gm.fit(np.ones((2, 3)))
    for other in (np.ones((3, 2)), np.ones((2, 2))):
        with pytest.raises(DataError, match="has 2 columns, but the fit has 3"):
            fit.impute(other)


def test_many_holes_in_many_blocks_of_rows():
    rng = np.random.default_rng(2)
    truth = np.outer(rng.uniform(1, 2, 100_000), [0.2, 0.3, 0.5])
    X = truth.copy()
    X[rng.random(X.shape) < 0.2] = nan
    X[np.isnan(X).all(axis=1), 0] = 1.0
    X[np.isnan(X).sum(axis=1) == 3] = 1.0
    seen = ~np.isnan(X)
    X[seen] = truth[seen]
    filled = a1gm.fit(X).impute(X)
    np.testing.assert_allclose(filled, truth, rtol=1e-9)


@ignore_unknown
def test_reconstruct_of_many_rows_in_two_blocks():
    X = np.full((400_000, 4), nan)
    X[:200_000, :2] = 1.0
    X[200_000:, 2:] = 2.0
    table = a1gm.fit(X).reconstruct()
    np.testing.assert_allclose(table[0, :2], 1.0)
    np.testing.assert_allclose(table[-1, 2:], 2.0)
    assert np.isnan(table[:200_000, 2:]).all()


# ---------------------------------------------------------------- what is known
def warned(action):
    """Classes of the warnings of a call."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        action()
    return [one.category for one in found]


def test_on_undetermined_is_remembered_by_impute():
    fit = a1gm.fit(SPLIT, on_undetermined="ignore")
    assert warned(lambda: fit.impute(SPLIT * 2.0)) == []
    with pytest.raises(UndeterminedError):
        a1gm.fit(SPLIT, on_undetermined="raise")


HALF_EMPTY = np.array([[1.0, 2.0, 3.0], [nan, nan, nan], [2.0, nan, 6.0]])


@ignore_unknown
@ignore_empty
@pytest.mark.parametrize("X", [SPLIT, RUNAWAY, HALF_EMPTY])
def test_the_warning_comes_again_when_asked_for(X):
    fit = a1gm.fit(X)
    for _ in range(2):
        found = warned(lambda: fit.impute(X, on_undetermined="warn"))
        assert found == [UndeterminedWarning]
    assert warned(lambda: fit.impute(X)) == []
    with pytest.raises(UndeterminedError):
        fit.impute(X, on_undetermined="raise")
    travelled = pickle.loads(pickle.dumps(fit))
    assert warned(lambda: travelled.impute(X)) == [UndeterminedWarning]


@ignore_unknown
def test_another_table_is_warned_of():
    fit, fewer_holes = a1gm.fit(SPLIT), SPLIT.copy()
    fewer_holes[0, 2] = 7.0
    assert warned(lambda: fit.impute(SPLIT + 1.0)) == [UndeterminedWarning]
    with pytest.warns(UndeterminedWarning, match=r"3 missing .* X\[1, 2\]: the data"):
        fit.impute(fewer_holes)


def test_several_tables_are_warned_of_once():
    X, Y = np.array([[1.0, nan], [nan, 2.0]]), np.array([[1.0, nan]])
    fits = []
    found = warned(lambda: fits.append(a1gm.fit_nmmf(X, Y)))
    found += warned(lambda: fits[0].impute(X, Y))
    assert found == [UndeterminedWarning]
    assert len(warned(lambda: fits[0].impute(X * 2.0, Y * 2.0))) == 2


@pytest.mark.parametrize("X", [np.ones((2, 2)), RUNAWAY])
@ignore_unknown
def test_fate_outside_the_table_is_an_error(X):
    fit = a1gm.fit(X)
    for place, told in (
        ((2, 0), "no row 2: the fit has 2 rows. Give a whole number from 0 to 1"),
        ((0, 2), "no column 2: the fit has 2 columns"),
        ((-3, 0), "no row -3: the fit has 2 rows.* or from -2 to -1"),
        (([0, 1, 5], 0), "no row 5"),
        (("a", 0), "no row 'a': the rows of the fit have no names"),
        ((0, 1.5), "no column 1.5: the columns of the fit have no names"),
        ((0, True), "no column True"),
        ((None, 0), "no row None"),
    ):
        with pytest.raises(LabelError, match=told) as error:
            fit.fate(*place)
        assert isinstance(error.value, IndexError)
        assert isinstance(error.value, LabelError)
    with pytest.raises(ParameterError, match=r"shape \(2,\).* shape \(3,\)"):
        fit.fate([0, 1], [0, 1, 1])


@ignore_unknown
@ignore_empty
@given(tables(max_rows=6, max_cols=6, zeros=0.3))
def test_fates_of_many_cells_are_those_of_each(X):
    fit = a1gm.fit(X)
    n, m = X.shape
    whole = fit.fate(np.arange(n)[:, None], np.arange(m))
    np.testing.assert_array_equal(whole, oracles.fates(X))
    np.testing.assert_array_equal(fit.fate(np.arange(-n, 0)[:, None], range(m)), whole)
    assert fit.fate(np.int64(-1), np.uint8(0)) == whole[-1, 0]
    assert isinstance(fit.fate(0, 0), str)
    assert fit.fate([], 0).shape == (0,)


@ignore_unknown
def test_fates_by_label():
    frame = pd.DataFrame(RUNAWAY, index=["north", "south"], columns=["x", "y"])
    fit = a1gm.fit(frame)
    assert fit.fate("south", "y") == "unbounded"
    assert fit.fate(-1, "x") == "finite"
    assert fit.fate(["north", "south"], "y").tolist() == ["finite", "unbounded"]
    assert fit.fate(frame.index, 0).tolist() == ["zero", "finite"]
    with pytest.raises(LabelError, match=r"No row is called 'west'.*one row has"):
        fit.fate("west", "y")
    with pytest.raises(LabelError, match=r"No column is called 'z'.*one column"):
        fit.fate(0, "z")


@ignore_unknown
def test_blocks_count_from_zero_in_order_of_first_rows():
    X = np.array([[0.0, nan, nan], [nan, 1.0, nan], [nan, nan, 2.0], [nan, 3.0, nan]])
    fit = a1gm.fit(X)
    assert fit.row_block.tolist() == [-1, 0, 1, 0]
    assert fit.col_block.tolist() == [-1, 0, 1]
    assert fit.n_blocks == 2


def test_rows_and_columns_of_zeros_are_in_no_block():
    fit = a1gm.fit(np.array([[0.0, 0.0], [1.0, 2.0]]))
    assert fit.row_block.tolist() == [-1, 0]
    assert fit.n_blocks == 1
    fit = a1gm.fit(np.array([[0.0, 0.0, nan], [1.0, 2.0, 0.0]]))
    assert fit.row_block.tolist() == [-1, 0]
    assert fit.col_block.tolist() == [0, 0, -1]
    assert fit.fate(0, 2) == "zero"
    assert fit.n_undetermined == 0


# ------------------------------------------------------------------- appearance
@ignore_unknown
@pytest.mark.parametrize(
    ("X", "words"),
    [
        (SQUARE, ["RankOneFit(", "2 x 2", "closed form", "blocks: 1"]),
        (np.ones((3, 2)), ["missing: 0 of 6 cells, solver"]),
        ([[1.0, 2.0], [3.0, nan]], ["missing: 1 of 4 cells, 1 with a value"]),
        (SPLIT, ["5 of 9 cells, 1 with a value", "cannot be known: 4 missing cells"]),
        (RUNAWAY, ["cannot be known: 1 missing cell", "zeros given up: 1"]),
        (make_table("at random", 20, 20, seed=3), ["scaling", "iterations"]),
    ],
)
def test_words_of_a_fit(X, words):
    fit = a1gm.fit(X)
    assert all(word in repr(fit) for word in words), repr(fit)
    assert fit.summary()["blocks"] == str(fit.n_blocks)
    assert ("known" in repr(fit)) == (fit.n_undetermined > 0)
    assert (f"{fit.n_iter} iterations" in repr(fit)) == (fit.n_iter > 0)
    html = fit._repr_html_()
    assert "<table>" in html
    assert all(f">{value}</td>" in html for value in fit.summary().values())


# -------------------------------------------------------------------- life cycle
def test_a_pickled_fit_leaves_the_data_behind():
    X = np.random.default_rng(1).uniform(1, 2, (50_000, 20))
    assert len(pickle.dumps(a1gm.fit(X))) < X.nbytes / 4


def test_the_fit_does_not_write_to_shared_arrays():
    X = make_table("at random", 30, 5, seed=4)
    one, two = a1gm.fit(X), a1gm.fit(X)
    one.row_factor[:] = 7.0
    assert (two.row_factor != 7.0).all()


@pytest.mark.parametrize("X", [[[1.0, 2.0], [nan, nan]], [[1.0, nan], [2.0, nan]]])
def test_rows_and_columns_of_nothing_are_raised_for_when_asked(X):
    with pytest.raises(UndeterminedError, match="Nothing is observed in"):
        a1gm.fit(np.array(X), on_undetermined="raise")
    with pytest.raises(UndeterminedError, match="Nothing is observed in"):
        a1gm.impute(np.array(X), on_undetermined="raise")


CHANGES = {
    "fill": lambda X: np.nan_to_num(X, copy=False),
    "double": lambda X: np.multiply(X, 2.0, out=X),
    "one cell": lambda X: X.__setitem__((2, 1), 1e6),
    "columns": lambda X: np.multiply(X, np.arange(1.0, 5.0), out=X),
}
READ_AGAIN = {
    "divergence": lambda fit: fit.divergence,
    "explained": lambda fit: fit.deviance_explained,
    "uncertainty": lambda fit: fit.uncertainty(),
    "robust": lambda fit: fit.uncertainty(1.0, robust=True),
    "error": lambda fit: fit.uncertainty(1.0).standard_error(0, 0),
}


@pytest.mark.parametrize(
    ("change", "what", "read_before", "asked"),
    [
        *((change, "cells", False, "divergence") for change in CHANGES),
        *((change, "cells", False, "uncertainty") for change in CHANGES),
        ("double", "cells", True, "robust"),
        ("double", "weighted cells", True, "explained"),
        ("columns", "weights", True, "error"),
    ],
)
def test_a_table_that_was_changed_after_the_fit(change, what, read_before, asked):
    rng = np.random.default_rng(12)
    X = rng.poisson(20.0, (10, 4)).astype(float)
    X[rng.random(X.shape) < 0.2] = nan
    V = rng.uniform(1.0, 2.0, X.shape)
    fit = a1gm.fit(X, weights=None if what == "cells" else V)
    if read_before:
        _ = fit.divergence
    CHANGES[change](V if what == "weights" else X)
    with pytest.raises(ParameterError, match="was changed after it was fitted"):
        READ_AGAIN[asked](fit)
    if not read_before:
        again = pickle.loads(pickle.dumps(fit))
        assert np.isnan(again.divergence)
        np.testing.assert_array_equal(again.col_factor, fit.col_factor)


@pytest.mark.parametrize("make", [np.array, np.ma.array, pd.DataFrame])
def test_an_exposure_that_is_changed_after_the_fit_changes_nothing(make):
    X = np.array([[1.0, 2.0, nan], [2.0, 3.0, 4.0]])
    E = make(np.full(X.shape, 2.0))
    fit, kept = a1gm.fit(X, exposure=E), a1gm.fit(X, exposure=np.full(X.shape, 2.0))
    E *= 10.0
    np.testing.assert_array_equal(fit.reconstruct(), kept.reconstruct())
