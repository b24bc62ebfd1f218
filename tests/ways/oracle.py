"""The right answers by brute force; no code of the package is used.

A directed graph has an edge from a row to a column for every observed cell, and from
the column to the row for every positive one. Everything is read off what reaches what.
"""

from __future__ import annotations

from functools import cached_property
from types import SimpleNamespace

import numpy as np
from support import oracles
from support.oracles import UNBOUNDED, UNDETERMINED, ZERO

SWEEPS, GAP = 100_000, 1e-15


class Oracle:
    """Factors, fates and fills of a table and of rows that were not in it.

    ``settled`` cells are those for which the rule for new rows has one reading: a row
    that contradicts the fit (it ties components that the fit keeps apart by a zero of
    its own) has none.
    """

    def __init__(self, X: np.ndarray, weights: np.ndarray | None = None) -> None:
        self.X = X
        self.V = np.ones(X.shape) if weights is None else weights
        self.n, self.m = X.shape
        self.observed = ~np.isnan(X) & (self.V > 0.0)
        self.positive = self.observed & (np.nan_to_num(X) > 0.0)
        self.reach = oracles.reach_of(np.where(self.observed, X, np.nan))
        both = self.reach & self.reach.T
        label = both.argmax(axis=1)
        self.row_block, self.col_block = label[: self.n], label[self.n :]
        self.blocks = sorted(
            {int(b) for b in self.col_block[self.positive.any(axis=0)]}
        )
        self.w, self.h = self._factors()

    # ------------------------------------------------------------ the fitted table
    def _factors(self) -> tuple[np.ndarray, np.ndarray]:
        w, h = np.zeros(self.n), np.zeros(self.m)
        total = np.where(self.positive, self.V * self.X, 0.0).sum()
        for block in self.blocks:
            rows = np.flatnonzero(self.row_block == block)
            cols = np.flatnonzero(self.col_block == block)
            cells = np.ix_(rows, cols)
            seen = self.observed[cells]
            data = np.where(seen, self.V[cells] * self.X[cells], 0.0)
            w[rows], h[cols] = _scaled(data, np.where(seen, self.V[cells], 0.0))
            scale = data.sum() / total / h[cols].sum()
            w[rows], h[cols] = w[rows] / scale, h[cols] * scale
        w[~self.observed.any(axis=1)] = np.nan
        h[~self.observed.any(axis=0)] = np.nan
        return w, h

    @cached_property
    def fates(self) -> np.ndarray:
        """What is known of every cell, were it missing."""
        return oracles.fates(np.where(self.observed, self.X, np.nan))

    @property
    def filled(self) -> np.ndarray:
        """The fitted table with its holes filled, NaN where they stay."""
        return np.where(np.isnan(self.X), self.fitted, self.X)

    @property
    def fitted(self) -> np.ndarray:
        """The rank-1 table: 0 and NaN where the fates say so."""
        fates = self.fates
        values = np.where(fates == ZERO, 0.0, np.outer(self.w, self.h))
        values[(fates == UNBOUNDED) | (fates == UNDETERMINED)] = np.nan
        return values

    @property
    def undetermined(self) -> list[tuple[int, int, str]]:
        """Missing cells without a value, row by row."""
        fates = self.fates
        return [
            (int(i), int(j), str(fates[i, j]))
            for i, j in np.argwhere(~self.observed)
            if fates[i, j] in (UNBOUNDED, UNDETERMINED)
        ]

    @property
    def warns_of_lines(self) -> bool:
        return bool(np.isnan(self.w).any() or np.isnan(self.h).any())

    @property
    def warns_of_cells(self) -> bool:
        """Cells without a value beside those of empty rows and columns, or no optimum.

        Zeros observed between two components with data are fitted only in the limit.
        """
        known = ~np.isnan(self.w)[:, None] & ~np.isnan(self.h)
        lost = np.isin(self.fates, (UNBOUNDED, UNDETERMINED)) & ~self.observed
        with_data = (self.w > 0.0)[:, None] & (self.h > 0.0)
        apart = self.row_block[:, None] != self.col_block
        given_up = self.observed & with_data & apart
        return bool((lost & known).any() or given_up.any())

    def certificate(self, w: np.ndarray, h: np.ndarray) -> float:
        """Largest relative mismatch of the margins of given factors."""
        blocks = {"row_block": self.row_block, "col_block": self.col_block}
        fit = SimpleNamespace(row_factor=w, col_factor=h, **blocks)
        return oracles.certificate(np.where(self.observed, self.X, np.nan), fit, self.V)

    # -------------------------------------------------------------------- new rows
    def fill(self, rows: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Rows with their holes filled, each by its own cells."""
        V = np.ones(rows.shape) if weights is None else weights
        pairs = zip(rows, V, strict=True)
        return np.array([self._fill_row(row, v)[0] for row, v in pairs])

    def settled(self, rows: np.ndarray) -> np.ndarray:
        """Cells of rows for which the rule has one reading."""
        return np.array([self._fill_row(row, np.ones(self.m))[1] for row in rows])

    def _fill_row(
        self, row: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        seen = ~np.isnan(row) & (v > 0.0) & ~np.isnan(self.h)
        positive = seen & (np.nan_to_num(row) > 0.0)
        reach = self.reach[self.n :, self.n :]
        filled, settled = row.copy(), np.ones(len(row), bool)
        for j in np.flatnonzero(np.isnan(row)):
            same = self.col_block == self.col_block[j]
            if np.isnan(self.h[j]):
                continue
            if (positive & same).any():
                filled[j] = self._level(row, v, seen & same) * self.h[j]
                continue
            there = bool(reach[np.flatnonzero(seen), j].any())
            back = bool(reach[j, np.flatnonzero(positive)].any())
            settled[j] = not (there and back)
            if there and not back:
                filled[j] = 0.0
        return filled, settled

    def _level(self, row: np.ndarray, v: np.ndarray, cells: np.ndarray) -> float:
        return float((v * row)[cells].sum() / (v * self.h)[cells].sum())

    def transform(
        self, rows: np.ndarray, weights: np.ndarray | None = None
    ) -> np.ndarray:
        """Row factors of rows; NaN when nothing or several blocks place them."""
        V = np.ones(rows.shape) if weights is None else weights
        out = np.full(len(rows), np.nan)
        for k, (row, v) in enumerate(zip(rows, V, strict=True)):
            seen = ~np.isnan(row) & (v > 0.0) & ~np.isnan(self.h)
            positive = seen & (np.nan_to_num(row) > 0.0)
            blocks = set(self.col_block[positive].tolist())
            if len(blocks) == 1:
                same = self.col_block == blocks.pop()
                out[k] = self._level(row, v, seen & same)
            elif not blocks and seen.any():
                out[k] = 0.0
        return out


def _scaled(data: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Alternating scaling until the rows fit to the last bits."""
    r, c = data.sum(axis=1), data.sum(axis=0)
    h = np.ones(len(c))
    for _ in range(SWEEPS):
        w = r / (weights @ h)
        h = c / (w @ weights)
        if (np.abs(w * (weights @ h) - r) <= GAP * r).all():
            break
    return w, h
