"""The rows behind a streamed fit: what can be asked of them without the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn, Protocol

import numpy as np

from a1gm._base.bits import unpack_bits
from a1gm._solve.column_graph import ColumnGraph
from a1gm._solve.expand import Factors
from a1gm._observe.row_log import LineLog, MaskLog
from a1gm._observe.statistics import TableStatistics
from a1gm._base.types import Bools, Floats, Ints
from a1gm.exceptions import ParameterError

__all__ = [
    "ColumnStream",
    "MaskStream",
    "PatternStream",
    "Stream",
    "Totals",
    "row_blocks",
]

CELLS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Totals:
    """What was counted of rows that are gone.

    Attributes
    ----------
    n_empty_rows : int
        Rows without an observed cell.
    n_given_up : int
        Observed zeros between components.
    fates : ndarray of int64
        Missing cells of each fate.
    """

    n_empty_rows: int
    n_given_up: int
    fates: Ints


class Stream(Protocol):
    """Rows that were read once."""

    @property
    def n_rows(self) -> int:
        """Rows of the table."""

    @property
    def keeps_rows(self) -> bool:
        """Whether single rows can be asked about."""

    @property
    def graph(self) -> ColumnGraph:
        """Which columns share a scale."""

    @property
    def totals(self) -> Totals | None:
        """What was counted, when the rows are gone."""

    def cells(self, start: int, stop: int) -> tuple[Floats, Bools, Bools]:
        """Sums, observed cells and positive cells of a range of rows."""

    def weighted(self) -> Iterator[tuple[Ints, Bools, Bools]]:
        """Yield numbers of rows with their observed and positive cells."""

    def factors(self, start: int, stop: int, found: Factors) -> Floats:
        """Row factors of a range of rows."""


def row_blocks(rows: Stream, n_cols: int) -> Iterator[tuple[int, Floats, Bools, Bools]]:
    """Yield (first row, sums, observed, positive), so many cells at a time."""
    step = max(1, CELLS_AT_ONCE // n_cols)
    for start in range(0, rows.n_rows, step):
        yield start, *rows.cells(start, min(start + step, rows.n_rows))


@dataclass
class PatternStream:
    """Rows known by the number of their pattern, or only counted.

    Attributes
    ----------
    statistics : TableStatistics
        The patterns.
    zero_counts : ndarray of int64
        Rows of each pattern whose sum is zero.
    exponent : int
        Power of two by which the sums of the statistics are divided.
    log : LineLog or None
        Sum and pattern of each row, when they are kept.
    """

    statistics: TableStatistics
    zero_counts: Ints
    exponent: int
    log: LineLog | None
    has_negatives: bool = False
    totals: None = None

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return int(self.statistics.counts.sum())

    @property
    def keeps_rows(self) -> bool:
        """Whether single rows can be asked about."""
        return self.log is not None

    @cached_property
    def observed(self) -> Bools:
        """Observed cells of each pattern."""
        return self.statistics.observed

    @cached_property
    def positive(self) -> Bools:
        """Positive cells of each pattern."""
        statistics = self.statistics
        if not self.has_negatives:
            above: Bools = statistics.sums > 0.0
            return above
        # Only margins count then: every cell of a row and column with data joins them.
        some = self.observed & (statistics.row_sums != 0.0)[:, None]
        joined: Bools = some & (statistics.col_sums != 0.0)
        return joined

    @cached_property
    def graph(self) -> ColumnGraph:
        """Which columns share a scale."""
        ahead = self.positive.T.astype(np.float32) @ self.observed.astype(np.float32)
        return ColumnGraph.of_edges(ahead > 0.0, self.statistics.has_observed()[1])

    def cells(self, start: int, stop: int) -> tuple[Floats, Bools, Bools]:
        """Sums, observed cells and positive cells of a range of rows.

        A row counts as positive wherever its pattern is: twins share a component.
        """
        sums, lines = self._kept().read(start, stop, self.exponent)
        return sums, self.observed[lines], self.positive[lines] & (sums != 0.0)[:, None]

    def weighted(self) -> Iterator[tuple[Ints, Bools, Bools]]:
        """Yield the patterns; rows of zeros are patterns without positive cells."""
        step = max(1, CELLS_AT_ONCE // self.statistics.n_cols)
        counts = self.statistics.counts
        nowhere = np.zeros_like(self.positive)
        for n_rows, positive in (
            (counts - self.zero_counts, self.positive),
            (self.zero_counts, nowhere),
        ):
            kept = np.flatnonzero(n_rows)
            for at in range(0, len(kept), step):
                some = kept[at : at + step]
                yield n_rows[some], self.observed[some], positive[some]

    def factors(self, start: int, stop: int, found: Factors) -> Floats:
        """Row factors of a range of rows."""
        sums, lines = self._kept().read(start, stop, self.exponent)
        empty = ~self.observed.any(axis=1)
        scale = np.where(empty, np.nan, found.line_scale)
        factors: Floats = sums * scale[lines]
        return factors

    def _kept(self) -> LineLog:
        if self.log is None:
            msg = (
                "This fit was made without keeping its rows, so single rows cannot be "
                "asked about. Use fit.transform(block), or keep_rows=True."
            )
            raise ParameterError(msg)
        return self.log


@dataclass
class MaskStream:
    """Rows known by their masks, which lie in a file."""

    log: MaskLog
    graph: ColumnGraph
    keeps_rows: bool = True
    totals: None = None

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return self.log.n_rows

    def cells(self, start: int, stop: int) -> tuple[Floats, Bools, Bools]:
        """Sums, observed cells and positive cells of a range of rows."""
        sums, bits, positive = self.log.read(start, stop)
        observed = unpack_bits(bits, self.log.n_cols)
        if positive is bits:
            return sums, observed, observed
        return sums, observed, unpack_bits(positive, self.log.n_cols)

    def weighted(self) -> Iterator[tuple[Ints, Bools, Bools]]:
        """Yield all rows; each stands for itself."""
        for _, sums, observed, positive in row_blocks(self, self.log.n_cols):
            yield np.ones(len(sums), np.int64), observed, positive

    def factors(self, start: int, stop: int, found: Factors) -> Floats:
        """Row factors of a range of rows."""
        sums, observed, positive = self.cells(start, stop)
        component = self.graph.component_of_rows(observed, positive)
        return self.graph.row_factors(sums, component, observed, found.col_factor)


@dataclass(frozen=True)
class ColumnStream:
    """Rows that are gone: a fit was read from a file that holds its columns only."""

    n_rows: int
    graph: ColumnGraph
    totals: Totals
    keeps_rows: bool = False

    def cells(self, start: int, stop: int) -> tuple[Floats, Bools, Bools]:
        """Refuse: single rows cannot be asked about."""
        self._refuse()

    def weighted(self) -> Iterator[tuple[Ints, Bools, Bools]]:
        """Refuse: the patterns of the rows are not known any more."""
        self._refuse()

    def factors(self, start: int, stop: int, found: Factors) -> Floats:
        """Refuse: see ``cells``."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        msg = (
            "This fit was saved without its rows, so they cannot be asked about. Use "
            "fit.transform(block) or a1gm.impute_file(path, out, fit=fit) for any "
            "rows, or fit the table again."
        )
        raise ParameterError(msg)
