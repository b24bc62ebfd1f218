"""Information about the column factors: how precisely the cells determine them.

With rows fitted, the information matrix of the logarithms of the column factors is the
Laplacian of a network, ``S = diag(c) - Q' diag(r) Q``: Q holds the share of each column
in the fitted sum of a row. The variance of the logarithm of a fitted cell is the
dispersion times ``1/r_i + (e_j - q_i)' S⁺ (e_j - q_i)``, the effective resistance
between its row and its column.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._base.types import Bools, Floats, Ints, SmallInts
from a1gm._fit.sure.arguments import By, Which
from a1gm._fit.sure.scatter import CellSums, cell_sums
from a1gm._solve.laplacian import free_columns
from a1gm.exceptions import NotRepresentableError, ParameterError, TableTooLargeError

if TYPE_CHECKING:
    from a1gm._fit.fit import RankOneFit

MOST_COLUMNS = 6000  # the inverse of so many columns has 288 MB
SMALLEST, LARGEST = 1e-140, 1e140
LARGEST_CONDITION = 1e13  # up to here standard errors have three digits


class Information:
    """The network of the columns of a fit, and the rows that connect them.

    Attributes
    ----------
    patterns
        Which cells each pattern observes, with which weights, and its sums.
    component, label : ndarray of int32
        Component of each pattern and of each column; below 0 for none.
    h : ndarray
        Column factors, 0 where there are none.
    unit : float
        Sums of the patterns times this are sums of the data.
    """

    def __init__(self, fit: RankOneFit) -> None:
        self.fit, self.patterns = fit, fit._patterns
        self.label, self.component = fit._fates.graph.label, fit._fates.component
        self.h = np.nan_to_num(fit._solved.factors.col_factor)
        self.unit = math.ldexp(1.0, fit._patterns.exponent)

    def check_size(self) -> None:
        """Raise for data whose squares leave float64."""
        total = self.unit * float(np.abs(self.patterns.col_sums).sum())
        if not (total == 0.0 or SMALLEST < total < LARGEST):
            raise NotRepresentableError(
                "Errors are roots of sums of squares, and the squares of data that sum "
                f"to {total:.0e} are outside the range of float64. Multiply the data "
                "by a power of ten that brings them nearer to 1: their errors change "
                "by the same power."
            )

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

    @cached_property
    def reach(self) -> Floats:
        """Reach of every pattern."""
        found = [self.shares(some)[1] for some in self.patterns.stretches()]
        return np.concatenate(found)

    def chosen(self, some: slice, cells: Which) -> Bools:
        """Which of the missing, or of all, cells of some patterns have a value."""
        inside = self.inside(self.component[some])
        if cells == "missing":
            inside &= self.patterns.weights_of(some) == 0.0
        return inside

    def degrees_of_freedom(self) -> int:
        """Observed cells inside blocks less rows, columns, and scales of blocks."""
        graph = self.fit._fates.graph
        label, none = graph.label, np.zeros(len(graph.label), bool)
        blocks, n_cells, n_rows = np.zeros(graph.n, bool), 0, 0
        for some in self.patterns.stretches():
            component = self.component[some]
            every, zeros = self.fit._rows.pattern_counts(some)
            n = np.where(component >= 0, every - zeros, 0)
            _, inside, _ = self.patterns.count_cells(some, component, label, none)
            n_cells += int(inside @ n)
            n_rows += int(n.sum())
            blocks[component[n > 0]] = True
        n_cols = int(((label >= 0) & blocks[label]).sum())
        return n_cells - (n_rows + n_cols - int(blocks.sum()))

    @cached_property
    def inverse(self) -> Floats:
        """A generalised inverse of S: that with the heaviest columns as the ground."""
        m = len(self.h)
        if m > MOST_COLUMNS:
            raise TableTooLargeError(
                f"The errors of {m:,} columns need a table of {m:,} x {m:,} numbers; "
                f"up to {MOST_COLUMNS:,} columns are possible. Transpose the table if "
                "it has fewer rows than columns, or leave out columns."
            )
        between, sums = np.zeros((m, m)), np.zeros(m)
        for some in self.patterns.stretches():
            R = self.unit * self.patterns.row_sums[some]
            Q, _ = self.shares(some)
            sums += R @ Q
            between += (Q * R[:, None]).T @ Q
        between = (between + between.T) / 2.0
        free = free_columns(np.where(sums != 0.0, self.label, -1), sums)
        found: Floats = np.zeros((m, m))
        found[np.ix_(free, free)] = _inverse(between, free)
        condition = found.diagonal() * between.sum(axis=1)
        j = int(np.argmax(condition)) if m else 0
        if m and not condition[j] <= LARGEST_CONDITION:
            raise NotRepresentableError(
                f"Column {j} (counted from 0) and its neighbours are linked to the "
                f"rest of the table only by cells of about {1 / condition[j]:.0e} of "
                "its sum: standard errors on one side of such a bridge are lost in the "
                "rounding of float64. Leave these cells out (NaN): then each side is a "
                "block with errors of its own."
            )
        return found

    # --------------------------------------------------------------------------- rows
    def rows(self, rows: Ints) -> tuple[Floats, Floats, Ints]:
        """Factor, sum of the weighted cells, and pattern of some rows."""
        first, last = int(rows.min()), int(rows.max()) + 1
        patterns = self.fit._rows.read(first, last)[0][rows - first]
        w = np.asarray(self.fit._rows.factor[rows])
        if self.fit.has_weights:
            return w, self._weighted_sums[rows], patterns
        return w, w * self.reach[patterns], patterns

    @property
    def every_row(self) -> tuple[Floats, Floats, Ints]:
        """Factor, sum of the weighted cells, and pattern of all rows."""
        return self.rows(np.arange(self.fit.shape[0]))

    @cached_property
    def _weighted_sums(self) -> Floats:
        """Sum of weight times cell of each row."""
        if self.fit._table.source is not None:
            return self.cell_sums.rows
        patterns = self.fit._rows.read(0, self.fit.shape[0])[0]
        if len(np.unique(patterns)) < len(patterns):
            raise ParameterError(
                "This fit was saved without the weights of its cells, which the errors "
                "of rows with proportional weights need. Fit the table again with "
                "a1gm.fit."
            )
        unit = math.ldexp(1.0, self.patterns.exposure_exponent or 0)
        return np.asarray(self.fit._rows.factor) * self.reach[patterns] * unit

    @cached_property
    def cell_sums(self) -> CellSums:
        """Sums over the observed cells, from one pass over the fitted table."""
        return cell_sums(self.fit)

    def blocks(self, side: str) -> SmallInts:
        """Block of each row or column; below 0 without a factor, or with one of 0."""
        if side == "column":
            return np.where(self.h == 0.0, np.int32(-1), self.label)
        w, _, pattern = self.every_row
        return np.where(w > 0.0, self.component[pattern], np.int32(-1))

    # ------------------------------------------------------------ cells without a value
    @cached_property
    def exposures(self) -> Any:
        """Exposures of all cells; None where the fit had none."""
        return self.fit._table.exposures(self.fit.shape)

    @cached_property
    def without_value(self) -> tuple[Ints, Ints]:
        """Rows and columns of the missing cells without a value."""
        unknown = self.fit.undetermined
        if self.exposures is None:
            return unknown.row, unknown.column
        E = self.exposures.rows(slice(0, self.fit.shape[0]))
        is_none = np.isnan(E)
        is_none[unknown.row, unknown.column] = True
        rows, cols = np.nonzero(is_none & (E != 0.0))
        return rows, cols

    def n_without_value(self) -> int:
        """Number of missing cells that are in no total."""
        if self.exposures is None:  # their rows may be gone
            return self.fit.n_undetermined
        return len(self.without_value[0])

    def has_no_total(self, by: By, cells: Which) -> Bools:
        """Which totals have no cell with a value."""
        if cells == "fitted":
            if by == "all":
                return np.zeros(1, bool)
            of = self.fit.col_factor if by == "column" else self.fit.row_factor
            is_empty: Bools = np.isnan(np.asarray(of))
            return is_empty
        rows, cols = self.without_value
        sizes = {"row": self.fit.shape[0], "column": self.fit.shape[1], "all": 1}
        if not len(rows):
            return np.zeros(sizes[by], bool)
        pattern = self.fit._rows.read(0, self.fit.shape[0])[0]
        times = np.bincount(pattern, minlength=self.patterns.n_patterns)
        of_patterns, of_columns = [], np.zeros(self.fit.shape[1], np.int64)
        for some in self.patterns.stretches():
            is_missing = self.patterns.weights_of(some) == 0.0
            of_patterns.append(is_missing.sum(axis=1))
            of_columns += times[some] @ is_missing
        pairs: dict[str, tuple[Ints, Ints]] = {
            "row": (rows, np.concatenate(of_patterns)[pattern]),
            "column": (cols, of_columns),
            "all": (np.zeros_like(rows), of_columns.sum(keepdims=True)),
        }
        at, counts = pairs[by]
        found: Bools = np.bincount(at, minlength=sizes[by]) == counts
        return found & (counts > 0)


def resistance(Q: Floats, covariance: Floats) -> Floats:
    """The part of the columns in the variance of the logarithms of cells.

    One row per row with shares Q, one column per column.
    """
    MQ = Q @ covariance
    own = np.sum(MQ * Q, axis=1)[:, None]
    found: Floats = covariance.diagonal() - 2.0 * MQ + own
    return np.maximum(found, 0.0)


def spread(directions: Floats, covariance: Floats) -> Floats:
    """Variance of sums of logarithms of column factors, one per row of directions."""
    found: Floats = np.sum((directions @ covariance) * directions, axis=1)
    return np.maximum(found, 0.0)


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
