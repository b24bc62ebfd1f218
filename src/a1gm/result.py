"""What a fit gives: factors, what they are worth, and the holes filled."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from a1gm._blocks import Components
from a1gm._certificate import margin_mismatch
from a1gm._divergence import divergence_of_blocks, divergence_of_stored
from a1gm._expand import Factors
from a1gm._fill import fill_table
from a1gm._given_up import GivenUpZeros
from a1gm._input import AnySource, SparseSource, read_input, same_cells
from a1gm._input.door import is_sparse
from a1gm._knowledge import (
    CELLS_AT_ONCE,
    EMPTY,
    FATES,
    FINITE,
    UNBOUNDED,
    UNDETERMINED,
    ZERO,
    Knowledge,
    UndeterminedCells,
)
from a1gm._labels import check_same_labels, find_places
from a1gm._shown import html_table, one_line, solver_in_words
from a1gm._statistics import Statistics
from a1gm._types import (
    Absent,
    AnyArray,
    Bools,
    Fate,
    Floats,
    Ints,
    Negatives,
    OnUndetermined,
    SmallInts,
    Solver,
)
from a1gm._unknown import (
    text_of_empty_lines,
    text_of_left_cells,
    text_of_unknown_cells,
    text_of_zeros,
)
from a1gm._words import counted
from a1gm.exceptions import (
    DimensionError,
    EmptyLineWarning,
    ParameterError,
    UndeterminedError,
    UndeterminedWarning,
)

if TYPE_CHECKING:
    from a1gm._factor_frames import FactorFrames
    from a1gm.pattern import MissingPattern

__all__ = ["RankOneFit"]


class RankOneFit:
    """The best rank-1 explanation of a table, ``X[i, j] ≈ w[i] h[j]``.

    Made by ``a1gm.fit``; not meant to be constructed by hand.

    Attributes
    ----------
    row_factor : ndarray of shape (n_rows,)
        Row factors in the data's units: with one block, each row's estimated total.
        NaN for rows without any observed cell.
    col_factor : ndarray of shape (n_cols,)
        Column factors; they sum to 1, each block to its share of the observed total.
        NaN for columns without any observed cell.
    row_labels, col_labels
        The table's own row and column names, or None.
    """

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

    @cached_property
    def divergence(self) -> float:
        """Kullback-Leibler divergence on the observed cells, computed when asked for.

        NaN when negative cells were allowed, and for streamed fits, which do not keep
        the table: there ``divergence_of(X)`` computes it.
        """
        if self._source is None:
            return math.nan
        return self._divergence_of(self._source)

    def divergence_of(self, X: Any) -> float:
        """Compute the divergence between a table of these rows and the fit.

        Parameters
        ----------
        X : table of shape (n_rows, n_cols)
            The table that was fitted.

        Returns
        -------
        float
        """
        source = self._read(X)
        self._check_shape(source)
        return self._divergence_of(source)

    def _read(self, X: Any) -> AnySource:
        """Read a table the way the fitted one was read."""
        source: AnySource = read_input(X, absent=self._absent if is_sparse(X) else None)
        return source

    def _divergence_of(self, source: AnySource) -> float:
        if self._has_negatives:
            return math.nan
        weights = self._weights
        if isinstance(source, SparseSource):
            assert weights is None or isinstance(weights, SparseSource)
            block = self._factors.line_block
            rows = block if self._line_of_row is None else block[self._line_of_row]
            return divergence_of_stored(
                source,
                self.row_factor,
                self.col_factor,
                rows,
                self._factors.col_block,
                weights.values_at(source) if weights is not None else None,
            )
        same: Callable[[slice], Bools] | None = None
        if self.n_blocks != 1 or self._components is not None:
            same = self._same_block
        if isinstance(weights, SparseSource):
            weights = np.nan_to_num(weights.rows(slice(0, weights.n_rows)))
        return divergence_of_blocks(
            source, self.row_factor, self.col_factor, same, weights
        )

    def _same_block(self, rows: slice) -> Bools:
        line = self._factors.line_block
        block = (
            line[rows] if self._line_of_row is None else line[self._line_of_row[rows]]
        )
        inside: Bools = (block[:, None] == self._factors.col_block) & (block >= 0)[
            :, None
        ]
        return inside

    # ------------------------------------------------------------ using the fit
    def reconstruct(self) -> Floats:
        """Return the rank-1 table; NaN where the data do not determine a value.

        Returns
        -------
        ndarray of shape (n_rows, n_cols)
        """
        table = np.outer(self.row_factor, self.col_factor)
        if self._all_finite:
            return table
        step = max(1, CELLS_AT_ONCE // table.shape[1])
        for start in range(0, len(table), step):
            rows = slice(start, min(start + step, len(table)))
            places = np.arange(rows.start, rows.stop)
            fates = self._knowledge.fates_of_rows(places)
            observed = self._knowledge.observed_rows(places)
            unknown = ~observed & (fates >= UNBOUNDED)
            zero = np.where(observed, ~self._same_block(rows), fates == ZERO)
            table[rows][unknown] = np.nan
            table[rows][zero] = 0.0
        return table

    def impute(self, X: Any, *, on_undetermined: OnUndetermined | None = None) -> Any:
        """Fill the missing cells of the table that was fitted.

        Parameters
        ----------
        X : table of shape (n_rows, n_cols)
            The table that was fitted. It is not modified.
        on_undetermined : {"warn", "raise", "ignore"}, optional
            What to do about cells that the data do not determine; they stay missing.
            By default as said in ``fit``, except that a warning is not given twice:
            the fit has warned of the cells of the table that was fitted. Another table,
            or a fit that was loaded or unpickled, gets its warning here.

        Returns
        -------
        table
            A copy of X, of the same kind, with its missing cells filled.
        """
        if on_undetermined not in (None, "warn", "raise", "ignore"):
            msg = (
                'on_undetermined must be None, "warn", "raise" or "ignore", got '
                f"{on_undetermined!r}."
            )
            raise ParameterError(msg)
        source = self._read(X)
        self._check_shape(source)
        filled = fill_table(X, source, self._values)
        if filled.first_left is None:
            return filled.table
        if on_undetermined is not None or not self._has_warned(filled.n_left, source):
            how = on_undetermined or self._on_undetermined
            self._say_left(filled.n_left, filled.first_left, source, how)
        return filled.table

    def transform(self, X: Any) -> Floats:
        """Row factors of any rows with these columns: ``r_i / sum of observed h_j``.

        Parameters
        ----------
        X : table of shape (any, n_cols)
            Rows, which may be new and have other holes.

        Returns
        -------
        ndarray of shape (any,)
        """
        source = self._read(X)
        if source.n_cols != len(self.col_factor):
            msg = (
                f"X has {counted(source.n_cols, 'column')}, the fit has "
                f"{len(self.col_factor):,}."
            )
            raise DimensionError(msg)
        self._check_columns(source)
        from a1gm._transform import row_factors

        negatives: Negatives = "allow" if self._has_negatives else "raise"
        return row_factors(source, self.col_factor, negatives)

    def _values(self, i: Ints, j: Ints) -> Floats:
        values: Floats = self.row_factor[i] * self.col_factor[j]
        if self._all_finite:
            return values
        fates = self._knowledge.fates(i, j)
        values[fates == ZERO] = 0.0
        values[fates >= UNBOUNDED] = np.nan
        return values

    def _check_shape(self, source: AnySource) -> None:
        if (source.n_rows, source.n_cols) != self.shape:
            msg = (
                f"X has shape ({source.n_rows}, {source.n_cols}), but the table that "
                f"was fitted has shape {self.shape}. Pass the fitted table; for new "
                "rows use transform, or RankOneImputer."
            )
            raise DimensionError(msg)
        self._check_columns(source)
        check_same_labels("row", source.row_labels, self.row_labels, "X", "the fit")

    def _check_columns(self, source: AnySource) -> None:
        check_same_labels("column", source.col_labels, self.col_labels, "X", "the fit")

    def to_frame(self, backend: str | None = None) -> FactorFrames:
        """Both factors as frames of the library that the table came from.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            The library; needed when the table was not a frame.

        Returns
        -------
        FactorFrames
            ``rows`` and ``columns``, with labels, factors and blocks.
        """
        from a1gm._factor_frames import factor_frames

        return factor_frames(self, backend)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fit to a file, to be read by ``a1gm.load``.

        A streamed fit is saved without its rows: ``transform`` gives their factors.

        Parameters
        ----------
        path : path-like
            Where to; written whole or not at all.
        overwrite : bool, default=False
            Whether a file that is already there may be replaced.
        """
        from a1gm._saved import save_fit

        save_fit(self, path, overwrite=overwrite)

    # ------------------------------------------------- what is known, and what not
    @cached_property
    def pattern(self) -> MissingPattern:
        """The shape of the holes."""
        from a1gm.pattern import make_pattern

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
        labels, first = np.unique(rows[rows >= 0], return_index=True)
        rename = np.full(n + 1, -1, np.int32)
        rename[labels[np.argsort(first)]] = np.arange(len(labels))
        rename[:n][rename[:n] < 0] = len(labels) + np.arange((rename[:n] < 0).sum())
        return rename[rows], rename[cols]

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

    def say_what_is_unknown(self) -> None:
        """Warn of empty rows and columns and of cells that cannot be known."""
        if self._all_finite:
            return
        empty = self._text_of_empty_lines()
        if empty:
            warnings.warn(empty, EmptyLineWarning, stacklevel=4)
        counts = self._knowledge.counts
        n = int(counts[UNBOUNDED] + counts[UNDETERMINED])
        if (n or not self.attained) and self._on_undetermined != "ignore":
            text = self._describe_unknown(counts)
            if self._on_undetermined == "raise":
                raise UndeterminedError(text)
            warnings.warn(text, UndeterminedWarning, stacklevel=4)

    def _text_of_empty_lines(self) -> str:
        rows, columns = (
            np.flatnonzero(np.isnan(factor)).tolist()
            for factor in (self._row_factor, self.col_factor)
        )
        return text_of_empty_lines(rows, columns)

    def _describe_unknown(self, counts: Ints) -> str:
        parts = []
        if self.n_blocks > 1:
            parts.append(f"The table falls into {self.n_blocks:,} blocks.")
        if self._given_up.n:
            first = self._given_up.first() if self._has_rows else None
            parts.append(text_of_zeros(self._given_up.n, first))
        n_unbounded, n_open = counts[UNBOUNDED], counts[UNDETERMINED]
        if n_unbounded or n_open:
            first = self._knowledge.first_unknown()
            parts.append(text_of_unknown_cells(n_unbounded, n_open, first))
        return " ".join(parts)

    def _has_warned(self, n_left: int, source: AnySource) -> bool:
        """Whether the fit has warned of the cells that stay missing in this table."""
        if self._on_undetermined != "warn" or self._source is None:
            return False
        # The count first: an array may have got more holes since it was fitted.
        return n_left == self.n_undetermined and same_cells(source, self._source)

    def _say_left(
        self, n: int, first: tuple[int, int], source: AnySource, how: OnUndetermined
    ) -> None:
        if how == "ignore":
            return
        counts = self._knowledge.counts
        kinds = counts[UNBOUNDED], counts[UNDETERMINED] + counts[EMPTY]
        # A table with other holes than the fitted one leaves other cells.
        kinds_of_these = kinds if sum(kinds) == n else None
        text = text_of_left_cells(n, source.where(*first), kinds_of_these)
        text += " See fit.undetermined."
        if how == "raise":
            raise UndeterminedError(text)
        warnings.warn(text, UndeterminedWarning, stacklevel=3)

    # ------------------------------------------------------------------ appearance
    def summary(self) -> dict[str, str]:
        """The fit in words, line by line."""
        n, m = self.shape if self._has_rows else ("streamed", len(self.col_factor))
        lines = {
            "table": f"{n} x {m}",
            "solver": solver_in_words(self.solver, self.n_iter),
            "certificate": f"{self.certificate:.1e}",
            "blocks": str(self.n_blocks),
        }
        unknown = self.n_undetermined if self._has_rows else 0
        if unknown:
            lines["cannot be known"] = counted(unknown, "missing cell")
        if self._given_up.n:
            lines["zeros given up"] = str(self._given_up.n)
        return lines

    def __repr__(self) -> str:
        return one_line("RankOneFit", self.summary())

    def _repr_html_(self) -> str:
        return html_table("RankOneFit", self.summary())

    def __getstate__(self) -> dict[str, Any]:
        """Leave the data behind: only its divergence travels."""
        state = self.__dict__.copy()
        if self._has_rows:
            state["divergence"] = self.divergence
        state["_source"] = state["_weights"] = None
        for cached in ("_knowledge", "_given_up", "pattern"):
            state.pop(cached, None)
        return state
