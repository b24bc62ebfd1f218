"""Errors of tables with more columns than the inverse of a matrix may have."""

from __future__ import annotations

import numpy as np
import pytest

import a1gm
from a1gm._fit.sure import information
from a1gm.exceptions import TableTooLargeError

nan = np.nan


def counts(n, m, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.poisson(np.outer(rng.uniform(2, 9, n), rng.uniform(1, 5, m))).astype(float)
    X[rng.random((n, m)) < 0.2] = nan
    return X


def blocks():
    X = np.full((9, 14), nan)
    X[:4, :6], X[4:, 6:] = counts(4, 6), counts(5, 8, 1)
    X[0, 0], X[2] = 5.0, np.where(np.isnan(X[2]), nan, 0.0)
    return X


def answers(fit, X, **weights):
    """All numbers of an uncertainty, by name; factors, bounds and draws of rows too."""
    out = {}
    for robust in (False, True):
        u = fit.uncertainty(robust=robust)
        n, m = X.shape
        out[f"cells {robust}"] = u.standard_error(
            np.arange(n)[:, None], np.arange(m), prediction=True
        )
        for by in ("row", "column", "all"):
            for cells in ("missing", "fitted"):
                totals = u.totals(by, cells)
                out[f"{by} {cells} {robust}"] = totals.value, totals.se
        for by in ("row", "column"):
            index = u.index(None, by=by)
            out[f"index {by} {robust}"] = index.value, index.se
        rows, columns = u.factor_errors()
        out[f"rows {robust}"], out[f"columns {robust}"] = rows[:], columns
        out[f"bounds {robust}"] = u.interval(X, **weights)
    out["chi2"] = u.pearson_chi2, u.dispersion
    out["draws"] = u.simulate(2, "column", random_state=0)
    return out


KINDS = {
    "plain": lambda: (counts(8, 12), {}),
    "twins": lambda: (np.vstack([counts(4, 12)] * 3), {}),
    "blocks": lambda: (blocks(), {}),
    "weights": lambda: (
        counts(8, 12),
        {"weights": np.random.default_rng(1).uniform(1.0, 3.0, (8, 12))},
    ),
    "exposure": lambda: (
        counts(8, 12),
        {"exposure": np.random.default_rng(1).uniform(1.0, 3.0, (8, 12))},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_errors_from_the_side_of_the_rows_are_the_same(kind, monkeypatch):
    X, weights = KINDS[kind]()
    fitted = a1gm.fit(X, on_undetermined="ignore", **weights)
    expected = answers(fitted, X, **weights)
    monkeypatch.setattr(information, "MOST_COLUMNS", 9)
    found = answers(a1gm.fit(X, on_undetermined="ignore", **weights), X, **weights)
    for name, numbers in expected.items():
        np.testing.assert_allclose(found[name], numbers, 1e-9, 1e-12, err_msg=name)


def test_a_wide_table_has_the_errors_of_its_transpose():
    X = counts(30, 6_500)
    u, t = a1gm.fit(X).uncertainty(), a1gm.fit(X.T.copy()).uncertainty()
    i, j = np.arange(30)[:, None], np.arange(0, 6_500, 500)
    pairs = {
        "cells": (u.standard_error(i, j), t.standard_error(j[:, None], i.T).T),
        "bounds": (u.interval(X), [bound.T for bound in t.interval(X.T.copy())]),
        "dispersion": (u.dispersion, t.dispersion),
    }
    for by, other in (("row", "column"), ("column", "row"), ("all", "all")):
        pairs[by] = u.totals(by).se, t.totals(other).se
        if by != "all":
            pairs[f"index {by}"] = u.index(by=by).se, t.index(by=other).se
    for name, (found, expected) in pairs.items():
        np.testing.assert_allclose(found, expected, 1e-7, err_msg=name)
    robust = a1gm.fit(X).uncertainty(robust=True)  # the rows are the clusters
    assert robust._errors_dof == 29
    assert np.isfinite(robust.index().se).all()
    assert 0.0 <= a1gm.assess(X[:, :6_100], repeats=1, random_state=0).coverage <= 1.0


def test_what_is_too_large_on_both_sides_is_refused_once(monkeypatch):
    monkeypatch.setattr(information, "MOST_COLUMNS", 7)
    words = "12 columns whose rows have 8 patterns .* Leave out rows or columns"
    with pytest.raises(TableTooLargeError, match=words):
        a1gm.fit(counts(8, 12, 1)).uncertainty()
    monkeypatch.setattr("a1gm._fit.sure.uncertainty.MOST_COLUMNS", 7)
    u = a1gm.fit(counts(7, 12)).uncertainty()
    with pytest.raises(TableTooLargeError, match="12 x 12 numbers"):
        _ = u.covariance
