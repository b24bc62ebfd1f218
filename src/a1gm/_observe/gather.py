"""Statistics of a long table, gathered piece by piece in bounded memory.

As long as the rows have few patterns, a table of patterns is kept and each row is
remembered by its sum and the number of its pattern. When the patterns would need more
memory than allowed, the mask of every row goes to a file instead, one bit a cell.
"""

from __future__ import annotations

import shutil
import tempfile

import numpy as np

from a1gm._base.bits import names_of_rows, pack_bits, union, unpack_bits
from a1gm._base.float_range import shifted
from a1gm._base.types import Floats, Ints, Negatives, Words
from a1gm._observe.disk import DiskStatistics
from a1gm._observe.observation import Observation
from a1gm._observe.observe import observe
from a1gm._observe.row_log import LineLog, MaskLog
from a1gm._observe.statistics import MaskStatistics, PatternStatistics
from a1gm._observe.sums import ALL_ROWS, PatternSums, bytes_needed
from a1gm._rows.rows import Rows
from a1gm.exceptions import Option, TableTooLargeError

TABLE_BYTES = 1 << 26  # above it masks in a file replace the table of patterns
SIGNED_BYTES = 1 << 32  # masks do not know signs: patterns are kept up to this


class Gatherer:
    """Adds pieces of rows, and keeps what a fit needs of them.

    Parameters
    ----------
    n_cols : int
        Columns of the table.
    negatives : {"raise", "allow"}
        What to do with cells below zero. Where they are allowed, patterns are kept
        however many there are: a mask does not know the signs.
    n_threads : int, optional
        Threads per piece.
    uncertainty : bool
        Keep the sums that the scatter of the cells needs; not once masks are kept.
    """

    def __init__(
        self,
        n_cols: int,
        *,
        negatives: Negatives = "raise",
        n_threads: int | None = None,
        uncertainty: bool = False,
    ) -> None:
        self.n_cols = n_cols
        self.n_negative = 0
        self.n_threads = n_threads
        self.negatives: Negatives = negatives
        self._patterns = PatternSums(n_cols, scatter=uncertainty)
        self._lines = LineLog()
        self._masks: MaskLog | None = None
        self._columns = PatternSums(n_cols)  # sums of the columns, once masks are kept
        self._seen_words = np.zeros(-(-n_cols // 64), np.uint64)

    @property
    def n_rows(self) -> int:
        """Rows so far."""
        return self._lines.n_rows if self._masks is None else self._masks.n_rows

    def add(self, source: Rows, n_rows_expected: int | None = None) -> None:
        """Add some rows."""
        seen = observe(
            source,
            n_threads=self.n_threads,
            negatives=self.negatives,
            keep_table=self._masks is None,
            scatter=self._patterns.squares is not None,
        )
        self.n_negative += seen.n_negative
        if self._masks is None and not self._has_room(seen):
            self._check_disk(n_rows_expected)
            self._change_to_masks()
        if self._masks is None:
            lines = self._patterns.add_observation(seen)
            self._lines.append(seen.row_sums, lines, seen.exponent)
        else:
            self._add_masks(self._masks, seen)

    @property
    def exponent(self) -> int:
        """Power of two by which the sums are divided."""
        masks = self._masks
        return self._patterns.exponent if masks is None else masks.exponent

    def col_sums(self) -> Floats:
        """Sums of the columns."""
        sums = self._patterns if self._masks is None else self._columns
        with np.errstate(over="ignore"):
            total: Floats = np.ldexp(sums.hi.sum(axis=0), sums.exponent)
        return total

    def patterns(self) -> tuple[PatternStatistics, LineLog, Ints] | None:
        """Statistics, the rows, and zero rows per pattern; None if masks are kept."""
        if self._masks is not None:
            return None
        zero_counts = self._patterns.zero_counts.copy()
        return self._patterns.statistics(), self._lines, zero_counts

    def masks(self) -> DiskStatistics:
        """The statistics of masks in a file."""
        assert self._masks is not None
        sums = self._columns.hi[0] + self._columns.lo[0]
        sums = shifted(sums, self._columns.exponent - self._masks.exponent)
        seen = unpack_bits(self._seen_words[None], self.n_cols)[0]
        return DiskStatistics(self._masks, sums, seen)

    # ------------------------------------------------------------------------ masks
    def _has_room(self, seen: Observation) -> bool:
        """Whether the patterns of a piece fit into the memory that is allowed."""
        table = seen.statistics
        assert isinstance(table, PatternStatistics)
        fresh = self._patterns.count_new(names_of_rows(table.keys))
        has_scatter = self._patterns.squares is not None
        n = len(self._patterns) + fresh
        need = bytes_needed(n, self.n_cols, scatter=has_scatter)
        if self.negatives == "raise":
            return need <= TABLE_BYTES
        if need > SIGNED_BYTES:
            raise TableTooLargeError(
                "With ",
                Option("negatives", "allow"),
                " a sum per pattern of holes is kept, and these would need "
                f"{need:,} bytes. Leave out columns, or mark the negative cells as "
                "missing.",
            )
        return True

    def _add_masks(self, masks: MaskLog, seen: Observation) -> None:
        statistics = seen.statistics
        if isinstance(statistics, MaskStatistics):
            bits, positive = statistics.bits, statistics.positive
        else:
            assert isinstance(statistics, PatternStatistics)
            assert seen.line_of_row is not None
            above = pack_bits(statistics.sums > 0.0)[seen.line_of_row]
            bits = statistics.keys[seen.line_of_row]
            positive = _positive_rows(bits, above, seen.row_sums)
        self._add_col_sums(statistics.col_sums[None], len(bits), seen.exponent)
        self._seen_words |= union(bits)
        masks.append(seen.row_sums, bits, positive, seen.exponent)

    def _change_to_masks(self) -> None:
        """Write down the masks of all rows so far, and forget the patterns."""
        self._masks, patterns = MaskLog(self.n_cols), self._patterns
        if not len(patterns):
            return
        above, keys = pack_bits(patterns.hi > 0.0), patterns.key_words
        for _, sums, lines, exponent in self._lines.pieces():
            bits = keys[lines]
            positive = _positive_rows(bits, above[lines], sums)
            self._masks.append(sums, bits, positive, exponent)
        self._seen_words |= union(keys)
        total = (patterns.hi + patterns.lo).sum(axis=0, keepdims=True)
        self._add_col_sums(total, self._masks.n_rows, patterns.exponent)
        self._lines, self._patterns = LineLog(), PatternSums(self.n_cols)

    def _add_col_sums(self, sums: Floats, n_rows: int, exponent: int) -> None:
        sums, count = self._columns.align(sums, exponent), np.array([n_rows])
        place = self._columns.places([ALL_ROWS])
        self._columns.add(place, sums, count, np.zeros(1, np.int64))

    def _check_disk(self, n_rows: int | None) -> None:
        """Raise before writing if the masks of all rows would not fit."""
        if n_rows is None:
            return
        need = n_rows * (8 + 16 * (-(-self.n_cols // 64)))
        free = shutil.disk_usage(tempfile.gettempdir()).free
        if need > free:
            raise TableTooLargeError(
                f"The rows have too many patterns of holes for a table of them, and "
                f"their masks need up to {need:,} bytes in {tempfile.gettempdir()}, "
                f"where {free:,} are free. Set TMPDIR to a place with more room, or "
                "leave out columns."
            )


def _positive_rows(bits: Words, above: Words, sums: Floats) -> Words | None:
    """Positive cells of rows known by their pattern: twins share a component."""
    positive = np.where((sums == 0.0)[:, None], np.uint64(0), above)
    return None if np.array_equal(positive, bits) else positive
