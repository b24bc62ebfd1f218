"""``RankOneFit``: the factors of a table, and everything they are used for."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any, cast, overload

import numpy as np

from a1gm._base.float_range import check_cells, product
from a1gm._base.types import (
    AnyArray,
    Fate,
    Floats,
    Ints,
    OnUndetermined,
    SmallInts,
)
from a1gm._base.warn import warn_user
from a1gm._base.words import counted
from a1gm._fit.certified import Certified
from a1gm._fit.fill import Rounding, check_rounding, fill_table, rounded_fills
from a1gm._fit.frames import (
    FactorFrames,
    Long,
    factor_frames,
    filled_pairs,
    predicted,
    read_keys,
    table_frame,
)
from a1gm._fit.kept import Kept
from a1gm._fit.messages import (
    check_on_undetermined,
    text_of_unplaced_rows,
    warn_left,
)
from a1gm._fit.pattern import MissingPattern
from a1gm._fit.place import (
    FATES,
    Columns,
    Fates,
    Totals,
    UndeterminedCells,
    decided,
    with_exposure,
)
from a1gm._fit.residuals import Kind, divergence_of_rows, residuals_of
from a1gm._fit.save import KIND, MOST_BYTES, fit_to_arrays
from a1gm._fit.sure.arguments import Dispersion
from a1gm._fit.sure.information import Information
from a1gm._fit.sure.scatter import Scatter
from a1gm._fit.sure.uncertainty import Uncertainty
from a1gm._fit.table import STATISTICS, FitRows, Table, are_close
from a1gm._fit.totals import check_plain_fills, fills_to_totals
from a1gm._observe.patterns import PatternsGone
from a1gm._rows.frames import select
from a1gm._rows.labels import Lookup, Names
from a1gm._rows.read import AnyRows
from a1gm._rows.rows import table_of
from a1gm._solve.cell_error import SURELY_RIGHT, cell_error
from a1gm._solve.certificate import margin_mismatch
from a1gm._solve.components import ColumnGraph
from a1gm._solve.dispatch import Solved
from a1gm.exceptions import EmptyLineWarning, NotRepresentableError, ParameterError


class Solution(Certified):
    """A table of rows and columns that was solved; base of the fits of such tables."""

    _solved: Solved

    @property
    def _found(self) -> Any:
        return self._solved.factors

    @property
    def n_blocks(self) -> int:
        """Number of blocks; scales between blocks are not determined."""
        return self._solved.factors.n_blocks

    @cached_property
    def certificate(self) -> float:
        """Largest relative mismatch between the margins of the fit and of the data.

        At the optimum the fitted table has the row and column sums of the observed
        cells, so 0 proves optimality.
        """
        factors, patterns = self._solved.factors, cast("Any", self._solved.statistics)
        if isinstance(patterns, PatternsGone):
            return factors.gap
        return margin_mismatch(factors, patterns)

    @cached_property
    def cell_error(self) -> float:
        """Bound on the relative error of any finite fitted cell, rounding included.

        The certificate proves the margins; parts of a table that hang together by small
        cells can have the right margins and wrong cells between them. Infinite where
        nothing can be said.
        """
        return max(cell_error(self._solved.factors.step), self.certificate)


class RankOneFit(Solution, Kept):
    """The best rank-1 explanation of a table, ``X[i, j] ≈ w[i] h[j]``.

    Made by ``a1gm.fit`` and its kin; not meant to be constructed by hand.

    Attributes
    ----------
    row_labels, col_labels
        The table's own row and column names, or None.
    tol : float
        The certificate to reach.
    """

    _kind = KIND

    def __init__(
        self,
        solved: Solved,
        rows: FitRows,
        table: Table,
        *,
        tol: float,
        on_undetermined: OnUndetermined,
    ) -> None:
        self._solved, self._patterns = solved, solved.statistics
        self._rows = rows
        self._table = table
        self._on_undetermined: OnUndetermined = on_undetermined
        self.tol = tol
        self.col_labels = table.col_labels

    @property
    def row_labels(self) -> Any:
        """The table's own row names, or None; those of files are read on access."""
        return self._table.names_of_rows

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
    def _is_sure(self) -> bool:
        """Whether there is nothing to warn about: the usual case."""
        factors = self._solved.factors
        is_right = factors.gap <= self.tol and factors.step < SURELY_RIGHT
        return is_right and (self._is_plain or self._solved.leads_to_zeros)

    @property
    def _is_signed(self) -> bool:
        """Whether the table has negative cells."""
        return self._patterns.n_negative > 0

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table."""
        return self._rows.n_rows, len(self._solved.factors.col_factor)

    @property
    def has_exposure(self) -> bool:
        """Whether the factors are rates: the fit was made with ``exposure=``."""
        return self._table.is_exposed

    @property
    def has_weights(self) -> bool:
        """Whether the fit was made with ``weights=`` or ``exposure=``."""
        return self._table.is_weighted

    @property
    def _n_given_up(self) -> int:
        return 0 if self._is_plain else self._fates.totals.n_given_up

    # ------------------------------------------------- what is known, and what not
    @property
    def _is_plain(self) -> bool:
        """Whether one block holds every row and column: the usual case."""
        return self._solved.is_plain

    @cached_property
    def _fates(self) -> Fates:
        return Fates(self._solved, self._rows)

    @cached_property
    def _columns(self) -> Columns:
        """The columns, which place rows."""
        plain, table = self._is_plain, self._table
        one = ColumnGraph(np.zeros(self.shape[1], np.int32), 1)
        graph = one if plain else self._fates.graph
        takes_negatives = self._is_signed or table.takes_negatives
        weighting = table.is_weighted, table.is_exposed
        return Columns(self.col_factor, graph, takes_negatives, *weighting)

    @cached_property
    def pattern(self) -> MissingPattern:
        """The shape of the holes."""
        pattern = MissingPattern.__new__(MissingPattern)
        pattern._set(
            self._patterns, self._rows, lambda: (self.n_blocks, self.n_undetermined)
        )
        return pattern

    @property
    def row_block(self) -> Any:
        """Block of each row, 0-based by first row; -1 for a row of zeros or of holes.

        As ``row_factor``, an array, or computed where it is looked at.
        """
        return self._blocks[0]

    @property
    def col_block(self) -> SmallInts:
        """Block of each column, as of the rows; -1 for one of zeros or of holes."""
        if not self._rows.is_kept:
            return self._fates.col_blocks()
        return self._blocks[1]

    @cached_property
    def _blocks(self) -> tuple[Any, SmallInts]:
        return self._fates.row_blocks()

    @overload
    def fate(self, i: Hashable, j: Hashable) -> Fate: ...
    @overload
    def fate(self, i: Any, j: Any) -> AnyArray: ...
    def fate(self, i: Any, j: Any) -> Any:
        """Fate of cell (i, j) if it is, or were, missing.

        Parameters
        ----------
        i, j : label, int, or array of these
            Row and column, looked up in ``row_labels`` and ``col_labels``. Where there
            are no labels, or no label is a number, whole numbers are positions,
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
        return self._fate(i, j)

    def _codes(self, index: Sequence[Ints]) -> SmallInts:
        return self._fates.of_cells(*index)

    def _column_names(self) -> Names:
        return Names(col_labels=self.col_labels)

    @cached_property
    def _finders(self) -> tuple[Lookup, Lookup]:
        n, m = self.shape
        rows = Lookup("row", self.row_labels, n)
        return rows, Lookup("column", self.col_labels, m)

    # ---------------------------------------------------------------- fitted values
    def predict(self, rows: Any, columns: Any = None, *, exposure: Any = None) -> Any:
        """Fitted values of cells that are named by their labels.

        Parameters
        ----------
        rows : frame, or label or array of labels
            A long frame with the two key columns of ``fit_long``; or, with
            ``columns``, the rows as in ``fate``.
        columns : label or array of labels, optional
            The columns, paired with the rows.
        exposure : number or array, optional
            For a fit with exposure: that of each pair, where it is not the one that
            the fit was made with.

        Returns
        -------
        ndarray, or float for a single cell
            One value per row of the frame, or of the shape of the labels, in units of
            X. NaN where the data determine none (``fate`` says why), for labels that
            the fit does not know, and where the exposure is not known.

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
        given: Any = rows, columns
        if columns is None:
            long = self._table.long
            given = read_keys(rows, long and long[:2])
        return predicted(self._finders, self._fitted, given, exposure)

    def _fitted(self, index: Sequence[Ints], exposure: Any = None) -> Floats:
        """Fitted values of cells by positions; NaN if undetermined."""
        rows, cols = index
        if self.has_exposure or exposure is not None:
            exposure = self._table.exposure_at(rows, cols, exposure)
        w, h = self._rows.at(rows), self.col_factor[cols]
        with np.errstate(over="ignore"):
            values = w * h if exposure is None else product(w, h, exposure)
        if not self._is_plain:
            decided(values, self._fates.of_cells(rows, cols))
        if exposure is not None:
            with_exposure(values, exposure)
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

    def _name(self, rows: Any, columns: Any, **more: Any) -> None:
        """Name the rows and columns; ``more`` is what else the table has."""
        table = replace(self._table, **more)
        table.row_labels = table.row_labels if rows is None else rows
        table.col_labels = table.col_labels if columns is None else columns
        self._table, self.col_labels = table, table.col_labels
        for cached in ("_finders", "_scatter"):
            self.__dict__.pop(cached, None)

    # ------------------------------------------------------------------- divergence
    @property
    def divergence(self) -> float:
        """Kullback-Leibler divergence on the observed cells, computed on access.

        NaN when negative cells were allowed, and for fits whose table cannot be read
        again, unless they were made with ``uncertainty=True`` (then it is known to
        2**-50 of the total, and 0 below that): ``divergence_of(X)`` computes it. A fit
        of files is saved with it if it was computed before. NotRepresentableError
        where it is above the largest float64.
        """
        return self._scatter.divergence

    def divergence_of(
        self, X: Any, *, weights: Any = None, exposure: Any = None
    ) -> float:
        """Compute the divergence between any rows and the fit.

        Parameters
        ----------
        X : table of shape (any, n_cols)
            Rows, each fitted by its own observed cells.
        weights, exposure : table, optional
            Weights or exposures of their cells, where the fit had them.

        Returns
        -------
        float
        """
        table, columns = self._opened(X, weights, exposure)
        if table is not None:
            return math.nan if self._is_signed else table.divergence(columns)
        rows, columns = self._read(X, weights, exposure)
        return math.nan if self._is_signed else divergence_of_rows(columns, rows)

    def _read(self, X: Any, weights: Any, exposure: Any) -> tuple[AnyRows, Columns]:
        """Rows with their weights, and the columns in their order."""
        rows, order = self._table.read(X, self.shape[1], weights, exposure)
        return rows, self._columns.in_order(order)

    def _opened(
        self, X: Any, weights: Any = None, exposure: Any = None
    ) -> tuple[Any, Columns]:
        """A table that lies elsewhere, or None, and the columns in its order."""
        table, order = self._table.opened(X, self.shape[1], weights, exposure)
        return table, self._columns.in_order(order)

    # ---------------------------------------------------------------------- how sure
    @cached_property
    def deviance_explained(self) -> float:
        """Share of the deviance from one constant per block that the factors explain.

        NaN where the divergence is, and for a table that is constant.
        """
        gained = self._scatter.gain
        total = self.deviance + gained
        return gained / total if total > 0.0 else math.nan

    @cached_property
    def _scatter(self) -> Scatter:
        """The statistics from which the errors of the fit are computed."""
        table = self._table
        again = getattr(table.engine, "fitted", None)
        if again is not None and not self._is_signed:
            elsewhere, in_order = self._opened(again)
            table = replace(table, **elsewhere.statistics(in_order))
        return Scatter(Information(self, table))

    def _own_cells(self, X: Any) -> Floats:
        """The cells of the table that was fitted; any other is refused."""
        cells, is_same = self._table.read_fitted(X, self.shape)
        if is_same is not False and not (self._is_signed or self._table.is_weighted):
            # Its columns have the same sums, and its rows the same factors.
            pairs = [(np.nansum(cells, axis=0), self._patterns.col_sums)]
            if self._rows.is_kept:
                w = self._columns.place(table_of(cells)).factors
                pairs.append((w, np.asarray(self.row_factor)))
            is_same = all(are_close(*pair, self.certificate) for pair in pairs)
        if is_same is False:
            raise ParameterError(
                "This is not the table that was fitted: cells differ or were changed "
                "after it was fitted, or rows are others or in another order. Fit this "
                "table, or pass the one that was fitted."
            )
        return cells

    def uncertainty(
        self, dispersion: Dispersion = "pearson", *, robust: bool = False
    ) -> Uncertainty:
        """Uncertainty of the fit: errors of cells, totals and indices; tests of fit.

        Parameters
        ----------
        dispersion : {"pearson", "deviance", "poisson"} or float, default="pearson"
            Variance of a cell of weight 1 over its mean: estimated by Pearson's
            statistic or by the deviance, 1, or a number that is known from elsewhere.
        robust : bool, default=False
            Estimate the errors of the column factors from the scatter of the rows:
            valid too where the cells of a row scatter together. What statsmodels calls
            ``cov_type="cluster"`` with ``use_correction`` (CR1): the covariance times
            G/(G - 1) · (N - 1)/(N - m) for N observed cells in G rows and m columns;
            the factors of the rows do not count, as they are nested in the clusters.
            Intervals use Student's t with G - 1 degrees of freedom.

        Returns
        -------
        Uncertainty

        Raises
        ------
        DataError
            The table has fewer than one degree of freedom, or, with negative cells, a
            fitted cell is below 0, or 0 where the cell is not.
        ParameterError
            The fit did not keep its data; or the table in memory, which is read again
            here, has other sums than when it was fitted. (A change that keeps the sum
            of the row factors may not be noticed: do not change a table that you have
            fitted, or fit a copy.)

        Examples
        --------
        >>> import numpy as np, a1gm
        >>> X = np.array([[20.0, 41.0, 57.0], [12.0, 18.0, 33.0], [9.0, 22.0, np.nan]])
        >>> u = a1gm.fit(X).uncertainty()
        >>> round(u.standard_error(2, 2), 1)
        4.3
        """
        return Uncertainty(self._scatter, dispersion, robust=robust)

    def residuals(
        self,
        X: Any,
        kind: Kind = "pearson",
        *,
        weights: Any = None,
        exposure: Any = None,
    ) -> Any:
        """Differences between the observed cells of any rows and their fitted values.

        Parameters
        ----------
        X : table of shape (any, n_cols)
            The table that was fitted, or other rows.
        kind : {"pearson", "deviance", "response"}, default="pearson"
            ``(x - f) / sqrt(f)``; the signed root of the cell's part of the deviance;
            or ``x - f``.
        weights, exposure : table, optional
            Weights or exposures of the cells of X, where the fit had them.

        Returns
        -------
        table
            Of the kind of X; missing cells stay missing.
        """
        rows, columns = self._read(X, weights, exposure)
        if (choice := getattr(rows, "choice", None)) is not None:
            X = select(X, choice.table)
        return residuals_of(columns, X, rows, kind)

    # ------------------------------------------------------------ using the fit
    def reconstruct(self, *, exposure: Any = None) -> Any:
        """Return the rank-1 table in units of X; NaN where no value is determined.

        Parameters
        ----------
        exposure : table, optional
            For a fit with exposure: other exposures than those it was made with.

        Returns
        -------
        ndarray of shape (n_rows, n_cols), or a frame
            A frame with its labels when the table was a frame.
        """
        w, h = np.asarray(self._rows.factor), self.col_factor
        exposures = self._table.exposures(self.shape, exposure)
        if exposures is not None:
            E = exposures.rows(slice(0, self.shape[0]))
            table = product(w[:, None], h, E)
        else:
            with np.errstate(over="ignore"):
                table = np.outer(w, h)
        if not self._is_plain:
            for start, stop in self._fates.pieces():
                # An observed cell always has a value, if only 0.
                decided(table[start:stop], self._fates.of_rows(start, stop))
        if exposures is not None:
            with_exposure(table, E)
        check_cells(table)
        backend = self._table.backend
        if backend is None:
            return table
        return table_frame(table, backend, self.row_labels, self.col_labels)

    def impute(
        self,
        X: Any,
        *,
        weights: Any = None,
        exposure: Any = None,
        row_totals: Any = None,
        col_totals: Any = None,
        round: Rounding = None,
        on_undetermined: OnUndetermined | None = None,
    ) -> Any:
        """Fill the missing cells of any rows with the columns of the fit.

        Parameters
        ----------
        X : table of shape (any, n_cols)
            The table that was fitted, or other rows. Each row is placed by its own
            observed cells, never by its position; the columns of a frame are found by
            name and may come in any order. X is not modified. A lazy frame (polars,
            DuckDB, Ibis, Spark) is filled lazily: no query runs here, and a row with a
            negative or infinite cell stays as it is.
        weights, exposure : table, optional
            Weights or exposures of the cells of X, where the fit had them; not needed
            for the table that was fitted.
        row_totals, col_totals : array, list, Series, dict or frame, optional
            Totals that the filled rows are to have, as in ``a1gm.scale``: the fills are
            scaled to what the observed cells leave of them.
        round : int or "auto", optional
            Digits after the point of the filled cells; ``"auto"`` rounds those to whole
            numbers whose column has only such. Observed cells stay as they are.
        on_undetermined : {"warn", "raise", "ignore"}, optional
            What to do about cells that the data do not determine; they stay missing.
            By default as said in ``fit``, except that a warning is not given twice:
            the fit has warned of the cells of the table that was fitted. Other rows,
            or a fit that was loaded or unpickled, get their warning here; those of a
            Dask collection when its partitions are computed.

        Returns
        -------
        table
            A copy of X, of the same kind, with its missing cells filled. Every value
            that X has is kept, also one of weight 0. Integers and decimals with missing
            cells become float64; a column whose known cells float64 would round
            (integers above 2**53) is refused.
        """
        check_on_undetermined(on_undetermined)
        check_rounding(round)
        table, columns = self._opened(X, weights, exposure)
        has_totals = row_totals is not None or col_totals is not None
        if has_totals:
            check_plain_fills(round)
        if table is not None:
            if round is not None or has_totals:
                raise ParameterError(
                    "A lazy collection is filled without round= and totals."
                )
            return table.fill(columns, on_undetermined, self._on_undetermined)
        rows, columns = self._read(X, weights, exposure)
        if has_totals:
            return self._fill_to(X, rows, columns, row_totals, col_totals)
        return self._fill(X, rows, columns, round, on_undetermined)

    def _fill_to(
        self,
        X: Any,
        rows: AnyRows,
        columns: Columns,
        row_totals: Any,
        col_totals: Any,
    ) -> Any:
        """Fill a table that was read as ``rows`` to totals."""
        totals = row_totals, col_totals
        fills = fills_to_totals(columns.place(rows), *totals, "the table", self.tol)
        return fill_table(X, fills).table

    def _fill(
        self,
        X: Any,
        rows: AnyRows,
        columns: Columns,
        round: Rounding = None,
        on_undetermined: OnUndetermined | None = None,
    ) -> Any:
        """Fill a table that was read as ``rows``, and warn about cells left missing."""
        placed = columns.place(rows)
        filled = fill_table(
            X, placed if round is None else rounded_fills(placed, round)
        )
        warn_left(
            filled.left,
            rows,
            on_undetermined,
            self._on_undetermined,
            lambda n: n == self.n_undetermined and self._table.is_same(rows),
        )
        return filled.table

    def transform(self, X: Any, *, weights: Any = None, exposure: Any = None) -> Any:
        """Row factors of any rows with these columns: ``r_i / sum of observed h_j``.

        Parameters
        ----------
        X : table of shape (any, n_cols)
            Rows, which may be new and have other holes.
        weights, exposure : table, optional
            Weights or exposures of the cells of X, where the fit had them.

        Returns
        -------
        ndarray of shape (any,)
            NaN for a row with nothing to place it by, and for one with positive cells
            in several blocks, which share no scale; a warning says which. Of a lazy
            frame a lazy frame: its columns that are not the table, and ``row_factor``.
        """
        table, columns = self._opened(X, weights, exposure)
        if table is not None:
            return table.factors(columns, warns=True)
        rows, columns = self._read(X, weights, exposure)
        placed = columns.place(rows)
        if text := text_of_unplaced_rows(placed):
            warn_user(text, EmptyLineWarning)
        return placed.factors

    def to_sql(
        self, table: str, *, dialect: str, others: Mapping[str, str] | None = None
    ) -> str:
        """The query that fills a table of a database, as text.

        Parameters
        ----------
        table : str
            Name of the table, which has the columns of the fit.
        dialect : str
            The database, as Ibis calls it: ``"postgres"``, ``"duckdb"``, ``"sqlite"``,
            ``"snowflake"``, ``"bigquery"``, ``"pyspark"``, ... The error of any other
            lists them all.
        others : mapping of name to type, optional
            Further columns of the table, which are selected as they are, with their
            types: ``{"shop": "string", "id": "int64"}``.

        Returns
        -------
        str
            A SELECT: run it with any driver, or make a table of it with ``CREATE TABLE
            filled AS``. Cells that the data do not determine stay NULL.

        Raises
        ------
        MissingExtraError
            Ibis is not installed; it writes the text.

        Examples
        --------
        >>> import pandas as pd, sqlite3, a1gm
        >>> sales = pd.DataFrame({"mon": [1.0, 2.0], "tue": [2.0, None]})
        >>> query = a1gm.fit(sales).to_sql("sales", dialect="sqlite")
        >>> with sqlite3.connect(":memory:") as connection:
        ...     _ = sales.to_sql("sales", connection, index=False)
        ...     connection.execute(query).fetchall()
        [(1.0, 2.0), (2.0, 4.0)]
        """
        if self._table.engine is None or self._table.is_weighted:
            raise ParameterError(
                "A query places rows without weights or exposure, and this fit had "
                "them. Fit the table without them, or fill it in memory."
            )
        names = self.col_labels
        query = table, dialect, others or {}
        text: str = self._table.engine.to_sql(self._columns, names, *query)
        return text

    def _long_table(self) -> tuple[Long | None, int]:
        table = self._table
        if table.long is None:
            return None, 0
        if table.source is None:
            raise ParameterError(
                "This fit was loaded or unpickled, and the data are not in the file. "
                "fit.predict(frame) gives the fitted values of the pairs in a frame."
            )
        long = Long(table.long, table.key_values or (), table.backend)
        return long, table.source.n_observed

    def _filled_cells(
        self, only_missing: bool, interval: float | None
    ) -> Iterator[tuple[Any, ...]]:
        bounds = None if interval is None else self.uncertainty()._own_bounds(interval)
        yield from filled_pairs(self, only_missing, bounds)

    def _factor_frames(self, backend: str | None) -> FactorFrames:
        return factor_frames(self, backend or self._table.backend)

    def _to_arrays(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """The fit as plain values and arrays, to be saved."""
        options = {"tol": float(self.tol), "on_undetermined": self._on_undetermined}
        table, solved, rows = self._without_data(), self._solved, self._rows
        is_large = table.in_file and self._patterns.n_bytes > MOST_BYTES
        # The fates of rows of zeros, which a long table has, depend on their cells.
        is_long = table.long is not None and not self._is_plain
        if is_large and not (is_long and bool((rows.factor == 0.0).any())):
            solved, rows = self._without_patterns()
        return fit_to_arrays(solved, rows, table, **options)

    def _without_patterns(self) -> tuple[Solved, FitRows]:
        """What places rows: the columns, and the rows of a long table by their keys."""
        rows, patterns, fates = self._rows, self._patterns, self._fates
        totals = Totals(0, 0, np.zeros(len(FATES), np.int64))
        totals = totals if self._is_plain else fates.totals
        counts = (*self.shape[::-1], self.pattern.n_missing, *totals)
        margins = patterns.col_sums, patterns.n_negative
        gone: Any = PatternsGone(*counts, *margins)
        keeps_rows = rows.is_held and self._table.long is not None
        component = np.zeros(0, np.int32)
        if keeps_rows:
            component = fates.component_of_rows(0, rows.n_rows)
        factors = replace(
            self._solved.factors,
            pattern_factor=np.zeros(0),
            pattern_scale=np.zeros(0),
            pattern_block=component,
            gap=self.certificate,
            all_inside=self._is_plain,
        )
        found = rows.found if keeps_rows else None
        kept = FitRows(gone, found, is_kept=keeps_rows)
        return Solved(factors, gone, graph=fates.graph), kept

    def _without_data(self) -> Table:
        """The table without its data, for a fit that is saved or sent."""
        table, kept = self._table, dict[str, Any]()
        known = vars(self._scatter) if "_scatter" in vars(self) else {}
        for name in STATISTICS if table.source is not None else ():
            is_gain = name == "gain"
            follows = is_gain and not table.is_weighted  # from the margins and rows
            is_needed = is_gain and "divergence" in known  # rows of files are not kept
            if name in known or (not follows if self._rows.is_held else is_needed):
                with suppress(NotRepresentableError, ParameterError):
                    kept[name] = getattr(self._scatter, name)
        return replace(table, source=None, **kept)

    # ------------------------------------------------------------------ appearance
    def summary(self) -> dict[str, str]:
        """The fit in words, line by line."""
        return {
            "table": "{} x {}".format(*self.shape),
            "missing": self._missing_in_words(),
            **self._quality(),
            "blocks": str(self.n_blocks),
            **self._lost(self.n_undetermined),
        }

    def _missing_in_words(self) -> str:
        patterns: Any = self._patterns
        is_gone = isinstance(patterns, PatternsGone)
        n = patterns.n_missing if is_gone else self.pattern.n_missing
        filled = f", {n - self.n_undetermined:,} with a value" if n else ""
        return f"{n:,} of {counted(math.prod(self.shape), 'cell')}{filled}"

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the fit without the data, but with their divergence."""
        names = ("_solved", "_patterns", "_rows", "_on_undetermined", "tol")
        kept = {name: self.__dict__[name] for name in (*names, "col_labels")}
        return {**kept, "_table": self._without_data()}
