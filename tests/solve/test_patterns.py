"""Difficult patterns of observed cells, and what each one gets."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from support import oracles
from support.tables import make_table

import a1gm
from a1gm.exceptions import (
    A1gmWarning,
    ConvergenceWarning,
    DataError,
    EmptyLineWarning,
    UndeterminedError,
    UndeterminedWarning,
)

nan = np.nan


def accept(X: np.ndarray, **options: object) -> a1gm.RankOneFit:
    """Fit, and fail on any warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return a1gm.fit(X, **options)


def fit_and_listen(X: np.ndarray, **options: object):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fit = a1gm.fit(X, **options)
    return fit, [w for w in said if issubclass(w.category, A1gmWarning)]


@pytest.mark.parametrize(
    "X",
    [
        *(np.zeros(shape) for shape in ((1, 1), (3, 2), (1, 5), (200, 70))),
        *(np.array([[cell]]) for cell in (3.5, 1e140, 1e-140)),
    ],
)
def test_tables_of_zeros_or_one_cell(X):
    fit = accept(X)
    np.testing.assert_array_equal(fit.row_factor, X[:, 0])
    np.testing.assert_allclose(fit.col_factor, 1.0 / X.shape[1], rtol=1e-15)
    assert fit.divergence == fit.certificate == fit.n_iter == 0
    assert fit.converged
    assert fit.attained
    assert fit.solver == "closed form"
    np.testing.assert_array_equal(fit.reconstruct(), X)
    np.testing.assert_array_equal(fit.impute(X), X)


@pytest.mark.parametrize(
    ("rows", "columns", "words"),
    [
        ([], [1], r"column 1\b"),
        ([2], [0], "row 2 and column 0"),
        (range(2, 11), [], "rows 2, 3, 4, 5, 6 and 4 more"),
    ],
)
@pytest.mark.parametrize("n_cols", [3, 600])
def test_empty_rows_and_columns_are_named_in_one_warning(rows, columns, words, n_cols):
    X = make_table("at random", 30, n_cols, seed=1)
    X[:, 2] = 1.0
    X[list(rows)] = nan
    X[:, list(columns)] = nan
    with pytest.warns(EmptyLineWarning, match=words) as said:
        fit = a1gm.fit(X)
    assert len(said) == 1
    assert said[0].filename == __file__
    assert (fit.row_block[list(rows)] == -1).all()
    assert (fit.col_block[list(columns)] == -1).all()
    assert oracles.certificate(X, fit) <= 1e-10


@pytest.mark.parametrize("shape", [(1, 1), (3, 4), (500, 1), (1, 500)])
def test_everything_missing_is_refused(shape):
    with pytest.raises(DataError, match="every cell is missing"):
        a1gm.fit(np.full(shape, nan))
    with pytest.raises(DataError):
        a1gm.fit(np.ma.masked_all(shape))


def test_unconnected_blocks():
    X = np.full((4, 4), nan)
    X[:2, :2], X[2:, 2:] = [[1.0, 2.0], [2.0, nan]], [[3.0, 9.0], [1.0, nan]]
    fit, said = fit_and_listen(X)
    assert [w.category for w in said] == [UndeterminedWarning]
    assert "2 blocks" in str(said[0].message)
    assert "8 missing cells are undetermined" in str(said[0].message)
    assert "(0, 2)" in str(said[0].message)
    assert said[0].filename == __file__
    assert fit.row_block.tolist() == fit.col_block.tolist() == [0, 0, 1, 1]
    assert fit.attained
    with pytest.warns(UndeterminedWarning, match=r"8 missing cells.*X\[0, 2\]"):
        fit.impute(X, on_undetermined="warn")
    np.testing.assert_allclose(fit.col_factor[:2].sum(), 5.0 / 18.0)


def test_zeros_without_a_minimiser():
    X = np.array([[0.0, 5.0], [5.0, nan]])
    fit, said = fit_and_listen(X)
    assert [w.category for w in said] == [UndeterminedWarning]
    for words in ("no minimiser exists", "1 missing cell is unbounded, at (1, 1)."):
        assert words in str(said[0].message)
    assert not fit.attained
    assert fit.reconstruct()[0, 0] == 0.0
    assert fit.divergence == pytest.approx(0.0, abs=1e-14)
    with pytest.warns(UndeterminedWarning, match="do not determine it"):
        assert np.isnan(fit.impute(X, on_undetermined="warn")[1, 1])
    with pytest.raises(UndeterminedError, match="no minimiser"):
        a1gm.fit(X, on_undetermined="raise")


def test_as_many_patterns_as_rows():
    X = make_table("at random", 3000, 500, seed=2)
    fit = accept(X)
    assert fit.pattern.n_row_patterns == 3000
    assert oracles.certificate(X, fit) <= 1e-10
    # Bits of the mask and the margins, not one sum per pattern and column.
    held = sum(getattr(x, "nbytes", 0) for x in vars(fit._solved.statistics).values())
    assert held < X.nbytes / 10


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_a_budget_that_is_too_small(max_iter):
    X = make_table("banded", 30, 30, seed=4)
    with pytest.warns(ConvergenceWarning, match=f"after {max_iter} iter") as said:
        fit = a1gm.fit(X, max_iter=max_iter)
    assert len(said) == 1
    assert said[0].filename == __file__
    assert not fit.converged
    assert fit.certificate > 1e-10
    assert fit.n_iter == max_iter
    assert fit.certificate == pytest.approx(oracles.certificate(X, fit), rel=1e-6)
    assert f"{fit.certificate:.2g}" in str(said[0].message)
