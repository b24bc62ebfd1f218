"""What a report says, as numbers: its worth, totals, residuals, what is unknown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from a1gm._api.assess import Assessment, assess
from a1gm._base.types import Bools, Floats, Ints, Negatives
from a1gm._base.words import counted, listed, shown
from a1gm._fit.fates import FATES
from a1gm.exceptions import (
    A1gmError,
    NotRepresentableError,
    ParameterError,
)
from a1gm.report.order import are_ordered

if TYPE_CHECKING:
    from a1gm._fit.fit import RankOneFit
    from a1gm._fit.sure.uncertainty import Uncertainty

MOST_ASSESSED = 200_000  # cells of a table that is fitted again and again
_ROUNDING = 1e-9  # of a cell: a smaller difference is no residual

#: Why a missing cell has no value, by its fate.
_WHY = {
    "unbounded": "because of an observed zero, the larger the better for the fit",
    "undetermined": "no chain of known cells leads from the rows to the columns",
}


class Misfit(NamedTuple):
    """A cell beside its fit; ``off`` is in standard deviations of such a cell."""

    row: int
    column: int
    observed: float
    fitted: float
    off: float


class Unknown(NamedTuple):
    """Missing cells without a value, for one reason."""

    where: str
    n_cells: int
    why: str


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
        """True where a cell is known and does not count: weight or exposure 0."""
        if self.weights is None:
            return np.zeros(self.X.shape, bool)
        return ~np.isnan(self.X) & ~(self.weights > 0.0)

    @property
    def _given(self) -> dict[str, Any]:
        """Weights or exposures as options of what reads the table."""
        name = "exposure" if self.fit.has_exposure else "weights"
        return {} if self.weights is None else {name: self.weights}

    # ---------------------------------------------------------------------- its worth
    @cached_property
    def sure_or_why(self) -> Uncertainty | str:
        """How sure the fit is, or why that cannot be said."""
        try:
            with np.errstate(all="ignore"):  # of data near 1e±300 there are none
                found = self.fit.uncertainty()
                found.totals("all")
        except NotRepresentableError as error:
            return error.render(with_advice=False)
        except (A1gmError, MemoryError):
            return "The scatter of the cells cannot be estimated."
        return found

    @property
    def sure(self) -> Uncertainty | None:
        """How sure the fit is; None where that cannot be said."""
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
        """The rows whose cells are hidden: all, or an even choice of many."""
        n, m = self.X.shape
        return np.linspace(0, n - 1, min(n, max(2, MOST_ASSESSED // m))).astype(
            np.int64
        )

    @cached_property
    def assessment(self) -> Assessment | str:
        """What rank 1 is worth on hidden cells, or why that cannot be tried."""
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
        """What was filled in each row and in all, with errors; NaN without any."""
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
        """How far cells are off, in standard deviations of such a cell."""
        return self._off[0]

    def misfits(self, most: int) -> list[Misfit]:
        """The cells that the fit explains worst."""
        scaled, off = self._off
        size = np.nan_to_num(np.abs(scaled)).ravel()
        chosen = np.argpartition(-size, min(most, size.size - 1))[:most]
        chosen = chosen[np.lexsort((chosen, -size[chosen]))]
        places = np.column_stack(
            np.unravel_index(chosen[size[chosen] > 0.0], off.shape)
        )
        return [
            Misfit(i, j, *map(float, (x, x - off[i, j], scaled[i, j])))
            for i, j in places.tolist()
            for x in [self.X[i, j]]
        ]

    @property
    def n_without_residual(self) -> int:
        """Observed cells whose fitted value is 0 or less: no deviation is known."""
        is_there = ~self.missing & ~self.is_ignored
        return int(np.count_nonzero(np.isnan(self._off[0]) & is_there))

    # ------------------------------------------------------------------------ unknown
    def unknown(self) -> Iterator[Unknown]:
        """Tell what cannot be known: empty rows and columns, then parts untied."""
        cells, why = self.fit.undetermined, "nothing is known in it"
        rows, columns = np.isnan(self.row_factor), np.isnan(self.fit.col_factor)
        for k in np.flatnonzero(rows).tolist():
            yield Unknown(_called("row", [self.row_names[k]]), len(columns), why)
        for k in np.flatnonzero(columns).tolist():
            where = _called("column", [self.col_names[k]])
            yield Unknown(where, int(np.count_nonzero(~rows)), why)
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
            yield Unknown(where, len(some), f"{kind}: {_WHY[kind]}")


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
