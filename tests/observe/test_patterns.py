"""The forms of patterns answer the same questions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from support.forms import mask_of, pairs_of, patterns_of
from support.tables import tables

from a1gm._observe import patterns
from a1gm._observe.patterns import weighted_counts


@given(tables(max_rows=12, max_cols=70, zeros=0.2))
def test_all_forms_agree(X):
    _, first = np.unique(~np.isnan(X), axis=0, return_index=True)
    X = X[np.sort(first)]  # every row is a pattern
    seen, label = ~np.isnan(X), np.arange(max(X.shape)) % 2
    labels = label[: len(X)].astype(np.int32), label[: X.shape[1]].astype(np.int32)
    for found in (patterns_of(X), mask_of(X), pairs_of(X)):
        assert (found.n_patterns, found.n_cols) == X.shape
        np.testing.assert_allclose(found.row_sums, np.nansum(X, axis=1))
        np.testing.assert_allclose(found.col_sums, np.nansum(X, axis=0))
        lines, cols = found.has_observed()
        np.testing.assert_array_equal(lines, seen.any(axis=1))
        np.testing.assert_array_equal(cols, seen.any(axis=0))
        h = np.arange(1.0, X.shape[1] + 1.0)
        rows, _ = found.margins(np.ones(len(X)), h)
        np.testing.assert_allclose(rows, seen @ h)
        rows, cols = found.inside(*labels).margins(np.ones(len(X)), h)
        inside = seen & (labels[0][:, None] == labels[1])
        np.testing.assert_allclose(rows, inside @ h)
        np.testing.assert_allclose(cols, inside.sum(axis=0) * h)
        cells = np.zeros(X.shape, bool)
        for i, j, positive in found.cells():
            cells[i, j] = positive
        np.testing.assert_array_equal(cells, np.nan_to_num(X) > 0.0)
        some = np.array([len(X) - 1, 0, 0])
        np.testing.assert_array_equal(found.observed_cells(some), seen[some])
        for part in (slice(0, len(X)), slice(0, 1), slice(len(X) - 1, len(X))):
            np.testing.assert_array_equal(found.observed_cells(part), seen[part])
        found.check(signed=False)


@pytest.mark.parametrize("cells", [1, 7, 50, 10**6])
def test_patterns_come_in_bounded_blocks(cells, monkeypatch):
    monkeypatch.setattr(patterns, "CELLS_AT_ONCE", cells)
    X = np.where(np.random.default_rng(1).random((23, 5)) < 0.5, 1.0, np.nan)
    for found in (mask_of(X), pairs_of(X)):
        blocks = list(found.stretches())
        assert sum(lines.stop - lines.start for lines in blocks) == 23
        got = np.vstack([found.observed_cells(lines) for lines in blocks])
        np.testing.assert_array_equal(got, ~np.isnan(X))


def test_weighted_counts_are_float_even_of_nothing():
    none = weighted_counts(np.zeros(0, np.int64), np.zeros(0), 3)
    assert none.dtype == np.float64
    np.testing.assert_array_equal(none, [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(
        weighted_counts(np.array([2, 0, 2]), np.array([1.0, 2.0, 3.0]), 4),
        [2.0, 0.0, 4.0, 0.0],
    )
