"""What a report says, as numbers: residuals, filled cells, and what is unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from a1gm._types import Floats, Ints

if TYPE_CHECKING:
    from a1gm.result import RankOneFit

MOST_CELLS = 200

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

    Attributes
    ----------
    X, filled : ndarray, shape (n_rows, n_cols)
        The table as it is, and with its holes filled (NaN where nothing is known).
    fit : RankOneFit
        The fit.
    row_names, col_names : sequence of str
        Names to show.
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

    @property
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

    def cells_filled(self) -> Ints:
        """Rows and columns of the first filled cells."""
        return np.argwhere(self.missing & ~np.isnan(self.filled))[:MOST_CELLS]

    def cells_unknown(self) -> Ints:
        """Rows and columns of the first cells that stay missing."""
        return np.argwhere(np.isnan(self.filled))[:MOST_CELLS]

    def why_unknown(self, row: int, column: int) -> str:
        """Say in words why a cell has no value."""
        if np.isnan(self.X[row]).all():
            return "its row has no observed cell"
        if np.isnan(self.X[:, column]).all():
            return "its column has no observed cell"
        return WHY[self.fit.fate(row, column)]

    def largest_residuals(
        self, most: int = 50
    ) -> list[tuple[int, int, float, float, float]]:
        """Cells the fit explains worst: row, column, observed, fitted, residual.

        The residual is the signed root of twice the cell's share of the divergence:
        for counts, about how many standard deviations the cell is off.
        """
        rows, columns = np.nonzero(~self.missing)
        observed = self.X[rows, columns]
        fitted = self.fit.row_factor[rows] * self.fit.col_factor[columns]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(observed > 0, observed * np.log(observed / fitted), 0.0)
        share = np.maximum(ratio - observed + fitted, 0.0)
        residual = np.sign(observed - fitted) * np.sqrt(2 * share)
        size = np.where(np.isfinite(residual), np.abs(residual), -1.0)
        order = np.argsort(-size, kind="stable")[:most]
        return [
            (
                int(rows[k]),
                int(columns[k]),
                float(observed[k]),
                float(fitted[k]),
                float(residual[k]),
            )
            for k in order
            if size[k] > 0
        ]


def _names(
    given: Sequence[str] | None, labels: Sequence[object] | None, n: int, kind: str
) -> Sequence[str]:
    if given is not None:
        return given
    if labels is not None:
        return [str(label) for label in labels]
    return [f"{kind} {k}" for k in range(n)]
