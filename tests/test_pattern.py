"""What shape the holes have."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from support import oracles
from support.tables import make_table, tables

import a1gm
from a1gm import MissingPattern

nan = np.nan
pytestmark = [
    pytest.mark.filterwarnings("ignore::a1gm.exceptions.UndeterminedWarning"),
    pytest.mark.filterwarnings("ignore::a1gm.exceptions.EmptyLineWarning"),
]


@given(tables(max_rows=12, max_cols=9, zeros=0.2))
def test_counts_by_hand(X):
    hole = np.isnan(X)
    for pattern in (MissingPattern.of(X), a1gm.fit(X).pattern):
        assert (pattern.n_rows, pattern.n_cols) == X.shape
        assert pattern.n_missing == hole.sum()
        np.testing.assert_array_equal(pattern.missing_per_col, hole.sum(axis=0))
        assert pattern.n_rows_with_missing == hole.any(axis=1).sum()
        assert pattern.n_cols_with_missing == hole.any(axis=0).sum()
        assert pattern.n_row_patterns == len(np.unique(hole, axis=0))
        assert pattern.n_col_patterns == len(np.unique(hole.T, axis=0))
        assert pattern.is_complete == (not hole.any())
        grown = hole.any(axis=1)[:, None] & hole.any(axis=0)
        assert pattern.is_grid_like == bool((grown == hole).all())
        if hole.any():
            assert pattern.increase_rate == pytest.approx(grown.sum() / hole.sum())


@given(tables(max_rows=7, max_cols=7))
def test_nested_means_each_row_holds_the_smaller_ones(X):
    seen = ~np.isnan(X)
    nested = all(not (a & ~b).any() or not (b & ~a).any() for a in seen for b in seen)
    assert MissingPattern.of(X).is_nested == nested


@given(tables(max_rows=5, max_cols=5))
def test_closed_form_is_about_the_pattern_alone(X):
    expected = oracles.has_two_chords_everywhere(~np.isnan(X))
    pattern = MissingPattern.of(X)
    assert pattern.has_closed_form == expected
    rng = np.random.default_rng(0)
    other = np.where(np.isnan(X), nan, rng.integers(0, 2, X.shape))
    assert MissingPattern.of(other).has_closed_form == expected


@pytest.mark.parametrize(
    ("X", "name", "core"),
    [
        (np.ones((3, 4)), "complete", (1, 1)),
        ([[1, 2, 3], [1, nan, 3], [1, nan, 3]], "grid", (1, 1)),
        ([[1, 2, 3], [1, 2, nan], [1, nan, nan]], "staircase", (1, 1)),
        ([[1, 2, nan], [nan, 2, 3]], "closed form", (1, 1)),
        (np.where(np.eye(3), nan, 1.0), "core of 3 x 3", (3, 3)),
        ([[1, nan], [nan, 2]], "closed form", (2, 2)),
    ],
)
def test_shapes_have_names(X, name, core):
    pattern = MissingPattern.of(X)
    assert pattern.shape_name == name
    assert pattern.core_shape == core
    assert name in repr(pattern)


def test_the_papers_figure():
    X = np.ones((4, 4))
    X[0, 0] = X[1, 1] = nan
    pattern = MissingPattern.of(X)
    assert pattern.increase_rate == 2.0
    assert not pattern.is_grid_like
    assert MissingPattern.of(np.ones((2, 2))).increase_rate == 1.0


def test_plain_words_about_what_cannot_be_known():
    text = repr(MissingPattern.of([[1.0, nan], [nan, 2.0]]))
    assert "2 blocks" in text
    assert "2 cells cannot be known" in text
    text = repr(MissingPattern.of([[0.0, 5.0], [5.0, nan]]))
    assert "1 cell cannot be known" in text
    text = repr(MissingPattern.of([[1.0, 2.0], [3.0, nan]]))
    assert "1 block" in text
    assert "known" not in text


@given(tables(max_rows=8, max_cols=8, zeros=0.3))
def test_the_pattern_and_the_fit_say_the_same(X):
    fit = a1gm.fit(X)
    for pattern in (fit.pattern, MissingPattern.of(X)):
        assert pattern.n_blocks == fit.n_blocks
        assert pattern.n_undetermined == fit.n_undetermined
    assert repr(fit.pattern) == repr(MissingPattern.of(X))


def test_describing_warns_of_nothing(recwarn):
    repr(MissingPattern.of([[1.0, nan, nan], [nan, 2.0, nan], [nan, nan, nan]]))
    assert not recwarn.list


def test_negative_cells_do_not_matter():
    X = np.array([[1.0, -2.0, nan], [nan, 3.0, -4.0]])
    assert repr(MissingPattern.of(X)) == repr(MissingPattern.of(np.abs(X)))


def test_wide_tables():
    X = make_table("at random", 1_500, 420, seed=1)
    pattern = MissingPattern.of(X)
    assert pattern.n_missing == np.isnan(X).sum()
    assert pattern.n_row_patterns == 1_500
    assert not pattern.has_closed_form
    assert "1,500 row patterns" in repr(pattern)


def test_the_input_is_not_modified():
    X = make_table("at random", 20, 5, seed=2)
    before = X.tobytes()
    repr(MissingPattern.of(X))
    assert X.tobytes() == before
