"""RankOneNMMF: scikit-learn's battery, and what it adds to ``fit_nmmf``."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks as checks
from sklearn.utils.estimator_checks import parametrize_with_checks

import a1gm
from a1gm import RankOneNMMF
from a1gm.exceptions import DimensionError, EmptyLineWarning, ParameterError

EXTRA = [
    checks.check_dataframe_column_names_consistency,
    checks.check_transformer_get_feature_names_out,
    checks.check_transformer_get_feature_names_out_pandas,
    checks.check_set_output_transform,
    checks.check_set_output_transform_pandas,
    checks.check_set_output_transform_polars,
    checks.check_param_validation,
    checks.check_n_features_in_after_fitting,
]


@parametrize_with_checks([RankOneNMMF(), RankOneNMMF(0.0, 2.0)])
def test_battery(estimator, check):
    check(estimator)


@pytest.mark.parametrize("check", EXTRA, ids=lambda c: c.__name__)
def test_checks_outside_the_battery(check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        warnings.filterwarnings("ignore", "X has feature names, but")
        check("RankOneNMMF", RankOneNMMF())


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
    for name, factor in (("row_factor_", fit.w), ("col_factor_", fit.h)):
        np.testing.assert_array_equal(getattr(model, name), factor)
    np.testing.assert_array_equal(model.a_, fit.a)
    np.testing.assert_array_equal(model.b_, fit.b)
    np.testing.assert_array_equal(model.components_, fit.h[None])
    assert model.divergence_ == pytest.approx(fit.divergence)
    assert model.is_exact_
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
    with pytest.raises(NotFittedError):
        _ = model.a_
    model.fit(X, Y=Y)
    with pytest.raises(ParameterError, match="Z was not given to fit"):
        model.transform(X, Z=Z)
    model.fit(X, Z=Z)
    with pytest.raises(DimensionError, match="Z has 2 columns, but 3"):
        model.transform(X, Z=Z[:, :2])
    with pytest.raises(DimensionError, match="Z has 39 rows, but 40"):
        model.transform(X, Z=Z[:39])
    before = model.row_factor_
    with pytest.raises(DimensionError, match="Y has 5 columns"):
        model.fit(X, Y=Y[:, :5])
    assert model.row_factor_ is before  # a fit that failed has changed nothing


def test_clone_and_pickle():
    X, Y, Z = made(3)
    model = RankOneNMMF(0.25, 4.0).fit(X, Y=Y, Z=Z)
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert again.divergence_ == model.divergence_
