"""Observed cells and their fitted values: residuals, and the sums over them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from a1gm._base.float_range import check_cells
from a1gm._base.types import Floats, Ints
from a1gm._fit.frames import table_frame
from a1gm._fit.place import Columns, Groups, kernel_sums, observed_cells
from a1gm._rows.read import AnyRows, is_triangle
from a1gm._rows.sparse import SparseRows
from a1gm.exceptions import NotRepresentableError, ParameterError

Kind: TypeAlias = Literal["pearson", "deviance", "response"]

ROUNDING = 2.0**-50  # of a fitted value: a smaller part of a statistic is rounding


def divergence_of_cells(x: Floats, fitted: Floats) -> Floats:
    """Return x log(x / fitted) - x + fitted of each cell."""
    from scipy.special import kl_div

    cells: Floats = kl_div(x, fitted)
    far = ~np.isfinite(cells) & (fitted > 0.0) & (x > 0.0)
    if far.any():  # the quotient has left float64
        y, f = x[far], fitted[far]
        cells[far] = y * (np.log(y) - np.log(f)) - y + f
    return np.maximum(cells, 0.0)


UNDERFLOW = (
    "The fitted value of a positive cell is below the smallest float64 (5e-324), so "
    "the divergence cannot be computed. Multiply rows or columns by powers of ten that "
    "bring the cells closer together."
)


@dataclass(frozen=True)
class Cells:
    """Observed cells of some rows: position, value, fitted value, weight, exposure."""

    i: Ints
    j: Ints
    x: Floats
    fitted: Floats
    weight: Floats
    exposure: Floats  # in the fitted value

    def residuals(self, kind: Kind) -> Floats:
        """Differences from the fit on the scale of ``kind``; NaN without a fit."""
        off = self.x - self.fitted
        if kind == "response":
            return off
        with np.errstate(divide="ignore", invalid="ignore"):
            if kind == "pearson":
                # Not the root of the ratio, which a cell near 1e-310 takes to infinity.
                found = off * (np.sqrt(self.weight) / np.sqrt(self.fitted))
            else:
                cells = divergence_of_cells(np.maximum(self.x, 0.0), self.fitted)
                found = np.sign(off) * np.sqrt(2.0 * self.weight * cells)
                found[self.x < 0.0] = np.nan
        found[self.fitted <= 0.0] = np.nan
        return np.where(off == 0.0, 0.0, found)

    def divergence(self) -> float:
        """Sum of v (x log(x / f) - x + f); infinite for x > 0 without f > 0."""
        known = self.fitted > 0.0
        if (self.x[~known] > 0.0).any():
            return np.inf
        x, fitted, weight = self.x[known], self.fitted[known], self.weight[known]
        with np.errstate(all="ignore"):
            parts = divergence_of_cells(x, fitted)
            parts[parts <= ROUNDING * fitted] = 0.0
            total = float(parts @ weight)
        if total == np.inf:
            raise NotRepresentableError(
                "The divergence is above the largest float64 (1.8e308). Divide the "
                "data by a power of ten first: the divergence shrinks by the same "
                "power."
            )
        return total

    @cached_property
    def pearson_chi2(self) -> float:
        """Pearson's statistic."""
        return float((self.residuals("pearson") ** 2).sum())

    @cached_property
    def deviance(self) -> float:
        """Twice the divergence."""
        return 2.0 * self.divergence()


def fitted_cells(columns: Columns, source: Any) -> Iterator[Cells]:
    """Yield the observed cells of rows with their fitted values, some at a time.

    Absent cells of a sparse table that count as zeros are not yielded.
    """
    w: Any = None
    is_in_memory = hasattr(source, "weights")
    if columns.graph.is_single and is_in_memory and source.weights is None:
        w = columns.place(source).factors
    for i, j, x, v in observed_cells(source, columns.negatives):
        if w is not None:
            fitted = w[i] * columns.factor[j]
        else:
            groups = Groups(columns, source, [(i, j, x, v)])
            fitted = groups.values(i, j, v if columns.exposed else None)
        check_cells(fitted)
        ones = np.ones(len(i))
        weight, exposure = ones if v is None else v, ones
        if columns.exposed:
            weight, exposure = exposure, weight
        yield Cells(i, j, x, fitted, weight, exposure)


def absent_zeros(source: AnyRows, cells: Cells) -> float:
    """Contribution of absent zeros to the divergence and to Pearson's sum.

    Each adds its fitted value. Rows are fitted exactly, so the fitted values of all
    observed cells sum to the data.
    """
    if getattr(source, "absent", None) != "zero":
        return 0.0
    own = cells.fitted > 0.0
    total = float(cells.x[own].sum())
    absent = total - float(cells.fitted[own].sum())
    return absent if absent > ROUNDING * total else 0.0


def divergence_of_rows(columns: Columns, source: AnyRows) -> float:
    """Sum the divergence over the observed cells of rows placed by their cells."""
    found = kernel_sums(columns, source, "divergence")
    if found is not None:
        return found[0]
    total = 0.0
    for cells in fitted_cells(columns, source):
        has_factor = columns.factor[cells.j] > 0.0
        if (has_factor & (cells.fitted == 0.0) & (cells.x > 0.0)).any():
            raise NotRepresentableError(UNDERFLOW)
        total += cells.divergence() + absent_zeros(source, cells)
    return total


def check_kind(kind: Any) -> None:
    """Raise for residuals of an unknown kind."""
    if kind not in ("pearson", "deviance", "response"):
        raise ParameterError(
            f'kind must be "pearson", "deviance" or "response", got {kind!r}.'
        )


def residuals_of(columns: Columns, X: Any, source: AnyRows, kind: Kind) -> Any:
    """Residuals of the observed cells, in a table of the kind of X."""
    check_kind(kind)
    if isinstance(source, SparseRows):
        return _sparse_residuals(columns, X, source, kind)
    out = np.full((source.n_rows, source.n_cols), np.nan)
    for cells in fitted_cells(columns, source):
        out[cells.i, cells.j] = cells.residuals(kind)
    if source.backend is not None:
        is_pandas = source.backend == "pandas" and not is_triangle(X)
        names = X.columns if is_pandas else source.col_labels
        return table_frame(out, source.backend, source.row_labels, names)
    if isinstance(X, np.ma.MaskedArray):
        return np.ma.MaskedArray(out, mask=np.isnan(out))
    return out


def _sparse_residuals(columns: Columns, X: Any, source: SparseRows, kind: Kind) -> Any:
    """Residuals of the stored cells; those of absent zeros would fill the table."""
    from scipy.sparse import csr_array

    if source.absent == "zero":
        raise ParameterError(
            'With absent="zero" every absent cell has a residual, and the table would '
            "no longer be sparse. Use fit.residuals(X.toarray())."
        )
    (cells,) = fitted_cells(columns, source)
    found = csr_array((cells.residuals(kind), (cells.i, cells.j)), shape=X.shape)
    return found.asformat(X.format)
