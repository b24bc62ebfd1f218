"""What shape the holes have."""

from __future__ import annotations

import copy
import pickle
from functools import cached_property

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from support import oracles
from support.tables import make_table, quiet, tables
from ways.containers import sparse_table

import a1gm
from a1gm import MissingPattern

nan = np.nan
pytestmark = quiet


@given(tables(max_rows=12, max_cols=9, zeros=0.2))
def test_counts_by_hand(X):
    hole = np.isnan(X)
    sparse = MissingPattern(sparse_table(X), absent="missing")
    for pattern in (MissingPattern(X), sparse, a1gm.fit(X).pattern):
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


@given(tables(max_rows=7, max_cols=7))
def test_nested_means_each_row_holds_the_smaller_ones(X):
    seen = ~np.isnan(X)
    nested = all(not (a & ~b).any() or not (b & ~a).any() for a in seen for b in seen)
    assert MissingPattern(X).is_nested == nested


@given(tables(max_rows=5, max_cols=5))
def test_closed_form_is_about_the_pattern_alone(X):
    expected = oracles.has_two_chords_everywhere(~np.isnan(X))
    pattern = MissingPattern(X)
    assert pattern.has_closed_form == expected
    rng = np.random.default_rng(0)
    other = np.where(np.isnan(X), nan, rng.integers(0, 2, X.shape))
    assert MissingPattern(other).has_closed_form == expected


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
    pattern = MissingPattern(X)
    assert pattern.shape_name == name
    assert pattern.core_shape == core
    assert name in repr(pattern)


def test_plain_words_about_what_cannot_be_known():
    text = repr(MissingPattern([[1.0, nan], [nan, 2.0]]))
    assert "2 blocks" in text
    assert "2 cells cannot be known" in text
    text = repr(MissingPattern([[0.0, 5.0], [5.0, nan]]))
    assert "1 cell cannot be known" in text
    text = repr(MissingPattern([[1.0, 2.0], [3.0, nan]]))
    assert "1 block" in text
    assert "known" not in text


@given(tables(max_rows=8, max_cols=8, zeros=0.3))
def test_the_pattern_and_the_fit_say_the_same(X):
    fit = a1gm.fit(X)
    for pattern in (fit.pattern, MissingPattern(X)):
        assert pattern.n_blocks == fit.n_blocks
        assert pattern.n_undetermined == fit.n_undetermined
    assert repr(fit.pattern) == repr(MissingPattern(X))


def test_describing_warns_of_nothing(recwarn):
    repr(MissingPattern([[1.0, nan, nan], [nan, 2.0, nan], [nan, nan, nan]]))
    assert not recwarn.list


def test_negative_cells_do_not_matter():
    X = np.array([[1.0, -2.0, nan], [nan, 3.0, -4.0]])
    assert repr(MissingPattern(X)) == repr(MissingPattern(np.abs(X)))


NAMES = [
    name
    for name, value in vars(MissingPattern).items()
    if isinstance(value, property | cached_property) and name[0] != "_"
]
NAMES.remove("missing_per_col")  # an array


def sparse_pattern(absent):
    X = sp.random_array((30, 20), density=0.1, rng=np.random.default_rng(1))
    X.data[3] = nan
    return MissingPattern(X, absent=absent)


PATTERNS = {
    "few row patterns": lambda: MissingPattern(make_table("grid", 40, 6, seed=1)),
    "nothing observed": lambda: MissingPattern([[nan, nan]]),
    "negative": lambda: MissingPattern([[1.0, -2.0, nan], [nan, 3.0, -4.0]]),
    "as many patterns as rows": lambda: MissingPattern(
        make_table("at random", 900, 90, seed=1, zeros=0.1)
    ),
    "sparse, absent is missing": lambda: sparse_pattern("missing"),
    "sparse, absent is zero": lambda: sparse_pattern("zero"),
    "of a stream": lambda: (
        (a1gm.PatternTable(keep_rows=False).update([[0.0, 5.0], [5.0, nan]]))
        .solve()
        .pattern
    ),
    "of a weighted fit": lambda: (
        a1gm.fit([[1.0, 2.0], [3.0, nan]], weights=[[1.0, 2.0], [3.0, 1.0]]).pattern
    ),
}


@pytest.mark.parametrize("way", ["pickle", "copy", "deepcopy"])
@pytest.mark.parametrize("looked", [False, True])
@pytest.mark.parametrize("kind", PATTERNS)
def test_patterns_can_be_copied(kind, looked, way):
    pattern = PATTERNS[kind]()
    if looked:  # every cached property is there when it travels
        repr(pattern)
        _ = [getattr(pattern, name) for name in NAMES]
    other = {
        "pickle": lambda p: pickle.loads(pickle.dumps(p)),
        "copy": copy.copy,
        "deepcopy": copy.deepcopy,
    }[way](pattern)
    assert type(other) is type(pattern)
    for name in NAMES:
        assert getattr(other, name) == getattr(pattern, name), name
    np.testing.assert_array_equal(other.missing_per_col, pattern.missing_per_col)
    assert repr(other) == repr(pattern)
    assert repr(pickle.loads(pickle.dumps(other))) == repr(pattern)


@pytest.mark.parametrize(
    "X", [make_table("grid", 50_000, 20, seed=1), make_table("at random", 900, 90, 1)]
)
def test_a_pickled_pattern_leaves_the_data_behind(X):
    assert len(pickle.dumps(MissingPattern(X))) < X.nbytes / 8
    S = sp.csr_array(np.nan_to_num(X))
    # A column number per cell and nothing of its value.
    sparse = MissingPattern(S, absent="missing")
    assert len(pickle.dumps(sparse)) < 4.5 * S.nnz + 9 * len(X) * 2 + 10_000
