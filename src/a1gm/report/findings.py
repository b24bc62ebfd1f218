"""The content of a report: assessment, totals, residuals, unknown cells, notes."""

from __future__ import annotations

import math
import re
from calendar import month_name
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._api.assess import Assessment, assess
from a1gm._api.fit_file import files_of
from a1gm._base.types import Bools, Floats, Ints, Negatives
from a1gm._base.words import counted, listed, shown
from a1gm._fit.messages import text_of_convergence
from a1gm._fit.place import FATES
from a1gm.exceptions import A1gmError, ConvergenceWarning, ParameterError, Part

if TYPE_CHECKING:
    from a1gm._fit.fit import RankOneFit
    from a1gm._fit.sure.uncertainty import Uncertainty
    from a1gm._rows.files.table import TableFiles

MOST_ASSESSED = 200_000  # cells of a table that is fitted again and again
_TIME = re.compile(r"(y|m|d|w|q|h|t|year|month|day|week|quarter|hour|dev|lag|age)s?")
_WORD = re.compile(r"[^\W\d_]+|\d+(?:\.\d+)?")
_ROUNDING = 1e-9  # of a cell: a smaller difference is no residual

#: Why a missing cell has no value, by its fate.
_WHY = {
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

    @classmethod
    def of(
        cls,
        X: Floats,
        fit: RankOneFit,
        row_names: Sequence[str] | None,
        col_names: Sequence[str] | None,
    ) -> Findings:
        """Name the rows and columns."""
        rows = _names(row_names, fit.row_labels, X.shape[0], "row")
        columns = _names(col_names, fit.col_labels, X.shape[1], "column")
        return cls(X, fit, rows, columns)

    @cached_property
    def row_factor(self) -> Floats:
        """Row factors, also of a fit that computes them where they are looked at."""
        return np.asarray(self.fit.row_factor)

    def factor(self, kind: str) -> tuple[Floats, Sequence[str]]:
        """The factors of the rows or of the columns, and their names."""
        if kind == "row":
            return self.row_factor, self.row_names
        return self.fit.col_factor, self.col_names

    # ------------------------------------------------------------------------- holes
    @cached_property
    def missing(self) -> Bools:
        """True where a cell is missing, or has weight 0."""
        unweighed = False if self.fit.has_exposure else self.is_ignored
        return np.isnan(self.X) | unweighed

    @cached_property
    def known(self) -> Floats:
        """The known cells, NaN where one is missing."""
        return np.where(self.missing, np.nan, self.X)

    @cached_property
    def filled(self) -> Floats:
        """The table with its holes filled, NaN where nothing is known."""
        return np.asarray(
            self.fit.impute(self.known, on_undetermined="ignore", **self._given)
        )

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

    # ----------------------------------------------------------- weights or exposures
    @cached_property
    def weights(self) -> Floats | None:
        """Weights or exposures of all cells; None where there are none."""
        V = self.fit._table.weights
        return None if V is None else np.asarray(V.rows(slice(0, len(self.X))))

    @cached_property
    def is_ignored(self) -> Bools:
        """True where a cell is observed, but has weight or exposure 0."""
        if self.weights is None:
            return np.zeros(self.X.shape, bool)
        return ~np.isnan(self.X) & ~(self.weights > 0.0)

    @property
    def ignored(self) -> list[str]:
        """A note about known cells that were not fitted, if there are some."""
        n = int(self.is_ignored.sum())
        kind = "no exposure" if self.fit.has_exposure else "weight 0"
        cells = counted(n, f"known cell has {kind}", f"known cells have {kind}")
        counts = "" if self.fit.has_exposure else " and counted as missing here"
        note = f"{cells}: not fitted{counts}."
        return [note] if n else []

    @property
    def _given(self) -> dict[str, Any]:
        """Weights or exposures as options of what reads the table."""
        name = "exposure" if self.fit.has_exposure else "weights"
        return {} if self.weights is None else {name: self.weights}

    # ------------------------------------------------------------------- uncertainty
    @cached_property
    def sure_or_why(self) -> Uncertainty | str:
        """The uncertainty of the fit, or the reason why it has none."""
        try:
            with np.errstate(all="ignore"):  # of data near 1e±300 there are none
                found = self.fit.uncertainty()
                found.totals("all")
        except A1gmError as error:
            return error.render(with_advice=False)
        return found

    @property
    def sure(self) -> Uncertainty | None:
        """The uncertainty of the fit, if it has one."""
        return None if isinstance(self.sure_or_why, str) else self.sure_or_why

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """Bounds of the filled cells, at the 95 % level; NaN where there are none."""
        nothing = np.full(self.X.shape, np.nan)
        if self.sure is None:
            return nothing, nothing
        return self.sure.interval(self.known, **self._given)

    @cached_property
    def assessed_rows(self) -> Ints:
        """The rows whose cells are hidden: all, or evenly spaced ones of many."""
        n, m = self.X.shape
        return np.linspace(0, n - 1, min(n, max(2, MOST_ASSESSED // m))).astype(
            np.int64
        )

    @cached_property
    def assessment(self) -> Assessment | str:
        """The assessment on hidden cells, or the reason why there is none."""
        rows = self.assessed_rows
        given = {name: V[rows] for name, V in self._given.items()}
        negatives: Negatives = "allow" if np.nanmin(self.X) < 0.0 else "raise"
        try:
            with np.errstate(all="ignore"):  # as above
                return assess(
                    self.X[rows],
                    random_state=0,
                    ordered=are_ordered(self.col_names),
                    negatives=negatives,
                    **given,
                )
        except A1gmError as error:
            return error.render(with_advice=False)

    def totals(self) -> tuple[Floats, Floats, float, float]:
        """Sums of the filled cells of each row and of all, with their errors or NaN."""
        if self.sure is not None:
            rows, every = self.sure.totals("row"), self.sure.totals("all")
            return rows.value, rows.se, float(every.value[0]), float(every.se[0])
        value = np.where(self.is_filled, self.filled, 0.0).sum(axis=1)
        return value, np.full(len(value), np.nan), float(value.sum()), math.nan

    # ---------------------------------------------------------------------- residuals
    @cached_property
    def _off(self) -> tuple[Floats, Floats]:
        """Residuals in standard deviations, and as differences."""
        spread = self.sure.dispersion if self.sure is not None else 1.0
        pearson = np.asarray(self.fit.residuals(self.X, "pearson"))
        off = np.asarray(self.fit.residuals(self.X, "response"))
        with np.errstate(invalid="ignore"):
            is_rounding = np.abs(off) <= _ROUNDING * np.abs(self.X)
        pearson[np.isinf(pearson)] = np.nan  # among negative cells the fit may be 0
        return np.where(is_rounding, 0.0, pearson / math.sqrt(spread or 1.0)), off

    @property
    def deviations(self) -> Floats:
        """Residuals of the cells in their standard deviations."""
        return self._off[0]

    def misfits(self, most: int) -> list[tuple[str, str, float, float, float]]:
        """The worst cells: row, column, observed, fitted, standard deviations off."""
        scaled, off = self._off
        size = np.nan_to_num(np.abs(scaled)).ravel()
        chosen = np.argpartition(-size, min(most, size.size - 1))[:most]
        chosen = chosen[np.lexsort((chosen, -size[chosen]))]
        places = np.unravel_index(chosen[size[chosen] > 0.0], off.shape)
        return [
            (self.row_names[i], self.col_names[j], x, x - off[i, j], scaled[i, j])
            for i, j in np.column_stack(places).tolist()
            for x in [self.X[i, j]]
        ]

    @property
    def n_without_residual(self) -> int:
        """Observed cells whose fitted value is 0 or less: no deviation is known."""
        is_there = ~self.missing & ~self.is_ignored
        return int(np.count_nonzero(np.isnan(self._off[0]) & is_there))

    # ------------------------------------------------------------------------ unknown
    def unknown(self) -> Iterator[tuple[str, int, str]]:
        """Where cells cannot be known, how many, and why: empty lines, then blocks."""
        cells, why = self.fit.undetermined, "nothing is observed in it"
        rows, columns = np.isnan(self.row_factor), np.isnan(self.fit.col_factor)
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
            where = " × ".join(
                _called(noun, [names[k] for k in lines.tolist()])
                for noun, names, lines in (
                    ("row", self.row_names, i),
                    ("column", self.col_names, j),
                )
            )
            kind = cells[int(some[0])].kind
            yield where, len(some), f"{kind}: {_WHY[kind]}"


def _called(noun: str, names: Sequence[str]) -> str:
    """Name some rows or columns; those without a name are called "row 3" already."""
    if len(names) > 1:
        return f"{counted(len(names), noun)} ({listed(names, 4)})"
    return names[0] if names[0].startswith(f"{noun} ") else f"{noun} {names[0]}"


def _names(
    given: Sequence[str] | None, labels: Sequence[object] | None, n: int, kind: str
) -> Sequence[str]:
    names = labels if given is None else list(given)
    if given is not None and (isinstance(given, str) or len(given) != n):
        got = "one string" if isinstance(given, str) else counted(len(given), "name")
        raise ParameterError(
            f"{kind[:3]}_names must be a list of {counted(n, 'name')}, one for each "
            f"{kind}; got {got}. Leave it out to show the labels of the fit."
        )
    if names is not None:
        return [shown(name) or "(no name)" for name in names]
    return [f"{kind} {k}" for k in range(n)]


# ------------------------------------------------------------------ notes and order
def notes_of(
    fit: RankOneFit,
    files: TableFiles | None = None,
    style: Callable[[Part], str] = str,
) -> Iterator[str]:
    """What a reader must know before the numbers, as the warnings have it.

    ``files`` are those of the table, if the fit does not know them.
    """
    if doubt := text_of_convergence(fit):
        yield ConvergenceWarning(doubt).render(style)
    choice, own = fit._table.choice, files_of(fit)
    files = files or own
    if files is not None:
        for warning in files.told:
            words = warning.at("").render(style)
            yield words[0].upper() + words[1:]
        if hidden := files.hidden:
            yield f"Hidden files left out: {listed(hidden, 5)}."
    names = [] if choice is None else [str(name) for name in choice.kept]
    if own is not None:
        names = own.left_out
    if names:
        yield f"Columns that are not part of the table: {listed(names)}."


def are_ordered(names: Sequence[str], *, of_rows: bool = False) -> bool:
    """Whether names are numbers, dates or spans of time that ascend.

    Plain numbers ``of_rows`` are labels, unless they are years.

    Examples
    --------
    >>> are_ordered(["2023-11", "2023-12", "2024-01"]), are_ordered(["S1", "S2", "S3"])
    (True, False)
    """
    if of_rows and all(map(_is_number, names)):
        names = [name for name in names if float(name) in range(1800, 2201)]
    times = [_time_of(name.strip().lower()) for name in names]
    return len(names) > 2 and all(a and b and a < b for a, b in pairwise(times))


def _is_number(name: str) -> bool:
    return re.fullmatch(r"\s*-?\d+(\.\d+)?\s*", name) is not None


def _time_of(name: str) -> tuple[float, ...]:
    """The numbers in a name and then its month; nothing if it has other words."""
    if _is_number(name):
        return (float(name),)
    numbers, months = [], []
    for word in _WORD.findall(name):
        month = [
            k for k, full in enumerate(month_name) if full.lower().startswith(word)
        ]
        if word[0].isdigit():
            numbers.append(float(word))
        elif len(word) > 2 and month:
            months += month
        elif not _TIME.fullmatch(word):
            return ()
    return (*numbers, *months)
