"""Fits with cell weights.

The weighted cost has the same form with a matrix of weights P in place of the 0/1
mask: w_i (P h)_i = sum_j P_ij X_ij. Rows with proportional weights are twins. Where
few rows are, the weights stay where they lie, and the mask is kept beside them.

Exposures are the weights of rates: w_i (E h)_i = sum_j X_ij. The counts X are summed as
they are, so no rate X / E is ever formed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from a1gm._base.float_range import product
from a1gm._base.types import AnyArray, Floats
from a1gm._kernel import kernel, say_if_slow, threads_for
from a1gm._observe.observation import TABLE_CELLS, Observation
from a1gm._observe.pair_statistics import pointers
from a1gm._observe.statistics import PairStatistics, WeightedStatistics
from a1gm._rows import AnyRows, SparseRows
from a1gm._rows.rows import Rows, check_piece, table_of
from a1gm._rows.sparse import check_stored_cells
from a1gm._rows.weights import check_weights
from a1gm.exceptions import NotRepresentableError

LOWEST, HIGHEST = -1021, 1020  # powers of two within which sums keep their digits


# ----------------------------------------------------------------------- observing
def observe_weighted(source: AnyRows, *, n_threads: int | None = None) -> Observation:
    """Observe a table whose cells have weights or exposures."""
    if isinstance(source, SparseRows):
        return _observe_stored(source)
    V = source.weights
    assert V is not None
    return _observe_dense(source.in_one_piece(), V.in_one_piece(), n_threads)


def _observe_stored(source: SparseRows) -> Observation:
    """Pairs of the stored cells that count, every row a line of its own."""
    weights, is_exposure = source.weights, source.exposed
    assert weights is not None
    used = ~source.missing & (weights.values > 0.0)
    cells = source.with_cells(used)
    check_stored_cells(cells, None)  # weights take no negatives
    x, v = cells.values, weights.values[used]
    of_weights, exponent = _exponents([(x, v)], len(x), is_exposure=is_exposure)
    if of_weights:
        v = np.ldexp(v, -of_weights)
    times = np.ones(1) if is_exposure else v
    sums = product(x, times, exponent=-exponent) if exponent else x * times
    pairs = PairStatistics(cells.ptr, cells.cols, sums, v, cells.n_cols)
    of_exposure = of_weights if is_exposure else None
    return Observation(pairs.row_sums, None, pairs, exponent, 0, of_exposure)


def _observe_dense(source: Rows, V: Rows, n_threads: int | None) -> Observation:
    """One pass, again on another scale where numbers leave float64."""
    is_exposure = source.exposed
    say_if_slow()
    n_cells = source.n_rows * source.n_cols
    threads = threads_for(n_cells, n_threads)

    def look(of_weights: int, exponent: int) -> Any:
        scale = math.ldexp(1.0, -of_weights)
        args = source.parts, V.parts, threads, scale, exponent, TABLE_CELLS, is_exposure
        return kernel.observe_weighted(*args)

    of_weights = exponent = 0
    *found, of_weight, of_cell, are_fit = look(0, 0)
    if not are_fit or of_weight[1] == 0.0:
        _check_cells(source, V)
        if is_exposure:  # some are not known
            V = table_of(np.nan_to_num(V.rows(slice(0, V.n_rows))))
            *found, of_weight, of_cell, _ = look(0, 0)
    if not (_are_in_range(of_weight, n_cells) and _are_in_range(of_cell, n_cells)):
        pieces = ((piece, V.rows(rows)) for rows, piece in source.blocks())
        of_weights, exponent = _exponents(pieces, n_cells, is_exposure=is_exposure)
        *found, _, _, _ = look(of_weights, exponent)
    row_sums, is_wide, form = found
    of_exposure = of_weights if is_exposure else None
    if is_wide:
        bits, positive, col_sums, has_zero = form
        weights = _array_of(V, of_weights)
        return Observation(
            row_sums,
            None,
            WeightedStatistics(
                bits, positive if has_zero else None, row_sums, col_sums, weights
            ),
            exponent,
            0,
            of_exposure,
        )
    if np.isnan(row_sums).any():
        raise NotRepresentableError(
            "The weights of proportional rows are further apart than float64 reaches "
            "(1e-308 to 1e308). Multiply the weights of a row by a power of ten."
        )
    line_of_row, weights, sums = form
    lines, cols = np.nonzero(weights)
    pairs = PairStatistics(
        pointers(lines, len(weights)),
        cols.astype(np.int32),
        sums[lines, cols],
        weights[lines, cols],
        source.n_cols,
    )
    return Observation(row_sums, line_of_row, pairs, exponent, 0, of_exposure)


def _check_cells(source: Rows, V: Rows) -> None:
    """Raise for weights, and cells of positive weight, that cannot be used."""
    check_weights(V)
    every = slice(0, V.n_rows)
    X = np.where(V.rows(every) > 0.0, source.rows(every), np.nan)
    check_piece(source, X, 0, None)


def _array_of(V: Rows, exponent: int) -> AnyArray:
    """The weights in one array: where they lie, if they lie in one and as they are."""
    (values, mask, validity, *_), *more = V.parts
    if exponent or more or mask is not None or validity is not None:
        return np.ldexp(V.rows(slice(0, V.n_rows)), -exponent)
    return values


def _are_in_range(ends: tuple[float, float], n: int) -> bool:
    """Whether sums of n numbers between these ends keep their digits."""
    least, most = ends
    return (least, most) == (math.inf, 0.0) or (
        least >= 2.0**LOWEST
        and math.isfinite(most)
        and math.frexp(most)[1] + n.bit_length() <= HIGHEST
    )


def _exponents(
    pieces: Iterable[tuple[Floats, Floats]], n: int, *, is_exposure: bool
) -> tuple[int, int]:
    """Powers of two by which weights, and then n weighted cells, are divided.

    Nothing is scaled where it need not be. Only ratios of weights count in a fit.

    Raises
    ------
    NotRepresentableError
        No power of two keeps the largest finite and all digits of the smallest.
    """
    of_weights, of_cells = [], []
    for X, V in pieces:
        used = (V > 0.0) & ~np.isnan(X)
        x, v = X[used], V[used]
        powers = np.frexp(v)[1].astype(np.int64)
        of_cell = (np.frexp(x)[1] + (0 if is_exposure else powers))[x > 0.0]
        of_weights += [powers.min(), powers.max()] if len(powers) else []
        of_cells += [of_cell.min(), of_cell.max()] if len(of_cell) else []
    first = _exponent_in_range(of_weights, n, "weights")
    less = 0 if is_exposure else first
    second = _exponent_in_range(of_cells, n, "weighted cells", less)
    return first, second


def _exponent_in_range(powers: list[Any], n: int, what: str, less: int = 0) -> int:
    """A power of two by which n numbers of these powers are divided; 0 if it can be."""
    if not powers:
        return 0
    low, high = int(min(powers)) - 1 - less, int(max(powers)) - less + n.bit_length()
    if low >= LOWEST and high <= HIGHEST:
        return 0
    if high - low > HIGHEST - LOWEST:
        raise NotRepresentableError(
            f"The {what} of this table are further apart than float64 reaches (1e-308 "
            "to 1e308). Multiply rows, columns or weights by powers of ten that bring "
            "them closer together."
        )
    return high - HIGHEST if high > HIGHEST else low - LOWEST
