"""Sets of margins on the same hidden cells."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import a1gm
from a1gm.exceptions import DataError, ParameterError


def counts(seed=0):
    """Sites with seasons of their own, in years of one factor."""
    rng = np.random.default_rng(seed)
    seasons = rng.gamma(2.0, 20.0, (6, 1, 12))
    return rng.poisson(seasons * rng.gamma(20.0, 0.05, (1, 8, 1))).astype(float)


def test_the_margins_that_made_the_table_are_best():
    found = a1gm.assess(counts(), interactions="all", random_state=0)
    assert found.best == "{0, 2} {1}"
    assert found.scores[found.best].skill > 0.5
    assert len(found.scores) == 8
    assert found.n_hidden == 5 * round(0.1 * 6 * 8 * 12)
    assert found.verdict.startswith("{0, 2} {1} is best")


def test_scores_are_those_of_fits_of_the_rest():
    T = counts()
    found = a1gm.assess(T, interactions=[(0, 2)], repeats=1, random_state=3)
    rng = np.random.default_rng(3)
    hidden = np.zeros(T.size, bool)
    hidden[rng.choice(T.size, round(0.1 * T.size), replace=False)] = True
    left = np.where(hidden.reshape(T.shape), np.nan, T)
    x = T.ravel()[hidden]
    guess = a1gm.fit_tensor(left, [(0, 2)]).reconstruct().ravel()[hidden]
    means = [np.nanmean(left, axis=axes) for axes in ((1, 2), (0, 2), (0, 1))]
    index = np.unravel_index(np.flatnonzero(hidden), T.shape)
    off = [np.abs(x - mean[k]).mean() for mean, k in zip(means, index, strict=True)]
    score = found.scores["{0, 2} {1}"]
    assert score.mean_absolute_error == pytest.approx(np.abs(x - guess).mean())
    assert score.skill == pytest.approx(1 - np.abs(x - guess).mean() / min(off))
    assert found.means_of == int(np.argmin(off))


def test_errors_are_weighted_as_those_of_two_keys():
    T = counts()[:, :, 0]
    weights = np.random.default_rng(1).gamma(0.5, 1.0, T.shape)
    options = {"weights": weights, "repeats": 1, "random_state": 0}
    found = a1gm.assess(T, interactions="all", **options).scores["{0} {1}"]
    random = np.random.default_rng(0)
    hidden = np.zeros(T.size, bool)
    hidden[random.choice(T.size, round(0.1 * T.size), replace=False)] = True
    hidden = hidden.reshape(T.shape)
    left = np.where(hidden, np.nan, T)
    guess = a1gm.fit(left, weights=weights).reconstruct()[hidden]
    off = np.average(np.abs(T[hidden] - guess), weights=weights[hidden])
    assert found.mean_absolute_error == pytest.approx(off)


def test_a_long_frame_says_the_same():
    T = counts()
    index = np.indices(T.shape).reshape(3, -1)
    frame = pd.DataFrame(dict(zip(["site", "year", "month"], index, strict=True)))
    frame["n"] = T.ravel()
    found = a1gm.assess(
        frame,
        keys=["site", "year", "month"],
        value="n",
        interactions="all",
        random_state=0,
    )
    other = a1gm.assess(T, interactions="all", random_state=0)
    assert found.best == "{site, month} {year}"
    assert [s.skill for s in found.scores.values()] == pytest.approx(
        [s.skill for s in other.scores.values()]
    )
    assert "skill" in found.to_frame().columns
    assert "<table>" in found._repr_html_()


def test_what_cannot_be_judged():
    with pytest.raises(ParameterError, match="share"):
        a1gm.assess(counts(), hide="last")
    with pytest.raises(ParameterError, match="sets of pairs"):
        a1gm.assess(np.ones((2,) * 5), interactions="all")
    with pytest.raises(DataError, match="too few"):
        a1gm.assess(np.ones((1, 1, 2)))


def test_modes_may_have_numbers_for_names():
    T = counts()
    index = np.indices(T.shape).reshape(3, -1)
    frame = pd.DataFrame({2: index[0], 0: index[1], 1: index[2], "n": T.ravel()})
    found = a1gm.assess(
        frame, keys=[2, 0, 1], value="n", interactions="all", random_state=0
    )
    assert found.best == "{2, 1} {0}"


def test_an_exact_table_has_no_errors():
    ones = a1gm.assess(np.full((3, 4, 5), 7.3), interactions="all", random_state=0)
    assert {score.skill for score in ones.scores.values()} == {0.0}
    product = np.multiply.outer([1.0, 2.0, 5.0], np.outer([1.0, 3.0], [2.0, 5.0, 7.0]))
    found = a1gm.assess(product, random_state=0).scores["{0} {1} {2}"]
    assert (found.skill, found.mean_absolute_error) == (1.0, 0.0)


@pytest.mark.parametrize(
    "given",
    [
        *({name: 5} for name in ("by", "id", "columns", "exclude", "ordered")),
        {"sample": 5},
        {"negatives": "allow"},  # seen: this one and the next ones had no effect
        {"level": 0.9},
        {"exclude": np.array(["a", "b"])},
    ],
)
def test_options_of_two_keys_are_refused(given):
    (option,) = given
    with pytest.raises(ParameterError, match=f"{option}= is for tables of two keys"):
        a1gm.assess(counts(), **given)


def test_a_set_that_knows_few_cells_is_not_best():
    rng = np.random.default_rng(1)
    sizes = rng.gamma(3.0, 2.0, 40), *rng.gamma(3.0, 1.0 / 3.0, (2, 12))
    T = rng.poisson(np.multiply.outer(sizes[0], np.outer(*sizes[1:]))).astype(float)
    T[rng.random(T.shape) < 0.95] = np.nan
    found = a1gm.assess(T, interactions="all", random_state=0)
    assert found.best == "{0} {1} {2}"
    assert found.scores[found.best].n_known == found.n_hidden
    known = {score.n_known for score in found.scores.values()}
    assert 0 < min(known - {0}) < found.n_hidden / 10
    four = rng.poisson(5.0, (3, 3, 3, 3)) + 1.0
    assert "54 more sets" in repr(a1gm.assess(four, interactions="all", repeats=1))


def test_options_of_long_frames_are_refused():
    with pytest.raises(ParameterError, match="Name the columns with the keys"):
        a1gm.assess(counts(), value="n")
    for T in (counts(), counts()[0]):
        with pytest.raises(ParameterError, match="duplicates must be one of"):
            a1gm.assess(T, duplicates="zz")


@pytest.mark.parametrize("make", [tuple, list, np.stack])
def test_cells_may_be_listed(make):
    """Seen: refused, as rows of different lengths."""
    T = counts()
    index = make(np.indices(T.shape).reshape(3, -1))
    listed = a1gm.assess((index, T.ravel(), T.shape), random_state=0)
    assert listed == a1gm.assess((index, T.ravel()), random_state=0)
    assert listed == a1gm.assess(T, random_state=0)


def test_all_sets_are_compared_by_default():
    assert len(a1gm.assess(counts(), random_state=0).scores) == 8
    assert len(a1gm.assess(np.ones((2,) * 5), random_state=0).scores) == 1


def test_of_a_large_table_some_levels_are_judged(monkeypatch):
    rng = np.random.default_rng(2)
    T = rng.poisson(np.multiply.outer(rng.gamma(3, 9, (90, 4)), rng.gamma(3, 1, 3)))
    monkeypatch.setattr("a1gm.tensor.assess.MOST_OBSERVED", 360)
    found = a1gm.assess(T.astype(float), random_state=0)
    assert found.part == "30 of 90 levels of mode 0, drawn at random"
    assert found.part in repr(found)
    assert found.n_hidden == 5 * 36
