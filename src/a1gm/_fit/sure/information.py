"""Information about the column factors: how precisely the cells determine them.

With rows fitted, the information matrix of the logarithms of the column factors is the
Laplacian of a network, ``S = diag(c) - Q' diag(r) Q``: Q holds the share of each column
in the fitted sum of a row. The variance of the logarithm of a fitted cell is the
dispersion times ``1/r_i + (e_j - q_i)' S⁺ (e_j - q_i)``, the effective resistance
between its row and its column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from a1gm._base.types import Bools, Floats, Ints, SmallInts
from a1gm._fit.place import UNBOUNDED
from a1gm._fit.residuals import ROUNDING, Cells, absent_zeros, fitted_cells
from a1gm._fit.sure.arguments import By, Which
from a1gm._fit.sure.covariance import Covariance
from a1gm._fit.table import Table, are_close
from a1gm._observe.patterns import weighted_counts
from a1gm._solve.cell_error import free_columns
from a1gm.exceptions import NotRepresentableError, ParameterError, TableTooLargeError

if TYPE_CHECKING:
    from a1gm._fit.fit import RankOneFit

MOST_COLUMNS = 6000  # or patterns: the inverse then has 288 MB
MOST_NUMBERS = 1 << 28  # of the shares of patterns in columns: 2 GB
ROWS_AT_ONCE, PIECES = 1 << 12, 8  # of the rows whose fitted values are looked at
SMALLEST_SUM = 1e-100  # of the data whose errors are computed
LARGEST_SUM = 1e100
LARGEST_CONDITION = 1e13  # up to here standard errors have three digits


class Counts(NamedTuple):
    """Observed cells inside blocks, the rows and columns they are in, the blocks."""

    cells: int
    rows: int
    columns: int
    blocks: int

    @property
    def degrees_of_freedom(self) -> int:
        """Observed cells less rows, columns, and scales of blocks."""
        return self.cells - (self.rows + self.columns - self.blocks)


class CellSums(NamedTuple):
    """Sums over the observed cells of the fitted table."""

    chi2: float  # of v (x - f)² / f
    gain: float  # deviance of one constant per block less that of the factors
    rows: Floats  # of weight times cell of each row, where cells have weights


def check_sum(total: float) -> None:
    """Raise for the sum of data whose errors need numbers outside float64."""
    if not (total == 0.0 or SMALLEST_SUM < total < LARGEST_SUM):
        raise NotRepresentableError(
            f"Errors of data that sum to {total:.0e} need products outside the "
            "range of float64. Multiply the data by a power of ten first: their "
            "errors change by the same power."
        )


class Information:
    """The network of the columns of a fit, and the rows that connect them."""

    def __init__(self, fit: RankOneFit, table: Table) -> None:
        self.table, self.solved, self.patterns = table, fit._solved, fit._patterns
        self.fates, self.columns, self.shape = fit._fates, fit._columns, fit.shape
        self.certificate = fit.certificate
        # Components of the columns and of the patterns; below 0 without one.
        self.label, self.component = self.fates.graph.label, self.fates.component
        self.h = np.nan_to_num(fit.col_factor)

    @property
    def is_signed(self) -> bool:
        """Whether the table has negative cells."""
        return self.patterns.n_negative > 0

    def check_size(self) -> None:
        """Raise for data whose squares, or products of three, may leave float64."""
        check_sum(float(np.abs(self.patterns.col_sums).sum()))

    # ----------------------------------------------------------------------- patterns
    def inside(self, component: SmallInts) -> Bools:
        """Which columns are in the component of each of some patterns."""
        found: Bools = self.label == component[:, None]
        return found & (component >= 0)[:, None]

    def shares(self, some: slice) -> tuple[Floats, Floats]:
        """Share of each column in the fitted sums of some patterns, and their reach.

        The reach is the sum of the observed column factors of the pattern's component,
        times their weights.
        """
        weights = self.patterns.weights_of(some)
        return self.shares_of(weights, self.component[some])

    def shares_of(self, weights: Floats, component: SmallInts) -> tuple[Floats, Floats]:
        """Shares and reach of any rows, by the weights of their observed cells."""
        Q = np.where(self.inside(component), weights, 0.0) * self.h
        reach = Q.sum(axis=1)
        return Q / np.where(reach > 0.0, reach, 1.0)[:, None], reach

    def by_pattern(self, compute: Callable[[slice], Any]) -> Any:
        """Values of ``compute(slice of patterns)`` for all patterns."""
        return np.concatenate([compute(some) for some in self.patterns.stretches()])

    @cached_property
    def reach(self) -> Floats:
        """Reach of every pattern."""
        found: Floats = self.by_pattern(lambda some: self.shares(some)[1])
        return found

    def chosen(self, some: slice, cells: Which) -> Bools:
        """Which of the missing, or of all, cells of some patterns have a value."""
        inside = self.inside(self.component[some])
        if cells == "missing":
            inside &= self.patterns.weights_of(some) == 0.0
        return inside

    @cached_property
    def counts(self) -> Counts:
        """How many cells, rows and columns the blocks have."""
        label, nothing = self.label, np.zeros(len(self.label), bool)
        blocks, n_cells, n_rows = np.zeros(self.fates.graph.n, bool), 0, 0
        for some in self.patterns.stretches():
            component = self.component[some]
            every, zeros = self.fates.rows.pattern_counts(some)
            n = np.where(component >= 0, every - zeros, 0)
            _, inside, _ = self.patterns.count_cells(some, component, label, nothing)
            n_cells += int(inside @ n)
            n_rows += int(n.sum())
            blocks[component[n > 0]] = True
        n_cols = int(((label >= 0) & blocks[label]).sum())
        return Counts(n_cells, n_rows, n_cols, int(blocks.sum()))

    @cached_property
    def inverse(self) -> Covariance:
        """A generalised inverse of S, from the smaller side of the network.

        With the heaviest columns as the ground, or, where there are fewer patterns, the
        heaviest patterns: ``diag(1/c) + B' K B``, where K is the same inverse for the
        patterns, and B their shares in the fitted sums of the columns.
        """
        n = self.patterns.n_patterns
        m = len(self.h)
        c = self.fitted_sums
        is_wide = n < m
        if min(n, m) > MOST_COLUMNS or (is_wide and n * m > MOST_NUMBERS):
            raise TableTooLargeError(
                f"The errors of a table of {m:,} columns whose rows have {n:,} "
                f"patterns of holes need too many numbers: up to {MOST_COLUMNS:,} "
                f"columns or patterns are possible, and {MOST_NUMBERS:,} cells of more "
                "columns. Leave out rows or columns."
            )
        if is_wide:
            R = self.patterns.row_sums
            F = R[:, None] * self.by_pattern(lambda some: self.shares(some)[0])
            reciprocal = np.divide(1.0, c, out=np.zeros(m), where=c != 0.0)
            B = F * reciprocal
            sums = F.sum(axis=1)
            K = self._grounded(B @ F.T, sums, self.component, "The pattern of row")
            return Covariance(K, B, reciprocal)
        between = np.zeros((m, m))
        for some in self.patterns.stretches():
            R = self.patterns.row_sums[some]
            Q, _ = self.shares(some)
            between += (Q * R[:, None]).T @ Q
        return Covariance(self._grounded(between, c, self.label, "Column"))

    @cached_property
    def fitted_sums(self) -> Floats:
        """Fitted sums of the columns."""
        R = self.patterns.row_sums
        sums = np.zeros(len(self.h))
        for some in self.patterns.stretches():
            Q, _ = self.shares(some)
            sums += R[some] @ Q
        return sums

    @property
    def fixed_columns(self) -> Ints:
        """The heaviest column of the component of each column."""
        c = self.fitted_sums
        label = np.where(c != 0.0, self.label, -1)
        ground = np.flatnonzero((label >= 0) & ~free_columns(label, c))
        fixed = np.arange(len(label))
        heaviest = np.zeros(self.fates.graph.n, np.int64)
        heaviest[label[ground]] = ground
        fixed[label >= 0] = heaviest[label[label >= 0]]
        return fixed

    def _grounded(
        self, between: Floats, sums: Floats, label: SmallInts, side: str
    ) -> Floats:
        """Inverse of the Laplacian of one side, from the conductances between nodes."""
        between = (between + between.T) / 2.0
        free = free_columns(np.where(sums != 0.0, label, -1), sums)
        found: Floats = np.zeros_like(between)
        found[np.ix_(free, free)] = _inverse(between, free)
        condition = found.diagonal() * between.sum(axis=1)
        j = int(np.argmax(condition)) if len(condition) else 0
        if len(condition) and not condition[j] <= LARGEST_CONDITION:
            if math.isnan(condition[j]):
                self.check_size()  # sums below 1e-308 have lost their digits
            at = j if side == "Column" else self.patterns.row_of(j)
            raise NotRepresentableError(
                f"{side} {at} (counted from 0) and its neighbours are linked to the "
                f"rest of the table only by cells of about {1 / condition[j]:.0e} of "
                "its sum: standard errors on one side of such a bridge are lost in the "
                "rounding of float64. Leave these cells out (NaN): then each side is a "
                "block with separate errors."
            )
        return found

    def share_below(self, least: float) -> float:
        """Share of the fitted values of observed cells that are below ``least``.

        Of some rows where there are many; of the mean rows of the patterns where single
        rows are not known.
        """
        n_cells, n_below = 0, 0
        for fitted in self._fitted_rows():
            inside = fitted > 0.0
            n_cells += int(inside.sum())
            n_below += int((fitted[inside] < least).sum())
        return n_below / max(n_cells, 1)

    def _fitted_rows(self) -> Iterator[Floats]:
        """Yield fitted values of observed cells, times their weights; 0 elsewhere."""
        is_gone = self.table.is_weighted and self.table.source is None
        if self.fates.rows.is_kept and not is_gone:
            n = self.shape[0]
            for start in range(0, n, max(ROWS_AT_ONCE, n // PIECES)):
                rows = np.arange(start, min(start + ROWS_AT_ONCE, n))
                _, r, pattern = self.rows(rows)
                Q = self.by_row(pattern, lambda some: self.shares(some)[0])
                yield np.nan_to_num(r)[:, None] * Q
            return
        for some in self.patterns.stretches():
            every, zeros = self.fates.rows.pattern_counts(some)
            r = self.patterns.row_sums[some] / np.maximum(every - zeros, 1)
            yield r[:, None] * self.shares(some)[0]

    # --------------------------------------------------------------------------- rows
    def rows(self, rows: Ints) -> tuple[Floats, Floats, Ints]:
        """Factor, sum of the weighted cells, and pattern of some rows."""
        first, last = int(rows.min()), int(rows.max()) + 1
        patterns = self.fates.rows.read(first, last)[0][rows - first]
        w = np.asarray(self.fates.rows.factor[rows])
        if self.table.is_weighted:
            return w, self._weighted_sums[rows], patterns
        return w, w * self.reach[patterns], patterns

    @property
    def every_row(self) -> tuple[Floats, Floats, Ints]:
        """Factor, sum of the weighted cells, and pattern of all rows."""
        return self.rows(np.arange(self.shape[0]))

    def by_row(self, patterns: Ints, compute: Callable[[slice], Any]) -> Any:
        """Values of ``compute(slice of patterns)`` for rows with these patterns."""
        some = slice(int(patterns.min()), int(patterns.max()) + 1)
        return compute(some)[patterns - some.start]

    @cached_property
    def _weighted_sums(self) -> Floats:
        """Sum of weight times cell of each row."""
        if self.table.source is not None:
            return self.cell_sums.rows
        patterns = self.fates.rows.read(0, self.shape[0])[0]
        if len(np.unique(patterns)) < len(patterns):
            raise ParameterError(
                "This fit was saved without the weights of its cells, which the errors "
                "of rows with proportional weights need. Fit the table again with "
                "a1gm.fit."
            )
        return np.asarray(self.fates.rows.factor) * self.reach[patterns]

    def blocks(self, side: str) -> SmallInts:
        """Block of each row or column; below 0 without a factor, or with one of 0."""
        if side == "column":
            return np.where(self.h == 0.0, np.int32(-1), self.label)
        w, _, pattern = self.every_row
        return np.where(w > 0.0, self.component[pattern], np.int32(-1))

    def has_no_variance(self) -> bool:
        """Whether a fitted cell is below 0, or 0 where the cell is not."""
        return self._has_negative_fit() or self._has_cells_fitted_by_zero()

    def _has_negative_fit(self) -> bool:
        w, component = self.solved.factors.pattern_factor, self.component
        if self.fates.rows.is_kept:
            w, _, pattern = self.every_row
            component = component[pattern]
        ends = []
        for factor, label in ((w, component), (self.h, self.label)):
            inside, n = label >= 0, self.fates.graph.n
            low, high = np.zeros(n), np.zeros(n)
            np.minimum.at(low, label[inside], factor[inside])
            np.maximum.at(high, label[inside], factor[inside])
            ends.append((low, high))
        (low, high), (low_column, high_column) = ends
        return bool(((low * high_column < 0.0) | (high * low_column < 0.0)).any())

    def _has_cells_fitted_by_zero(self) -> bool:
        patterns = self.patterns
        if patterns.squares is not None:
            return any(
                (patterns.squares[some][self.shares(some)[0] == 0.0] != 0.0).any()
                for some in patterns.stretches()
            )
        if self.table.source is None:
            return False
        return any(
            (cells.fitted < ROUNDING * np.abs(cells.x)).any() for cells in self.cells()
        )

    # ---------------------------------------------------------- the fitted table again
    def check_same(self, seen: Floats, fitted: Floats) -> None:
        """Raise unless sums of the table, read again, are those of the fit."""
        if not are_close(seen, fitted, self.certificate):
            raise ParameterError(
                "The table, or its weights or exposure, was changed after it was "
                "fitted, and the fit reads it again here. Fit it again, or fit a copy."
            )

    def cells(self) -> Iterator[Cells]:
        """Yield the observed cells of the fitted table, some rows at a time.

        Raises at the end if their sums are not those of the fit.
        """
        patterns = self.patterns
        seen = np.zeros(patterns.n_cols)
        for cells in fitted_cells(self.columns, self.table.source):
            with np.errstate(over="ignore"):  # sums beyond float64 are not compared
                seen += weighted_counts(cells.j, cells.weight * cells.x, len(seen))
            yield cells
        with np.errstate(all="ignore"):
            self.check_same(seen, patterns.col_sums)

    @cached_property
    def cell_sums(self) -> CellSums:
        """Sums over the observed cells, from one pass over the fitted table."""
        n, label, source = self.fates.graph.n, self.label, self.table.source
        chi2 = of_factors = 0.0
        sums, sizes, is_weighted = np.zeros(n), np.zeros(n), self.table.is_weighted
        rows = np.zeros(self.shape[0] if is_weighted else 0)
        for cells in self.cells():
            first, last = int(cells.i.min(initial=0)), int(cells.i.max(initial=-1)) + 1
            if is_weighted and last > first:
                some = cells.i - first, cells.weight * cells.x
                rows[first:last] += weighted_counts(*some, last - first)
            own = cells.fitted > 0.0
            residual = cells.residuals("pearson")[own]
            x, f, v = cells.x[own], cells.fitted[own], cells.weight[own]
            exposure, block = cells.exposure[own], label[cells.j[own]]
            with np.errstate(over="ignore"):
                residual[residual**2 <= ROUNDING * v * f] = 0.0
                chi2 += float(residual @ residual)
            chi2 += absent_zeros(source, cells)
            sums += weighted_counts(block, v * x, n)
            sizes += weighted_counts(block, v * exposure, n)
            of_factors += float((v * x) @ np.log(f / exposure))
        has_data = sums > 0.0
        means = sums[has_data] / sizes[has_data]
        gain = 2.0 * (of_factors - float(sums[has_data] @ np.log(means)))
        return CellSums(chi2, gain, rows)

    # ------------------------------------------------------------ cells without a value
    @cached_property
    def exposures(self) -> Any:
        """Exposures of all cells; None where the fit had none."""
        return self.table.exposures(self.shape)

    def _missing(self, by: By) -> tuple[Bools, Bools]:
        """Which cells are missing, and which of these have no value.

        Without exposures, totals over the rows need one row of each kind only.
        """
        if by == "row" or self.exposures is not None:
            return self._missing_of_rows
        return self._missing_of(*self.fates.rows.kinds())

    @cached_property
    def _missing_of_rows(self) -> tuple[Bools, Bools]:
        n_rows = self.shape[0]
        missing, has_none = self._missing_of(*self.fates.rows.read(0, n_rows))
        if self.exposures is not None:
            E = self.exposures.rows(slice(0, n_rows))
            has_none = (has_none | (missing & np.isnan(E))) & (E != 0.0)
        return missing, has_none

    def _missing_of(self, patterns: Any, is_zero: Any) -> tuple[Bools, Bools]:
        missing = ~self.patterns.observed_cells(patterns)
        has_none = self.fates.of_patterns(patterns, is_zero) >= UNBOUNDED
        return missing, missing & has_none

    def n_without_value(self) -> int:
        """Number of missing cells that are in no total."""
        if self.exposures is not None:
            return int(self._missing("all")[1].sum())
        return 0 if self.solved.is_plain else self.fates.totals.n_undetermined

    def has_no_total(self, by: By, cells: Which) -> Bools:
        """Which totals have no cell with a value."""
        if cells == "fitted" and by != "all":
            rows = self.fates.rows.factor if by == "row" else self.columns.factor
            is_empty: Bools = np.isnan(np.asarray(rows))
            return is_empty
        if cells == "fitted" or (self.solved.is_plain and self.exposures is None):
            sizes = {"row": self.shape[0], "column": self.shape[1], "all": 1}
            return np.zeros(sizes[by], bool)
        missing, has_none = self._missing(by)
        axis = {"row": 1, "column": 0, "all": None}[by]
        has_total = (missing & ~has_none).any(axis)
        return np.atleast_1d(missing.any(axis) & ~has_total)


def _inverse(between: Floats, free: Any) -> Any:
    """Inverse of the Laplacian of the conductances, without the ground.

    The diagonal is the sum of the conductances: no cancellation between parts that a
    few cells join. Infinite where rounding leaves no inverse.
    """
    from scipy.linalg.lapack import dpotrf, dpotri

    np.fill_diagonal(between, 0.0)
    S = -between[np.ix_(free, free)]
    np.fill_diagonal(S, between.sum(axis=1)[free])
    if not len(S):
        return S
    scale = 1.0 / np.sqrt(S.diagonal())
    S *= scale[:, None] * scale
    factor, failed = dpotrf(S, lower=1)
    if failed:
        return np.full_like(S, np.inf)
    found, _ = dpotri(factor, lower=1)
    found = np.tril(found) + np.tril(found, -1).T
    return found * (scale[:, None] * scale)
