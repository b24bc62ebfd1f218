"""The one accumulator: the patterns of pieces of rows are added as they come."""

from __future__ import annotations

import tempfile
import weakref
from typing import Any, Literal

import numpy as np

from a1gm._base.bits import names_of_rows, pack_bits
from a1gm._base.types import AnyArray
from a1gm._kernel import kernel
from a1gm._observe.patterns import Patterns
from a1gm.exceptions import Option, OutputError, TableTooLargeError

KEY_OVERHEAD = 160  # a key is a Python bytes object and an entry of a dictionary
TABLE_BYTES = 1 << 26  # above it the bits of every row replace the table of patterns
SIGNED_BYTES = 1 << 32  # bits have no signs: patterns are kept up to this
ROWS_AT_ONCE = 1 << 16


def bytes_needed(n_patterns: int, n_cols: int, *, scatter: bool = False) -> int:
    """Estimate the memory of the sums of ``n_patterns`` patterns."""
    words = -(-n_cols // 64)
    need = n_patterns * (16 * n_cols + 8 * words + 16 + KEY_OVERHEAD)
    return 2 * need if scatter else need


class RowArray:
    """One record per row, appended: in memory, or in a file that has no name.

    Not even a killed process leaves the file behind, where the system allows that. Its
    array is a memory map. ``room`` is for so many records, where that is known.
    """

    def __init__(
        self, dtype: str, width: tuple[int, ...] = (), *, in_file: bool, room: int = 0
    ) -> None:
        self.n, self._width, self._dtype = 0, width, np.dtype(dtype)
        self._file = tempfile.TemporaryFile() if in_file else None  # noqa: SIM115
        if self._file is not None:
            weakref.finalize(self, self._file.close)
        self._held: AnyArray = np.empty((room, *width), self._dtype)

    def append(self, values: AnyArray) -> None:
        """Add the records of some rows."""
        first, self.n = self.n, self.n + len(values)
        if self._file is None:
            if self.n > len(self._held):  # twice as many: pieces may be small
                more = max(self.n, 2 * len(self._held))
                grown = np.empty((more, *self._width), self._dtype)
                grown[:first] = self._held[:first]
                self._held = grown
            self._held[first : self.n] = values
            return
        try:
            self._file.write(np.ascontiguousarray(values, self._dtype).data)
            self._file.flush()
        except OSError as error:
            raise OutputError(
                "The temporary file that remembers the rows cannot grow in "
                f"{tempfile.gettempdir()}: {error.strerror}. Set TMPDIR to a place "
                "with more room.",
                errno=error.errno,
            ) from error

    def array(self) -> AnyArray:
        """Return all records; those of a file are mapped, not read."""
        if self._file is None or not self.n:
            return self._held[: self.n]
        shape = (self.n, *self._width)
        mapped = np.memmap(self._file, self._dtype, "r+", shape=shape)
        return mapped.view(np.ndarray)

    def __getstate__(self) -> dict[str, Any]:
        held = self.array().copy()
        return self.__dict__ | {"_held": held, "_file": None}


class Accumulator:
    """Sums per pattern that grow as patterns appear.

    Sums are pairs ``hi + lo`` of floats, added with compensation, so that the order of
    the pieces leaves no trace in them; those of the scatter stand beside them, in as
    many columns more. Where patterns are too many, the bits of every row and the sums
    of the columns are kept instead.

    The scatter is kept unless a piece lacks it. ``rows`` is "memory" or "file", where
    the sum and the pattern of each row are kept, with ``room`` for some rows from the
    beginning; None keeps no rows but, where bits are, their sums and counts in a file.
    ``beyond`` is what to do where patterns need too much memory: nothing,
    keep the bits of the rows, which have no signs, or raise TableTooLargeError.
    """

    keeps_table = True  # whether patterns are kept so far

    def __init__(
        self,
        n_cols: int,
        *,
        scatter: bool = False,
        rows: str | None = None,
        room: int = 0,
        beyond: Literal["bits", "raise"] | None = None,
    ) -> None:
        self.n_cols, self.scatter = n_cols, scatter
        self.n_negative = 0
        self._index: dict[bytes, int] = {}
        self._hi = np.zeros((0, n_cols * (1 + scatter)))
        self._lo = np.zeros_like(self._hi)
        self._counts = np.zeros((2, 0), np.int64)  # rows, and those of sum 0
        self._logs = np.zeros((2, 2))  # hi and lo
        self.sums: RowArray | None = None
        self.pattern_of_row: RowArray | None = None
        self._beyond = beyond
        self._kept: Any = {"in_file": rows != "memory", "room": room}
        self._merged: RowArray | None = None  # rows, and those of sum 0, of each bits
        if rows is not None:
            self.sums = RowArray("f8", **self._kept)
            self.pattern_of_row = RowArray("i4", **self._kept)

    def __len__(self) -> int:
        return len(self._index)

    def count_new(self, keys: list[bytes]) -> int:
        """Number of the (distinct) keys that are not in the table."""
        return len(set(keys) - self._index.keys())

    def add(self, new: Patterns, names: list[bytes] | None = None) -> AnyArray:
        """Add the patterns of a piece; returns the pattern of each of its rows.

        ``names`` are those of its patterns, where they are known already.
        """
        if self._beyond is not None and not self._has_room(new):
            self._change_to_bits()
        if not self.keeps_table:
            self._append_bits(new)
            new, names = _total(new), [b""]
        if self.scatter and new.squares is None:
            self._forget_scatter()
        sums = new.sums if not self.scatter else np.hstack([new.sums, new.squares])
        index = self._index
        if names is None:
            names = names_of_rows(new.keys)
        places = np.array([index.setdefault(k, len(index)) for k in names], np.int64)
        self._reserve(len(index))
        own = slice(0, len(index))
        hi, lo, counts = self._hi[own], self._lo[own], self._counts[:, own]
        patterns, row_sums = new.pattern_of_row, new.sum_of_row
        if patterns is None or row_sums is None:
            patterns, row_sums = np.zeros(0, np.int32), np.zeros(0)
            counts[1][places] += new.zero_counts
        found: AnyArray = kernel.add_patterns(
            hi, lo, counts[0], counts[1], places, sums, new.counts, patterns, row_sums
        )
        if new.low is not None:
            lo[places, : self.n_cols] += new.low
        if self.scatter:
            self._add_logs(new)
        self.n_negative += new.n_negative
        if self.sums is not None:
            self.sums.append(row_sums)
        if self.pattern_of_row is not None:
            self.pattern_of_row.append(found)
        return found

    def forget_rows(self) -> None:
        """Keep the rows no longer."""
        self.sums = self.pattern_of_row = None

    def patterns(self) -> Patterns:
        """All pieces together, with the rows if they are kept."""
        m, n = self.n_cols, len(self)
        both = self._hi[:n] + self._lo[:n]
        found = Patterns(m, n_negative=self.n_negative)
        if self.sums is not None:
            found.sum_of_row = self.sums.array()
        if not self.keeps_table:
            found.keys = self._bits.array()
            found.positive = self._positive.array() if self._has_zeros else None
            found.row_margin, found.col_margin = found.sum_of_row, both[0]
            if self._merged is not None:
                found.sum_of_row = None
                found.counts, found.zero_counts = self._merged.array().T.copy()
            return found
        words = np.frombuffer(b"".join(self._index), np.uint64)
        found.keys, found.sums = words.reshape(n, -(-m // 64)), both
        found.counts, found.zero_counts = self._counts[:, :n].copy()
        if self.scatter:
            found.sums = np.ascontiguousarray(both[:, :m])
            found.squares = np.ascontiguousarray(both[:, m:])
            found.logs = self._logs.sum(axis=0)
        if self.pattern_of_row is not None:
            found.pattern_of_row = self.pattern_of_row.array()
        return found

    def in_parts(self) -> Patterns:
        """The same, with what rounding has left out of the sums apart."""
        found, n, m = self.patterns(), len(self), self.n_cols
        found.sums = np.ascontiguousarray(self._hi[:n, :m])
        found.low = np.ascontiguousarray(self._lo[:n, :m])
        return found

    # ------------------------------------------------------------------------- bits
    def _has_room(self, new: Patterns) -> bool:
        """Whether the patterns of a piece fit into the memory that is allowed."""
        if not new.is_table:
            return False
        n = len(self) + self.count_new(names_of_rows(new.keys))
        need = bytes_needed(n, self.n_cols, scatter=self.scatter)
        if self._beyond == "bits":
            return need <= TABLE_BYTES
        if need > SIGNED_BYTES:
            raise TableTooLargeError(
                "With ",
                Option("negatives", "allow"),
                " a sum per pattern of holes is kept, and these would need "
                f"{need:,} bytes. Leave out columns with ",
                Option("exclude"),
                ", or mark the negative cells as missing.",
            )
        return True

    def _change_to_bits(self) -> None:
        """Write down the bits of all rows so far, and forget the patterns."""
        words = (-(-self.n_cols // 64),)
        self._bits = RowArray("u8", words, **self._kept)
        self._positive = RowArray("u8", words, **self._kept)
        self._has_zeros = False
        self._forget_scatter()
        before = self.patterns() if len(self) else None
        if self.sums is None:
            self.sums = RowArray("f8", **self._kept)
            self._merged = RowArray("i8", (2,), **self._kept)
        if before is not None:
            self._append_bits(before)
            self._hi, self._lo = before.col_sums[None], np.zeros((1, self.n_cols))
            self._index, self._counts = {b"": 0}, np.zeros((2, 1), np.int64)
        self.keeps_table, self._beyond, self.pattern_of_row = False, None, None

    def _append_bits(self, new: Patterns) -> None:
        """Write down the observed and the positive bits of rows."""
        above = new.positive if new.is_mask else pack_bits(new.sums > 0.0)
        if new.sum_of_row is None and self.sums is not None:  # one for all its rows
            self._bits.append(new.keys)
            self._positive.append(above)
            self._has_zeros |= not np.array_equal(above, new.keys)
            self.sums.append(new.row_sums)
            if self._merged is not None:
                self._merged.append(np.stack([new.counts, new.zero_counts], axis=1))
            return
        if self._merged is not None:
            zeros = new.sum_of_row == 0.0
            self._merged.append(np.stack([np.ones_like(zeros), zeros], axis=1))
        for start in range(0, new.n_rows, ROWS_AT_ONCE):
            some = slice(start, start + ROWS_AT_ONCE)
            rows = some if new.is_mask else new.pattern_of_row[some]
            bits = new.keys[rows]
            positive = bits if above is None else above[rows]
            if not new.is_mask:  # a row of data counts as positive where its twins are
                is_zero = (new.sum_of_row[some] == 0.0)[:, None]
                positive = np.where(is_zero, np.uint64(0), positive)
            self._bits.append(bits)
            self._positive.append(positive)
            self._has_zeros |= not np.array_equal(positive, bits)

    # ------------------------------------------------------------------------- sums
    def _add_logs(self, new: Patterns) -> None:
        sums = new.logs
        total = self._logs[0] + sums
        part = total - self._logs[0]
        self._logs[1] += (self._logs[0] - (total - part)) + (sums - part)
        self._logs[0] = total

    def _forget_scatter(self) -> None:
        self.scatter = False
        self._hi, self._lo = self._hi[:, : self.n_cols], self._lo[:, : self.n_cols]
        self._hi, self._lo = self._hi.copy(), self._lo.copy()

    def _reserve(self, n: int) -> None:
        # Grow by half: patterns come a few at a time.
        have = len(self._hi)
        if n > have:
            grow = max(n, have * 3 // 2) - have
            more = np.zeros((grow, self._hi.shape[1]))
            self._hi = np.concatenate([self._hi, more])
            self._lo = np.concatenate([self._lo, more])
            none = np.zeros((2, grow), np.int64)
            self._counts = np.concatenate([self._counts, none], axis=1)


def _total(new: Patterns) -> Patterns:
    """Return all rows of a piece as one pattern."""
    n = new.n_rows
    all_rows = Patterns(new.n_cols)
    all_rows.sums, all_rows.counts = new.col_sums[None], np.array([n], np.int64)
    all_rows.sum_of_row, all_rows.n_negative = new.sum_of_row, new.n_negative
    all_rows.pattern_of_row = np.zeros(n, np.int32)
    return all_rows
