"""What a fit gives: factors, what they are worth, and the holes filled."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, overload

import numpy as np

from a1gm._base.types import (
    Absent,
    AnyArray,
    Fate,
    Floats,
    OnUndetermined,
    SmallInts,
    Solver,
)
from a1gm._base.warn import warn_user
from a1gm._base.words import MOST_NAMED, counted
from a1gm._observe.weights import read_cell_weights
from a1gm._result.divergence import divergence_of_rows
from a1gm._result.fates import (
    EMPTY,
    FATES,
    UNBOUNDED,
    UNDETERMINED,
    ZERO,
    Fates,
    Totals,
    UndeterminedCells,
    fates_of,
)
from a1gm._result.fill import fill_table
from a1gm._result.frames import FactorFrames, factor_frames, table_frame
from a1gm._result.messages import (
    text_of_empty_lines,
    text_of_gap,
    text_of_left_cells,
    text_of_unknown_cells,
    text_of_zeros,
)
from a1gm._result.new_rows import NewRows
from a1gm._result.pattern import MissingPattern
from a1gm._result.rows import HeldRows, RowStore
from a1gm._result.save import save_fit
from a1gm._result.show import html_table, one_line, solver_in_words
from a1gm._solve.certificate import margin_mismatch
from a1gm._solve.column_graph import ColumnGraph
from a1gm._solve.dispatch import Solved
from a1gm._sources.labels import check_same_labels, find_places
from a1gm._sources.names import LabelNames, Names
from a1gm._sources.read import AnySource, is_sparse, read_input, same_cells
from a1gm.exceptions import (
    ConvergenceWarning,
    DimensionError,
    EmptyLineWarning,
    ParameterError,
    UndeterminedError,
    UndeterminedWarning,
)

__all__ = ["RankOneFit", "Table", "Voice", "rule_of", "source_of", "what_was_told"]


@dataclass(frozen=True, slots=True)
class Table:
    """What a fit remembers of the table it was made from.

    ``source`` reads the table again where that is possible, ``weights`` are those of
    its cells, and sums of the statistics are those of the data times 2**-exponent.
    ``engine`` fills and places rows that lie elsewhere, such as those of Dask.
    """

    source: Any = None
    weights: Any = None
    row_labels: Any = None
    col_labels: Any = None
    absent: Absent | None = None
    backend: str | None = None
    exponent: int = 0
    is_signed: bool = False  # it has negative cells
    is_weighted: bool = False
    engine: Any = None


@dataclass(frozen=True, slots=True)
class Voice:
    """What a fit says when it is made.

    ``names`` is what warnings call rows and columns, by default their labels; without
    ``tells_of_cells`` only a poor certificate is spoken of, as ``convergence``.
    """

    names: Names | None = None
    tells_of_cells: bool = True
    convergence: type[Warning] = ConvergenceWarning


class RankOneFit:
    """The best rank-1 explanation of a table, ``X[i, j] ≈ w[i] h[j]``.

    Made by ``a1gm.fit`` and its kin; not meant to be constructed by hand.

    Attributes
    ----------
    col_factor : ndarray of shape (n_cols,)
        Column factors; they sum to 1, each block to its share of the observed total.
        NaN for columns without any observed cell.
    row_labels, col_labels
        The table's own row and column names, or None.
    tol : float
        The certificate that was asked for.
    """

    def __init__(
        self,
        solved: Solved,
        rows: RowStore,
        table: Table,
        *,
        tol: float,
        on_undetermined: OnUndetermined,
        totals: Totals | None = None,
        voice: Voice | None = None,
    ) -> None:
        self._solved = solved
        self._rows = rows
        self._table = table
        self._on_undetermined: OnUndetermined = on_undetermined
        self._totals = totals
        self.tol = tol
        self.col_factor: Floats = solved.factors.col_factor
        self.row_labels, self.col_labels = table.row_labels, table.col_labels
        if voice is not None:
            self._say_what_is_unknown(voice)

    # ------------------------------------------------------------- the factors
    @property
    def row_factor(self) -> Any:
        """Row factors in the data's units: with one block, each row's estimated total.

        NaN for rows without any observed cell. An array; computed where it is looked at
        (``fit.row_factor[:1000]``) for a table in files; a lazy collection for Dask.
        """
        return self._rows.factor

    @property
    def _is_held(self) -> bool:
        """Whether rows and table are in memory."""
        return isinstance(self._rows, HeldRows)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table."""
        return self._rows.n_rows, len(self.col_factor)

    @property
    def solver(self) -> Solver:
        """How it was solved: "closed form", "scaling" or "newton"."""
        return self._solved.factors.solver

    @property
    def n_iter(self) -> int:
        """Iterations used; 0 for the closed form."""
        return self._solved.factors.n_iter

    @property
    def n_blocks(self) -> int:
        """Blocks with data of their own; scales between blocks are not determined."""
        return self._solved.factors.n_blocks

    @property
    def attained(self) -> bool:
        """Whether a minimiser exists; False when observed zeros had to be given up."""
        return self._is_plain or self._fates.totals.n_given_up == 0

    @cached_property
    def certificate(self) -> float:
        """Largest relative mismatch between the margins of the fit and of the data.

        At the optimum the fitted table has the row and column sums of the observed
        cells, so 0 proves optimality.
        """
        solved = self._solved
        return margin_mismatch(solved.factors, solved.statistics, solved.graph)

    @property
    def converged(self) -> bool:
        """Whether the certificate is within the tolerance asked for."""
        return self.certificate <= self.tol

    # ------------------------------------------------- what is known, and what not
    @property
    def _is_plain(self) -> bool:
        """Whether one block holds every row and column: the usual case."""
        solved = self._solved
        is_one = solved.components is None and solved.graph is None
        return is_one and self._totals is None and solved.factors.all_inside

    @cached_property
    def _fates(self) -> Fates:
        solved, table = self._solved, self._table
        if self._totals is not None and solved.graph is not None:
            none = np.zeros(len(self.col_factor), bool)
            return Fates(solved.graph, None, self._rows, none, self._totals)
        return fates_of(solved, self._rows, is_signed=table.is_signed)

    @cached_property
    def _new_rows(self) -> NewRows:
        """The rule by which rows are placed."""
        if self._is_plain:
            graph = ColumnGraph.single(len(self.col_factor))
        else:
            graph = self._fates.graph
        return NewRows(self.col_factor, graph, self._table.is_signed)

    @cached_property
    def pattern(self) -> MissingPattern:
        """The shape of the holes."""
        if self._totals is not None:
            msg = (
                "This fit was saved without the patterns of its rows, so their shape "
                "is not known. a1gm.MissingPattern(X) describes any table."
            )
            raise ParameterError(msg)
        statistics = self._solved.statistics
        n_rows, _ = self._rows.line_counts(slice(0, statistics.n_lines))
        return MissingPattern.of_statistics(
            statistics, n_rows, lambda: (self.n_blocks, self.n_undetermined)
        )

    @property
    def row_block(self) -> SmallInts:
        """Component of each row, 0-based by first row; -1 if nothing is observed."""
        return self._blocks[0]

    @property
    def col_block(self) -> SmallInts:
        """Component of each column, numbered as those of the rows."""
        if not self._rows.is_kept:
            return self._fates.graph.label
        return self._blocks[1]

    @cached_property
    def _blocks(self) -> tuple[SmallInts, SmallInts]:
        return self._fates.row_blocks()

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
        rows = find_places("row", i, self.row_labels, self.shape[0])
        cols = find_places("column", j, self.col_labels, self.shape[1])
        try:
            rows, cols = np.broadcast_arrays(rows, cols)
        except ValueError as error:
            msg = (
                f"Rows of shape {rows.shape} and columns of shape {cols.shape} do not "
                "pair up. Give as many of one as of the other, or one of them."
            )
            raise ParameterError(msg) from error
        codes = self._fates.of_cells(rows.ravel(), cols.ravel()).reshape(rows.shape)
        return np.array(FATES)[codes] if codes.ndim else FATES[int(codes)]

    @property
    def undetermined(self) -> UndeterminedCells:
        """Missing cells without a value: row, column and kind, row by row."""
        if self._is_plain:
            none = np.zeros(0, np.int64)
            return UndeterminedCells(none, none, none)
        return self._fates.undetermined

    @property
    def n_undetermined(self) -> int:
        """Missing cells that cannot be known (unbounded and undetermined)."""
        if self._is_plain:
            return 0
        return int(self._fates.totals.fates[UNBOUNDED:].sum())

    # ------------------------------------------------------------------- divergence
    @cached_property
    def divergence(self) -> float:
        """Kullback-Leibler divergence on the observed cells, computed when asked for.

        NaN when negative cells were allowed, and for fits whose table cannot be read
        again: there ``divergence_of(X)`` computes it.
        """
        table = self._table
        if table.source is None or table.is_signed:
            return math.nan
        return divergence_of_rows(self._new_rows, table.source, table.weights)

    def divergence_of(self, X: Any, *, weights: Any = None) -> float:
        """Compute the divergence between any rows and the fit.

        Parameters
        ----------
        X : table of shape (any, n_cols)
            Rows, each fitted by its own observed cells.
        weights : table, optional
            Weights of their cells, where the fit had weights.

        Returns
        -------
        float
        """
        source, V = self._read(X, weights)
        if self._table.is_signed:
            return math.nan
        return divergence_of_rows(self._new_rows, source, V)

    # ------------------------------------------------------------ using the fit
    def _read(self, X: Any, weights: Any = None) -> tuple[AnySource, Any]:
        """Read rows the way the fitted ones were read, and their weights."""
        source: AnySource = read_input(
            X, absent=self._table.absent if is_sparse(X) else None
        )
        self._check_columns(source.n_cols, source.col_labels)
        return source, self._weights_of(source, weights)

    def _engine_for(self, X: Any) -> Any:
        """What fills rows that lie elsewhere; None for tables in memory."""
        engine = self._table.engine
        if engine is None or not engine.takes(X):
            return None
        self._check_columns(*engine.columns(X))
        return engine

    def _check_columns(self, n_cols: int, labels: Any) -> None:
        if n_cols != len(self.col_factor):
            msg = (
                f"X has {counted(n_cols, 'column')}, but the fit has "
                f"{len(self.col_factor):,}. Pass rows with the columns of the fit."
            )
            raise DimensionError(msg)
        check_same_labels("column", labels, self.col_labels, "X", "the fit")

    def _weights_of(self, source: AnySource, weights: Any) -> Any:
        table = self._table
        if weights is not None:
            if table.is_signed:
                msg = 'negatives="allow" and weights cannot be combined; drop weights.'
                raise ParameterError(msg)
            return read_cell_weights(weights, source)
        if not table.is_weighted:
            return None
        if self._is_fitted_table(source):
            return table.weights
        msg = (
            "This fit had weights, and these rows are not the fitted table: pass "
            "weights= with a weight for every cell of these rows."
        )
        raise ParameterError(msg)

    def _is_fitted_table(self, source: AnySource) -> bool:
        own = self._table.source
        if own is None or own.n_rows != source.n_rows:
            return False
        return same_cells(source, own)

    def reconstruct(self) -> Any:
        """Return the rank-1 table; NaN where the data do not determine a value.

        Returns
        -------
        ndarray of shape (n_rows, n_cols), or a frame
            A frame with its labels when the table was a frame.
        """
        w = np.asarray(self.row_factor)
        table = np.outer(w, self.col_factor)
        if not self._is_plain:
            for start, stop in self._fates.pieces():
                fates = self._fates.of_rows(start, stop)
                table[start:stop][fates == ZERO] = 0.0
                # An observed cell always has a value, if only 0.
                table[start:stop][fates >= UNBOUNDED] = np.nan
        backend = self._table.backend
        if backend is None:
            return table
        return table_frame(table, backend, self.row_labels, self.col_labels)

    def impute(
        self,
        X: Any,
        *,
        weights: Any = None,
        on_undetermined: OnUndetermined | None = None,
    ) -> Any:
        """Fill the missing cells of any rows with the columns of the fit.

        Parameters
        ----------
        X : table of shape (any, n_cols)
            The table that was fitted, or other rows. Each row is placed by its own
            observed cells, never by its position. X is not modified.
        weights : table, optional
            Weights of the cells of X, where the fit had weights; not needed for the
            table that was fitted.
        on_undetermined : {"warn", "raise", "ignore"}, optional
            What to do about cells that the data do not determine; they stay missing.
            By default as said in ``fit``, except that a warning is not given twice:
            the fit has warned of the cells of the table that was fitted. Other rows,
            or a fit that was loaded or unpickled, get their warning here.

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
        engine = self._engine_for(X)
        if engine is not None:
            return engine.fill(X, self._new_rows)
        source, V = self._read(X, weights)
        filled = fill_table(X, source, self._new_rows.place(source, V).values)
        if filled.first_left is None:
            return filled.table
        if on_undetermined is not None or not self._has_warned(filled.n_left, source):
            how = on_undetermined or self._on_undetermined
            self._say_left(filled.n_left, filled.first_left, source, how)
        return filled.table

    def transform(self, X: Any, *, weights: Any = None) -> Any:
        """Row factors of any rows with these columns: ``r_i / sum of observed h_j``.

        Parameters
        ----------
        X : table of shape (any, n_cols)
            Rows, which may be new and have other holes.
        weights : table, optional
            Weights of the cells of X, where the fit had weights.

        Returns
        -------
        ndarray of shape (any,)
            NaN for a row with nothing to place it by, and for one with positive cells
            in several blocks, which share no scale; a warning says which.
        """
        engine = self._engine_for(X)
        if engine is not None:
            return engine.factors(X, self._new_rows)
        source, V = self._read(X, weights)
        placed = self._new_rows.place(source, V)
        text = placed.unplaced()
        if text:
            warn_user(text, EmptyLineWarning)
        return placed.factors

    def to_frames(self, backend: str | None = None) -> FactorFrames:
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
        return factor_frames(self, backend or self._table.backend)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fit to a file, to be read by ``a1gm.load``.

        A fit of files is saved without its rows: ``transform`` gives their factors.

        Parameters
        ----------
        path : path-like
            Where to; written whole or not at all.
        overwrite : bool, default=False
            Whether a file that is already there may be replaced.
        """
        save_fit(self._state(), path, overwrite=overwrite)

    def _state(self) -> dict[str, Any]:
        """What is written to a file; see ``_result.save``."""
        return {
            "solved": self._solved,
            "rows": self._rows,
            "table": self._table,
            "tol": self.tol,
            "on_undetermined": self._on_undetermined,
            "certificate": self.certificate,
            "divergence": self.divergence if self._is_held else math.nan,
            "row_labels": self.row_labels,
            "col_labels": self.col_labels,
            "graph": self._fates.graph,
            "totals": self._fates.totals,
        }

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> RankOneFit:
        """Make the fit again whose state was written to a file."""
        labels = {name: state[name] for name in ("row_labels", "col_labels")}
        fit = cls(
            state["solved"],
            state["rows"],
            Table(**state["table"], **labels),
            tol=state["tol"],
            on_undetermined=state["on_undetermined"],
            totals=state["totals"],
        )
        if state["totals"] is not None:  # its rows were left behind
            fit.__dict__["certificate"] = state["certificate"]
        fit.__dict__["divergence"] = state["divergence"]
        return fit

    # -------------------------------------------------------------------- warnings
    def _say_what_is_unknown(self, voice: Voice) -> None:
        """Warn of a poor certificate, empty rows and columns, and unknown cells."""
        if self._solved.factors.gap > self.tol and not self.converged:
            text = text_of_gap(self.n_iter, self.certificate, self.tol)
            warn_user(text, voice.convergence)
        if self._is_plain or not voice.tells_of_cells:
            return
        names = voice.names or LabelNames(self.row_labels, self.col_labels)
        empty = self._text_of_empty_lines(names)
        if empty:
            warn_user(empty, EmptyLineWarning)
        text = self._text_of_unknown_cells(names)
        if text and self._on_undetermined == "raise":
            raise UndeterminedError(text)
        if text and self._on_undetermined == "warn":
            warn_user(text, UndeterminedWarning)

    def _text_of_empty_lines(self, names: Names) -> str:
        rows, n_rows = self._fates.empty_rows(MOST_NAMED)
        columns = np.flatnonzero(np.isnan(self.col_factor)).tolist()
        return text_of_empty_lines(
            names.rows(rows, n_rows), names.columns(columns, len(columns))
        )

    def _text_of_unknown_cells(self, names: Names) -> str:
        totals = self._fates.totals
        n_unbounded, n_open = totals.fates[UNBOUNDED], totals.fates[UNDETERMINED]
        if not (n_unbounded or n_open or totals.n_given_up):
            return ""
        parts = []
        if self.n_blocks > 1:
            parts.append(f"The table falls into {self.n_blocks:,} blocks.")
        if totals.n_given_up:
            place = self._fates.first_given_up()
            first = None if place is None else names.cell(*place)
            parts.append(text_of_zeros(totals.n_given_up, first))
        if n_unbounded or n_open:
            place = self._fates.first_unknown()
            first = None if place is None else names.cell(*place)
            text = text_of_unknown_cells(n_unbounded, n_open, first, see=names.see)
            parts.append(text)
        return " ".join(parts)

    def _has_warned(self, n_left: int, source: AnySource) -> bool:
        """Whether the fit has warned of the cells that stay missing in this table."""
        if self._on_undetermined != "warn":
            return False
        # The count first: an array may have got more holes since it was fitted.
        return n_left == self.n_undetermined and self._is_fitted_table(source)

    def _say_left(
        self, n: int, first: tuple[int, int], source: AnySource, how: OnUndetermined
    ) -> None:
        if how == "ignore":
            return
        counts = self._fates.totals.fates
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
        n, m = self.shape
        lines = {
            "table": f"{n} x {m}",
            "solver": solver_in_words(self.solver, self.n_iter),
            "certificate": f"{self.certificate:.1e}",
            "blocks": str(self.n_blocks),
        }
        if self.n_undetermined:
            lines["cannot be known"] = counted(self.n_undetermined, "missing cell")
        if not self.attained:
            lines["zeros given up"] = str(self._fates.totals.n_given_up)
        return lines

    def __repr__(self) -> str:
        return one_line("RankOneFit", self.summary())

    def _repr_html_(self) -> str:
        return html_table("RankOneFit", self.summary())

    def __getstate__(self) -> dict[str, Any]:
        """Leave the data behind: only their divergence travels."""
        state = self.__dict__.copy()
        if self._is_held and self._table.source is not None:
            state["divergence"] = self.divergence
        state["_table"] = replace(self._table, source=None, weights=None)
        for cached in ("_fates", "_new_rows", "pattern"):
            state.pop(cached, None)
        return state


def rule_of(fit: RankOneFit) -> NewRows:
    """The rule by which a fit places rows, without its rows and data."""
    return fit._new_rows


def source_of(fit: RankOneFit) -> Any:
    """What reads the fitted table again; None when it cannot be read."""
    return fit._table.source


def what_was_told(fit: RankOneFit) -> OnUndetermined:
    """What the fit was told to do about cells that the data do not determine."""
    return fit._on_undetermined
