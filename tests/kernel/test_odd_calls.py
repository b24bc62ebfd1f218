"""Calls that are unusual, and right: both kernels answer them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kernels import part

from a1gm._base.bits import pack_bits

WILD = [np.nan, np.inf, -np.inf, -1.0, 0.0, 1e308, 5e-324, 1.0, 2.0]


def test_a_table_without_rows(kernel):
    sums, is_wide, (ids, keys, counts, table), is_in_range, *_ = kernel.observe(
        [part(np.ones((0, 70)))], 2, 100, False
    )
    assert sums.shape == (0,)
    assert not is_wide
    assert ids.shape == counts.shape == (0,)
    assert keys.shape == (0, 2)
    assert table.shape == (0, 70)
    assert is_in_range


def test_a_core_without_lines(kernel):
    reduced = kernel.reduce_pairs(
        np.array([0, 1]), np.zeros(1, np.int32), np.ones(1), None, 1
    )
    nothing = np.zeros(0)
    assert reduced.core_shape == (0, 0)
    assert reduced.scale(nothing, 1e-9, 5, 5)[2:] == (1, 0.0, True)
    w, h, *_ = reduced.replay(nothing, nothing)
    assert (w, h) == (1.0, 1.0)


@given(st.integers(1, 9), st.integers(1, 70), st.integers(0, 10**6))
def test_numbers_that_make_no_sense_do_no_harm(n, m, seed):
    """Shapes and indices are right, the numbers anything: some answer, or none."""
    native = pytest.importorskip("a1gm._kernel._native")
    rng = np.random.default_rng(seed)

    def wild(*shape):
        return rng.choice(WILD, shape) if seed % 3 else rng.random(shape) + 0.1

    observed = rng.random((n, m)) < rng.random()
    bits, sums, margins = pack_bits(observed), wild(n, m), (wild(n), wild(m))
    lines, cols = np.nonzero(observed)
    ptr = np.r_[0, np.cumsum(np.bincount(lines, minlength=n))].astype(np.int64)
    weights = rng.choice([5e-324, 1.0, 1.7e308], len(cols))
    native.observe([part(sums)], 1, 0, False)
    native.solve_plain(bits, sums, 1e-9, 20, 20)
    native.solve_bits(bits, None, *margins, 1e-9, 20, 2)
    native.solve_nested(bits, [part(sums)], margins[1], 1)
    for reduced in (
        native.reduce_table(bits, sums),
        native.reduce_mask(bits, *margins, bool(seed % 2), True),
        native.reduce_pairs(ptr, cols.astype(np.int32), wild(len(cols)), None, m),
        native.reduce_pairs(ptr, cols.astype(np.int32), wild(len(cols)), weights, m),
    ):
        rows, columns = reduced.core_shape
        w, h, *_ = reduced.scale(wild(columns), 1e-9, 20, 20)
        assert w.shape == (rows,)
        assert len(reduced.replay(w, h)[0]) == n
