"""From statistics to factors in one call, in NumPy, where that defines something."""

from __future__ import annotations

import numpy as np

from a1gm._base.bits import unpack_bits
from a1gm._base.types import Floats, Words
from a1gm._kernel.reference.checks import (
    Part,
    check_array,
    check_bits,
    check_keys,
    check_mask,
    check_sweeps,
    check_table,
    require,
)
from a1gm._kernel.reference.observe import read_rows

__all__ = ["scale_together", "solve_nested", "solve_plain", "solve_wide"]


def solve_plain(keys: Words, sums: Floats, tol: float, max_sweeps: int) -> None:
    """Decline: the short cut is the compiled kernel's, the answer the general one's."""
    check_keys(keys, sums)
    check_sweeps(tol, max_sweeps)


def solve_wide(
    bits: Words,
    row_sums: Floats,
    col_sums: Floats,
    tol: float,
    max_sweeps: int,
    n_threads: int,
) -> None:
    """Decline, as ``solve_plain`` does."""
    check_mask(bits, row_sums, col_sums)
    check_sweeps(tol, max_sweeps, n_threads)


def scale_together(
    bits: Words,
    sums: Floats,
    second: int,
    coef: Floats,
    col_sums: Floats,
    start: Floats,
    tol: float,
    max_sweeps: int,
    n_threads: int,
) -> tuple[Floats, Floats]:
    """Scale one mask for many margins: column factors, and the mismatch reached.

    Every row of ``col_sums`` is a problem of its own, w = R / (P h) and h = C / (P' w).
    Its row margins are made of two ``sums`` per line: coef[0] and coef[1] times them
    for the lines before ``second``, coef[2] and coef[3] for the others.
    """
    _check_problems(bits, sums, second, coef, col_sums, start)
    check_sweeps(tol, max_sweeps, n_threads)
    require(max_sweeps >= 1, "max_sweeps must be at least 1")
    mask = unpack_bits(bits, col_sums.shape[1]).astype(np.float64)
    later = np.arange(len(bits)) >= second
    row_sums = np.where(later, coef[2, :, None], coef[0, :, None]) * sums[:, 0]
    row_sums += np.where(later, coef[3, :, None], coef[1, :, None]) * sums[:, 1]
    h = np.where(col_sums == 0.0, 0.0, start)
    for sweep in range(1, max_sweeps + 1):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            w = np.where(row_sums > 0.0, row_sums / (h @ mask.T), 0.0)
            fitted = w @ mask
            off = np.where(
                col_sums == 0.0, 0.0, np.abs(h * fitted - col_sums) / col_sums
            )
            gap = off.max(axis=1)
            if sweep == max_sweeps or not (gap > tol).any():  # NaN does not get better
                break
            h = np.where(col_sums == 0.0, 0.0, col_sums / fitted)
    return h, np.where(np.isnan(gap), np.inf, gap)


def _check_problems(
    bits: Words,
    sums: Floats,
    second: int,
    coef: Floats,
    col_sums: Floats,
    start: Floats,
) -> None:
    check_array(bits, "bits", 2, np.uint64)
    for name, given in zip(
        ("sums", "coef", "col_sums", "start"),
        (sums, coef, col_sums, start),
        strict=True,
    ):
        check_array(given, name, 2, np.float64)
    n, (n_problems, m) = len(bits), col_sums.shape
    require(m >= 1, "col_sums must have at least one column")
    check_bits(bits, m)
    require(sums.shape == (n, 2), "sums must be two numbers per row")
    require(0 <= second <= n, "second must be a number of rows")
    require(coef.shape == (4, n_problems), "coef must be four numbers per problem")
    one_each = start.shape == col_sums.shape
    require(one_each, "start must be of the shape of col_sums")


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
    require(len(bits) == n, "bits must be one row per row of the table")
    enough = len(col_sums) == m
    require(enough, "col_sums must be one number per column of the table")
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
