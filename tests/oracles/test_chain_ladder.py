"""Run-off triangles: the fit of a staircase is the actuaries' chain-ladder."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

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


SAMPLES = [*dict(TRIANGLES), "auto", "berqsherm", "clrd", "liab", "usauto", "xyz"]


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


def by_hand(claims: np.ndarray) -> np.ndarray:
    """Reserves of a triangle of ten years by the textbook's development factors."""
    factors = [
        np.nansum(claims[: 9 - j, j + 1]) / np.nansum(claims[: 9 - j, j])
        for j in range(9)
    ]
    ahead = np.append(np.cumprod(factors[::-1])[::-1], 1.0)
    latest = np.array([claims[i, 9 - i] for i in range(10)])
    return latest * (ahead[::-1] - 1.0)


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
    expected = by_hand(np.cumsum(X, axis=1))
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
    np.testing.assert_allclose(by_hand(cumulative), expected, rtol=RTOL)


def every_triangle() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """All samples whose rows are known from the first age, with their reserves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in SAMPLES:
            sample = chainladder.load_sample(name).set_backend("numpy")
            if not sample.is_cumulative:
                sample = sample.incr_to_cum()
            reserves = chainladder.Chainladder().fit(sample).ibnr_
            reserves = reserves.set_backend("numpy").values
            future = np.isnan(sample.nan_triangle)
            if future.shape != sample.shape[2:]:
                continue
            for a, b in np.ndindex(sample.shape[:2]):
                cumulative = np.array(sample.values[a, b], float)
                # chainladder takes a zero for a missing cell.
                if (np.nan_to_num(cumulative)[~future] == 0.0).any():
                    continue
                cumulative[future] = np.nan
                yield name, cumulative, np.nan_to_num(reserves[a, b, :, 0])


def test_every_triangle_that_chain_ladder_projects():
    n_triangles = 0
    for name, cumulative, reserves in every_triangle():
        X = increments(cumulative)
        fit = a1gm.fit(X, negatives="allow", on_undetermined="ignore")
        size = np.nanmax(np.abs(cumulative))
        off = np.abs(reserves_of(X, fit) - reserves).max()
        assert off <= RTOL * size, name
        n_triangles += 1
    assert n_triangles > 900
