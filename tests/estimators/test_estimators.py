"""RankOneNMF and RankOneImputer do what their functions do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
import sklearn.exceptions
from sklearn.decomposition import NMF
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from support.frames import holed_table
from ways.containers import sparse_table

import a1gm
from a1gm import RankOneImputer, RankOneNMF
from a1gm.exceptions import (
    ConvergenceWarning,
    EmptyLineWarning,
    NegativeValuesError,
    NotRepresentableError,
    ParameterError,
    WeightsError,
)

RTOL = 1e-9


def table(n=80, m=6, share=0.25, seed=0):
    return holed_table(n, m, share, seed)


# -------------------------------------------------------------------- RankOneNMF
def test_nmf_is_the_fit():  # its factors: tests/ways
    X = table()
    fit, model = a1gm.fit(X), RankOneNMF().fit(X)
    error = np.sqrt(2 * fit.divergence)
    assert model.reconstruction_err_ == pytest.approx(error, rel=RTOL)
    assert (model.solver_, model.n_iter_) == (fit.solver, max(1, fit.n_iter))
    rows = model.transform(X)
    np.testing.assert_allclose(
        model.inverse_transform(rows), fit.reconstruct(), rtol=RTOL
    )


def test_the_reconstruction_error_is_that_of_scikit_learn():
    X = table(share=0.0)
    theirs = NMF(1, solver="mu", beta_loss="kullback-leibler", tol=1e-12, max_iter=500)
    error = theirs.fit(X).reconstruction_err_
    assert RankOneNMF().fit(X).reconstruction_err_ == pytest.approx(error, rel=1e-7)


def test_the_divergence_is_not_computed_in_fit(monkeypatch):
    from a1gm._fit.sure.scatter import Scatter

    calls = []
    real = Scatter._kernel_sum
    monkeypatch.setattr(Scatter, "_kernel_sum", lambda *a: calls.append(1) or real(*a))
    model = RankOneNMF().fit(table())
    assert calls == []
    assert model.reconstruction_err_ == model.reconstruction_err_
    assert calls == [1]


def test_partial_fit_starts_anew_and_solves_late_so_that_early_blocks_may_be_poor():
    X = table()
    poor = np.full((2, 6), np.nan)
    model = RankOneNMF().fit(X[:10]).partial_fit(poor).partial_fit(X)
    with pytest.warns(EmptyLineWarning, match="in 2 rows"):
        found = model.components_
    np.testing.assert_allclose(found, RankOneNMF().fit(X).components_, rtol=1e-12)


@pytest.mark.parametrize("weight", [None, np.arange(80) % 3])
@pytest.mark.parametrize("absent", ["missing", "zero"])
def test_sparse_tables(absent, weight):
    X = table(share=0.5)
    S = sparse_table(X)
    dense = X if absent == "missing" else np.nan_to_num(X)
    expected = RankOneNMF().fit(dense, sample_weight=weight)
    model = RankOneNMF(absent=absent).fit(S, sample_weight=weight)
    np.testing.assert_allclose(model.components_, expected.components_, rtol=RTOL)
    np.testing.assert_allclose(model.transform(S), expected.transform(dense), rtol=RTOL)
    if weight is None:
        parts = RankOneNMF(absent=absent).partial_fit(S[:30]).partial_fit(S[30:])
        np.testing.assert_allclose(parts.components_, expected.components_, rtol=RTOL)


def test_weights_count_rows():
    X = table()
    s = np.random.default_rng(3).integers(0, 4, len(X))
    expected = RankOneNMF().fit(np.repeat(X, s, axis=0))
    model = RankOneNMF().fit(X, sample_weight=s)
    np.testing.assert_allclose(model.components_, expected.components_, rtol=RTOL)
    error = expected.reconstruction_err_
    assert model.reconstruction_err_ == pytest.approx(error, rel=1e-8)
    parts = RankOneNMF()
    for k in range(0, 80, 20):
        parts.partial_fit(X[k : k + 20], sample_weight=s[k : k + 20])
    np.testing.assert_allclose(parts.components_, expected.components_, rtol=RTOL)


@pytest.mark.parametrize(
    "weight",
    [
        [1.0, np.nan, 1.0],
        [1.0, -1.0, 1.0],
        [1.0, np.inf, 1.0],
        [0.0, 0.0, 0.0],
        [1.0, 2.0],
        [[1.0], [1.0], [1.0]],
        ["a", "b", "c"],
    ],
    ids=str,
)
def test_bad_sample_weights_are_refused(weight):
    for method in ("fit", "partial_fit"):
        with pytest.raises(WeightsError):
            getattr(RankOneNMF(), method)(np.ones((3, 2)), sample_weight=weight)


@pytest.mark.parametrize("weight", [None, [1.0, 0.5]])
def test_bad_cells_are_named_as_they_are_and_change_nothing(weight):
    X = np.array([[1.0, 2.0], [3.0, -4.0]])
    with pytest.raises(NegativeValuesError, match=r"X\[1, 1\] = -4"):
        RankOneNMF().fit(X, sample_weight=weight)
    model = RankOneNMF().partial_fit(np.ones((5, 2)))
    with pytest.raises(NegativeValuesError, match=r"X\[6, 1\] = -4"):
        model.partial_fit(X, sample_weight=weight)
    assert model.col_factor_.tolist() == [0.5, 0.5]


def test_sample_weight_can_be_routed():
    X = table()
    s = np.arange(1.0, 81.0)
    expected = RankOneNMF().fit(X, sample_weight=s).components_
    with sklearn.config_context(enable_metadata_routing=True):
        model = RankOneNMF().set_fit_request(sample_weight=True)
        pipe = Pipeline([("nmf", model)]).fit(X, sample_weight=s)
    np.testing.assert_array_equal(pipe["nmf"].components_, expected)


def test_frames_of_single_precision_stay_single():  # arrays: scikit-learn's battery
    X = table()
    frame = pl.DataFrame(X, schema=list("abcdef")).cast(pl.Float32)
    assert RankOneImputer().fit_transform(frame).dtype == np.float32


def test_too_small_a_budget_warns():
    X = table(40, 8, 0.4)
    with pytest.warns(ConvergenceWarning) as said:
        model = RankOneNMF(max_iter=1).fit(X)
    assert not model.converged_
    assert f"certificate of {model.certificate_:.2g}," in str(said[0].message)
    # The same warning for whoever filters by scikit-learn's class.
    with pytest.warns(sklearn.exceptions.ConvergenceWarning) as of_model:
        RankOneImputer(max_iter=1).fit(X)
    assert issubclass(of_model[0].category, ConvergenceWarning)


# ---------------------------------------------------------------- RankOneImputer
def visible(imputer, X):
    """What a user can see of an imputer, values of filled cells apart."""
    out = imputer.fit_transform(X)
    missing = np.isnan(X) if X.dtype.kind == "f" else np.zeros(X.shape, bool)
    return (
        out.shape,
        out.dtype,
        imputer.get_feature_names_out().tolist(),
        out[~missing[:, :]].tolist() if out.shape == X.shape else None,
        imputer.n_features_in_,
    )


@pytest.mark.parametrize("add_indicator", [False, True])
@pytest.mark.parametrize("keep_empty_features", [False, True])
@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.filterwarnings("ignore:Skipping features")
def test_imputer_looks_like_simple_imputer(add_indicator, keep_empty_features, empty):
    X = table()
    if empty:
        X[:, 3] = np.nan
    ours, theirs = (
        visible(
            kind(add_indicator=add_indicator, keep_empty_features=keep_empty_features),
            X,
        )
        for kind in (RankOneImputer, SimpleImputer)
    )
    assert ours == theirs


@pytest.mark.filterwarnings("ignore:Skipping features")
def test_empty_features_are_dropped_or_filled_with_zero():
    X = table()
    X[:, 3] = np.nan
    with pytest.warns(EmptyLineWarning, match=r"\[3\]"):
        imputer = RankOneImputer().fit(X)
    assert imputer.transform(X).shape == (80, 5)
    kept = RankOneImputer(keep_empty_features=True).fit_transform(X)
    assert (kept[:, 3] == 0.0).all()


@pytest.mark.parametrize("copy", [True, False])
def test_indicator_and_inverse(copy):
    X = table()
    imputer, given = RankOneImputer(add_indicator=True, copy=copy), X.copy()
    out = imputer.fit_transform(given)
    assert np.isnan(given).any() == copy
    np.testing.assert_array_equal(out[:, 6:].astype(bool), np.isnan(X)[:, 1:])
    np.testing.assert_array_equal(imputer.inverse_transform(out), X)
    with pytest.raises(ParameterError, match="add_indicator=True"):
        RankOneImputer().fit(X).inverse_transform(X)


def test_integer_marker():
    X = table()
    marked = np.where(np.isnan(X), -9, np.ceil(X)).astype(np.int64)
    expected = RankOneImputer().fit_transform(np.where(np.isnan(X), np.nan, np.ceil(X)))
    for given in (marked, pd.DataFrame(marked), pl.DataFrame(marked)):
        out = RankOneImputer(missing_values=-9).fit_transform(given)
        np.testing.assert_allclose(out, expected, rtol=RTOL)


def test_sparse_input_gives_sparse_output():
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, size=(40, 6)).astype(float)
    X[3, 2] = X[7, 1] = np.nan
    S = sp.csr_matrix(X)
    out = RankOneImputer().fit_transform(S)
    assert out.format == "csc"
    np.testing.assert_allclose(out.toarray(), RankOneImputer().fit_transform(X))
    both = RankOneImputer(add_indicator=True).fit_transform(S)
    assert both.shape == (40, 8)
    with pytest.raises(ParameterError, match="missing_values == 0"):
        RankOneImputer(missing_values=0).fit(S)


# ---------------------------------------------------------------------- fallback
def with_unknown_cells():
    """Two blocks and a row without any cell."""
    X = np.full((4, 4), np.nan)
    X[0, :2], X[1, 0], X[2, 2:] = [1.0, 2.0], 3.0, [4.0, 8.0]
    return X


@pytest.mark.parametrize(
    ("fallback", "values"),
    [
        ("column", [2.0, 2.0, 4.0, 8.0]),
        (0, [0.0] * 4),
        (np.float32(7.5), [7.5] * 4),
    ],
)
def test_a_fallback_fills_what_cannot_be_known(fallback, values):
    X = with_unknown_cells()
    model = RankOneImputer(fallback=fallback)
    filled = model.fit_transform(X)  # and warns of nothing
    expected = np.where(np.isnan(X), values, X)
    expected[1, 1] = 6.0  # the fit knows this one
    np.testing.assert_allclose(filled, expected)
    np.testing.assert_array_equal(model.fallback_, values)
    np.testing.assert_allclose(model.transform(np.full((1, 4), np.nan))[0], values)
    model.set_params(fallback=None)  # counts from the next fit on
    assert not np.isnan(model.transform(X)).any()
    unbounded = np.array([[0.0, 5.0], [5.0, np.nan]])
    for rows in (unbounded, np.array([[np.nan, np.nan], [0.0, np.nan]])):
        model = RankOneImputer(fallback=fallback).fit(unbounded)
        assert not np.isnan(model.transform(rows)).any()


def test_a_fallback_and_sparse_tables():
    X = sp.csr_array(np.array([[0.0, 5.0, 4.0], [5.0, np.nan, 4.0], [0.0, 0.0, 1.0]]))
    dense = X.toarray()
    dense[2] = np.nan
    holes = sp.csr_array(dense)
    model = RankOneImputer(fallback="column").fit(X)
    np.testing.assert_allclose(model.fallback_, [5.0 / 3.0, 2.5, 3.0])
    np.testing.assert_allclose(model.transform(holes).toarray()[2], model.fallback_)


def test_a_fallback_and_columns_without_any_cell():
    X = np.array([[1.0, np.nan], [2.0, np.nan]])
    row = [[np.nan, np.nan]]
    for fallback, kept in (("column", [1.5, 0.0]), (7.0, [7.0, 7.0])):
        model = RankOneImputer(fallback=fallback, keep_empty_features=True).fit(X)
        np.testing.assert_array_equal(model.transform(row)[0], kept)
        with pytest.warns(EmptyLineWarning, match="Skipping features"):
            model = RankOneImputer(fallback=fallback).fit(X)
        np.testing.assert_array_equal(model.transform(row)[0], kept[:1])


def test_a_fallback_of_tables_near_the_largest_sum():
    X = np.full((10, 2), 3e138)
    model = RankOneImputer(fallback="column").fit(X)
    np.testing.assert_allclose(model.fallback_, [3e138, 3e138], rtol=1e-12)
    with pytest.raises(NotRepresentableError, match="above 1e\\+140"):
        RankOneImputer(fallback="column").fit(10.0 * X)


@pytest.mark.parametrize(
    "fallback", ["mean", "", -1.0, np.nan, np.inf, [1.0], np.array([1.0]), 1j]
)
def test_a_bad_fallback_is_refused_in_fit(fallback):
    model = RankOneImputer(fallback=fallback)
    with pytest.raises(ValueError, match="'fallback' parameter"):
        model.fit(with_unknown_cells())
    assert not hasattr(model, "col_factor_")
