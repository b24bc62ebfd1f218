"""Run-off triangles: the fit of a staircase is the actuaries' chain-ladder."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest

import a1gm

RTOL = 1e-9  # the same rational formula, in another order of operations

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # chainladder and its pandas have their own
    chainladder = pytest.importorskip("chainladder")

pytestmark = pytest.mark.oracle

# Where they were published first: raa Mack (1993), genins Taylor & Ashe (1983), abc and
# ukmotor Christofides (1990), mw2008 and mw2014 Merz & Wuthrich, mortgage Kloek (1998),
# mcl Quarg & Mack (2004).
PUBLISHED = ["raa", "abc", "genins", "ukmotor", "mw2008", "mw2014", "mortgage", "mcl"]
SAMPLES = [*PUBLISHED, "tail_sample", "auto", "berqsherm", "clrd", "liab", "usauto"]


def triangles(
    name: str, *, zeros: bool = False
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Increments of a sample with rows known from the first age, and its reserves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sample = chainladder.load_sample(name).set_backend("numpy")
        if not sample.is_cumulative:
            sample = sample.incr_to_cum()
        reserves = chainladder.Chainladder().fit(sample).ibnr_
        reserves = reserves.set_backend("numpy").values
    future = np.isnan(sample.nan_triangle)
    for a, b in np.ndindex(sample.shape[:2]):
        cumulative = np.array(sample.values[a, b], float)
        # chainladder takes a zero for a missing cell.
        if (np.nan_to_num(cumulative)[~future] == 0.0).any() and not zeros:
            continue
        cumulative = np.where(future, np.nan, np.nan_to_num(cumulative))
        X = np.diff(cumulative, axis=1, prepend=0.0)
        yield X, np.nan_to_num(reserves[a, b, :, 0])


def reserves_of(X: np.ndarray, fit: a1gm.RankOneFit) -> np.ndarray:
    return np.where(np.isnan(X), fit.impute(X), 0.0).sum(axis=1)


def by_hand(X: np.ndarray) -> np.ndarray:
    """Reserves of a triangle of ten years by the textbook's development factors."""
    claims = np.cumsum(X, axis=1)
    factors = [
        np.nansum(claims[: 9 - j, j + 1]) / np.nansum(claims[: 9 - j, j])
        for j in range(9)
    ]
    ahead = np.append(np.cumprod(factors[::-1])[::-1], 1.0)
    latest = np.array([claims[i, 9 - i] for i in range(10)])
    return latest * (ahead[::-1] - 1.0)


@pytest.mark.parametrize("name", SAMPLES)
def test_reserves_are_those_of_chain_ladder(name):
    n_triangles = 0
    for X, expected in triangles(name):
        fit = a1gm.fit(X, negatives="allow", on_undetermined="ignore")
        size = np.nanmax(np.abs(np.cumsum(X, axis=1)))
        assert np.abs(reserves_of(X, fit) - expected).max() <= RTOL * size
        n_triangles += 1
        if name in PUBLISHED:
            assert fit.solver == "closed form"
            assert fit.pattern.is_nested
            # A row's factor is its ultimate claim.
            ultimate = np.nansum(X, axis=1) + expected
            np.testing.assert_allclose(fit.row_factor, ultimate, rtol=RTOL)
    assert n_triangles > (900 if name == "clrd" else 0)


def develop(X: np.ndarray) -> np.ndarray | None:
    """Ultimate claims by the textbook; None where a sum of claims is 0."""
    claims = np.cumsum(X, axis=1)
    later = ~np.isnan(claims[:, 1:])
    after = np.where(later, claims[:, 1:], 0.0).sum(axis=0)
    before = np.where(later, claims[:, :-1], 0.0).sum(axis=0)
    if not (after.all() and before.all()):
        return None
    ahead = np.append(np.cumprod((after / before)[::-1])[::-1], 1.0)
    last = (~np.isnan(X)).sum(axis=1) - 1
    return claims[np.arange(len(X)), last] * ahead[last]


@pytest.mark.parametrize("change", ["none", "a negative row", "a negative column"])
def test_whatever_chain_ladder_answers_is_answered(change):
    """Sums of columns and rows of any sign, zeros among them."""
    n_answered = 0
    for X, _ in islice(triangles("clrd", zeros=True), 400):
        if change == "a negative row":
            X[1] -= 2.0 * np.abs(X[1])
        if change == "a negative column":
            X[:, 2] = -X[:, 2]
        expected = develop(X) if not np.isnan(X).all(axis=1).any() else None
        if expected is None or not (X < 0.0).any():
            continue
        fit = a1gm.fit(X, negatives="allow", on_undetermined="ignore")
        size = np.abs(expected).max() + np.nansum(np.abs(X))
        found = np.nansum(X, axis=1) + reserves_of(X, fit)
        np.testing.assert_allclose(found, expected, atol=1e-7 * size)
        n_answered += 1
    assert n_answered > 30


def test_some_of_the_triangles_have_negative_increments():
    negative = [(X < 0).any() for name in PUBLISHED for X, _ in triangles(name)]
    assert any(negative)
    assert not all(negative)


@pytest.mark.parametrize("place", [(0, 5), (3, 4), (6, 1)])
def test_reserves_with_a_negative_increment(place):
    # Taylor & Ashe's triangle with a recovery booked in one cell.
    [(X, published)] = triangles("genins")
    np.testing.assert_allclose(by_hand(X), published, rtol=RTOL)
    X[place] = -50_000.0
    with pytest.raises(a1gm.exceptions.NegativeValuesError, match="-50000"):
        a1gm.fit(X)
    fit = a1gm.fit(X, negatives="allow")
    np.testing.assert_allclose(
        reserves_of(X, fit), by_hand(X), rtol=RTOL, atol=RTOL * np.nansum(X)
    )
    assert np.isnan(fit.divergence)
    assert fit.converged
