"""Rows of one block, placed by one pass of the kernel over a table of any layout.

Every function gives None where a cell or a factor is out of range: then the general way
is taken, which has the words for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from a1gm._base.types import Floats
from a1gm._fit.fill_columns import Left, Target
from a1gm._kernel import kernel, say_if_slow, threads_for
from a1gm._rows.rows import Rows


def row_factors(source: Rows, h: Floats, *, takes_negatives: bool) -> Floats | None:
    """Row sums over the sums of the observed columns' factors; NaN for empty rows."""
    found: list[Floats] = []
    for _, parts, threads in _pieces(source):
        factors = kernel.row_factors(parts, h, takes_negatives, threads)
        if factors is None:
            return None
        found.append(factors)
    return found[0] if len(found) == 1 else np.concatenate(found)


def fill_rows(
    source: Rows,
    h: Floats,
    targets: Sequence[Target],
    otherwise: Floats | None = None,
    *,
    takes_negatives: bool,
) -> Left | None:
    """Write the cells of a table, filled, to targets that have its columns.

    ``otherwise`` are the values of the columns in rows that observe nothing; NaN where
    cells stay missing.
    """
    if otherwise is None:
        otherwise = np.full(len(h), np.nan)
    n_empty, first_empty = 0, 0
    for first, parts, threads in _pieces(source):
        rows = slice(first, first + len(parts[0][0]))
        some = [target if target is None else target[rows] for target in targets]
        found = kernel.fill_rows(parts, h, otherwise, some, takes_negatives, threads)
        if found is None:
            return None
        if found[0] and not n_empty:
            first_empty = first + found[1]
        n_empty += found[0]
    without = np.flatnonzero(np.isnan(otherwise))
    if not n_empty or not len(without):
        return Left(0, None)
    return Left(n_empty * len(without), (first_empty, int(without[0])))


def divergence(source: Rows, h: Floats) -> tuple[float, float] | None:
    """Sum of x log(x / f) - x + f over the observed cells, and of the row factors."""
    return _sum(source, lambda parts, threads: kernel.divergence(parts, h, threads))


def pearson(
    source: Rows, h: Floats, *, takes_negatives: bool
) -> tuple[float, float] | None:
    """Sum of (x - f)² / f over the cells with f > 0, and of the row factors."""

    def of_piece(parts: Any, threads: int) -> Any:
        return kernel.pearson(parts, h, takes_negatives, threads)

    return _sum(source, of_piece)


def _sum(
    source: Rows, of_piece: Callable[[Any, int], Any]
) -> tuple[float, float] | None:
    cells = factors = 0.0
    for _, parts, threads in _pieces(source):
        found = of_piece(parts, threads)
        if found is None:
            return None
        cells, factors = cells + found[0], factors + found[1]
    return cells, factors


def _pieces(source: Rows) -> Iterator[tuple[int, Any, int]]:
    """Yield first row, parts and threads of the pieces of a table."""
    say_if_slow()
    for first, piece in source.pieces():
        threads = threads_for(piece.n_rows * piece.n_cols, None)
        yield first, piece.parts, threads
