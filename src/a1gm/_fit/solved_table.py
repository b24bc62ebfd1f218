"""A solved table: its factors, its blocks, and what the data say of each cell."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np

from a1gm._base.float_range import check_cells
from a1gm._base.types import (
    AnyArray,
    Bools,
    Fate,
    Floats,
    Ints,
    OnUndetermined,
    SmallInts,
    Solver,
)
from a1gm._base.warn import warn_user
from a1gm._fit.fates import (
    FATES,
    UNBOUNDED,
    ZERO,
    Fates,
    Totals,
    UndeterminedCells,
    fates_of,
)
from a1gm._fit.long import predicted, read_pairs
from a1gm._fit.messages import (
    Voice,
    tell_undetermined,
    text_of_empty,
    text_of_errors,
    text_of_unknown,
)
from a1gm._fit.new_rows import NewRows
from a1gm._fit.pattern import MissingPattern
from a1gm._fit.rows import HeldRows, RowStore
from a1gm._fit.table import Table
from a1gm._rows.labels import Names
from a1gm._rows.lookup import Lookup, paired
from a1gm._solve.cell_error import CELLS_RIGHT, SURELY_RIGHT, cell_error
from a1gm._solve.certificate import margin_mismatch
from a1gm._solve.column_graph import ColumnGraph
from a1gm._solve.dispatch import Solved
from a1gm.exceptions import EmptyLineWarning, ParameterError, Text, parts_of, separated


class SolvedTable:
    """What ``RankOneFit`` knows of its table; it adds what can be done with it.

    ``totals`` are those of a fit whose rows were left behind. ``voice`` says what is
    warned of now, and how; None warns of nothing.
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
        self.col_labels = table.col_labels
        if voice is not None:
            self._announce(voice)

    def _announce(self, voice: Voice) -> None:
        """Warn of a poor certificate, empty rows and columns, and unknown cells."""
        if text := text_of_doubt(self, voice.names):
            warn_user(voice.convergence(*parts_of(text)))
        if self._is_plain or not voice.tells_of_cells:
            return
        labels = {"row_labels": self.row_labels, "col_labels": self.col_labels}
        names = voice.names or Names(**labels)
        empty = text_of_empty(self._fates, self._solved.factors.col_factor, names)
        how = self._on_undetermined
        text = text_of_unknown(self._fates, self.n_blocks, names, how)
        if empty and how == "raise":
            text = separated([empty, text])
        elif empty:
            warn_user(empty, EmptyLineWarning)
        if text:
            tell_undetermined(text, how)

    @property
    def row_labels(self) -> Any:
        """The table's own row names, or None; those of files are read when asked."""
        own = self._table.row_labels
        if own is None:
            own = getattr(self._table.source, "row_labels", None)
        return own

    # ------------------------------------------------------------- the factors
    @property
    def col_factor(self) -> Floats:
        """Column factors; they sum to 1, each block to its share of the observed total.

        NaN for columns without any observed cell.
        """
        return self._solved.factors.col_factor

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
        return self._rows.n_rows, len(self._solved.factors.col_factor)

    @property
    def solver(self) -> Solver:
        """How it was solved: "closed form", "scaling" or "newton"."""
        return self._solved.factors.solver

    @property
    def n_iter(self) -> int:
        """Iterations used; 0 for the closed form."""
        return self._solved.factors.n_iter

    @property
    def has_exposure(self) -> bool:
        """Whether the factors are rates: the fit was made with ``exposure=``."""
        return self._table.is_exposed

    @property
    def has_weights(self) -> bool:
        """Whether the fit was made with ``weights=`` or ``exposure=``."""
        return self._table.is_weighted

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

    @cached_property
    def cell_error(self) -> float:
        """Bound on the relative error of any finite fitted cell, rounding included.

        The certificate proves the margins; parts of a table that hang together by small
        cells can have the right margins and wrong cells between them. Infinite where
        nothing can be said.
        """
        return max(cell_error(self._solved.factors.step), self.certificate)

    @property
    def converged(self) -> bool:
        """Whether the certificate is within ``tol`` and the cell error within 1e-8."""
        return self.certificate <= self.tol and self.cell_error <= CELLS_RIGHT

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
            none = np.zeros(self.shape[1], bool)
            return Fates(solved.graph, None, self._rows, none, self._totals)
        return fates_of(solved, self._rows, is_signed=table.is_signed)

    @cached_property
    def _new_rows(self) -> NewRows:
        """The rule by which rows are placed."""
        if self._is_plain:
            graph = ColumnGraph.single(self.shape[1])
        else:
            graph = self._fates.graph
        table = self._table
        takes_negatives = table.is_signed or table.takes_negatives
        columns = self._solved.factors.col_factor
        return NewRows(
            columns, graph, takes_negatives, table.is_weighted, table.is_exposed
        )

    @cached_property
    def pattern(self) -> MissingPattern:
        """The shape of the holes."""
        if self._totals is not None:
            raise ParameterError(
                "This fit was saved without the patterns of its rows, so their shape "
                "is not known. Use a1gm.MissingPattern(X) to describe a table."
            )
        statistics = self._solved.statistics
        n_rows, _ = self._rows.line_counts(slice(0, statistics.n_lines))
        return MissingPattern.of_statistics(
            statistics, n_rows, lambda: (self.n_blocks, self.n_undetermined)
        )

    @property
    def row_block(self) -> SmallInts:
        """Component of each row, 0-based by first row; -1 if nothing is observed.

        A row of zeros is a component of its own, which ``n_blocks`` does not count.
        """
        return self._blocks[0]

    @property
    def col_block(self) -> SmallInts:
        """Component of each column, numbered as those of the rows."""
        if not self._rows.is_kept:
            return self._fates.col_blocks()
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
        i, j : label, int, or array of these
            Row and column, looked up in ``row_labels`` and ``col_labels``. Where there
            are no labels, or none of them is a number, whole numbers are places,
            counted from 0 or from the end when negative. Arrays are broadcast, as in
            ``X[i, j]``.

        Returns
        -------
        {"finite", "zero", "unbounded", "undetermined"}, or an array of these
            Finite: ``row_factor[i] * col_factor[j]``. Zero: 0. Unbounded: the fit
            improves as the cell grows without end. Undetermined: any value is as good.

        Raises
        ------
        LabelError
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
        rows, cols = self._places(i, j)
        codes = self._fates.of_cells(rows.ravel(), cols.ravel()).reshape(rows.shape)
        return np.array(FATES)[codes] if codes.ndim else FATES[int(codes)]

    @cached_property
    def _finders(self) -> tuple[Lookup, Lookup]:
        """What finds the rows and the columns that a user names."""
        n, m = self.shape
        rows = Lookup("row", self.row_labels, n)
        return rows, Lookup("column", self.col_labels, m)

    def _places(self, i: Any, j: Any) -> tuple[Ints, Ints]:
        """Rows and columns that a user names, paired up."""
        rows, columns = self._finders
        return paired(rows.find(i), columns.find(j))

    # ---------------------------------------------------------------- fitted values
    def predict(self, rows: Any, columns: Any = None) -> Any:
        """Fitted values of cells that are named by their labels.

        Parameters
        ----------
        rows : frame, or label or array of labels
            A long frame with the two key columns of ``fit_long``; or, with
            ``columns``, the rows as in ``fate``.
        columns : label or array of labels, optional
            The columns, paired with the rows.

        Returns
        -------
        ndarray, or float for a single cell
            One value per row of the frame, or of the shape of the labels; NaN where
            the data determine none (``fate`` says why), and for labels that the fit
            does not know.

        Warns
        -----
        UndeterminedWarning
            Some labels are not those of the fit.

        Raises
        ------
        LabelError
            A label is that of several rows or columns, or a place does not exist.

        Examples
        --------
        >>> import numpy as np, pandas as pd, a1gm
        >>> X = pd.DataFrame({"a": [1.0, 3.0], "b": [2.0, np.nan]}, index=["x", "y"])
        >>> a1gm.fit(X).predict(["x", "y"], "b")
        array([2., 6.])
        """
        places, unknown = [], []
        given: Any = (rows, columns)
        if columns is None:
            given = read_pairs(rows, self._table.long)
        for side, names in zip(self._finders, given, strict=True):
            # Each label of a long frame once, not once per row.
            labels = names.labels if columns is None else names
            found = side.find_known(labels, are_labels=columns is None)
            unknown.append(side.unknown(labels, found))
            places.append(found[names.codes] if columns is None else found)
        return predicted(unknown, places, self._fitted)

    def _fitted(self, rows: Ints, cols: Ints) -> Floats:
        """Fitted values of cells at places; NaN where the data determine none."""
        w, h = self._rows.factor, self._solved.factors.col_factor
        with np.errstate(over="ignore"):
            values: Floats = w[rows] * h[cols]
        if not self._is_plain:
            fates = self._fates.of_cells(rows, cols)
            values[fates == ZERO] = 0.0
            values[fates >= UNBOUNDED] = np.nan
        check_cells(values)
        return values

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
        return 0 if self._is_plain else self._fates.totals.n_undetermined


def name_lines(fit: SolvedTable, rows: Any, columns: Any, **more: Any) -> None:
    """Give a fit that was made without them the names of its rows and columns.

    ``more`` is what else its table remembers.
    """
    fit._table = replace(fit._table, **more)
    if rows is not None:
        fit._table.row_labels = rows
    if columns is not None:
        fit._table.col_labels = fit.col_labels = columns
    fit.__dict__.pop("_finders", None)


def read_once(fit: SolvedTable, X: Any) -> None:
    """Tell a fit that its table has not changed since it was read."""
    fit._table.unchanged = X


def filled_cells(fit: SolvedTable) -> tuple[Floats, Bools]:
    """The table of a fit with its holes filled, and which cells they were."""
    cells = fit._table.source.rows(slice(0, fit.shape[0]))
    missing = np.isnan(cells)
    cells[missing] = fit._fitted(*np.nonzero(missing))
    return cells, missing


def text_of_doubt(fit: SolvedTable, names: Names | None = None) -> Text:
    """Say how far the fit may be off the best one; empty where it has converged."""
    factors = fit._solved.factors
    is_sure = factors.gap <= fit.tol and factors.step < SURELY_RIGHT
    if is_sure or fit.converged:
        return ""
    names = names or Names(col_labels=fit.col_labels)
    ends = names.columns(factors.cut, 2) if factors.cut else ""
    errors = fit.certificate, fit.tol, fit.cell_error
    return text_of_errors(fit.n_iter, *errors, ends)


class Doubts(NamedTuple):
    """What a fit would warn of."""

    convergence: bool
    empty: bool
    unknown: bool


def doubts_of(fit: SolvedTable) -> Doubts:
    """What a fit that said nothing would have warned of."""
    doubt = bool(text_of_doubt(fit))
    if fit._is_plain:
        return Doubts(doubt, empty=False, unknown=False)
    empty = bool(text_of_empty(fit._fates, fit._solved.factors.col_factor, Names()))
    unknown = bool(text_of_unknown(fit._fates, fit.n_blocks, Names()))
    return Doubts(doubt, empty, unknown)


def rule_of(fit: SolvedTable) -> NewRows:
    """The rule by which a fit places rows, without its rows and data."""
    return fit._new_rows


def source_of(fit: SolvedTable) -> Any:
    """What reads the fitted table again; None when it cannot be read."""
    return fit._table.source


def memory_of(fit: SolvedTable) -> Table:
    """What a fit remembers of its table."""
    return fit._table


def what_was_told(fit: SolvedTable) -> OnUndetermined:
    """What the fit was told to do about cells that the data do not determine."""
    return fit._on_undetermined
