"""Fill the holes of rows by the columns' factors and the rows' own cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from a1gm._base.bits import unpack_bits
from a1gm._solve.column_graph import ColumnGraph
from a1gm._result.fates import UNBOUNDED, ZERO
from a1gm._observe.statistics import (
    PairStatistics,
    Statistics,
    TableStatistics,
    line_blocks,
)
from a1gm._result.streamed import StreamedFit
from a1gm._base.types import Bools, Floats, SmallInts
from a1gm._result.fit import RankOneFit

__all__ = ["RowRule", "graph_of"]


@dataclass(frozen=True)
class RowRule:
    """How to place a row, and to fill it, knowing the columns only.

    Attributes
    ----------
    col_factor : ndarray
        Factors of the columns.
    graph : ColumnGraph
        Which columns share a scale.
    """

    col_factor: Floats
    graph: ColumnGraph

    @classmethod
    def of(cls, fit: RankOneFit) -> RowRule:
        """Take the rule from a fit."""
        return cls(fit.col_factor, graph_of(fit))

    def row_factors(self, values: Floats) -> Floats:
        """Factors of some rows; NaN where they cannot be known."""
        observed = ~np.isnan(values)
        component = self._components(values, observed)
        sums = np.where(observed, values, 0.0).sum(axis=1)
        return self.graph.row_factors(sums, component, observed, self.col_factor)

    def _components(self, values: Floats, observed: Bools) -> SmallInts:
        # Negative cells, where they are allowed, tie a row to a column as well.
        tied = observed & (values != 0.0) & (self.col_factor > 0.0)
        return self.graph.component_of_rows(observed, tied)

    def fill(self, values: Floats, row_factor: Floats | None = None) -> Floats:
        """Rows with their holes filled; NaN where the data determine no value."""
        observed = ~np.isnan(values)
        if observed.all():
            return values
        w = self.row_factors(values) if row_factor is None else row_factor
        filled = values.copy(order="K")
        # Column by column, which is how blocks of files are stored.
        for j in np.flatnonzero(~observed.all(axis=0)):
            holes = np.flatnonzero(~observed[:, j])
            filled[holes, j] = w[holes] * self.col_factor[j]
        if not self.graph.is_single:
            self._set_fates(filled, values, observed)
        return filled

    def _set_fates(self, filled: Floats, values: Floats, observed: Bools) -> None:
        component = self._components(values, observed)
        fates = self.graph.fates(component, observed)
        filled[~observed & (fates == ZERO)] = 0.0
        filled[~observed & (fates >= UNBOUNDED)] = np.nan


def graph_of(fit: RankOneFit) -> ColumnGraph:
    """Which columns of a fit share a scale."""
    if isinstance(fit, StreamedFit):
        return fit._stream.graph
    if fit._all_finite:
        one = np.ones((1, 1), bool)
        return ColumnGraph(np.zeros(len(fit.col_factor), np.int32), one)
    statistics = fit._statistics
    edges = np.zeros((statistics.n_cols, statistics.n_cols), bool)
    for lines, observed in line_blocks(statistics):
        if fit._has_negatives:  # only margins count: see PatternStream.positive
            some = (statistics.row_sums[lines] != 0.0)[:, None]
            positive: Bools = observed & some & (statistics.col_sums != 0.0)
        else:
            positive = _positive_lines(statistics, lines, observed)
        edges |= positive.T.astype(np.float32) @ observed.astype(np.float32) > 0.0
    return ColumnGraph.of_edges(edges, statistics.has_observed()[1])


def _positive_lines(statistics: Statistics, lines: slice, observed: Bools) -> Bools:
    if isinstance(statistics, TableStatistics):
        above: Bools = statistics.sums[lines] > 0.0
        return above
    if isinstance(statistics, PairStatistics):
        cells = np.zeros_like(observed)
        pairs = slice(statistics.ptr[lines.start], statistics.ptr[lines.stop])
        within = statistics.lines[pairs] - lines.start
        cells[within, statistics.cols[pairs]] = statistics.sums[pairs] > 0.0
        return cells
    if statistics.positive is None:
        return observed
    return unpack_bits(statistics.positive[lines], statistics.n_cols)
