"""``RankOneImputer``: missing cells filled by the rank-1 fit."""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.impute import MissingIndicator
from sklearn.utils._missing import is_pandas_na, is_scalar_nan
from sklearn.utils._param_validation import Interval, MissingValues, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from a1gm._api.fit import FitOptions, fit_patterns
from a1gm._base.float_range import as_float32
from a1gm._base.types import AnyArray, Bools, Floats
from a1gm._base.warn import warn_user
from a1gm._fit.fill import fill_table
from a1gm._fit.messages import text_of_left_cells
from a1gm._fit.place import Columns
from a1gm._observe.observe import observe
from a1gm._rows.read import AnyRows, is_sparse
from a1gm._rows.rows import check_values
from a1gm._rows.sparse import SparseRows
from a1gm._rows.weights import with_weights
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
from a1gm.exceptions import (
    DataError,
    EmptyLineWarning,
    ParameterError,
    UndeterminedWarning,
)


class RankOneImputer(Estimator):
    """Fill missing cells with the best rank-1 explanation of the table.

    A drop-in for ``sklearn.impute.SimpleImputer`` on non-negative tables: a missing
    cell gets its row's level times its column's level, not the column's mean.

    Parameters
    ----------
    missing_values : number, NaN, None or pd.NA, default=NaN
        What marks a missing cell.
    add_indicator : bool, default=False
        Append columns of 0 and 1 that mark the missing cells.
    keep_empty_features : bool, default=False
        Keep columns without any observed cell in ``fit``, filled with 0, or with
        ``fallback`` where that is a number.
    fallback : None, "column" or number, default=None
        What a cell gets that the data do not determine: nothing (it stays NaN, and a
        warning counts such cells), the mean of its column's observed cells in ``fit``,
        or this number, which must be finite and >= 0.
    copy : bool, default=True
        With ``False``, fill an array of floats in place.
    tol : float, optional
        The certificate to reach: largest relative mismatch of the margins. None: as in
        ``a1gm.fit``.
    max_iter : int, default=1000
        Budget of iterations for patterns without a closed form.
    n_threads : int, optional
        Threads for the pass over the data in ``fit``; the cores available by default.

    Attributes
    ----------
    col_factor_ : ndarray of shape (n_features,)
        Column factors; NaN for columns without any observed cell.
    fallback_ : ndarray of shape (n_features,)
        The value of each column for cells that the data do not determine; NaN where
        they stay missing.
    n_iter_ : int
        Iterations of the fit; 1 for the closed form, which takes none.
    indicator_ : MissingIndicator
        The indicator of missing cells; None if ``add_indicator`` is false.
    n_features_in_ : int
        Columns seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, when X has names that are all text.

    Notes
    -----
    Rows at ``transform`` may be new and have other missing cells: the row's factor is
    its sum over the sum of its observed columns' factors. The data do not determine the
    cells of a row without any observed cell, nor of columns never observed together
    with its own: a next step that takes no NaN needs a ``fallback``.

    Absent cells of a sparse table are zeros; its stored missing cells are filled.

    Where columns are unlike measures a simpler method fills better: ``a1gm.assess(X)``
    judges that on hidden cells, and ``a1gm.fit(X).uncertainty()`` has the errors.

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

    col_factor_: Floats
    fallback_: Floats
    _columns: Columns

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BUDGET,
        **THREADS,
        "missing_values": [MissingValues(numeric_only=True), None],
        "add_indicator": ["boolean"],
        "keep_empty_features": ["boolean"],
        "fallback": [
            StrOptions({"column"}),
            Interval(Real, 0, None, closed="left"),
            None,
        ],
        "copy": ["boolean"],
    }

    def __init__(
        self,
        *,
        missing_values: Any = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = False,
        fallback: Literal["column"] | float | None = None,
        copy: bool = True,
        tol: float | None = None,
        max_iter: int = 1000,
        n_threads: int | None = None,
    ) -> None:
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.fallback = fallback
        self.copy = copy
        self.tol = tol
        self.max_iter = max_iter
        self.n_threads = n_threads

    # ---------------------------------------------------------------------- fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> RankOneImputer:
        """Learn the column factors of X.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Non-negative numbers with missing cells.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            Non-negative weight of each row; 2 counts a row twice, 0 leaves it out.

        Returns
        -------
        RankOneImputer
            This estimator.
        """
        self._validate_params()
        given = X
        X, rows = self._read(X, is_fitted=False)
        s = sample_weights(sample_weight, rows.n_rows)
        weighted = rows
        if s is not None and isinstance(rows, SparseRows):
            check_values(rows, rows.values, None)  # by their names in X
            weighted = rows.scaled_rows(s)
        elif s is not None:
            weighted = with_weights(rows, "weights", s[:, None], is_observed=True)
        # There is no option for negative cells.
        seen = observe(weighted, negatives=None, n_threads=self.n_threads)
        # transform warns of rows without any cell, and of blocks.
        fit = fit_patterns(
            seen,
            FitOptions("raise", "ignore", self.tol, self.max_iter, self.n_threads),
            weighted,
            policy=replace(WARNINGS, cells=False),
        )
        number = math.nan if self.fallback in (None, "column") else self.fallback
        fallback = np.full(rows.n_cols, number)
        if self.fallback == "column":  # means of the observed cells
            n_observed: Any = rows.n_rows - fit.pattern.missing_per_col
            if s is not None:
                n_observed = _observed_weight(rows, s)
            with np.errstate(invalid="ignore"):
                fallback = seen.col_sums / n_observed
        indicator = None
        if self.add_indicator:
            indicator = MissingIndicator(missing_values=np.nan, error_on_new=False)
            indicator.fit(_cells_of(rows, X))
        self._set_fitted(
            col_factor_=fit.col_factor,
            fallback_=fallback,
            n_iter_=max(1, fit.n_iter),
            # The weight of a row does not move its own factor.
            _columns=replace(fit._columns, weighted=False),
            indicator_=indicator,
            **features_of(given),
        )
        if not self._kept.all():
            names = getattr(self, "feature_names_in_", np.arange(rows.n_cols))
            warn_user(
                "Skipping features without any observed values: "
                f"{names[~self._kept].tolist()}. At least one non-missing value is "
                "needed; keep_empty_features=True keeps them, filled with 0.",
                EmptyLineWarning,
            )
        return self

    def _read(self, X: Any, *, is_fitted: bool) -> tuple[Any, AnyRows]:
        """Read a table; cells equal to ``missing_values`` are NaN, in a copy of X."""
        rows = read_table(X, "zero")
        if is_fitted:
            validate_data(self, X, reset=False, skip_check_array=True)
        if _is_nan_like(self.missing_values):
            return X, rows
        if self.missing_values == 0 and is_sparse(X):
            raise ParameterError(
                "Imputation not possible when missing_values == 0 and input is sparse. "
                "Provide a dense array instead."
            )
        cells = _cells_of(rows, X)
        values = cells.data if is_sparse(X) else cells
        if np.isnan(values).any():
            raise DataError(
                f"Input X contains NaN, but missing_values={self.missing_values!r}. "
                f"Use NaN as the marker, after replacing {self.missing_values!r} by it."
            )
        values[values == self.missing_values] = np.nan
        return cells, read_table(cells, "zero")

    @property
    def _kept(self) -> Bools:
        """Columns that ``transform`` gives."""
        empty = np.isnan(self.col_factor_)
        return np.ones_like(empty) if self.keep_empty_features else ~empty

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
        X, rows = self._read(X, is_fitted=True)
        dtype, kept = output_dtype(X, rows), self._kept
        holes: Any = None
        if self.add_indicator:  # before the holes are filled in place
            cells = _cells_of(rows, X)
            is_nan = cells != cells  # noqa: PLR0124  # also of sparse arrays
            holes = is_nan[:, self.indicator_.features_].astype(dtype)
        without_any = np.isnan(self.col_factor_) & np.isnan(self.fallback_)
        fallback = np.where(without_any, 0.0, self.fallback_)
        placed = self._columns.place(rows, otherwise=fallback)
        if is_sparse(X):
            filled, left = fill_table(X, placed)
            table = filled.tocsc()
        else:
            table = np.empty((rows.n_rows, rows.n_cols))
            is_own = not self.copy and type(X) is np.ndarray and X.flags.writeable
            if is_own and X.dtype == np.float64:
                placed.check()  # before anything is written
                table = X
            left = placed.write([table])
            if dtype == np.float32:
                table = as_float32(table, rows.where)
                if is_own and X.dtype == np.float32:
                    X[:] = table
                    table = X
        if not kept.all():
            table = table[:, np.flatnonzero(kept)]
        if left.n:
            warn_user(
                text_of_left_cells(left.n) + " A row must observe something "
                "that was fitted together with the column of the hole; "
                'fallback="column" fills such cells with the mean of their column.',
                UndeterminedWarning,
            )
        if holes is None:
            return table
        if not is_sparse(X):
            return np.hstack([table, holes])
        from scipy.sparse import hstack

        return hstack([table, holes], format="csc")

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
            np.nan if _is_nan_like(self.missing_values) else self.missing_values
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
        tags.input_tags.allow_nan = _is_nan_like(self.missing_values)
        tags.input_tags.sparse = True
        return tags


def _is_nan_like(marker: Any) -> bool:
    """Whether cells marked so are read as NaN anyway: NaN, None and pd.NA."""
    return marker is None or is_pandas_na(marker) or bool(is_scalar_nan(marker))


def _observed_weight(rows: AnyRows, s: Floats) -> Floats:
    """Sum of the weights of the rows that observe each column."""
    if isinstance(rows, SparseRows):
        missing = rows.missing
        lost: Any = np.zeros(rows.n_cols)
        np.add.at(lost, rows.cols[missing], s[rows.row_of_cell[missing]])
    else:
        lost = s @ np.isnan(rows.cells)
    observed: Floats = s.sum() - lost
    return observed


def _cells_of(rows: Any, X: Any) -> Any:
    """Cells as an array or a sparse array of floats, with NaN for missing ones."""
    dtype = output_dtype(X, rows)
    if not is_sparse(X):
        return rows.rows(slice(0, rows.n_rows)).astype(dtype, copy=False)
    from scipy.sparse import csr_array

    cells = rows.values.astype(dtype), rows.cols, rows.ptr
    return csr_array(cells, shape=(rows.n_rows, rows.n_cols))
