"""Bad input to estimators: columns, parameters, and fits that fail."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from a1gm import RankOneImputer, RankOneNMF

models = pytest.mark.parametrize("model", [RankOneNMF(), RankOneImputer()], ids=str)
X = np.array([[1.0, 2.0, 3.0], [2.0, np.nan, 6.0], [3.0, 6.0, 9.0], [1.0, 1.0, 2.0]])


@models
@pytest.mark.parametrize("make", [pl.DataFrame, pa.table])
def test_transform_wants_the_columns_of_fit(model, make):
    """As of pandas' frames, which scikit-learn's battery tries."""
    model.fit(make({"a": [1.0, 2.0], "b": [2.0, 3.0]}))
    for other in ({"b": [1.0], "a": [1.0]}, {"a": [1.0]}):
        with pytest.raises(ValueError, match="feature names should match"):
            model.transform(make(other))


def test_markers():
    with pytest.raises(ValueError, match="'missing_values' parameter"):
        RankOneImputer(missing_values="?").fit(X)
    with pytest.raises(ValueError, match="contains NaN"):
        RankOneImputer(missing_values=-1).fit(X)


@models
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failed_fit_leaves_the_model_as_it_was(model, error, monkeypatch):
    model = clone(model).fit(X)
    before, state = model.transform(X), dict(vars(model))

    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr("a1gm._api.fit.solve_patterns", fail)
    with pytest.raises(error):
        model.fit(X[:, :2])
    assert vars(model).keys() == state.keys()
    assert [name for name in state if vars(model)[name] is not state[name]] == []
    np.testing.assert_array_equal(model.transform(X), before)


@models
def test_clone_and_refit_start_clean(model):
    fitted = clone(model).fit(pd.DataFrame(X, columns=list("abc")))
    assert list(fitted.feature_names_in_) == list("abc")
    fitted.fit(X[:, :2])
    assert fitted.n_features_in_ == 2
    assert not hasattr(fitted, "feature_names_in_")
    fresh = clone(fitted)
    with pytest.raises(NotFittedError):
        fresh.transform(X)
    np.testing.assert_array_equal(
        fitted.transform(X[:, :2]), clone(model).fit(X[:, :2]).transform(X[:, :2])
    )
