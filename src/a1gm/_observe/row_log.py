"""Rows that are too many for memory, kept in a file that leaves no trace.

Each row is remembered by its sum and either the number of its pattern or the pattern
itself. The file is nameless where the system allows it, so not even a killed process
leaves it behind.
"""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from a1gm._base.float_range import shifted
from a1gm._base.types import AnyArray, Floats, SmallInts, Words
from a1gm.exceptions import OutputError

ROWS_AT_ONCE = 1 << 16


@dataclass
class RecordFile:
    """Records of one type, appended and then read by number."""

    dtype: np.dtype[Any]
    n: int = 0
    _file: Any = field(default_factory=partial(tempfile.TemporaryFile, buffering=0))
    _lock: Any = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        weakref.finalize(self, self._file.close)

    def append(self, records: AnyArray) -> None:
        """Add records at the end."""
        data = memoryview(np.ascontiguousarray(records, self.dtype).tobytes())
        with self._lock:
            self._file.seek(self.n * self.dtype.itemsize)
            try:
                while data:
                    data = data[self._file.write(data) :]
            except OSError as error:
                raise OutputError(
                    "The temporary file that remembers the rows cannot grow in "
                    f"{tempfile.gettempdir()}: {error.strerror}. Set TMPDIR to a place "
                    "with more room.",
                    errno=error.errno,
                ) from error
            self.n += len(records)

    def read(self, start: int, stop: int) -> AnyArray:
        """Read the records of a range."""
        # Not a memory map: its pages would count as this process's memory.
        with self._lock:
            self._file.seek(start * self.dtype.itemsize)
            size = (stop - start) * self.dtype.itemsize
            data = b""
            while len(data) < size and (more := self._file.read(size - len(data))):
                data += more
        return np.frombuffer(data, self.dtype)

    def __getstate__(self) -> dict[str, Any]:
        return {"dtype": self.dtype, "records": self.read(0, self.n)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        RecordFile.__init__(self, state["dtype"])
        self.append(state["records"])


class _Log:
    """The sum of each row, with more fields; each piece at its own power of two."""

    def __init__(self, *fields: tuple[Any, ...]) -> None:
        self._records = RecordFile(np.dtype([("sum", "<f8"), *fields]))
        self._exponents: list[tuple[int, int]] = []  # each from its first row on

    @property
    def n_rows(self) -> int:
        """Rows so far."""
        return self._records.n

    def _append(self, exponent: int, **fields: AnyArray) -> None:
        if not self._exponents or self._exponents[-1][1] != exponent:
            self._exponents.append((self.n_rows, exponent))
        records = np.empty(len(fields["sum"]), self._records.dtype)
        for name, values in fields.items():
            records[name] = values
        self._records.append(records)

    def _read(self, start: int, stop: int, exponent: int) -> tuple[Floats, AnyArray]:
        """Sums of a range of rows on one power of two, and their records."""
        records = self._records.read(start, stop)
        sums: Floats = records["sum"].copy()
        if any(own != exponent for _, own in self._exponents):
            firsts, own = np.array(self._exponents).T
            place = np.searchsorted(firsts, np.arange(start, stop), side="right") - 1
            sums = shifted(sums, own[place] - exponent)
        return sums, records


class LineLog(_Log):
    """For each row its sum and the number of its pattern: 12 bytes."""

    def __init__(self) -> None:
        super().__init__(("line", "<i4"))

    def append(self, row_sums: Floats, lines: SmallInts, exponent: int) -> None:
        """Add some rows."""
        self._append(exponent, sum=row_sums, line=lines)

    def read(self, start: int, stop: int, exponent: int) -> tuple[Floats, SmallInts]:
        """Sums (times 2**-exponent) and pattern numbers of a range of rows."""
        sums, records = self._read(start, stop, exponent)
        return sums, records["line"].copy()

    def pieces(self) -> Iterator[tuple[int, Floats, SmallInts, int]]:
        """Yield (first row, sums, pattern numbers, exponent), some rows at a time."""
        ends = [first for first, _ in self._exponents[1:]] + [self.n_rows]
        for (first, exponent), end in zip(self._exponents, ends, strict=True):
            for start in range(first, end, ROWS_AT_ONCE):
                stop = min(start + ROWS_AT_ONCE, end)
                yield start, *self.read(start, stop, exponent), exponent


class MaskLog(_Log):
    """For each row its sum and its observed cells, one bit each.

    Which observed cells are positive is kept from the first row on that has a zero.
    """

    def __init__(self, n_cols: int) -> None:
        super().__init__(("bits", "<u8", (-(-n_cols // 64),)))
        self.n_cols = n_cols
        self._positive: RecordFile | None = None
        self._first_positive = 0
        self.exponent = 0

    @property
    def has_zeros(self) -> bool:
        """Whether some observed cell is zero."""
        return self._positive is not None

    def append(
        self, row_sums: Floats, bits: Words, positive: Words | None, exponent: int
    ) -> None:
        """Add some rows; ``positive`` is None when no observed cell is zero."""
        if positive is not None and self._positive is None:
            self._positive = RecordFile(np.dtype([("bits", "<u8", bits.shape[1:])]))
            self._first_positive = self.n_rows
        if self._positive is not None:
            marks = np.empty(len(bits), self._positive.dtype)
            marks["bits"] = bits if positive is None else positive
            self._positive.append(marks)
        self._append(exponent, sum=row_sums, bits=bits)
        self.exponent = max(e for _, e in self._exponents)

    def read(self, start: int, stop: int) -> tuple[Floats, Words, Words]:
        """Sums, observed bits and positive bits of a range of rows."""
        sums, records = self._read(start, stop, self.exponent)
        bits = np.ascontiguousarray(records["bits"])
        if self._positive is None or stop <= self._first_positive:
            return sums, bits, bits
        first = max(start, self._first_positive)
        known = self._positive.read(
            first - self._first_positive, stop - self._first_positive
        )
        positive = bits.copy()
        positive[first - start :] = known["bits"]
        return sums, bits, positive

    def pieces(self) -> Iterator[tuple[int, Floats, Words, Words]]:
        """Yield (first row, sums, observed bits, positive bits), piece by piece."""
        step = max(1, ROWS_AT_ONCE * 64 // max(self.n_cols, 64))
        for start in range(0, self.n_rows, step):
            yield start, *self.read(start, min(start + step, self.n_rows))
