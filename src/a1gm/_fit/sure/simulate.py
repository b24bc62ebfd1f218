"""Simulated totals: data drawn by the model on the pattern table, and refitted.

The sum of the cells of one pattern and column is drawn as a whole, from the gamma
distribution of its mean and variance; every draw is solved by the solver of all fits.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from a1gm._base.types import Floats, Ints
from a1gm._base.warn import warn_user
from a1gm._base.words import counted
from a1gm._fit.place import FINITE, UNBOUNDED, Fates
from a1gm._fit.sure.arguments import By, Which
from a1gm._fit.sure.information import Information
from a1gm._fit.table import FitRows
from a1gm._observe.patterns import pairs_of, weighted_counts
from a1gm._solve.dispatch import Solved, solve
from a1gm._solve.factors import Factors
from a1gm.exceptions import ConvergenceWarning, DataError, NotRepresentableError

TOL, MAX_ITER = 1e-8, 1000
MOST_TRIES = 100


def simulate(
    info: Information,
    phi: float,
    n: int,
    by: By,
    cells: Which,
    random: np.random.Generator,
) -> Floats:
    """Draw n sets of totals of the missing, or of all, cells."""
    table = _Table(info, phi, by, cells)
    if not table.fitted.any():  # zeros are drawn as zeros, whatever the dispersion
        n_rows, n_cols = info.shape
        return np.zeros((n, {"row": n_rows, "column": n_cols, "all": 1}[by]))
    draws = [table.draw(random) for _ in range(n)]
    if table.n_redrawn:
        warn_user(
            f"{counted(table.n_redrawn, 'draw')} left cells of a total without a value "
            "and had to be repeated: the totals rest on cells that may well be 0.",
            ConvergenceWarning,
        )
    return np.array(draws).reshape(n, -1)


class _Table:
    """The fitted sums of (pattern, column), from which data are drawn.

    Rows of proportional weights share a pattern, but not its scale: with weights every
    row is drawn on its own.
    """

    def __init__(self, info: Information, phi: float, by: By, cells: Which) -> None:
        self.phi, self.by, self.n_redrawn = phi, by, 0
        patterns, is_weighted = info.patterns, info.table.is_weighted
        some = slice(0, patterns.n_patterns)
        Q, reach = info.shares(some)
        P = patterns.weights_of(some)
        sums = patterns.row_sums[some]
        self.chosen: Any = info.chosen(some, cells)
        self.inside = patterns.inside(info.component, info.label)
        self.pattern_of_row: Ints | None = None
        if by == "row" or is_weighted:
            w, self.row_sums, self.pattern_of_row = info.every_row
        self.scale = np.ones(len(Q))
        if is_weighted:
            pattern, self.pattern_of_row = self.pattern_of_row, None
            Q, P, sums = Q[pattern], P[pattern], self.row_sums
            self.chosen = self.chosen[pattern]
            with np.errstate(divide="ignore", invalid="ignore"):
                self.scale = np.where(w > 0.0, w * reach[pattern] / sums, 0.0)
        if info.exposures is not None:
            E = info.exposures.rows(slice(0, info.shape[0]))
            self.chosen = self.chosen * np.nan_to_num(E)
        if is_weighted or self.inside.is_mask:
            i, j = np.nonzero(Q)
            own = P[i, j]
            self.inside = pairs_of(i, j, own, own, *Q.shape)
        self.at = self.inside.places(slice(0, self.inside.n_patterns))
        self.fitted = sums[:, None] * Q

    def draw(self, random: np.random.Generator) -> Floats:
        """Draw one set of totals; again where one of them is not finite."""
        for _ in range(MOST_TRIES):
            sums = _scattered(self.fitted, self.phi, random)
            with suppress(NotRepresentableError):
                drawn = replace(self.inside, sums=sums[self.at])
                solved = solve(drawn, TOL, MAX_ITER)
                chosen = self._known_cells(solved)
                if chosen is not None:
                    means = self._means(solved.factors, chosen, random)
                    if np.isfinite(means).all():
                        return _scattered(means, self.phi, random)
            self.n_redrawn += 1
        raise DataError(
            f"In {MOST_TRIES} draws some total was never finite: too many of the cells "
            "that it rests on may well be 0. Simulate other totals."
        )

    def _known_cells(self, solved: Solved) -> Floats | None:
        """The chosen cells that are not 0; None where one of them has no value.

        Small means may be drawn as 0, and zeros part the table.
        """
        if solved.is_plain:
            everything: Floats = self.chosen
            return everything
        rows = FitRows(solved.statistics, solved.factors.pattern_factor)
        fates = Fates(solved, rows).of_rows(0, len(self.chosen))
        if ((self.chosen != 0.0) & (fates >= UNBOUNDED)).any():
            return None
        return np.where(fates == FINITE, self.chosen, 0.0)

    def _means(
        self, factors: Factors, chosen: Floats, random: np.random.Generator
    ) -> Floats:
        """Totals of the fitted cells of a draw."""
        h = np.nan_to_num(factors.col_factor)
        w = self.scale * np.nan_to_num(factors.pattern_factor)
        if self.by == "row":
            if self.pattern_of_row is None:
                return w * (chosen @ h)
            share = _scattered(self.row_sums, self.phi, random)
            total = weighted_counts(self.pattern_of_row, share, len(w))
            with np.errstate(divide="ignore", invalid="ignore"):
                own = np.where(share > 0.0, share / total[self.pattern_of_row], 0.0)
            return own * (w * (chosen @ h))[self.pattern_of_row]
        means = h * (w @ chosen)
        return means if self.by == "column" else means.sum(keepdims=True)


def _scattered(means: Floats, phi: float, random: np.random.Generator) -> Floats:
    """Draw numbers with these means, and variances phi times as large."""
    if phi == 0.0:
        return means
    return phi * random.gamma(np.nan_to_num(means) / phi)
