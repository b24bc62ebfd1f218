"""Each table of a joint fit, seen as a fit of its own.

`SharedTableFit` has the factors of one table and asks the joint table what can be known
of its cells; filling, reconstruction and divergence are those of `RankOneFit`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from a1gm._bits import pack_bits
from a1gm._blocks import Components
from a1gm._input import AnySource
from a1gm._knowledge import EMPTY, ZERO, Knowledge
from a1gm._statistics import TableStatistics, WideStatistics, line_blocks
from a1gm._types import AnyArray, Bools, Floats, SmallInts
from a1gm.exceptions import DimensionError
from a1gm.nmmf._layout import SharedTable
from a1gm.nmmf._observe import SideBySide
from a1gm.result import RankOneFit

__all__ = ["SharedTableFit", "view_table"]


class PartComponents(Components):
    """Components of some lines and columns, numbered as in the joint table."""

    __slots__ = ("_n",)
    _n: int

    def __init__(self, line: SmallInts, col: SmallInts, n: int) -> None:
        object.__setattr__(self, "line", line)
        object.__setattr__(self, "col", col)
        object.__setattr__(self, "_n", n)

    @property
    def n(self) -> int:
        """Number of components of the joint table."""
        return self._n


class PartKnowledge(Knowledge):
    """What is known of one table's cells, through all tables."""

    def __init__(
        self,
        statistics: TableStatistics | WideStatistics,
        components: PartComponents,
        line_of_row: AnyArray | None,
        is_zero_row: Bools,
        joint: Knowledge,
        first_line: int | None,
    ) -> None:
        super().__init__(statistics, components, line_of_row, is_zero_row)
        self._joint = joint
        self._first_line = first_line  # None: these lines are not in the joint table

    def _fates_of_class(self, row_class: int) -> SmallInts:
        n = self.components.n
        if row_class < n:
            return self._joint._fates_of_class(row_class)
        if self._first_line is not None:
            return self._joint._fates_of_class(row_class + self._first_line)
        fates = np.full(n + 1, ZERO, np.int32)  # a row of zeros that does not steer
        fates[n] = EMPTY
        return fates


class SharedTableFit(RankOneFit):
    """One table of a joint fit."""

    def __init__(
        self, *, name: str, joint: RankOneFit, first_line: int | None, **given: Any
    ) -> None:
        super().__init__(**given)
        self.name = name
        self._joint = joint
        self._first_line = first_line

    @property
    def certificate(self) -> float:
        """Certificate of the joint fit: shared margins belong to all tables."""
        return self._joint.certificate

    def _check_shape(self, source: AnySource) -> None:
        if (source.n_rows, source.n_cols) != self.shape:
            msg = (
                f"{self.name} has shape ({source.n_rows}, {source.n_cols}), but the "
                f"table that was fitted has shape {self.shape}. Pass the fitted table."
            )
            raise DimensionError(msg)

    @cached_property
    def _n_between(self) -> int:
        """Observed cells fitted by 0 although both of their entities are positive."""
        components = self._components
        if components is None:
            return 0
        rows = np.flatnonzero(np.nan_to_num(self._row_factor) > 0.0)
        lines = rows if self._line_of_row is None else self._line_of_row[rows]
        n_rows = np.bincount(lines, minlength=self._statistics.n_lines)
        positive = np.nan_to_num(self.col_factor) > 0.0
        total = 0
        for block, observed in line_blocks(self._statistics):
            apart = components.line[block, None] != components.col
            between = observed & apart & positive
            total += int((between.sum(axis=1) * n_rows[block]).sum())
        return total

    @cached_property
    def _knowledge(self) -> PartKnowledge:
        assert isinstance(self._components, PartComponents)
        assert isinstance(self._statistics, TableStatistics | WideStatistics)
        return PartKnowledge(
            self._statistics,
            self._components,
            self._line_of_row,
            self._row_factor == 0.0,
            self._joint._knowledge,
            self._first_line,
        )

    @cached_property
    def _all_finite(self) -> bool:
        return (
            self.n_blocks == 1
            and self._joint._components is None
            and not np.isnan(self._row_factor).any()
            and not np.isnan(self.col_factor).any()
        )


def view_table(
    table: SharedTable,
    seen: SideBySide,
    own: slice,
    joint: RankOneFit,
    first_line: int | None,
    factors: tuple[Floats, Floats],
    components: tuple[SmallInts, SmallInts, int],
    blocks: tuple[SmallInts, SmallInts],
) -> SharedTableFit:
    """Make the view of one table; ``own`` are its columns among those of its rows."""
    row_factor, col_factor = factors
    raw = joint._factors
    nothing = np.zeros(0)
    return SharedTableFit(
        name=table.name,
        joint=joint,
        first_line=first_line,
        row_factor=row_factor,
        col_factor=col_factor,
        factors=replace(
            raw,
            line_factor=nothing,
            line_scale=nothing,
            col_factor=col_factor,
            line_block=blocks[0],
            col_block=blocks[1],
        ),
        statistics=_statistics_of(seen, own),
        line_of_row=seen.line_of_row,
        components=PartComponents(*components),
        source=table.source,
        exponent=seen.exponent,
        has_negatives=False,
        tol=joint.tol,
        row_labels=table.source.row_labels,
        col_labels=table.source.col_labels,
        on_undetermined=joint._on_undetermined,
        has_rows=True,
    )


def _statistics_of(seen: SideBySide, own: slice) -> TableStatistics | WideStatistics:
    """Statistics of some columns, with the lines of all."""
    whole = seen.statistics
    if own == slice(0, whole.n_cols):
        return whole
    words = -(-(own.stop - own.start) // 64)
    bits = np.zeros((whole.n_lines, words), np.uint64)
    for lines, observed in line_blocks(whole):
        bits[lines] = pack_bits(observed[:, own])
    if isinstance(whole, TableStatistics):
        return TableStatistics(bits, whole.counts, whole.sums[:, own])
    return WideStatistics(bits, None, whole.row_sums, whole.col_sums[own])
