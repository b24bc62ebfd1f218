"""What the observed cells say of the columns: how far their factors can be trusted.

With rows fitted, the information on the logarithms of the column factors is the
Laplacian of a network, ``S = diag(c) - Q' diag(r) Q``: Q holds the share that each
column has in the fitted sum of a row. The variance of the logarithm of a fitted cell is
the dispersion times ``1/r_i + (e_j - q_i)' S⁺ (e_j - q_i)``, the resistance between its
row and its column.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from a1gm._base.types import Bools, Floats, SmallInts
from a1gm._observe.statistics import Statistics
from a1gm._solve.laplacian import free_columns
from a1gm.exceptions import NotRepresentableError, TableTooLargeError

MOST_COLUMNS = 6000  # the inverse of so many columns has 288 MB
SMALLEST, LARGEST = 1e-140, 1e140
OUT_OF_RANGE = (
    "Errors are roots of sums of squares, and the squares of data that sum to "
    "{total:.0e} are outside the range of float64. Multiply the data by a power of ten "
    "that brings them nearer to 1: their errors change by the same power."
)
LARGEST_CONDITION = 1e13  # up to here standard errors have three digits
TOO_THIN = (
    "Column {j} (counted from 0) and those beside it are joined to the rest of the "
    "table only by cells of about {share:.0e} of its sum: standard errors on one side "
    "of such a bridge are lost in the rounding of float64. Leave these cells out "
    "(NaN): then each side is a block with errors of its own."
)


@dataclass(frozen=True)
class ColumnInformation:
    """The network of the columns of a fit.

    Attributes
    ----------
    statistics : Statistics
        Which cells the lines observe, with which weights, and the sums of the lines.
    component, label : ndarray of int32
        Component of each line and of each column; below 0 for none.
    h : ndarray
        Column factors, 0 where there are none.
    unit : float
        What the sums of the statistics are multiplied by to be those of the data.
    """

    statistics: Statistics
    component: SmallInts
    label: SmallInts
    h: Floats
    unit: float = 1.0

    def check_size(self) -> None:
        """Raise for data whose squares are not numbers of float64."""
        total = self.unit * float(np.abs(self.statistics.col_sums).sum())
        if not (total == 0.0 or SMALLEST < total < LARGEST):
            raise NotRepresentableError(OUT_OF_RANGE.format(total=total))

    def inside(self, component: SmallInts) -> Bools:
        """Which columns are in the component of each of some rows."""
        found: Bools = self.label == component[:, None]
        return found & (component >= 0)[:, None]

    def shares(self, lines: slice) -> tuple[Floats, Floats]:
        """Share of each column in the fitted sums of some lines, and their reach.

        The reach is the sum of the observed column factors of the line's component,
        times their weights.
        """
        weights = self.statistics.weight_lines(lines)
        return self.shares_of(weights, self.component[lines])

    def shares_of(self, weights: Floats, component: SmallInts) -> tuple[Floats, Floats]:
        """Shares and reach of any rows, by the weights of their observed cells."""
        Q = np.where(self.inside(component), weights, 0.0) * self.h
        reach = Q.sum(axis=1)
        return Q / np.where(reach > 0.0, reach, 1.0)[:, None], reach

    @cached_property
    def inverse(self) -> Floats:
        """A generalised inverse of S: that with the heaviest columns as the ground."""
        m = len(self.h)
        if m > MOST_COLUMNS:
            raise TableTooLargeError(
                f"The errors of {m:,} columns need a table of {m:,} x {m:,} numbers; "
                f"up to {MOST_COLUMNS:,} columns are taken. Turn the table around if "
                "it has fewer rows than columns, or leave out columns."
            )
        between, sums = np.zeros((m, m)), np.zeros(m)
        for lines in self.statistics.stretches():
            R = self.unit * self.statistics.line_sums(lines)
            Q, _ = self.shares(lines)
            sums += R @ Q
            between += (Q * R[:, None]).T @ Q
        between = (between + between.T) / 2.0
        free = free_columns(np.where(sums != 0.0, self.label, -1), np.abs(sums))
        found: Floats = np.zeros((m, m))
        found[np.ix_(free, free)] = _inverse(between, free)
        condition = np.abs(found.diagonal() * between.sum(axis=1))
        j = int(np.argmax(condition)) if m else 0
        if m and condition[j] > LARGEST_CONDITION:
            share = 1.0 / float(condition[j])
            raise NotRepresentableError(TOO_THIN.format(j=j, share=share))
        return found


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
    few cells join.
    """
    from scipy.linalg.lapack import dpotrf, dpotri

    np.fill_diagonal(between, 0.0)
    S = -between[np.ix_(free, free)]
    np.fill_diagonal(S, between.sum(axis=1)[free])
    if not len(S):
        return S
    scale = 1.0 / np.sqrt(np.abs(S.diagonal()))
    S *= scale[:, None] * scale
    factor, failed = dpotrf(S, lower=1)
    if failed:  # sums below zero
        try:
            return np.linalg.inv(S) * (scale[:, None] * scale)
        except np.linalg.LinAlgError:
            return np.full_like(S, np.nan)
    found, _ = dpotri(factor, lower=1)
    found = np.tril(found) + np.tril(found, -1).T
    return found * (scale[:, None] * scale)
