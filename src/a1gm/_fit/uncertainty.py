"""How sure a fit is: errors of cells, totals and indices, and tests of the model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

from a1gm._base.types import Bools, Floats, Ints
from a1gm._fit.choices import (
    By,
    Dispersion,
    Which,
    check_choices,
    check_dispersion,
    check_level,
    generator_of,
)
from a1gm._fit.evidence import Evidence
from a1gm._fit.factor_errors import factor_errors
from a1gm._fit.fates import FINITE, ZERO
from a1gm._fit.fill import fill_table
from a1gm._fit.holes import Holes
from a1gm._fit.information import resistance, spread
from a1gm._fit.labelled import Index, TotalsWithErrors, totals_with_errors
from a1gm._fit.lazy_rows import LazyRows
from a1gm._fit.show import html_table, one_line
from a1gm._fit.simulate import simulate
from a1gm._rows.lookup import Lookup
from a1gm._rows.weights import cell_weights
from a1gm.exceptions import DataError, ParameterError

TOO_FEW = (
    "The table has {dof} degrees of freedom (observed cells less rows, columns and the "
    "scales of blocks), so its dispersion cannot be estimated. Pass dispersion= a "
    'number that you know from elsewhere, or "poisson".'
)
NO_DATA = (
    "This fit did not keep its data, so their scatter is not known. Make it with "
    "uncertainty=True (fit_file, PatternTable, distributed.fit), which does unless a "
    "row with negative cells sums to 0 or less, or with a1gm.fit in memory; or pass "
    'dispersion= a number or "poisson".'
)
NO_DEVIANCE = (
    "Negative cells have no deviance, so it cannot measure their scatter. Leave "
    'dispersion= out (then it is "pearson"), or pass a number or "poisson".'
)


class Uncertainty:
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
        self, known: Evidence, dispersion: Dispersion, *, robust: bool = False
    ) -> None:
        is_number = check_dispersion(dispersion)
        self._known, self._word = known, dispersion
        self.dof, self._n_parameters = known.degrees_of_freedom()
        self.dispersion = float(dispersion) if is_number else 1.0
        # Of the Poisson's variance in the tests of fit.
        self._unit = (self.dispersion or 1.0) if is_number else 1.0
        if dispersion in ("pearson", "deviance"):
            if self.dof < 1:
                raise DataError(TOO_FEW.format(dof=self.dof))
            chi2 = self.pearson_chi2 if dispersion == "pearson" else self.deviance
            self.dispersion = chi2 / self.dof
            if math.isnan(chi2):
                is_signed = known.table.is_signed and dispersion == "deviance"
                raise ParameterError(NO_DEVIANCE if is_signed else NO_DATA)
        M = known.information.inverse
        self.covariance = self.dispersion * M
        if robust:
            self.covariance = known.sandwich(M)

    # ---------------------------------------------------------------- tests of the fit
    @cached_property
    def pearson_chi2(self) -> float:
        """Pearson's statistic of the observed cells; NaN where they are not kept."""
        return self._known.pearson_chi2()

    @cached_property
    def deviance(self) -> float:
        """Twice the divergence; NaN for negative cells, and where none are kept."""
        return self._known.deviance()

    @property
    def pearson_p(self) -> float:
        """Chance of as large a Pearson's statistic, if rank 1 and Poisson are right.

        With a dispersion that was given as a number, it takes the place of 1.
        """
        return self._chance(self.pearson_chi2)

    @property
    def deviance_p(self) -> float:
        """Chance of as large a deviance, if rank 1 and Poisson are right."""
        return self._chance(self.deviance)

    def _chance(self, statistic: float) -> float:
        from scipy.special import chdtrc

        if self.dof < 1:
            return math.nan
        return float(chdtrc(self.dof, statistic / self._unit))

    @property
    def aic(self) -> float:
        """Deviance + 2 × parameters for ``dispersion="poisson"``, else NaN."""
        if self._word != "poisson":
            return math.nan
        return self.deviance + 2.0 * self._n_parameters

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
        self._known.information.check_size()
        rows, cols = self._known.places(i, j)
        shape, rows, cols = rows.shape, rows.ravel(), cols.ravel()
        value, variance = self._cells(rows, cols)
        if prediction:
            variance = variance + self.dispersion * value
        with np.errstate(invalid="ignore"):
            found = np.sqrt(variance).reshape(shape)
        return found if shape else float(found)

    def _cells(self, rows: Ints, cols: Ints) -> tuple[Floats, Floats]:
        """Fitted values of cells of the table, and their variances."""
        known, info = self._known, self._known.information
        fate = known.fates.of_cells(rows, cols)
        value = np.where(fate == ZERO, 0.0, np.nan)
        variance = value.copy()
        own = np.flatnonzero(fate == FINITE)
        if len(own):
            some, place = np.unique(rows[own], return_inverse=True)
            w, r, lines = known.some_rows(some)
            used, at = np.unique(lines, return_inverse=True)
            f = w[place] * info.h[cols[own]]
            if known.exposures is not None:
                f *= cell_weights(known.exposures, rows[own], cols[own])
            value[own] = f
            G = np.empty(len(own))
            line_of_cell = at[place]
            for k, line in enumerate(used.tolist()):
                chosen = np.flatnonzero(line_of_cell == k)
                Q, _ = info.shares(slice(line, line + 1))
                G[chosen] = resistance(Q, self.covariance)[0, cols[own[chosen]]]
            with np.errstate(divide="ignore", invalid="ignore"):
                found = f**2 * (self.dispersion / r[place] + G)
            variance[own] = np.where(f == 0.0, 0.0, found)
        if known.exposures is not None:
            nothing = cell_weights(known.exposures, rows, cols) == 0.0
            value[nothing] = variance[nothing] = 0.0
        return value, variance

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
            weight 1. Cells without a value are in no total, and
            it says how many they are; NaN where there are no others.
        """
        check_choices(by, cells)
        self._known.information.check_size()
        if by == "row":
            value, variance = self._row_totals(cells)
            labels = self._known.row_labels
        else:
            value, variance = self._column_totals(by, cells)
            labels = self._known.col_labels
        value[self._known.has_no_total(by, cells)] = np.nan
        about = self.dispersion, self._known.n_without_value()
        backend = self._known.table.backend
        return totals_with_errors(by, labels, value, variance, *about, backend)

    def _chosen(self, lines: slice, cells: Which) -> Bools:
        """Which of the chosen cells of some lines have a value."""
        info = self._known.information
        inside = info.inside(info.component[lines])
        if cells == "missing":
            inside &= info.statistics.weight_lines(lines) == 0.0
        return inside

    def _chosen_cells(self, cells: Which) -> Iterator[tuple[Floats, ...]]:
        """Yield shares, factors of the chosen cells, and sums of w and w²/r, by lines.

        Twins have their own exposures of missing cells, so with these by rows: fitted
        values, with w as 1.
        """
        known, info = self._known, self._known.information
        if known.exposures is None:
            for lines in info.statistics.stretches():
                Q, reach = info.shares(lines)
                H = self._chosen(lines, cells) * info.h
                yield Q, H, *known.line_totals(lines, reach)
            return
        for rows, exposure in known.exposures.blocks():
            w, r, line = known.some_rows(np.arange(rows.start, rows.stop))
            lines = slice(int(line.min()), int(line.max()) + 1)
            at = line - lines.start
            F = w[:, None] * exposure * info.h  # in units of the data
            F = np.where(self._chosen(lines, cells)[at] & ~np.isnan(F), F, 0.0)
            own = 1.0 / np.where(w > 0.0, r, np.inf)
            yield info.shares(lines)[0][at], F, np.ones(len(w)), own

    def _column_totals(self, by: By, cells: Which) -> tuple[Floats, Floats]:
        m = len(self._known.information.h)
        value, own, total_own = np.zeros(m), np.zeros(m), 0.0
        away = np.zeros((m, m))
        for Q, H, W, U in self._chosen_cells(cells):
            value += W @ H
            own += U @ H**2
            total_own += float(U @ H.sum(axis=1) ** 2)
            away += (H * W[:, None]).T @ Q
        directions = np.diag(value) - away
        if by == "column":
            away = spread(directions, self.covariance)
            return value, self.dispersion * own + away
        away = spread(directions.sum(axis=0)[None], self.covariance)
        return np.array([value.sum()]), self.dispersion * total_own + away

    def _row_totals(self, cells: Which) -> tuple[Floats, Floats]:
        sums, spreads = [], []
        for Q, H, _, _ in self._chosen_cells(cells):
            k = H.sum(axis=1)
            sums.append(k)
            spreads.append(spread(H - k[:, None] * Q, self.covariance))
        k, of_line = np.concatenate(sums), np.concatenate(spreads)
        w, r, line = self._known.some_rows(np.arange(self._known.shape[0]))
        if self._known.exposures is not None:
            w, line = np.ones(len(w)), np.arange(len(w))
        value = w * k[line]
        with np.errstate(divide="ignore", invalid="ignore"):
            own = np.where(value == 0.0, 0.0, value**2 / r)
        return value, self.dispersion * own + w**2 * of_line[line]

    # ----------------------------------------------------------------------- indices
    def index(self, base: Any = 0, axis: Literal["column", "row"] = "column") -> Index:
        """Factors of the columns (or rows) relative to one of them.

        Parameters
        ----------
        base : label, int, or None, default=0
            The column or row that is 1, as in ``fit.fate``; 0 is the first, unless it
            is a label, and None the first whose factor is known and not 0.
        axis : {"column", "row"}, default="column"
            Whose factors.

        Returns
        -------
        Index
            ``labels``, ``value`` and ``se``; NaN where the two share no block.
        """
        known, info = self._known, self._known.information
        if axis not in ("column", "row"):
            raise ParameterError(f'axis must be "column" or "row", got {axis!r}.')
        block, is_row = self._known.blocks(axis), axis == "row"
        labels, n = known.row_labels if is_row else known.col_labels, len(block)
        at = Lookup(axis, labels, n).base(base, block >= 0)
        if is_row:
            value, variance = self._row_index(at)
        else:
            C = self.covariance
            variance = C.diagonal() - 2.0 * C[at] + C[at, at]
            value = info.h / info.h[at]
        value = np.where(block == block[at], value, np.nan)
        variance = np.where(np.arange(n) == at, 0.0, np.maximum(variance, 0.0))
        names = np.arange(n) if labels is None else labels
        return Index(
            labels=names,
            value=value,
            se=value * np.sqrt(variance),
            _of=axis,
            _backend=known.table.backend,
        )

    def _row_index(self, at: int) -> tuple[Floats, Floats]:
        info = self._known.information
        w, r, line = self._known.some_rows(np.arange(self._known.shape[0]))
        base, _ = info.shares(slice(int(line[at]), int(line[at]) + 1))
        of_line = np.concatenate(
            [
                spread(info.shares(lines)[0] - base, self.covariance)
                for lines in info.statistics.stretches()
            ]
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            own = self.dispersion * (1.0 / r + 1.0 / r[at])
            return w / w[at], own + of_line[line]

    def factor_errors(self) -> tuple[LazyRows, Floats]:
        """Standard errors of ``fit.row_factor`` and ``fit.col_factor``.

        Returns
        -------
        rows, columns
            Those of the rows are computed where they are looked at. The column factors
            are shares, and the row factors totals, so each error is that of a factor
            with the others around it, not of a scale that could be chosen.
        """
        return factor_errors(self._known, self.covariance, self.dispersion)

    # --------------------------------------------------------------------- intervals
    def interval(
        self,
        X: Any,
        level: float = 0.95,
        *,
        weights: Any = None,
        exposure: Any = None,
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
        holes = self._holes(X, weights, exposure)
        part = self._known.table.part_of(X)
        lower, upper = (
            fill_table(part, holes.source, partial(holes.quantiles, tail))
            for tail in _tails(level)
        )
        return lower.table, upper.table

    def _holes(self, X: Any, weights: Any = None, exposure: Any = None) -> Holes:
        self._known.information.check_size()
        known = self._known
        fitted = known.solved, known.rows
        source, V, order = known.table.read(X, fitted, weights, exposure)
        return Holes(known, self.covariance, self.dispersion, source, V, order)

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
        check_choices(by, cells, n)
        known = self._known
        n_rows, lines = known.shape[0], slice(0, known.information.statistics.n_lines)
        chosen: Any = self._chosen(lines, cells)
        if known.table.is_weighted:
            chosen = chosen[known.some_rows(np.arange(n_rows))[2]]
        if known.exposures is not None:
            chosen = chosen * np.nan_to_num(known.exposures.rows(slice(0, n_rows)))
        random = generator_of(random_state)
        draws = simulate(known, self.dispersion, n, by, chosen, random)
        draws[:, known.has_no_total(by, cells)] = np.nan
        return draws

    # -------------------------------------------------------------------- appearance
    def summary(self) -> dict[str, str]:
        """What it says, line by line."""
        phi = f"{self.dispersion:.6g}"
        if self.dispersion == 0.0:
            phi = "0: a perfect fit, all errors are 0"
        return {
            "dispersion": phi,
            "degrees of freedom": f"{self.dof:,}",
            "Pearson's chi-square": _tested(self.pearson_chi2, self.pearson_p),
            "deviance": _tested(self.deviance, self.deviance_p),
        }

    def __repr__(self) -> str:
        return one_line("Uncertainty", self.summary())

    def _repr_html_(self) -> str:
        return html_table("Uncertainty", self.summary())


holes_of = Uncertainty._holes  # the holes of rows, as a picture wants them


def bounds_of_cells(
    sure: Uncertainty, X: Any, i: Ints, j: Ints, level: float
) -> tuple[Floats, Floats]:
    """The bounds that ``interval`` gives some missing cells, whose rows ascend."""
    holes = sure._holes(X)
    lower, upper = (holes.quantiles_by_rows(tail, i, j) for tail in _tails(level))
    return lower, upper


def _tails(level: float) -> tuple[float, float]:
    check_level(level)
    return (1.0 - level) / 2.0, (1.0 + level) / 2.0


def _tested(statistic: float, chance: float) -> str:
    return f"{statistic:.6g} (p = {chance:.2g})"
