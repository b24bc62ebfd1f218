"""The content of a report: assessment, totals, residuals, unknown cells, notes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._api.assess import Assessment, Trial, assess, chosen_lines
from a1gm._api.fit import FitOptions, fit_rows
from a1gm._api.fit_file import files_of
from a1gm._base.types import Bools, Floats, Ints
from a1gm._base.words import counted, listed, shown
from a1gm._fit.messages import text_of_convergence
from a1gm._fit.place import FATES
from a1gm._rows.files.table import row_names
from a1gm._rows.hints import hints_of_array
from a1gm._rows.labels import follow_in_order, plain_text
from a1gm._rows.rows import Rows, table_of
from a1gm._rows.sparse import SparseRows
from a1gm._rows.weights import with_weights
from a1gm.exceptions import (
    A1gmError,
    A1gmWarning,
    ConvergenceWarning,
    DataHintWarning,
    ParameterError,
    Part,
)
from a1gm.tensor.result import TensorFit

if TYPE_CHECKING:
    from a1gm._fit.fit import RankOneFit
    from a1gm._fit.sure.uncertainty import Uncertainty
    from a1gm._rows.files.table import TableFiles

MOST_CELLS = 2_000_000  # of a table that a page is about as a whole
_ROUNDING = 1e-9  # of a cell: a smaller difference is not a residual

#: Why a missing cell has no value, by its fate.
WHY = {
    "unbounded": "because of an observed zero, a larger value always fits better",
    "undetermined": "no chain of observed cells connects the rows and the columns",
}


@dataclass(frozen=True)
class Findings:
    """A table, its fit, and what follows from both.

    A cell of weight 0 counts as missing, as it does in the totals of the fit.
    """

    X: Floats
    fit: RankOneFit
    row_names: Sequence[str]
    col_names: Sequence[str]
    is_ordered: bool  # columns follow one another
    n_rows: int  # of the table, of which X may be a sample

    @classmethod
    def of(
        cls,
        X: Any,
        fit: RankOneFit,
        row_names: Sequence[str] | None,
        col_names: Sequence[str] | None,
        sample: int | None = None,
    ) -> Findings:
        """Read the table, or a sample of its rows, and name the rows and columns."""
        source = fit._table.source if X is None else table_of(fit._own_cells(X))
        if not hasattr(source, "in_pieces"):
            raise ParameterError("This fit has not kept its table: pass it as X.")
        chosen, (n_rows, n_cols) = rows_of_page(source, sample), fit.shape
        labels = fit.col_labels if col_names is None else col_names
        columns = _names(col_names, fit.col_labels, np.arange(n_cols), n_cols, "column")
        own = _row_labels(fit, chosen) if row_names is None else None
        rows = _names(row_names, own, chosen, n_rows, "row")
        cells = source.take(chosen)
        # Weights of listed cells are not those of a dense table.
        if len(chosen) < n_rows or isinstance(fit._table.weights, SparseRows):
            fit = _fit_rows(fit, cells, chosen)
        return cls(cells, fit, rows, columns, follow_in_order(labels), n_rows)

    @property
    def sample_in_words(self) -> str:
        """Which rows the page is about; empty if it is about all of them."""
        return about_rows(len(self.X), self.n_rows)

    def factor(self, kind: str) -> tuple[Floats, Sequence[str]]:
        """The factors of the rows or of the columns, and their names."""
        if kind == "row":
            return np.asarray(self.fit.row_factor), self.row_names
        return self.fit.col_factor, self.col_names

    # ----------------------------------------------------------- missing and filled
    @cached_property
    def weights(self) -> dict[str, Any]:
        """Weights or exposures of all cells, as an option; empty without them."""
        V = self.fit._table.weights
        name = "exposure" if self.fit.has_exposure else "weights"
        if V is None:
            return {}
        cells = np.asarray(V.rows(slice(0, len(self.X))))
        return {name: cells if self.fit.has_exposure else np.nan_to_num(cells)}

    @cached_property
    def is_ignored(self) -> Bools:
        """True where a cell is observed, but has weight or exposure 0."""
        weights: Floats = next(iter(self.weights.values()), np.ones(()))
        return ~np.isnan(self.X) & ~(weights > 0.0)

    @cached_property
    def missing(self) -> Bools:
        """True where a cell is missing, or has weight 0."""
        return np.isnan(self.X) | (self.is_ignored & (not self.fit.has_exposure))

    @cached_property
    def known(self) -> Floats:
        """The known cells, NaN where one is missing."""
        return np.where(self.missing, np.nan, self.X)

    @cached_property
    def filled(self) -> Floats:
        """The table with its missing cells filled; NaN where they stay missing."""
        how: Any = {"on_undetermined": "ignore", **self.weights}
        return np.asarray(self.fit.impute(self.known, **how))

    @cached_property
    def is_filled(self) -> Bools:
        """True where a missing cell got a value."""
        return self.missing & ~np.isnan(self.filled)

    @cached_property
    def n_filled(self) -> int:
        """Missing cells that got a value."""
        return int(np.count_nonzero(self.is_filled))

    @property
    def n_unknown(self) -> int:
        """Missing cells that stay missing."""
        return int(np.count_nonzero(self.missing)) - self.n_filled

    # ------------------------------------------------------------------- uncertainty
    @cached_property
    def _uncertainty(self) -> tuple[Uncertainty | None, str]:
        try:
            with np.errstate(all="ignore"):  # data near 1e±300 have no errors
                sure = self.fit.uncertainty()
                sure.totals("all")
        except A1gmError as error:
            return None, error.render(with_advice=False)
        return sure, ""

    @property
    def sure(self) -> Uncertainty | None:
        """The uncertainty of the fit, if it has one."""
        return self._uncertainty[0]

    @property
    def why_not_sure(self) -> str:
        """The reason why the fit has no uncertainty."""
        return self._uncertainty[1]

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """Bounds of the filled cells, at the 95 % level; NaN without uncertainty."""
        if self.sure is None:
            return (np.full(self.X.shape, np.nan),) * 2
        return self.sure.interval(self.known, **self.weights)

    def totals(self) -> tuple[Floats, Floats, float, float]:
        """Sums of the filled cells of each row and of all, with their errors or NaN."""
        if self.sure is not None:
            rows, every = self.sure.totals("row"), self.sure.totals("all")
            return rows.value, rows.se, float(every.value[0]), float(every.se[0])
        value = np.where(self.is_filled, self.filled, 0.0).sum(axis=1)
        return value, np.full(len(value), np.nan), float(value.sum()), math.nan

    @cached_property
    def assessment(self) -> tuple[Assessment | None, str]:
        """The assessment on hidden cells, or the reason why it failed."""
        how: dict[str, Any] = {"ordered": self.is_ordered, **self.weights}
        how["negatives"] = "allow" if np.nanmin(self.X) < 0.0 else "raise"
        how["sample"] = max(self.X.shape) if self.sample_in_words else None
        try:
            with np.errstate(all="ignore"):  # as above
                return assess(self.X, random_state=0, **how), ""
        except A1gmError as error:
            return None, error.render(with_advice=False)

    # ---------------------------------------------------------------------- residuals
    @cached_property
    def _residuals(self) -> tuple[Floats, Floats]:
        """Residuals in standard deviations, and as differences."""
        dispersion = self.sure.dispersion if self.sure is not None else 1.0
        pearson = np.asarray(self.fit.residuals(self.X, "pearson"))
        response = np.asarray(self.fit.residuals(self.X, "response"))
        with np.errstate(invalid="ignore"):
            is_rounding = np.abs(response) <= _ROUNDING * np.abs(self.X)
        pearson[np.isinf(pearson)] = np.nan  # among negative cells the fit may be 0
        scaled = pearson / math.sqrt(dispersion or 1.0)
        return np.where(is_rounding, 0.0, scaled), response

    @property
    def deviations(self) -> Floats:
        """Residuals of the cells in their standard deviations."""
        return self._residuals[0]

    def misfits(self, most: int) -> dict[str, Any]:
        """The worst cells, as columns of a table."""
        scaled, response = self._residuals
        size = np.nan_to_num(np.abs(scaled)).ravel()
        chosen = np.argpartition(-size, min(most, size.size - 1))[:most]
        chosen = chosen[np.lexsort((chosen, -size[chosen]))]
        i, j = np.unravel_index(chosen[size[chosen] > 0.0], self.X.shape)
        return {
            "row": [self.row_names[k] for k in i.tolist()],
            "column": [self.col_names[k] for k in j.tolist()],
            "observed": self.X[i, j],
            "fitted": self.X[i, j] - response[i, j],
            "residual": scaled[i, j],
        }

    @property
    def n_without_residual(self) -> int:
        """Observed cells whose fitted value is 0 or less."""
        is_there = ~self.missing & ~self.is_ignored
        return int(np.count_nonzero(np.isnan(self.deviations) & is_there))

    # ------------------------------------------------------------------------ unknown
    def unknown(self) -> Iterator[tuple[str, int, str]]:
        """Where cells cannot be known, how many, and why.

        Empty rows and columns come first, then the blocks.
        """
        cells, why = self.fit.undetermined, "nothing is observed in it"
        rows, columns = np.isnan(self.factor("row")[0]), np.isnan(self.fit.col_factor)
        for k in np.flatnonzero(rows).tolist():
            yield _called("row", [self.row_names[k]]), len(columns), why
        for k in np.flatnonzero(columns).tolist():
            where = _called("column", [self.col_names[k]])
            yield where, int(np.count_nonzero(~rows)), why
        rest = np.flatnonzero(~(rows[cells.row] | columns[cells.column]))
        # All rows of a block have the same fate in a column of another one.
        keys = self.fit.row_block[cells.row[rest]] * len(FATES) + cells.code[rest]
        rest = rest[np.argsort(keys, kind="stable")]
        ends = np.cumsum(np.unique(keys, return_counts=True)[1])
        for some in np.split(rest, ends[:-1]) if len(rest) else ():
            i, j = np.unique(cells.row[some]), np.unique(cells.column[some])
            in_rows = _called("row", [self.row_names[k] for k in i.tolist()])
            in_columns = _called("column", [self.col_names[k] for k in j.tolist()])
            kind = cells[int(some[0])].kind
            yield f"{in_rows} × {in_columns}", len(some), f"{kind}: {WHY[kind]}"


def _called(noun: str, names: Sequence[str]) -> str:
    """Name some rows or columns; those without a name are called "row 3" already."""
    if len(names) > 1:
        return f"{counted(len(names), noun)} ({listed(names, 4)})"
    return names[0] if names[0].startswith(f"{noun} ") else f"{noun} {names[0]}"


def _names(
    given: Sequence[str] | None, labels: Any, chosen: Ints, n: int, kind: str
) -> Sequence[str]:
    """Names of the chosen of ``n`` rows or columns, by those given or by labels."""
    if given is not None and (isinstance(given, str) or len(given) != n):
        raise ParameterError(
            f"{kind[:3]}_names must be a list of {counted(n, 'name')}, one for each "
            f"{kind}. Leave it out to show the labels of the fit."
        )
    names = labels if given is None else [given[k] for k in chosen.tolist()]
    if names is None:
        return [f"{kind} {k}" for k in chosen.tolist()]
    return [shown(plain_text(name)) or "(no name)" for name in names]


# ---------------------------------------------------------------------- sampled rows
def rows_of_page(source: Any, sample: int | None) -> Ints:
    """The rows that a page is about: all, or of a large table those of ``assess``."""
    if sample is not None:
        Trial(sample=sample)  # checks it
    return chosen_lines(source, sample, MOST_CELLS)


def about_rows(n: int, n_rows: int) -> str:
    """The sentence about a page that is about ``n`` of the rows; empty for all."""
    if n == n_rows:
        return ""
    return (
        f"This page is about {n:,} of the {n_rows:,} rows, drawn at random: totals are "
        "those of these rows."
    )


def _row_labels(fit: RankOneFit, rows: Ints) -> Any:
    """Labels of some rows, or their lines in a file; None without any."""
    if (files := files_of(fit)) is not None:
        return row_names(files, rows)
    labels = fit.row_labels
    return None if labels is None else [labels[k] for k in rows.tolist()]


def _fit_rows(fit: RankOneFit, cells: Floats, rows: Ints) -> RankOneFit:
    """Fit some rows of a table as the table was fitted."""
    table = fit._table
    source = table_of(cells)
    if table.weights is not None:
        V = table.weights.take(rows)
        if fit.has_exposure:
            source = with_weights(source, "exposure", V)
        else:
            source = with_weights(source, "weights", np.nan_to_num(V))
    options = FitOptions("allow" if table.takes_negatives else "raise", "ignore")
    return fit_rows(source, options, policy=None)


# ------------------------------------------------------------------ notes and order
def warnings_of(
    fit: RankOneFit | TensorFit, files: TableFiles | None = None
) -> Sequence[A1gmWarning]:
    """Warnings about the table when it was read, and hints about an array."""
    if files is not None:
        return files.warned
    if isinstance(fit, TensorFit) or not isinstance(fit._table.source, Rows):
        return ()
    rows = fit._table.source
    is_array = rows.backend is None and fit._table.long is None
    return hints_of_array(rows) if is_array else rows.hints


def may_be_misread(fit: RankOneFit | TensorFit) -> bool:
    """Whether a warning is about what the table means, so that no verdict counts."""
    files = None if isinstance(fit, TensorFit) else files_of(fit)
    return any(
        isinstance(warning, DataHintWarning) and not warning.is_inferred
        for warning in warnings_of(fit, files)
    )


def notes_of(
    fit: RankOneFit | TensorFit,
    files: TableFiles | None = None,
    style: Callable[[Part], str] = str,
) -> Iterator[str]:
    """Texts of the warnings that a reader should see before the numbers.

    ``files`` are the files of the table, if the fit does not have them.
    """
    if doubt := text_of_convergence(fit):
        yield ConvergenceWarning(doubt).render(style)
    choice = None
    fitted_files = None
    if not isinstance(fit, TensorFit):
        choice = fit._table.choice
        fitted_files = files_of(fit)
    files = files or fitted_files
    for warning in warnings_of(fit, files):
        text = warning.at("").render(style)
        yield text[0].upper() + text[1:]
    if files is not None and (hidden := files.found.hidden):
        yield f"Hidden files left out: {listed(hidden, 5)}."
    names = [] if choice is None else [str(name) for name in choice.kept]
    if fitted_files is not None:
        choice = fitted_files.choice
        inferred = () if choice is None else choice.inferred  # as above
        names = [name for name in fitted_files.left_out if name not in inferred]
    if names:
        yield f"Columns that are not part of the table: {listed(names)}."
