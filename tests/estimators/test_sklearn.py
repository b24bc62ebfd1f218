"""scikit-learn's own battery, and the public checks that it does not yield."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.utils import estimator_checks as checks
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from a1gm import RankOneImputer, RankOneNMF

ESTIMATORS = [
    RankOneNMF(),
    RankOneNMF(absent="zero"),
    RankOneImputer(),
    RankOneImputer(add_indicator=True, keep_empty_features=True),
    RankOneImputer(missing_values=-7),
    RankOneImputer(fallback="column"),
]
EXTRA = [
    checks.check_dataframe_column_names_consistency,
    checks.check_transformer_get_feature_names_out,
    checks.check_transformer_get_feature_names_out_pandas,
    checks.check_set_output_transform,
    checks.check_set_output_transform_pandas,
    checks.check_set_output_transform_polars,
    checks.check_global_output_transform_pandas,
    checks.check_global_set_output_transform_polars,
    checks.check_param_validation,
    checks.check_n_features_in_after_fitting,
]


@parametrize_with_checks(ESTIMATORS)
def test_battery(estimator, check):
    name = check.func.__name__
    is_for_sparse = name == "check_sample_weight_equivalence_on_sparse_data"
    if is_for_sparse and not get_tags(estimator).input_tags.sparse:
        pytest.skip("scikit-learn 1.6 tries this whatever the tag says")
    check(estimator)


@pytest.mark.parametrize("check", EXTRA, ids=lambda c: c.__name__)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_checks_outside_the_battery(estimator, check):
    with warnings.catch_warnings():
        # These checks fit a frame and transform an array on purpose.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        warnings.filterwarnings("ignore", "X has feature names, but")
        check(type(estimator).__name__, estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_refused_everywhere(estimator, value):
    X = np.arange(1.0, 13.0).reshape(4, 3)
    bad = X.copy()
    bad[2, 1] = value
    with pytest.raises(ValueError, match=r"infinity: X\[2, 1\]"):
        estimator.fit(bad)
    estimator.fit(X)
    with pytest.raises(ValueError, match=r"infinity: X\[2, 1\]"):
        estimator.transform(bad)
