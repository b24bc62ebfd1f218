"""Tables with weights or exposures, by every way in that takes them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import a1gm
from a1gm import RankOneNMF
from ways.containers import names_of, sparse_table
from ways.oracle import Oracle
from ways.tables import TABLES, WEIGHTED, new_rows, weights_of
from ways.ways import loaded

RTOL = 1e-9
pytestmark = pytest.mark.filterwarnings("ignore::a1gm.exceptions.A1gmWarning")


def pandas_frames(X, V):
    return (pd.DataFrame(T, columns=names_of(X)) for T in (X, V))


def polars_table(X, V):
    return pl.DataFrame(X, schema=names_of(X), nan_to_null=True), V


def sparse_tables(X, V):
    rows, cols = np.nonzero(~np.isnan(X))
    weights = sp.csr_array((V[rows, cols], (rows, cols)), shape=X.shape)
    return sparse_table(X), weights


#: What is fitted, and how the fit comes here.
CONTAINERS = {
    "array": lambda X, V: (X, V),
    "by columns": lambda X, V: (np.asfortranarray(X), np.asfortranarray(V)),
    "masked array": lambda X, V: (np.ma.masked_invalid(X), V),
    "pandas": pandas_frames,
    "polars": polars_table,
    "sparse": sparse_tables,
    "saved": lambda X, V: (X, V),
    "pickled": lambda X, V: (X, V),
    "copied": lambda X, V: (X, V),
}
TRAVELS = {
    "saved": loaded,
    "pickled": lambda fit, _: pickle.loads(pickle.dumps(fit)),
    "copied": lambda fit, _: copy.deepcopy(fit),
}
tables = pytest.mark.parametrize("table", WEIGHTED)
ways = pytest.mark.parametrize("way", CONTAINERS)
words = pytest.mark.parametrize("word", ["weights", "exposure"])


def made(way, word, X, V, folder):
    """A fit by a way, and the truth; an exposure is a weight of rates."""
    given, weights = CONTAINERS[way](X, V)
    absent = {"absent": "missing"} if way == "sparse" else {}
    fit = a1gm.fit(given, **{word: weights}, **absent)
    rates = X / np.where(V > 0.0, V, np.nan) if word == "exposure" else X
    return TRAVELS.get(way, lambda fit, _: fit)(fit, folder), Oracle(rates, V)


def given(way, X):
    named = way in ("pandas", "polars")
    return pd.DataFrame(X, columns=names_of(X)) if named else X


@tables
@ways
@words
def test_the_weighted_table(way, word, table, tmp_path):
    X, V = TABLES[table], weights_of(table)
    fit, right = made(way, word, X, V, tmp_path)
    unit = V if word == "exposure" else 1.0
    filled = np.asarray(fit.impute(given(way, X), **{word: V}))
    truth = np.where(np.isnan(X), right.fitted * unit, X)
    truth[(V == 0.0) & np.isnan(X) & (word == "exposure")] = 0.0
    np.testing.assert_allclose(filled, truth, rtol=RTOL, atol=0.0)
    product = np.where(right.fates == "finite", np.outer(right.w, right.h), np.nan)
    ours = np.where(
        right.fates == "finite", np.outer(fit.row_factor, fit.col_factor), np.nan
    )
    np.testing.assert_allclose(ours, product, rtol=RTOL, atol=0.0)
    found = fit.fate(np.arange(len(X))[:, None], np.arange(X.shape[1])).astype(object)
    np.testing.assert_array_equal(found, right.fates)
    measured = right.certificate(fit.row_factor, fit.col_factor)
    assert abs(fit.certificate - measured) <= 1e-14
    assert fit.converged


@tables
@ways
@words
def test_new_rows_bring_their_weights(way, word, table, tmp_path):
    X, V = TABLES[table], weights_of(table)
    fit, right = made(way, word, X, V, tmp_path)
    rows = np.vstack(list(new_rows(X, right).values()))
    weights = np.random.default_rng(3).gamma(2.0, size=rows.shape) + 0.1
    unit = weights if word == "exposure" else 1.0
    filled = np.asarray(fit.impute(given(way, rows), **{word: weights})) / unit
    settled = right.settled(rows)
    truth = right.fill(rows / unit, weights)
    np.testing.assert_allclose(
        np.where(settled, filled, truth), truth, rtol=RTOL, atol=0.0
    )
    factors = fit.transform(given(way, rows), **{word: weights})
    # The scale between row and column factors is free; the fit's own is taken.
    scale = np.nansum(right.h) / np.nansum(fit.col_factor)
    truth = right.transform(rows / unit, weights)
    if len(right.blocks) == 1:
        np.testing.assert_allclose(factors, truth * scale, rtol=RTOL, atol=0.0)
    np.testing.assert_array_equal(np.isnan(factors), np.isnan(truth))


@tables
def test_the_fitted_table_needs_no_weights_again(table):
    X, V = TABLES[table], weights_of(table)
    fit = a1gm.fit(X, weights=V)
    np.testing.assert_allclose(fit.impute(X), fit.impute(X, weights=V), rtol=1e-12)


@tables
def test_weights_of_ones_change_nothing(table):
    X = TABLES[table]
    weighted, plain = a1gm.fit(X, weights=np.ones(X.shape)), a1gm.fit(X)
    np.testing.assert_allclose(weighted.impute(X), plain.impute(X), rtol=RTOL)
    np.testing.assert_allclose(weighted.col_factor, plain.col_factor, rtol=RTOL)


@pytest.mark.parametrize("table", ["random holes", "hollow", "zeros"])
def test_weights_of_rows_in_the_estimator(table):
    X = TABLES[table]
    s = np.random.default_rng(5).gamma(2.0, size=len(X)) + 0.2
    right = Oracle(X, np.broadcast_to(s[:, None], X.shape))
    model = RankOneNMF().fit(X, sample_weight=s)
    h = model.components_[0]
    np.testing.assert_allclose(h / h.sum(), right.h / right.h.sum(), rtol=RTOL)


def test_wrong_weights_of_new_rows_are_refused():
    X, V = TABLES["random holes"], weights_of("random holes")
    fit = a1gm.fit(X, weights=V)
    for wrong in (V[:2], -V, np.full(V.shape, np.nan)):
        with pytest.raises(a1gm.exceptions.WeightsError):
            fit.impute(X + 1.0, weights=wrong)
        with pytest.raises(a1gm.exceptions.WeightsError):
            fit.transform(X + 1.0, weights=wrong)
