"""The fit is the global optimum, for tables of every kind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support import oracles
from support.tables import (
    KINDS,
    make_mask,
    make_table,
    quiet,
    tables,
    without_empty_lines,
)

import a1gm

TOL = 1e-10  # what `fit` promises by default
SAME = 1e-8  # factors of two fits: the certificate's tolerance times a condition number

pytestmark = quiet


@pytest.mark.parametrize("options", [{}, {"zeros": 0.3}, {"spread": 8.0}])
@given(data=st.data())
def test_the_margins_of_the_fit_are_those_of_the_data(options, data):
    X = data.draw(tables(max_rows=14, max_cols=14, **options))
    fit = a1gm.fit(X)
    assert oracles.certificate(X, fit) <= TOL
    if "spread" not in options:
        assert fit.certificate <= TOL
        assert fit.converged


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("shape", [(60, 5), (5, 60), (40, 40), (130, 70)])
def test_the_margins_hold_on_larger_tables(kind, shape):
    X = make_table(kind, *shape, seed=7)
    assert oracles.certificate(X, a1gm.fit(X)) <= TOL


@pytest.mark.oracle
@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("seed", range(4))
def test_no_other_solver_finds_a_smaller_divergence(kind, seed):
    X = without_empty_lines(make_table(kind, 8, 7, seed))
    fit = a1gm.fit(X)
    ours = oracles.divergence(X, oracles.fitted_cells(X, fit))
    assert fit.divergence == pytest.approx(ours, rel=1e-9, abs=1e-12)
    for solve in (oracles.lbfgs, oracles.scaling):
        theirs = oracles.divergence(X, solve(X))
        assert ours <= theirs * (1.0 + 1e-9) + 1e-12


@given(tables(zeros=0.2), st.randoms(use_true_random=False))
def test_order_of_rows_and_columns(X, random):
    rows, cols = np.arange(X.shape[0]), np.arange(X.shape[1])
    random.shuffle(rows)
    random.shuffle(cols)
    one, other = a1gm.fit(X), a1gm.fit(X[rows][:, cols])
    for name, order in (("row_factor", rows), ("col_factor", cols)):
        found, expected = getattr(other, name), getattr(one, name)[order]
        np.testing.assert_allclose(found, expected, rtol=SAME, atol=1e-300)
    for name in ("n_blocks", "n_undetermined", "attained"):
        assert getattr(other, name) == getattr(one, name)


@given(tables(zeros=0.2))
def test_transpose(X):
    there, back = a1gm.fit(X), a1gm.fit(X.T)
    np.testing.assert_allclose(
        oracles.fitted_cells(X, there),
        oracles.fitted_cells(X.T, back).T,
        rtol=SAME,
        atol=1e-12 * np.nanmax(X),
    )
    assert (there.solver == "closed form") == (back.solver == "closed form")
    assert there.n_blocks == back.n_blocks


@given(tables(zeros=0.1), st.integers(0, 2**31))
def test_junk_under_the_mask_changes_no_bit(X, seed):
    junk = np.random.default_rng(seed).choice([-7.0, np.inf, -np.inf, 1e300], X.shape)
    hidden = np.isnan(X)
    zeros = np.ma.masked_array(np.where(hidden, 0.0, X), hidden)
    rubbish = np.ma.masked_array(np.where(hidden, junk, X), hidden)
    plain, one, other = a1gm.fit(X), a1gm.fit(zeros), a1gm.fit(rubbish)
    for name in ("row_factor", "col_factor"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        np.testing.assert_array_equal(getattr(plain, name), getattr(one, name))
    assert one.divergence == other.divergence


@given(
    st.sampled_from(sorted(KINDS)),
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(0, 2**31),
)
def test_exact_rank_one_data_are_recovered(kind, n, m, seed):
    observed = make_mask(kind, n, m, seed)
    observed = observed[observed.any(axis=1)][:, observed.any(axis=0)]
    rng = np.random.default_rng(seed)
    truth = np.outer(*(np.exp(rng.standard_normal(k)) for k in observed.shape))
    X = np.where(observed, truth, np.nan)
    fit = a1gm.fit(X)
    assume(fit.n_blocks == 1)
    np.testing.assert_allclose(fit.reconstruct(), truth, rtol=1e-7)
    assert fit.divergence <= 1e-12 * truth.sum()


@given(tables(max_rows=7), st.floats(0.01, 0.99), st.integers(0, 2**31))
def test_splitting_a_row_keeps_the_column_factors(X, share, seed):
    i = seed % len(X)
    split = np.vstack([X, (1.0 - share) * X[i]])
    split[i] *= share
    one, other = a1gm.fit(X), a1gm.fit(split)
    np.testing.assert_allclose(other.col_factor, one.col_factor, rtol=SAME)
    np.testing.assert_allclose(
        other.row_factor[i] + other.row_factor[-1], one.row_factor[i], rtol=SAME
    )


@given(tables())
def test_refitting_the_imputed_table_returns_the_same_factors(X):
    X = without_empty_lines(X)
    fit = a1gm.fit(X)
    assume(fit.n_blocks == 1)
    again = a1gm.fit(fit.impute(X))
    assert again.solver == "closed form"
    np.testing.assert_allclose(again.row_factor, fit.row_factor, rtol=SAME)
    np.testing.assert_allclose(again.col_factor, fit.col_factor, rtol=SAME)
