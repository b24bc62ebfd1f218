"""Whatever is given to the kernel is checked before it is read, by both in one way.

Every call of the table differs from a good one in a single thing. The arrays that are
too large lie in a few bytes: their strides are 0.
"""

from __future__ import annotations

import numpy as np
import pytest

from a1gm._base.bits import pack_bits

HUGE = 2**31
OBSERVED = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1]], bool)
CELLS = np.where(OBSERVED, 1.0 + np.arange(12.0).reshape(4, 3), np.nan)
SUMS = np.nan_to_num(CELLS)
BITS = pack_bits(OBSERVED)
ROW_SUMS, COL_SUMS = SUMS.sum(axis=1), SUMS.sum(axis=0)
PTR = np.array([0, 2, 4, 6, 9])
COLS = np.nonzero(OBSERVED)[1].astype(np.int32)
ONE_COLUMN = np.ones((9, 1))


def part(values=CELLS, mask=None, validity=None, offset=0, group=0):
    return (values, mask, validity, offset, group)


def many(value, *shape):
    return np.lib.stride_tricks.as_strided(
        np.atleast_1d(value), shape, (0,) * len(shape), writeable=False
    )


def wide(array):
    """The same numbers, with others in between."""
    return np.repeat(array, 2, axis=-1)[..., ::2]


def changed(array, at, value):
    array = array.copy()
    array[at] = value
    return array


GOOD = {
    "observe": {
        "parts": [part()],
        "n_groups": 1,
        "n_threads": 1,
        "scale": 1.0,
        "table_cells": 100,
        "keep_table": False,
    },
    "expand_rows": {
        "row_sums": np.ones(4),
        "pattern_id": np.array([0, 1, 2, 1], np.uint8),
        "scale": np.ones(3),
        "n_threads": 1,
    },
    "solve_nested": {
        "bits": BITS,
        "parts": [part()],
        "col_sums": COL_SUMS,
        "scale": 1.0,
        "n_threads": 1,
    },
    "solve_plain": {
        "keys": BITS,
        "sums": SUMS,
        "tol": 1e-9,
        "max_sweeps": 50,
        "max_steps": 50,
    },
    "solve_many": {
        "tables": [[part()], [part()]],
        "table_cells": 100,
        "tol": 1e-9,
        "max_sweeps": 50,
        "max_steps": 50,
        "least": 0.0,
        "n_threads": 1,
    },
    "solve_wide": {
        "bits": BITS,
        "row_sums": ROW_SUMS,
        "col_sums": COL_SUMS,
        "tol": 1e-9,
        "max_sweeps": 50,
        "n_threads": 1,
    },
    "reduce_mask": {
        "bits": BITS,
        "row_sums": ROW_SUMS,
        "col_sums": COL_SUMS,
        "rows_distinct": False,
        "force": True,
    },
    "reduce_table": {"keys": BITS, "sums": SUMS},
    "reduce_pairs": {
        "ptr": PTR,
        "cols": COLS,
        "sums": CELLS[OBSERVED],
        "weights": np.ones(9),
        "n_cols": 3,
    },
    "row_factors": {
        "parts": [part()],
        "h": np.ones(3),
        "takes_negatives": False,
        "n_threads": 1,
    },
    "fill_rows": {
        "parts": [part()],
        "h": np.ones(3),
        "otherwise": np.ones(3),
        "targets": [np.ones((4, 2)), None],
        "takes_negatives": False,
        "n_threads": 1,
    },
    "divergence": {"parts": [part()], "h": np.ones(3), "n_threads": 1},
    "pearson": {
        "parts": [part()],
        "h": np.ones(3),
        "takes_negatives": False,
        "n_threads": 1,
    },
    "square_sums": {
        "parts": [part()],
        "row_sums": ROW_SUMS,
        "lines": np.array([0, 1, 2, 1], np.int32),
        "n_lines": 3,
        "scale": 1.0,
        "n_threads": 1,
    },
    "scale": {"h": np.ones(3), "tol": 1e-9, "max_sweeps": 9, "patience": 9},
    "replay": {"core_w": np.ones(4), "core_h": np.ones(3)},
    "replay_wide": {
        "core_w": np.ones(4),
        "core_h": np.ones(3),
        "row_exponent": np.zeros(4, np.int64),
        "col_exponent": np.zeros(3, np.int64),
    },
    "rescaled": {
        "row_exponent": np.zeros(4, np.int64),
        "col_exponent": np.zeros(3, np.int64),
        "lift": 0,
    },
    "add_patterns": {
        "hi": np.zeros((3, 2)),
        "lo": np.zeros((3, 2)),
        "counts": np.zeros(3, np.int64),
        "zero_counts": np.zeros(3, np.int64),
        "places": np.array([2, 0]),
        "sums": np.ones((2, 2)),
        "new_counts": np.array([1, 3]),
        "pattern_id": np.array([1, 0, 1, 1], np.uint8),
        "row_sums": np.array([1.0, 2.0, 0.0, 3.0]),
    },
    "mask_product": {"bits": BITS, "d": ROW_SUMS, "x": np.ones(3), "n_threads": 1},
    "product": {"core_w": np.ones(4), "core_h": np.ones(3)},
    "cheap_step": {
        "core_w": np.ones(4),
        "core_h": np.ones(3),
        "gap": 0.0,
        "n_threads": 1,
    },
    "settle": {
        "core_w": np.ones(4),
        "core_h": np.ones(3),
        "cells": SUMS,
        "max_steps": 9,
    },
    "settle_sparse": {
        "core_w": np.ones(4),
        "core_h": np.ones(3),
        "ptr": PTR,
        "cols": COLS,
        "sums": CELLS[OBSERVED],
        "tol": 1e-9,
        "max_steps": 9,
        "most_work": 10**6,
    },
}

OF_BITS = "two-dimensional array of uint64"
OF_SUMS = "-dimensional array of float64"
TOO_MANY = "fewer than 2^31 together"
WORDS = "a word per 64 columns"
BEYOND = "bits beyond the last column must be 0"
THREADS = "n_threads must be at least 1"
TOL = "tol must be 0 or more"
SWEEPS = "max_sweeps must be 0 or more"
STEPS = "max_steps must be 0 or more"
SCALE = "scale must be positive and finite"
TABLE = [  # of `observe` and `solve_nested`
    ("parts", [], "at least one part"),
    ("parts", [CELLS], "must be a tuple"),
    ("parts", [(CELLS, None, None, 0)], "must be a tuple"),
    ("parts", [part(CELLS.tolist())], "two-dimensional array"),
    ("parts", [part(np.ones(4))], "two-dimensional array"),
    ("parts", [part(CELLS.astype(complex))], "float64, float32, integers or bools"),
    ("parts", [part(CELLS.astype(np.float16))], "float64, float32, integers or bools"),
    ("parts", [part(), part(np.ones((5, 3)))], "same number of rows"),
    ("parts", [part(np.ones((4, 0)))], "at least one column"),
    ("parts", [part(many(np.int8(1), 2**31, 2**30))], "fewer than 2^60 cells"),
    ("parts", [part(many(np.int8(1), 1, 2**60))] * 2, "fewer than 2^60 cells"),
    ("parts", [part(mask=np.zeros((4, 2), bool))], "of its part's shape"),
    ("parts", [part(mask=np.zeros((4, 3)))], "a mask must be bool"),
    ("parts", [part(mask=np.zeros(12, bool))], "a mask must be bool"),
    ("parts", [part(mask="no")], "a mask must be bool"),
    ("parts", [part(validity=np.zeros(9, np.uint8))], "part of one column"),
    ("parts", [part(ONE_COLUMN, None, np.zeros(1, np.uint8))], "a bit for every row"),
    ("parts", [part(ONE_COLUMN, None, np.zeros(2, np.uint8), 8)], "a bit for every"),
    ("parts", [part(ONE_COLUMN, None, np.zeros(2, np.uint8), -1)], "a bit for every"),
    ("parts", [part(ONE_COLUMN, None, np.zeros(2, np.uint8), 2**62)], "a bit for"),
    ("parts", [part(ONE_COLUMN, None, np.zeros(2, np.int8))], "array of uint8"),
    ("parts", [part(ONE_COLUMN, None, np.zeros(2))], "contiguous array of uint8"),
    ("parts", [part(ONE_COLUMN, None, np.zeros(4, np.uint8)[::2])], "contiguous"),
    ("parts", [part(ONE_COLUMN, None, many(np.uint8(1), 9))], "contiguous array"),
    ("parts", [part(group=1)], "group must be 0 or more and below n_groups"),
    ("parts", [part(group=-1)], "group must be 0 or more and below n_groups"),
    ("scale", 0.0, SCALE),
    ("scale", -1.0, SCALE),
    ("scale", np.inf, SCALE),
    ("scale", np.nan, SCALE),
    ("n_threads", 0, THREADS),
]
MASK = [
    ("bits", BITS.astype(np.int64), OF_BITS),
    ("bits", BITS[:, 0], OF_BITS),
    ("bits", BITS.tolist(), OF_BITS),
    ("bits", BITS.astype(">u8"), OF_BITS),
    ("bits", np.hstack([BITS, BITS]), WORDS),
    ("bits", BITS[:, :0], WORDS),
    ("bits", changed(BITS, (2, 0), 8), BEYOND),
    ("bits", changed(BITS, (0, 0), 2**63), BEYOND),
]
MARGINS = [
    *MASK,
    ("row_sums", ROW_SUMS[:-1], "row_sums must be one number per row"),
    ("row_sums", ROW_SUMS.astype(np.float32), OF_SUMS),
    ("row_sums", SUMS, OF_SUMS),
    ("col_sums", np.ones(65), WORDS),
    ("col_sums", COL_SUMS[:2], BEYOND),
    ("col_sums", many(1.0, HUGE), TOO_MANY),
    ("bits", many(np.uint64(1), HUGE, 1), TOO_MANY),
]
PATTERNS = [
    *(("keys", value, sentence) for _, value, sentence in MASK),
    ("keys", BITS[:2], "one row per key"),
    ("keys", many(np.uint64(1), HUGE, 1), TOO_MANY),
    ("sums", SUMS[:2], "one row per key"),
    ("sums", SUMS.ravel(), OF_SUMS),
    ("sums", SUMS.astype(int), OF_SUMS),
    ("sums", SUMS[:, :2], BEYOND),
    ("sums", np.ones((4, 65)), WORDS),
]
SWEEPING = [
    ("tol", -1e-9, TOL),
    ("tol", np.nan, TOL),
    ("max_sweeps", -1, SWEEPS),
]
CORE = [
    ("core_w", np.ones(3), "core_w must be one number per row of the core"),
    ("core_w", np.ones(5), "core_w must be one number per row of the core"),
    ("core_w", np.ones(4, int), OF_SUMS),
    ("core_h", np.ones(2), "core_h must be one number per column of the core"),
    ("core_h", many(1.0, HUGE), "core_h must be one number per column of the"),
    ("core_h", np.ones((3, 1)), OF_SUMS),
]
PLACE = [
    *(bad for bad in TABLE if bad[0] != "scale"),
    ("parts", [part(group=1)], "group must be 0 or more and below n_groups"),
    ("h", np.ones(2), "h must be one number per column of the table"),
    ("h", np.ones((1, 3)), OF_SUMS),
    ("h", np.ones(3, np.float32), OF_SUMS),
    ("h", [1.0] * 3, OF_SUMS),
    ("n_threads", -1, THREADS),
]
TARGET = "writable two-dimensional array of float64 or float32"
BAD = {
    "row_factors": PLACE,
    "divergence": PLACE,
    "pearson": PLACE,
    "square_sums": [
        *TABLE,
        ("row_sums", ROW_SUMS[:-1], "row_sums must be one number per row"),
        ("row_sums", ROW_SUMS.astype(np.float32), OF_SUMS),
        ("lines", np.array([0, 1, 2], np.int32), "lines must be one number per row"),
        ("lines", np.array([0, 1, 3, 1], np.int32), "0 or more and below n_lines"),
        ("lines", np.array([0, -1, 2, 1], np.int32), "0 or more and below n_lines"),
        ("lines", np.array([0, 1, 2, 1]), "one-dimensional array of int32"),
        ("n_lines", 2, "0 or more and below n_lines"),
        ("n_lines", 2**40, TOO_MANY),
    ],
    "fill_rows": [
        *PLACE,
        ("otherwise", np.ones(2), "otherwise must be one number per column"),
        ("otherwise", np.ones(3, int), OF_SUMS),
        ("targets", [], "targets must have the columns of the table"),
        ("targets", [None] * 4, "targets must have the columns of the table"),
        ("targets", [np.ones((4, 2))], "targets must have the columns of the table"),
        ("targets", [np.ones((5, 3))], "a target must have the rows of the table"),
        ("targets", [np.ones((4, 3), int)], TARGET),
        ("targets", [np.ones(4), None, None], TARGET),
        ("targets", [many(1.0, 4, 3)], TARGET),
        ("targets", [CELLS.tolist()], TARGET),
        (
            "targets",
            [np.frombuffer(bytearray(97), np.float64, 12, 1).reshape(4, 3)],
            "at a multiple of its item's size",
        ),
    ],
    "add_patterns": [
        ("hi", np.zeros((3, 2), np.float32), "hi must be a writable contiguous"),
        ("lo", np.zeros((3, 4))[:, ::2], "lo must be a writable contiguous"),
        ("lo", np.zeros((2, 2)), "must have the rows of hi"),
        ("counts", np.zeros(2, np.int64), "must have the rows of hi"),
        ("zero_counts", np.zeros(3), "array of int64"),
        ("places", np.array([2, 2]), "different rows of the table"),
        ("places", np.array([2, 3]), "different rows of the table"),
        ("places", np.array([-1, 0]), "different rows of the table"),
        ("places", np.array([0]), "one row per place"),
        ("sums", np.ones((2, 3)), "one row per place"),
        ("new_counts", np.ones(3, np.int64), "one row per place"),
        ("pattern_id", np.zeros(4), "uint8, uint16 or int32"),
        ("pattern_id", np.zeros(3, np.uint8), "one number per row"),
        ("pattern_id", np.array([0, 1, 2, 0], np.uint8), "below the number of places"),
        ("pattern_id", np.array([0, 1, -1, 0], np.int32), "below the number of places"),
        ("row_sums", np.zeros(4, np.float32), "array of float64"),
    ],
    "observe": [
        *TABLE,
        ("n_groups", 0, "n_groups must be 1 to 65,536"),
        ("n_groups", 2**40, "n_groups must be 1 to 65,536"),
        ("table_cells", -1, "table_cells must be 0 or more"),
    ],
    "expand_rows": [
        ("row_sums", np.ones(3), "one number per row"),
        ("row_sums", np.ones(8)[::2], "writable contiguous array of float64"),
        ("row_sums", np.ones(4, np.float32), "writable contiguous array of float64"),
        ("row_sums", many(1.0, 4), "writable contiguous array of float64"),
        ("row_sums", [1.0] * 4, "writable contiguous array of float64"),
        ("pattern_id", np.array([0, 1, 2, 3], np.uint8), "below the number of scales"),
        ("pattern_id", np.array([0, 1, 2, 3], np.uint16), "below the number of scales"),
        ("pattern_id", np.array([0, 1, -1, 2], np.int32), "must be 0 or more"),
        ("pattern_id", np.array([0, 1, 2**30, 2], np.int32), "number of scales"),
        ("pattern_id", np.array([0, 1, 2, 1]), "uint8, uint16 or int32"),
        ("pattern_id", np.zeros((4, 1), np.uint8), "uint8, uint16 or int32"),
        ("pattern_id", np.zeros(8, np.uint8)[::2], "contiguous array of uint8"),
        ("pattern_id", np.zeros(5, np.uint8), "one number per row"),
        ("scale", np.ones(0), "below the number of scales"),
        ("scale", np.ones(3, int), OF_SUMS),
        ("n_threads", 0, THREADS),
        ("n_threads", -5, THREADS),
    ],
    "solve_nested": [
        *TABLE,
        *MASK,
        ("bits", BITS[:2], "one row per row of the table"),
        ("parts", [part(np.ones((4, 4)))], "one number per column of the table"),
        ("parts", [part(), part()], "one number per column of the table"),
        ("col_sums", SUMS, OF_SUMS),
        ("col_sums", np.ones(65), WORDS),
        ("col_sums", np.ones(4), "one number per column of the table"),
        ("col_sums", many(1.0, HUGE), TOO_MANY),
    ],
    "solve_plain": [*PATTERNS, *SWEEPING, ("max_steps", -1, STEPS)],
    "solve_many": [
        *(
            ("tables", [[part()], parts], sentence)
            for name, parts, sentence in TABLE
            if name == "parts"
        ),
        *SWEEPING,
        ("table_cells", -1, "table_cells must be 0 or more"),
        ("max_steps", -1, STEPS),
        ("n_threads", 0, THREADS),
    ],
    "mask_product": [
        *MASK,
        ("d", np.ones(3), "d must be one number per row"),
        ("d", np.ones(4, int), OF_SUMS),
        ("x", np.ones(65), WORDS),
        ("x", np.ones((3, 1)), OF_SUMS),
        ("n_threads", 0, THREADS),
    ],
    "solve_wide": [*MARGINS, *SWEEPING, ("n_threads", 0, THREADS)],
    "reduce_mask": MARGINS,
    "reduce_table": PATTERNS,
    "reduce_pairs": [
        ("ptr", PTR.astype(np.int32), "one-dimensional array of int64"),
        ("ptr", PTR.astype(float), "one-dimensional array of int64"),
        ("ptr", PTR[None], "one-dimensional array of int64"),
        ("ptr", PTR[:0], "ptr must begin with 0"),
        ("ptr", changed(PTR, 0, 1), "ptr must begin with 0"),
        ("ptr", changed(PTR, 0, -1), "ptr must begin with 0"),
        ("ptr", changed(PTR, 1, 5), "ptr must never decrease"),
        ("ptr", changed(PTR, 1, -(2**40)), "ptr must never decrease"),
        ("ptr", changed(PTR, 2, 2**62), "ptr must never decrease"),
        ("ptr", changed(PTR, 4, 2**40), "ptr must end with the number of pairs"),
        ("ptr", changed(PTR, 4, 8), "ptr must end with the number of pairs"),
        ("ptr", PTR[:-1], "ptr must end with the number of pairs"),
        ("ptr", np.array([0, 3, 4, 6, 9]), "cols must ascend within a row"),
        ("ptr", many(np.int64(0), HUGE + 1), TOO_MANY),
        ("cols", COLS.astype(np.int64), "one-dimensional array of int32"),
        ("cols", changed(COLS, 1, 3), "below n_cols"),
        ("cols", changed(COLS, 0, -1), "cols must be 0 or more"),
        ("cols", changed(COLS, 8, 2**31 - 1), "below n_cols"),
        ("cols", changed(COLS, 1, 0), "cols must ascend within a row"),
        ("cols", changed(COLS, [0, 1], [1, 0]), "cols must ascend within a row"),
        ("cols", COLS[:-1], "sums must be one number per pair|weights must be one"),
        ("sums", np.ones(8), "sums must be one number per pair"),
        ("sums", np.ones(9, int), OF_SUMS),
        ("weights", np.ones(8), "weights must be one number per pair"),
        ("weights", np.ones(9, np.float32), OF_SUMS),
        ("weights", changed(np.ones(9), 4, 0.0), "weights must be positive"),
        ("weights", changed(np.ones(9), 4, -1.0), "weights must be positive"),
        ("weights", changed(np.ones(9), 4, np.nan), "weights must be positive"),
        ("weights", changed(np.ones(9), 4, np.inf), "weights must be positive and"),
        ("n_cols", 2, "below n_cols"),
        ("n_cols", -1, TOO_MANY),
        ("n_cols", HUGE, TOO_MANY),
        ("n_cols", 2**62, TOO_MANY),
    ],
    "scale": [
        *SWEEPING,
        ("h", np.ones(2), "h must be one number per column of the core"),
        ("h", np.ones(4), "h must be one number per column of the core"),
        ("h", np.ones(0), "h must be one number per column of the core"),
        ("h", np.ones((1, 3)), OF_SUMS),
        ("h", np.ones(3, np.float32), OF_SUMS),
        ("patience", -1, "patience must be 0 or more"),
        ("n_threads", 0, THREADS),
    ],
    "replay": CORE,
    "product": CORE,
    "cheap_step": [*CORE, ("n_threads", 0, THREADS)],
    "settle_sparse": [
        *CORE,
        ("ptr", PTR[:-1], "ptr must end with the number of pairs|one row per row of"),
        ("cols", changed(COLS, 0, 3), "cols must be 0 or more and below n_cols"),
        ("sums", np.ones(8), "sums must be one number per pair"),
        ("sums", np.ones(9, int), OF_SUMS),
        ("tol", -1.0, "tol must be 0 or more"),
        ("max_steps", -1, STEPS),
        ("most_work", -1, "most_work must be 0 or more"),
    ],
    "settle": [
        *CORE,
        ("cells", np.ones(4), OF_SUMS),
        ("cells", np.ones((4, 3), int), OF_SUMS),
        ("cells", np.ones((3, 4)), "cells must be one number per cell of the core"),
        ("max_steps", -1, STEPS),
    ],
    "replay_wide": [
        ("core_w", np.ones(3), "core_w must be one number per row of the core"),
        ("core_h", np.ones(2), "core_h must be one number per column of the core"),
        ("row_exponent", np.zeros(3, np.int64), "row_exponent must be one number per"),
        ("col_exponent", np.zeros(3), "one-dimensional array of int64"),
    ],
    "rescaled": [
        ("row_exponent", np.zeros(4), "one-dimensional array of int64"),
        ("col_exponent", np.zeros(4, np.int64), "col_exponent must be one number per"),
    ],
}
CALLS = [(name, *bad) for name, bads in BAD.items() for bad in bads]


def call(kernel, name, arguments):
    owner = kernel
    if name not in dir(kernel):
        owner = kernel.reduce_mask(**GOOD["reduce_mask"])
        assert owner.core_shape == (4, 3)
    return getattr(owner, name)(*arguments.values())


@pytest.mark.parametrize("name", GOOD)
def test_the_good_calls_are_good(kernel, name):
    call(kernel, name, GOOD[name])


@pytest.mark.parametrize(("name", "argument", "value", "sentence"), CALLS)
def test_bad_calls_are_refused_in_words(kernel, name, argument, value, sentence):
    with pytest.raises(ValueError, match=sentence.replace("^", r"\^")):
        call(kernel, name, {**GOOD[name], argument: value})


UNLIKE = {"add_patterns", "expand_rows", "observe", "solve_many"}


@pytest.mark.parametrize("name", sorted(set(GOOD) - UNLIKE))
def test_numbers_that_lie_apart_are_read_all_the_same(kernel, name):
    spread = {
        key: wide(value) if isinstance(value, np.ndarray) else value
        for key, value in GOOD[name].items()
    }
    same = [call(kernel, name, given) for given in (GOOD[name], spread)]
    if isinstance(same[0], np.ndarray | float):
        np.testing.assert_array_equal(*same)
    elif isinstance(same[0], tuple):
        for one, other in zip(*same, strict=True):
            np.testing.assert_array_equal(one, other)
    elif same[0] is not None:
        sums = [getattr(found, "core_row_sums", found) for found in same]
        np.testing.assert_array_equal(*sums)
