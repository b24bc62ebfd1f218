"""Fits with cell weights.

The weighted cost has the same form with a matrix of weights P in place of the 0/1
mask: w_i (P h)_i = sum_j P_ij X_ij. When the weights are a product a_i b_j on the
observed cells, w' = a w and h' = b h make it the unweighted problem; otherwise rows and
columns with proportional weights are twins, and the core keeps its weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from a1gm._base.float_range import LEAST, keeps_digits, product, wide_product
from a1gm._base.types import AnyArray, Floats, SmallInts
from a1gm._observe.observation import Observation
from a1gm._observe.statistics import PairStatistics
from a1gm._sources import AnySource, SparseSource, read_input
from a1gm._sources.cells import check_piece, check_stored_cells
from a1gm._sources.labels import check_same_labels
from a1gm._sources.read import is_sparse
from a1gm.exceptions import NotRepresentableError, ParameterError, WeightsError

__all__ = ["check_weights", "observe_weighted", "read_cell_weights"]

LOWEST, HIGHEST = -1021, 1020  # powers of two within which sums keep their digits
NEAR = 2.0**-50  # what rounding leaves of the ratios of two products
DIGITS = 44  # bits of a weight's mantissa that count when rows are grouped


def observe_weighted(source: AnySource, V: Any) -> Observation:
    """Observe a table whose cells have weights, as ``read_cell_weights`` gives them."""
    if isinstance(source, SparseSource):
        return _observe_stored(source, V)
    X = np.where(V > 0.0, source.rows(slice(0, source.n_rows)), np.nan)
    check_piece(source, X, 0)
    return _observe_weighted(X, V)


def read_cell_weights(weights: Any, source: AnySource) -> Any:
    """Weights of the cells of a table: an array, or those of a sparse table's cells."""
    if isinstance(source, SparseSource):
        return read_stored_weights(weights, source)
    if is_sparse(weights):
        raise WeightsError(
            "weights are sparse, but X is dense. Pass weights.toarray()."
        )
    return read_weights(weights, source)


def read_weights(weights: Any, source: AnySource) -> Floats:
    """Check that the weights are non-negative numbers, one per cell."""
    given = read_input(weights, name="weights")
    _check_shape(given, source)
    check_same_labels("row", given.row_labels, source.row_labels, "weights", "X")
    check_same_labels("column", given.col_labels, source.col_labels, "weights", "X")
    V: Floats = given.rows(slice(0, given.n_rows))
    _check_values(V, lambda at: divmod(at, given.n_cols))
    return V


def read_stored_weights(weights: Any, source: SparseSource) -> SparseSource:
    """Weights of the cells that a sparse table stores; each must have one."""
    if source.absent == "zero":
        raise ParameterError(
            'weights with absent="zero" would be needed for the absent cells as well. '
            'Pass X.toarray() and an array of weights, or say absent="missing".'
        )
    if not is_sparse(weights):
        V = read_weights(weights, source)
        return source.with_values(V[source.lines, source.cols])
    given: SparseSource = read_input(weights, absent="missing", name="weights")
    _check_shape(given, source)
    _check_values(given.values, given.place)
    stored = given.values_at(source)
    without = np.isnan(stored) & ~source.missing
    if without.any():
        row, col = source.place(int(without.argmax()))
        raise WeightsError(
            f"X[{row}, {col}] is stored, but weights[{row}, {col}] is absent "
            f"({int(without.sum())} in all). Store a weight for every stored cell of "
            "X; use 0 for a cell to be ignored."
        )
    return source.with_values(stored)


def _check_shape(given: AnySource, source: AnySource) -> None:
    if (given.n_rows, given.n_cols) != (source.n_rows, source.n_cols):
        raise WeightsError(
            f"weights have shape ({given.n_rows}, {given.n_cols}), but X has shape "
            f"({source.n_rows}, {source.n_cols}). Give one weight per cell."
        )


def _check_values(V: Floats, place: Callable[[int], tuple[int, int]]) -> None:
    """Raise for weights that cannot be used; ``place`` finds the cell of a weight."""

    def name_of(at: int) -> str:
        row, col = place(at)
        return f"weights[{row}, {col}]"

    check_weights(V, name_of, "use 0 for a cell to be ignored")
    if not V.any():
        raise WeightsError("All weights are zero: nothing is left to fit.")


def check_weights(V: Floats, name_of: Callable[[int], str], zero: str) -> None:
    """Raise for NaN, infinite or negative weights; ``zero`` tells what 0 is for."""
    faults = {"NaN": np.isnan(V), "infinite": np.isinf(V), "negative": V < 0.0}
    for what, bad in faults.items():
        if bad.any():
            at = int(bad.argmax())
            raise WeightsError(
                f"{name_of(at)} = {V.flat[at]} is {what} ({int(bad.sum())} in all). "
                f"Weights must be finite and >= 0; {zero}."
            )


def _observe_stored(source: SparseSource, weights: SparseSource) -> Observation:
    """Pairs of the stored cells that count, every row a line of its own."""
    used = ~source.missing & (weights.values > 0.0)
    cells = source.with_cells(used)
    check_stored_cells(cells, "raise")
    sums, v, exponent = _weighted_sums(cells.values, weights.values[used])
    pairs = PairStatistics(cells.ptr, cells.cols, sums, v, cells.n_cols)
    return Observation(pairs.row_sums, None, pairs, exponent, 0)


def _observe_weighted(X: Floats, V: Floats) -> Observation:
    """Pairs of (group of rows with proportional weights, column)."""
    V = np.where(np.isnan(X), 0.0, V)
    sums, used, exponent = _weighted_sums(np.nan_to_num(X), V)
    group, base = _group_proportional_rows(used)
    row_sums = sums.sum(axis=1)
    n_groups = int(group.max()) + 1
    first = np.unique(group, return_index=True)[1]
    block_sums = np.zeros((n_groups, X.shape[1]))
    np.add.at(block_sums, group, sums)
    weights = used[first]
    lines, cols = np.nonzero(weights)
    counts = np.bincount(lines, minlength=n_groups)
    statistics = PairStatistics(
        np.concatenate(([0], np.cumsum(counts))),
        cols.astype(np.int32),
        block_sums[lines, cols],
        weights[lines, cols],
        X.shape[1],
    )
    # The sums that the rows would have with the weights of their group's first row.
    alike = product(row_sums, base[first][group], over=base)
    if not (keeps_digits(alike) & ((alike == 0.0) == (row_sums == 0.0))).all():
        raise NotRepresentableError(
            "The weights of proportional rows are further apart than float64 reaches "
            "(1e-308 to 1e308). Multiply the weights of a row by a power of ten."
        )
    return Observation(alike, group, statistics, exponent, 0)


def _weighted_sums(X: Floats, V: Floats) -> tuple[Floats, Floats, int]:
    """Data times weights and 2**-exponent, the weights on a scale of their own.

    Nothing is scaled where it need not be. Only ratios of weights count in a fit.

    Raises
    ------
    NotRepresentableError
        No power of two keeps the largest finite and all digits of the smallest.
    """
    used = V > 0.0
    of_weights = _exponent_in_range(np.frexp(V)[1][used], V.size, "weights")
    positive = used & (X > 0.0)
    powers = (np.frexp(X)[1].astype(np.int64) + np.frexp(V)[1])[positive] - of_weights
    exponent = _exponent_in_range(powers, X.size, "weighted cells")
    V = np.ldexp(V, -of_weights) if of_weights else V
    if not exponent:
        return X * V, V, 0
    return product(X, V, exponent=-exponent), V, exponent


def _exponent_in_range(powers: AnyArray, n: int, what: str) -> int:
    """A power of two by which n numbers of these powers are divided; 0 if it can be."""
    if not len(powers):
        return 0
    low, high = int(powers.min()) - 1, int(powers.max()) + n.bit_length()
    if low >= LOWEST and high <= HIGHEST:
        return 0
    if high - low > HIGHEST - LOWEST:
        raise NotRepresentableError(
            f"The {what} of this table are further apart than float64 reaches (1e-308 "
            "to 1e308). Multiply rows, columns or weights by powers of ten that bring "
            "them closer together."
        )
    return high - HIGHEST if high > HIGHEST else low - LOWEST


def _group_proportional_rows(used: Floats) -> tuple[SmallInts, Floats]:
    """Group of each row, rows with proportional weights together, and its scale."""
    largest = used.max(axis=1)
    base = np.where(largest > 0.0, largest, 1.0)
    exact = used / base[:, None]
    shape = _rounded(exact, DIGITS)
    if ((shape < LEAST) & (used > 0.0)).any():  # further apart than float64 reaches
        ratio = wide_product(used, over=base[:, None])
        exact = ratio.mantissa
        # Exponents have 12 bits.
        shape = _rounded(exact, DIGITS - 4) + 2.0 * ratio.exponent
    _, first, group = np.unique(shape, axis=0, return_index=True, return_inverse=True)
    alike = first[group.ravel()]
    # What is more than rounding keeps a row apart.
    is_near = (np.abs(exact - exact[alike]) <= NEAR * exact).all(axis=1)
    alike = np.where(is_near, alike, np.arange(len(used)))
    found: SmallInts = np.unique(alike, return_inverse=True)[1].ravel().astype(np.int32)
    return found, base


def _rounded(x: Floats, digits: int) -> Floats:
    mantissa, exponent = np.frexp(x)
    rounded: Floats = np.ldexp(np.round(np.ldexp(mantissa, digits)), exponent - digits)
    return rounded
