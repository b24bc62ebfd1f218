"""Whether rank 1 is right for a table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine

import a1gm
from a1gm.exceptions import DimensionError, ParameterError


def sales(seed=0, n=30, m=8):
    rng = np.random.default_rng(seed)
    X = rng.poisson(np.outer(rng.gamma(3, 20, n), rng.gamma(3, 1, m))).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


@pytest.mark.parametrize(
    ("load", "low", "high"), [(load_iris, -0.6, -0.2), (load_wine, -1.2, -0.5)]
)
def test_tables_of_unlike_features_are_better_off_with_column_means(load, low, high):
    found = a1gm.assess(load().data, random_state=0)
    assert low < found.skill < high
    assert repr(found).startswith("The column means are better than rank 1")


def test_multiplicative_tables_are_better_off_with_rank_1():
    found = a1gm.assess(sales(), random_state=0)
    assert found.skill > 0.6
    assert 0.85 < found.coverage <= 1.0
    assert found.verdict.startswith("Rank 1 is better")
    best = min(found.scores, key=lambda name: found.scores[name].deviance)
    assert best == "rank 1"
    assert list(found.to_frame("pandas").index) == list(found.scores)
    assert "<table>" in found._repr_html_()
    again = a1gm.assess(pd.DataFrame(sales()), random_state=0)
    assert again == found


def test_the_last_cells_are_hidden_as_a_forecaster_would():
    X = sales()
    found = a1gm.assess(X, hide="last", random_state=1)
    assert "last value" in found.scores
    assert 0 < found.n_hidden <= 5 * len(X)
    assert "last value" in a1gm.assess(X, ordered=True, random_state=1).scores


def test_no_hidden_cell_is_unknowable(monkeypatch):
    from a1gm._api import assess

    rng = np.random.default_rng(5)
    X = rng.poisson(np.outer(rng.gamma(3, 2, 15), rng.gamma(3, 1, 9))).astype(float)
    X[rng.random(X.shape) < 0.5] = np.nan
    asked = []

    def spy(table, **options):
        fit = a1gm.fit(table, **options)
        asked.append((table, fit))
        return fit

    monkeypatch.setattr(assess, "fit", spy)
    for hide in (0.1, 0.6, "last"):
        a1gm.assess(X, hide, random_state=0)
    kept = ~np.isnan(X).all(axis=1)
    for table, fit in asked:
        i, j = np.nonzero(np.isnan(table) & ~np.isnan(X[kept]))
        assert set(fit.fate(i, j)) <= {"finite"}


def test_a_table_too_small_to_hide_anything():
    with pytest.raises(DimensionError, match="No cell can be hidden"):
        a1gm.assess([[1.0, 2.0]])
    with pytest.raises(ParameterError, match="hide must be a share"):
        a1gm.assess(sales(), hide=1.5)
    with pytest.raises(ParameterError, match="repeats must be"):
        a1gm.assess(sales(), repeats=0)


def test_it_shows_itself_and_is_a_frame():
    rng = np.random.default_rng(0)
    X = rng.poisson(np.outer(rng.gamma(3, 20, 30), rng.gamma(3, 1, 8)))
    found = a1gm.assess(X, random_state=0, ordered=True)
    methods = ["rank 1", "column means", "row means", "overall mean", "last value"]
    assert list(found.scores) == methods
    frame = found.to_frame("pandas")
    assert frame.index.tolist() == methods
    errors = ["mean_absolute_error", "median_relative_error"]
    assert list(frame) == ["deviance", *errors]
    assert found.verdict in found._repr_html_()
    assert str(found).startswith("Rank 1 is better than the column means")
    assert found.skill == 1.0 - frame.iloc[0, 1] / frame.iloc[1, 1]


def test_cells_of_an_exact_table_are_in_their_intervals():
    X = np.outer(np.arange(1.0, 7.0), [2.0, 3.0, 5.0, 7.0, 1.0])
    assert a1gm.assess(X, random_state=0).coverage == 1.0
