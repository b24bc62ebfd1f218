"""The log undone with numbers of any size, and cores on another scale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from support.forms import pairs_of
from support.kernels import native, needs_native
from support.tables import KINDS, tables

from a1gm._base.float_range import Wide, log2_of, narrow
from a1gm._kernel import kernel as current
from a1gm._kernel import reference

nan = np.nan
NO_BRIDGE = sorted(set(KINDS) - {"bridge"})  # on which plain scaling takes for ever
CORE = np.array([[nan, 2.0, 3.0], [4.0, nan, 5.0], [6.0, 7.0, nan]])


def reduce_by(kernel, X):
    pairs = pairs_of(X)
    return kernel.reduce_pairs(pairs.ptr, pairs.cols, pairs.sums, None, pairs.n_cols)


@given(tables(kinds=NO_BRIDGE, max_rows=8, max_cols=7))
@needs_native
def test_both_kernels_undo_the_log_alike(X):
    cells = []
    for one in (native, reference):
        reduced = reduce_by(one, X)
        n, m = reduced.core_shape
        start = np.full(m, 2.0**-20)
        core_w, core_h = np.zeros(0), np.zeros(0)
        if n:
            core_w, core_h, *_ = reduced.scale(start, 1e-13, 20_000, 20_000)
        powers = np.full(n, 1300), np.full(m, -1300)
        w, h, line_block, col_block = reduced.replay_wide(core_w, core_h, *powers)
        inside = (line_block[:, None] == col_block) & (col_block >= 0)
        logs = log2_of(Wide(*w))[:, None] + log2_of(Wide(*h))
        cells.append(np.where(inside, logs, 0.0))
    np.testing.assert_allclose(*cells, atol=1e-7)


@given(tables(max_rows=8, max_cols=7))
def test_wide_numbers_are_those_of_float64_where_it_has_them(X):
    reduced = reduce_by(current, X)
    n, m = reduced.core_shape
    w, h = np.arange(1.0, n + 1), np.arange(1.0, m + 1)
    *plain, exact = reduced.replay(w, h)
    assert exact
    wide = reduced.replay_wide(w, h, np.zeros(n, np.int64), np.zeros(m, np.int64))
    for mine, theirs in zip(plain[:2], wide[:2], strict=True):
        np.testing.assert_allclose(mine, narrow(Wide(*theirs)), rtol=1e-13)


@pytest.mark.parametrize(
    "X",
    [
        [[1e-200, 1e200]],
        [[1e300, nan], [1.0, 1e300]],
        [[1e26, 1e-97, nan], [nan, 1e98, 2e-99]],
    ],
)
def test_lost_digits_are_noticed(kernel, X):
    nothing = np.zeros(0)
    X = np.array(X)
    for one in (kernel, reference):
        with np.errstate(all="ignore"):
            w, h, *_, exact = reduce_by(one, X).replay(nothing, nothing)
            h = h / h.sum()
        small = not (np.concatenate([w, h]) >= np.finfo(float).tiny).all()
        assert small or not exact


def test_a_core_on_another_scale(kernel):
    a, b = np.array([3, 0, -900]), np.array([0, 1, -600])
    for one in (kernel, reference):
        made = reduce_by(one, CORE).rescaled(a, b, 7)
        ptr, cols, lists_missing, weights = made.core_mask
        assert not lists_missing
        assert made.core_shape == (3, 3)
        P = np.zeros((3, 3))
        P[np.repeat(np.arange(3), np.diff(ptr)), cols] = weights
        np.testing.assert_array_equal(
            P, np.where(np.isnan(CORE), 0, 2.0 ** (a[:, None] + b))
        )
        np.testing.assert_array_equal(made.core_row_sums, np.nansum(CORE, 1) * 2.0**7)
        assert made.n_core_blocks == 1


def test_a_cell_that_vanishes_keeps_its_block(kernel):
    a, b = np.array([0, 0, -2000]), np.array([0, 0, -2000])
    for one in (kernel, reference):
        made = reduce_by(one, CORE).rescaled(a, b, 0)
        assert made.n_core_blocks == 1
        assert made.core_row_block.tolist() == [0, 0, 0]
