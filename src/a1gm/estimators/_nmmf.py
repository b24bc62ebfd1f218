"""``RankOneNMMF``: tables that share factors, as a scikit-learn transformer."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from a1gm._types import AnyArray, Floats, Solver
from a1gm._unknown import text_of_unknown_rows
from a1gm.estimators._checks import Features, check_same_features, output_dtype
from a1gm.exceptions import DimensionError, EmptyLineWarning, ParameterError
from a1gm.nmmf._fit import fit_nmmf, read_table
from a1gm.nmmf._transform import shared_row_factors
from a1gm.nmmf.result import NMMFFit

__all__ = ["RankOneNMMF"]


class RankOneNMMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Rank-1 factorisation of a table together with tables that share its factors.

    ``X ≈ w⊗h``, ``Y ≈ a⊗h`` and ``Z ≈ w⊗b``, the global optimum of the weighted
    Kullback-Leibler divergences on the observed cells, for every pattern of holes.

    Parameters
    ----------
    alpha, beta : float, default=1.0
        Weights of Y and Z; with 0 the table does not steer the shared factors.
    tol : float, default=1e-10
        The certificate to reach: largest relative mismatch of the margins.
    max_iter : int, default=1000
        Budget of iterations for patterns without a closed form.
    n_threads : int, optional
        Threads for the pass over the data; the cores available by default.

    Attributes
    ----------
    components_ : ndarray of shape (1, n_features)
        The factor of the columns of X and Y.
    row_factor_ : ndarray of shape (n_samples,)
        The factor of the rows of X and Z.
    col_factor_ : ndarray of shape (n_features,)
        ``components_`` as a vector; its sum is that of ``row_factor_``.
    a_, b_ : ndarray
        The factors of the rows of Y and of the columns of Z.
    divergence_ : float
        The weighted divergence, computed when first asked for.
    certificate_ : float
        Largest relative mismatch between the margins of the fit and of the data.
    is_exact_ : bool
        Whether the certificate is within ``tol``.
    n_iter_ : int
        Iterations; 1 when ``solver_`` is "closed form", which takes none.
    solver_ : {"closed form", "scaling", "newton"}
        How it was solved.
    n_features_in_ : int
        Columns of X seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, when X has names that are all text.

    See Also
    --------
    a1gm.fit_nmmf : The function behind this class.
    a1gm.tune_nmmf : Choose ``alpha`` and ``beta``.

    Examples
    --------
    >>> import numpy as np
    >>> from a1gm import RankOneNMMF
    >>> X, Z = np.array([[1.0, 2.0], [2.0, np.nan]]), np.array([[3.0], [6.0]])
    >>> model = RankOneNMMF().fit(X, Z=Z)
    >>> model.transform(X, Z=Z) / model.row_factor_[0]
    array([[1.],
           [2.]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    }
    _fit: NMMFFit

    def __init__(
        self,
        alpha: float = 1.0,
        beta: float = 1.0,
        *,
        tol: float = 1e-10,
        max_iter: int = 1000,
        n_threads: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.tol = tol
        self.max_iter = max_iter
        self.n_threads = n_threads

    def fit(
        self, X: Any, y: Any = None, *, Y: Any = None, Z: Any = None
    ) -> RankOneNMMF:
        """Fit the tables together.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Non-negative numbers; NaN (or the container's own mark) is missing.
        y : ignored
        Y : table of shape (any, n_features), optional
            Shares the columns of X.
        Z : table of shape (n_samples, any), optional
            Shares the rows of X.

        Returns
        -------
        RankOneNMMF
            This estimator.
        """
        self._validate_params()
        fit = fit_nmmf(
            X,
            Y,
            Z,
            alpha=self.alpha,
            beta=self.beta,
            tol=self.tol,
            max_iter=self.max_iter,
            n_threads=self.n_threads,
        )
        features = Features(self, X)
        # State is set only now: a fit that failed has changed nothing.
        self._fit = fit
        features.set_on(self)
        return self

    def fit_transform(
        self, X: Any, y: Any = None, *, Y: Any = None, Z: Any = None
    ) -> AnyArray:
        """Fit the tables and return the row factors of X.

        Parameters
        ----------
        X, y, Y, Z
            As for ``fit``.

        Returns
        -------
        ndarray of shape (n_samples, 1)
        """
        return self.fit(X, y, Y=Y, Z=Z).transform(X, Z=Z)

    def transform(self, X: Any, *, Z: Any = None) -> AnyArray:
        """Row factors of any rows of X, with their rows of Z when there are any.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows, which may be new and have other missing cells.
        Z : table of shape (n_samples, columns of Z), optional
            The same rows of Z. Without it the rows of X decide alone.

        Returns
        -------
        ndarray of shape (n_samples, 1)
            NaN for a row that observes nothing.
        """
        check_is_fitted(self)
        source = read_table(X, "X")
        check_same_features(self, X)
        tables = [(source, self._fit.h, 1.0)]
        if Z is not None:
            tables.append((self._read_side(Z, source.n_rows), self._fit.b, self.beta))
        factors = shared_row_factors(tables)
        unknown = np.flatnonzero(np.isnan(factors))
        if len(unknown):
            warnings.warn(
                text_of_unknown_rows(unknown.tolist()), EmptyLineWarning, stacklevel=2
            )
        return factors.astype(output_dtype(X, source), copy=False)[:, None]

    def _read_side(self, Z: Any, n_rows: int) -> Any:
        if len(self._fit.b) == 0:
            msg = "Z was not given to fit: its columns have no factors. Leave it out."
            raise ParameterError(msg)
        z = read_table(Z, "Z")
        for axis, size, expected in (
            ("columns", z.n_cols, len(self._fit.b)),
            ("rows", z.n_rows, n_rows),
        ):
            if size != expected:
                msg = f"Z has {size} {axis}, but {expected} are expected."
                raise DimensionError(msg)
        return z

    # -------------------------------------------------------------- fitted attributes
    def _solution(self) -> NMMFFit:
        check_is_fitted(self)
        return self._fit

    @property
    def row_factor_(self) -> Floats:
        """Factors of the rows of X and Z."""
        return self._solution().w

    @property
    def col_factor_(self) -> Floats:
        """Factors of the columns of X and Y."""
        return self._solution().h

    @property
    def components_(self) -> Floats:
        """Column factors, as scikit-learn keeps them."""
        return self._solution().h[None, :]

    @property
    def a_(self) -> Floats:
        """Factors of the rows of Y."""
        return self._solution().a

    @property
    def b_(self) -> Floats:
        """Factors of the columns of Z."""
        return self._solution().b

    @property
    def divergence_(self) -> float:
        """The weighted divergence on the observed cells of all tables."""
        return self._solution().divergence

    @property
    def certificate_(self) -> float:
        """Largest relative mismatch of the margins."""
        return self._solution().certificate

    @property
    def is_exact_(self) -> bool:
        """Whether the certificate is within ``tol``."""
        return self._solution().is_exact

    @property
    def n_iter_(self) -> int:
        """Iterations, at least 1."""
        return max(1, self._solution().n_iter)

    @property
    def solver_(self) -> Solver:
        """How it was solved."""
        return self._solution().solver

    # ------------------------------------------------------------- scikit-learn's hooks
    @property
    def _n_features_out(self) -> int:
        return 1

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
