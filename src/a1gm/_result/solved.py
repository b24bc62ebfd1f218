"""A solved table: its factors, its blocks, and what the data say of each cell."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from a1gm._solve.components import Components, number_by_rows
from a1gm._solve.certificate import margin_mismatch
from a1gm._solve.expand import Factors
from a1gm._result.given_up_zeros import GivenUpZeros
from a1gm._sources import AnySource, SparseSource
from a1gm._result.fates import (
    FATES,
    FINITE,
    UNBOUNDED,
    ZERO,
    Knowledge,
    UndeterminedCells,
)
from a1gm._sources.labels import find_places
from a1gm._observe.statistics import Statistics
from a1gm._base.types import (
    Absent,
    AnyArray,
    Bools,
    Fate,
    Floats,
    Ints,
    OnUndetermined,
    SmallInts,
    Solver,
)
from a1gm.exceptions import ParameterError

if TYPE_CHECKING:
    from a1gm._result.pattern import MissingPattern

__all__ = ["SolvedTable"]


class SolvedTable:
    """What ``RankOneFit`` knows of its table; it adds what can be done with it."""

    def __init__(
        self,
        *,
        row_factor: Floats,
        col_factor: Floats,
        factors: Factors,
        statistics: Statistics,
        line_of_row: AnyArray | None,
        components: Components | None,
        source: AnySource | None,
        exponent: int,
        has_negatives: bool,
        tol: float,
        row_labels: Any,
        col_labels: Any,
        on_undetermined: OnUndetermined,
        has_rows: bool,
        weights: Floats | SparseSource | None = None,
    ) -> None:
        self._row_factor = row_factor
        self.col_factor = col_factor
        self.row_labels = row_labels
        self.col_labels = col_labels
        self.tol = tol
        self._factors = factors
        self._statistics = statistics
        self._line_of_row = line_of_row
        self._components = components
        self._source = source
        self._exponent = exponent
        self._has_negatives = has_negatives
        self._on_undetermined = on_undetermined
        self._has_rows = has_rows
        self._weights = weights
        self._absent: Absent | None = getattr(source, "absent", None)
        self._backend: str | None = getattr(source, "backend", None)

    # ------------------------------------------------------------- the factors
    @property
    def row_factor(self) -> Floats:
        """Row factors, one per row of the table."""
        if not self._has_rows:
            msg = (
                "This fit was made without keeping its rows. Use fit.transform(block) "
                "for the row factors of any rows, or PatternTable(keep_rows=True)."
            )
            raise ParameterError(msg)
        return self._row_factor

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table."""
        return len(self.row_factor), len(self.col_factor)

    @property
    def solver(self) -> Solver:
        """How it was solved: "closed form", "scaling" or "newton"."""
        return self._factors.solver

    @property
    def n_iter(self) -> int:
        """Iterations used; 0 for the closed form."""
        return self._factors.n_iter

    @property
    def n_blocks(self) -> int:
        """Blocks with data of their own; scales between blocks are not determined."""
        return self._factors.n_blocks

    @property
    def attained(self) -> bool:
        """Whether a minimiser exists; False when observed zeros had to be given up."""
        return self._given_up.n == 0

    @cached_property
    def _given_up(self) -> GivenUpZeros:
        return GivenUpZeros(
            self._statistics,
            None if self._has_negatives else self._components,
            self._line_of_row,
            self._row_factor if self._has_rows else None,
        )

    @cached_property
    def certificate(self) -> float:
        """Largest relative mismatch between the margins of the fit and of the data.

        At the optimum the fitted table has the row and column sums of the observed
        cells, so 0 proves optimality.
        """
        return margin_mismatch(self._factors, self._statistics)

    @property
    def is_exact(self) -> bool:
        """Whether the certificate is within the tolerance asked for."""
        return self.certificate <= self.tol

    # ------------------------------------------------- what is known, and what not
    @cached_property
    def pattern(self) -> MissingPattern:
        """The shape of the holes."""
        from a1gm._result.pattern import make_pattern

        n_lines = self._statistics.n_lines
        if self._line_of_row is None:
            rows_per_line = np.ones(n_lines, np.int64)
        else:
            rows_per_line = np.bincount(self._line_of_row, minlength=n_lines)
        return make_pattern(self._statistics, rows_per_line, lambda: self)

    @cached_property
    def row_block(self) -> SmallInts:
        """Component of each row, 0-based by first row; -1 if nothing is observed."""
        return self._blocks[0]

    @cached_property
    def col_block(self) -> SmallInts:
        """Component of each column, numbered as those of the rows."""
        return self._blocks[1]

    @cached_property
    def _blocks(self) -> tuple[SmallInts, SmallInts]:
        line_block, col_block = self._factors.line_block, self._factors.col_block
        rows = (
            line_block.copy()
            if self._line_of_row is None
            else line_block[self._line_of_row]
        )
        # Rows and columns of zeros are components of their own.
        zero_rows = self.row_factor == 0.0
        rows = np.where(zero_rows, self.n_blocks + np.cumsum(zero_rows) - 1, rows)
        rows[np.isnan(self.row_factor)] = -1
        n = self.n_blocks + int(zero_rows.sum())
        zero_cols = (col_block < 0) & ~np.isnan(self.col_factor)
        cols = np.where(zero_cols, n + np.cumsum(zero_cols) - 1, col_block)
        n += int(zero_cols.sum())
        return number_by_rows(rows, cols, n)

    @property
    def _all_finite(self) -> bool:
        """Whether every missing cell has a finite value: the usual case."""
        return self._components is None and self._factors.all_inside

    @cached_property
    def _knowledge(self) -> Knowledge:
        components = self._components
        if components is None:
            components = Components(self._factors.line_block, self._factors.col_block)
        is_zero_row = self._row_factor == 0.0
        return Knowledge(
            self._statistics,
            components,
            self._line_of_row,
            is_zero_row,
            none_between=self._components is None,
        )

    @overload
    def fate(self, i: Hashable, j: Hashable) -> Fate: ...
    @overload
    def fate(self, i: Any, j: Any) -> AnyArray: ...
    def fate(self, i: Any, j: Any) -> Any:
        """What the data say of cell (i, j), were it missing.

        Parameters
        ----------
        i, j : int, label, or array of these
            Row and column. Whole numbers count from 0, or from the end when negative,
            whatever the labels; anything else is looked up in ``row_labels`` and
            ``col_labels``. Arrays are broadcast, as in ``X[i, j]``.

        Returns
        -------
        {"finite", "zero", "unbounded", "undetermined"}, or an array of these
            Finite: ``row_factor[i] * col_factor[j]``. Zero: 0. Unbounded: the fit
            improves as the cell grows without end. Undetermined: any value is as good.

        Raises
        ------
        NoSuchCellError
            The table has no such row or column; it is an ``IndexError`` as well.

        Examples
        --------
        >>> import numpy as np, a1gm
        >>> X = np.array([[0.0, 5.0], [5.0, np.nan]])
        >>> fit = a1gm.fit(X, on_undetermined="ignore")
        >>> fit.fate(1, 1)
        'unbounded'
        >>> fit.fate([0, 0, 1], [0, 1, -1]).tolist()
        ['zero', 'finite', 'unbounded']
        """
        rows = find_places("row", i, self.row_labels, len(self.row_factor))
        cols = find_places("column", j, self.col_labels, len(self.col_factor))
        try:
            rows, cols = np.broadcast_arrays(rows, cols)
        except ValueError as error:
            msg = (
                f"Rows of shape {rows.shape} and columns of shape {cols.shape} do not "
                "pair up. Give as many of one as of the other, or one of them."
            )
            raise ParameterError(msg) from error
        codes = self._fates(rows.ravel(), cols.ravel()).reshape(rows.shape)
        return np.array(FATES)[codes] if codes.ndim else FATES[int(codes)]

    def _fates(self, rows: Ints, cols: Ints) -> SmallInts:
        if not self._all_finite and len(rows):
            return self._knowledge.fates(rows, cols)
        zero = self.row_factor[rows] == 0.0
        return np.where(zero, ZERO, FINITE).astype(np.int32)

    @cached_property
    def undetermined(self) -> UndeterminedCells:
        """Missing cells without a value: row, column and kind, row by row."""
        if self._all_finite:
            none = np.zeros(0, np.int64)
            return UndeterminedCells(none, none, none)
        return self._knowledge.undetermined

    @property
    def n_undetermined(self) -> int:
        """Missing cells that cannot be known (unbounded and undetermined)."""
        return 0 if self._all_finite else int(self._knowledge.counts[UNBOUNDED:].sum())

    def _same_block(self, rows: slice) -> Bools:
        line = self._factors.line_block
        block = (
            line[rows] if self._line_of_row is None else line[self._line_of_row[rows]]
        )
        inside: Bools = (block[:, None] == self._factors.col_block) & (block >= 0)[
            :, None
        ]
        return inside
