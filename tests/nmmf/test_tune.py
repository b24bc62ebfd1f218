"""Weights chosen by what they predict."""

import warnings

import numpy as np
import pytest
from scipy.special import kl_div

import a1gm
from a1gm._observe import one_pass
from a1gm.exceptions import (
    DataError,
    InfiniteValuesError,
    NegativeValuesError,
    NothingObservedError,
    ParameterError,
)
from a1gm.nmmf.tune import grid
from a1gm.nmmf.tune import hidden as hiding
from a1gm.nmmf.tune.sweeps import scale_together


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
    rows, cells = hiding.draw_cells(shape, share, np.random.default_rng(seed))
    hidden[rows] = cells
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


@pytest.mark.parametrize(
    ("shape", "share"),
    [((3, 50), 0.02), ((3, 50), 0.1), ((7, 3), 0.1), ((40, 2), 0.5), ((200, 9), 0.8)],
)
def test_the_share_is_the_one_asked_for(shape, share):
    hidden = [hidden_cells(shape, share, seed).mean() for seed in range(300)]
    assert np.mean(hidden) == pytest.approx(share, rel=0.1)


def test_every_hiding_row_keeps_a_cell_and_few_patterns_come_of_it():
    for share in (0.02, 0.1, 0.5, 0.85):
        rows, cells = hiding.draw_cells((1000, 7), share, np.random.default_rng(0))
        assert len(np.unique(rows)) == len(rows)
        assert not cells.all(axis=1).any()
        assert len(np.unique(cells, axis=0)) <= hiding.N_GROUPS


def test_threads_change_nothing():
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
    """Every pair of weights is then solved on its own, to the same scores."""
    monkeypatch.setattr(one_pass, "TABLE_CELLS", 1)
    test_scores_are_those_of_fits_without_the_hidden_cells(0.02, 5, 62)
    test_scores_are_those_of_fits_without_the_hidden_cells(0.3, 6, 12)


def test_a_bad_cell_is_found_among_the_hidden_ones_too():
    X, Y, _ = made(9)
    row, col = np.argwhere(hidden_cells(X.shape, 0.1, 0))[7]
    X[row, col], X[0, 0] = -1.0, -2.0
    with pytest.raises(NegativeValuesError, match=r"X\[0, 0\] = -2 \(2 in all\)"):
        a1gm.tune_nmmf(X, Y)
    X[row, col], X[0, 0] = np.inf, 1.0
    with pytest.raises(InfiniteValuesError, match=rf"X\[{row}, {col}\]"):
        a1gm.tune_nmmf(X, Y)


def test_the_tables_are_not_modified():
    tables = made(9)
    copies = [T.copy() for T in tables]
    a1gm.tune_nmmf(*tables)
    for T, copy in zip(tables, copies, strict=True):
        np.testing.assert_array_equal(T, copy)


@pytest.mark.parametrize("scale", [1e-300, 1e305])
def test_extreme_tables(scale):
    X, Y, Z = made(11)
    weights = [0.0, 2.0]
    plain, extreme = (
        a1gm.tune_nmmf(X * s, Y * s, Z * s, alphas=weights, betas=weights, tol=1e-10)
        for s in (1.0, scale)
    )
    np.testing.assert_allclose(extreme.scores / scale, plain.scores, rtol=1e-6)


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
    monkeypatch.setattr(grid, "MAX_SWEEPS", 1)
    slow = a1gm.tune_nmmf(X, Y, Z, **options)
    np.testing.assert_allclose(slow.scores, quick.scores, rtol=1e-9)


def test_the_default_tolerance_is_far_below_the_differences_of_scores():
    X, Y, Z = made(14)
    loose, tight = a1gm.tune_nmmf(X, Y, Z), a1gm.tune_nmmf(X, Y, Z, tol=1e-11)
    np.testing.assert_allclose(loose.scores, tight.scores, rtol=1e-4)


def test_many_margins_of_one_mask_are_met_together():
    rng = np.random.default_rng(3)
    mask = rng.random((40, 9)) < 0.7
    mask[0] = mask[:, 0] = True
    tables = np.where(mask, rng.random((5, 40, 9)) + 0.1, 0.0)
    tables[1, :, 8] = tables[2, 30:] = 0.0  # a column, and rows, of zeros
    row_sums, col_sums = tables.sum(axis=2), tables.sum(axis=1)
    P = mask.astype(float)
    h, gap = scale_together(P, row_sums, col_sums, tol=1e-10, max_sweeps=500)
    assert (gap <= 1e-10).all()
    w = row_sums / (h @ P.T)
    np.testing.assert_allclose(h * (w @ P), col_sums, rtol=1e-9)


def test_sweeps_do_not_subtract_what_would_cancel():
    """One column holds nearly all; a row that misses it must keep its digits."""
    mask = np.ones((4, 3))
    mask[3, 0] = 0.0
    X = np.array([[1e12, 1, 2], [1e12, 2, 1], [1e12, 1, 1], [0, 3, 4]])
    sums = X.sum(axis=1)[None], X.sum(axis=0)[None]
    h, gap = scale_together(mask, *sums, tol=1e-9, max_sweeps=100)
    assert gap[0] <= 1e-9
    w = sums[0][0] / (mask @ h[0])
    np.testing.assert_allclose((mask * np.outer(w, h[0])).sum(axis=0), X.sum(axis=0))
