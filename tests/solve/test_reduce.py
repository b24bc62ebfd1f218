"""Twins and leaves down to the core, and back."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from support import oracles
from support.forms import mask_of, pairs_of, patterns_of
from support.tables import KINDS, make_mask, make_table, tables

from a1gm._kernel import is_compiled
from a1gm._observe.patterns import Patterns
from a1gm._solve.components import Components, find_components
from a1gm._solve.scaling import solve_core


def peel(statistics, components=None, *, force=False):
    """Peel the cells that lie inside a component."""
    if components is not None:
        statistics = statistics.inside(components.pattern, components.col)
    return statistics.reduce(force=force)


def fitted_margins(statistics, *, force: bool = False):
    """Row and column sums of the fit, from the reduced problem alone."""
    reduced = peel(statistics, find_components(statistics), force=force)
    if reduced is None:
        return None
    core = solve_core(reduced, tol=1e-12, max_iter=2000)
    w, h, pattern_block, col_block, _ = reduced.replay(core.w, core.h)
    observed = statistics.observed_cells(slice(0, statistics.n_patterns))
    inside = (pattern_block[:, None] == col_block) & (pattern_block >= 0)[:, None]
    fitted = np.where(inside & observed, np.outer(w, h), 0.0)
    return fitted.sum(axis=1), fitted.sum(axis=0)


@given(tables(max_rows=9, max_cols=9, zeros=0.2))
def test_every_form_of_the_statistics_gives_the_margins(X):
    for statistics in (patterns_of(X), pairs_of(X)):
        rows, cols = fitted_margins(statistics)
        np.testing.assert_allclose(rows, statistics.row_sums, rtol=1e-9)
        np.testing.assert_allclose(cols, np.nansum(X, axis=0), rtol=1e-9)


NO_BRIDGE = sorted(set(KINDS) - {"bridge"})  # leaves of tiny weight defeat sweeps


@given(tables(kinds=NO_BRIDGE, max_rows=9, max_cols=9, zeros=0.2))
def test_margins_alone_are_enough(X):
    statistics = mask_of(X)
    # A leaf must be forced.
    rows, cols = fitted_margins(statistics) or fitted_margins(statistics, force=True)
    np.testing.assert_allclose(rows, np.nansum(X, axis=1), rtol=1e-8)
    np.testing.assert_allclose(cols, np.nansum(X, axis=0), rtol=1e-8)


@pytest.mark.parametrize(
    "kind", ["complete", "corner", "grid", "staircase", "two blocks"]
)
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (30, 20), (200, 70)])
def test_these_kinds_peel_completely(kind, shape):
    if kind == "two blocks":
        observed = np.equal.outer(*(np.arange(k) * 2 // k for k in shape))
    else:
        observed = make_mask(kind, *shape, seed=3)
    assert peel(patterns_of(np.where(observed, 1.0, np.nan))).core_shape == (0, 0)


@pytest.mark.parametrize("n", range(2, 60))
def test_triangles_of_every_size_peel(n):
    # 10 and 11 did not: a line took its own stale entry for the end of the search.
    X = np.where(np.add.outer(np.arange(n), np.arange(n)) < n, 1.0, np.nan)
    rng = np.random.default_rng(n)
    for table in (X, X[rng.permutation(n)][:, rng.permutation(n)]):
        assert peel(pairs_of(table)).core_shape == (0, 0)


def test_closed_form_exactly_when_every_long_cycle_has_two_chords():
    # All patterns of 3 x 3, and many of 3 x 4 and 4 x 4.
    rng = np.random.default_rng(1)
    masks = [np.array(bits).reshape(3, 3) for bits in product([False, True], repeat=9)]
    masks += [rng.random((3, 4)) < 0.7 for _ in range(300)]
    masks += [rng.random((4, 4)) < p for p in (0.5, 0.65, 0.8) for _ in range(100)]
    n_closed = 0
    for observed in masks:
        if not observed.any():
            continue
        X = np.where(observed, 1.0, np.nan)
        is_closed = peel(patterns_of(X)).core_shape == (0, 0)
        assert is_closed == oracles.has_two_chords_everywhere(observed), observed
        n_closed += is_closed
    assert 100 < n_closed < len(masks) - 100


def test_a_long_path_peels():
    # Each row joins two columns: a tree, all leaves.
    n = 500
    X = np.full((n, n + 1), np.nan)
    X[np.arange(n), np.arange(n)] = 1.0
    X[np.arange(n), np.arange(n) + 1] = 2.0
    reduced = peel(pairs_of(X))
    assert reduced.core_shape == (0, 0)
    assert reduced.n_roots == 1


def closed_factors(statistics):
    """Factors of a table without a core."""
    reduced = peel(statistics)
    assert reduced.core_shape == (0, 0)
    return reduced.replay(np.zeros(0), np.zeros(0))[:2]


@pytest.mark.skipif(not is_compiled, reason="hours in the NumPy twin")
def test_a_staircase_of_5000_steps_peels():
    width = np.arange(1, 5_001)  # 12.5 million pairs
    cols = np.concatenate([np.arange(k, dtype=np.int32) for k in width])
    sums = np.random.default_rng(2).uniform(1.0, 2.0, len(cols))
    pairs = Patterns(5_000, ptr=np.append(0, np.cumsum(width)), cols=cols, sums=sums)
    w, h = closed_factors(pairs)
    np.testing.assert_allclose(w * np.cumsum(h), pairs.row_sums, rtol=1e-9)


def test_sums_are_never_differences():
    # Taking a leaf's huge sum out of its column must not disturb the small cells.
    X = np.array([[1e100, np.nan], [1.0, 2.0], [3.0, 6.0]])
    _, h = closed_factors(patterns_of(X))
    np.testing.assert_allclose(h[1] / h[0], 2.0, rtol=1e-12)


def test_twins_share_what_they_sum_to():
    X = np.array([[1.0, 2.0, np.nan], [3.0, 6.0, np.nan], [1.0, np.nan, 4.0]])
    w, _ = closed_factors(pairs_of(X))
    np.testing.assert_allclose(w[1] / w[0], 3.0, rtol=1e-13)


def test_cells_between_components_take_no_part():
    X = np.array([[1.0, 0.0], [np.nan, 2.0]])
    components = Components(np.array([0, 1], np.int32), np.array([0, 1], np.int32))
    for statistics in (patterns_of(X), pairs_of(X)):
        reduced = peel(statistics, components)
        assert reduced.n_roots + reduced.n_core_blocks == 2
    forced = peel(mask_of(X), components, force=True)
    assert forced.n_core_blocks == 2


def test_margins_with_a_pattern_left_out():
    X = make_table("at random", 6, 5, seed=4)
    mask = mask_of(X)
    label = np.arange(mask.n_patterns, dtype=np.int32) == 2
    inside = mask.inside(label.astype(np.int32), np.zeros(5, np.int32))
    reduced = inside.reduce(force=True)
    assert reduced.core_shape[0] <= mask.n_patterns - 1
    assert reduced.core_col_sums.sum() == pytest.approx(np.nansum(X))
