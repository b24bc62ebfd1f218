"""From the core back to the table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from support import oracles
from support.forms import pairs_of
from support.tables import tables

from a1gm._solve.expand import expand_factors
from a1gm._solve.scaling import solve_core

nan = np.nan


def factors_of(X: np.ndarray):
    pairs = pairs_of(X)
    reduced = pairs.reduce(force=False)
    core = solve_core(reduced, tol=1e-12, max_iter=1000)
    return expand_factors(reduced, core, pairs)


@given(tables(max_rows=9, max_cols=9))
def test_blocks_share_out_the_total(X):
    found = factors_of(X)
    total = np.nansum(X)
    for block in range(found.n_blocks):
        share = np.nansum(X[found.pattern_block == block]) / total
        got = found.col_factor[found.col_block == block].sum()
        assert got == pytest.approx(share, rel=1e-9)
    labels = np.concatenate([found.pattern_block, found.col_block])
    assert oracles.same_partition(labels, np.concatenate(oracles.components(X)))


@given(tables(max_rows=9, max_cols=9))
def test_the_scale_of_a_line_turns_sums_into_factors(X):
    found = factors_of(X)
    sums = np.nansum(X, axis=1)
    np.testing.assert_allclose(
        found.pattern_scale * sums, found.pattern_factor, rtol=1e-12
    )
    assert np.isfinite(found.pattern_scale).all()


def test_blocks_are_numbered_by_their_first_line():
    X = np.array([[nan, nan, 1.0], [2.0, nan, nan], [nan, 3.0, nan], [nan, nan, 4.0]])
    found = factors_of(X)
    assert found.pattern_block.tolist() == [0, 1, 2, 0]
    assert found.col_block.tolist() == [1, 2, 0]
    assert not found.all_inside


def test_empty_columns_have_no_factor():
    found = factors_of(np.array([[1.0, nan], [3.0, nan]]))
    assert np.isnan(found.col_factor[1])
    assert found.col_block.tolist() == [0, -1]
