"""How sure a fit is: errors of cells, totals and indices, and tests of the model."""

from __future__ import annotations

import math
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias

import numpy as np

from a1gm._base.types import Floats, Ints
from a1gm._result.evidence import Evidence
from a1gm._result.fates import FINITE, ZERO
from a1gm._result.fill import fill_table
from a1gm._result.holes import Holes
from a1gm._result.information import resistance, spread
from a1gm._result.labelled import Index, TotalsWithErrors
from a1gm._result.show import html_table, one_line
from a1gm._result.simulate import simulate
from a1gm._sources.lookup import Lookup
from a1gm.exceptions import DataError, LabelError, ParameterError

__all__ = ["By", "Dispersion", "Uncertainty", "Which", "check_level"]

By: TypeAlias = Literal["row", "column", "all"]
Which: TypeAlias = Literal["missing", "fitted"]
Dispersion: TypeAlias = Literal["pearson", "deviance", "poisson"] | float
TOO_FEW = (
    "The table has {dof} degrees of freedom (observed cells less rows, columns and the "
    "scales of blocks), so its dispersion cannot be estimated. Pass dispersion= a "
    'number that you know from elsewhere, or "poisson".'
)
NO_DATA = (
    "This fit did not keep its data, so their scatter is not known. Pass dispersion= a "
    'number or "poisson", and robust=False; or fit the table in memory.'
)


class Uncertainty:
    """How sure a fit is. Made by ``fit.uncertainty()``.

    The model behind the divergence is the over-dispersed Poisson: a cell has the mean
    ``w_i h_j`` and the variance dispersion × mean. All errors are first order (the
    delta method), and computed on the patterns of the holes, not row by row.

    Attributes
    ----------
    dispersion : float
        Variance over mean of a cell.
    dof : int
        Degrees of freedom: observed cells less rows, columns and blocks' scales.
    """

    def __init__(
        self, known: Evidence, dispersion: Dispersion, *, robust: bool = False
    ) -> None:
        is_number = _check_dispersion(dispersion)
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
                raise ParameterError(NO_DATA)
        M = known.information.inverse
        #: Covariance of the logarithms of the column factors.
        self._covariance = self.dispersion * M
        if robust:
            self._covariance = M @ known.scatter_of_rows() @ M

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
            value[own] = f = w[place] * info.h[cols[own]]
            G = np.empty(len(own))
            line_of_cell = at[place]
            for k, line in enumerate(used.tolist()):
                chosen = np.flatnonzero(line_of_cell == k)
                Q, _ = info.shares(slice(line, line + 1))
                G[chosen] = resistance(Q, self._covariance)[0, cols[own[chosen]]]
            with np.errstate(divide="ignore", invalid="ignore"):
                found = f**2 * (self.dispersion / r[place] + G)
            variance[own] = np.where(f == 0.0, 0.0, found)
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

        Returns
        -------
        TotalsWithErrors
            ``labels``, ``value``, ``se_estimation``, ``se_process`` and ``se``, the
            root of the sum of both squares. Cells without a value are in no total; it
            is NaN where there are no others.
        """
        _check_choices(by, cells)
        if by == "row":
            value, variance = self._row_totals(cells)
            labels = self._known.row_labels
        else:
            value, variance = self._column_totals(by, cells)
            labels = self._known.col_labels
        if cells == "missing":
            unknown = self._known.undetermined()
            places = {"row": unknown.row, "column": unknown.column}.get(by)
            if len(unknown):
                none = np.zeros(len(value), bool)
                none[slice(None) if places is None else places] = True
                value[none & (value == 0.0)] = np.nan
        variance = np.where(np.isnan(value), np.nan, variance)
        if by == "all":
            labels = ["all"]
        elif labels is None:
            labels = np.arange(len(value))
        process = self.dispersion * value
        with np.errstate(invalid="ignore"):  # signed data: no error below 0
            return TotalsWithErrors(
                labels=labels,
                value=value,
                se=np.sqrt(variance + process),
                se_estimation=np.sqrt(variance),
                se_process=np.sqrt(process),
                _of="total" if by == "all" else by,
                _backend=self._known.table.backend,
            )

    def _chosen(self, lines: slice, cells: Which) -> Floats:
        """Column factors of the chosen cells of some lines that have a value."""
        info = self._known.information
        inside = info.inside(info.component[lines])
        if cells == "missing":
            inside &= info.statistics.weight_lines(lines) == 0.0
        return np.where(inside, info.h, 0.0)

    def _column_totals(self, by: By, cells: Which) -> tuple[Floats, Floats]:
        info, m = self._known.information, len(self._known.information.h)
        value, own, total_own = np.zeros(m), np.zeros(m), 0.0
        away = np.zeros((m, m))
        for lines in info.statistics.stretches():
            Q, reach = info.shares(lines)
            W, U = self._known.line_totals(lines, reach)
            H = self._chosen(lines, cells)
            value += W @ H
            own += U @ H**2
            total_own += float(U @ H.sum(axis=1) ** 2)
            away += (H * W[:, None]).T @ Q
        directions = np.diag(value) - away
        if by == "column":
            away = spread(directions, self._covariance)
            return value, self.dispersion * own + away
        away = spread(directions.sum(axis=0)[None], self._covariance)
        return np.array([value.sum()]), self.dispersion * total_own + away

    def _row_totals(self, cells: Which) -> tuple[Floats, Floats]:
        info = self._known.information
        sums, spreads = [], []
        for lines in info.statistics.stretches():
            Q, _ = info.shares(lines)
            H = self._chosen(lines, cells)
            k = H.sum(axis=1)
            sums.append(k)
            spreads.append(spread(H - k[:, None] * Q, self._covariance))
        k, of_line = np.concatenate(sums), np.concatenate(spreads)
        w, r, line = self._known.some_rows(np.arange(self._known.shape[0]))
        value = w * k[line]
        with np.errstate(divide="ignore", invalid="ignore"):
            own = np.where(value == 0.0, 0.0, value**2 / r)
        return value, self.dispersion * own + w**2 * of_line[line]

    # ----------------------------------------------------------------------- indices
    def index(
        self, base: Any = None, axis: Literal["column", "row"] = "column"
    ) -> Index:
        """Factors of the columns (or rows) relative to one of them.

        Parameters
        ----------
        base : label or int, optional
            The column or row that is 1, as in ``fit.fate``; the first by default.
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
        if axis == "column":
            labels, n = known.col_labels, known.shape[1]
            at = _base_of("column", base, labels, n)
            C = self._covariance
            variance = C.diagonal() - 2.0 * C[at] + C[at, at]
            value, block = info.h / info.h[at], info.label
        else:
            labels, n = known.row_labels, known.shape[0]
            at = _base_of("row", base, labels, n)
            value, variance, block = self._row_index(at)
        apart = (block != block[at]) | (block[at] < 0)
        value = np.where(apart, np.nan, value)
        variance = np.where(np.arange(n) == at, 0.0, np.maximum(variance, 0.0))
        names = np.arange(n) if labels is None else labels
        return Index(
            labels=names,
            value=value,
            se=value * np.sqrt(variance),
            _of=axis,
            _backend=known.table.backend,
        )

    def _row_index(self, at: int) -> tuple[Floats, Floats, Any]:
        info = self._known.information
        w, r, line = self._known.some_rows(np.arange(self._known.shape[0]))
        base, _ = info.shares(slice(int(line[at]), int(line[at]) + 1))
        of_line = np.concatenate(
            [
                spread(info.shares(lines)[0] - base, self._covariance)
                for lines in info.statistics.stretches()
            ]
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            own = self.dispersion * (1.0 / r + 1.0 / r[at])
            return w / w[at], own + of_line[line], info.component[line]

    # --------------------------------------------------------------------- intervals
    def interval(
        self, X: Any, level: float = 0.95, *, weights: Any = None
    ) -> tuple[Any, Any]:
        """Bounds of where the values of missing cells will lie.

        Parameters
        ----------
        X : table of shape (any, n_cols)
            The table that was fitted, or other rows.
        level : float, default=0.95
            The share of cells that lie between the bounds.
        weights : table, optional
            Weights of the cells of X, where the fit had weights.

        Returns
        -------
        lower, upper : tables like X
            X with its holes filled with the bounds, which are never below 0.
        """
        check_level(level)
        known = self._known
        source, V, order = known.table.read(X, weights, known.shape[1])
        if order is not None:
            raise LabelError(
                "The columns of X are in another order than those of the fit. Put them "
                "in its order: X[list(fit.col_labels)]."
            )
        holes = Holes(known, self._covariance, self.dispersion, source, V)
        lower, upper = (
            fill_table(X, source, partial(holes.quantiles, tail))
            for tail in ((1.0 - level) / 2.0, (1.0 + level) / 2.0)
        )
        return lower.table, upper.table

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
            Where the random numbers come from.

        Returns
        -------
        ndarray of shape (n, number of totals)
            Their deviation is the prediction error of ``totals``, beyond first order.
        """
        _check_choices(by, cells)
        info = self._known.information
        lines = slice(0, info.statistics.n_lines)
        chosen = self._chosen(lines, cells)
        random = np.random.default_rng(random_state)
        return simulate(self._known, self.dispersion, n, by, chosen, random)

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


def _base_of(side: str, base: Any, labels: Any, n: int) -> int:
    return 0 if base is None else int(Lookup(side, labels, n).find(base))


def _check_dispersion(dispersion: Any) -> bool:
    """Return whether it is a number; raise if it is neither that nor a known word."""
    if dispersion in ("pearson", "deviance", "poisson"):
        return False
    is_number = isinstance(dispersion, int | float) and not isinstance(dispersion, bool)
    if is_number and 0.0 <= dispersion < math.inf:
        return True
    raise ParameterError(
        'dispersion must be "pearson", "deviance", "poisson" or a number >= 0, got '
        f"{dispersion!r}."
    )


def check_level(level: Any, name: str = "level") -> None:
    """Raise for a share of cells that is not between 0 and 1."""
    if not (isinstance(level, int | float) and 0.0 < level < 1.0):
        raise ParameterError(f"{name} must be between 0 and 1, got {level!r}.")


def _check_choices(by: Any, cells: Any) -> None:
    if by not in ("row", "column", "all"):
        raise ParameterError(f'by must be "row", "column" or "all", got {by!r}.')
    if cells not in ("missing", "fitted"):
        raise ParameterError(f'cells must be "missing" or "fitted", got {cells!r}.')


def _tested(statistic: float, chance: float) -> str:
    return f"{statistic:.6g} (p = {chance:.2g})"
