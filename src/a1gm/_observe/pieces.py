"""Observe a table whose columns come in chunks, a piece of rows at a time."""

from __future__ import annotations

import math

import numpy as np

from a1gm._base.types import AnyArray, Floats
from a1gm._observe.observation import Observation, is_waste
from a1gm._observe.statistics import PatternStatistics
from a1gm._observe.sums import PatternSums

__all__ = ["PieceSums"]


class PieceSums:
    """Sums per pattern so far, and the sum and pattern of every row, in memory."""

    def __init__(self, n_rows: int, n_cols: int) -> None:
        self.sums = PatternSums(n_cols)
        self.row_sums: Floats = np.empty(n_rows)
        self.line_of_row: AnyArray = np.empty(n_rows, np.int32)
        self.n_seen = 0
        self.n_negative = 0
        self.scales: list[tuple[slice, int]] = []

    def add(self, first: int, seen: Observation) -> bool:
        """Add a piece; False when it has no table of patterns."""
        if not isinstance(seen.statistics, PatternStatistics):
            return False
        rows = slice(first, first + seen.n_rows)
        self.line_of_row[rows] = self.sums.add_observation(seen)
        self.row_sums[rows] = seen.row_sums
        self.scales.append((rows, seen.exponent))
        self.n_seen += seen.n_rows
        self.n_negative += seen.n_negative
        return True

    @property
    def is_waste(self) -> bool:
        """Whether there are so many patterns that a bit mask is smaller."""
        return is_waste(len(self.sums), self.sums.n_cols, self.n_seen)

    def observation(self) -> Observation:
        """All pieces as one observation."""
        for rows, exponent in self.scales:
            if exponent != self.sums.exponent:
                self.row_sums[rows] *= math.ldexp(1.0, exponent - self.sums.exponent)
        return Observation(
            self.row_sums,
            self.line_of_row,
            self.sums.statistics(),
            self.sums.exponent,
            self.n_negative,
        )
