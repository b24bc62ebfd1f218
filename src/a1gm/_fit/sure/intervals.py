"""Prediction intervals of the missing cells of any rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from a1gm._base.types import Floats, Ints
from a1gm._fit.place import Placed
from a1gm._fit.sure.arguments import check_level
from a1gm._fit.sure.covariance import Covariance
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
            kinds, kind = np.unique(inside, axis=0, return_inverse=True)
            Q, _ = info.shares_of(kinds, np.full(len(kinds), c))
            G = wider * self.covariance.resistance(Q)
            out[own] = self.dispersion / r[place] + G[kind.ravel()[place], j[own]]
        return out


def tails(level: float) -> tuple[float, float]:
    """The probabilities below both bounds."""
    check_level(level)
    return (1.0 - level) / 2.0, (1.0 + level) / 2.0


def _widening(dof: float, tail: float) -> float:
    """Variance that gives a normal distribution the quantile of Student's t."""
    from scipy.special import ndtri, stdtrit

    normal = float(ndtri(tail))
    return 1.0 if normal == 0.0 else float(stdtrit(dof, tail) / normal) ** 2


def quantiles(mean: Floats, of_log: Floats, phi: float, tail: float) -> Floats:
    """Quantiles of gamma distributions, or 0 where a Poisson's 0 has that much mass.

    The upper quantile of a gamma distribution falls to 0 as its variance grows beyond
    all bounds. So no shape is below the one that has the largest, and from there on
    the logarithm's own deviation, of which ``of_log`` is the square, moves the bound.
    """
    from scipy.special import gammaincinv, ndtri

    relative = of_log + phi / mean
    is_upper = tail > 0.5
    least = _widest_shape(tail) if is_upper else 1e-300
    shape = np.maximum(1.0 / relative, least)
    found: Floats = mean * gammaincinv(shape, tail) / shape
    if is_upper:
        beyond = np.maximum(np.sqrt(of_log) - least**-0.5, 0.0)
        # The mean itself bounds only levels that are hardly above 0.
        found = np.maximum(found * np.exp(ndtri(tail) * beyond), mean)
    found = np.where(relative == 0.0, mean, found)
    is_zero = mean == 0.0
    if phi > 0.0 and not is_upper:
        is_zero |= np.exp(-mean / phi) > tail
    found[is_zero] = 0.0
    return found


@lru_cache
def _widest_shape(tail: float) -> float:
    """The shape of the gamma distribution of mean 1 with the largest quantile."""
    from scipy.special import gammaincinv

    low, high = 1e-18, 1e18
    for _ in range(8):  # each with 1/16 of the width of the last
        shapes = np.geomspace(low, high, 33)
        at = int(np.argmax(gammaincinv(shapes, tail) / shapes))
        low, high = shapes[max(at - 1, 0)], shapes[min(at + 1, 32)]
    return float(shapes[at])
