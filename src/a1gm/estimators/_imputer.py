"""``RankOneImputer``: missing cells filled by the rank-1 fit."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import MissingIndicator
from sklearn.utils._param_validation import Interval, MissingValues
from sklearn.utils.validation import check_is_fitted, check_random_state

from a1gm._api.assess import Assessment, assess_cells
from a1gm._api.fit import fit_observation
from a1gm._base.types import AnyArray, Bools, Floats
from a1gm._base.warn import warn_user
from a1gm._fit.fill import fill_table
from a1gm._fit.messages import text_of_left_cells
from a1gm._fit.place import Columns
from a1gm._fit.sure.uncertainty import Uncertainty
from a1gm._observe.observe import observe
from a1gm._rows.read import AnyRows
from a1gm._rows.sparse import SparseRows
from a1gm.estimators._checks import (
    WARNINGS,
    check_same_features,
    output_dtype,
    read_features,
    read_table,
)
from a1gm.estimators._fallback import check_fallback, fallback_values
from a1gm.estimators._marker import check_marker, is_nan_like, mark_missing
from a1gm.exceptions import (
    DataHintWarning,
    EmptyLineWarning,
    ParameterError,
    UndeterminedWarning,
)

ADVICE = " Use sklearn.impute.SimpleImputer for this table, or other columns."


class RankOneImputer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Fill missing cells with the best rank-1 explanation of the table.

    A drop-in for ``sklearn.impute.SimpleImputer`` on non-negative tables: a missing
    cell gets its row's level times its column's level, not the column's mean.

    Parameters
    ----------
    missing_values : number, NaN, None or pd.NA, default=NaN
        What marks a missing cell.
    add_indicator : bool, default=False
        Append columns that say which cells were missing.
    keep_empty_features : bool, default=False
        Keep columns without any observed cell in ``fit``, filled with 0, or with
        ``fallback`` where that is a number.
    fallback : None, "column" or number, default=None
        What a cell gets that the data do not determine: nothing (it stays NaN, and a
        warning counts such cells), the mean of its column's observed cells in ``fit``,
        or this number, which must be finite and >= 0.
    copy : bool, default=True
        With ``False``, fill an array of floats in place.
    tol : float, default=1e-10
        The certificate to reach: largest relative mismatch of the margins.
    max_iter : int, default=1000
        Budget of iterations for patterns without a closed form.
    check : bool, default=False
        Hide some known cells in ``fit``, fill them (``a1gm.assess``), and warn if the
        means of the columns would have been better. Not for sparse tables.
    random_state : int, RandomState or None, default=None
        Which cells ``check`` hides.

    Attributes
    ----------
    col_factor_ : ndarray of shape (n_features,)
        Column factors; NaN for columns without any observed cell.
    fallback_ : ndarray of shape (n_features,)
        The value of each column for cells that the data do not determine; NaN where
        they stay missing.
    n_iter_ : int
        Iterations of the fit; 1 for the closed form, which takes none.
    uncertainty_ : Uncertainty
        How sure the fit is: dispersion, tests, errors of cells and totals of X, made
        when asked for. It reads X again, so it is not there with ``copy=False``, and
        not after the imputer was copied or pickled.
    assessment_ : Assessment
        What ``check`` found; only with ``check=True``.
    indicator_ : MissingIndicator
        The indicator of missing cells; None if ``add_indicator`` is false.
    n_features_in_ : int
        Columns seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, when X has names that are all text.

    Notes
    -----
    Rows at ``transform`` may be new and have other missing cells: the row's factor is
    its sum over the sum of its observed columns' factors. A cell that the data do not
    determine (a row without any observed cell, or columns never observed together with
    the others) stays NaN, with one warning that counts them, unless ``fallback`` says
    what to put there. A next step that takes no NaN needs a fallback.

    Absent cells of a sparse table are zeros; its stored missing cells are filled.

    Examples
    --------
    >>> import numpy as np
    >>> from a1gm import RankOneImputer
    >>> RankOneImputer().fit_transform([[1, 2, 3], [2, np.nan, 6], [np.nan, 8, 12]])
    array([[ 1.,  2.,  3.],
           [ 2.,  4.,  6.],
           [ 4.,  8., 12.]])

    A row without any observed cell has no level of its own:

    >>> imputer = RankOneImputer(fallback="column").fit([[1, 2], [2, 4], [6, np.nan]])
    >>> imputer.transform([[np.nan, np.nan], [4, np.nan]])
    array([[3., 3.],
           [4., 8.]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "missing_values": [MissingValues()],
        "add_indicator": ["boolean"],
        "keep_empty_features": ["boolean"],
        "fallback": "no_validation",  # checked by check_fallback, in our words
        "copy": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "check": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        missing_values: Any = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = False,
        fallback: Literal["column"] | float | None = None,
        copy: bool = True,
        tol: float = 1e-10,
        max_iter: int = 1000,
        check: bool = False,
        random_state: Any = None,
    ) -> None:
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.fallback = fallback
        self.copy = copy
        self.tol = tol
        self.max_iter = max_iter
        self.check = check
        self.random_state = random_state

    # ---------------------------------------------------------------------- fitting
    def fit(self, X: Any, y: Any = None) -> RankOneImputer:
        """Learn the column factors of X.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Non-negative numbers with missing cells.
        y : ignored

        Returns
        -------
        RankOneImputer
            This estimator.
        """
        self._validate_params()
        check_fallback(self.fallback)
        check_marker(self.missing_values, X)
        source, features = read_features(self, X, "zero")
        source = mark_missing(source, self.missing_values)
        seen = observe(source, negatives=None)  # there is no such option
        # transform warns of rows without any cell, and of blocks.
        fit = fit_observation(
            seen,
            source,
            tol=self.tol,
            max_iter=self.max_iter,
            on_undetermined="ignore",
            policy=replace(WARNINGS, cells=False),
        )
        fallback = fallback_values(self.fallback, seen, fit)
        assessment = self._assessment_of(source) if self.check else None
        indicator: Any = self._new_indicator(source) if self.add_indicator else None
        self.col_factor_: Floats = fit.col_factor
        self._columns: Columns = fit._columns
        self.fallback_: Floats = fallback
        self.n_iter_ = max(1, fit.n_iter)
        self.indicator_ = indicator
        features.set_on(self)
        self._fit = fit if self.copy else None
        self._warn_of_empty_features()
        if assessment is not None:
            self.assessment_: Assessment = assessment
            if assessment.skill < 0.0:
                warn_user(assessment.verdict + ADVICE, DataHintWarning)
        return self

    def _assessment_of(self, source: AnyRows) -> Assessment:
        if isinstance(source, SparseRows):
            raise ParameterError(
                "check=True is not for sparse tables. Leave it out, or try a share of "
                "the rows as an array."
            )
        seed = check_random_state(self.random_state).randint(2**31)
        return assess_cells(source.rows(slice(0, source.n_rows)), random_state=seed)

    @property
    def uncertainty_(self) -> Uncertainty:
        """How sure the fit is, as ``fit.uncertainty()`` of ``a1gm.fit``."""
        check_is_fitted(self)
        if self._fit is None:
            raise ParameterError(
                "This imputer has not kept the table it was fitted to: it may have "
                "filled it in place (copy=False), or it was copied or pickled. Fit it "
                "again with copy=True, or use a1gm.fit(X).uncertainty()."
            )
        return self._fit.uncertainty()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the imputer without the data of its fit."""
        state: dict[str, Any] = dict(super().__getstate__())
        if "_fit" in state:
            state["_fit"] = None
        return state

    def _new_indicator(self, source: AnyRows) -> Any:
        indicator = MissingIndicator(missing_values=np.nan, error_on_new=False)
        holes = _holes(source).astype(np.float64)
        if isinstance(source, SparseRows):
            holes.data[:] = np.nan
        else:
            holes[holes == 1.0] = np.nan
        return indicator.fit(holes)

    @property
    def _kept(self) -> Bools:
        """Columns that ``transform`` gives."""
        empty = np.isnan(self.col_factor_)
        kept: Bools = np.ones_like(empty) if self.keep_empty_features else ~empty
        return kept

    def _warn_of_empty_features(self) -> None:
        empty = np.flatnonzero(np.isnan(self.col_factor_))
        if len(empty) and not self.keep_empty_features:
            names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
            warn_user(
                "Skipping features without any observed values: "
                f"{names[empty].tolist()}. At least one non-missing value is needed; "
                "keep_empty_features=True keeps them, filled with 0.",
                EmptyLineWarning,
            )

    # -------------------------------------------------------------------- transforming
    def transform(self, X: Any) -> Any:
        """Fill the missing cells of X.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows, which may be new.

        Returns
        -------
        ndarray or sparse table of shape (n_samples, n_features_out)
        """
        check_is_fitted(self)
        check_marker(self.missing_values, X)
        source = read_table(X, "zero")
        check_same_features(self, X)
        source = mark_missing(source, self.missing_values)
        filled = self._filled(X, source)
        if not self.add_indicator:
            return filled
        return _beside(filled, _holes(source)[:, self.indicator_.features_])

    def _filled(self, X: Any, source: AnyRows) -> Any:
        placed = self._columns.place(source, otherwise=self._fallback())
        dtype = output_dtype(X, source)
        result = fill_table(X, source, placed, in_place=not self.copy, as_array=True)
        if isinstance(source, SparseRows):
            table = result.table.tocsc()
        else:
            table = result.table.astype(dtype, copy=False)
        kept = self._kept
        n_left = result.left.n
        if not kept.all():
            n_left -= _holes_of(source, ~kept)
            table = table[:, np.flatnonzero(kept)]
        if n_left > 0:
            warn_user(
                text_of_left_cells(n_left) + " A row must observe something that was "
                'fitted together with the column of the hole; fallback="column" fills '
                "such cells with the mean of their column.",
                UndeterminedWarning,
            )
        return table

    def _fallback(self) -> Floats:
        """What a cell of each column gets that the data do not determine."""
        fallback = self.fallback_
        if self.keep_empty_features:
            without_any = np.isnan(self.col_factor_) & np.isnan(fallback)
            fallback = np.where(without_any, 0.0, fallback)
        return fallback

    def inverse_transform(self, X: Any) -> AnyArray:
        """Put the marks of missing cells back, with the help of the indicator.

        Parameters
        ----------
        X : array of shape (n_samples, n_features_out)
            As ``transform`` gave it, with ``add_indicator=True``.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        if not self.add_indicator:
            raise ParameterError(
                "'inverse_transform' works only when RankOneImputer is instantiated "
                f"with 'add_indicator=True'. Got 'add_indicator={self.add_indicator}' "
                "instead."
            )
        X = np.asarray(X)
        n_filled = int(self._kept.sum())
        out: AnyArray = np.zeros((len(X), self.n_features_in_), X.dtype)
        out[:, self._kept] = X[:, :n_filled]
        missing = np.zeros(out.shape, bool)
        missing[:, self.indicator_.features_] = X[:, n_filled:].astype(bool)
        out[missing] = (
            np.nan if is_nan_like(self.missing_values) else self.missing_values
        )
        return out

    # ------------------------------------------------------------- scikit-learn's hooks
    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Names of the columns that ``transform`` gives.

        Parameters
        ----------
        input_features : array of str, optional
            Names of the input columns; those of ``fit`` by default.

        Returns
        -------
        ndarray of str
        """
        from sklearn.utils.validation import _check_feature_names_in

        check_is_fitted(self)
        given = _check_feature_names_in(self, input_features)
        names: AnyArray = given[self._kept]
        if not self.add_indicator:
            return names
        return np.concatenate([names, self.indicator_.get_feature_names_out(given)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = is_nan_like(self.missing_values)
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _holes(source: AnyRows) -> Any:
    """Which cells are missing: an array, or a sparse table of those stored."""
    shape = (source.n_rows, source.n_cols)
    if isinstance(source, SparseRows):
        from scipy.sparse import coo_array

        at = np.flatnonzero(source.missing)
        line = np.searchsorted(source.ptr, at, side="right") - 1
        cells = (np.ones(len(at), bool), (line, source.cols[at]))
        return coo_array(cells, shape=shape).tocsc()
    holes = np.zeros(shape, bool)
    for rows, piece in source.blocks():
        holes[rows] = np.isnan(piece)
    return holes


def _holes_of(source: AnyRows, chosen: Bools) -> int:
    """Missing cells in some columns."""
    if isinstance(source, SparseRows):
        return int(chosen[source.cols[source.missing]].sum())
    return sum(int(np.isnan(piece[:, chosen]).sum()) for _, piece in source.blocks())


def _beside(filled: Any, mask: Any) -> Any:
    if isinstance(filled, np.ndarray):
        return np.hstack([filled, mask.astype(filled.dtype)])
    from scipy.sparse import hstack

    return hstack([filled, mask.astype(filled.dtype)], format="csc")
