"""RankOneNMMF: what it adds to ``fit_nmmf``."""

import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import a1gm
from a1gm import RankOneNMMF
from a1gm.exceptions import (
    DataError,
    EmptyLineWarning,
    InfiniteValuesError,
    LabelError,
    NegativeValuesError,
    ParameterError,
    UndeterminedWarning,
)


def made(seed=0):
    rng = np.random.default_rng(seed)
    tables = rng.random((40, 6)), rng.random((5, 6)), rng.random((40, 3))
    for T in tables:
        T[rng.random(T.shape) < 0.2] = np.nan
    return tables


def test_it_is_fit_nmmf():
    X, Y, Z = made()
    model = RankOneNMMF(alpha=0.5, beta=3.0).fit(X, Y=Y, Z=Z)
    fit = a1gm.fit_nmmf(X, Y, Z, alpha=0.5, beta=3.0)
    ours = (model.row_factor_, model.col_factor_, model.a_, model.b_)
    for found, factor in zip(ours, (fit.w, fit.h, fit.a, fit.b), strict=True):
        np.testing.assert_array_equal(found, factor)
    np.testing.assert_array_equal(model.components_, fit.h[None])
    assert model.divergence_ == pytest.approx(fit.divergence)
    assert model.converged_
    assert model.certificate_ <= 1e-10
    assert model.solver_ == fit.solver
    assert model.n_iter_ == max(1, fit.n_iter)


def test_transform_gives_the_factors_of_the_fitted_rows_and_of_new_ones():
    X, Y, Z = made(1)
    model = RankOneNMMF(beta=2.0)
    w = model.fit_transform(X, Y=Y, Z=Z)
    np.testing.assert_allclose(w[:, 0], model.row_factor_, rtol=1e-9)
    new = np.array([[1.0, np.nan, 2.0, 0.0, np.nan, 3.0]])
    seen = ~np.isnan(new[0])
    alone = 6.0 / model.col_factor_[seen].sum()
    np.testing.assert_allclose(model.transform(new), [[alone]])
    with_z = (6.0 + 2.0 * 5.0) / (
        model.col_factor_[seen].sum() + 2.0 * (model.b_[0] + model.b_[2])
    )
    side = np.array([[4.0, np.nan, 1.0]])
    np.testing.assert_allclose(model.transform(new, Z=side), [[with_z]])
    with pytest.warns(EmptyLineWarning, match="1 row has"):
        assert np.isnan(model.transform(new * np.nan))


def test_faults():
    X, Y, Z = made(2)
    model = RankOneNMMF()
    with pytest.raises(NotFittedError):
        model.transform(X)
    with pytest.raises(AttributeError):
        _ = model.a_
    model.fit(X, Y=Y)
    with pytest.raises(ParameterError, match="Z was not passed to fit"):
        model.transform(X, Z=Z)
    model.fit(X, Z=Z)
    with pytest.raises(DataError, match="Z has 2 columns, but the fitted table has 3"):
        model.transform(X, Z=Z[:, :2])
    with pytest.raises(DataError, match="Z has 39 rows, but X has 40"):
        model.transform(X, Z=Z[:39])
    before = model.row_factor_
    with pytest.raises(DataError, match="Y has 5 columns"):
        model.fit(X, Y=Y[:, :5])
    assert model.row_factor_ is before  # a fit that failed has changed nothing


# --------------------------------------------------------- Z in transform, and weights
def named_model():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]], columns=["a", "b"])
    Z = pd.DataFrame([[1.0, 100.0], [2.0, 200.0], [3.0, 300.0]], columns=["p", "q"])
    return pd, RankOneNMMF().fit(X, Z=Z)


def test_transform_checks_the_names_of_z():
    pd, model = named_model()
    rows = pd.DataFrame([[1.0, 2.0], [2.0, np.nan]], ["r", "s"], ["a", "b"])
    side = pd.DataFrame([[5.0, 500.0], [np.nan, 9.0]], ["r", "s"], ["p", "q"])
    expected = model.transform(rows, Z=side.to_numpy())
    np.testing.assert_array_equal(model.transform(rows, Z=side), expected)
    with pytest.raises(LabelError, match=r"number 0 is 'q' in Z and 'p' in the fit"):
        model.transform(rows, Z=side[["q", "p"]])
    with pytest.raises(LabelError, match=r"number 1 is 'z' in Z"):
        model.transform(rows, Z=side.rename(columns={"q": "z"}))
    with pytest.raises(LabelError, match=r"number 0 is 's' in Z and 'r' in X"):
        model.transform(rows, Z=side.iloc[::-1])
    again = pickle.loads(pickle.dumps(model))
    with pytest.raises(LabelError, match="number 0"):
        again.transform(rows, Z=side[["q", "p"]])


def test_a_side_table_of_weight_zero_says_nothing_of_a_row():
    X, Z = np.array([[np.nan, np.nan], [1.0, 2.0]]), np.array([[3.0], [1.0]])
    with pytest.warns(EmptyLineWarning):
        model = RankOneNMMF(beta=0.0).fit(X, Z=Z)
    assert np.isnan(model.row_factor_[0])
    with pytest.warns(EmptyLineWarning):
        factors = model.transform(X, Z=Z)
    np.testing.assert_allclose(factors[:, 0], model.row_factor_)
    with pytest.raises(NegativeValuesError, match=r"Z\[1, 0\]"):  # but it is checked
        model.transform(X, Z=[[3.0], [-1.0]])


def test_bad_cells_in_transform_are_named_by_their_table():
    model = RankOneNMMF().fit([[1.0, 1.0]], Z=[[1.0]])
    with pytest.raises(NegativeValuesError, match=r"data: Z\[0, 0\] = -1") as caught:
        model.transform([[1.0, 3.0]], Z=[[-1.0]])
    assert "negatives=" not in str(caught.value)
    assert "missing_values=" not in str(caught.value)
    with pytest.raises(InfiniteValuesError, match=r"Z contains infinity: Z\[0, 0\]"):
        model.transform([[1.0, 3.0]], Z=[[np.inf]])
    with pytest.raises(NegativeValuesError, match=r"data: X\[0, 1\] = -3"):
        model.transform([[1.0, -3.0]])


def test_transform_uses_the_weights_of_fit():
    X, Y, Z = made(4)
    model = RankOneNMMF(beta=2.0).fit(X, Y=Y, Z=Z)
    before = model.transform(X, Z=Z)
    model.set_params(alpha=9.0, beta=0.5)
    np.testing.assert_array_equal(model.transform(X, Z=Z), before)


# ---------------------------------------------------------------- Y, y and pipelines
def test_side_tables_reach_a_step_of_a_pipeline():
    X, Y, Z = made(6)
    expected = RankOneNMMF().fit(X, Y=Y, Z=Z)
    pipe = Pipeline([("n", RankOneNMMF()), ("rest", "passthrough")])
    pipe.fit(X, n__Y=Y, n__Z=Z)
    np.testing.assert_array_equal(pipe["n"].col_factor_, expected.col_factor_)
    with config_context(enable_metadata_routing=True):
        step = RankOneNMMF().set_fit_request(Y=True, Z=True)
        step.set_transform_request(Z=True)
        for rest in ("passthrough", StandardScaler()):
            pipe = Pipeline([("n", step), ("rest", rest)]).fit(X, Y=Y, Z=Z)
            np.testing.assert_array_equal(pipe["n"].col_factor_, expected.col_factor_)
        last = Pipeline([("first", "passthrough"), ("n", clone(step))])
        last.fit(X, Y=Y, Z=Z)
        np.testing.assert_array_equal(last["n"].a_, expected.a_)
        np.testing.assert_array_equal(
            last.transform(X, Z=Z), expected.transform(X, Z=Z)
        )
        with pytest.raises(UnsetMetadataPassedError):
            Pipeline([("n", RankOneNMMF())]).fit(X, Y=Y)


def test_y_that_is_a_table_is_refused():
    X, Y, Z = made(7)
    for mistaken in (Y, Y.tolist(), Y[:, :1], X[::-1]):
        with pytest.raises(ParameterError, match=r"fit\(X, Y=\.\.\.\)"):
            RankOneNMMF().fit(X, mistaken)
        with pytest.raises(ParameterError, match=r"fit\(X, Y=\.\.\.\)"):
            RankOneNMMF().fit_transform(X, mistaken)
    labels, column, targets = Z[:, 0], Z[:, :1], Z
    for target in (None, labels, column, targets, ["a"] * 40, [None] * 40):
        RankOneNMMF().fit(X, target)


def test_rows_of_several_blocks():
    nan = np.nan
    X = np.array([[1.0, 2.0, 0.0, nan], [2.0, 4.0, nan, nan], [nan, nan, 3.0, 1.0]])
    Z = np.array([[5.0], [10.0], [nan]])
    with pytest.warns(UndeterminedWarning):
        model = RankOneNMMF().fit(X, Z=Z)
    placed = model.transform(X, Z=Z)[:, 0]
    np.testing.assert_allclose(placed, model.row_factor_, rtol=1e-9)
    rows = np.array([[1.0, nan, 3.0, nan], [1.0, nan, 0.0, nan], [0.0, nan, 0.0, nan]])
    with pytest.warns(EmptyLineWarning, match="positive cells in several blocks"):
        found = model.transform(rows)[:, 0]
    assert np.isnan(found[0])
    assert found[1] == pytest.approx(1.0 / model.col_factor_[0])
    assert found[2] == 0.0


def test_every_column_is_a_feature():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"id": [1.0, 2.0, 3.0], "v": [2.0, 4.0, np.nan]})
    model = RankOneNMMF().fit(X)  # fit_nmmf takes "id" as labels
    assert len(model.col_factor_) == model.n_features_in_ == 2
    np.testing.assert_allclose(model.transform(X)[:, 0], model.row_factor_)
