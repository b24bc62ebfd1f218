"""Prediction intervals of the missing cells of any rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from a1gm._base.bits import names_of_rows, pack_bits
from a1gm._base.types import Floats, Ints
from a1gm._fit.place import Placed
from a1gm._fit.sure.arguments import check_level
from a1gm._fit.sure.covariance import Covariance
from a1gm._fit.sure.gamma import quantiles
from a1gm._fit.sure.information import Information
from a1gm._rows.read import AnyRows

CELLS_AT_ONCE = 1 << 20  # of the rows that are handled together


@dataclass(frozen=True)
class Holes:
    """The missing cells of rows that a fit can place."""

    info: Information
    covariance: Covariance  # of the logarithms of the column factors
    errors_dof: float  # of the covariance
    dispersion: float  # variance over mean of a cell
    source: AnyRows
    order: Ints | None = None  # positions of the columns in the fit

    @cached_property
    def placed(self) -> Placed:
        """The rows, placed."""
        return self.info.columns.in_order(self.order).place(self.source)

    def bounds(self, level: float, i: Ints, j: Ints) -> tuple[Floats, Floats]:
        """Lower and upper bounds of the values of cells."""
        lower, upper = (self.quantiles(tail, i, j) for tail in tails(level))
        return lower, upper

    def quantiles(self, tail: float, i: Ints, j: Ints) -> Floats:
        """Quantiles of the values of cells; NaN for those without a value."""
        found = self.placed.values(i, j)
        wider = _widening(self.errors_dof, tail)
        with np.errstate(all="ignore"):
            for some, of_log in self._log_variances(i, j, wider):
                found[some] = quantiles(found[some], of_log, self.dispersion, tail)
        return found

    def errors(self, i: Ints, j: Ints) -> Floats:
        """Prediction errors of the values of cells; NaN for those without a value."""
        found = self.placed.values(i, j)
        with np.errstate(all="ignore"):
            for some, of_log in self._log_variances(i, j, 1.0):
                f = found[some]
                variance = f**2 * of_log + self.dispersion * f
                found[some] = np.where(f == 0.0, 0.0, np.sqrt(variance))
        return found

    def _log_variances(
        self, i: Ints, j: Ints, wider: float
    ) -> Iterator[tuple[Ints, Floats]]:
        """Yield which cells, and `_log_variance` of them, some rows at a time."""
        piece = i // max(1, CELLS_AT_ONCE // self.source.n_cols)
        for k in np.unique(piece):
            some = np.flatnonzero(piece == k)
            yield some, self._log_variance(i[some], j[some], wider)

    def _log_variance(self, i: Ints, j: Ints, wider: float) -> Floats:
        """Variance of the logarithm of the fitted value of cells.

        The part of the columns is ``wider`` times as large.
        """
        info, first = self.info, int(i.min())
        rows = slice(first, int(i.max()) + 1)
        x = self.source.rows(rows)
        weights = np.where(np.isnan(x), 0.0, 1.0)
        if self.source.weights is not None:
            weights *= np.nan_to_num(self.source.weights.rows(rows))
        if self.order is not None:
            back = np.argsort(self.order)
            x, weights, j = x[:, back], weights[:, back], self.order[j]
        component = info.label[j]
        out = np.full(len(i), np.nan)
        for c in np.unique(component[component >= 0]):
            own = np.flatnonzero(component == c)
            some, place = np.unique(i[own] - first, return_inverse=True)
            inside = np.where(info.label == c, weights[some], 0.0)
            times = inside > 0.0 if info.table.is_exposed else inside
            r = np.nansum(times * np.nan_to_num(x[some]), axis=1)
            first_of_kind, kind = _kinds_of(inside)
            Q, _ = info.shares_of(inside[first_of_kind], np.full(len(first_of_kind), c))
            G = wider * self.covariance.resistance(Q)
            out[own] = self.dispersion / r[place] + G[kind[place], j[own]]
        return out


def _kinds_of(rows: Floats) -> tuple[Ints, Ints]:
    """The first row of every kind of rows that are equal, and the kind of each row."""
    are_ones = bool(((rows == 0.0) | (rows == 1.0)).all())
    words = pack_bits(rows > 0.0) if are_ones else rows.view(np.uint64)
    numbers: dict[bytes, int] = {}
    names = names_of_rows(words)
    kind = np.array([numbers.setdefault(name, len(numbers)) for name in names])
    _, first = np.unique(kind, return_index=True)
    return first, kind


def tails(level: float) -> tuple[float, float]:
    """The probabilities below both bounds."""
    check_level(level)
    return (1.0 - level) / 2.0, (1.0 + level) / 2.0


def _widening(dof: float, tail: float) -> float:
    """Variance that gives a normal distribution the quantile of Student's t."""
    from scipy.special import ndtri, stdtrit

    normal = float(ndtri(tail))
    return 1.0 if normal == 0.0 else float(stdtrit(dof, tail) / normal) ** 2
