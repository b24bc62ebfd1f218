"""Lines of tables side by side: what they observe, and two sums of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from a1gm._base.bits import pack_bits, unpack_bits
from a1gm._observe.statistics import TableStatistics, WideStatistics
from a1gm._base.types import Bools, Floats, Words

__all__ = ["KeptLines", "first_columns", "join_lines", "lines_of"]


@dataclass(frozen=True, slots=True)
class KeptLines:
    """Rows, or patterns of rows, of X and Z side by side.

    Columns of ``sums`` are the sums over X and over Z; ``col_sums`` are over all lines.
    """

    bits: Words
    positive: Words  # which observed cells, or sums of cells, are above 0
    sums: Floats  # lines x 2
    col_sums: Floats

    @classmethod
    def of_cells(cls, bits: Words, sums: Floats, n_cols: int) -> KeptLines:
        """Lines whose cells are known, the first ``n_cols`` columns those of X."""
        return cls(
            bits,
            pack_bits(sums > 0.0),
            np.stack([sums[:, :n_cols].sum(axis=1), sums[:, n_cols:].sum(axis=1)], 1),
            sums.sum(axis=0),
        )

    def has_observed(self) -> tuple[Bools, Bools]:
        """Lines and columns with at least one observed cell."""
        union: Words = np.bitwise_or.reduce(self.bits, axis=0)
        lines: Bools = np.asarray(self.bits.any(axis=1))
        return lines, unpack_bits(union[None], len(self.col_sums))[0]

    def widened(self, n_cols: int) -> KeptLines:
        """Return the same lines with columns of nothing after the last."""
        n_words = -(-n_cols // 64) - self.bits.shape[1]
        room = ((0, 0), (0, n_words))
        missing = (0, n_cols - len(self.col_sums))
        return KeptLines(
            np.pad(self.bits, room),
            np.pad(self.positive, room),
            self.sums,
            np.pad(self.col_sums, missing),
        )


def lines_of(
    statistics: TableStatistics | WideStatistics, row_sums: Floats, n_cols: int
) -> KeptLines:
    """Lines of observed tables; ``row_sums`` has one line for X, and one for Z."""
    if isinstance(statistics, TableStatistics):
        return KeptLines.of_cells(statistics.keys, statistics.sums, n_cols)
    sums = np.zeros((statistics.n_lines, 2))
    sums[:, : len(row_sums)] = row_sums.T
    positive = statistics.bits if statistics.positive is None else statistics.positive
    return KeptLines(statistics.bits, positive, sums, statistics.col_sums)


def join_lines(some: Sequence[KeptLines]) -> KeptLines:
    """Put lines of the same columns one below the other."""
    bits = np.concatenate([lines.bits for lines in some])
    no_zero = all(
        lines.positive is lines.bits or np.array_equal(lines.positive, lines.bits)
        for lines in some
    )
    return KeptLines(
        bits,
        bits if no_zero else np.concatenate([lines.positive for lines in some]),
        np.concatenate([lines.sums for lines in some]),
        np.sum([lines.col_sums for lines in some], axis=0),
    )


def first_columns(bits: Words, n_cols: int) -> Words:
    """Bits of the first columns only."""
    words = bits[:, : -(-n_cols // 64)].copy()
    if n_cols % 64:
        words[:, -1] &= np.uint64((1 << n_cols % 64) - 1)
    return words
