"""The kernel's fast ways from statistics to factors, in NumPy."""

from __future__ import annotations

import numpy as np

from a1gm._base.bits import unpack_bits
from a1gm._base.types import Floats, Words
from a1gm._kernel.reference.checks import (
    Part,
    check_array,
    check_bits,
    check_keys,
    check_length,
    check_mask,
    check_sweeps,
    check_table,
    require,
)
from a1gm._kernel.reference.observe import read_rows


def solve_plain(
    keys: Words, sums: Floats, tol: float, max_sweeps: int, max_steps: int
) -> None:
    """Return None: only the compiled kernel has this fast way to the same answer."""
    check_keys(keys, sums)
    check_sweeps(tol, max_sweeps)
    require(max_steps >= 0, "max_steps must be 0 or more")


def solve_wide(
    bits: Words,
    row_sums: Floats,
    col_sums: Floats,
    tol: float,
    max_sweeps: int,
    n_threads: int,
) -> None:
    """Return None, as ``solve_plain`` does."""
    check_mask(bits, row_sums, col_sums)
    check_sweeps(tol, max_sweeps, n_threads)


def solve_weighted(
    bits: Words,
    weights: list[Part],
    row_sums: Floats,
    col_sums: Floats,
    tol: float,
    max_sweeps: int,
    n_threads: int,
) -> None:
    """Return None, as ``solve_plain`` does."""
    _check_weights(bits, weights, row_sums, col_sums, n_threads)
    check_sweeps(tol, max_sweeps, n_threads)


def weighted_product(
    bits: Words, weights: list[Part], row_sums: Floats, col_sums: Floats, n_threads: int
) -> Floats:
    """Pᵀ (d (P x)) for weights P, d being the second last and x the last vector."""
    _check_weights(bits, weights, row_sums, col_sums, n_threads)
    V = read_rows(weights, 0, len(bits), 1.0)
    P = np.where(unpack_bits(bits, len(col_sums)), V, 0.0)
    product: Floats = (row_sums * (P @ col_sums)) @ P
    return product


def _check_weights(
    bits: Words, weights: list[Part], row_sums: Floats, col_sums: Floats, n_threads: int
) -> None:
    check_mask(bits, row_sums, col_sums)
    shape = check_table(weights, 1, 1.0, n_threads)
    require(
        shape == (len(row_sums), len(col_sums)),
        "weights must be one number per cell of the table",
    )


def mask_product(bits: Words, d: Floats, x: Floats, n_threads: int) -> Floats:
    """Mᵀ (d (M x)) for a bit mask M."""
    check_array(d, "d", 1, np.float64)
    check_array(x, "x", 1, np.float64)
    check_array(bits, "bits", 2, np.uint64)
    check_bits(bits, len(x))
    check_length(d, len(bits), "d must be one number per row")
    check_sweeps(1.0, 1, n_threads)
    observed = unpack_bits(bits, len(x))
    product: Floats = (d * (observed @ x)) @ observed
    return product


def solve_nested(
    bits: Words, parts: list[Part], col_sums: Floats, scale: float, n_threads: int
) -> tuple[Floats, Floats] | None:
    """Column factors of nested patterns, and their sum over each row's cells.

    None when the patterns are not nested. With the columns sorted by the step of the
    staircase at which they appear, the factors of a step are to those of all earlier
    ones as its column sums are to the earlier cells of the rows that observe it.
    """
    n, m = check_table(parts, 1, scale, n_threads)
    check_array(bits, "bits", 2, np.uint64)
    check_array(col_sums, "col_sums", 1, np.float64)
    check_bits(bits, len(col_sums))
    check_length(bits, n, "bits must be one row per row of the table")
    check_length(col_sums, m, "col_sums must be one number per column of the table")
    observed = unpack_bits(bits, len(col_sums))
    by_size = observed[np.argsort(observed.sum(axis=1), kind="stable")]
    if (by_size[:-1] & ~by_size[1:]).any() or not observed.any():
        return None
    cells = np.nan_to_num(read_rows(parts, 0, len(bits), scale), nan=0.0)
    h = np.full(len(col_sums), np.nan)
    known = np.zeros(len(col_sums), bool)
    for pattern in by_size:
        step = pattern & ~known
        if not step.any():
            continue
        rows = observed[:, step].any(axis=1)
        before, fresh = cells[np.ix_(rows, known)].sum(), col_sums[step].sum()
        share = fresh / (fresh + before)
        h[known] *= 1.0 - share if before == 0.0 else before / (fresh + before)
        h[step] = share * col_sums[step] / fresh
        known |= step
    return h, observed @ np.nan_to_num(h, nan=0.0)
