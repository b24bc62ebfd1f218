"""What a fit gives: factors, what they are worth, and the holes filled."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._result.divergence import divergence_of_blocks, divergence_of_stored
from a1gm._result.fill import fill_table
from a1gm._sources import AnySource, SparseSource, read_input, same_cells
from a1gm._sources.read import is_sparse
from a1gm._result.fates import CELLS_AT_ONCE, EMPTY, UNBOUNDED, UNDETERMINED, ZERO
from a1gm._sources.labels import check_same_labels
from a1gm._sources.names import LabelNames, Names
from a1gm._result.show import html_table, one_line, solver_in_words
from a1gm._result.solved import SolvedTable
from a1gm._base.types import Bools, Floats, Ints, Negatives, OnUndetermined
from a1gm._result.messages import (
    MOST_LINES,
    text_of_empty_lines,
    text_of_left_cells,
    text_of_unknown_cells,
    text_of_zeros,
)
from a1gm._base.warn import warn_user
from a1gm._base.words import counted
from a1gm.exceptions import (
    DimensionError,
    EmptyLineWarning,
    ParameterError,
    UndeterminedError,
    UndeterminedWarning,
)

if TYPE_CHECKING:
    from a1gm._result.frames import FactorFrames

__all__ = ["RankOneFit"]


class RankOneFit(SolvedTable):
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
        from a1gm._result.new_rows import row_factors

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
        from a1gm._result.frames import factor_frames

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
        from a1gm._result.save import save_fit

        save_fit(self, path, overwrite=overwrite)

    def say_what_is_unknown(self, names: Names | None = None) -> None:
        """Warn of empty rows and columns and of cells that cannot be known.

        ``names`` says what to call them; by default their labels, or numbers.
        """
        if self._all_finite:
            return
        names = names or LabelNames(self.row_labels, self.col_labels)
        empty = self._text_of_empty_lines(names)
        if empty:
            warn_user(empty, EmptyLineWarning)
        counts = self._knowledge.counts
        n = int(counts[UNBOUNDED] + counts[UNDETERMINED])
        if (n or not self.attained) and self._on_undetermined != "ignore":
            text = self._describe_unknown(counts, names)
            if self._on_undetermined == "raise":
                raise UndeterminedError(text)
            warn_user(text, UndeterminedWarning)

    def _text_of_empty_lines(self, names: Names) -> str:
        rows, n_rows = self._empty_rows()
        columns = np.flatnonzero(np.isnan(self.col_factor)).tolist()
        return text_of_empty_lines(
            names.rows(rows, n_rows), names.columns(columns, len(columns))
        )

    def _empty_rows(self) -> tuple[list[int], int]:
        """The first rows without an observed cell, and how many there are."""
        empty = np.flatnonzero(np.isnan(self._row_factor))
        return empty[:MOST_LINES].tolist(), len(empty)

    def _describe_unknown(self, counts: Ints, names: Names) -> str:
        parts = []
        if self.n_blocks > 1:
            parts.append(f"The table falls into {self.n_blocks:,} blocks.")
        if self._given_up.n:
            first = names.cell(*self._given_up.first()) if self._has_rows else None
            parts.append(text_of_zeros(self._given_up.n, first))
        n_unbounded, n_open = counts[UNBOUNDED], counts[UNDETERMINED]
        if n_unbounded or n_open:
            row, col = self._knowledge.first_unknown()
            first = names.cell(row, col) if row >= 0 else None
            text = text_of_unknown_cells(n_unbounded, n_open, first, see=names.see)
            parts.append(text)
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
        warn_user(text, UndeterminedWarning)

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
