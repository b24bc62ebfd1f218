"""What the estimators share: reading, features, sample weights and fitted attributes.

They follow scikit-learn: every column of a table is a feature.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import (
    _check_sample_weight,
    _get_feature_names,
    _num_features,
)

from a1gm._base.types import Absent, Floats
from a1gm._fit.messages import WarningPolicy
from a1gm._rows.columns import EVERY_COLUMN
from a1gm._rows.read import AnyRows, is_sparse, read_input
from a1gm.exceptions import ConvergenceWarning, WeightsError


class EstimatorConvergenceWarning(
    ConvergenceWarning,
    SklearnConvergenceWarning,  # type: ignore[misc]
):
    """The iteration budget of an estimator ended before the certificate was reached."""


WARNINGS = WarningPolicy(convergence=EstimatorConvergenceWarning)
BUDGET = {
    "tol": [Interval(Real, 0, None, closed="neither"), None],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
}
THREADS = {"n_threads": [Interval(Integral, 1, None, closed="left"), None]}


def read_table(X: Any, absent: Absent | None) -> AnyRows:
    """Read a table; ``absent`` counts for sparse ones only."""
    absent = absent if is_sparse(X) else None
    rows: AnyRows = read_input(X, absent=absent, columns=EVERY_COLUMN)
    return rows


def sample_weights(given: Any, n_rows: int) -> Floats | None:
    """Weight of each row, checked by scikit-learn; None for none."""
    if given is None:
        return None
    try:
        s: Floats = _check_sample_weight(
            given, range(n_rows), dtype=np.float64, ensure_non_negative=True
        )
    except ValueError as error:
        raise WeightsError(str(error)) from error
    if not s.any():  # older versions of scikit-learn do not check this
        raise WeightsError("All sample weights are zero: no row is left to fit.")
    return s


def features_of(X: Any) -> dict[str, Any]:
    """Number of columns, and names that are text, as fitted attributes."""
    features: dict[str, Any] = {"n_features_in_": _num_features(X)}
    names = _get_feature_names(X)
    return features if names is None else {**features, "feature_names_in_": names}


def output_dtype(X: Any, rows: Any) -> Any:
    """Single precision for a table that is all single precision, else double."""
    dtypes = {X.dtype} if is_sparse(X) else {part[0].dtype for part in rows.parts}
    return np.float32 if dtypes == {np.dtype(np.float32)} else np.float64


class Estimator(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators."""

    def _set_fitted(self, **attributes: Any) -> None:
        """Replace the state of a fit at once: a fit that failed changes nothing."""
        if "n_features_in_" in attributes:
            self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(attributes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.positive_only = True  # margins must be, whatever the cells
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
