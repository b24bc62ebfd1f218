"""Strong components, on every form of the statistics."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from support import oracles
from support.forms import mask_of, pairs_of
from support.tables import tables

from a1gm._observe.observe import observe
from a1gm._rows import read_input
from a1gm._solve.components import Components, find_components

nan = np.nan


def labels(found: Components) -> np.ndarray:
    return np.concatenate([found.pattern, found.col])


@pytest.mark.parametrize("form", [pairs_of, mask_of])
@given(X=tables(max_rows=12, max_cols=12, zeros=0.5))
def test_rows_one_by_one(form, X):
    found = find_components(form(X))
    if found is None:
        assert not (X == 0.0).any()
        return
    assert oracles.same_partition(labels(found), np.concatenate(oracles.components(X)))
    assert found.n == labels(found).max() + 1


@given(tables(max_rows=15, max_cols=6, zeros=0.6))
def test_rows_of_equal_pattern(X):
    seen = observe(read_input(X), keep_table=True)
    assert seen.is_table
    found = find_components(seen)
    if found is None:
        assert not seen.has_zeros
        return
    rows, cols = oracles.components(X)
    with_data = np.nansum(X, axis=1) > 0.0  # rows of zeros are components of their own
    mine = np.concatenate([found.pattern[seen.pattern_of_row][with_data], found.col])
    assert oracles.same_partition(mine, np.concatenate([rows[with_data], cols]))


@pytest.mark.parametrize("shape", [(200, 65), (65, 200), (130, 130)])
@pytest.mark.parametrize("zeros", [0.02, 0.9, 0.99])
def test_bit_search_on_larger_tables(shape, zeros):
    rng = np.random.default_rng(5)
    X = rng.integers(1, 5, shape).astype(float)
    X[rng.random(shape) < zeros] = 0.0
    X[rng.random(shape) < 0.5] = nan
    found = find_components(mask_of(X))
    assert oracles.same_partition(labels(found), np.concatenate(oracles.components(X)))


def test_a_long_chain_of_components():
    n = 200
    X = np.full((n, n), nan)
    X[np.diag_indices(n)] = 1.0
    X[np.arange(n - 1), np.arange(1, n)] = 0.0
    for form in (pairs_of, mask_of):
        found = find_components(form(X))
        assert found.n == n
        np.testing.assert_array_equal(found.pattern, found.col)


@pytest.mark.parametrize("form", [pairs_of, mask_of])
def test_small_tables(form):
    assert find_components(form(np.array([[1.0, nan], [2.0, 3.0]]))) is None  # no zero
    X = np.array([[1.0, nan, 0.0], [nan, nan, nan], [2.0, nan, 1.0]])
    found = find_components(form(X))
    assert found.pattern[1] == found.col[1] == -1  # nothing is observed
