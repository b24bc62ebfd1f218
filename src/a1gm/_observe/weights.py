"""Fits with cell weights.

The weighted cost has the same form with a matrix of weights P in place of the 0/1
mask: w_i (P h)_i = sum_j P_ij X_ij. Rows with proportional weights are twins. Where
few rows are, the weights stay where they lie, and the mask is kept beside them.

Exposures are the weights of rates: w_i (E h)_i = sum_j X_ij. The counts X are summed as
they are, so no rate X / E is ever formed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias

import numpy as np

from a1gm._base.float_range import product
from a1gm._base.types import AnyArray, Floats, Ints
from a1gm._kernel import kernel, say_if_slow, threads_for
from a1gm._observe.observation import TABLE_CELLS, Observation
from a1gm._observe.pair_statistics import pointers
from a1gm._observe.statistics import PairStatistics, WeightedStatistics
from a1gm._rows import AnyRows, SparseRows, read_input
from a1gm._rows.cells import check_piece, check_stored_cells
from a1gm._rows.dense import Rows, table_of
from a1gm._rows.labels import check_same_labels
from a1gm._rows.read import is_sparse
from a1gm.exceptions import NotRepresentableError, ParameterError, WeightsError

Name: TypeAlias = Literal["weights", "exposure"]
OF_ZERO = "0 is for a cell that cannot have counts, NaN for an unknown exposure"
LOWEST, HIGHEST = -1021, 1020  # powers of two within which sums keep their digits


# ------------------------------------------------------------------------- reading
def one_of_both(weights: Any, exposure: Any) -> tuple[Name, Any]:
    """Name and table of the one that was given; None for none. Raise for both."""
    if exposure is None:
        return "weights", weights
    if weights is not None:
        raise ParameterError(
            "weights and exposure cannot be combined. Pass exposure= for counts that "
            "were made over unlike stretches of time or space, else weights=."
        )
    return "exposure", exposure


def read_cell_weights(
    weights: Any, source: AnyRows, *, check: bool = True, name: Name = "weights"
) -> Any:
    """Weights of the cells of a table, as another of its kind.

    Dense ones need no ``check`` of their values where a pass will look at them.
    """
    if isinstance(source, SparseRows):
        return read_stored_weights(weights, source, name)
    if is_sparse(weights):
        raise WeightsError(f"{name} is sparse, but X is dense. Pass {name}.toarray().")
    return read_weights(weights, source, check=check, name=name)


def read_weights(
    weights: Any, source: AnyRows, *, check: bool, name: Name = "weights"
) -> Rows:
    """Weights that lie as a table of the same shape and names."""
    given: Rows = read_input(weights, name=name)
    given.name = name
    _check_shape(given, source, name)
    check_same_labels("row", given.row_labels, source.row_labels, name, "X")
    check_same_labels("column", given.col_labels, source.col_labels, name, "X")
    if check and not all(_are_weights(piece) for _, piece in given.blocks()):
        _refuse(given)
    return given


def _are_weights(V: Floats) -> bool:
    return bool(((V >= 0.0) & (np.inf > V)).all())


def _refuse(V: Rows) -> None:
    """Raise for weights that cannot be used, with the number of them."""
    _check_values(V.rows(slice(0, V.n_rows)), lambda at: divmod(at, V.n_cols), V.name)


def read_stored_weights(
    weights: Any, source: SparseRows, name: Name = "weights"
) -> SparseRows:
    """Weights of the cells that a sparse table stores; each must have one."""
    if source.absent == "zero":
        raise ParameterError(
            f'{name} with absent="zero" would be needed for the absent cells as well. '
            f'Pass X.toarray() and an array of {name}, or say absent="missing".'
        )
    if not is_sparse(weights):
        V = read_weights(weights, source, check=True, name=name)
        return source.with_values(V.rows(slice(0, V.n_rows))[source.lines, source.cols])
    given: SparseRows = read_input(weights, absent="missing", name=name)
    _check_shape(given, source, name)
    _check_values(given.values, given.place, name)
    stored = given.values_at(source)
    without = np.isnan(stored) & ~source.missing
    if name == "weights" and without.any():
        row, col = source.place(int(without.argmax()))
        raise WeightsError(
            f"X[{row}, {col}] is stored, but weights[{row}, {col}] is absent "
            f"({int(without.sum())} in all). Store a weight for every stored cell of "
            "X; use 0 for a cell to be ignored."
        )
    return source.with_values(stored)


def _check_shape(given: AnyRows, source: AnyRows, name: Name) -> None:
    if (given.n_rows, given.n_cols) != (source.n_rows, source.n_cols):
        raise WeightsError(
            f"{name} have shape ({given.n_rows}, {given.n_cols}), but X has "
            f"shape ({source.n_rows}, {source.n_cols}). Give one number per cell."
        )


def _check_values(
    V: Floats, place: Callable[[int], tuple[int, int]], name: str
) -> None:
    """Raise for weights that cannot be used; ``place`` finds the cell of a weight."""

    def name_of(at: int) -> str:
        row, col = place(at)
        return f"{name}[{row}, {col}]"

    if name == "exposure":  # NaN is one that is not known
        check_weights(np.nan_to_num(V, posinf=np.inf, neginf=-np.inf), name_of, OF_ZERO)
        if not (V > 0.0).any():
            raise WeightsError("No exposure is above 0: nothing is left to fit.")
        return
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
                f"It must be finite and >= 0; {zero}."
            )


def cell_weights(V: AnyRows, i: Ints, j: Ints) -> Floats:
    """Weights of some cells, which a sparse table must store."""
    if isinstance(V, SparseRows):
        place = np.searchsorted(V.lines * V.n_cols + V.cols, i * V.n_cols + j)
        return V.values[place]
    if not len(i):
        return np.zeros(0)
    first = int(i.min())
    found: Floats = V.rows(slice(first, int(i.max()) + 1))[i - first, j]
    return found


# ----------------------------------------------------------------------- observing
def observe_weighted(
    source: AnyRows, V: Any, *, is_exposure: bool, n_threads: int | None = None
) -> Observation:
    """Observe a table whose cells have weights, as ``read_cell_weights`` gives them."""
    if isinstance(source, SparseRows):
        return _observe_stored(source, V, is_exposure=is_exposure)
    table, V = source.in_one_piece(), V.in_one_piece()
    return _observe_dense(table, V, n_threads, is_exposure=is_exposure)


def _observe_stored(
    source: SparseRows, weights: SparseRows, *, is_exposure: bool
) -> Observation:
    """Pairs of the stored cells that count, every row a line of its own."""
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


def _observe_dense(
    source: Rows, V: Rows, n_threads: int | None, *, is_exposure: bool
) -> Observation:
    """One pass, again on another scale where numbers leave float64."""
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
    _refuse(V)
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
