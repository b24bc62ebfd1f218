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


KINDS = {
    "plain": lambda: (counts(8, 12), {}),
    "twins": lambda: (np.vstack([counts(4, 12)] * 3), {}),
    "blocks": lambda: (blocks(), {}),
    "weights": lambda: (
        counts(8, 12),
        {"weights": np.random.default_rng(1).uniform(1.0, 3.0, (8, 12))},
    ),
    "twins of weights": lambda: (
        np.vstack([counts(4, 12), counts(4, 12) + 1.0]),
        {
            "weights": np.outer(
                [1.0, 2.5], np.random.default_rng(1).uniform(1, 3, 48)
            ).reshape(8, 12)
        },
    ),
    "exposure": lambda: (
        counts(8, 12),
        {"exposure": np.random.default_rng(1).uniform(1.0, 3.0, (8, 12))},
    ),
}


def sandwich(X, F, V, phi):
    """Covariances of the columns, dense: by the model, and by the scatter of rows."""
    r = F.sum(axis=1)
    S = np.diag(F.sum(axis=0)) - F.T @ np.diag(1.0 / r) @ F
    inverse = np.linalg.pinv(S, hermitian=True)
    off = np.nan_to_num(V * X - F) @ inverse
    n, n_cells = len(X), np.count_nonzero(F)
    few = n / (n - 1) * (n_cells - 1) / (n_cells - np.count_nonzero(F.any(axis=0)))
    return phi * inverse, few * off.T @ off


@pytest.mark.parametrize("kind", KINDS)
def test_errors_of_few_rows_are_those_of_dense_algebra(kind):
    X, weighting = KINDS[kind]()
    fit = a1gm.fit(X, on_undetermined="ignore", **weighting)
    V, E = (weighting.get(k, np.ones_like(X)) for k in ("weights", "exposure"))
    inside = fit.row_block[:, None] == fit.col_block
    rates = np.where(inside, np.outer(fit.row_factor, fit.col_factor), 0.0)
    F = np.where(np.isnan(X), 0.0, V * E * rates)
    missing = np.where(np.isnan(X), E * rates, 0.0)
    rows, cols = F.any(axis=1), F.any(axis=0)
    missing = missing[np.ix_(rows, cols)]
    X, F, V = (table[np.ix_(rows, cols)] for table in (X, F, V))
    label, base = fit.col_block[cols], np.flatnonzero(cols)[0]
    value = np.where(label == label[0], fit.col_factor[cols], nan)
    value = value / fit.col_factor[base]
    phi, r = fit.uncertainty().dispersion, F.sum(axis=1)[:, None]
    for robust, C in enumerate(sandwich(X, F, V, phi)):
        u = fit.uncertainty(robust=bool(robust))
        variance = C.diagonal() - 2.0 * C[0] + C[0, 0]
        found = u.index(base).se[cols]
        np.testing.assert_allclose(found, value * np.sqrt(abs(variance)), 1e-7, 1e-9)
        total = np.diag(missing.sum(axis=0)) - missing.T @ (F / r)
        variance = np.sum(phi * missing**2 / r, axis=0) + np.sum(total @ C * total, 1)
        found = np.nan_to_num(u.totals("column").se_estimation[cols])
        np.testing.assert_allclose(found, np.sqrt(variance), 1e-9, 1e-9)
        G = u.covariance[np.ix_(cols, cols)]
        contrasts = G.diagonal()[:, None] + G.diagonal() - 2.0 * G
        expected = C.diagonal()[:, None] + C.diagonal() - 2.0 * C
        same = label[:, None] == label
        np.testing.assert_allclose(contrasts[same], expected[same], 1e-9, 1e-12)
        fixed = [(G[k == label][:, k == label] == 0.0).all(axis=1) for k in set(label)]
        assert [int(lines.sum()) for lines in fixed] == [1] * len(fixed)


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
