"""What a report says, as numbers: residuals, filled cells, and what is unknown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from a1gm._api.assess import Assessment, assess
from a1gm._base.types import Floats, Ints, Negatives
from a1gm._base.words import shown
from a1gm._result.solved_table import fate_at
from a1gm.exceptions import A1gmError

if TYPE_CHECKING:
    from a1gm._result.fit import RankOneFit
    from a1gm._result.uncertainty import Uncertainty

MOST_CELLS = 200
MOST_ASSESSED = 1_000_000  # cells of a table that is fitted again and again
_ROUNDING = 1e-6

#: Why a missing cell has no value, or which one, by its fate.
WHY = {
    "finite": "determined by the observed cells of its row and column",
    "zero": "zero: only zeros are compatible with the observed cells",
    "unbounded": "unbounded: the larger it is, the better the zeros beside it are "
    "explained",
    "undetermined": "undetermined: nothing observed ties its row to its column",
}


@dataclass(frozen=True)
class Findings:
    """A table, its fit, and what follows from both.

    ``filled`` has the holes of ``X`` filled, NaN where nothing is known.
    """

    X: Floats
    filled: Floats
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
        """Fill the table and name its rows and columns."""
        filled = np.asarray(fit.impute(X, on_undetermined="ignore"))
        rows = _names(row_names, fit.row_labels, X.shape[0], "row")
        columns = _names(col_names, fit.col_labels, X.shape[1], "column")
        return cls(X, filled, fit, rows, columns)

    @cached_property
    def row_factor(self) -> Floats:
        """Row factors, also of a fit that computes them where they are looked at."""
        return np.asarray(self.fit.row_factor)

    @cached_property
    def missing(self) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
        """True where a cell is missing."""
        return np.isnan(self.X)

    @property
    def n_filled(self) -> int:
        """Missing cells that got a value."""
        return int(np.count_nonzero(self.missing & ~np.isnan(self.filled)))

    @property
    def n_unknown(self) -> int:
        """Missing cells that stay missing."""
        return int(np.count_nonzero(np.isnan(self.filled)))

    @cached_property
    def sure(self) -> Uncertainty | None:
        """How sure the fit is; None where too little is known to say."""
        try:
            return self.fit.uncertainty()
        except (A1gmError, MemoryError):
            return None

    @cached_property
    def assessment(self) -> Assessment | None:
        """What rank 1 is worth on hidden cells; None where none can be hidden."""
        if self.X.size > MOST_ASSESSED:
            return None
        negatives: Negatives = "allow" if np.nanmin(self.X) < 0.0 else "raise"
        try:
            return assess(
                self.X,
                repeats=3,
                random_state=0,
                ordered=are_ordered(self.col_names),
                negatives=negatives,
            )
        except A1gmError:
            return None

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """Bounds of the filled cells, at the 95 % level; NaN where there are none."""
        nothing = np.full(self.X.shape, np.nan)
        return (nothing, nothing) if self.sure is None else self.sure.interval(self.X)

    def cells_filled(self) -> Ints:
        """Rows and columns of the first filled cells."""
        return np.argwhere(self.missing & ~np.isnan(self.filled))[:MOST_CELLS]

    def cells_unknown(self) -> Ints:
        """Rows and columns of the first cells that stay missing."""
        return np.argwhere(np.isnan(self.filled))[:MOST_CELLS]

    def names_of(self, row: int, column: int) -> tuple[str, str]:
        """What the report calls the row and the column of a cell."""
        return self.row_names[row], self.col_names[column]

    def why_unknown(self, row: int, column: int) -> str:
        """Say in words why a cell has no value."""
        if np.isnan(self.X[row]).all():
            return "its row has no observed cell"
        if np.isnan(self.X[:, column]).all():
            return "its column has no observed cell"
        return WHY[fate_at(self.fit, row, column)]

    def largest_residuals(
        self, most: int = 50
    ) -> list[tuple[int, int, float, float, float]]:
        """Cells the fit explains worst: row, column, observed, fitted, residual.

        The residual is the signed root of twice the cell's share of the divergence:
        for counts, about how many standard deviations the cell is off.
        """
        residual, response = (
            np.nan_to_num(self.fit.residuals(self.X, kind))
            for kind in ("deviance", "response")
        )
        fitted = self.X - response
        # What is left of a perfect fit is rounding, not a residual.
        size = np.abs(residual)
        size[size <= _ROUNDING * np.sqrt(np.abs(np.nan_to_num(fitted)))] = 0.0
        flat = np.argsort(-size, axis=None, kind="stable")[:most]
        cells = zip(*np.unravel_index(flat, size.shape), strict=True)
        tables = self.X, fitted, residual
        return [
            (int(i), int(j), *(float(table[i, j]) for table in tables))  # type: ignore[misc]
            for i, j in cells
            if size[i, j] > 0.0
        ]


def are_ordered(names: Sequence[str]) -> bool:
    """Whether names are numbers or dates that ascend."""
    if len(names) < 3:
        return False
    is_date = all(re.fullmatch(r"\d{4}(-\d{1,2}){0,2}", name) for name in names)
    if is_date:
        return sorted(names) == list(names)
    numbers = [re.fullmatch(r"\D*(\d+)\D*", name) for name in names]
    found = [int(match[1]) for match in numbers if match is not None]
    return len(found) == len(names) and all(a < b for a, b in pairwise(found))


def _names(
    given: Sequence[str] | None, labels: Sequence[object] | None, n: int, kind: str
) -> Sequence[str]:
    names = labels if given is None else given
    if names is not None:
        return [shown(name) for name in names]
    return [f"{kind} {k}" for k in range(n)]
