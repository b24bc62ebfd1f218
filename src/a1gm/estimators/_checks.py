"""Checks that the estimators share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning
from sklearn.utils.validation import validate_data

from a1gm._base.types import Absent, Floats
from a1gm._fit.messages import WarningPolicy
from a1gm._rows.frames import EVERY_COLUMN
from a1gm._rows.read import AnyRows, is_sparse, read_input
from a1gm._rows.sparse import SparseRows
from a1gm._rows.weights import bad_weight
from a1gm.exceptions import ConvergenceWarning, WeightsError


class EstimatorConvergenceWarning(
    ConvergenceWarning,
    SklearnConvergenceWarning,  # type: ignore[misc]
):
    """The iteration budget of an estimator ended before the certificate was reached."""


WARNINGS = WarningPolicy(convergence=EstimatorConvergenceWarning)


class Features:
    """What ``fit`` learns of the columns: how many, and names that are text."""

    def __init__(self, estimator: BaseEstimator, X: Any) -> None:
        # On a clone: a fit that fails later must leave the estimator as it was.
        probe = clone(estimator)
        validate_data(probe, X, reset=True, skip_check_array=True)
        self.n: int = probe.n_features_in_
        self.names = getattr(probe, "feature_names_in_", None)

    def set_on(self, estimator: Any) -> None:
        """Give the estimator its fitted attributes."""
        estimator.n_features_in_ = self.n
        if self.names is not None:
            estimator.feature_names_in_ = self.names
        else:
            estimator.__dict__.pop("feature_names_in_", None)


def read_table(X: Any, absent: Absent | None) -> AnyRows:
    """Read a table; ``absent`` counts for sparse ones only."""
    absent = absent if is_sparse(X) else None
    source: AnyRows = read_input(X, absent=absent, columns=EVERY_COLUMN)
    return source


def read_features(
    estimator: BaseEstimator, X: Any, absent: Absent | None
) -> tuple[AnyRows, Features]:
    """Read a table to fit, and its columns."""
    source = read_table(X, absent)
    return source, Features(estimator, X)


def check_same_features(estimator: BaseEstimator, X: Any) -> None:
    """Raise for other columns than those of ``fit``, in scikit-learn's words."""
    validate_data(estimator, X, reset=False, skip_check_array=True)


def output_dtype(X: Any, source: AnyRows) -> Any:
    """Single precision for a table that is all single precision, else double."""
    if isinstance(source, SparseRows):
        is_single = X.dtype == np.float32
    else:
        dtypes = [part[0].dtype for part in source.parts]
        is_single = bool(dtypes) and all(dtype == np.float32 for dtype in dtypes)
    return np.float32 if is_single else np.float64


def read_sample_weight(sample_weight: Any, n_rows: int) -> Floats | None:
    """Check that there is one non-negative finite weight per row; None for none."""
    if sample_weight is None:
        return None
    try:
        s = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise WeightsError(
            f"sample_weight cannot be read as numbers: {error}."
        ) from error
    if s.ndim == 0:
        s = np.full(n_rows, float(s))
    if s.ndim != 1:
        raise WeightsError(
            f"Sample weights must be 1D array or scalar, got shape {s.shape}."
        )
    if len(s) != n_rows:
        raise WeightsError(
            f"sample_weight has {len(s)} entries, but X has {n_rows} rows."
        )
    if (bad := bad_weight(s)) is not None:
        raise WeightsError(f"sample_weight[{bad[0]}] {bad[1]}; 0 leaves a row out.")
    if not s.any():
        raise WeightsError("All sample weights are zero: no row is left to fit.")
    return s
