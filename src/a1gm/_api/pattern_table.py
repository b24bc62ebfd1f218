"""The statistics of a table that is read in pieces."""

from __future__ import annotations

import copy
import io
import os
import threading
from collections.abc import Hashable
from functools import partial
from typing import Any

from a1gm._api.fit import (
    DEFAULT_MAX_ITER,
    FitOptions,
    fit_patterns,
    is_positive,
)
from a1gm._base.bits import names_of_rows
from a1gm._base.checks import is_count, need
from a1gm._base.types import AnyArray, Negatives, OnUndetermined
from a1gm._base.version import __version__
from a1gm._base.words import counted, shown
from a1gm._fit.fit import RankOneFit
from a1gm._observe.accumulate import Accumulator, bytes_needed
from a1gm._observe.codec import (
    from_arrays,
    labels_from_json,
    labels_to_json,
    read_archive,
    to_arrays,
    write_archive,
)
from a1gm._observe.observe import observe
from a1gm._observe.patterns import Patterns
from a1gm._rows.columns import ColumnOptions, columns_like
from a1gm._rows.labels import check_same_labels
from a1gm._rows.read import read_input
from a1gm.exceptions import (
    DataError,
    FileFormatError,
    ParameterError,
    TableTooLargeError,
)

DEFAULT_MAX_BYTES = 1 << 32
KIND = "PatternTable"
_need = partial(need, "a pattern table")


class PatternTable:
    """The statistics of a table that is read in pieces, each some of its rows.

    The table is a set of pieces: ``update`` adds one, ``merge`` takes the union with
    another table, so the order and the way of cutting the rows do not matter, and a
    piece that arrives twice counts once. ``to_bytes`` and ``from_bytes`` carry tables
    between processes and machines. One table may be used by several threads at once:
    pieces are read side by side and added one after the other. Rows then come in the
    order in which their pieces were added.

    Parameters
    ----------
    n_columns : int, optional
        Number of columns; by default that of the first piece.
    id, columns, exclude : name or list of names, optional
        As in ``a1gm.fit``, for the first piece that is a frame; further pieces are read
        by its columns.
    keep_rows : bool, default=True
        Keep the sum and the pattern of each row (12 bytes a row), so that ``solve``
        can give the row factors. Without them ``fit.transform(rows)`` gives the row
        factors of any rows.
    negatives : {"raise", "allow"}, default="raise"
        What to do with cells below zero.
    max_bytes : int, default=2**32
        Refuse to grow past this size; it is estimated before each growth.
    n_threads : int, optional
        Threads per piece; the cores available by default.
    uncertainty : bool, default=False
        Keep the sums of the scatter of the cells, which ``fit.uncertainty()`` and
        ``fit.divergence`` need; each piece is read twice.

    Examples
    --------
    >>> import numpy as np, a1gm
    >>> X = np.array([[1.0, 2.0], [2.0, np.nan], [3.0, 6.0]])
    >>> table = a1gm.PatternTable()
    >>> for row in X:
    ...     _ = table.update(row[None, :])
    >>> bool(np.allclose(table.solve().col_factor, a1gm.fit(X).col_factor))
    True
    """

    def __init__(
        self,
        n_columns: int | None = None,
        *,
        id: Any = None,
        columns: Any = None,
        exclude: Any = None,
        keep_rows: bool = True,
        negatives: Negatives = "raise",
        max_bytes: int = DEFAULT_MAX_BYTES,
        n_threads: int | None = None,
        uncertainty: bool = False,
    ) -> None:
        FitOptions(negatives=negatives, n_threads=n_threads)  # refuses wrong values
        if not is_positive(max_bytes):
            raise ParameterError(
                f"max_bytes must be a positive number, got {max_bytes!r}."
            )
        self.keep_rows = keep_rows
        self.negatives = negatives
        self.max_bytes = max_bytes
        self.n_threads = n_threads
        self.uncertainty = uncertainty
        self.n_rows = 0
        self.n_columns = n_columns
        self._pieces: set[Hashable] = set()
        self._sums: Accumulator | None = None
        self._col_labels: Any = None
        self._asked = ColumnOptions(id, columns, exclude)  # of the first frame
        self._choice: Any = None  # of its columns
        self._lock = threading.RLock()  # held wherever the statistics are used

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            held = {"_pieces": set(self._pieces), "_sums": copy.deepcopy(self._sums)}
            state = self.__dict__ | held
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._lock = threading.RLock()

    @property
    def pieces(self) -> frozenset[Hashable]:
        """Keys of the pieces counted so far."""
        with self._lock:
            return frozenset(self._pieces)

    @property
    def n_patterns(self) -> int:
        """Distinct row patterns so far."""
        return 0 if self._sums is None else len(self._sums)

    @property
    def nbytes(self) -> int:
        """Estimated memory of the table, with the rows it keeps."""
        with self._lock:
            width = self.n_columns or 0
            return self._bytes_needed(self.n_patterns, width, self.n_rows)

    def __repr__(self) -> str:
        n = self.n_columns
        columns = "? columns" if n is None else counted(n, "column")
        return (
            f"PatternTable({counted(self.n_rows, 'row')} x {columns} in "
            f"{counted(len(self._pieces), 'piece')}, "
            f"{counted(self.n_patterns, 'pattern')})"
        )

    def update(self, piece: Any, key: Hashable = None) -> PatternTable:
        """Add a piece of rows; nothing changes when the piece is refused.

        Parameters
        ----------
        piece : table
            Rows with the same columns as before.
        key : hashable, optional
            Name of the piece. A piece with a known name is skipped.

        Returns
        -------
        PatternTable
            This table.
        """
        columns = self._asked
        if self._col_labels is not None:
            columns = columns_like(self._choice, self._col_labels)
        return self._add_rows(read_input(piece, columns=columns), key)

    def _add_rows(
        self, source: Any, key: Hashable = None, row_offset: int | None = None
    ) -> PatternTable:
        """Add rows that were read; messages count rows from ``row_offset``."""
        with self._lock:
            if key is not None and key in self._pieces:
                return self
            self._check_columns(source.n_cols, source.col_labels)
            offset = self.n_rows if row_offset is None else row_offset
        # Without the lock: other threads may read other pieces meanwhile.
        seen = observe(
            source,
            n_threads=self.n_threads,
            negatives=self.negatives,
            keep_table=True,
            row_offset=offset,
            scatter=self.uncertainty,
        )
        with self._lock:
            if key is None or key not in self._pieces:  # nor has another thread
                # A piece without a key gets one that no other piece anywhere has.
                key = os.urandom(16).hex() if key is None else key
                self._add(seen, source.col_labels, {key})
                self._choice = self._choice or getattr(source, "choice", None)
        return self

    def _add(
        self,
        new: Patterns,
        col_labels: Any,
        pieces: set[Hashable],
        *,
        replace: bool = False,
    ) -> None:
        """Add the patterns of some pieces if they fit; ``replace`` drops the others."""
        self._check_columns(new.n_cols, col_labels)
        names = names_of_rows(new.keys)
        sums, before = self._sums, self.n_rows
        if sums is None or replace:
            sums, before = self._without_rows(new.n_cols), 0
        n_patterns, n_rows = len(sums) + sums.count_new(names), before + new.n_rows
        need = self._bytes_needed(n_patterns, new.n_cols, n_rows)
        if need > self.max_bytes:
            drop = ", or pass keep_rows=False" if self.keep_rows else ""
            raise TableTooLargeError(
                f"The pattern table would need {need:,} bytes for "
                f"{counted(n_patterns, 'pattern')} of {counted(new.n_cols, 'column')} "
                f"in {counted(n_rows, 'row')}, more than max_bytes={self.max_bytes:,}. "
                f"Raise max_bytes, leave out columns{drop}; or use a1gm.fit (in "
                "memory) or a1gm.fit_file (from files), which need no sum per pattern."
            )
        sums.add(new, names)
        if self._col_labels is None:
            self._col_labels = col_labels
        self._sums, self.n_columns, self.n_rows = sums, new.n_cols, n_rows
        self._pieces |= pieces

    def _without_rows(self, n_cols: int) -> Accumulator:
        rows = "memory" if self.keep_rows else None
        return Accumulator(n_cols, scatter=self.uncertainty, rows=rows)

    def _bytes_needed(self, n_patterns: int, n_cols: int, n_rows: int) -> int:
        kept = 12 * n_rows if self.keep_rows else 0
        return bytes_needed(n_patterns, n_cols, scatter=self.uncertainty) + kept

    def _check_columns(self, n_cols: int, labels: Any) -> None:
        if self.n_columns is None:
            return
        if n_cols != self.n_columns:
            raise DataError(
                f"This piece has {counted(n_cols, 'column')}, the table has "
                f"{self.n_columns}. Every piece must have the same columns."
            )
        check_same_labels("column", labels, self._col_labels, "this piece", "the table")

    def merge(self, other: PatternTable) -> PatternTable:
        """Take the union with another table, in place.

        Pieces are identified by their keys: those in both tables count once.

        Parameters
        ----------
        other : PatternTable
            A table with the same columns, made with the same ``uncertainty``; a new
            table takes over the other's.

        Returns
        -------
        PatternTable
            This table.
        """
        if not isinstance(other, PatternTable):
            raise ParameterError(
                f"merge takes a PatternTable, got {type(other).__name__}. "
                "update(piece) adds rows."
            )
        # Always in the same order: two threads may merge two tables both ways.
        first, second = sorted((self, other), key=id)
        with first._lock, second._lock:
            self._merge(other)
        return self

    def _merge(self, other: PatternTable) -> None:
        if other._pieces <= self._pieces:
            return
        if other._sums is None:  # pieces without rows
            self._pieces |= other._pieces
            return
        new = other._sums.in_parts()
        if new.n_negative and self.negatives == "raise":
            raise DataError(
                'The other table has negative cells; this one needs negatives="allow".'
            )
        self._check_columns(new.n_cols, other._col_labels)
        is_new = self._sums is None and not self.uncertainty
        if self.uncertainty != other.uncertainty and not is_new:
            raise ParameterError(
                "Only one of the two tables was made with uncertainty=True, so the "
                "errors of both together cannot be known. Make both with it, or both "
                "without it."
            )
        is_inside = self._pieces <= other._pieces
        if self._pieces & other._pieces and not is_inside:
            raise DataError(
                "The two tables share some of their pieces but neither holds all of "
                "the other's, so the shared ones cannot be counted once. Merge tables "
                "of separate pieces, or whole unions of them."
            )
        self.uncertainty = other.uncertainty
        if not other.keep_rows:
            self.keep_rows = False
            if self._sums is not None:
                self._sums.forget_rows()
        self._add(new, other._col_labels, other._pieces, replace=is_inside)
        self._choice = self._choice or other._choice

    def solve(
        self,
        *,
        tol: float | None = None,
        max_iter: int = DEFAULT_MAX_ITER,
        on_undetermined: OnUndetermined = "warn",
    ) -> RankOneFit:
        """Fit the rows seen so far.

        Parameters
        ----------
        tol, max_iter, on_undetermined
            As in ``a1gm.fit``.

        Returns
        -------
        RankOneFit
            The same factors as ``a1gm.fit`` of all rows in one piece.
        """
        return self._solve(
            FitOptions(self.negatives, on_undetermined, tol, max_iter, self.n_threads)
        )

    def _solve(self, options: FitOptions, **more: Any) -> RankOneFit:
        """Fit the rows; ``more`` is for `fit_patterns`."""
        with self._lock:  # what is read is copied: other threads may go on meanwhile
            if self._sums is None:
                raise ParameterError(
                    "The table has no rows yet: call update(piece) before solve()."
                )
            seen = self._sums.patterns()
            if seen.sum_of_row is not None and seen.pattern_of_row is not None:
                seen.sum_of_row = seen.sum_of_row.copy()
                seen.pattern_of_row = seen.pattern_of_row.copy()
        return fit_patterns(seen, options, col_labels=self._col_labels, **more)

    # ------------------------------------------------------------------------ bytes
    def to_bytes(self) -> bytes:
        """Write the table down, to be read by ``from_bytes`` anywhere.

        Keys of pieces must be numbers, texts or tuples of them.

        Returns
        -------
        bytes
            A versioned format with checksums; no pickle.

        Examples
        --------
        >>> import numpy as np, a1gm
        >>> table = a1gm.PatternTable().update(np.array([[1.0, 2.0]]), key="part 0")
        >>> a1gm.PatternTable.from_bytes(table.to_bytes())
        PatternTable(1 row x 2 columns in 1 piece, 1 pattern)
        """
        with self._lock:
            content: dict[str, Any] = {
                "n_columns": self.n_columns,
                "n_rows": self.n_rows,
                "keep_rows": self.keep_rows,
                "uncertainty": self.uncertainty,
                "negatives": self.negatives,
                "labels": labels_to_json(self._col_labels),
                "pieces": list(self._pieces),
            }
            arrays: dict[str, AnyArray] = {}
            if self._sums is not None:
                parts = self._sums.in_parts()
                content["patterns"] = to_arrays("patterns", parts, arrays)
            file = io.BytesIO()
            try:
                write_archive(file, KIND, content, arrays, version=__version__)
            except TypeError as error:
                raise ParameterError(
                    f"A key of a piece cannot be written ({error}). Use numbers, texts "
                    "or tuples of them as keys."
                ) from error
        return file.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> PatternTable:
        """Read a table that ``to_bytes`` wrote.

        Parameters
        ----------
        data : bytes
            Nothing in it is executed; everything is checked before it is used.

        Returns
        -------
        PatternTable

        Raises
        ------
        FileFormatError
            The bytes are damaged, of something else, or of another release.
        ParameterError
            ``data`` is not bytes.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise ParameterError(
                "from_bytes takes bytes, as to_bytes gives them; this is a "
                f"{type(data).__name__}."
            )
        try:
            with read_archive(io.BytesIO(data), len(data), KIND) as (content, arrays):
                return cls._from_parts(content, arrays)
        except FileFormatError as error:
            raise FileFormatError(
                "These bytes are refused: they are not those of a pattern table, or "
                f"{shown(error)}. Write them again with to_bytes."
            ) from error

    @classmethod
    def _from_parts(
        cls, content: dict[str, Any], arrays: dict[str, AnyArray]
    ) -> PatternTable:
        n_columns, n_rows = content["n_columns"], content["n_rows"]
        names = "keep_rows", "uncertainty", "negatives"
        how = {name: content[name] for name in names}
        _need(n_columns is None or is_count(n_columns, 1, 2**31), "n_columns")
        for name in names[:2]:
            _need(isinstance(how[name], bool), name)
        _need(isinstance(content["pieces"], list), "pieces")
        _need(n_columns is not None or content["labels"] is None, "labels")
        table = cls(n_columns, **how)  # refuses other values of negatives
        table._pieces = {_key_from_json(key) for key in content["pieces"]}
        labels = content["labels"]
        table._col_labels = labels_from_json(labels, n_columns or 0, unique=True)
        if not arrays:
            _need(n_rows == 0, "n_rows")
            return table
        new = from_arrays("patterns", Patterns, content, arrays)
        signed = type(new.n_negative) is int and new.n_negative > 0
        _need(how["negatives"] == "allow" or not signed, "n_negative")
        new.check(signed=signed)
        _need(new.is_table and new.n_cols == n_columns, "n_columns")
        _need(new.zero_counts is not None and new.n_rows == n_rows, "n_rows")
        _need(new.weights is None and new.low is not None, "low")
        has_rows = new.sum_of_row is not None and new.pattern_of_row is not None
        _need(has_rows == how["keep_rows"], "keep_rows")
        table._sums, table.n_rows = table._without_rows(new.n_cols), new.n_rows
        table._sums.add(new)
        return table


def _key_from_json(key: Any) -> Hashable:
    return tuple(map(_key_from_json, key)) if isinstance(key, list) else key
