"""What a fit knows of its rows when errors are asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from a1gm._base.types import Bools, Floats, Ints, SmallInts
from a1gm._fit.choices import By, Which
from a1gm._fit.fates import Fates, UndeterminedCells
from a1gm._fit.information import ColumnInformation
from a1gm._fit.new_rows import NewRows
from a1gm._fit.residuals import Cells, fitted_cells, pearson_chi2
from a1gm._fit.rows import ROWS_AT_ONCE, RowStore
from a1gm._fit.scatter import ScatterOfSums, gain_over_constants
from a1gm._fit.table import Table
from a1gm._observe.statistics import WeightedStatistics, weighted_counts
from a1gm._rows.read import read_input
from a1gm._rows.sparse import SparseRows
from a1gm._solve.dispatch import Solved
from a1gm.exceptions import NotRepresentableError, ParameterError

ROUNDING = 2.0**-50  # of the total: a smaller statistic is rounding


@dataclass(frozen=True)
class Evidence:
    """A solved table, its rows, and what is known of its cells."""

    solved: Solved
    rows: RowStore
    table: Table
    fates: Fates
    rule: NewRows
    shape: tuple[int, int]
    row_labels: Any
    col_labels: Any
    divergence: Callable[[], float]
    undetermined: Callable[[], UndeterminedCells]
    places: Callable[[Any, Any], tuple[Ints, Ints]]

    @cached_property
    def information(self) -> ColumnInformation:
        """The network of the columns."""
        lines = self.fates.lines
        if lines is None:
            self.rows.read(0, 0)  # raises: the rows are gone
            raise AssertionError
        statistics = lines.statistics
        if isinstance(statistics, WeightedStatistics):  # not copied
            self.table.check_unchanged(self.solved, self.rows)
        component = lines.component(slice(0, statistics.n_lines))
        h = np.nan_to_num(self.solved.factors.col_factor)
        unit = math.ldexp(1.0, self.table.exponent)
        return ColumnInformation(statistics, component, lines.label, h, unit)

    @cached_property
    def exposures(self) -> Any:
        """Exposures of all cells; None where the fit had none."""
        return self.table.exposures(self.shape)

    def _without_value(self) -> tuple[Ints, Ints]:
        """Rows and columns of missing cells that have no value."""
        unknown = self.undetermined()
        if self.exposures is None:
            return unknown.row, unknown.column
        E = self.exposures.rows(slice(0, self.shape[0]))
        is_none = np.isnan(E)
        is_none[unknown.row, unknown.column] = True
        rows, cols = np.nonzero(is_none & (E != 0.0))
        return rows, cols

    def n_without_value(self) -> int:
        """Count the missing cells that are in no total."""
        if self.exposures is None:  # their rows may be gone
            return self.fates.totals.n_undetermined
        return len(self._without_value()[0])

    def has_no_total(self, by: By, cells: Which) -> Bools:
        """Which totals are of cells of which none has a value."""
        if cells == "missing":
            return self._is_unknown(by)
        return np.zeros(1, bool) if by == "all" else self.is_empty(by)

    def _is_unknown(self, by: By) -> Bools:
        rows, cols = self._without_value()
        places = {"row": rows, "column": cols}.get(by, np.zeros_like(rows))
        n = {"row": self.shape[0], "column": self.shape[1]}.get(by, 1)
        if not len(rows):
            return np.zeros(n, bool)
        statistics = self.information.statistics
        line = self.rows.read(0, self.shape[0])[0]
        times = np.bincount(line, minlength=statistics.n_lines)
        of_lines, of_columns = [], np.zeros(self.shape[1], np.int64)
        for lines in statistics.stretches():
            is_missing = statistics.weight_lines(lines) == 0.0
            of_lines.append(is_missing.sum(axis=1))
            of_columns += times[lines] @ is_missing
        counts: dict[str, Ints] = {
            "row": np.concatenate(of_lines)[line],
            "column": of_columns,
            "all": of_columns.sum(keepdims=True),
        }
        found: Bools = np.bincount(places, minlength=n) == counts[by]
        return found & (counts[by] > 0)

    # -------------------------------------------------------------------------- rows
    def some_rows(self, rows: Ints) -> tuple[Floats, Floats, Ints]:
        """Factor, sum of the weighted cells, and line of some rows."""
        first, last = int(rows.min()), int(rows.max()) + 1
        lines = self.rows.read(first, last)[0][rows - first]
        w = np.asarray(self.rows.factor[rows])
        if self.table.is_weighted:
            return w, self._weighted_sums[rows], lines
        return w, w * self._reach[lines], lines

    @cached_property
    def _reach(self) -> Floats:
        info = self.information
        return np.concatenate(
            [info.shares(lines)[1] for lines in info.statistics.stretches()]
        )

    @cached_property
    def _weighted_sums(self) -> Floats:
        """Sum of weight times cell of each row."""
        source, V = self.table.source, self.table.weights
        if source is None:  # saved without them
            lines = self.rows.read(0, self.shape[0])[0]
            if len(np.unique(lines)) < len(lines):
                raise ParameterError(
                    "This fit was saved without the weights of its cells, which the "
                    "errors of rows with proportional weights need. Fit the table "
                    "again with a1gm.fit."
                )
            unit = math.ldexp(1.0, self.table.exposure_exponent or 0)
            return np.asarray(self.rows.factor) * self._reach[lines] * unit
        if isinstance(source, SparseRows):
            used = ~source.missing & (V.values > 0.0)
            times = np.ones(1) if self.table.is_exposed else V.values
            cells = (source.values * times)[used]
            return weighted_counts(source.lines[used], cells, source.n_rows)
        self.table.check_unchanged(self.solved, self.rows)
        sums = [
            np.nansum(np.where(v > 0.0, times * piece, 0.0), axis=1)
            for rows, piece in source.blocks()
            for v in [V.rows(rows)]
            for times in [1.0 if self.table.is_exposed else v]
        ]
        return np.concatenate(sums)

    def line_totals(self, lines: slice, reach: Floats) -> tuple[Floats, Floats]:
        """Sums of the factors w of the rows of some lines, and of w² / r."""
        if self.table.is_weighted:
            return self._weighted_lines[0][lines], self._weighted_lines[1][lines]
        info = self.information
        sums = info.unit * info.statistics.line_sums(lines)
        with np.errstate(divide="ignore", invalid="ignore"):
            W = np.where(sums == 0.0, 0.0, sums / reach)
            return W, np.where(sums == 0.0, 0.0, W / reach)

    @cached_property
    def _weighted_lines(self) -> tuple[Floats, Floats]:
        w, r, line = self.some_rows(np.arange(self.shape[0]))
        n = self.information.statistics.n_lines
        with np.errstate(divide="ignore", invalid="ignore"):
            own = np.where(w > 0.0, w**2 / r, 0.0)
        w = np.nan_to_num(w)
        return weighted_counts(line, w, n), weighted_counts(line, own, n)

    # ----------------------------------------------------------------------- freedom
    def degrees_of_freedom(self) -> tuple[int, int]:
        """Observed cells inside blocks less parameters, and the parameters."""
        info, graph = self.information, self.fates.graph
        n_cells = n_rows = 0
        none = np.zeros(len(graph.label), bool)
        blocks = np.zeros(graph.n, bool)
        for lines in info.statistics.stretches():
            component = info.component[lines]
            every, zeros = self.rows.line_counts(lines)
            n = np.where(component >= 0, every - zeros, 0)
            _, inside, _ = info.statistics.count_cells(
                lines, component, graph.label, none
            )
            n_cells += int(inside @ n)
            n_rows += int(n.sum())
            blocks[component[n > 0]] = True
        label = graph.label
        n_cols = int(((label >= 0) & blocks[label]).sum())
        parameters = n_rows + n_cols - int(blocks.sum())
        return n_cells - parameters, parameters

    # ------------------------------------------------------------------- the scatter
    def pearson_chi2(self) -> float:
        """Sum of v (x - f)² / f over the observed cells; NaN without the data."""
        if self.sums is not None:
            chi2 = self.sums.pearson_chi2()
        elif self.table.source is None:
            return self.table.pearson_chi2
        else:
            self.table.check_unchanged(self.solved, self.rows)
            chi2 = pearson_chi2(self.rule, self.table.source, self.table.weights)
        return 0.0 if chi2 <= self._rounding else chi2

    @cached_property
    def sums(self) -> ScatterOfSums | None:
        """What the sums of the first pass say of the scatter, where they were kept."""
        info = self.information
        if getattr(info.statistics, "squares", None) is None:
            return None
        return ScatterOfSums(info)

    def deviance(self) -> float:
        """Twice the divergence of the observed cells; NaN without the data."""
        deviance = 2.0 * self.divergence()
        return 0.0 if deviance <= self._rounding else deviance

    def divergence_of_sums(self) -> float:
        """The divergence from the sums of the first pass; 0 within their rounding."""
        assert self.sums is not None
        found = self.sums.divergence()
        return 0.0 if 2.0 * found <= self._rounding else found

    @property
    def _rounding(self) -> float:
        info = self.information
        return ROUNDING * info.unit * float(info.statistics.col_sums.sum())

    def sandwich(self, inverse: Floats) -> Floats:
        """The covariance that the scatter of the rows' residuals says.

        Each row goes through the inverse before it is squared: the residuals of a row
        sum to 0, and the large parts of the inverse cancel in that sum only.
        """
        if self.table.source is None:
            raise ParameterError(
                "This fit did not keep its cells, and robust=True needs the products "
                "of all pairs of cells of a row, which no sums replace. Leave out "
                "robust=True, or fit the table in memory with a1gm.fit."
            )
        m = self.shape[1]
        total = np.zeros((m, m))
        pieces, source = self._cells(), self.table.source
        if isinstance(source, SparseRows) and source.absent == "zero":
            dense = (read_input(piece) for _, piece in source.blocks())
            pieces = (c for piece in dense for c in fitted_cells(self.rule, piece))
        for cells in pieces:
            first = int(cells.i.min(initial=0))
            off = np.zeros((int(cells.i.max(initial=0)) + 1 - first, m))
            off[cells.i - first, cells.j] = cells.weight * (cells.x - cells.fitted)
            off = off @ inverse
            total += off.T @ off
        return total

    def _cells(self) -> Iterator[Cells]:
        """Read the observed cells of the fitted table, some rows at a time."""
        self.table.check_unchanged(self.solved, self.rows)
        return fitted_cells(self.rule, self.table.source, self.table.weights)

    def _sum_of_row_logs(self) -> float:
        """Sum of r log r over the rows; NaN where neither they nor it were kept."""
        from scipy.special import xlogy

        info, total = self.information, 0.0
        if self.sums is not None:
            return info.unit * float(info.statistics.logs[1])  # type: ignore[attr-defined]
        if not self.rows.is_kept:
            return math.nan
        for start in range(0, self.shape[0], ROWS_AT_ONCE):
            rows = np.arange(start, min(start + ROWS_AT_ONCE, self.shape[0]))
            sums = np.nan_to_num(self.some_rows(rows)[1])
            total += float(xlogy(sums, sums).sum())
        return total

    def is_empty(self, side: str) -> Bools:
        """Which rows, or columns, have no factor: nothing of them was observed."""
        if side == "column":
            return np.isnan(self.solved.factors.col_factor)
        return np.isnan(self.some_rows(np.arange(self.shape[0]))[0])

    def blocks(self, side: str) -> SmallInts:
        """Block of each row or column; below 0 without a factor, or with one of 0."""
        info = self.information
        if side == "column":
            return np.where(info.h == 0.0, np.int32(-1), info.label)
        w, _, line = self.some_rows(np.arange(self.shape[0]))
        return np.where(w > 0.0, info.component[line], np.int32(-1))

    def scatter_to_keep(self, *, is_held: bool) -> dict[str, Any]:
        """What is kept of the scatter of cells that are left behind; one check."""
        table = self.table
        kept = {"pearson_chi2": table.pearson_chi2, "gain": table.gain}
        if is_held and table.source is not None:
            unknown = suppress(NotRepresentableError, ParameterError)
            with table.checked_once(), unknown:
                with suppress(NotRepresentableError):
                    self.divergence()  # the fit remembers it
                kept["pearson_chi2"] = self.pearson_chi2()
                if table.is_weighted:  # else it follows from the margins
                    kept["gain"] = self.gain_over_constants()
        return kept

    def gain_over_constants(self) -> float:
        """Deviance of one constant per block less that of the factors."""
        if self.table.is_signed:
            return math.nan
        if not self.table.is_weighted:
            of_rows = self._sum_of_row_logs()
            counts = self.rows.line_counts
            return gain_over_constants(self.information, counts, of_rows)
        if self.table.source is None:
            return self.table.gain
        n, label = self.fates.graph.n, self.fates.graph.label
        sums, weights, of_factors = np.zeros(n), np.zeros(n), 0.0
        for cells in self._cells():
            own = cells.fitted > 0.0
            block, v, x = label[cells.j[own]], cells.weight[own], cells.x[own]
            sums += weighted_counts(block, v * x, n)
            exposure = cells.exposure[own]
            weights += weighted_counts(block, v * exposure, n)
            of_factors += float((v * x) @ np.log(cells.fitted[own] / exposure))
        some = sums > 0.0
        of_constants = float(sums[some] @ np.log(sums[some] / weights[some]))
        return 2.0 * (of_factors - of_constants)
