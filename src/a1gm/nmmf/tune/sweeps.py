"""Alternating scaling of one pattern table for many weights at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from a1gm._base.types import Floats

# Multiplications that BLAS does on one thread. Its other threads would go on waiting
# busily, on the cores that the next pass over the data needs.
SMALL_PRODUCT = 1 << 18


def small_pieces(n_rows: int, size: int) -> Iterator[slice]:
    """Yield pieces of rows whose product with so many numbers is small."""
    step = max(1, SMALL_PRODUCT // max(1, size))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def product(a: Floats, b: Floats) -> Floats:
    """``a @ b`` in small pieces."""
    return np.concatenate([a[rows] @ b for rows in small_pieces(len(a), b.size)])


def scale_together(
    mask: Floats, row_sums: Floats, col_sums: Floats, *, tol: float, max_sweeps: int
) -> tuple[Floats, Floats]:
    """Solve w = R / (P h), h = C / (P' w) for many margins R, C of one mask P.

    Row k of ``row_sums`` and ``col_sums`` are the margins of one problem; returns h and
    the largest relative mismatch of a column margin, both problem by problem. A
    mismatch above ``tol``, or NaN, says that plain sweeps do not solve the problem.
    """
    some = col_sums > 0.0
    gap = np.full(len(some), np.inf)
    with np.errstate(all="ignore"):
        h = col_sums / col_sums.max(axis=1, keepdims=True)
        for _ in range(max_sweeps):
            w = np.where(row_sums > 0.0, row_sums / product(h, mask.T), 0.0)
            fitted = product(w, mask)
            off = np.abs(h * fitted - col_sums) / col_sums
            gap = np.max(off, axis=1, where=some, initial=0.0)
            if not (gap > tol).any():
                break
            h = np.where(some, col_sums / fitted, 0.0)
    return h, gap
