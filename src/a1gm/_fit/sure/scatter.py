"""The scatter of the observed cells around their fitted values.

A fitted cell is ``f = r q``: the sum of its row times the share of its column, which
depends on the row's pattern only. So ``sum (x - f)² / f`` needs of the data the sums of
``x² / r`` by pattern and column, and the divergence those of ``x log(x / r)``. Fits
that kept these sums use them; others read their table again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from a1gm._base.types import Floats
from a1gm._fit.residuals import Cells, absent_zeros, fitted_cells, kernel_sums
from a1gm._observe.patterns import weighted_counts
from a1gm._rows.read import read_input
from a1gm._rows.sparse import SparseRows
from a1gm.exceptions import NotRepresentableError, ParameterError

if TYPE_CHECKING:
    from a1gm._fit.fit import RankOneFit
    from a1gm._fit.sure.information import Information

ROUNDING = 2.0**-50  # of the total: a smaller statistic is rounding
ROWS_AT_ONCE = 1 << 14


# ------------------------------------------------------------------ sums of patterns
def keeps_sums(fit: RankOneFit) -> bool:
    """Whether the sums of squares and logarithms were kept by the first pass."""
    return fit._patterns.squares is not None


def _sums(info: Information) -> Iterator[tuple[slice, Floats, Floats]]:
    """Yield some patterns, the shares of their columns, and their sums."""
    table: Any = info.patterns
    for some in table.stretches():
        yield some, info.shares(some)[0], table.sums[some]


def _pearson_of_sums(info: Information) -> float:
    total, squares = 0.0, info.patterns.squares
    for some, Q, S in _sums(info):
        fitted = S.sum(axis=1)[:, None] * Q
        own = fitted > 0.0
        with np.errstate(over="ignore"):
            found = squares[some][own] / Q[own]
        total += float((found - (2.0 * S - fitted)[own]).sum())
    return info.unit * total


def _divergence_of_sums(info: Information) -> float:
    from scipy.special import xlogy

    total = float(info.patterns.logs[0])
    for some, Q, S in _sums(info):
        n = info.patterns.observed_cells(some).sum(axis=1)
        total -= float(xlogy(S, n[:, None] * Q)[Q > 0.0].sum())
    return info.unit * total


# ------------------------------------------------------------------------ statistics
def pearson_chi2(fit: RankOneFit) -> float:
    """Sum of v (x - f)² / f over the observed cells; NaN without the data."""
    table, info = fit._table, fit._information
    if keeps_sums(fit):
        chi2 = _pearson_of_sums(info)
    elif table.source is None:
        return table.pearson_chi2
    else:
        found = _kernel_sum(fit, "pearson")
        chi2 = info.cell_sums.chi2 if found is None else found
    if math.isinf(chi2):
        raise NotRepresentableError(
            "Pearson's statistic is above the largest float64. Multiply the data by a "
            "power of ten that brings them nearer to 1: it changes by the same power."
        )
    return _or_zero(info, chi2)


def divergence(fit: RankOneFit) -> float:
    """Divergence of the fitted table; NaN without the data, and for negative cells."""
    table = fit._table
    if fit._is_signed:
        return math.nan
    if keeps_sums(fit):
        found = 2.0 * _divergence_of_sums(fit._information)
        return _or_zero(fit._information, found) / 2.0
    if table.source is None:
        return math.nan
    total = _kernel_sum(fit, "divergence")
    if total is not None:
        return total
    total = sum(
        cells.divergence() + absent_zeros(table.source, cells)
        for cells in own_cells(fit)
    )
    if math.isinf(total):
        raise NotRepresentableError(
            "The fitted value of a positive cell is below the smallest float64 "
            "(5e-324), so the divergence cannot be computed. Multiply rows or columns "
            "by powers of ten that bring the cells closer together."
        )
    return total


def _kernel_sum(fit: RankOneFit, of: Literal["divergence", "pearson"]) -> float | None:
    """Sum over the fitted table in one pass of the kernel; None if it declines."""
    found = kernel_sums(fit._columns, fit._table.source, of)
    if found is None:
        return None
    _check_same(fit, np.array([found[1]]), np.array([np.nansum(fit._rows.factor)]))
    return found[0]


def _or_zero(info: Information, statistic: float) -> float:
    """The statistic, or 0 where it is no more than the rounding of the total."""
    total = info.unit * float(info.patterns.col_sums.sum())
    return 0.0 if statistic <= ROUNDING * total else statistic


def deviance(fit: RankOneFit) -> float:
    """Twice the divergence of the observed cells; NaN without the data."""
    return _or_zero(fit._information, 2.0 * fit.divergence)


# ------------------------------------------------------------- the fitted table again
CHANGED = (
    "The table, or its weights or exposure, was changed after it was fitted, and the "
    "fit reads it again here. Fit it again, or fit a copy."
)


def _check_same(fit: RankOneFit, seen: Floats, fitted: Floats) -> None:
    if not fit._is_close(seen, fitted):
        raise ParameterError(CHANGED)


def own_cells(fit: RankOneFit) -> Iterator[Cells]:
    """Yield the observed cells of the fitted table, some rows at a time.

    Raises at the end if their sums are not those of the fit.
    """
    table, patterns = fit._table, fit._patterns
    seen = np.zeros(patterns.n_cols)
    for cells in fitted_cells(fit._columns, table.source):
        with np.errstate(over="ignore"):  # sums beyond float64 are not compared
            seen += weighted_counts(cells.j, cells.weight * cells.x, len(seen))
        yield cells
    with np.errstate(over="ignore"):
        _check_same(fit, seen, np.ldexp(patterns.col_sums, patterns.exponent))


@dataclass(frozen=True)
class CellSums:
    """Sums over the observed cells of the fitted table.

    Attributes
    ----------
    chi2 : float
        Of v (x - f)² / f.
    gain : float
        Deviance of one constant per block less that of the factors.
    rows : ndarray
        Sum of weight times cell of each row.
    """

    chi2: float
    gain: float
    rows: Floats


def cell_sums(fit: RankOneFit) -> CellSums:
    """Read the fitted table once, and sum what its errors need."""
    graph, source = fit._fates.graph, fit._table.source
    chi2 = of_factors = 0.0
    sums, sizes, rows = np.zeros(graph.n), np.zeros(graph.n), np.zeros(fit.shape[0])
    for cells in own_cells(fit):
        first, last = int(cells.i.min(initial=0)), int(cells.i.max(initial=-1)) + 1
        if last > first:
            some = cells.i - first, cells.weight * cells.x
            rows[first:last] += weighted_counts(*some, last - first)
        own = cells.fitted > 0.0
        residual = cells.residuals("pearson")[own]
        x, f = cells.x[own], cells.fitted[own]
        v, exposure, block = cells.weight[own], cells.exposure[own], graph.label
        block = block[cells.j[own]]
        with np.errstate(over="ignore"):
            chi2 += float(residual @ residual)
        chi2 += absent_zeros(source, cells)
        sums += weighted_counts(block, v * x, graph.n)
        sizes += weighted_counts(block, v * exposure, graph.n)
        of_factors += float((v * x) @ np.log(f / exposure))
    some_data = sums > 0.0
    means = sums[some_data] / sizes[some_data]
    gain = 2.0 * (of_factors - float(sums[some_data] @ np.log(means)))
    return CellSums(chi2, gain, rows)


def sandwich(fit: RankOneFit, inverse: Floats) -> Floats:
    """Covariance of the columns from the scatter of the rows' residuals.

    Each row goes through the inverse before it is squared: the residuals of a row
    sum to 0, and the large parts of the inverse cancel in that sum only.
    """
    source = fit._table.source
    if source is None:
        raise ParameterError(
            "This fit did not keep its cells, and robust=True needs the products "
            "of all pairs of cells of a row, which no sums replace. Leave out "
            "robust=True, or fit the table in memory with a1gm.fit."
        )
    m, pieces = fit.shape[1], own_cells(fit)
    if isinstance(source, SparseRows) and source.absent == "zero":
        dense = (read_input(piece) for _, piece in source.blocks())
        pieces = (c for piece in dense for c in fitted_cells(fit._columns, piece))
    total = np.zeros((m, m))
    for cells in pieces:
        first = int(cells.i.min(initial=0))
        off = np.zeros((int(cells.i.max(initial=0)) + 1 - first, m))
        off[cells.i - first, cells.j] = cells.weight * (cells.x - cells.fitted)
        off = off @ inverse
        total += off.T @ off
    return total


# ------------------------------------------------------------------ against constants
def gain_over_constants(fit: RankOneFit) -> float:
    """Deviance of one constant per block less that of the factors.

    With ``f = r h / H``, H being the sum of the row's observed column factors, the sum
    of x log f needs no more of the cells than their margins; weights need the cells.
    """
    from scipy.special import xlogy

    if fit._is_signed:
        return math.nan
    info = fit._information
    if fit.has_weights:
        return fit._table.gain if fit._table.source is None else info.cell_sums.gain
    table, n = info.patterns, int(info.label.max(initial=0)) + 1
    sums, cells = np.zeros(n), np.zeros(n)
    columns = np.where(info.label >= 0, table.col_sums, 0.0)
    of_factors = _sum_of_row_logs(fit) + info.unit * float(xlogy(columns, info.h).sum())
    for some in table.stretches():
        Q, reach = info.shares(some)
        own = info.unit * np.where(reach > 0.0, table.row_sums[some], 0.0)
        of_factors -= float(xlogy(own, np.where(reach > 0.0, reach, 1.0)).sum())
        every, zeros = fit._rows.pattern_counts(some)
        block = np.maximum(info.component[some], 0)
        sums += weighted_counts(block, own, n)
        cells += weighted_counts(block, (Q > 0.0).sum(axis=1) * (every - zeros), n)
    known = (sums > 0.0) & (cells > 0.0)
    return 2.0 * (of_factors - float(sums[known] @ np.log(sums[known] / cells[known])))


def _sum_of_row_logs(fit: RankOneFit) -> float:
    """Sum of r log r over the rows; NaN where neither they nor it were kept."""
    from scipy.special import xlogy

    info, total = fit._information, 0.0
    if keeps_sums(fit):
        return info.unit * float(info.patterns.logs[1])
    if not fit._rows.is_kept:
        return math.nan
    for start in range(0, fit.shape[0], ROWS_AT_ONCE):
        rows = np.arange(start, min(start + ROWS_AT_ONCE, fit.shape[0]))
        sums = np.nan_to_num(info.rows(rows)[1])
        total += float(xlogy(sums, sums).sum())
    return total
