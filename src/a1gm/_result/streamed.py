"""``RankOneFit`` of a table whose rows are not in memory."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._solve.components import number_by_rows
from a1gm._result.divergence import divergence_of_cells
from a1gm._result.lazy_rows import LazyRows
from a1gm._base.float_range import raise_rows
from a1gm._observe.statistics import TableStatistics, WideStatistics
from a1gm._result.stream import CELLS_AT_ONCE, Stream, row_blocks
from a1gm._result.streamed_knowledge import StreamedKnowledge, StreamedZeros
from a1gm._base.types import Bools, Floats, SmallInts
from a1gm._result.messages import MOST_LINES
from a1gm._result.fit import RankOneFit

if TYPE_CHECKING:
    from a1gm._sources import AnySource
    from a1gm._result.pattern import MissingPattern

__all__ = ["StreamedFit"]


class StreamedFit(RankOneFit):
    """The fit of a table that was read in pieces.

    As ``RankOneFit``, except that ``row_factor`` is computed where it is looked at:
    slices of it are arrays, and ``np.asarray`` takes it whole. When the rows were not
    kept, ``transform(block)`` gives the factors of any rows.
    """

    def __init__(self, *, stream: Stream, **base: Any) -> None:
        super().__init__(**base)
        self.n_rows = stream.n_rows
        self._stream = stream
        self._tables: Any = None  # the files, when the table lies in files

    @property
    def row_factor(self) -> LazyRows:  # type: ignore[override]
        """Row factors, one per row of the table, computed where they are looked at."""
        if not self._stream.keeps_rows:
            return super().row_factor  # type: ignore[return-value]  # says what to do
        return LazyRows(self.n_rows, self._row_factors)

    def _row_factors(self, start: int, stop: int) -> Floats:
        factors = self._stream.factors(start, stop, self._factors)
        return raise_rows(factors, self._exponent)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table."""
        return self.n_rows, len(self.col_factor)

    @cached_property
    def certificate(self) -> float:
        """Largest relative mismatch between the margins of the fit and of the data.

        At the optimum the fitted table has the row and column sums of the observed
        cells, so 0 proves optimality.
        """
        if self._statistics is None:  # the mask is in a file: measured when solved
            return self._factors.gap  # type: ignore[unreachable]
        return super().certificate

    # ------------------------------------------------- what is known, and what not
    @cached_property
    def _knowledge(self) -> StreamedKnowledge:  # type: ignore[override]
        return StreamedKnowledge(self._stream)

    @cached_property
    def _given_up(self) -> StreamedZeros:  # type: ignore[override]
        columns = np.nan_to_num(self.col_factor) > 0.0
        if self._has_negatives:  # only margins count then
            columns[:] = False
        return StreamedZeros(self._knowledge, columns)

    @cached_property
    def _all_finite(self) -> bool:
        return self._stream.graph.is_single and not self._has_empty_rows

    @cached_property
    def _has_empty_rows(self) -> bool:
        return self.n_empty_rows > 0

    @cached_property
    def n_empty_rows(self) -> int:
        """Rows without any observed cell."""
        if self._stream.totals is not None:
            return self._stream.totals.n_empty_rows
        return sum(
            int(n_rows[~observed.any(axis=1)].sum())
            for n_rows, observed, _ in self._stream.weighted()
        )

    @cached_property
    def pattern(self) -> MissingPattern:
        """The shape of the holes."""
        from a1gm._result.pattern import MissingPattern

        statistics = self._statistics
        if not isinstance(statistics, TableStatistics):
            statistics = self._masks_in_memory()
            return MissingPattern(
                statistics, np.ones(self.n_rows, np.int64), lambda: self
            )
        return MissingPattern(statistics, statistics.counts, lambda: self)

    def _masks_in_memory(self) -> WideStatistics:
        from a1gm._base.bits import pack_bits

        blocks = list(row_blocks(self._stream, len(self.col_factor)))
        bits = np.vstack([pack_bits(observed) for _, _, observed, _ in blocks])
        sums = np.concatenate([block[1] for block in blocks])
        return WideStatistics(bits, None, sums, np.zeros(len(self.col_factor)))

    @cached_property
    def _blocks(self) -> tuple[SmallInts, SmallInts]:
        graph = self._stream.graph
        found = []
        for _, _, observed, positive in row_blocks(self._stream, len(graph.label)):
            found.append(graph.component_of_rows(observed, positive))
        rows = np.concatenate(found)
        n = graph.n
        zeros = rows == -2  # each row of zeros is a component of its own
        rows = np.where(zeros, n + np.cumsum(zeros) - 1, rows)
        n += int(zeros.sum())
        return number_by_rows(rows, graph.label, n)

    def _empty_rows(self) -> tuple[list[int], int]:
        """The first rows without an observed cell, where rows are kept."""
        if not (self._has_empty_rows and self._stream.keeps_rows):
            return [], 0
        empty: list[int] = []
        for start, _, observed, _ in row_blocks(self._stream, len(self.col_factor)):
            empty += (start + np.flatnonzero(~observed.any(axis=1))).tolist()
            if len(empty) >= MOST_LINES:
                break
        return empty, self.n_empty_rows

    # ---------------------------------------------------------------- divergence
    @cached_property
    def divergence(self) -> float:
        """Kullback-Leibler divergence on the observed cells, by reading them again.

        NaN when negative cells were allowed, and when the table is not in files.
        """
        if self._tables is None or self._has_negatives:
            return math.nan
        blocks = self._tables.blocks()
        return self._sum_divergence((rows.start, block) for rows, block in blocks)

    def _divergence_of(self, source: AnySource) -> float:
        if self._has_negatives:
            return math.nan
        step = max(1, CELLS_AT_ONCE // source.n_cols)
        starts = range(0, source.n_rows, step)
        return self._sum_divergence(
            (k, source.rows(slice(k, min(k + step, source.n_rows)))) for k in starts
        )

    def _sum_divergence(self, blocks: Iterable[tuple[int, Floats]]) -> float:
        graph = self._stream.graph
        total = 0.0
        for start, block in blocks:
            observed = ~np.isnan(block)
            w = self.row_factor[start : start + len(block)]
            component = graph.component_of_rows(observed, block > 0.0)
            fitted = np.where(
                graph.inside(component, observed), w[:, None] * self.col_factor, 0.0
            )
            cells = divergence_of_cells(block[observed], fitted[observed])
            total += float(cells.sum())
        return total

    def _same_block(self, rows: slice) -> Bools:
        _, observed, positive = self._stream.cells(rows.start, rows.stop)
        component = self._stream.graph.component_of_rows(observed, positive)
        inside: Bools = component[:, None] == self._stream.graph.label
        return inside

    def __getstate__(self) -> dict[str, Any]:
        """Take the rows along, and leave the files behind."""
        state = self.__dict__.copy()
        state["_tables"] = None
        for cached in ("_knowledge", "_given_up"):
            state.pop(cached, None)
        return state
