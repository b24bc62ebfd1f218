"""Uncertainty of a fit: errors of cells, totals and indices, and tests of the model."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from a1gm._base.types import Floats, Ints
from a1gm._base.words import counted, shown
from a1gm._fit.fill import fill_table
from a1gm._fit.frames import FactorErrors
from a1gm._fit.place import FINITE, ZERO, Fills, with_exposure
from a1gm._fit.sure.arguments import (
    Axis,
    By,
    Dispersion,
    Which,
    check_dispersion,
    check_level,
    check_totals,
    generator_of,
)
from a1gm._fit.sure.covariance import Covariance
from a1gm._fit.sure.goodness import GoodnessOfFit
from a1gm._fit.sure.information import MOST_COLUMNS, Information
from a1gm._fit.sure.intervals import Holes, tails
from a1gm._fit.sure.labelled import Index, TotalsWithErrors
from a1gm._fit.sure.scatter import Scatter
from a1gm._fit.sure.simulate import simulate
from a1gm._fit.table import LazyRows
from a1gm._observe.patterns import weighted_counts
from a1gm._rows.frames import names_of, new_names, with_columns
from a1gm._rows.labels import Lookup, paired
from a1gm.exceptions import (
    DataError,
    NotRepresentableError,
    Option,
    ParameterError,
    TableTooLargeError,
)

ROWS_AT_ONCE = 1 << 12  # with weights
RANK = "rows, columns and the scales of blocks"
NO_DATA = (
    "This fit did not keep its data, so their scatter is not known. Make it with "
    "uncertainty=True (fit_file, PatternTable, distributed.fit) or with a1gm.fit in "
    'memory; or pass dispersion= a number or "poisson".'
)
NO_DEVIANCE = (
    "Negative cells have no deviance, so it cannot measure their scatter. Leave "
    'dispersion= out (then it is "pearson"), or pass a number or "poisson".'
)
BELOW_ZERO = (
    "Some fitted cells are below 0, or 0 where the data are not, and the "
    "over-dispersed Poisson model has no variance there, so this fit has no standard "
    "errors. For a claims triangle use Mack's method, which estimates them from the "
    "development factors."
)
OUTLYING = 0.2  # of Pearson's statistic is more than one cell should carry


class Outlier(NamedTuple):
    """A cell that carries more than a fifth of Pearson's statistic."""

    row: Any  #: Label of the row, or its position.
    column: Any  #: Label of the column, or its position.
    share: float  #: Of Pearson's statistic.
    dispersion: float  #: Pearson's, of all cells.
    dispersion_without: float  #: About what it would be without this cell.

    def __str__(self) -> str:
        return self.describe(f"row {shown(self.row)}, column {shown(self.column)}")

    def describe(self, place: str) -> str:
        """What the cell at a place does to the dispersion."""
        return (
            f"{place} carries {self.share:.0%} of Pearson's chi-square; without it the "
            f"dispersion would be about {self.dispersion_without:.3g}, not "
            f"{self.dispersion:.3g}"
        )


class Errors(GoodnessOfFit):
    """Errors of the cells, totals and factors of a table."""

    _covariance: Covariance  # of the logarithms of the column factors
    _scatter: Scatter
    _info: Information
    _errors_dof: float  # of the covariance: infinite unless it is robust

    @abstractmethod
    def _finder(self, axis: Axis) -> Lookup:
        """Lookup of the rows or columns of the table by name."""

    @abstractmethod
    def _slice(self, axis: Axis) -> tuple[Axis, slice]:
        """Side of the fitted table, and the part of it, that an axis is."""

    @abstractmethod
    def _cells(self, rows: Ints, cols: Ints) -> tuple[Floats, Floats]:
        """Fitted values of cells of the table, and their variances."""

    @abstractmethod
    def _sums(self, by: By, cells: Which) -> tuple[Floats, Floats, int]:
        """Totals, their variances, and how many cells have no value."""

    @property
    def covariance(self) -> Floats:
        """Covariance of the logarithms of the column factors."""
        m = len(self._info.h)
        if m > MOST_COLUMNS:
            raise TableTooLargeError(
                f"The covariance of {m:,} columns has {m:,} x {m:,} numbers; up to "
                f"{MOST_COLUMNS:,} columns are possible. All other errors are there."
            )
        if self._covariance.middle is not None and self._covariance.sides is None:
            return self._covariance.middle
        C = self._covariance.product(np.eye(m))
        fixed = self._info.fixed_columns
        return C - C[fixed] - C[:, fixed] + C[np.ix_(fixed, fixed)]

    # ---------------------------------------------------------------- tests of the fit
    def _share_below(self, unit: float) -> float:
        return self._info.share_below(unit)

    def summary(self) -> dict[str, str]:
        """The dispersion and the tests of fit, one entry each."""
        found = super().summary()
        if self._errors_dof < math.inf:
            rows = counted(self._info.counts.rows, "row")
            found["errors"] = f"robust, from {rows}"
        return found

    # ------------------------------------------------------------------------- cells
    def standard_error(self, i: Any, j: Any, *, prediction: bool = False) -> Any:
        """Standard error of the fitted value of cell (i, j).

        Parameters
        ----------
        i, j : int, label, or array of these
            Row and column, as in ``fit.fate``.
        prediction : bool, default=False
            Add the scatter of the cell itself around its mean: the error of a guess at
            a value that was not observed.

        Returns
        -------
        float, or ndarray
            0 for cells that are 0, NaN for those without a value.
        """
        self._info.check_size()
        rows, cols = paired(self._finder("row").find(i), self._finder("column").find(j))
        shape, rows, cols = rows.shape, rows.ravel(), cols.ravel()
        value, variance = self._cells(rows, cols)
        return self._errors_of(value, variance, shape, prediction)

    # ------------------------------------------------------------------------ totals
    def totals(self, by: By = "row", cells: Which = "missing") -> TotalsWithErrors:
        """Totals of the fitted values of many cells, with their errors.

        Parameters
        ----------
        by : {"row", "column", "all"}
            One total per row, one per column, or one.
        cells : {"missing", "fitted"}
            Of the missing cells (a reserve, what was not counted) or of all cells.
            Cells of weight 0 count as missing, whatever value the table has there.

        Returns
        -------
        TotalsWithErrors
            ``labels``, ``value``, ``se_estimation``, ``se_process`` and ``se``, the
            root of the sum of both squares; the process error is that of cells of
            weight 1. Cells without a value are in no total, and are counted below the
            table; NaN for a total without any other cell.
        """
        check_totals(by, cells)
        self._info.check_size()
        labels = ["all"] if by == "all" else self._finder(by).names
        of = "total" if by == "all" else by
        return self._totals_of(of, labels, *self._sums(by, cells), cells)

    def _column_totals(
        self, by: By, pieces: Iterator[tuple[Any, ...]]
    ) -> tuple[Floats, Floats]:
        """Totals of chosen cells by column, or of all, and their variances."""
        m, covariance = len(self._info.h), self._covariance
        is_thin = covariance.sides is not None
        value, own, total_own = np.zeros(m), np.zeros(m), 0.0
        # By pattern, from the side of the patterns, else their sum.
        away = np.zeros((self._info.patterns.n_patterns if is_thin else m, m))
        shared = np.zeros(m)
        for Q, H, W, U, pattern in pieces:
            value += W @ H
            own += U @ H**2
            total_own += float(U @ H.sum(axis=1) ** 2)
            cells = H * W[:, None]
            if by == "all":
                shared += cells.sum(axis=1) @ Q
            elif is_thin:
                np.add.at(away, pattern, cells)
            else:
                away += cells.T @ Q
        if by == "all":
            total = covariance.spread((value - shared)[None])
            return np.array([value.sum()]), self.dispersion * total_own + total
        if is_thin:
            Q = self._info.by_pattern(lambda some: self._info.shares(some)[0])
            variance = covariance.of_column_totals(value, Q, away)
            if covariance.own is not None:
                R = self._info.patterns.row_sums
                within = np.divide(1.0, R, out=np.zeros(len(R)), where=R != 0.0)
                own -= within @ away**2  # which that variance has
        else:
            variance = covariance.spread(np.diag(value) - away)
        return value, self.dispersion * own + variance

    def _row_sums(self, pieces: Iterator[tuple[Any, ...]]) -> Iterator[Floats]:
        """Sums of chosen cells, variance due to the columns, and 1 / r, by row."""
        found = []
        for Q, H, _, U, _ in pieces:
            k = H.sum(axis=1)
            found.append((k, self._covariance.spread(H - k[:, None] * Q), U))
        return map(np.concatenate, zip(*found, strict=True))

    def _rows_of(self, rows: slice, F: Floats) -> tuple[Any, ...]:
        """A piece of totals, with cells F of some rows of the fitted table."""
        info = self._info
        _, r, pattern = info.rows(np.arange(rows.start, rows.stop))
        own = np.divide(1.0, r, out=np.zeros(len(r)), where=r > 0.0)
        Q = info.by_row(pattern, lambda some: info.shares(some)[0])
        return Q, F, np.ones(len(r)), own, pattern

    # ----------------------------------------------------------------------- indices
    def index(self, base: Any = 0, by: Axis = "column") -> Index:
        """Factors of the columns (or rows) relative to one of them.

        Parameters
        ----------
        base : label, int, or None, default=0
            The column or row that is 1, as in ``fit.fate``; 0 is the first, unless it
            is a label, and None the first whose factor is known and not 0.
        by : {"column", "row"}, default="column"
            Factors of the columns or of the rows.

        Returns
        -------
        Index
            ``labels``, ``value`` and ``se``; NaN where the two share no block.
        """
        info = self._info
        if by not in ("column", "row"):
            raise ParameterError(f'by must be "column" or "row", got {by!r}.')
        finder, (side, own) = self._finder(by), self._slice(by)
        block = info.blocks(side)
        at = own.start + finder.base(base, block[own] >= 0)
        if side == "row":
            value, variance = self._row_index(at)
        else:
            base_alone = np.zeros((1, len(info.h)))
            base_alone[0, at] = 1.0
            variance = self._covariance.resistance(base_alone)[0]
            with np.errstate(over="ignore"):
                value = info.h / info.h[at]
        value = np.where(block == block[at], value, np.nan)
        variance = np.maximum(variance, 0.0)
        variance[at] = 0.0
        with np.errstate(over="ignore"):
            se = (value * np.sqrt(variance))[own]
        if np.isinf(se).any():
            raise NotRepresentableError(
                f"An index of the {by}s, or its error, is above the largest float64 "
                "(1.8e308): their factors lie too far apart. Choose another base."
            )
        return Index(
            labels=finder.names,
            value=value[own],
            se=se,
            _of=by,
            _backend=self._backend,
            _errors_dof=self._errors_dof,
        )

    def _row_index(self, at: int) -> tuple[Floats, Floats]:
        info = self._info
        w, r, pattern = info.every_row
        base, _ = info.shares(slice(int(pattern[at]), int(pattern[at]) + 1))
        of_pattern = info.by_pattern(
            lambda some: self._covariance.spread(info.shares(some)[0] - base)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            own = self.dispersion * (1.0 / r + 1.0 / r[at])
            return w / w[at], own + of_pattern[pattern]


class Uncertainty(Errors):
    """How sure a fit is. Made by ``fit.uncertainty()``.

    The model behind the divergence is the over-dispersed Poisson: a cell has the mean
    ``w_i h_j`` and the variance dispersion × mean. All errors are first order (the
    delta method), and computed on the patterns of the holes, not row by row.

    Attributes
    ----------
    dispersion : float
        Variance over mean of a cell of weight 1. Missing cells scatter like these,
        whatever their weights: scale weights so that 1 is that of a cell to be filled.
    dof : int
        Degrees of freedom: observed cells less rows, columns and blocks' scales.
    covariance : ndarray of shape (n_cols, n_cols)
        Of the logarithms of the column factors, one of each block held fixed.
    """

    def __init__(
        self, scatter: Scatter, dispersion: Dispersion, *, robust: bool = False
    ) -> None:
        check_dispersion(dispersion)
        self._scatter, self._info = scatter, scatter.info
        if self._info.is_signed and self._info.has_no_variance():
            raise DataError(BELOW_ZERO)
        self.dof = self._info.counts.degrees_of_freedom
        self._choose(dispersion, RANK)
        if math.isnan(self.dispersion):
            is_signed = self._info.is_signed and dispersion == "deviance"
            raise ParameterError(NO_DEVIANCE if is_signed else NO_DATA)
        self._backend = self._info.table.backend
        if robust:
            self._covariance = scatter.sandwich()
            self._errors_dof = self._info.counts.rows - 1
        else:
            self._covariance = self._info.inverse.times(self.dispersion)
            self._errors_dof = math.inf

    @cached_property
    def outlier(self) -> Outlier | None:
        """The cell that carries more than a fifth of Pearson's statistic, if any.

        Such a cell decides the dispersion, and so the width of every interval: look at
        it, and leave it out (NaN) if it is wrong. Tables of up to 4 million cells are
        searched.
        """
        cell, chi2 = self._scatter.largest, self.pearson_chi2
        if cell is None or self.dof < 2 or not cell.square > OUTLYING * chi2 > 0.0:
            return None
        without = self._scatter.without(cell) / (self.dof - 1)
        place = (self._finder("row"), cell.row), (self._finder("column"), cell.column)
        row, column = (finder.names[at] for finder, at in place)
        return Outlier(row, column, cell.square / chi2, chi2 / self.dof, without)

    def summary(self) -> dict[str, str]:
        """The dispersion and the tests of fit, one entry each."""
        found = super().summary()
        return found if self.outlier is None else found | {"outlier": str(self.outlier)}

    def _finder(self, axis: Axis) -> Lookup:
        table, (n, m) = self._info.table, self._info.shape
        if axis == "row":
            return Lookup(axis, table.names_of_rows, n)
        return Lookup(axis, table.col_labels, m)

    def _slice(self, axis: Axis) -> tuple[Axis, slice]:
        return axis, slice(0, self._finder(axis).n)

    def _cells(self, rows: Ints, cols: Ints) -> tuple[Floats, Floats]:
        info, exposures = self._info, self._info.exposures
        fate = info.fates.of_cells(rows, cols)
        value = np.where(fate == ZERO, 0.0, np.nan)
        variance = value.copy()
        own = np.flatnonzero(fate == FINITE)
        if len(own):
            some, place = np.unique(rows[own], return_inverse=True)
            w, r, pattern = (values[place] for values in info.rows(some))
            f = w * info.h[cols[own]]
            if exposures is not None:
                f *= exposures.values_at(rows[own], cols[own])
            value[own] = f
            G = np.empty(len(own))
            for k in np.unique(pattern).tolist():
                chosen = np.flatnonzero(pattern == k)
                Q, _ = info.shares(slice(k, k + 1))
                G[chosen] = self._covariance.resistance(Q)[0, cols[own[chosen]]]
            with np.errstate(divide="ignore", invalid="ignore"):
                found = f**2 * (self.dispersion / r + G)
            variance[own] = np.where(f == 0.0, 0.0, found)
        if exposures is not None:
            for found in (value, variance):
                with_exposure(found, exposures.values_at(rows, cols))
        return value, variance

    def _sums(self, by: By, cells: Which) -> tuple[Floats, Floats, int]:
        info, pieces = self._info, self._chosen_cells(cells)
        if by == "row":
            value, away, own = self._row_sums(pieces)
            if not info.table.is_weighted:
                w, r, pattern = info.every_row
                value, away = w * value[pattern], w**2 * away[pattern]
                own = np.divide(1.0, r, out=np.zeros(len(r)), where=value != 0.0)
            variance = self.dispersion * value**2 * own + away
        else:
            value, variance = self._column_totals(by, pieces)
        value[info.has_no_total(by, cells)] = np.nan
        return value, variance, info.n_without_value()

    def _chosen_cells(self, cells: Which) -> Iterator[tuple[Any, ...]]:
        """Yield shares, factors of the chosen cells, sums of w and w²/r, and patterns.

        Rows of one pattern may have weights of any scale, and other exposures of their
        missing cells: with weights by row, fitted values with w as 1.
        """
        info, n_rows = self._info, self._info.shape[0]
        if not info.table.is_weighted:
            for some in info.patterns.stretches():
                Q, reach = info.shares(some)
                R = info.patterns.row_sums[some]
                W = np.divide(R, reach, out=np.zeros(len(R)), where=R != 0.0)
                U = np.divide(W, reach, out=np.zeros(len(R)), where=R != 0.0)
                H = info.chosen(some, cells) * info.h
                yield Q, H, W, U, np.arange(some.start, some.stop)
            return
        for start in range(0, n_rows, ROWS_AT_ONCE):
            rows = slice(start, min(start + ROWS_AT_ONCE, n_rows))
            w, _, pattern = info.rows(np.arange(rows.start, rows.stop))
            F = w[:, None] * info.h
            if info.exposures is not None:
                F = F * info.exposures.rows(rows)  # in units of the data
            chosen = info.by_row(pattern, lambda some: info.chosen(some, cells))
            yield self._rows_of(rows, np.where(chosen & ~np.isnan(F), F, 0.0))

    def factor_errors(self) -> FactorErrors:
        """Standard errors of ``fit.row_factor`` and ``fit.col_factor``.

        Returns
        -------
        FactorErrors
            ``rows`` and ``columns``, which can be unpacked. Those of the rows are
            computed where they are looked at. The column factors are shares, and the
            row factors totals, so each error is that of a factor with the others around
            it, not of a scale that could be chosen.
        """
        # The column factors of a block have a fixed sum, so what is estimated is
        # log h_j less the logarithm of that sum: the direction is e_j - p, p being the
        # shares of the columns in their block. A row's is p - q_i, beside the 1 / r_i
        # of its own level.
        info, inside = self._info, self._info.label >= 0
        block = np.where(inside, info.label, 0)
        sums = weighted_counts(block[inside], info.h[inside], int(block.max()) + 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            p = np.nan_to_num(np.where(inside, info.h / sums[block], 0.0))
        shares = np.where(info.label == np.arange(len(sums))[:, None], p, 0.0)
        variance = self._covariance.resistance(shares)[block, np.arange(len(p))]
        of_h = info.h * np.sqrt(variance)

        def of_patterns(some: slice) -> Floats:
            own = np.where(info.inside(info.component[some]), p, 0.0)
            return self._covariance.spread(own - info.shares(some)[0])

        def of_rows(start: int, stop: int) -> Floats:
            w, r, pattern = info.rows(np.arange(start, stop))
            away = info.by_row(pattern, of_patterns)
            with np.errstate(divide="ignore", invalid="ignore"):
                errors = w * np.sqrt(self.dispersion / r + away)
            return np.where(w == 0.0, 0.0, errors)

        is_zero = info.columns.factor == 0.0  # that of an empty column is NaN
        columns = np.where(inside, of_h, np.where(is_zero, 0.0, np.nan))
        errors = FactorErrors(LazyRows(info.shape[0], of_rows), columns)
        errors.names = self._finder("row").names, self._finder("column").names
        return errors

    # --------------------------------------------------------------------- intervals
    def interval(
        self, X: Any, level: float = 0.95, *, weights: Any = None, exposure: Any = None
    ) -> tuple[Any, Any]:
        """Bounds of where the values of missing cells will lie.

        Parameters
        ----------
        X : table of shape (any, n_cols)
            The table that was fitted, or other rows, as in ``fit.impute``.
        level : float, default=0.95
            The share of cells that lie between the bounds.
        weights, exposure : table, optional
            Weights or exposures of the cells of X, where the fit had them. The values
            that are bounded are those of cells of weight 1.

        Returns
        -------
        lower, upper : tables like X
            X with its holes filled with the bounds, which are never below 0: gamma
            quantiles. Where a fill is hardly known, its upper bound grows with the
            error of its logarithm instead, up to inf: no bound is known.
        """
        if self._info.table.opened(X, self._info.shape[1])[0] is not None:
            raise ParameterError(
                "Bounds are quantiles of gamma distributions, which engines do not "
                "have. errors(X) adds standard errors to a lazy frame; or collect X."
            )
        holes = self._holes(X, weights, exposure)
        lower, upper = (
            fill_table(X, Fills(holes.source, partial(holes.quantiles, tail)))
            for tail in tails(level)
        )
        return lower.table, upper.table

    def errors(
        self, X: Any, suffix: str = "_se", *, weights: Any = None, exposure: Any = None
    ) -> Any:
        """Fill a frame, and add the errors of the fills as guesses at the cells.

        Parameters
        ----------
        X : frame
            The table that was fitted, or other rows, as in ``fit.impute``. A lazy frame
            stays lazy; it may have up to 64 columns.
        suffix : str, default="_se"
            What the names of the added columns end in.
        weights, exposure : table, optional
            As in ``interval``.

        Returns
        -------
        frame
            X with its holes filled and one column more for each of the table: the
            errors of ``standard_error(i, j, prediction=True)``, missing where nothing
            was filled.

        Examples
        --------
        >>> import pandas as pd, a1gm
        >>> X = pd.DataFrame(
        ...     {"a": [20, 12, 9], "b": [41, 18, 22], "c": [57.0, 33.0, None]}
        ... )
        >>> found = a1gm.fit(X).uncertainty().errors(X)
        >>> found[["c", "c_se"]].round(1)
              c  c_se
        0  57.0   NaN
        1  33.0   NaN
        2  30.7   5.5
        """
        info = self._info
        info.check_size()
        table, order = info.table.opened(X, info.shape[1], weights, exposure)
        if table is not None:
            C = self.covariance
            C = C if order is None else C[np.ix_(order, order)]
            columns = info.columns.in_order(order)
            return table.fill_with_errors(columns, C, self.dispersion, suffix)
        holes = self._holes(X, weights, exposure)
        rows: Any = holes.source
        if getattr(rows, "backend", None) is None:
            raise ParameterError(
                "Errors are added as columns, which an array does not have. Pass a "
                "frame; standard_error(i, j, prediction=True) gives those of cells."
            )
        errors = np.full((rows.n_rows, rows.n_cols), np.nan)
        for some, piece in rows.in_pieces():
            i, j = np.nonzero(np.isnan(piece))
            errors[i + some.start, j] = holes.errors(i + some.start, j)
        names = new_names(rows.col_labels, suffix, names_of(X))
        filled = fill_table(X, holes.placed).table
        return with_columns(filled, dict(zip(names, errors.T, strict=True)))

    def _holes(self, X: Any, weights: Any = None, exposure: Any = None) -> Holes:
        """The missing cells of any rows."""
        info = self._info
        info.check_size()
        rows = info.table.read(X, info.shape[1], weights, exposure)
        errors = self._covariance, self._errors_dof, self.dispersion
        return Holes(info, *errors, *rows)

    def _own_bounds(self, level: float) -> Callable[[Ints, Ints], Any]:
        """Return a function for the bounds of missing cells of the fitted table."""
        check_level(level, Option("interval"))
        return partial(self._holes(self._info.table.source).bounds, level)

    def _bounds(self, X: Any, i: Ints, j: Ints, level: float) -> tuple[Floats, Floats]:
        """The bounds that ``interval`` gives some missing cells."""
        return self._holes(X).bounds(level, i, j)

    # ------------------------------------------------------------------------- draws
    def simulate(
        self,
        n: int,
        by: By = "row",
        cells: Which = "missing",
        *,
        random_state: Any = None,
    ) -> Floats:
        """Draw totals: new data by the model, fitted again, with new values of cells.

        Parameters
        ----------
        n : int
            How many draws.
        by, cells
            As in ``totals``.
        random_state : int, numpy Generator, or None
            Where the random numbers come from. The same table in another container,
            or with weights of 1, may get other draws of the same distribution.

        Returns
        -------
        ndarray of shape (n, number of totals)
            Their deviation is the prediction error of ``totals``, beyond first order;
            NaN where these are.
        """
        check_totals(by, cells, n)
        random = generator_of(random_state)
        draws = simulate(self._info, self.dispersion, n, by, cells, random)
        draws[:, self._info.has_no_total(by, cells)] = np.nan
        return draws
