"""A pattern table that grows, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from a1gm._base.types import AnyArray, Floats, Ints
from a1gm._kernel.reference.checks import check_array, check_pattern_id, require


def add_patterns(
    hi: Floats,
    lo: Floats,
    counts: Ints,
    zero_counts: Ints,
    places: Ints,
    sums: Floats,
    new_counts: Ints,
    pattern_id: AnyArray,
    row_sums: Floats,
) -> AnyArray:
    """Add the patterns of a piece to those of a table, in place.

    The sums are pairs ``hi + lo``. Returns the place of each row of the piece, whose
    pattern within the piece is ``pattern_id``.
    """
    _check_growing(hi, "hi", 2, np.float64)
    _check_growing(lo, "lo", 2, np.float64)
    _check_growing(counts, "counts", 1, np.int64)
    _check_growing(zero_counts, "zero_counts", 1, np.int64)
    alike = lo.shape == hi.shape and counts.shape == zero_counts.shape == hi.shape[:1]
    require(alike, "lo, counts and zero_counts must have the rows of hi")
    check_array(places, "places", 1, np.int64)
    check_array(new_counts, "new_counts", 1, np.int64)
    check_array(sums, "sums", 2, np.float64)
    check_array(row_sums, "row_sums", 1, np.float64)
    check_pattern_id(pattern_id)
    k = len(places)
    alike = sums.shape == (k, hi.shape[1]) and len(new_counts) == k
    require(alike, "sums and new_counts must be one row per place")
    alike = len(pattern_id) == len(row_sums)
    require(alike, "pattern_id must be one number per row")
    inside = bool(((places >= 0) & (places < len(hi))).all())
    inside = inside and len(np.unique(places)) == k
    require(inside, "places must be different rows of the table")
    require(
        bool(((pattern_id >= 0) & (pattern_id < k)).all()),
        "a pattern number must be 0 or more and below the number of places",
    )
    with np.errstate(over="ignore", invalid="ignore"):
        before = hi[places]
        total = before + sums
        part = total - before
        lo[places] += (before - (total - part)) + (sums - part)
    hi[places] = total
    counts[places] += new_counts
    zero = pattern_id[row_sums == 0.0]
    zero_counts[places] += np.bincount(zero, minlength=k)
    few = np.uint8 if len(hi) <= 256 else np.int32
    lines: AnyArray = places.astype(few)[pattern_id]
    return lines


def _check_growing(given: Any, name: str, ndim: int, dtype: Any) -> None:
    is_array = isinstance(given, np.ndarray) and given.ndim == ndim
    require(
        is_array and given.dtype == dtype and given.flags.carray,
        f"{name} must be a writable contiguous array of {np.dtype(dtype)}",
    )
