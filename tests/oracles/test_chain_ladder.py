"""Run-off triangles: the fit of a staircase is the actuaries' chain-ladder."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import a1gm

RTOL = 1e-9  # the same rational formula, in another order of operations

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # chainladder and its pandas have their own
    chainladder = pytest.importorskip("chainladder")

pytestmark = pytest.mark.oracle

# Name of the sample and its column. Where they were published first:
# raa Mack (1993), genins Taylor & Ashe (1983), abc and ukmotor Christofides (1990),
# mw2008 and mw2014 Merz & Wuthrich, mortgage Kloek (1998), mcl Quarg & Mack (2004).
TRIANGLES = [
    ("raa", "values"),
    ("abc", "values"),
    ("genins", "values"),
    ("ukmotor", "values"),
    ("mw2008", "values"),
    ("mw2014", "values"),
    ("mortgage", "values"),
    ("mcl", "paid"),
    ("tail_sample", "paid"),
]


def load(name: str, column: str) -> tuple[np.ndarray, np.ndarray]:
    """Cumulative claims with NaN below the diagonal, and chainladder's reserves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        triangle = chainladder.load_sample(name)[column]
        model = chainladder.Chainladder().fit(triangle)
        cumulative = np.array(triangle.set_backend("numpy").values[0, 0], float)
        reserves = np.array(model.ibnr_.set_backend("numpy").values[0, 0, :, 0], float)
    n, m = cumulative.shape
    future = np.arange(m) > n - 1 - np.arange(n)[:, None] + (m - n)
    cumulative[~future] = np.nan_to_num(cumulative[~future])
    cumulative[future] = np.nan
    return cumulative, np.nan_to_num(reserves)


def increments(cumulative: np.ndarray) -> np.ndarray:
    return np.diff(cumulative, axis=1, prepend=0.0)


def reserves_of(X: np.ndarray, fit: a1gm.RankOneFit) -> np.ndarray:
    return np.where(np.isnan(X), fit.impute(X), 0.0).sum(axis=1)


@pytest.mark.parametrize(("name", "column"), TRIANGLES)
def test_reserves_are_those_of_chain_ladder(name, column):
    cumulative, expected = load(name, column)
    X = increments(cumulative)
    fit = a1gm.fit(X, negatives="allow")
    assert fit.solver == "closed form"
    assert fit.pattern.is_nested
    np.testing.assert_allclose(
        reserves_of(X, fit), expected, rtol=RTOL, atol=RTOL * np.nansum(X)
    )
    # A row's factor is its ultimate claim.
    ultimate = np.nansum(X, axis=1) + expected
    np.testing.assert_allclose(fit.row_factor, ultimate, rtol=RTOL)


def test_some_of_the_triangles_have_negative_increments():
    has_negative = [
        bool((increments(load(name, column)[0]) < 0).any())
        for name, column in TRIANGLES
    ]
    assert any(has_negative)
    assert not all(has_negative)


@pytest.mark.parametrize("place", [(0, 5), (3, 4), (6, 1)])
def test_reserves_with_a_negative_increment(place):
    # Taylor & Ashe's triangle with a recovery booked in one cell.
    cumulative, _ = load("genins", "values")
    X = increments(cumulative)
    X[place] = -50_000.0
    claims = np.cumsum(X, axis=1)
    factors = [
        np.nansum(claims[: 9 - j, j + 1]) / np.nansum(claims[: 9 - j, j])
        for j in range(9)
    ]
    ahead = np.append(np.cumprod(factors[::-1])[::-1], 1.0)
    latest = np.array([claims[i, 9 - i] for i in range(10)])
    expected = latest * (ahead[::-1] - 1.0)
    with pytest.raises(a1gm.exceptions.NegativeValuesError, match="-50000"):
        a1gm.fit(X)
    fit = a1gm.fit(X, negatives="allow")
    np.testing.assert_allclose(
        reserves_of(X, fit), expected, rtol=RTOL, atol=RTOL * np.nansum(X)
    )
    assert np.isnan(fit.divergence)
    assert fit.converged


def test_the_hand_formula_is_chainladder_s():
    cumulative, expected = load("genins", "values")
    factors = [
        np.nansum(cumulative[: 9 - j, j + 1]) / np.nansum(cumulative[: 9 - j, j])
        for j in range(9)
    ]
    ahead = np.append(np.cumprod(factors[::-1])[::-1], 1.0)
    latest = np.array([cumulative[i, 9 - i] for i in range(10)])
    np.testing.assert_allclose(latest * (ahead[::-1] - 1.0), expected, rtol=RTOL)


def test_a_development_year_that_runs_backwards_is_refused():
    cumulative, _ = load("mcl", "incurred")
    with pytest.raises(a1gm.exceptions.DataError, match="the sum of column 3 is -2"):
        a1gm.fit(increments(cumulative), negatives="allow")
