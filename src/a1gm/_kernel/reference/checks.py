"""What both kernels ask of their callers, in the same words.

The twin in C++ is ``checks.hpp``, which says why each rule is there.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from a1gm._base.types import AnyArray, Floats, Ints, SmallInts, Words

# Array, mask, validity bitmap, its bit offset, and the group of row sums.
Part: TypeAlias = tuple[AnyArray, AnyArray | None, AnyArray | None, int, int]
MOST_CELLS = 1 << 60
MOST_LINES = (1 << 31) - 1
MOST_GROUPS = 1 << 16
DIMENSIONS = {1: "one", 2: "two"}
CELLS = "fiub"  # kinds of numbers that a part may have


def require(holds: bool, sentence: str) -> None:
    """Raise ValueError with the sentence if the condition does not hold."""
    if not holds:
        raise ValueError(sentence)


def check_length(given: AnyArray, n: int, sentence: str) -> None:
    """Raise ValueError unless there are so many entries."""
    require(len(given) == n, sentence)


def check_array(given: Any, name: str, ndim: int, dtype: npt.DTypeLike) -> None:
    """Raise ValueError unless it is an array of this type and so many dimensions."""
    require(
        _is_array(given, ndim) and given.dtype == dtype,
        f"{name} must be a {DIMENSIONS[ndim]}-dimensional array of {np.dtype(dtype)}",
    )


def _is_array(given: Any, ndim: int) -> bool:
    return isinstance(given, np.ndarray) and given.ndim == ndim


def check_sweeps(tol: float, max_sweeps: int, n_threads: int = 1) -> None:
    """Raise ValueError for a tolerance, a budget or threads out of range."""
    require(tol >= 0.0, "tol must be 0 or more")
    require(max_sweeps >= 0, "max_sweeps must be 0 or more")
    check_threads(n_threads)


def check_threads(n_threads: int) -> None:
    """Raise ValueError for no threads."""
    require(n_threads >= 1, "n_threads must be at least 1")


def check_lines(n: int, m: int) -> None:
    """Raise ValueError for more rows and columns than 32 bits can number."""
    require(
        m >= 0 and n + m <= MOST_LINES,
        "rows and columns must be fewer than 2^31 together",
    )


def check_bits(bits: Words, m: int) -> None:
    """Raise ValueError unless the bits are those of so many columns."""
    check_lines(len(bits), m)
    require(bits.shape[1] == -(-m // 64), "a row of bits must be a word per 64 columns")
    if m % 64 and len(bits):
        beyond = int(np.bitwise_or.reduce(bits[:, -1])) >> (m % 64)
        require(beyond == 0, "bits beyond the last column must be 0")


def check_mask(bits: Words, row_sums: Floats, col_sums: Floats) -> None:
    """Check the bits and the margins of a mask."""
    check_array(bits, "bits", 2, np.uint64)
    check_array(row_sums, "row_sums", 1, np.float64)
    check_array(col_sums, "col_sums", 1, np.float64)
    check_bits(bits, len(col_sums))
    check_length(row_sums, len(bits), "row_sums must be one number per row")


def check_keys(keys: Words, sums: Floats) -> None:
    """Check the keys and the sums of a pattern table."""
    check_array(keys, "keys", 2, np.uint64)
    check_array(sums, "sums", 2, np.float64)
    check_bits(keys, sums.shape[1])
    check_length(sums, len(keys), "sums must be one row per key")


def check_pairs(
    ptr: Ints, cols: SmallInts, sums: Floats, weights: Floats | None, n_cols: int
) -> None:
    """Check that the pointers lead to the pairs and the columns ascend in a row."""
    check_array(ptr, "ptr", 1, np.int64)
    check_array(cols, "cols", 1, np.int32)
    check_array(sums, "sums", 1, np.float64)
    if weights is not None:
        check_array(weights, "weights", 1, np.float64)
        check_length(weights, len(cols), "weights must be one number per pair")
    require(len(ptr) >= 1, "ptr must begin with 0")
    check_lines(len(ptr) - 1, n_cols)
    check_length(sums, len(cols), "sums must be one number per pair")
    require(ptr[0] == 0, "ptr must begin with 0")
    require(bool((ptr[1:] >= ptr[:-1]).all()), "ptr must never decrease")
    require(ptr[-1] == len(cols), "ptr must end with the number of pairs")
    inside = (cols >= 0) & (cols < n_cols)
    require(bool(inside.all()), "cols must be 0 or more and below n_cols")
    falls = np.flatnonzero(cols[1:] <= cols[:-1]) + 1
    require(bool(np.isin(falls, ptr).all()), "cols must ascend within a row")
    if weights is not None:
        usable = (weights > 0.0) & np.isfinite(weights)
        require(bool(usable.all()), "weights must be positive and finite")


def check_ids(
    row_sums: Floats, pattern_id: AnyArray, scale: Floats, n_threads: int
) -> None:
    """Check the pattern of each row, and the scale of each pattern."""
    in_place = _is_array(row_sums, 1) and row_sums.flags.carray
    require(
        in_place and row_sums.dtype == np.float64,
        "row_sums must be a writable contiguous array of float64",
    )
    check_pattern_id(pattern_id)
    check_length(pattern_id, len(row_sums), "pattern_id must be one number per row")
    check_array(scale, "scale", 1, np.float64)
    check_threads(n_threads)
    known = (pattern_id >= 0) & (pattern_id < len(scale))
    require(
        bool(known.all()),
        "a pattern number must be 0 or more and below the number of scales",
    )


def check_pattern_id(pattern_id: AnyArray) -> None:
    """Raise ValueError unless it may be the pattern of each row."""
    is_flat = (
        _is_array(pattern_id, 1)
        and pattern_id.flags.c_contiguous
        and pattern_id.flags.aligned
    )
    require(
        is_flat and pattern_id.dtype in (np.uint8, np.uint16, np.int32),
        "pattern_id must be a contiguous array of uint8, uint16 or int32",
    )


def check_table(
    parts: list[Part], n_groups: int, scale: float, n_threads: int
) -> tuple[int, int]:
    """Check the parts of a table; return its numbers of rows and columns."""
    require(1 <= n_groups <= MOST_GROUPS, "n_groups must be 1 to 65,536")
    n_rows, n_cols = -1, 0
    for part in parts:
        require(
            _is_part(part),
            "a part must be a tuple of array, mask, validity, bit offset and group",
        )
        _check_part(part, n_groups)
        rows, cols = part[0].shape
        require(n_rows in (-1, rows), "parts must have the same number of rows")
        n_rows, n_cols = rows, n_cols + cols
    require(n_rows >= 0, "at least one part is needed")
    require(
        n_rows <= MOST_CELLS // max(n_cols, n_groups) and n_cols <= MOST_CELLS,
        "a table must have fewer than 2^60 cells",
    )
    require(scale > 0.0 and math.isfinite(scale), "scale must be positive and finite")
    check_threads(n_threads)
    return n_rows, n_cols


def _is_part(given: Any) -> bool:
    return isinstance(given, tuple) and len(given) == 5


def _check_part(part: Part, n_groups: int) -> None:
    array, mask, validity, bit_offset, group = part
    require(_is_array(array, 2), "a part must be a two-dimensional array")
    is_read = array.dtype.kind in CELLS and array.dtype != np.float16
    require(
        is_read and array.dtype.itemsize <= 8,
        "a part must be of float64, float32, integers or bools",
    )
    require(array.shape[1] >= 1, "a part must have at least one column")
    if mask is not None:
        is_mask = _is_array(mask, 2) and mask.dtype.itemsize == 1
        require(
            is_mask and mask.shape == array.shape,
            "a mask must be bool and of its part's shape",
        )
    if validity is not None:
        is_bitmap = _is_array(validity, 1) and validity.dtype == np.uint8
        require(
            is_bitmap and validity.flags.c_contiguous,
            "a validity bitmap must be a contiguous array of uint8",
        )
        one_column = array.shape[1] == 1
        require(one_column, "a validity bitmap belongs to a part of one column")
        require(
            0 <= bit_offset <= 8 * len(validity) - len(array),
            "a validity bitmap must have a bit for every row",
        )
    require(
        0 <= group < n_groups, "a part's group must be 0 or more and below n_groups"
    )
