"""From the core back to the table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from support import oracles
from support.forms import pairs_of
from support.tables import tables

from a1gm._base.bits import pack_bits
from a1gm._base.float_range import log2_of, narrow
from a1gm._solve.certificate import margin_mismatch
from a1gm._solve.expand import expand_factors, expand_wide
from a1gm._solve.extreme import solve_extreme_core
from a1gm._solve.scaling import solve_core

nan = np.nan


def factors_of(X: np.ndarray):
    pairs = pairs_of(X)
    reduced = pairs.reduce(force=False)
    core = solve_core(reduced, tol=1e-12, max_iter=1000)
    return expand_factors(
        reduced, core, pairs.row_sums, lambda: pairs.has_observed()[1]
    )


@given(tables(max_rows=9, max_cols=9))
def test_blocks_share_out_the_total(X):
    found = factors_of(X)
    total = np.nansum(X)
    for block in range(found.n_blocks):
        share = np.nansum(X[found.line_block == block]) / total
        got = found.col_factor[found.col_block == block].sum()
        assert got == pytest.approx(share, rel=1e-9)
    labels = np.concatenate([found.line_block, found.col_block])
    assert oracles.same_partition(labels, np.concatenate(oracles.components(X)))


@given(tables(max_rows=9, max_cols=9))
def test_the_scale_of_a_line_turns_sums_into_factors(X):
    found = factors_of(X)
    sums = np.nansum(X, axis=1)
    np.testing.assert_allclose(found.line_scale * sums, found.line_factor, rtol=1e-12)
    assert np.isfinite(found.line_scale).all()


def test_blocks_are_numbered_by_their_first_line():
    X = np.array([[nan, nan, 1.0], [2.0, nan, nan], [nan, 3.0, nan], [nan, nan, 4.0]])
    found = factors_of(X)
    assert found.line_block.tolist() == [0, 1, 2, 0]
    assert found.col_block.tolist() == [1, 2, 0]
    assert not found.all_inside


def test_one_block_that_holds_everything():
    found = factors_of(np.array([[1.0, 2.0], [3.0, nan]]))
    assert found.all_inside
    assert found.n_blocks == 1
    assert found.col_factor.sum() == pytest.approx(1.0)


def test_empty_columns_have_no_factor():
    found = factors_of(np.array([[1.0, nan], [3.0, nan]]))
    assert np.isnan(found.col_factor[1])
    assert found.col_block.tolist() == [0, -1]


OUTSIDE = [
    ([[1e-200, nan], [1e200, 1e-200]], [-400.0, 0.0], "col"),
    ([[1e300, nan], [1.0, 1e300]], [600.0, 300.0], "line"),
]


@pytest.mark.parametrize(("X", "powers", "side"), OUTSIDE)
def test_factors_out_of_range_have_exponents(X, powers, side):
    X = np.array(X)
    assert factors_of(X) is None
    pairs = pairs_of(X)
    reduced = pairs.reduce(force=False)
    none = np.zeros(0, np.int64)
    core = solve_core(reduced, tol=1e-12, max_iter=1000)
    found = expand_wide(
        reduced, core, (none, none), pairs.row_sums, lambda: np.ones(2, bool)
    )
    numbers = found.columns if side == "col" else found.lines
    got = log2_of(numbers) * np.log10(2.0)
    np.testing.assert_allclose(sorted(got), sorted(powers), atol=0.5)


@given(tables(max_rows=9, max_cols=9))
def test_wide_factors_are_the_same_factors(X):
    pairs = pairs_of(X)
    reduced = pairs.reduce(force=False)
    unsolved = replace(solve_core(reduced, tol=1e-12, max_iter=1), step=np.inf)
    core, powers = solve_extreme_core(reduced, unsolved, tol=1e-12, max_iter=1000)
    sums = pairs.row_sums
    wide = expand_wide(reduced, core, powers, sums, lambda: pairs.has_observed()[1])
    plain = factors_of(X)
    for name in ("lines", "scales", "columns"):
        mine, theirs = narrow(getattr(wide, name)), getattr(plain, name)
        np.testing.assert_allclose(mine, theirs, rtol=1e-8)
    assert margin_mismatch(wide, pairs) <= 1e-11
    np.testing.assert_array_equal(wide.line_block, plain.line_block)
    np.testing.assert_array_equal(wide.col_block, plain.col_block)
    assert wide.all_inside == plain.all_inside


def test_factors_in_range_are_found_whatever_is_on_the_way():
    X = np.array([[1e-300, 1e-300], [1e300, nan]])
    found = factors_of(X)
    np.testing.assert_allclose(found.line_factor, [2e-300, 2e300], rtol=1e-12)


def test_bits_have_one_home():
    assert pack_bits(np.ones((1, 3), bool)).tolist() == [[7]]
