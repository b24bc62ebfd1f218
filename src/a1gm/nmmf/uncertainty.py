"""How sure a joint fit is: errors of the cells, totals and factors of each table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from a1gm._fit.show import html_table, one_line
from a1gm._fit.sure.arguments import By, Which, check_totals
from a1gm._fit.sure.information import spread
from a1gm._fit.sure.uncertainty import (
    Index,
    TotalsWithErrors,
    Uncertainty,
    totals_with_errors,
)
from a1gm._rows.labels import Lookup, paired
from a1gm.exceptions import ParameterError
from a1gm.nmmf.layout import SharedTable
from a1gm.nmmf.view import TableView


@dataclass(frozen=True)
class TableUncertainty:
    """How sure a joint fit is of one of its tables. Made by ``fit.uncertainty()``.

    A cell of a table of weight v has the variance dispersion × mean / v. Dispersion,
    degrees of freedom and the tests of fit are those of all tables together.
    """

    _joint: Uncertainty
    _view: TableView
    _rows: slice  # of the joint table
    _cols: slice
    _scale: float  # cells of the joint table over those of this one

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
        found = np.asarray(self._joint.standard_error(*at)) / self._scale
        if prediction:
            value = self._view.values(rows.ravel(), cols.ravel())
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
        self._joint._info.check_size()
        if not self._table.rows.parts:
            raise ParameterError(
                "This fit was pickled without its tables, so their missing cells are "
                "not known. Compute totals() before, or fit the tables again."
            )
        side = by if by == "all" else self._side(by)
        value, variance, n_wanted, n_without = self._sums(side, cells)
        value[(n_wanted > 0) & (n_wanted == n_without)] = np.nan
        labels = None if by == "all" else self._finder(by).labels
        n_left_out = int(n_without.sum())
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
            Factors of the columns or of the rows.

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
        at = finder.base(base, self._joint._info.blocks(side)[own] >= 0)
        found = self._joint.index(own.start + at, side)
        return Index(
            labels=np.arange(finder.n) if finder.labels is None else finder.labels,
            value=found.value[own],
            se=found.se[own],
            _of=axis,
            _backend=None,
        )

    # ------------------------------------------------------------------------ inside
    @property
    def _table(self) -> SharedTable:
        return self._view.table

    def _side(self, of: Literal["column", "row"]) -> Literal["column", "row"]:
        """Rows of the joint table, or columns: a table may lie the other way there."""
        return "row" if (of == "row") != self._table.transposed else "column"

    def _finder(self, of: Literal["column", "row"]) -> Lookup:
        """What finds the rows, or the columns, that the owner of the table names."""
        rows = self._table.rows
        if self._side(of) == "row":
            return Lookup(of, rows.row_labels, rows.n_rows)
        return Lookup(of, rows.col_labels, rows.n_cols)

    @property
    def _process(self) -> float:
        """Variance over mean of a cell of this table."""
        return self.dispersion / self._table.weight

    def _sums(self, side: str, cells: Which) -> tuple[Any, ...]:
        """Totals along a side of the joint table, and the variances of the estimates.

        Also how many cells are wanted, and how many of these have no value.
        """
        info, phi, C = self._joint._info, self.dispersion, self._joint.covariance
        of_rows, of_cols, own_total = [], [], 0.0
        away = np.zeros((self._table.rows.n_cols, len(C)))
        for rows, given in self._table.rows.blocks():
            wanted = np.isnan(given) | (cells == "fitted")
            fitted = self._view.fitted(rows)
            without = wanted & np.isnan(fitted)
            F = np.where(wanted & ~without, fitted, 0.0)
            at = np.arange(rows.start, rows.stop) + self._rows.start
            _, r, pattern = info.rows(at)
            some = slice(int(pattern.min()), int(pattern.max()) + 1)
            Q = info.shares(some)[0][pattern - some.start]
            per_row = np.divide(1.0, r, out=np.zeros(len(r)), where=r > 0.0)
            A = F.sum(axis=1)
            if side == "row":
                directions = -A[:, None] * Q
                directions[:, self._cols] += F
                variance = phi * A**2 * per_row + spread(directions, C)
                of_rows.append((A, variance, wanted.sum(axis=1), without.sum(axis=1)))
                continue
            own = F.sum(axis=0), per_row @ F**2
            of_cols.append((*own, wanted.sum(axis=0), without.sum(axis=0)))
            own_total += float(A**2 @ per_row)
            away += F.T @ Q
        if side == "row":
            return tuple(np.concatenate(part) for part in zip(*of_rows, strict=True))
        value, variance, *counts = (
            np.sum(p, axis=0) for p in zip(*of_cols, strict=True)
        )
        directions = -away
        directions[:, self._cols] += np.diag(value)
        if side == "column":
            return value, phi * variance + spread(directions, C), *counts
        variance = phi * own_total + spread(directions.sum(axis=0)[None], C)
        return (
            value.sum(keepdims=True),
            variance,
            *(n.sum(keepdims=True) for n in counts),
        )

    # -------------------------------------------------------------------- appearance
    def summary(self) -> dict[str, str]:
        """The errors in words, line by line."""
        return {"table": self._table.name} | self._joint.summary()

    def __repr__(self) -> str:
        return one_line("TableUncertainty", self.summary())

    def _repr_html_(self) -> str:
        return html_table("TableUncertainty", self.summary())
