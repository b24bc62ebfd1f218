"""The joint table: the statistics of all row sets one below the other.

The table itself, ``[[X, Z], [Y, nothing]]`` in the case of three, is never built. Its
rows are the patterns of each row set; where almost every row has its own, all rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from a1gm._base.bits import pack_bits
from a1gm._base.types import Bools, Floats, Ints, Words
from a1gm._observe.observation import Observation
from a1gm._observe.statistics import (
    MaskStatistics,
    PairStatistics,
    PatternStatistics,
    Statistics,
    as_mask,
)
from a1gm.exceptions import NotRepresentableError
from a1gm.nmmf.exponent import TOO_FAR_APART, common_exponent
from a1gm.nmmf.layout import EntitySet, Layout, SharedTable
from a1gm.nmmf.observe import statistics_of


@dataclass(frozen=True, slots=True)
class JointTable:
    """Statistics of the joint table, and where its sets begin.

    Only sets of tables that steer take part: ``patterns[r]`` and ``columns[c]`` are the
    places of row set r and column set c in the statistics.
    """

    layout: Layout
    seen: list[Observation]
    patterns: dict[int, slice]
    columns: dict[int, slice]
    row_weight: Floats
    col_weight: Floats
    exponent: int
    is_plain: bool  # weights are row_weight * col_weight

    @property
    def n_patterns(self) -> int:
        """Patterns of all row sets."""
        return max(int(s.stop) for s in self.patterns.values())

    @property
    def n_cols(self) -> int:
        """Columns of all column sets."""
        return max(int(s.stop) for s in self.columns.values())

    def statistics(self) -> Statistics:
        """Weighted sums and patterns of the joint table."""
        if not self.is_plain:
            return self.pairs()
        found = [self._placed(r) for r in self.patterns]
        tables = [part for part in found if isinstance(part, PatternStatistics)]
        if len(tables) < len(found):
            return _stacked_masks([as_mask(part) for part in found])
        return PatternStatistics(
            np.concatenate([table.keys for table in tables]),
            np.concatenate([table.counts for table in tables]),
            np.concatenate([table.sums for table in tables]),
        )

    def own_columns(self, r: int) -> tuple[Ints, Ints, Floats]:
        """Columns of a row set that take part: own place, joint place and weight."""
        own, joint, weight = [], [], []
        for table in self.layout.of_rows(r):
            if not table.is_passive:
                place = self.columns[table.col_set]
                own.append(np.arange(table.columns.start, table.columns.stop))
                joint.append(np.arange(place.start, place.stop))
                weight.append(np.full(table.n_cols, self.weight_of(table)))
        return np.concatenate(own), np.concatenate(joint), np.concatenate(weight)

    def _placed(self, r: int) -> PatternStatistics | MaskStatistics:
        """Statistics of a row set with its weighted sums, among the joint columns."""
        given = statistics_of(self.seen[r])
        own, joint, weight = self.own_columns(r)
        if isinstance(given, PatternStatistics):
            sums = np.zeros((given.n_lines, self.n_cols))
            sums[:, joint] = given.sums[:, own] * weight
            keys = self._moved(given.keys, given.n_cols, own, joint)
            return PatternStatistics(keys, given.counts, sums)
        col_sums = np.zeros(self.n_cols)
        col_sums[joint] = given.col_sums[own] * weight
        bits = self._moved(given.bits, given.n_cols, own, joint)
        positive = given.positive
        if positive is not None:
            positive = self._moved(positive, given.n_cols, own, joint)
            if np.array_equal(bits, positive):  # the zeros are in a table of weight 0
                positive = None
        return MaskStatistics(bits, positive, self.row_sums(r), col_sums)

    def _moved(self, bits: Words, n_own: int, own: Ints, joint: Ints) -> Words:
        """Bits of a row set's columns at the places of the joint columns."""
        if len(own) == self.n_cols == n_own and (own == joint).all():
            return bits
        words = np.zeros((len(bits), -(-self.n_cols // 64)), np.uint64)
        own_bits = MaskStatistics(bits, None, np.zeros(0), np.zeros(n_own))
        for patterns, cells in own_bits.pieces():
            moved: Bools = np.zeros((len(cells), self.n_cols), bool)
            moved[:, joint] = cells[:, own]
            words[patterns] = pack_bits(moved)
        return words

    def row_sums(self, r: int) -> Floats:
        """Weighted sum of every row of a row set, a new array."""
        seen = self.seen[r]
        weights = self.table_weights(r)
        if len(seen.row_sums) == 1:
            weights = weights[:1]
        total: Floats = weights @ seen.row_sums
        return total

    def table_weights(self, r: int) -> Floats:
        """Weight of each table of a row set in the sums of its rows."""
        return np.array([self.weight_of(table) for table in self.layout.of_rows(r)])

    def largest_weight(self, r: int) -> float:
        """Largest of the weights of a row set's tables in the sums of its rows."""
        return float(self.table_weights(r).max())

    def observed_cells(self, table: SharedTable) -> Iterator[tuple[slice, Bools]]:
        """Yield the patterns of a row set, and which cells of one table they observe.

        Only the words that have the table's bits are read.
        """
        whole = statistics_of(self.seen[table.row_set])
        bits = whole.keys if isinstance(whole, PatternStatistics) else whole.bits
        own = table.columns
        first = own.start // 64
        near = slice(own.start - 64 * first, own.stop - 64 * first)
        words = bits[:, first : -(-own.stop // 64)]
        part = MaskStatistics(words, None, np.zeros(0), np.zeros(near.stop))
        for patterns, observed in part.pieces():
            yield patterns, observed[:, near]

    def weight_of(self, table: SharedTable) -> float:
        """Weight of a table's sums, the power of two of its row set included."""
        power = self.seen[table.row_set].exponent - self.exponent
        return math.ldexp(self._cell_weight(table), power)

    def _cell_weight(self, table: SharedTable) -> float:
        """Weight of a table's cells, as the product of those of its two sets."""
        if table.is_passive or not self.is_plain:
            return table.weight
        weight = self.row_weight[table.row_set] * self.col_weight[table.col_set]
        return float(weight)

    def pairs(self) -> PairStatistics:
        """Every observed (pattern, column) with its weighted sum, and its weight."""
        patterns, cols, sums, weights = [], [], [], []
        for r, place in self.patterns.items():
            own, joint, weight = self.own_columns(r)
            # Sums carry a power of two; the fitted cells, all in one unit, do not.
            unit = math.ldexp(1.0, self.exponent - self.seen[r].exponent)
            for start, observed, values in self._cells(r, own):
                i, j = np.nonzero(observed)
                patterns.append(i + (place.start + start))
                cols.append(joint[j])
                sums.append(values[i, j] * weight[j])
                weights.append(weight[j] * unit)
                if ((sums[-1] == 0.0) & (values[i, j] > 0.0)).any():
                    raise NotRepresentableError(TOO_FAR_APART)
        return _pairs_of(
            np.concatenate(patterns),
            np.concatenate(cols),
            np.concatenate(sums),
            None if self.is_plain else np.concatenate(weights),
            (self.n_patterns, self.n_cols),
        )

    def _cells(self, r: int, own: Ints) -> list[tuple[int, Bools, Floats]]:
        """First pattern, observed cells and sums of the patterns of a row set."""
        statistics = statistics_of(self.seen[r])
        if isinstance(statistics, PatternStatistics):
            observed = statistics.observed_lines(slice(0, statistics.n_lines))
            return [(0, observed[:, own], statistics.sums[:, own])]
        scale = math.ldexp(1.0, -self.seen[r].exponent)
        sources = [t.source for t in self.layout.of_rows(r) if not t.is_passive]
        step = max(1, (1 << 20) // len(own))
        found = []
        for start in range(0, self.seen[r].n_rows, step):
            rows = slice(start, min(start + step, self.seen[r].n_rows))
            piece = np.hstack([source.rows(rows) for source in sources])
            found.append((start, ~np.isnan(piece), piece * scale))
        return found


def _stacked_masks(masks: list[MaskStatistics]) -> MaskStatistics:
    """Put masks of the same columns one below the other."""
    positive = None
    if any(mask.has_zeros for mask in masks):
        positive = np.concatenate([mask.bit_cells()[1] for mask in masks])
    return MaskStatistics(
        np.concatenate([mask.bits for mask in masks]),
        positive,
        np.concatenate([mask.row_sums for mask in masks]),
        np.sum([mask.col_sums for mask in masks], axis=0),
    )


def _pairs_of(
    patterns: Ints,
    cols: Ints,
    sums: Floats,
    weights: Floats | None,
    shape: tuple[int, int],
) -> PairStatistics:
    """Sort the pairs; cells of parallel tables become one."""
    cell = patterns * shape[1] + cols
    order = np.argsort(cell, kind="stable")
    cell, sums = cell[order], sums[order]
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    patterns, cols = np.divmod(cell[first], shape[1])
    counts = np.bincount(patterns, minlength=shape[0])
    return PairStatistics(
        np.concatenate(([0], np.cumsum(counts))),
        cols.astype(np.int32),
        np.add.reduceat(sums, first),
        None if weights is None else np.add.reduceat(weights[order], first),
        shape[1],
    )


def join(layout: Layout, seen: list[Observation]) -> JointTable:
    """Lay the observed tables out as one, with their weights."""
    n_patterns = [found.statistics.n_lines for found in seen]
    sizes = [entities.size for entities in layout.col_sets]
    split = layout.split_weights()
    ones = np.ones(len(layout.row_sets)), np.ones(len(layout.col_sets))
    row_weight, col_weight = ones if split is None else split
    patterns = _places(layout, layout.row_sets, n_patterns)
    return JointTable(
        layout,
        seen,
        patterns,
        _places(layout, layout.col_sets, sizes),
        row_weight,
        col_weight,
        exponent=common_exponent(layout, seen, list(patterns)),
        is_plain=split is not None,
    )


def _places(
    layout: Layout, sets: tuple[EntitySet, ...], sizes: list[int]
) -> dict[int, slice]:
    """Where the sets that take part lie, one after the other."""
    places, start = {}, 0
    for k, entities in enumerate(sets):
        if not layout.is_passive_set(entities):
            places[k] = slice(start, start + sizes[k])
            start += sizes[k]
    return places
