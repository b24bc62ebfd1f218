"""``RankOneNMF``: the rank-1 fit as a scikit-learn transformer."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import (
    check_array,
    check_is_fitted,
    validate_data,
)

from a1gm._api.fit import FitOptions, fit_rows
from a1gm._api.pattern_table import PatternTable
from a1gm._base.float_range import as_float32
from a1gm._base.types import Absent, AnyArray, Floats, Negatives, Solver
from a1gm._base.warn import warn_user
from a1gm._fit.fit import RankOneFit
from a1gm._fit.messages import text_of_unplaced_rows
from a1gm._rows.read import AnyRows
from a1gm._rows.rows import Part, Rows, check_values
from a1gm._rows.sparse import CELLS_AT_ONCE, SparseRows
from a1gm.estimators._base import (
    BUDGET,
    THREADS,
    WARNINGS,
    Estimator,
    features_of,
    output_dtype,
    read_table,
    sample_weights,
)
from a1gm.exceptions import DataError, EmptyLineWarning


class RankOneNMF(ClassNamePrefixFeaturesOutMixin, Estimator):  # type: ignore[misc]
    """Rank-1 non-negative matrix factorisation of a table with missing cells.

    Finds the global optimum of the Kullback-Leibler divergence on the observed cells,
    ``X ≈ transform(X) @ components_``, for every pattern of missing cells.

    Parameters
    ----------
    negatives : {"raise", "allow"}, default="raise"
        ``"allow"`` fits row and column sums of tables with negative cells.
    tol : float, optional
        The certificate to reach: largest relative mismatch of the margins. None: as in
        ``a1gm.fit``.
    max_iter : int, default=1000
        Budget of iterations for patterns without a closed form.
    n_threads : int, optional
        Threads for the pass over the data; the cores available by default.
    absent : {"missing", "zero"}, optional
        For SciPy sparse tables, what an absent cell is. Dense tables ignore it.

    Attributes
    ----------
    components_ : ndarray of shape (1, n_features)
        The column factor. It sums to 1, so ``transform`` gives each row's estimated
        total in the units of the data. NaN for columns without any observed cell.
    col_factor_ : ndarray of shape (n_features,)
        The same as a vector.
    reconstruction_err_ : float
        Square root of twice the divergence on the observed cells, as in
        ``sklearn.decomposition.NMF``; computed on first access. NaN after
        ``partial_fit``, which does not keep the data.
    n_iter_ : int
        Iterations; 1 when ``solver_`` is "closed form", which takes none.
    certificate_ : float
        Largest relative mismatch between the margins of the fit and of the data.
    converged_ : bool
        Whether the certificate is within ``tol``.
    solver_ : {"closed form", "scaling", "newton"}
        How it was solved.
    n_features_in_ : int
        Columns seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, when X has names that are all text.

    See Also
    --------
    RankOneImputer : Fill missing cells with the rank-1 values.
    a1gm.fit : The function behind this class.

    Examples
    --------
    >>> import numpy as np
    >>> from a1gm import RankOneNMF
    >>> X = np.array([[1.0, 2.0, 1.0], [2.0, np.nan, 2.0]])
    >>> model = RankOneNMF().fit(X)
    >>> model.components_
    array([[0.25, 0.5 , 0.25]])
    >>> model.transform(X)
    array([[4.],
           [8.]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BUDGET,
        **THREADS,
        "negatives": [StrOptions({"raise", "allow"})],
        "absent": [StrOptions({"missing", "zero"}), None],
    }

    # The fit, or the rows of partial_fit, from which it is solved when it is needed.
    _fit: RankOneFit | None
    _table: PatternTable | None

    def __init__(
        self,
        *,
        negatives: Negatives = "raise",
        tol: float | None = None,
        max_iter: int = 1000,
        n_threads: int | None = None,
        absent: Absent | None = None,
    ) -> None:
        self.negatives = negatives
        self.tol = tol
        self.max_iter = max_iter
        self.n_threads = n_threads
        self.absent = absent

    # ---------------------------------------------------------------------- fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> RankOneNMF:
        """Fit the rows of X.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Non-negative numbers; NaN (or the container's own mark) is missing.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            Non-negative weight of each row; 2 counts a row twice, 0 leaves it out.

        Returns
        -------
        RankOneNMF
            This estimator.
        """
        self._validate_params()
        rows = read_table(X, self.absent)
        s = sample_weights(sample_weight, rows.n_rows)
        if s is not None and isinstance(rows, SparseRows):
            check_values(rows, rows.values, self.negatives)  # by their names in X
            rows = rows.scaled_rows(s)
        elif s is not None:
            rows = _weighted(rows, s, self.negatives)
        fit = fit_rows(rows, self._options, policy=WARNINGS)
        self._set_fitted(_fit=fit, _table=None, **features_of(X))
        return self

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None
    ) -> RankOneNMF:
        """Add rows to those seen before.

        Exact: any order and any way of cutting the same rows gives the same factors
        as one ``fit``. They are computed on first access.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            More rows with the same columns.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            Non-negative weight of each row.

        Returns
        -------
        RankOneNMF
            This estimator.
        """
        self._validate_params()
        table: PatternTable | None = getattr(self, "_table", None)
        is_known = table is not None
        rows = read_table(X, self.absent)
        if table is None:
            table = PatternTable(
                rows.n_cols,
                keep_rows=False,
                negatives=self.negatives,
                n_threads=self.n_threads,
            )
        else:
            validate_data(self, X, reset=False, skip_check_array=True)
        s = sample_weights(sample_weight, rows.n_rows)
        if s is not None or isinstance(rows, SparseRows):
            s = np.ones(rows.n_rows) if s is None else s
            rows = _weighted(rows, s, self.negatives, table.n_rows)
        table._add_rows(rows)
        features = {} if is_known else features_of(X)
        self._set_fitted(_fit=None, _table=table, **features)
        return self

    # ------------------------------------------------------------------ using the fit
    def transform(self, X: Any) -> AnyArray:
        """Row factors of any rows: their sum over the sum of the observed factors.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows, which may be new and have other missing cells.

        Returns
        -------
        ndarray of shape (n_samples, 1)
            NaN for a row that observes nothing.
        """
        check_is_fitted(self)
        rows = read_table(X, self.absent)
        validate_data(self, X, reset=False, skip_check_array=True)
        placed = self._solution()._columns.place(rows)
        if text := text_of_unplaced_rows(placed):
            warn_user(text, EmptyLineWarning)
        factors: AnyArray = placed.factors
        if output_dtype(X, rows) == np.float32:
            factors = as_float32(placed.factors, "the factor of row {}".format)
        return factors[:, None]

    def inverse_transform(self, X: Any) -> AnyArray:
        """Rank-1 table of row factors.

        Parameters
        ----------
        X : array of shape (n_samples, 1)
            Row factors, as ``transform`` gives them.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        X = check_array(
            X, ensure_all_finite="allow-nan", dtype=[np.float64, np.float32]
        )
        if X.shape[1] != 1:
            raise DataError(
                f"X has {X.shape[1]} columns; row factors are a single column."
            )
        table: AnyArray = X * self.components_.astype(X.dtype)
        return table

    @property
    def _options(self) -> FitOptions:
        how = self.tol, self.max_iter, self.n_threads
        return FitOptions(self.negatives, "warn", *how)

    # -------------------------------------------------------------- fitted attributes
    def _solution(self) -> RankOneFit:
        check_is_fitted(self)
        if self._fit is None:
            table: Any = self._table  # one of the two is always there
            self._fit = table._solve(self._options, policy=WARNINGS)
        return self._fit

    @property
    def col_factor_(self) -> Floats:
        """Column factors, a vector."""
        return self._solution().col_factor

    @property
    def components_(self) -> Floats:
        """Column factors, as scikit-learn keeps them."""
        return self.col_factor_[None, :]

    @property
    def n_iter_(self) -> int:
        """Iterations, at least 1."""
        return max(1, self._solution().n_iter)

    @property
    def certificate_(self) -> float:
        """Largest relative mismatch of the margins."""
        return self._solution().certificate

    @property
    def converged_(self) -> bool:
        """Whether the certificate is within ``tol``."""
        return self._solution().converged

    @property
    def solver_(self) -> Solver:
        """How it was solved."""
        return self._solution().solver

    @property
    def reconstruction_err_(self) -> float:
        """Square root of twice the divergence, each row times its weight."""
        return math.sqrt(2.0 * self._solution().divergence)

    # ------------------------------------------------------------- scikit-learn's hooks
    @property
    def _n_features_out(self) -> int:
        check_is_fitted(self)
        return 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.absent is not None
        return tags


def _weighted(rows: AnyRows, s: Floats, negatives: Negatives, offset: int = 0) -> Rows:
    """Rows times their weights, without those of weight 0; made when they are read.

    In the weighted cost the factor of row i appears as s_i w_i only, so weights change
    the column factors as if each row were multiplied by its weight.
    """
    kept = np.flatnonzero(s > 0.0)

    def cut(start: int, stop: int) -> list[Part]:
        some = kept[start:stop]
        first, last = int(some[0]), int(some[-1]) + 1
        cells = rows.rows(slice(first, last))

        def position(cell: int) -> tuple[int, int]:
            return first + cell // rows.n_cols, cell % rows.n_cols

        check_values(rows, cells, negatives, offset, position)
        return [(cells[some - first] * s[some, None], None, None, 0)]

    step = max(1, CELLS_AT_ONCE // rows.n_cols)
    steps = (*range(0, len(kept), step), len(kept))
    labels = rows.col_labels
    return Rows([], len(kept), rows.n_cols, None, labels, cut=cut, steps=steps)
