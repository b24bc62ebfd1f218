"""The statistics of a table that is read in pieces."""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from a1gm._api.fit import fit_observation, fit_statistics
from a1gm._api.options import DEFAULT_MAX_ITER, DEFAULT_TOL, check_options
from a1gm._base.bits import names_of_rows
from a1gm._base.types import Negatives, OnUndetermined
from a1gm._base.words import counted
from a1gm._fit.fit import RankOneFit
from a1gm._fit.rows import GoneRows, RowStore
from a1gm._fit.table import Table
from a1gm._observe.codec import labels_to_json
from a1gm._observe.observation import Observation
from a1gm._observe.observe import observe
from a1gm._observe.statistics import PatternStatistics
from a1gm._observe.sums import PatternSums, Room, bytes_needed
from a1gm._observe.table_bytes import RowPieces, joined_rows, read_table, write_table
from a1gm._rows.frames import ColumnOptions
from a1gm._rows.labels import check_same_labels
from a1gm._rows.read import read_input
from a1gm._solve.dispatch import Solved
from a1gm.exceptions import (
    DataError,
    ParameterError,
    TableTooLargeError,
)

DEFAULT_MAX_BYTES = 1 << 32


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
        Number of columns; taken from the first piece when not given.
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
        Keep, beside the sums, what ``fit.uncertainty()`` and ``fit.divergence`` need of
        the scatter of the cells; it takes a second look at each piece.

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
        keep_rows: bool = True,
        negatives: Negatives = "raise",
        max_bytes: int = DEFAULT_MAX_BYTES,
        n_threads: int | None = None,
        uncertainty: bool = False,
    ) -> None:
        how: dict[str, Any] = {"n_threads": n_threads, "negatives": negatives}
        check_options(tol=DEFAULT_TOL, max_iter=DEFAULT_MAX_ITER, **how)
        self.keep_rows = keep_rows
        self.negatives = negatives
        self.max_bytes = max_bytes
        self.n_threads = n_threads
        self.uncertainty = uncertainty
        self.n_rows = 0
        self._n_columns = n_columns
        self._pieces: set[Hashable] = set()
        self._n_negative = 0
        self._sums: PatternSums | None = None
        self._rows: RowPieces = []
        self._room = Room()
        self._col_labels: Any = None
        self._lock = threading.RLock()  # held wherever the statistics are used

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            held = {"_pieces": set(self._pieces), "_rows": list(self._rows)}
            state = self.__dict__ | held | {"_sums": copy.deepcopy(self._sums)}
        del state["_lock"], state["_room"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._lock, self._room = threading.RLock(), Room()

    @property
    def n_columns(self) -> int | None:
        """Columns of the table; None before the first piece."""
        return self._n_columns

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
            width = self._n_columns or 0
            kept = sum(sums.nbytes + lines.nbytes for sums, lines, _ in self._rows)
            scatter = self.uncertainty
            return bytes_needed(self.n_patterns, width, scatter=scatter) + kept

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
            Name of the piece. A piece whose name is known already is skipped.

        Returns
        -------
        PatternTable
            This table.
        """
        columns = ColumnOptions(fitted=self._col_labels)
        return self.add_source(read_input(piece, columns=columns), key)

    def add_source(
        self, source: Any, key: Hashable = None, row_offset: int | None = None
    ) -> PatternTable:
        """Add rows that were read; ``row_offset`` is where messages count from."""
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
            self._add(seen, source.col_labels, key)
        return self

    def _add(self, seen: Observation, col_labels: Any, key: Hashable) -> None:
        """Count a piece that was read, unless another thread has counted it."""
        if key is not None and key in self._pieces:
            return
        table = seen.statistics
        assert isinstance(table, PatternStatistics)
        self._check_columns(table.n_cols, col_labels)
        names = names_of_rows(table.keys)
        sums = self._grown_for(names, table.n_cols, seen.n_rows)
        lines = sums.add_observation(seen, names)
        if self.keep_rows:
            row_sums = self._room.copy(seen.row_sums)
            self._rows.append((row_sums, lines, seen.exponent))
        if self._col_labels is None:
            self._col_labels = col_labels
        self.n_rows += seen.n_rows
        self._n_negative += seen.n_negative
        # A piece without a name gets one that no other piece of any machine has.
        self._pieces.add(os.urandom(16).hex() if key is None else key)

    def merge(self, other: PatternTable) -> PatternTable:
        """Take the union with another table, in place.

        Pieces are told apart by their keys: those that both tables hold count once.

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
        if other._n_negative and self.negatives == "raise":
            raise DataError(
                'The other table has negative cells; this one needs negatives="allow".'
            )
        self._check_columns(other._sums.n_cols, other._col_labels)
        is_new = self._sums is None and not self.uncertainty
        if self.uncertainty != other.uncertainty and not is_new:
            raise ParameterError(
                "Only one of the two tables was made with uncertainty=True, so the "
                "errors of both together cannot be known. Make both with it, or both "
                "without it."
            )
        if self._pieces <= other._pieces:
            self._become(other)
            return
        if self._pieces & other._pieces:
            raise DataError(
                "The two tables share some of their pieces but neither holds all of "
                "the other's, so the shared ones cannot be counted once. Merge tables "
                "of separate pieces, or whole unions of them."
            )
        keep = self.keep_rows and other.keep_rows
        sums = self._grown_for(
            other._sums.keys, other._sums.n_cols, other.n_rows if keep else 0
        )
        places = sums.add_all(other._sums).astype(np.int32)
        if keep:
            self._rows += [(r, places[lines], e) for r, lines, e in other._rows]
        else:
            self.keep_rows, self._rows = False, []
        self.n_rows += other.n_rows
        self._n_negative += other._n_negative
        self._pieces |= other._pieces
        if self._col_labels is None:
            self._col_labels = other._col_labels

    def skip(self, key: Hashable) -> PatternTable:
        """Count a piece that has no rows.

        Parameters
        ----------
        key : hashable
            Name of the piece.

        Returns
        -------
        PatternTable
            This table.
        """
        with self._lock:
            self._pieces.add(key)
        return self

    def solve(
        self,
        *,
        tol: float = DEFAULT_TOL,
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
        check_options(
            tol=tol,
            max_iter=max_iter,
            n_threads=self.n_threads,
            negatives=self.negatives,
            on_undetermined=on_undetermined,
        )
        return self.solve_as(
            tol=tol, max_iter=max_iter, on_undetermined=on_undetermined
        )

    def solve_as(
        self,
        make_rows: Callable[[GoneRows, Solved], RowStore] | None = None,
        engine: Any = None,
        **options: Any,
    ) -> RankOneFit:
        """Fit the rows; ``make_rows`` says where they are if they were not kept.

        ``engine`` fills rows that lie elsewhere.
        """
        options = {"n_threads": self.n_threads, **options}
        with self._lock:  # what is read is copied: other threads may go on meanwhile
            if self._sums is None:
                raise ParameterError(
                    "The table has no rows yet: call update(piece) before solve()."
                )
            statistics = self._sums.statistics()
            kept = None
            if self.keep_rows:
                exponent, n = self._sums.exponent, self._n_negative
                kept = joined_rows(self._rows, statistics, exponent, n)
            zero_counts = self._sums.zero_counts.copy()
            gone = GoneRows(self.n_rows, statistics.counts, zero_counts)
            table = Table(
                col_labels=self._col_labels,
                exponent=self._sums.exponent,
                is_signed=self._n_negative > 0,
                takes_negatives=self.negatives == "allow",
                engine=engine,
            )
        if kept is not None:
            takes = table.takes_negatives
            return fit_observation(
                kept, col_labels=table.col_labels, takes_negatives=takes, **options
            )

        def rows(solved: Solved) -> RowStore:
            return gone if make_rows is None else make_rows(gone, solved)

        options["zero_counts"] = zero_counts
        return fit_statistics(statistics, table, rows, **options)

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
            content = {
                "n_columns": self.n_columns,
                "n_rows": self.n_rows,
                "n_negative": self._n_negative,
                "keep_rows": self.keep_rows,
                "uncertainty": self.uncertainty,
                "negatives": self.negatives,
                "labels": labels_to_json(self._col_labels),
            }
            return write_table(content, self._pieces, self._sums, self._rows)

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
        content, pieces, sums, rows = read_table(data)
        table = cls(
            content["n_columns"],
            keep_rows=content["keep_rows"],
            negatives=content["negatives"],
            uncertainty=content.get("uncertainty", False),
        )
        table.n_rows, table._n_negative = content["n_rows"], content["n_negative"]
        table._col_labels = content["labels"]
        table._pieces, table._sums, table._rows = pieces, sums, rows
        return table

    # ---------------------------------------------------------------------- checks
    def _check_columns(self, n_cols: int, labels: Any) -> None:
        if self._n_columns is not None and n_cols != self._n_columns:
            raise DataError(
                f"This piece has {counted(n_cols, 'column')}, the table has "
                f"{self._n_columns}. Every piece must have the same columns."
            )
        if self._n_columns is not None:
            of = "the table"
            check_same_labels("column", labels, self._col_labels, "this piece", of)

    def _grown_for(self, keys: list[bytes], n_cols: int, n_rows: int) -> PatternSums:
        """Return the sums, once it is certain that more patterns have room."""
        fresh = len(keys) if self._sums is None else self._sums.count_new(keys)
        n_patterns = self.n_patterns + fresh
        need = bytes_needed(n_patterns, n_cols, scatter=self.uncertainty)
        if self.keep_rows:
            need += 12 * (self.n_rows + n_rows)
        if need > self.max_bytes:
            drop = ", or pass keep_rows=False" if self.keep_rows else ""
            raise TableTooLargeError(
                f"The pattern table would need {need:,} bytes for "
                f"{counted(n_patterns, 'pattern')} of {counted(n_cols, 'column')} in "
                f"{counted(self.n_rows + n_rows, 'row')}, more than "
                f"max_bytes={self.max_bytes:,}. Raise max_bytes, leave out columns"
                f"{drop}; or use a1gm.fit (in memory) or a1gm.fit_file (from files), "
                "which need no sum per pattern."
            )
        if self._sums is None:
            self._sums = PatternSums(n_cols, scatter=self.uncertainty)
            self._n_columns = n_cols
        return self._sums

    def _become(self, other: PatternTable) -> None:
        """Take all that another table holds; other options of this one stay."""
        self._sums = copy.deepcopy(other._sums)
        self._n_columns = other._n_columns
        self._pieces = set(other._pieces)
        self.n_rows, self._n_negative = other.n_rows, other._n_negative
        self.uncertainty = other.uncertainty
        self.keep_rows &= other.keep_rows
        self._rows = list(other._rows) if self.keep_rows else []
        if self._col_labels is None:
            self._col_labels = other._col_labels
