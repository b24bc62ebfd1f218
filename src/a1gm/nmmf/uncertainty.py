"""How sure a joint fit is: errors of the cells, totals and factors of each table."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from a1gm._api.fit import fit_observation
from a1gm._base.types import Bools, Floats, Ints
from a1gm._fit.fates import FINITE, ZERO
from a1gm._fit.fit import RankOneFit
from a1gm._fit.show import html_table, one_line
from a1gm._fit.sure.arguments import By, Dispersion, Which, check_totals
from a1gm._fit.sure.information import spread
from a1gm._fit.sure.totals import Index, TotalsWithErrors, totals_with_errors
from a1gm._fit.sure.uncertainty import Uncertainty
from a1gm._observe.observe import observe
from a1gm._rows.lookup import Lookup, paired
from a1gm._rows.read import read_input
from a1gm._rows.weights import with_weights
from a1gm.exceptions import ParameterError, TableTooLargeError
from a1gm.nmmf.layout import EntitySet, Layout, SharedTable

MOST_CELLS = 1 << 26  # of the joint table, which is built here: 512 MB, and its weights


@dataclass(frozen=True)
class TableUncertainty:
    """How sure a joint fit is of one of its tables. Made by ``fit.uncertainty()``.

    A cell of a table of weight v has the variance dispersion × mean / v. Dispersion,
    degrees of freedom and the tests of fit are those of all tables together.
    """

    _joint: Uncertainty
    _fit: RankOneFit
    _table: SharedTable
    _rows: slice  # of the joint table
    _cols: slice

    @property
    def dispersion(self) -> float:
        """Variance over mean of a cell of weight 1."""
        return self._joint.dispersion

    @property
    def dof(self) -> int:
        """Observed cells of all tables less their parameters."""
        return self._joint.dof

    @property
    def pearson_chi2(self) -> float:
        """Pearson's statistic of the observed cells of all tables, weighted."""
        return self._joint.pearson_chi2

    @property
    def deviance(self) -> float:
        """Twice the weighted divergence of all tables."""
        return self._joint.deviance

    def standard_error(self, i: Any, j: Any, *, prediction: bool = False) -> Any:
        """Standard error of the fitted value of cell (i, j) of the table.

        Parameters
        ----------
        i, j : int, label, or array of these
            Row and column of the table.
        prediction : bool, default=False
            Add the scatter of the cell itself around its mean.

        Returns
        -------
        float, or ndarray
            0 for cells that are 0, NaN for those without a value.
        """
        rows, cols = paired(self._finder("row").find(i), self._finder("column").find(j))
        if self._table.transposed:
            rows, cols = cols, rows
        at = rows.ravel() + self._rows.start, cols.ravel() + self._cols.start
        found = np.asarray(self._joint.standard_error(*at))
        if prediction:
            value = self._fitted[rows.ravel(), cols.ravel()]
            found = np.sqrt(found**2 + self._process * value)
        found = found.reshape(rows.shape)
        return found if rows.ndim else float(found)

    def totals(self, by: By = "row", cells: Which = "missing") -> TotalsWithErrors:
        """Totals of the fitted values of many cells of the table, with their errors.

        Parameters
        ----------
        by : {"row", "column", "all"}
            One total per row, one per column, or one.
        cells : {"missing", "fitted"}
            Of the missing cells or of all cells.

        Returns
        -------
        TotalsWithErrors
            As ``RankOneFit.uncertainty().totals``.
        """
        check_totals(by, cells)
        self._fit._information.check_size()
        wanted = self._missing if cells == "missing" else np.ones_like(self._missing)
        fitted = np.where(wanted, np.nan_to_num(self._fitted), 0.0)
        value, variance = self._sums(fitted, by)
        axis = self._axis(by)
        has_value = (wanted & ~np.isnan(self._fitted)).any(axis=axis)
        value[wanted.any(axis=axis) & ~has_value] = np.nan
        labels = None if by == "all" else self._finder(by).labels
        n_left_out = int((wanted & np.isnan(self._fitted)).sum())
        return totals_with_errors(
            by, labels, value, variance, self._process, n_left_out
        )

    def index(self, base: Any = 0, axis: Literal["column", "row"] = "column") -> Index:
        """Factors of the columns (or rows) of the table relative to one of them.

        Parameters
        ----------
        base : int, label, or None, default=0
            The column or row that is 1; None is the first whose factor is not 0.
        axis : {"column", "row"}, default="column"
            Whose factors.

        Returns
        -------
        Index
            ``labels``, ``value`` and ``se``; NaN where the two share no block.
        """
        if axis not in ("column", "row"):
            raise ParameterError(f'axis must be "column" or "row", got {axis!r}.')
        finder = self._finder(axis)
        side = self._side(axis)
        own = self._rows if side == "row" else self._cols
        at = finder.base(base, self._fit._information.blocks(side)[own] >= 0)
        found = self._joint.index(own.start + at, side)
        return Index(
            labels=np.arange(finder.n) if finder.labels is None else finder.labels,
            value=found.value[own],
            se=found.se[own],
            _of=axis,
            _backend=None,
        )

    # ------------------------------------------------------------------------ inside
    def _side(self, of: Literal["column", "row"]) -> Literal["column", "row"]:
        """Rows of the joint table, or columns: a table may lie the other way there."""
        return "row" if (of == "row") != self._table.transposed else "column"

    def _finder(self, of: Literal["column", "row"]) -> Lookup:
        """What finds the rows, or the columns, that the owner of the table names."""
        table, source = self._table, self._table.source
        if self._side(of) == "row":
            return Lookup(of, source.row_labels, table.n_rows)
        return Lookup(of, source.col_labels, table.n_cols)

    @property
    def _process(self) -> float:
        """Variance over mean of a cell of this table."""
        return self.dispersion / self._table.weight

    @cached_property
    def _missing(self) -> Bools:
        cells = self._table.source.rows(slice(0, self._table.n_rows))
        return np.isnan(cells)

    @cached_property
    def _rows_of_table(self) -> tuple[Floats, Floats, Ints]:
        """Factor, weighted sum over all tables, and line of the rows."""
        return self._fit._information.rows(np.arange(self._rows.start, self._rows.stop))

    @cached_property
    def _fitted(self) -> Floats:
        """Fitted values of the table; NaN for cells without one."""
        i, j = np.indices((self._table.n_rows, self._table.n_cols))
        at = i.ravel() + self._rows.start, j.ravel() + self._cols.start
        fate = self._fit._fates.of_cells(*at).reshape(i.shape)
        w, h = self._rows_of_table[0], self._fit._information.h[self._cols]
        found = np.where(fate == FINITE, w[:, None] * h, np.nan)
        return np.where(fate == ZERO, 0.0, found)

    def _axis(self, by: By) -> Any:
        """The axis of the joint table that a total runs along; None for both."""
        if by == "all":
            return (0, 1)
        return 1 if self._side(by) == "row" else 0

    def _sums(self, fitted: Floats, by: By) -> tuple[Floats, Floats]:
        """Totals of cells, and the variance that the estimates give them."""
        info, axis = self._fit._information, self._axis(by)
        _, r, line = self._rows_of_table
        some, place = np.unique(line, return_inverse=True)
        Q = np.concatenate([info.shares(slice(k, k + 1))[0] for k in some.tolist()])
        shares, m = Q[place], len(info.h)
        per_row = np.where(r > 0.0, 1.0 / np.where(r > 0.0, r, 1.0), 0.0)[:, None]
        value = np.atleast_1d(fitted.sum(axis=axis))
        if axis == 1:
            directions = -value[:, None] * shares
            directions[:, self._cols] += fitted
            own = value**2 * per_row[:, 0]
        else:
            columns = fitted.sum(axis=0)
            directions = -(fitted.T @ shares)
            directions[:, self._cols] += np.diag(columns)
            own = (fitted**2 * per_row).sum(axis=0)
            if by == "all":
                directions = directions.sum(axis=0).reshape(1, m)
                own = (fitted.sum(axis=1) ** 2 @ per_row).reshape(1)
        of_columns = spread(directions, self._joint.covariance)
        return value, self.dispersion * own + of_columns

    # -------------------------------------------------------------------- appearance
    def summary(self) -> dict[str, str]:
        """What it says, line by line."""
        return {"table": self._table.name} | self._joint.summary()

    def __repr__(self) -> str:
        return one_line("TableUncertainty", self.summary())

    def _repr_html_(self) -> str:
        return html_table("TableUncertainty", self.summary())


def uncertainty_of_tables(
    layout: Layout, dispersion: Dispersion, *, robust: bool
) -> dict[Hashable, TableUncertainty]:
    """How sure a joint fit is of each of its tables of positive weight."""
    tables = layout.steering
    pairs = {(table.row_set, table.col_set) for table in tables}
    if not all(table.parts for table in tables):
        raise ParameterError(
            "This fit was pickled without its tables, and their scatter is not known. "
            "Ask for uncertainty() before, or fit the tables again."
        )
    if len(pairs) < len(tables):
        raise ParameterError(
            "Two tables relate the same entities, and the errors of such fits are not "
            "known. Add the tables together if they count the same, or leave one out."
        )
    rows, cols = _places(layout, layout.row_sets), _places(layout, layout.col_sets)
    shape = rows[-1].stop, cols[-1].stop
    if shape[0] * shape[1] > MOST_CELLS:
        raise TableTooLargeError(
            f"The errors of a joint fit need its joint table, of {shape[0]:,} x "
            f"{shape[1]:,} cells; up to {MOST_CELLS:,} are taken. Use fewer rows."
        )
    X, V = np.full(shape, np.nan), np.ones(shape)
    for table in tables:
        place = rows[table.row_set], cols[table.col_set]
        X[place] = table.source.rows(slice(0, table.n_rows))
        V[place] = table.weight
    source = with_weights(read_input(X), "weights", V, is_observed=True)
    joint = fit_observation(observe(source), source, voice=None)  # the fit has warned
    found = joint.uncertainty(dispersion, robust=robust)
    return {
        table.key: TableUncertainty(
            found, joint, table, rows[table.row_set], cols[table.col_set]
        )
        for table in tables
    }


def _places(layout: Layout, sets: tuple[EntitySet, ...]) -> list[slice]:
    """Where the entities of each set lie; those of weight 0 nowhere."""
    sizes = [0 if layout.is_passive_set(some) else some.size for some in sets]
    ends = np.cumsum([0, *sizes]).tolist()
    return [slice(a, b) for a, b in pairwise(ends)]
