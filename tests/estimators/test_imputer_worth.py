"""What the imputer's fills are worth: ``uncertainty_`` and ``check=``."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris

import a1gm
from a1gm import RankOneImputer
from a1gm.exceptions import DataError, DataHintWarning, ParameterError


def with_holes(X, seed=0):
    X = np.array(X, float)
    X[np.random.default_rng(seed).random(X.shape) < 0.1] = np.nan
    return X


def sales():
    rng = np.random.default_rng(1)
    return with_holes(rng.poisson(np.outer(rng.gamma(3, 9, 40), rng.gamma(3, 2, 8))))


def test_uncertainty_is_that_of_the_fit():
    X = sales()
    imputer = RankOneImputer()
    with pytest.raises(AttributeError):
        _ = imputer.uncertainty_
    found, fit = imputer.fit(X).uncertainty_, a1gm.fit(X).uncertainty()
    assert found.dispersion == pytest.approx(fit.dispersion, rel=1e-12)
    np.testing.assert_allclose(found.totals().se, fit.totals().se)
    marked = np.where(np.isnan(X), -7.0, X)
    other = RankOneImputer(missing_values=-7.0).fit(marked).uncertainty_
    assert other.dispersion == pytest.approx(fit.dispersion, rel=1e-12)


def test_uncertainty_is_not_there_without_the_data():
    X = sales()
    whole = RankOneImputer().fit(X)
    for imputer in (
        RankOneImputer(copy=False).fit(X.copy()),
        pickle.loads(pickle.dumps(whole)),
    ):
        np.testing.assert_allclose(imputer.transform(X), whole.transform(X))
        with pytest.raises(ParameterError, match="not kept the table"):
            _ = imputer.uncertainty_
    assert len(pickle.dumps(whole)) < 4000  # no row of the table is in it


def test_check_warns_where_column_means_are_better():
    X = with_holes(load_iris().data)
    with pytest.warns(DataHintWarning, match="column means are better"):
        imputer = RankOneImputer(check=True, random_state=0).fit(X)
    assert imputer.assessment_.skill < 0.0
    with pytest.warns(DataHintWarning):
        again = clone(imputer).fit(X).assessment_
    assert imputer.assessment_ == again


def test_check_compares_with_the_best_of_the_other_methods():
    rng = np.random.default_rng(0)
    walks = 1000 * np.exp(rng.normal(0, 0.3, (200, 12)).cumsum(axis=1))
    X = pd.DataFrame(walks, columns=[f"2024-{month:02d}" for month in range(1, 13)])
    with pytest.warns(DataHintWarning, match="last value is better.*by that method"):
        imputer = RankOneImputer(check=True, random_state=0).fit(X)
    assert imputer.assessment_.skill > 0.0
    assert imputer.assessment_.lead < 0.0


def test_check_is_silent_where_rank_1_is_better():
    imputer = RankOneImputer(check=True, random_state=np.random.RandomState(0))
    assert imputer.fit(sales()).assessment_.skill > 0.5
    assert not hasattr(RankOneImputer().fit(sales()), "assessment_")


def test_check_that_cannot_be_made():
    with pytest.raises(ParameterError, match="sparse"):
        RankOneImputer(check=True).fit(sp.csr_array(np.eye(3)))
    with pytest.raises(DataError, match="No cell can be hidden"):
        RankOneImputer(check=True).fit([[1.0, np.nan], [2.0, 3.0]])
