"""Exposure rides the road of the weights: every answer against rates with weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import a1gm
from a1gm.exceptions import (
    EmptyLineWarning,
    LabelError,
    ParameterError,
    UndeterminedWarning,
    WeightsError,
)

RTOL = 1e-11


def counts(n=9, m=6, *, kinds=None, seed=0):
    """Counts over exposures, with holes; rows of few kinds of exposures if asked."""
    rng = np.random.default_rng(seed)
    E = rng.uniform(0.5, 4.0, (n, m))
    if kinds:
        E = E[rng.integers(kinds, size=n)] * rng.uniform(0.5, 3.0, (n, 1))
    means = E * np.outer(rng.uniform(5.0, 20.0, n), rng.uniform(0.5, 2.0, m))
    X = rng.poisson(means) + 1.0
    missing = rng.random((n, m)) < 0.25
    missing[0] = missing[:, 0] = False
    X[missing] = np.nan
    return X, E


SHAPES = [{}, {"n": 30, "kinds": 3}, {"n": 400, "m": 300}]


@pytest.mark.parametrize("shape", SHAPES)
def test_is_the_fit_of_rates_weighted_by_exposure(shape):
    X, E = counts(**shape)
    fit, rates = a1gm.fit(X, exposure=E), a1gm.fit(X / E, weights=E)
    np.testing.assert_allclose(fit.row_factor, rates.row_factor, rtol=RTOL)
    np.testing.assert_allclose(fit.col_factor, rates.col_factor, rtol=RTOL)
    np.testing.assert_allclose(fit.impute(X), rates.impute(X / E) * E, rtol=RTOL)
    np.testing.assert_allclose(fit.reconstruct(), rates.reconstruct() * E, rtol=RTOL)
    np.testing.assert_allclose(fit.divergence, rates.divergence, rtol=RTOL)
    found, expected = fit.deviance_explained, rates.deviance_explained
    np.testing.assert_allclose(found, expected, rtol=RTOL)
    for kind in ("pearson", "deviance"):
        found, expected = fit.residuals(X, kind), rates.residuals(X / E, kind)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-7)
    off = fit.residuals(X, "response")
    np.testing.assert_allclose(off, X - fit.reconstruct(), rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("kinds", [None, 3])
def test_totals_intervals_and_draws_are_in_units_of_the_counts(kinds):
    X, E = counts(20, 6, kinds=kinds)
    fit = a1gm.fit(X, exposure=E)
    u, missing = fit.uncertainty("poisson"), np.where(np.isnan(X), fit.reconstruct(), 0)
    for by, axis in (("row", 1), ("column", 0), ("all", None)):
        total = u.totals(by)
        np.testing.assert_allclose(total.value, np.atleast_1d(missing.sum(axis)))
        draws = u.simulate(2000, by, random_state=1)
        own = total.value > 0.0
        error = 4.0 * total.se[own] / np.sqrt(2000)
        assert (np.abs(draws.mean(axis=0)[own] - total.value[own]) < error + 1.0).all()
        np.testing.assert_allclose(draws.std(axis=0)[own], total.se[own], rtol=0.15)
    low, high = u.interval(X)
    holes = np.isnan(X)
    assert (low[holes] < missing[holes]).all()
    assert (missing[holes] < high[holes]).all()


def test_draws_of_rows_with_proportional_weights_have_their_own_scales():
    X, V = counts(30, 6, kinds=2)
    u = a1gm.fit(X, weights=V).uncertainty(1.0)
    total, draws = u.totals("row"), u.simulate(1000, "row", random_state=2)
    own = total.value > 0.0
    np.testing.assert_allclose(draws.mean(axis=0)[own], total.value[own], rtol=0.1)


def test_no_exposure_and_unknown_exposure():
    X, E = counts()
    E[2, 3] = 0.0
    X[3] = 7.0  # the row has no other hole
    X[2, 3] = X[3, 2] = np.nan
    E[3, 2] = E[4, 4] = np.nan
    used = np.nan_to_num(E) > 0.0
    fit = a1gm.fit(X, exposure=E)
    left = np.where(used, X, np.nan)
    same = a1gm.fit(left, exposure=np.where(used, E, 1.0))
    np.testing.assert_allclose(fit.row_factor, same.row_factor, rtol=RTOL)
    table = fit.reconstruct()
    assert table[2, 3] == 0.0
    assert np.isnan([table[3, 2], table[4, 4]]).all()
    with pytest.warns(UndeterminedWarning, match="do not determine"):
        filled = fit.impute(X)
    assert (filled[2, 3], filled[4, 4]) == (0.0, X[4, 4])
    assert np.isnan(filled[3, 2])
    u = fit.uncertainty()
    np.testing.assert_array_equal(u.standard_error([2, 3], [3, 2]), [0.0, np.nan])
    assert np.isnan(u.totals("row").value[3])
    low, high = u.interval(X)
    assert low[2, 3] == high[2, 3] == 0.0
    assert np.isnan(low[3, 2])


def test_a_row_that_nobody_could_count_is_zero():
    X, E = counts()
    X[4], E[4] = np.nan, 0.0
    with pytest.warns(EmptyLineWarning):
        fit = a1gm.fit(X, exposure=E)
    assert (fit.reconstruct()[4] == 0.0).all()
    assert (fit.impute(X)[4] == 0.0).all()
    total = fit.uncertainty().totals("row")
    assert (total.value[4], total.se[4]) == (0.0, 0.0)


def test_new_rows_bring_their_exposure():
    X, E = counts()
    fit = a1gm.fit(X, exposure=E)
    for use in (fit.impute, fit.transform, fit.residuals, fit.divergence_of):
        with pytest.raises(ParameterError, match="Pass exposure="):
            use(X[:3])
        with pytest.raises(ParameterError, match="Pass exposure="):
            use(X[:3], weights=E[:3])
        with pytest.raises(ParameterError, match="without exposure"):
            getattr(a1gm.fit(X), use.__name__)(X, exposure=E)
    np.testing.assert_allclose(
        fit.reconstruct(exposure=2.0 * E), 2.0 * fit.reconstruct(), rtol=RTOL
    )


def test_columns_of_the_exposure_are_those_of_the_table():
    X, E = (pd.DataFrame(T, columns=list("abcdef")) for T in counts())
    assert list(a1gm.fit(X, exposure=E).reconstruct()) == list("abcdef")
    with pytest.raises(LabelError, match="columns of exposure"):
        a1gm.fit(X, exposure=E[list("fedcba")])


def test_a_sparse_table_keeps_the_exposure_of_stored_cells():
    X, E = counts()
    fit, stored = a1gm.fit(X, exposure=E), sp.csr_array(np.nan_to_num(X))
    other = a1gm.fit(stored, exposure=E, absent="missing")
    np.testing.assert_allclose(other.divergence, fit.divergence, rtol=RTOL)
    np.testing.assert_allclose(
        other.reconstruct(exposure=E), fit.reconstruct(), rtol=RTOL
    )
    with pytest.raises(ParameterError, match="only that of stored cells"):
        other.reconstruct()
    with pytest.raises(ParameterError, match="absent"):
        a1gm.fit(stored, exposure=E, absent="zero")


def test_a_saved_fit_has_no_exposure(tmp_path):
    X, E = counts(30, 6, kinds=3)
    a1gm.fit(X, exposure=E).save(tmp_path / "fit.a1gm")
    other = a1gm.load(tmp_path / "fit.a1gm")
    with pytest.raises(ParameterError, match="Pass exposure="):
        other.impute(X)
    with pytest.raises(ParameterError, match="has kept no exposure"):
        other.reconstruct()


@pytest.mark.parametrize(
    ("of_counts", "of_exposure"),
    [(1.0, 1e-290), (1.0, 1e290), (1e300, 1.0), (1e100, 1e-100)],
)
def test_any_size(of_counts, of_exposure):
    X, E = counts()
    fit, far = (
        a1gm.fit(X, exposure=E),
        a1gm.fit(X * of_counts, exposure=E * of_exposure),
    )
    rtol = 1e-11
    found = far.reconstruct() / of_counts
    np.testing.assert_allclose(found, fit.reconstruct(), rtol=rtol)
    found = far.impute(X * of_counts) / of_counts
    np.testing.assert_allclose(found, fit.impute(X), rtol=rtol)
    np.testing.assert_allclose(far.divergence / of_counts, fit.divergence, rtol=rtol)
    found = far.row_factor / of_counts * of_exposure
    np.testing.assert_allclose(found, fit.row_factor, rtol=rtol)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda E: E - 3.0, "negative"),
        (lambda E: np.where(E > 3.0, np.inf, E), "infinite"),
        (lambda E: E[:2], "exposure has shape"),
        (lambda E: E * 0.0, "No exposure is above 0"),
        (lambda E: E * np.nan, "No exposure is above 0"),
    ],
)
def test_bad_exposure(change, words):
    X, E = counts()
    with pytest.raises(WeightsError, match=words):
        a1gm.fit(X, exposure=change(E))


def test_weights_or_negative_cells_are_not_combined_with_exposure():
    X, E = counts()
    with pytest.raises(ParameterError, match="cannot be combined"):
        a1gm.fit(X, exposure=E, weights=E)
    with pytest.raises(ParameterError, match="cannot be combined"):
        a1gm.fit(X, exposure=E, negatives="allow")
