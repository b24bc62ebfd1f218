"""Intervals hold as often as they say (benchmarks/coverage_of_intervals.py)."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def coverage(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import coverage_of_intervals

    yield coverage_of_intervals
    sys.modules.pop("coverage_of_intervals", None)


@pytest.mark.parametrize("kind", ["Poisson", "over-dispersed Poisson", "gamma"])
def test_95_percent_of_hidden_cells_and_totals_are_held(coverage, kind):
    cells, totals = coverage.coverage(kind, (40, 10), 60, seed=1)
    assert len(cells) > 4000
    assert 0.93 <= np.mean(cells) <= 0.98
    assert 0.92 <= np.mean(totals) <= 0.98  # of 600 totals: twice the chance error


@pytest.mark.parametrize("kind", ["Poisson", "autoregressive"])
def test_robust_bands_of_indices_hold_with_few_rows(coverage, kind):
    found = coverage.coverage_of_indices(kind, (15, 6), 120, robust=True, seed=1)
    assert 0.91 <= found <= 0.98
