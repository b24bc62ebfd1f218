"""What a fit gives: factors, what they are worth, and the holes filled."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from a1gm._base.float_range import check_cells, product
from a1gm._base.types import Floats, OnUndetermined
from a1gm._base.warn import warn_user
from a1gm._base.words import counted
from a1gm._fit.divergence import divergence_of_rows
from a1gm._fit.fates import UNBOUNDED, ZERO
from a1gm._fit.fill import fill_table
from a1gm._fit.frames import FactorFrames, factor_frames, table_frame
from a1gm._fit.long import filled_long
from a1gm._fit.messages import (
    Voice,
    check_telling,
    tell_undetermined,
    text_of_left,
)
from a1gm._fit.new_rows import NewRows
from a1gm._fit.residuals import Kind, residuals_of
from a1gm._fit.rounding import Rounding, check_rounding, values_rounded
from a1gm._fit.rows_to_fill import RowsToFill
from a1gm._fit.save import save_fit
from a1gm._fit.show import html_table, one_line, solver_in_words
from a1gm._fit.solved_table import SolvedTable, rule_of, source_of, what_was_told
from a1gm._fit.sure import scatter
from a1gm._fit.sure.arguments import Dispersion
from a1gm._fit.sure.information import Information
from a1gm._fit.sure.uncertainty import Uncertainty
from a1gm._fit.table import Table
from a1gm._rows.frames import select
from a1gm._rows.read import AnyRows
from a1gm.exceptions import EmptyLineWarning, NotRepresentableError, ParameterError

__all__ = [
    "RankOneFit",
    "Table",
    "Voice",
    "rule_of",
    "source_of",
    "what_was_told",
]


class RankOneFit(SolvedTable):
    """The best rank-1 explanation of a table, ``X[i, j] ≈ w[i] h[j]``.

    Made by ``a1gm.fit`` and its kin; not meant to be constructed by hand.

    Attributes
    ----------
    row_labels, col_labels
        The table's own row and column names, or None.
    tol : float
        The certificate that was asked for.
    """

    # ------------------------------------------------------------------- divergence
    @cached_property
    def divergence(self) -> float:
        """Kullback-Leibler divergence on the observed cells, computed when asked for.

        NaN when negative cells were allowed, and for fits whose table cannot be read
        again, unless they were made with ``uncertainty=True`` (then it is known to
        2**-50 of the total, and 0 below that): ``divergence_of(X)`` computes it. A fit
        of files is saved with it if it was asked for before. NotRepresentableError
        where it is above the largest float64.
        """
        return scatter.divergence(self)

    @property
    def _known_divergence(self) -> float:
        """The divergence; NaN where it cannot be computed."""
        try:
            return self.divergence
        except (NotRepresentableError, ParameterError):
            return math.nan

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
        engine, rule = self._engine_for(X, weights, exposure)
        if engine is not None:
            return math.nan if self._table.is_signed else engine.divergence(X, rule)
        source, V, rule = self._read(X, weights, exposure)
        if self._table.is_signed:
            return math.nan
        return divergence_of_rows(rule, source, V)

    def _read(
        self, X: Any, weights: Any, exposure: Any
    ) -> tuple[AnyRows, Any, NewRows]:
        """Rows, their weights, and the rule for columns in their order."""
        source, V, order = self._table.read(X, self.shape[1], weights, exposure)
        return source, V, self._new_rows.in_order(order)

    def _engine_for(self, X: Any, weights: Any, exposure: Any) -> tuple[Any, NewRows]:
        engine, order = self._table.engine_for(X, self.shape[1], weights, exposure)
        return engine, self._new_rows.in_order(order)

    # ---------------------------------------------------------------------- how sure
    @property
    def deviance(self) -> float:
        """Twice the divergence."""
        return 2.0 * self.divergence

    @cached_property
    def deviance_explained(self) -> float:
        """Share of the deviance from one constant per block that the factors explain.

        NaN where the divergence is, and for a table that is constant.
        """
        gained = scatter.gain_over_constants(self)
        total = self.deviance + gained
        return gained / total if total > 0.0 else math.nan

    @cached_property
    def _information(self) -> Information:
        """What the errors of the fit are computed from."""
        return Information(self)

    def _has_negative_fit(self) -> bool:
        """Whether a fitted cell, observed or not, is below 0."""
        h, block = self._solved.factors.col_factor, self.col_block
        w, row_block = self._solved.factors.line_factor, None
        if self._rows.is_kept:
            w, row_block = np.asarray(self.row_factor), self.row_block
        for k in range(self.n_blocks):
            rows, columns = w if row_block is None else w[row_block == k], h[block == k]
            ends = np.outer(
                [rows.min(initial=0.0), rows.max(initial=0.0)],
                [columns.min(initial=0.0), columns.max(initial=0.0)],
            )
            if ends.min() < 0.0:
                return True
        return False

    def _own_cells(self, X: Any) -> Floats:
        """The cells of the table that was fitted; any other is refused.

        A table that the fit does not hold is recognised by its row factors and the
        sums of its columns.
        """
        source, is_same = self._table.fitted(X, self.shape)
        if type(source) is not type(self._table.source) and not self._table.is_signed:
            sums = self._solved.statistics.col_sums, self._table.exponent
            is_same &= self._is_close(_column_sums(source), np.ldexp(*sums))
            if self._rows.is_kept and is_same:
                w = self._new_rows.place(source, self._table.weights).factors
                is_same &= self._is_close(w, np.asarray(self.row_factor))
        if not is_same:
            raise ParameterError(
                "This is not the table that was fitted: cells differ, or rows are "
                "others or in another order. Fit this table, or pass the one that was "
                "fitted."
            )
        return source.rows(slice(0, self.shape[0]))

    def _is_close(self, seen: Floats, fitted: Floats) -> bool:
        """Whether margins of a table that is read again are those of the fit."""
        known = np.isfinite(seen) & np.isfinite(fitted)
        rtol = max(1e-9, 10.0 * self.certificate)
        atol = rtol * float(np.abs(fitted).max(initial=0.0, where=known))
        return bool(np.allclose(seen[known], fitted[known], rtol=rtol, atol=atol))

    def uncertainty(
        self, dispersion: Dispersion = "pearson", *, robust: bool = False
    ) -> Uncertainty:
        """How sure the fit is: errors of cells, totals and indices; tests of fit.

        Parameters
        ----------
        dispersion : {"pearson", "deviance", "poisson"} or float, default="pearson"
            Variance of a cell of weight 1 over its mean: estimated by Pearson's
            statistic or by the deviance, 1, or a number that is known from elsewhere.
        robust : bool, default=False
            Estimate the errors of the column factors from the scatter of the rows:
            valid too where the cells of a row scatter together.

        Returns
        -------
        Uncertainty

        Raises
        ------
        DataError
            The table has fewer than one degree of freedom, or, with negative cells, a
            fitted cell is below 0.
        ParameterError
            The fit did not keep its data; or the table in memory, which is read again
            here, has other sums than when it was fitted. (A change that keeps the sum
            of the row factors and of the columns is not noticed: do not change a table
            that you have fitted, or fit a copy.)

        Examples
        --------
        >>> import numpy as np, a1gm
        >>> X = np.array([[20.0, 41.0, 57.0], [12.0, 18.0, 33.0], [9.0, 22.0, np.nan]])
        >>> u = a1gm.fit(X).uncertainty()
        >>> round(u.standard_error(2, 2), 1)
        4.3
        """
        return Uncertainty(self, dispersion, robust=robust)

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
        source, V, rule = self._read(X, weights, exposure)
        if (choice := getattr(source, "choice", None)) is not None:
            X = select(X, choice.table)
        return residuals_of(rule, X, source, V, kind)

    # ------------------------------------------------------------ using the fit
    def reconstruct(self, *, exposure: Any = None) -> Any:
        """Return the rank-1 table; NaN where the data do not determine a value.

        Parameters
        ----------
        exposure : table, optional
            For a fit with exposure: other exposures than those it was made with.

        Returns
        -------
        ndarray of shape (n_rows, n_cols), or a frame
            A frame with its labels when the table was a frame.
        """
        w, h = np.asarray(self._rows.factor), self._solved.factors.col_factor
        exposures = self._table.exposures(self.shape, exposure)
        if exposures is not None:
            E = exposures.rows(slice(0, self.shape[0]))
            table = product(w[:, None], h, E)
        else:
            with np.errstate(over="ignore"):
                table = np.outer(w, h)
        if not self._is_plain:
            for start, stop in self._fates.pieces():
                fates = self._fates.of_rows(start, stop)
                table[start:stop][fates == ZERO] = 0.0
                # An observed cell always has a value, if only 0.
                table[start:stop][fates >= UNBOUNDED] = np.nan
        if exposures is not None:
            table[E == 0.0] = 0.0
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
        round: Rounding = None,
        on_undetermined: OnUndetermined | None = None,
    ) -> Any:
        """Fill the missing cells of any rows with the columns of the fit.

        Parameters
        ----------
        X : table of shape (any, n_cols)
            The table that was fitted, or other rows. Each row is placed by its own
            observed cells, never by its position; the columns of a frame are found by
            name and may come in any order. X is not modified.
        weights, exposure : table, optional
            Weights or exposures of the cells of X, where the fit had them; not needed
            for the table that was fitted.
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
            that X has is kept, also one of weight 0.
        """
        check_telling(on_undetermined)
        check_rounding(round)
        engine, rule = self._engine_for(X, weights, exposure)
        if engine is not None:
            if round is not None:
                raise ParameterError("A lazy collection is filled without round=.")
            return engine.fill(X, rule, on_undetermined, self._on_undetermined)
        source, V, rule = self._read(X, weights, exposure)
        rows = RowsToFill(rule, source, V)
        values = values_rounded(rows.values, source, round)
        one_pass = rows.one_pass if round is None else None
        filled = fill_table(X, source, values, one_pass)
        n_left, first_left = filled.left
        if first_left is None:
            return filled.table
        if on_undetermined is not None or not self._has_warned(n_left, source):
            how = on_undetermined or self._on_undetermined
            where = source.where(*first_left)
            text = text_of_left(
                self._fates.totals.fates,
                n_left,
                where,
                is_exposed=self._table.is_exposed,
                is_listed=self._rows.is_kept,
            )
            tell_undetermined(text, how)
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
            in several blocks, which share no scale; a warning says which.
        """
        engine, rule = self._engine_for(X, weights, exposure)
        if engine is not None:
            return engine.factors(X, rule, tells=True)
        source, V, rule = self._read(X, weights, exposure)
        placed = rule.place(source, V)
        text = placed.unplaced()
        if text:
            warn_user(text, EmptyLineWarning)
        return placed.factors

    def fill_long(
        self, *, only_missing: bool = True, max_rows: int = 100_000_000
    ) -> Any:
        """The missing pairs of a long table with their values, long again.

        Parameters
        ----------
        only_missing : bool, default=True
            Whether to give the missing pairs only; else all pairs, the observed ones
            as they were.
        max_rows : int, default=100,000,000
            More rows than this are refused, before any is made.

        Returns
        -------
        frame
            Of the library and with the column names of the frame that was fitted, row
            by row in the order of the fit. Pairs that the data do not determine have
            no value.

        Raises
        ------
        TableTooLargeError
            There would be more than ``max_rows`` rows; ``predict`` gives the values of
            the pairs that are needed.

        Examples
        --------
        >>> import polars as pl, a1gm
        >>> marks = pl.DataFrame(
        ...     {"who": ["ann", "ann", "bob"], "what": [1, 2, 1], "mark": [4, 8, 3]}
        ... )
        >>> fit = a1gm.fit_long(marks, keys=["who", "what"], value="mark")
        >>> fit.fill_long().rows()
        [('bob', 2, 6.0)]
        """
        return filled_long(
            self._table,
            self.shape,
            self._fitted,
            only_missing=only_missing,
            max_rows=max_rows,
        )

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
        """What is written to a file; see ``_fit.save``."""
        return {
            "solved": self._solved,
            "rows": self._rows,
            "table": self._table,
            "tol": self.tol,
            "on_undetermined": self._on_undetermined,
            "certificate": self.certificate,
            **self._kept_scatter(),
            "divergence": self._known_divergence
            if self._is_held
            else self.__dict__.get("divergence", math.nan),
            "row_labels": self._table.row_labels,
            "col_labels": self.col_labels,
            "graph": self._fates.graph,
            "totals": self._fates.totals,
        }

    def _kept_scatter(self) -> dict[str, Any]:
        """Pearson's statistic and the gain over constants of a table left behind."""
        table = self._table
        kept: dict[str, Any] = {"pearson_chi2": table.pearson_chi2, "gain": table.gain}
        if self._is_held and table.source is not None:
            with suppress(NotRepresentableError, ParameterError):
                kept["pearson_chi2"] = scatter.pearson_chi2(self)
                if table.is_weighted:  # else it follows from the margins
                    kept["gain"] = scatter.gain_over_constants(self)
        return kept

    def _has_warned(self, n_left: int, source: AnyRows) -> bool:
        """Whether the fit has warned of the cells that stay missing in this table."""
        if self._on_undetermined != "warn":
            return False
        return n_left == self.n_undetermined and self._table.is_same(source)

    # ------------------------------------------------------------------ appearance
    def summary(self) -> dict[str, str]:
        """The fit in words, line by line."""
        lines = {
            "table": "{} x {}".format(*self.shape),
            "solver": solver_in_words(self.solver, self.n_iter),
            "certificate": f"{self.certificate:.1e}",
            "cell error": f"{self.cell_error:.1e}",
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
        """Pickle the fit without the data, but with their divergence."""
        kept = self._kept_scatter()
        state = self.__dict__.copy()
        if self._is_held and self._table.source is not None:
            state["divergence"] = self._known_divergence
        state["_table"] = replace(self._table, source=None, weights=None, **kept)
        for cached in ("_information", "_fates", "_new_rows", "_finders", "pattern"):
            state.pop(cached, None)
        return state


def _column_sums(source: AnyRows) -> Floats:
    sums: Floats = np.zeros(source.n_cols)
    for _, piece in source.blocks():
        sums += np.nansum(piece, axis=0)
    return sums
