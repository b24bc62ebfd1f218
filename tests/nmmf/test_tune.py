"""Weights chosen by what they predict."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import kl_div

import a1gm
from a1gm.exceptions import (
    DataError,
    InfiniteValuesError,
    NegativeValuesError,
    NothingObservedError,
    ParameterError,
)
from a1gm.nmmf import _held_out, _observe, _tune


def made(seed=0, shape=(200, 12, 5, 4), holes=0.2, counts=2.0):
    rng = np.random.default_rng(seed)
    w, h, a, b = (rng.random(n) + 0.1 for n in shape)
    X = rng.poisson(counts * np.outer(w, h)).astype(float)
    X[rng.random(X.shape) < holes] = np.nan
    return (
        X,
        rng.poisson(90 * np.outer(a, h)) * 1.0,
        rng.poisson(30 * np.outer(w, b)) * 1.0,
    )


def hidden_cells(shape, share, seed):
    hidden = np.zeros(shape, bool)
    for rows, columns in _held_out.plan(shape, share, np.random.default_rng(seed)):
        hidden[rows] = columns
    return hidden


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("n_cols", [12, 62])  # with Z, in one word and in two
def test_scores_are_those_of_fits_without_the_hidden_cells(share, seed, n_cols):
    X, Y, Z = made(seed, (200, n_cols, 5, 4))
    weights = [0.0, 0.2, 5.0]
    tuning = a1gm.tune_nmmf(
        X,
        Y,
        Z,
        alphas=weights,
        betas=weights,
        share=share,
        random_state=seed,
        tol=1e-11,
    )
    hidden = hidden_cells(X.shape, share, seed)
    kept = np.where(hidden, np.nan, X)
    # What X alone can predict: rows and columns with something left.
    scored = hidden & ~np.isnan(X) & (np.nansum(kept, axis=1) > 0)[:, None]
    scored &= np.nansum(kept, axis=0) > 0
    assert tuning.n_cells == scored.sum()
    for i, alpha in enumerate(weights):
        for j, beta in enumerate(weights):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fit = a1gm.fit_nmmf(kept, Y, Z, alpha=alpha, beta=beta)
            fitted = np.outer(fit.w, fit.h)
            score = kl_div(X[scored], fitted[scored]).sum()
            assert tuning.scores[i, j] == pytest.approx(score, rel=1e-9)
    assert tuning.alone == pytest.approx(tuning.scores[0, 0], rel=1e-12)


def test_large_tables_in_runs_of_rows(monkeypatch):
    monkeypatch.setattr(_held_out, "DEALT_CELLS", 100)
    test_scores_are_those_of_fits_without_the_hidden_cells(0.02, 3, 12)
    test_scores_are_those_of_fits_without_the_hidden_cells(0.3, 4, 62)


@given(
    n_rows=st.integers(1, 200),
    n_cols=st.integers(1, 30),
    share=st.floats(0.01, 0.9),
    seed=st.integers(0, 1000),
    in_runs=st.booleans(),
    n_hands=st.integers(1, 5),
)
@settings(max_examples=100, deadline=None)
def test_the_plan_covers_every_row_once(n_rows, n_cols, share, seed, in_runs, n_hands):
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_held_out, "DEALT_CELLS", 0 if in_runs else 1 << 40)
        plan = _held_out.plan((n_rows, n_cols), share, rng)
    rows = np.concatenate([np.arange(n_rows)[rows] for rows, _ in plan])
    np.testing.assert_array_equal(np.sort(rows), np.arange(n_rows))
    assert not any(hidden.all() for _, hidden in plan)
    hides = {int(i): tuple(h) for rows, h in plan for i in np.arange(n_rows)[rows]}
    hands = _held_out.deal(plan, n_rows, n_hands)
    assert len(hands) <= n_hands
    dealt = [
        (int(i), tuple(h))
        for hand in hands
        for rows, h in hand
        for i in np.arange(n_rows)[rows]
    ]
    assert sorted(dealt) == sorted(hides.items())


def test_threads_get_as_many_rows_each_and_runs_that_hide_stay_whole():
    shape = (100_000, 50)
    plan = _held_out.plan(shape, 0.01, np.random.default_rng(0))
    hands = _held_out.deal(plan, shape[0], 2)
    rows = [sum(rows.stop - rows.start for rows, _ in hand) for hand in hands]
    assert max(rows) - min(rows) <= 2000
    hiding = [rows.stop - rows.start for h in hands for rows, c in h if c.any()]
    assert len(hiding) == 5
    assert set(hiding) <= {990, 991}
    hidden = sum(c.sum() * (r.stop - r.start) for h in hands for r, c in h)
    assert hidden == pytest.approx(50_000, rel=0.02)


@pytest.mark.parametrize(
    ("shape", "share"),
    [((3, 50), 0.02), ((3, 50), 0.1), ((7, 3), 0.1), ((40, 2), 0.5), ((200, 9), 0.8)],
)
def test_the_share_is_the_one_asked_for(shape, share):
    hidden = [hidden_cells(shape, share, seed).mean() for seed in range(300)]
    assert np.mean(hidden) == pytest.approx(share, rel=0.1)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.2, 0.5])
def test_groups_do_not_follow_a_calendar(share):
    plan = _held_out.plan((1000, 10), share, np.random.default_rng(0))
    assert math.gcd(len(plan), 2 * 3 * 5 * 7) == 1


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr(_held_out, "DEALT_CELLS", 100)
    X, Y, Z = made(10, (500, 12, 5, 4))
    one, two = (a1gm.tune_nmmf(X, Y, Z, share=0.02, n_threads=n) for n in (1, 2))
    assert one.n_cells == two.n_cells
    np.testing.assert_allclose(one.scores, two.scores, rtol=1e-10)


def test_every_cell_has_the_same_chance():
    times = sum(hidden_cells((60, 7), 0.1, seed).astype(int) for seed in range(1500))
    assert times.mean() == pytest.approx(150, rel=0.1)
    assert times.max() < 240
    assert times.min() > 80


def test_side_tables_that_know_more_are_given_weight():
    X, Y, Z = made(5, (400, 15, 5, 4), counts=0.5)
    tuning = a1gm.tune_nmmf(X, Y, Z)
    assert tuning.scores.shape == (10, 10)
    assert tuning.best[1] > 0
    assert tuning.best_score == tuning.scores.min() < tuning.alone
    assert 0 < tuning.improvement < 1
    assert "hidden cells" in repr(tuning)
    noise = np.random.default_rng(0).random((400, 4)) ** 8 * 100
    assert a1gm.tune_nmmf(X, Z=noise).best[1] <= 0.01


def test_one_side_table():
    X, Y, Z = made(6)
    assert a1gm.tune_nmmf(X, Y).scores.shape == (10, 1)
    assert a1gm.tune_nmmf(X, None, Z, betas=[1.0]).scores.shape == (1, 1)


def test_the_same_seed_gives_the_same_scores():
    X, Y, Z = made(7)
    first, again = (a1gm.tune_nmmf(X, Y, Z, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.scores, again.scores)
    other = a1gm.tune_nmmf(X, Y, Z, random_state=4)
    assert not np.array_equal(first.scores, other.scores)
    generator = np.random.default_rng(3)
    np.testing.assert_array_equal(
        a1gm.tune_nmmf(X, Y, Z, random_state=generator).scores, first.scores
    )


def test_containers_give_the_same_scores():
    pd = pytest.importorskip("pandas")
    X, Y, Z = made(8)
    plain = a1gm.tune_nmmf(X, Y, Z)
    masked = np.ma.masked_array(np.nan_to_num(X), np.isnan(X))
    for tables in ((pd.DataFrame(X), Y, pd.DataFrame(Z)), (masked, Y, Z)):
        np.testing.assert_allclose(a1gm.tune_nmmf(*tables).scores, plain.scores)


def test_faults_are_named():
    X, Y, Z = made(9)
    with pytest.raises(ParameterError, match="needs Y or Z"):
        a1gm.tune_nmmf(X)
    for share in (0.0, 1.0, -0.1, "half"):
        with pytest.raises(ParameterError, match="share"):
            a1gm.tune_nmmf(X, Y, share=share)
    with pytest.raises(ParameterError, match="alphas is empty"):
        a1gm.tune_nmmf(X, Y, alphas=[])
    with pytest.raises(ParameterError, match="Each of betas"):
        a1gm.tune_nmmf(X, Y, Z, betas=[1.0, -1.0])
    with pytest.raises(ParameterError, match="random_state"):
        a1gm.tune_nmmf(X, Y, random_state="today")
    with pytest.raises(DataError, match="one column"):
        a1gm.tune_nmmf(np.ones((5, 1)), Z=np.ones((5, 2)))
    with pytest.raises(ParameterError, match=r"at most 0\.5"):
        a1gm.tune_nmmf(np.ones((5, 2)), Z=np.ones((5, 2)), share=0.6)
    with pytest.raises(DataError, match="larger share"):
        a1gm.tune_nmmf(np.ones((3, 2)), Z=np.ones((3, 2)), share=1e-9)
    with pytest.raises(DataError, match="nothing left but zeros"):
        a1gm.tune_nmmf(np.zeros((5, 2)), Z=np.ones((5, 2)))
    with pytest.raises(NothingObservedError, match="observed in X"):
        a1gm.tune_nmmf(X * np.nan, Y)
    for which, name in ((0, "X"), (2, "Z")):
        tables = [T.copy() for T in (X, Y, Z)]
        tables[which][123, 3] = -1.0
        with pytest.raises(NegativeValuesError, match=rf"{name}\[123, 3\]"):
            a1gm.tune_nmmf(*tables)
        tables[which][123, 3] = np.inf
        with pytest.raises(InfiniteValuesError, match=rf"{name}\[123, 3\]"):
            a1gm.tune_nmmf(*tables)


def test_as_many_patterns_as_rows(monkeypatch):
    """The wide form of the rows that hide nothing, and of Y, changes no score."""
    monkeypatch.setattr(_held_out, "DEALT_CELLS", 100)
    monkeypatch.setattr(_held_out, "TABLE_CELLS", 1)
    monkeypatch.setattr(_observe, "TABLE_CELLS", 1)
    test_scores_are_those_of_fits_without_the_hidden_cells(0.02, 5, 62)
    test_scores_are_those_of_fits_without_the_hidden_cells(0.3, 6, 12)


def test_blocks_that_x_alone_does_not_join_are_not_scored():
    X, Y, Z = made(12, (200, 12, 5, 4), holes=0.0)
    X[:100, 6:] = X[100:, :6] = np.nan
    tuning = a1gm.tune_nmmf(X, Y, Z, random_state=1)
    hidden = hidden_cells(X.shape, 0.1, 1) & ~np.isnan(X)
    kept = np.where(hidden, np.nan, X)
    scored = hidden & (np.nansum(kept, axis=1) > 0)[:, None]
    assert tuning.n_cells == scored.sum()
    assert np.isfinite(tuning.scores).all()


def test_weights_that_plain_sweeps_do_not_reach_are_solved_one_by_one(monkeypatch):
    X, Y, Z = made(13)
    weights = [0.0, 0.5]
    options = {"alphas": weights, "betas": weights, "tol": 1e-11}
    quick = a1gm.tune_nmmf(X, Y, Z, **options)
    monkeypatch.setattr(_tune, "MAX_SWEEPS", 1)
    slow = a1gm.tune_nmmf(X, Y, Z, **options)
    np.testing.assert_allclose(slow.scores, quick.scores, rtol=1e-9)


def test_the_default_tolerance_is_far_below_the_differences_of_scores():
    X, Y, Z = made(14)
    loose, tight = a1gm.tune_nmmf(X, Y, Z), a1gm.tune_nmmf(X, Y, Z, tol=1e-11)
    np.testing.assert_allclose(loose.scores, tight.scores, rtol=1e-4)
