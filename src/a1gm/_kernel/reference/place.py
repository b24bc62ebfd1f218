"""Rows placed by given column factors, in NumPy.

Every function returns None where a cell is infinite or, unless they are taken,
negative, and where a factor or a filled cell leaves the range of its type.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from a1gm._base.types import AnyArray, Floats, SmallInts
from a1gm._kernel.reference.checks import (
    Part,
    check_array,
    check_lines,
    check_table,
    require,
)
from a1gm._kernel.reference.observe import PIECE_CELLS, read_rows

LEAST, MOST = np.finfo(np.float64).tiny, np.finfo(np.float64).max


class _OutOfRangeError(Exception):
    """A cell or a factor is not for these functions."""


def row_factors(
    parts: list[Part], h: Floats, takes_negatives: bool, n_threads: int
) -> Floats | None:
    """Row sums over the sums of the observed columns' factors; NaN for empty rows."""
    n, _ = _check(parts, h, n_threads)
    factors = np.empty(n)
    try:
        for start, piece, w in _placed(parts, h, takes_negatives):
            factors[start : start + len(piece)] = w
    except _OutOfRangeError:
        return None
    return factors


def fill_rows(
    parts: list[Part],
    h: Floats,
    otherwise: Floats,
    targets: list[AnyArray | None],
    takes_negatives: bool,
    n_threads: int,
) -> tuple[int, int] | None:
    """Write the cells, filled; return the number of empty rows, and the first.

    ``otherwise`` goes to the missing cells of empty rows.
    """
    n, m = _check(parts, h, n_threads)
    check_array(otherwise, "otherwise", 1, np.float64)
    require(len(otherwise) == m, "otherwise must be one number per column of the table")
    _check_targets(targets, n, m)
    n_empty, first = 0, -1
    try:
        for start, piece, w in _placed(parts, h, takes_negatives):
            empty = np.flatnonzero(np.isnan(w))
            if len(empty):
                first = start + int(empty[0]) if n_empty == 0 else first
                n_empty += len(empty)
            filled = np.where(np.isnan(piece), w[:, None] * h, piece) + 0.0
            filled[empty] = np.where(np.isnan(filled[empty]), otherwise, filled[empty])
            _store(filled, targets, slice(start, start + len(piece)))
    except _OutOfRangeError:
        return None
    return n_empty, first


def divergence(
    parts: list[Part], h: Floats, n_threads: int
) -> tuple[float, float] | None:
    """Sum of x log(x / f) - x + f over the observed cells, and of the row factors."""
    _check(parts, h, n_threads)
    total = factors = 0.0
    try:
        for _, piece, w in _placed(parts, h, takes_negatives=False):
            i, j = np.nonzero(~np.isnan(piece))
            total += float(_of_cells(piece[i, j], w[i], h[j]).sum())
            factors += float(np.nansum(w))
    except _OutOfRangeError:
        return None
    return (total, factors) if np.isfinite(total) else None


def pearson(
    parts: list[Part], h: Floats, takes_negatives: bool, n_threads: int
) -> tuple[float, float] | None:
    """Sum of (x - f)² / f over the cells with f > 0, and of the row factors."""
    _check(parts, h, n_threads)
    total = factors = 0.0
    try:
        for _, piece, w in _placed(parts, h, takes_negatives):
            f = w[:, None] * h
            own = ~np.isnan(piece) & (f > 0.0)
            d = piece[own] - f[own]
            with np.errstate(over="ignore"):
                total += float((d * (d / f[own])).sum())
            factors += float(np.nansum(w))
    except _OutOfRangeError:
        return None
    return (total, factors) if np.isfinite(total) else None


def square_sums(
    parts: list[Part],
    row_sums: Floats,
    lines: SmallInts,
    n_lines: int,
    scale: float,
    n_threads: int,
) -> Floats:
    """Sums of (x scale)² / r by line and column, r being the sum of the row.

    NaN for a line with a row that has cells but no positive sum.
    """
    n, m = check_table(parts, 1, scale, n_threads)
    check_array(row_sums, "row_sums", 1, np.float64)
    check_array(lines, "lines", 1, np.int32)
    require(len(row_sums) == n, "row_sums must be one number per row")
    require(len(lines) == n, "lines must be one number per row")
    check_lines(n_lines, m)
    in_range = not n or (lines.min() >= 0 and lines.max() < n_lines)
    require(bool(in_range), "lines must be 0 or more and below n_lines")
    sums, step = np.zeros((n_lines, m)), max(1, PIECE_CELLS // m)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        x = np.nan_to_num(read_rows(parts, rows.start, rows.stop, scale), nan=0.0)
        with np.errstate(all="ignore"):
            squares = x * (x / row_sums[rows, None])
        none = ~(row_sums[rows] > 0.0)
        squares[none] = np.where((x[none] != 0.0).any(axis=1)[:, None], np.nan, 0.0)
        np.add.at(sums, lines[rows], squares)
    return sums


def _of_cells(x: Floats, w: Floats, h: Floats) -> Floats:
    with np.errstate(all="ignore"):
        f, ratio = w * h, x / (w * h)
        is_apart = (ratio < LEAST) | (ratio > MOST) | (f < LEAST)
        logs = np.where(is_apart, np.log(x) - (np.log(w) + np.log(h)), np.log(ratio))
        cells = np.maximum(x * logs - (x - f), 0.0)  # below by rounding only
    values: Floats = np.where(x == 0.0, f, cells)
    return values


def _placed(
    parts: list[Part], h: Floats, takes_negatives: bool
) -> Iterator[tuple[int, Floats, Floats]]:
    """Yield first row, cells and factors of some rows."""
    n, step = len(parts[0][0]), max(1, PIECE_CELLS // len(h))
    for start in range(0, n, step):
        piece = read_rows(parts, start, min(start + step, n), 1.0)
        observed = ~np.isnan(piece)
        with np.errstate(all="ignore"):
            sums = np.where(observed, piece, 0.0).sum(axis=1)
            w = sums / np.where(observed, h, 0.0).sum(axis=1)
            most = np.abs(w) * max(1.0, h.max())  # of the fitted values
            is_right = (sums == 0.0) | ((np.abs(w) >= LEAST) & (most <= MOST))
            is_negative = bool((piece < 0.0).any()) and not takes_negatives
        if is_negative or not is_right.all():
            raise _OutOfRangeError
        yield start, piece, w


def _store(filled: Floats, targets: list[AnyArray | None], rows: slice) -> None:
    at = 0
    for target in targets:
        width = 1 if target is None else target.shape[1]
        if target is not None:
            cells = filled[:, at : at + width]
            if (np.abs(cells) > np.finfo(target.dtype).max).any():
                raise _OutOfRangeError
            target[rows] = cells
        at += width


def _check(parts: list[Part], h: Any, n_threads: int) -> tuple[int, int]:
    n, m = check_table(parts, 1, 1.0, n_threads)
    check_array(h, "h", 1, np.float64)
    require(len(h) == m, "h must be one number per column of the table")
    return n, m


def _check_targets(targets: list[Any], n: int, m: int) -> None:
    n_found = 0
    for target in targets:
        if target is None:
            n_found += 1
            continue
        is_table = isinstance(target, np.ndarray) and target.ndim == 2
        is_float = is_table and target.dtype in (np.float64, np.float32)
        require(
            is_float and target.flags.writeable,
            "a target must be None or a writable two-dimensional array of float64 or "
            "float32",
        )
        require(len(target) == n, "a target must have the rows of the table")
        require(
            target.flags.aligned, "a target must lie at a multiple of its item's size"
        )
        n_found += target.shape[1]
    require(n_found == m, "targets must have the columns of the table")
