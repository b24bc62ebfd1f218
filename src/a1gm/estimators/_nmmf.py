"""``RankOneNMMF``: tables that share factors, as a scikit-learn transformer."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from a1gm._api.fit import FitOptions
from a1gm._base.types import AnyArray, Floats
from a1gm._rows import Rows
from a1gm._rows.columns import EVERY_COLUMN
from a1gm._rows.read import read_dense
from a1gm.estimators._base import (
    BUDGET,
    THREADS,
    EstimatorConvergenceWarning,
    RowFactors,
    features_of,
)
from a1gm.exceptions import ParameterError
from a1gm.nmmf.fit import fit_layout, lay_out_nmmf
from a1gm.nmmf.layout import axes_of, check_same_entities
from a1gm.nmmf.result import NMMFFit


class RankOneNMMF(RowFactors):
    """Rank-1 factorisation of a table together with tables that share its factors.

    ``X ≈ w⊗h``, ``Y ≈ a⊗h`` and ``Z ≈ w⊗b``, the global optimum of the weighted
    Kullback-Leibler divergences on the observed cells, for every pattern of holes.

    Parameters
    ----------
    alpha, beta : float, default=1.0
        Weights of Y and Z; with 0 the table does not steer the shared factors.
    tol : float, optional
        The certificate to reach: largest relative mismatch of the margins. None: as in
        ``a1gm.fit``.
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
        The weighted divergence, computed on first access.
    certificate_ : float
        Largest relative mismatch between the margins of the fit and of the data.
    converged_ : bool
        Whether the certificate is within ``tol``.
    n_iter_ : int
        Iterations; 1 when ``solver_`` is "closed form", which takes none.
    solver_ : {"closed form", "scaling", "newton"}
        How it was solved.
    n_features_in_ : int
        Columns of X seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, when X has names that are all text.

    Notes
    -----
    In a pipeline, pass the side tables to the step: ``pipe.fit(X, nmmf__Y=Y)``, or with
    scikit-learn's metadata routing, after ``set_fit_request(Y=True, Z=True)`` and
    ``set_transform_request(Z=True)``, to the pipeline: ``pipe.fit(X, Y=Y, Z=Z)``.

    Cross-validation (``GridSearchCV``, ``cross_validate``) cuts whatever has
    ``n_samples`` rows to the rows of each fold. That is right for Z, but Y shares the
    columns of X, not its rows: if it happens to have as many rows, it is cut as well.
    Add a row of NaN to Y then.

    See Also
    --------
    a1gm.fit_nmmf : The function behind this class.

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
        **BUDGET,
        **THREADS,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "beta": [Interval(Real, 0, None, closed="left")],
    }
    # scikit-learn takes "Y" for another name of the target and would not route it.
    __metadata_request__fit: ClassVar[dict[str, None]] = {"Y": None}
    row_factor_: Floats
    a_: Floats
    b_: Floats
    _fit: NMMFFit

    def __init__(
        self,
        alpha: float = 1.0,
        beta: float = 1.0,
        *,
        tol: float | None = None,
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
            The target of a pipeline. What can only be a table Y is refused here.
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
        _refuse_table_as_target(y, X)
        fit = fit_layout(
            lay_out_nmmf(
                X, Y, Z, alpha=self.alpha, beta=self.beta, columns=EVERY_COLUMN
            ),
            NMMFFit,
            FitOptions("raise", "warn", self.tol, self.max_iter, self.n_threads),
            EstimatorConvergenceWarning,
        )
        factors = {"row_factor_": fit.w, "a_": fit.a, "b_": fit.b}
        self._set_fitted(_fit=fit, **factors, **features_of(X))
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
            The same rows of Z. Without it the rows of X decide alone. It counts with
            the weight that ``beta`` had in ``fit``.

        Returns
        -------
        ndarray of shape (n_samples, 1)
            NaN for a row that observes nothing (in X alone, when Z has weight 0), or
            is positive in several blocks.

        Raises
        ------
        LabelError
            Z has other columns than in ``fit``, or other rows than X.
        """
        check_is_fitted(self)
        source = read_dense(X, "X", EVERY_COLUMN)
        validate_data(self, X, reset=False, skip_check_array=True)
        placed = self._fit._place(source, self._read_z(Z, source))
        return self._factors_of(placed, X, source)

    def _read_z(self, Z: Any, x: Rows) -> Rows | None:
        """Rows of Z, as they belong to the rows of X and the columns of ``fit``."""
        if Z is None:
            return None
        source = read_dense(Z, "Z", EVERY_COLUMN)
        fitted = self._fit._views.get("Z")
        if fitted is None:
            raise ParameterError(
                "Z was not passed to fit, so its columns have no factors. Leave it out."
            )
        rows, columns = axes_of("Z", source)
        check_same_entities("b", columns, fitted.axes[1])
        check_same_entities("w", rows, axes_of("X", x)[0])
        return source

    # -------------------------------------------------------------- fitted attributes
    def _solution(self) -> NMMFFit:
        check_is_fitted(self)
        return self._fit

    @property
    def col_factor_(self) -> Floats:
        """Factors of the columns of X and Y."""
        return self._solution().h

    @property
    def divergence_(self) -> float:
        """The weighted divergence on the observed cells of all tables."""
        return self._solution().divergence


def _refuse_table_as_target(y: Any, X: Any) -> None:
    """Raise for a table in the place of y, where it would be ignored silently.

    A pipeline may hand over targets of several columns: these have the rows of X.
    """
    try:
        shape, of_x = np.shape(y), np.shape(X)
    except (TypeError, ValueError):  # not a table, or rows of unequal lengths
        return
    if len(shape) != 2 or len(of_x) != 2:
        return
    if shape[0] != of_x[0] or shape[1] == of_x[1] > 1:
        raise ParameterError(
            f"y is a table of shape {shape}, but the second argument of fit is the "
            "place of a target, which is ignored. Pass tables that share factors with "
            "X by name, as in fit(X, Y=...) or fit(X, Z=...)."
        )
