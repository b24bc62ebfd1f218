"""Any rows become `Patterns`, in one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from a1gm._base.float_range import LARGEST, LEAST, SMALLEST, check_range
from a1gm._base.types import AnyArray, Floats, Ints, Negatives
from a1gm._kernel import SMALL, SMALL_PIECE, kernel, threads_for, warn_if_slow
from a1gm._observe.accumulate import Accumulator
from a1gm._observe.patterns import Patterns, pairs_of, weighted_counts
from a1gm._observe.sparse import observe_sparse
from a1gm._rows.read import AnyRows
from a1gm._rows.rows import Rows, check_faults, check_sums, check_values, table_of
from a1gm._rows.sparse import SparseRows
from a1gm._rows.weights import check_weights
from a1gm.exceptions import (
    InfiniteValuesError,
    NegativeValuesError,
)

TABLE_CELLS = 1 << 16  # a table of patterns smaller than this is always kept
MANY_CELLS = 1 << 18  # of a piece
# Weighted sparse tables up to either size are read as arrays.
FEW_CELLS = 1 << 20
MOST_ABSENT = 4  # cells for each stored one


def observe(
    source: AnyRows,
    *,
    n_threads: int | None = None,
    negatives: Negatives | None = "raise",
    keep_table: bool = False,
    row_offset: int = 0,
    scatter: bool = False,
) -> Patterns:
    """Observe a table once, and raise for cells that cannot be fitted.

    ``negatives`` is None if the caller has no such option. ``keep_table`` keeps the
    sums of every pattern, however many there are, and ``scatter`` those that the
    scatter of the cells needs. ``row_offset`` counts rows before this piece, for
    messages.
    """
    if isinstance(source, SparseRows):
        if source.weights is not None:
            return _observe_stored_weights(source, n_threads)
        return observe_sparse(source, negatives=negatives, row_offset=row_offset)
    if source.weights is not None:
        V = source.weights.in_one_piece()
        return _observe_weighted(source.in_one_piece(), V, n_threads)
    look = partial(
        _observe, n_threads=n_threads, negatives=negatives, row_offset=row_offset
    )
    if source.cut is None:
        seen = look(source, keep_table)
    else:
        seen = _observe_pieces(source, keep_table, look)
    if scatter and seen.is_table:
        _add_scatter(source, seen, n_threads)
    return seen


def _observe_pieces(
    source: Rows, keep_table: bool, look: Callable[[Rows, bool], Patterns]
) -> Patterns:
    """Observe the pieces, each by ``look``, and add them up.

    After a bad cell the whole table is read, to count all bad cells.
    """
    beyond: Literal["bits"] | None = None if keep_table else "bits"
    found = Accumulator(source.n_cols, rows="memory", room=source.n_rows, beyond=beyond)
    try:
        for _, piece in source.tables():
            # One large piece shows whether nearly every row has another pattern.
            keep = keep_table or piece.n_rows * piece.n_cols < MANY_CELLS
            found.add(look(piece, keep))
    except (InfiniteValuesError, NegativeValuesError):
        look(source.in_one_piece(), True)
        raise
    return found.patterns()


def _observe(
    source: Rows,
    keep_table: bool,
    *,
    n_threads: int | None,
    negatives: Negatives | None,
    row_offset: int,
) -> Patterns:
    """Run the kernel's pass; raise for cells and sums that cannot be fitted."""
    warn_if_slow()
    n_cells = source.n_rows * source.n_cols
    threads = threads_for(n_cells, n_threads, SMALL_PIECE if keep_table else SMALL)
    row_sums, wide, found, is_in_range, negative, infinite = kernel.observe(
        source.parts, threads, TABLE_CELLS, keep_table
    )
    if negative[0] or infinite[0]:
        check_faults(source, negative, infinite, negatives, row_offset)
    if not is_in_range:
        check_sums(source, np.nan_to_num(source.cells), row_sums, row_offset)
    seen = Patterns(source.n_cols, n_negative=negative[0])
    seen.sum_of_row = row_sums
    if wide:
        seen.keys, positive, seen.col_margin, has_zero = found
        seen.positive = positive if has_zero else None
        seen.row_margin = row_sums
    else:
        seen.pattern_of_row, seen.keys, seen.counts, seen.sums = found
    return seen


def _add_scatter(source: Rows, seen: Patterns, n_threads: int | None) -> None:
    """Add the sums of the scatter of the cells, where they are finite.

    They are not where a row with negative cells sums to zero or less.
    """
    from scipy.special import xlogy

    squares, of_cells = np.zeros(seen.sums.shape), 0.0
    ones = np.ones(seen.n_cols)
    patterns, sums = seen.pattern_of_row, seen.sum_of_row
    for first, piece in source.tables():
        rows = slice(first, first + piece.n_rows)
        threads = threads_for(piece.n_rows * piece.n_cols, n_threads)
        squares += kernel.square_sums(
            piece.parts, sums[rows], patterns[rows], seen.n_patterns, threads
        )
        # Factors of 1 fit every row by its mean.
        found = kernel.divergence(piece.parts, ones, threads)
        of_cells += np.nan if found is None else found[0]
    logs = np.array([of_cells, xlogy(sums, sums).sum()])
    if seen.n_negative:
        logs[:] = 0.0  # there is no divergence
    if np.isfinite(squares).all() and np.isfinite(logs).all():
        seen.squares, seen.logs = squares, logs


# ------------------------------------------------------------- weights and exposures
# The weighted cost has the same form with a matrix of weights P in place of the 0/1
# mask: w_i (P h)_i = sum_j P_ij X_ij. Rows with proportional weights are twins. Where
# few rows are, the weights are not copied, and the mask is kept beside them.
# Exposures are the weights of rates: w_i (E h)_i = sum_j X_ij. The counts X are summed
# as they are, so no rate X / E is ever formed.
def _observe_stored_weights(source: SparseRows, n_threads: int | None) -> Patterns:
    """Pairs of the stored cells that count, every row a separate pattern."""
    weights = source.weights
    assert weights is not None
    shape = source.n_rows, source.n_cols
    most = max(MOST_ABSENT * len(source.values), FEW_CELLS)
    if shape[0] * shape[1] <= most and (weights.values > 0.0).any():  # as an array
        X = replace(table_of(source.to_dense()), exposed=source.exposed)
        known = np.where(source.missing, 0.0, weights.values)
        V = table_of(weights.with_values(known).to_dense())
        return _observe_weighted(X, replace(V, name=weights.name), n_threads)
    used = ~source.missing & (weights.values > 0.0)
    cells = source.with_cells(used)
    check_values(cells, cells.values, None)  # weights take no negatives
    v = weights.values[used]
    rows = cells.row_of_cell
    sums = _weighted_cells(cells.values, v, rows, exposed=source.exposed)
    _check_row_sums(weighted_counts(rows, sums, cells.n_rows))
    seen = Patterns(cells.n_cols, ptr=cells.ptr, cols=cells.cols, sums=sums, weights=v)
    seen.sum_of_row = seen.row_sums
    return seen


def _observe_weighted(source: Rows, V: Rows, n_threads: int | None) -> Patterns:
    warn_if_slow()
    every, exposed = slice(0, source.n_rows), source.exposed
    n_cells = source.n_rows * source.n_cols
    options = threads_for(n_cells, n_threads), TABLE_CELLS, exposed
    *found, of_weight, of_cell, are_fit = kernel.observe_weighted(
        source.parts, V.parts, *options
    )
    if not are_fit or of_weight[1] == 0.0:
        _check_weighted_cells(source, V)
        if exposed:  # some are not known
            V = table_of(np.nan_to_num(V.rows(every)))
            *found, of_weight, of_cell, _ = kernel.observe_weighted(
                source.parts, V.parts, *options
            )
    weights_fit = of_weight[0] >= SMALLEST and of_weight[1] <= LARGEST
    if not (weights_fit and of_cell[0] >= LEAST and of_cell[1] <= LARGEST):
        X, row_of_cell = source.rows(every), np.arange(source.n_rows)[:, None]
        _weighted_cells(X, V.rows(every), row_of_cell, exposed=exposed)
    row_sums, is_wide, form = found
    # NaN: of another row of proportional weights, on whose scale its sum is no float64.
    _check_row_sums(np.where(np.isnan(row_sums), np.inf, row_sums))
    if is_wide:
        bits, positive, col_sums, has_zero = form
        seen = Patterns(source.n_cols, bits, positive if has_zero else None)
        seen.row_margin, seen.col_margin = row_sums, col_sums
        seen.weights = _array_of(V)
    else:
        pattern_of_row, weights, sums = form
        i, j = np.nonzero(weights)
        seen = pairs_of(i, j, sums[i, j], weights[i, j], len(weights), source.n_cols)
        seen.pattern_of_row = pattern_of_row
    seen.sum_of_row = row_sums
    return seen


def _check_weighted_cells(source: Rows, V: Rows) -> None:
    """Raise for weights, and cells of positive weight, that cannot be used."""
    check_weights(V)
    every = slice(0, V.n_rows)
    X = np.where(V.rows(every) > 0.0, source.rows(every), np.nan)
    check_values(source, X, None)


def _array_of(V: Rows) -> AnyArray:
    """The weights in one array; a view if they are in one."""
    (values, mask, validity, *_), *more = V.parts
    if more or mask is not None or validity is not None:
        return V.rows(slice(0, V.n_rows))
    return values


def _weighted_cells(X: Floats, V: Floats, row: Ints, *, exposed: bool) -> Floats:
    """Return the weighted cells; raise for those, or weights, that are out of range."""
    used = (V > 0.0) & ~np.isnan(X)
    with np.errstate(all="ignore"):
        cells = X if exposed else X * V
    rows = np.broadcast_to(row, X.shape)[used]
    check_range(V[used], lambda at: f"The weights of row {rows[at]}")
    # A product below the smallest float64 would count as an observed zero.
    is_lost = (cells < LEAST) & (X > 0.0)
    ends = np.where(is_lost | (cells > LARGEST), np.maximum(cells, LEAST), 0.0)
    check_range(ends[used], lambda at: f"The weighted cells of row {rows[at]}")
    return cells


def _check_row_sums(sums: Floats) -> None:
    check_range(sums, lambda at: f"The weighted cells of row {at}", "row")
