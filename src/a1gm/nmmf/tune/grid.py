"""Scores of the hidden cells for any pairs of weights, from one observation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from a1gm._base.types import Floats, SmallInts
from a1gm._observe.observation import Observation
from a1gm._observe.one_pass import observe_side_by_side
from a1gm._observe.statistics import PatternStatistics
from a1gm.exceptions import DataError
from a1gm.nmmf.join import join
from a1gm.nmmf.layout import Layout
from a1gm.nmmf.observe import check_something_observed
from a1gm.nmmf.solve import Solution, factors_of_rows, solve_joint
from a1gm.nmmf.tune.hidden import HiddenCells
from a1gm.nmmf.tune.sweeps import product, scale_together

MAX_SWEEPS = 60  # the few pairs that need more are solved one by one
UNPREDICTABLE = (
    "No hidden cell of X can be predicted from the others: their rows or columns have "
    "nothing left but zeros, or are cut off. Give X more observed cells, another "
    "share, or another random_state."
)


class Grid:
    """The tables without the hidden cells, for any pair of weights.

    ``hidden`` are the cells that are scored: those that X alone predicts.
    """

    def __init__(
        self,
        layout: Layout,
        hidden: HiddenCells,
        *,
        tol: float,
        max_iter: int,
        n_threads: int | None,
    ) -> None:
        self._layout = layout
        self._tol, self._max_iter, self._n_threads = tol, max_iter, n_threads
        self._seen = _observe_kept(layout, hidden, n_threads)
        self.hidden = hidden
        alone = self._solve(0.0, 0.0)
        w, h = self._factors(alone)
        block = alone.raw.line_block[self._rows()[1]]
        same = (block[:, None] == alone.raw.col_block) & (w > 0.0)[:, None] & (h > 0.0)
        self.hidden = hidden.only(same)
        if not self.hidden.n:
            raise DataError(UNPREDICTABLE)

    def scores(self, pairs: Floats) -> Floats:
        """Divergence of the hidden cells for many pairs (alpha, beta), one per row."""
        found = np.full(len(pairs), np.nan)
        if not any(seen.line_of_row is None or seen.exponent for seen in self._seen):
            found = self._scores_together(pairs)
        # Pairs that plain sweeps do not solve; all of them when patterns are many.
        for k in np.flatnonzero(np.isnan(found)):
            w, h = self._factors(self._solve(*pairs[k].tolist()))
            found[k] = self.hidden.scores(w[:, None], h[:, None])[0]
        return found

    def _solve(self, alpha: float, beta: float) -> Solution:
        """Solve the joint table for one pair of weights."""
        of_table = {"X": 1.0, "Y": alpha, "Z": beta}
        tables = (replace(t, weight=of_table[str(t.key)]) for t in self._layout.tables)
        return solve_joint(
            join(replace(self._layout, tables=tuple(tables)), self._seen),
            tol=self._tol,
            max_iter=self._max_iter,
            n_threads=self._n_threads,
        )

    def _rows(self) -> tuple[Floats, SmallInts]:
        """Sums of each table over the rows with hidden cells, and their patterns."""
        seen, rows = self._seen[0], self.hidden.rows
        pattern = rows if seen.line_of_row is None else seen.line_of_row[rows]
        return np.take(seen.row_sums, rows, axis=1), pattern.astype(np.int32)

    def _factors(self, solution: Solution) -> tuple[Floats, Floats]:
        """Factors of the rows with hidden cells and of the columns of X."""
        sums, pattern = self._rows()
        rows = replace(self._seen[0], row_sums=sums, line_of_row=pattern)
        col_factor = solution.col_factor[solution.joint.columns[0]]
        return factors_of_rows(solution, 0, rows), col_factor

    def _scores_together(self, pairs: Floats) -> Floats:
        """Score all pairs on the joint pattern table; NaN for those not solved.

        The weights of its cells are the product of a row part, alpha for the rows of Y,
        and a column part, beta for the columns of Z.
        """
        joint = join(self._layout, self._seen)
        table = joint.statistics()
        assert isinstance(table, PatternStatistics)
        n_cols = self.hidden.cells.shape[1]
        is_y = np.arange(table.n_lines) >= joint.patterns[0].stop
        is_z = np.arange(table.n_cols) >= n_cols
        row_part = np.where(is_y, pairs[:, :1], 1.0)
        col_part = np.where(is_z, pairs[:, 1:], 1.0)
        mask = table.observed_lines(slice(0, table.n_lines)).astype(np.float64)
        h, gap = scale_together(
            mask,
            row_part * product(col_part, table.sums.T),
            col_part * product(row_part, table.sums),
            tol=self._tol,
            max_sweeps=min(MAX_SWEEPS, self._max_iter),
        )
        sums, pattern = self._rows()
        weights = np.stack([np.ones(len(pairs)), pairs[:, 1]])[: len(sums)]
        with np.errstate(all="ignore"):  # problems that are not solved
            w = (1.0 / product(mask, h.T))[pattern] * product(sums.T, weights)
            scores = self.hidden.scores(w, h.T[:n_cols])
        return np.where(gap <= self._tol, scores, np.nan)


def _observe_kept(
    layout: Layout, hidden: HiddenCells, n_threads: int | None
) -> list[Observation]:
    """Observe the tables of each row set, every table with row sums of its own."""
    found = []
    for r in range(len(layout.row_sets)):
        tables = layout.of_rows(r)
        seen = observe_side_by_side(tables, separate=True, n_threads=n_threads)
        has_data = seen.statistics.has_observed()[1]
        if tables[0].key == "X" and hidden.n and not has_data[: tables[0].n_cols].any():
            raise DataError(UNPREDICTABLE)
        check_something_observed(tables, has_data)
        found.append(seen)
    return found
