"""Statistics of a long table, gathered block by block in bounded memory.

As long as the rows have few patterns, a table of patterns is kept and each row is
remembered by its sum and the number of its pattern. When the patterns would need more
memory than allowed, the mask of every row goes to a file instead, one bit a cell.
"""

from __future__ import annotations

import shutil
import tempfile
from typing import Any

import numpy as np

from a1gm._base.bits import pack_bits, unpack_bits
from a1gm._sources import Source
from a1gm._result.mask_fit import fit_masks
from a1gm._sources.names import Names
from a1gm._observe.one_pass import Observation, observe
from a1gm._observe.sums import PatternSums
from a1gm._api.pattern_table import DEFAULT_MAX_BYTES, PatternTable
from a1gm._observe.row_log import LineLog, MaskLog
from a1gm._observe.statistics import TableStatistics, WideStatistics
from a1gm._base.types import Negatives, OnUndetermined, Words
from a1gm.exceptions import TableTooLargeError
from a1gm._result.fit import RankOneFit

__all__ = ["Gatherer"]

TABLE_BYTES = 1 << 26  # larger tables of patterns give way to masks in a file
_ALL = b"all rows"


class Gatherer:
    """Adds blocks of rows, and fits them all.

    Parameters
    ----------
    n_cols : int
        Columns of the table.
    table_bytes : int
        The most memory for a table of patterns.
    negatives : {"raise", "allow"}
        What to do with cells below zero. Where they are allowed, rows must share
        patterns: masks say nothing of the signs.
    n_threads : int, optional
        Threads per block.
    """

    def __init__(
        self,
        n_cols: int,
        *,
        table_bytes: int = TABLE_BYTES,
        negatives: Negatives = "raise",
        n_threads: int | None = None,
    ) -> None:
        self.n_cols = n_cols
        self._threads = n_threads
        self._negatives: Negatives = negatives
        self._table = PatternTable(
            n_cols,
            keep_rows=False,
            negatives=negatives,
            max_bytes=table_bytes if negatives == "raise" else DEFAULT_MAX_BYTES,
            n_threads=n_threads,
        )
        self._lines = LineLog()
        self._masks: MaskLog | None = None
        self._sums = PatternSums(n_cols)
        self._seen_words = np.zeros(-(-n_cols // 64), np.uint64)

    @property
    def n_rows(self) -> int:
        """Rows so far."""
        return self._lines.n_rows if self._masks is None else self._masks.n_rows

    @property
    def n_patterns(self) -> int:
        """Patterns in memory so far; 0 once they gave way to masks."""
        return self._table.n_patterns

    def add(self, source: Source, n_rows_expected: int | None = None) -> None:
        """Add a block of rows."""
        in_table = self._masks is None
        seen = observe(
            source,
            n_threads=self._threads,
            negatives=self._negatives,
            keep_table=in_table,
        )
        if self._masks is None:
            try:
                lines = self._table.add_observation(seen, self.n_rows)
            except TableTooLargeError:
                if self._negatives == "allow":
                    raise
                self._check_disk(n_rows_expected)
                self._change_to_masks()
            else:
                self._lines.append(seen.row_sums, lines, seen.exponent)
                return
        self._add_masks(seen)

    def fit(
        self,
        *,
        tol: float,
        max_iter: int,
        on_undetermined: OnUndetermined,
        col_labels: Any,
        names: Names | None = None,
        source: Any = None,
    ) -> RankOneFit:
        """Fit the rows gathered.

        ``names`` is what warnings call them, ``source`` reads them again.
        """
        del source  # fit_file sets its files on the fit, until fits keep a source
        if self._masks is None:
            self._table._col_labels = col_labels
            return self._table.solve_with_rows(
                self._lines,
                tol=tol,
                max_iter=max_iter,
                on_undetermined=on_undetermined,
                names=names,
            )
        factor = self._sums.align(self._masks.exponent)
        return fit_masks(
            self._masks,
            (self._sums.hi[0] + self._sums.lo[0]) * factor,
            unpack_bits(self._seen_words[None], self.n_cols)[0],
            tol=tol,
            max_iter=max_iter,
            on_undetermined=on_undetermined,
            col_labels=col_labels,
            names=names,
        )

    def _add_masks(self, seen: Observation) -> None:
        assert self._masks is not None
        statistics = seen.statistics
        if isinstance(statistics, WideStatistics):
            bits, positive = statistics.bits, statistics.positive
        else:
            assert isinstance(statistics, TableStatistics)
            assert seen.line_of_row is not None
            above = pack_bits(statistics.sums > 0.0)
            bits = statistics.keys[seen.line_of_row]
            positive = _positive_rows(bits, above[seen.line_of_row], seen.row_sums == 0)
        self._add_col_sums(statistics.col_sums[None], len(bits), seen.exponent)
        self._note_columns(bits)
        self._masks.append(seen.row_sums, bits, positive, seen.exponent)

    def _change_to_masks(self) -> None:
        """Write down the masks of all rows so far, and forget the patterns."""
        self._masks = MaskLog(self.n_cols)
        table = self._table._sums
        if table is None:
            return
        above = pack_bits(table.hi > 0.0)
        keys = table.key_words
        for _, sums, lines, exponent in self._lines.blocks():
            bits = keys[lines]
            positive = _positive_rows(bits, above[lines], sums == 0.0)
            self._masks.append(sums, bits, positive, exponent)
        self._note_columns(keys)
        total = (table.hi + table.lo).sum(axis=0, keepdims=True)
        self._add_col_sums(total, self.n_rows, table.exponent)
        self._lines, self._table = LineLog(), PatternTable(self.n_cols)

    def _add_col_sums(self, sums: Any, n_rows: int, exponent: int) -> None:
        place = self._sums.places([_ALL])
        factor = self._sums.align(exponent)
        count = np.array([n_rows])
        self._sums.add(place, sums * factor, count, np.zeros(1, np.int64))

    def _note_columns(self, bits: Words) -> None:
        self._seen_words |= np.bitwise_or.reduce(bits, axis=0)

    def _check_disk(self, n_rows: int | None) -> None:
        """Refuse before writing when the masks of all rows would not fit."""
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


def _positive_rows(bits: Words, above: Words, is_zero: Any) -> Words | None:
    """Positive cells of rows known by their pattern: twins share a component."""
    positive = np.where(is_zero[:, None], np.uint64(0), above)
    return None if np.array_equal(positive, bits) else positive
