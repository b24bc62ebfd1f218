"""The Kullback-Leibler divergence on observed cells, safe at zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from a1gm._base.types import Floats
from a1gm._result.new_rows import NewRows
from a1gm._sources.dense import Source
from a1gm._sources.read import AnySource
from a1gm._sources.sparse import SparseSource

__all__ = ["divergence_of_cells", "divergence_of_rows"]


def divergence_of_cells(x: Floats, fitted: Floats) -> Floats:
    """Return x log(x / fitted) - x + fitted of each cell."""
    from scipy.special import kl_div

    cells: Floats = np.maximum(kl_div(x, fitted), 0.0)  # below by rounding only
    return cells


def divergence_of_rows(rule: NewRows, source: AnySource, V: Any = None) -> float:
    """Sum the divergence over the observed cells of rows placed by their own cells.

    ``V`` are the weights of the cells, as they were read.
    """
    if isinstance(source, SparseSource):
        return _of_stored(rule, source, V)
    total = 0.0
    for rows, piece in source.blocks():
        used = ~np.isnan(piece)
        v = None if V is None else V[rows]
        if v is not None:
            used &= v > 0.0
        i, j = np.nonzero(used)
        if len(i):
            part = Source([(piece, None, None, 0, 0)], *piece.shape)
            cells = divergence_of_cells(piece[i, j], rule.place(part, v).values(i, j))
            total += float(cells.sum() if v is None else cells @ v[i, j])
    return total


def _of_stored(rule: NewRows, source: SparseSource, V: Any) -> float:
    """Sum over the stored and the absent cells of a sparse table.

    An absent cell that counts as zero adds its fitted value. Rows are fitted exactly,
    so the fitted values of a row's observed cells sum to its data.
    """
    used = ~source.missing
    if V is not None:
        used &= V.values > 0.0
    at = np.flatnonzero(used)
    i, j, x = source.lines[at], source.cols[at].astype(np.int64), source.values[at]
    fitted = rule.place(source, V).values(i, j)
    cells = divergence_of_cells(x, fitted)
    if V is not None:
        return float(cells @ V.values[at])
    absent = 0.0
    if source.absent == "zero":
        absent = float(x[fitted > 0.0].sum() - fitted.sum())
    return float(cells.sum()) + absent
