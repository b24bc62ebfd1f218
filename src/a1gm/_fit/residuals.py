"""Observed cells beside their fitted values: residuals, and what they sum to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from a1gm._base.types import Floats, Ints
from a1gm._fit.divergence import divergence_of_cells, placed_pieces
from a1gm._fit.frames import table_frame
from a1gm._fit.new_rows import NewRows
from a1gm._rows.read import AnyRows
from a1gm._rows.sparse import SparseRows
from a1gm.exceptions import ParameterError

Kind: TypeAlias = Literal["pearson", "deviance", "response"]


@dataclass(frozen=True)
class Cells:
    """Observed cells of some rows: place, value, fitted value, weight and exposure."""

    i: Ints
    j: Ints
    x: Floats
    fitted: Floats
    weight: Floats
    exposure: Floats  # in the fitted value

    def residuals(self, kind: Kind) -> Floats:
        """Differences from the fit, on the scale that is asked for; NaN for no fit."""
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
        return np.where(off == 0.0, 0.0, found)


def fitted_cells(rule: NewRows, source: AnyRows, V: Any = None) -> Iterator[Cells]:
    """Yield the observed cells of rows placed by their own cells, some at a time.

    A cell of weight 0 is not observed. Absent cells of a sparse table that count as
    zeros are not yielded.
    """
    if isinstance(source, SparseRows):
        used = ~source.missing
        v = np.ones(len(used)) if V is None else V.values
        used &= v > 0.0
        i, j = source.lines[used], source.cols[used].astype(np.int64)
        fitted = rule.place(source, V).values(i, j)
        ones = np.ones(len(i))
        both = (ones, v[used]) if rule.is_exposed else (v[used], ones)
        yield Cells(i, j, source.values[used], fitted, *both)
        return
    for piece in placed_pieces(rule, source, V):
        i, j, ones = piece.i, piece.j, np.ones(len(piece.i))
        fitted = piece.placed.values(i, j)
        weight = ones if piece.weight is None else piece.weight
        exposure = ones if piece.exposure is None else piece.exposure
        yield Cells(i + piece.first, j, piece.x, fitted, weight, exposure)


def residuals_of(rule: NewRows, X: Any, source: AnyRows, V: Any, kind: Kind) -> Any:
    """Residuals of the observed cells, in a table of the kind of X."""
    if kind not in ("pearson", "deviance", "response"):
        raise ParameterError(
            f'kind must be "pearson", "deviance" or "response", got {kind!r}.'
        )
    if isinstance(source, SparseRows):
        return _sparse_residuals(rule, X, source, V, kind)
    out = np.full((source.n_rows, source.n_cols), np.nan)
    for cells in fitted_cells(rule, source, V):
        out[cells.i, cells.j] = cells.residuals(kind)
    if source.backend is not None:
        names = X.columns if source.backend == "pandas" else source.col_labels
        return table_frame(out, source.backend, source.row_labels, names)
    if isinstance(X, np.ma.MaskedArray):
        return np.ma.MaskedArray(out, mask=np.isnan(out))
    return out


def _sparse_residuals(
    rule: NewRows, X: Any, source: SparseRows, V: Any, kind: Kind
) -> Any:
    """Residuals of the stored cells; those of absent zeros would fill the table."""
    from scipy.sparse import csr_array

    if source.absent == "zero":
        raise ParameterError(
            'With absent="zero" every absent cell has a residual, and the table would '
            "no longer be sparse. Use fit.residuals(X.toarray())."
        )
    (cells,) = fitted_cells(rule, source, V)
    found = csr_array((cells.residuals(kind), (cells.i, cells.j)), shape=X.shape)
    return found.asformat(X.format)
