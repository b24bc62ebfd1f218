"""Any rows become `Patterns`, in one pass."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NoReturn

import numpy as np

from a1gm._base.float_range import LEAST, TOO_FAR_APART
from a1gm._base.types import AnyArray, Floats, Ints, Negatives
from a1gm._kernel import SMALL, SMALL_PIECE, kernel, threads_for, warn_if_slow
from a1gm._observe.accumulate import Accumulator
from a1gm._observe.patterns import Patterns, pairs_of
from a1gm._observe.sparse import LIFT, TINY, observe_sparse
from a1gm._rows.read import AnyRows
from a1gm._rows.rows import Rows, check_faults, check_values, table_of
from a1gm._rows.sparse import SparseRows
from a1gm._rows.weights import check_weights
from a1gm.exceptions import (
    InfiniteValuesError,
    NegativeValuesError,
    NotRepresentableError,
)

TABLE_CELLS = 1 << 16  # a table of patterns smaller than this is always kept
SAME = 1e-13  # relative: sums of the same numbers on two scales
MOST = 2.0**1020  # above, sums of weighted cells may overflow
MANY_CELLS = 1 << 18  # of a piece


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
            return _observe_stored_weights(source)
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
    """Run the kernel's pass, again on another scale when the sums leave float64."""
    warn_if_slow()
    n_cells = source.n_rows * source.n_cols
    threads = threads_for(n_cells, n_threads, SMALL_PIECE if keep_table else SMALL)
    exponent, before = 0, None
    while True:
        row_sums, wide, found, total, overflow, negative, infinite = kernel.observe(
            source.parts, threads, math.ldexp(1.0, -exponent), TABLE_CELLS, keep_table
        )
        if negative[0] or infinite[0]:
            check_faults(source, negative, infinite, negatives, row_offset)
        # Sums that are finite still overflow when their total does: it divides them.
        if (overflow or not math.isfinite(total)) and exponent <= 0:
            before = _sums_of(row_sums, wide, found)
            exponent = 2 + int(math.log2(n_cells))
        elif exponent == 0 and 0.0 < total < TINY:
            exponent = -int(math.log2(LIFT))
        else:
            break
    if before is not None:
        _check_digits(before, _sums_of(row_sums, wide, found), exponent)
    seen = Patterns(source.n_cols, exponent=exponent, n_negative=negative[0])
    seen.sum_of_row = row_sums
    if wide:
        seen.keys, positive, seen.col_margin, has_zero = found
        seen.positive = positive if has_zero else None
        seen.row_margin = row_sums
    else:
        seen.pattern_of_row, seen.keys, seen.counts, seen.sums = found
    return seen


def _sums_of(row_sums: Floats, wide: bool, found: Any) -> list[AnyArray]:
    """Sums that a pass has kept and, where it keeps bits, the signs of the cells."""
    return [row_sums, found[2], found[1]] if wide else [row_sums, found[3]]


def _check_digits(before: list[AnyArray], after: list[AnyArray], exponent: int) -> None:
    """Raise if sums that did not overflow have lost digits on the new scale."""
    for old, new in zip(before, after, strict=True):
        if old.dtype != np.float64:
            is_lost = old != new
        else:
            with np.errstate(invalid="ignore", over="ignore"):
                is_lost = np.abs(np.ldexp(new, exponent) - old) > SAME * np.abs(old)
            is_lost &= np.isfinite(old)
        if is_lost.any():
            raise NotRepresentableError(TOO_FAR_APART)


def _add_scatter(source: Rows, seen: Patterns, n_threads: int | None) -> None:
    """Add the sums of the scatter of the cells, where they are finite.

    They are not where a row with negative cells sums to zero or less.
    """
    from scipy.special import xlogy

    squares, of_cells = np.zeros(seen.sums.shape), 0.0
    ones, scale = np.ones(seen.n_cols), math.ldexp(1.0, -seen.exponent)
    patterns, sums = seen.pattern_of_row, seen.sum_of_row
    for first, piece in source.tables():
        rows = slice(first, first + piece.n_rows)
        threads = threads_for(piece.n_rows * piece.n_cols, n_threads)
        squares += kernel.square_sums(
            piece.parts, sums[rows], patterns[rows], seen.n_patterns, scale, threads
        )
        # Factors of 1 fit every row by its mean.
        found = kernel.divergence(piece.parts, ones, threads)
        of_cells += math.nan if found is None else found[0]
    # r counts on the scale of the sums, its logarithm in the data.
    of_rows = xlogy(sums, sums).sum() + seen.exponent * math.log(2.0) * sums.sum()
    logs = np.array([of_cells * scale, of_rows])
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
def _observe_stored_weights(source: SparseRows) -> Patterns:
    """Pairs of the stored cells that count, every row a separate pattern."""
    weights = source.weights
    assert weights is not None
    used = ~source.missing & (weights.values > 0.0)
    cells = source.with_cells(used)
    check_values(cells, cells.values, None)  # weights take no negatives
    v = weights.values[used]
    sums = _check_range(cells.values, v, cells.row_of_cell, exposed=source.exposed)
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
    least, most = zip(of_weight, of_cell, strict=True)
    if min(least) < LEAST or max(most) > MOST / n_cells:
        X, row_of_cell = source.rows(every), np.arange(source.n_rows)[:, None]
        _check_range(X, V.rows(every), row_of_cell, exposed=exposed)
    row_sums, is_wide, form = found
    if is_wide:
        bits, positive, col_sums, has_zero = form
        seen = Patterns(source.n_cols, bits, positive if has_zero else None)
        seen.row_margin, seen.col_margin = row_sums, col_sums
        seen.weights = _array_of(V)
    else:
        if (lost := np.isnan(row_sums)).any():  # on the scale of proportional rows
            _refuse_range("weights", int(lost.argmax()))
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


def _check_range(X: Floats, V: Floats, row_of_cell: Ints, *, exposed: bool) -> Floats:
    """Return the weighted cells; raise if sums of them or of weights lose digits."""
    used = (V > 0.0) & ~np.isnan(X)
    with np.errstate(all="ignore"):
        cells = X if exposed else X * V
    for what, size, counts in (
        ("weights", V, used),
        ("weighted cells", cells, used & (X > 0.0)),
    ):
        lost = counts & ~((size >= LEAST) & (size <= MOST / max(X.size, 1)))
        if lost.any():
            rows = np.broadcast_to(row_of_cell, lost.shape)
            _refuse_range(what, int(rows[lost][0]))
    return cells


def _refuse_range(what: str, row: int) -> NoReturn:
    raise NotRepresentableError(
        f"The {what} of row {row}, or their sums, are outside the range of float64 "
        "(about 1e-308 to 1e308). Multiply the weights or the cells by powers of ten "
        "that bring them closer to 1."
    )
