"""The scatter of the observed cells around their fitted values.

A fitted cell is ``f = r q``: the sum of its row times the share of its column, which
depends on the row's pattern only. So ``sum (x - f)² / f`` needs of the data the sums of
``x² / r`` by pattern and column, and the divergence those of ``x log(x / r)``. Fits
that kept these sums use them; others read their table again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from a1gm._base.types import Floats
from a1gm._base.words import counted
from a1gm._fit.place import kernel_sums
from a1gm._fit.residuals import ROUNDING, UNDERFLOW, absent_zeros, fitted_cells
from a1gm._fit.sure.covariance import Covariance
from a1gm._fit.sure.information import Information
from a1gm._observe.patterns import weighted_counts
from a1gm._rows.read import read_input
from a1gm._rows.sparse import SparseRows
from a1gm.exceptions import (
    A1gmError,
    DataError,
    NotRepresentableError,
    ParameterError,
)

ROWS_AT_ONCE = 1 << 14
MOST_LOOKED_AT = 1 << 22  # cells, for the largest residual


class Largest(NamedTuple):
    """A cell, its part of Pearson's statistic, and weight times fitted value."""

    row: int
    column: int
    square: float
    mean: float


class Scatter:
    """Statistics of a fit; NaN where its data were not kept."""

    def __init__(self, info: Information) -> None:
        self.info = info
        self._table, self._patterns = info.table, info.patterns
        self._keeps_sums = info.patterns.squares is not None

    @cached_property
    def pearson_chi2(self) -> float:
        """Sum of v (x - f)² / f over the observed cells."""
        if self._keeps_sums:
            chi2 = self._or_zero(self._pearson_of_sums())
        elif self._table.source is None:
            return self._table.pearson_chi2
        else:
            found = self._kernel_sum("pearson")
            chi2 = self.info.cell_sums.chi2 if found is None else found
        if math.isinf(chi2):
            raise NotRepresentableError(
                "Pearson's statistic is above the largest float64. Multiply the data "
                "by a power of ten that brings them nearer to 1: it changes by the "
                "same power."
            )
        return chi2

    @cached_property
    def divergence(self) -> float:
        """Divergence of the fitted table; NaN for negative cells as well."""
        source = self._table.source
        if self.info.is_signed:
            return math.nan
        if self._keeps_sums:
            return self._or_zero(2.0 * self._divergence_of_sums()) / 2.0
        if source is None:
            return self._table.divergence
        total = self._kernel_sum("divergence")
        if total is not None:
            return total
        total = sum(
            cells.divergence() + absent_zeros(source, cells)
            for cells in self.info.cells()
        )
        if math.isinf(total):
            raise NotRepresentableError(UNDERFLOW)
        return total

    @property
    def deviance(self) -> float:
        """Twice the divergence of the observed cells."""
        if self._table.source is None:
            return self._or_zero(2.0 * self.divergence)
        return 2.0 * self.divergence

    @cached_property
    def gain(self) -> float:
        """Deviance of one constant per block less that of the factors.

        With ``f = r h / H``, H being the sum of the row's observed column factors, the
        sum of x log f needs no more of the cells than their margins; weights need the
        cells.
        """
        from scipy.special import xlogy

        info, patterns = self.info, self._patterns
        if info.is_signed:
            return math.nan
        if self._table.source is None and not math.isnan(self._table.gain):
            return self._table.gain
        if self._table.is_weighted:
            is_gone = self._table.source is None
            return math.nan if is_gone else info.cell_sums.gain
        n = int(info.label.max(initial=0)) + 1
        sums, cells = np.zeros(n), np.zeros(n)
        columns = np.where(info.label >= 0, patterns.col_sums, 0.0)
        of_factors = float(xlogy(columns, info.h).sum())
        of_factors += self._sum_of_row_logs()
        for some in patterns.stretches():
            Q, reach = info.shares(some)
            R = np.where(reach > 0.0, patterns.row_sums[some], 0.0)
            of_factors -= float(xlogy(R, np.where(reach > 0.0, reach, 1.0)).sum())
            every, zeros = info.fates.rows.pattern_counts(some)
            block = np.maximum(info.component[some], 0)
            sums += weighted_counts(block, R, n)
            cells += weighted_counts(block, (Q > 0.0).sum(axis=1) * (every - zeros), n)
        known = (sums > 0.0) & (cells > 0.0)
        of_constants = float(sums[known] @ np.log(sums[known] / cells[known]))
        return 2.0 * (of_factors - of_constants)

    @cached_property
    def largest(self) -> Largest | None:
        """The cell with the largest part of Pearson's statistic.

        None where the cells cannot be read, or are too many to be looked at for this.
        """
        source, (n, m) = self._table.source, self.info.shape
        if source is None or n * m > MOST_LOOKED_AT:
            return None
        best = None
        with suppress(A1gmError, OSError):
            for cells in fitted_cells(self.info.columns, source):
                squares = (
                    np.where(cells.fitted > 0.0, cells.residuals("pearson"), 0) ** 2
                )
                k = int(np.argmax(squares)) if len(squares) else -1
                if k >= 0 and (best is None or squares[k] > best.square):
                    mean = float(cells.weight[k] * cells.fitted[k])
                    best = Largest(int(cells.i[k]), int(cells.j[k]), squares[k], mean)
        return best

    def without(self, cell: Largest) -> float:
        """Pearson's statistic without a cell, to first order.

        Its residual over one less its leverage: the part of the fitted value that the
        cell determines itself.
        """
        info = self.info
        _, r, pattern = info.rows(np.array([cell.row]))
        Q, _ = info.shares(slice(int(pattern[0]), int(pattern[0]) + 1))
        alone = 1.0 / r[0] + info.inverse.resistance(Q)[0, cell.column]
        leverage = min(cell.mean * alone, 1.0 - ROUNDING)
        left = self.pearson_chi2 - cell.square / (1.0 - leverage)
        return max(float(left), 0.0)

    def sandwich(self) -> Covariance:
        """Covariance of the columns from the scatter of the rows' residuals: CR1.

        Each row goes through the inverse before it is squared: the residuals of a row
        sum to 0, and the large parts of the inverse cancel in that sum only.
        """
        source, columns = self._table.source, self.info.columns
        if source is None:
            raise ParameterError(
                "This fit did not keep its cells, and robust=True needs the products "
                "of all pairs of cells of a row, which no sums replace. Leave out "
                "robust=True, or fit the table in memory with a1gm.fit."
            )
        counts = self.info.counts
        if counts.rows < 2:
            raise DataError(
                "robust=True estimates errors from the scatter between rows, and only "
                f"{counted(counts.rows, 'row')} has data. Leave out robust=True."
            )
        m, pieces = self.info.shape[1], self.info.cells()
        if isinstance(source, SparseRows) and source.absent == "zero":
            dense = (read_input(piece) for _, piece in source.in_pieces())
            pieces = (c for piece in dense for c in fitted_cells(columns, piece))
        inverse = self.info.inverse
        is_thin = inverse.sides is not None
        total, held = np.zeros((0 if is_thin else m, m)), []
        for cells in pieces:
            first = int(cells.i.min(initial=0))
            off = np.zeros((int(cells.i.max(initial=0)) + 1 - first, m))
            off[cells.i - first, cells.j] = cells.weight * (cells.x - cells.fitted)
            off = inverse.product(off)
            if is_thin:
                held.append(off)
            else:
                total += off.T @ off
        few_rows = counts.rows / (counts.rows - 1)
        few_cells = (counts.cells - 1) / max(counts.cells - counts.columns, 1)
        rows = Covariance(None, np.concatenate(held)) if is_thin else Covariance(total)
        return rows.times(few_rows * few_cells)

    # ------------------------------------------------------------------------ inside
    def _kernel_sum(self, of: Literal["divergence", "pearson"]) -> float | None:
        """Sum over the fitted table in one pass of the kernel.

        None if it declines, or the sum may be no more than rounding.
        """
        found = kernel_sums(self.info.columns, self._table.source, of)
        if found is None:
            return None
        with np.errstate(over="ignore"):  # sums beyond float64 are not compared
            fitted = np.array([np.nansum(self.info.fates.rows.factor)])
        self.info.check_same(np.array([found[1]]), fitted)
        # Near the rounding of the total, each cell is judged by its own.
        return found[0] if self._or_zero(found[0]) else None

    def _or_zero(self, statistic: float) -> float:
        """The statistic, or 0 where it is no more than the rounding of the total."""
        total = float(self._patterns.col_sums.sum())
        return 0.0 if statistic <= ROUNDING * total else statistic

    def _sums(self) -> Iterator[tuple[slice, Floats, Floats]]:
        """Yield some patterns, the shares of their columns, and their sums."""
        sums: Any = self._patterns.sums
        for some in self._patterns.stretches():
            yield some, self.info.shares(some)[0], sums[some]

    def _pearson_of_sums(self) -> float:
        total, squares = 0.0, self._patterns.squares
        for some, Q, S in self._sums():
            fitted = S.sum(axis=1)[:, None] * Q
            own = fitted > 0.0
            with np.errstate(over="ignore"):
                found = squares[some][own] / Q[own]
            total += float((found - (2.0 * S - fitted)[own]).sum())
        return total

    def _divergence_of_sums(self) -> float:
        from scipy.special import xlogy

        total = float(self._patterns.logs[0])
        for some, Q, S in self._sums():
            n = self._patterns.observed_cells(some).sum(axis=1)
            total -= float(xlogy(S, n[:, None] * Q)[Q > 0.0].sum())
        return total

    def _sum_of_row_logs(self) -> float:
        """Sum of r log r over the rows; NaN where neither they nor it were kept."""
        from scipy.special import xlogy

        info, total = self.info, 0.0
        if self._keeps_sums:
            return float(self._patterns.logs[1])
        if not info.fates.rows.is_kept:
            return self._table.row_logs
        for start in range(0, info.shape[0], ROWS_AT_ONCE):
            rows = np.arange(start, min(start + ROWS_AT_ONCE, info.shape[0]))
            sums = np.nan_to_num(info.rows(rows)[1])
            total += float(xlogy(sums, sums).sum())
        return total
