"""What estimators that give row factors have in common."""

from __future__ import annotations

from typing import Any

from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from a1gm._base.types import AnyArray, Floats, Solver
from a1gm._base.warn import warn_user
from a1gm._fit.messages import text_of_unplaced_rows
from a1gm._fit.place import Placed
from a1gm._rows.read import AnyRows
from a1gm.estimators._checks import output_dtype
from a1gm.exceptions import EmptyLineWarning


class RowFactors(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Fitted attributes and scikit-learn's hooks; ``_solution`` gives the fit."""

    def _solution(self) -> Any:
        raise NotImplementedError

    @property
    def col_factor_(self) -> Floats:
        """Column factors, a vector."""
        raise NotImplementedError

    @property
    def components_(self) -> Floats:
        """Column factors, as scikit-learn keeps them."""
        return self.col_factor_[None, :]

    @property
    def n_iter_(self) -> int:
        """Iterations, at least 1."""
        return max(1, int(self._solution().n_iter))

    @property
    def certificate_(self) -> float:
        """Largest relative mismatch of the margins."""
        return float(self._solution().certificate)

    @property
    def converged_(self) -> bool:
        """Whether the certificate is within ``tol``."""
        return bool(self._solution().converged)

    @property
    def solver_(self) -> Solver:
        """How it was solved."""
        solver: Solver = self._solution().solver
        return solver

    def _factors_of(self, placed: Placed, X: Any, source: AnyRows) -> AnyArray:
        """Factors of rows as a column, with a warning for rows that have none."""
        if text := text_of_unplaced_rows(placed):
            warn_user(text, EmptyLineWarning)
        return placed.factors.astype(output_dtype(X, source), copy=False)[:, None]

    # ------------------------------------------------------------- scikit-learn's hooks
    @property
    def _n_features_out(self) -> int:
        check_is_fitted(self)
        return 1

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.positive_only = True  # margins must be, whatever the cells
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
