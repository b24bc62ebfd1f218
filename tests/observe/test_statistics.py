"""The forms that statistics come in answer the same questions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from support.tables import tables

from a1gm._base.bits import pack_bits
from a1gm._observe import statistics_base as _statistics
from a1gm._observe.statistics import (
    MaskStatistics,
    PairStatistics,
    PatternStatistics,
    weighted_counts,
)


def forms(X: np.ndarray) -> list:
    """Every row its own line, in each of the three forms."""
    seen = ~np.isnan(X)
    rows, cols = np.nonzero(seen)
    sums = np.nan_to_num(X)
    ptr = np.concatenate(([0], np.cumsum(seen.sum(axis=1))))
    return [
        PatternStatistics(pack_bits(seen), np.ones(len(X), np.int64), sums),
        MaskStatistics(pack_bits(seen), None, sums.sum(axis=1), sums.sum(axis=0)),
        PairStatistics(ptr, cols.astype(np.int32), X[rows, cols], None, X.shape[1]),
    ]


@given(tables(max_rows=12, max_cols=70, zeros=0.2))
def test_all_forms_agree(X):
    seen = ~np.isnan(X)
    for statistics in forms(X):
        assert (statistics.n_lines, statistics.n_cols) == X.shape
        np.testing.assert_allclose(statistics.row_sums, np.nansum(X, axis=1))
        np.testing.assert_allclose(statistics.col_sums, np.nansum(X, axis=0))
        lines, cols = statistics.has_observed()
        np.testing.assert_array_equal(lines, seen.any(axis=1))
        np.testing.assert_array_equal(cols, seen.any(axis=0))
        h = np.arange(1.0, X.shape[1] + 1.0)
        np.testing.assert_allclose(statistics.reach(h), seen @ h)
        found = np.zeros(X.shape, bool)
        for i, j, _ in statistics.cells():
            found[i, j] = True
        np.testing.assert_array_equal(found, seen)
        some = np.array([len(X) - 1, 0, 0])
        np.testing.assert_array_equal(statistics.observed_at(some), seen[some])
        for part in (slice(0, len(X)), slice(0, 1), slice(len(X) - 1, len(X))):
            np.testing.assert_array_equal(statistics.observed_lines(part), seen[part])


@pytest.mark.parametrize("cells", [1, 7, 50, 10**6])
def test_lines_come_in_bounded_blocks(cells, monkeypatch):
    monkeypatch.setattr(_statistics, "CELLS_AT_ONCE", cells)
    X = np.where(np.random.default_rng(1).random((23, 5)) < 0.5, 1.0, np.nan)
    for statistics in forms(X):
        blocks = list(statistics.pieces())
        assert all(b.size <= max(cells, 5) for _, b in blocks)
        np.testing.assert_array_equal(
            np.vstack([block for _, block in blocks]), ~np.isnan(X)
        )
        stops = [lines.stop for lines, _ in blocks]
        assert stops[-1] == 23
        assert [lines.start for lines, _ in blocks] == [0, *stops[:-1]]


def test_weighted_counts_are_float_even_of_nothing():
    none = weighted_counts(np.zeros(0, np.int64), np.zeros(0), 3)
    assert none.dtype == np.float64
    np.testing.assert_array_equal(none, [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(
        weighted_counts(np.array([2, 0, 2]), np.array([1.0, 2.0, 3.0]), 4),
        [2.0, 0.0, 4.0, 0.0],
    )
