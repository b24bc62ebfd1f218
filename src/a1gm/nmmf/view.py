"""Each table of a joint fit, seen as a fit of its own.

`SharedTableFit` has the factors of one table and asks the joint table what can be known
of its cells; filling, reconstruction and divergence are those of `RankOneFit`. Its
factors stand on the sides of the joint table; the tables and labels that come from the
user stay as their owner has them, which may be the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from a1gm._base.bits import pack_bits
from a1gm._base.types import AnyArray, Bools, Floats, Ints, OnUndetermined, SmallInts
from a1gm._base.warn import warn_user
from a1gm._observe.one_pass import Observation
from a1gm._observe.statistics import TableStatistics, WideStatistics, line_blocks
from a1gm._result.fates import CELLS_AT_ONCE, EMPTY, UNBOUNDED, ZERO, Knowledge
from a1gm._result.fit import RankOneFit
from a1gm._solve.components import Components
from a1gm._sources import AnySource, Source
from a1gm._sources.labels import check_same_labels
from a1gm.exceptions import DimensionError, UndeterminedError, UndeterminedWarning
from a1gm.nmmf.layout import SharedTable, transpose
from a1gm.nmmf.observe import statistics_of
from a1gm.nmmf.read import open_table

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
        self,
        *,
        name: str,
        is_passive: bool,
        is_turned: bool,
        joint: RankOneFit,
        first_line: int | None,
        **given: Any,
    ) -> None:
        super().__init__(**given)
        self.name = name
        self._is_passive = is_passive
        self._is_turned = is_turned
        self._joint = joint
        self._first_line = first_line

    @property
    def certificate(self) -> float:
        """Certificate of the joint fit: shared margins belong to all tables."""
        return self._joint.certificate

    # ------------------------------------------------------- tables of the user's
    def _read(self, X: Any) -> Source:
        return open_table(X, self.name)

    def _check_shape(self, source: AnySource) -> None:
        fitted = self.shape[::-1] if self._is_turned else self.shape
        if (source.n_rows, source.n_cols) != fitted:
            msg = (
                f"{self.name} has shape ({source.n_rows}, {source.n_cols}), but the "
                f"table that was fitted has shape {fitted}. Pass the fitted table."
            )
            raise DimensionError(msg)
        for side, labels, known in (
            ("row", source.row_labels, self.row_labels),
            ("column", source.col_labels, self.col_labels),
        ):
            check_same_labels(side, labels, known, self.name, "the fit")

    def _values(self, i: Ints, j: Ints) -> Floats:
        return super()._values(j, i) if self._is_turned else super()._values(i, j)

    def _say_left(
        self, n: int, first: tuple[int, int], source: AnySource, how: OnUndetermined
    ) -> None:
        if how == "ignore":
            return
        try:  # the words are those of the error
            super()._say_left(n, first, source, "raise")
        except UndeterminedError as error:
            if how == "raise":
                raise
            warn_user(str(error), UndeterminedWarning)

    # ---------------------------------------------------------- tables of weight 0
    # Their cells do not relate their entities: what is known of an observed cell is
    # what would be known of it, were it missing.
    def _fates_by_rows(self) -> Iterator[tuple[slice, SmallInts, Bools]]:
        """Yield rows, the fates of their cells, and which are observed."""
        n_rows, n_cols = self.shape
        step = max(1, CELLS_AT_ONCE // n_cols)
        no_col = self.col_factor == 0.0
        for start in range(0, n_rows, step):
            rows = slice(start, min(start + step, n_rows))
            places = np.arange(rows.start, rows.stop)
            fates = self._knowledge.fates_of_rows(places).copy()
            observed = self._knowledge.observed_rows(places)
            # Zero times whatever is 0, even where nothing else is known of the row.
            no_row = self._row_factor[rows] == 0.0
            nothing = no_row[:, None] & ~np.isnan(self.col_factor)
            nothing |= no_col & ~np.isnan(self._row_factor[rows])[:, None]
            fates[observed & nothing] = ZERO
            yield rows, fates, observed

    def reconstruct(self) -> Floats:
        """Return the fitted table; NaN where the data do not determine a value."""
        if not self._is_passive or self._all_finite:
            return super().reconstruct()
        table = np.outer(self.row_factor, self.col_factor)
        for rows, fates, _ in self._fates_by_rows():
            table[rows][fates == ZERO] = 0.0
            table[rows][fates >= UNBOUNDED] = np.nan
        return table

    @cached_property
    def observed_unknown(self) -> tuple[int, int, tuple[int, int]]:
        """Observed cells of a passive table without a fitted value.

        How many there are, how many of them have both factors, and the first of these.
        """
        n_all, n_open, first = 0, 0, (-1, -1)
        if not self._is_passive or self._all_finite:
            return n_all, n_open, first
        for rows, fates, observed in self._fates_by_rows():
            unknown = observed & (fates >= UNBOUNDED)
            n_all += int(unknown.sum())
            has_factors = unknown & (fates < EMPTY)
            if has_factors.any() and not n_open:
                row, col = divmod(int(has_factors.argmax()), has_factors.shape[1])
                first = row + rows.start, col
            n_open += int(has_factors.sum())
        return n_all, n_open, first

    def _divergence_of(self, source: AnySource) -> float:
        if self.observed_unknown[0]:
            return math.nan
        if self._is_turned:
            assert isinstance(source, Source)
            source = transpose(source)
        return super()._divergence_of(source)

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
    seen: Observation,
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
    own_source = transpose(table.source) if table.transposed else table.source
    return SharedTableFit(
        name=table.name,
        is_passive=table.is_passive,
        is_turned=table.transposed,
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
        source=own_source,
        exponent=seen.exponent,
        has_negatives=False,
        tol=joint.tol,
        row_labels=own_source.row_labels,
        col_labels=own_source.col_labels,
        on_undetermined=joint._on_undetermined,
        has_rows=True,
    )


def _statistics_of(seen: Observation, own: slice) -> TableStatistics | WideStatistics:
    """Statistics of some columns, with the lines of all."""
    whole = statistics_of(seen)
    if own == slice(0, whole.n_cols):
        return whole
    words = -(-(own.stop - own.start) // 64)
    bits = np.zeros((whole.n_lines, words), np.uint64)
    for lines, observed in line_blocks(whole):
        bits[lines] = pack_bits(observed[:, own])
    if isinstance(whole, TableStatistics):
        return TableStatistics(bits, whole.counts, whole.sums[:, own])
    return WideStatistics(bits, None, whole.row_sums, whole.col_sums[own])
