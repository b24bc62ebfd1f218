"""Covariance of the logarithms of the column factors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from a1gm._base.types import Floats


@dataclass(frozen=True)
class Covariance:
    """The matrix ``C = B' K B + diag(d)``: K alone, or thin where columns are many.

    Only contrasts have a meaning: directions that sum to 0 in every block.
    """

    middle: Floats | None  # K; None for the identity
    sides: Floats | None = None  # B, with one row per row of K; None for the identity
    own: Floats | None = None  # d; None for 0

    def times(self, factor: float) -> Covariance:
        """The same matrix times a number."""
        own = None if self.own is None else factor * self.own
        if self.middle is None:
            assert self.sides is not None
            return replace(self, sides=np.sqrt(factor) * self.sides, own=own)
        return replace(self, middle=factor * self.middle, own=own)

    def product(self, directions: Floats) -> Floats:
        """Directions, one per row, times the matrix."""
        _, found = self._through(directions)
        found = found if self.sides is None else found @ self.sides
        return found if self.own is None else found + directions * self.own

    def spread(self, directions: Floats) -> Floats:
        """Variance of sums of logarithms of column factors, one per row."""
        inner, through = self._through(directions)
        found: Floats = np.sum(through * inner, axis=1)
        if self.own is not None:
            found = found + directions**2 @ self.own
        return np.maximum(found, 0.0)

    def resistance(self, Q: Floats) -> Floats:
        """The part of the columns in the variance of the logarithms of cells.

        One row per row with shares Q, one column per column.
        """
        inner, through = self._through(Q)
        of_rows: Floats = np.sum(through * inner, axis=1)
        across = through if self.sides is None else through @ self.sides
        if self.own is not None:
            of_rows = of_rows + Q**2 @ self.own
            across = across + Q * self.own
        found: Floats = self.diagonal - 2.0 * across + of_rows[:, None]
        return np.maximum(found, 0.0)

    def of_column_totals(self, value: Floats, Q: Floats, A: Floats) -> Floats:
        """Variance of totals of the columns of a thin matrix.

        A has the cells of each total by pattern, Q the shares. The direction of total j
        is ``value_j e_j - Q' A_j``. With the inverse, the patterns' own scatter is in
        it: from their side the direction is ``A_j - value_j B_j``.
        """
        assert self.sides is not None
        if self.middle is None or self.own is None:
            inner = self.sides * value - (self.sides @ Q.T) @ A
            found: Floats = np.sum(inner**2, axis=0)
            return found
        away = A - self.sides * value
        found = np.sum(away * (self.middle @ away), axis=0)
        return found + self.own * value**2

    @cached_property
    def diagonal(self) -> Floats:
        """The variances."""
        if self.sides is None:
            assert self.middle is not None
            return self.middle.diagonal()
        through = self.sides if self.middle is None else self.middle @ self.sides
        found: Floats = np.sum(through * self.sides, axis=0)
        return found if self.own is None else found + self.own

    def _through(self, directions: Floats) -> tuple[Floats, Floats]:
        """Directions times B', and these times K."""
        inner = directions if self.sides is None else directions @ self.sides.T
        return inner, inner if self.middle is None else inner @ self.middle
