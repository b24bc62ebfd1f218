"""Tables with weights, by every way in that takes them."""

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


def plain(X, V, folder):
    return a1gm.fit(X, weights=V)


def fortran(X, V, folder):
    return a1gm.fit(np.asfortranarray(X), weights=np.asfortranarray(V))


def pandas_frames(X, V, folder):
    columns = names_of(X)
    return a1gm.fit(
        pd.DataFrame(X, columns=columns), weights=pd.DataFrame(V, columns=columns)
    )


def polars_table(X, V, folder):
    return a1gm.fit(pl.DataFrame(X, schema=names_of(X), nan_to_null=True), weights=V)


def sparse_tables(X, V, folder):
    rows, cols = np.nonzero(~np.isnan(X))
    weights = sp.csr_array((V[rows, cols], (rows, cols)), shape=X.shape)
    return a1gm.fit(sparse_table(X), weights=weights, absent="missing")


def saved(X, V, folder):
    return loaded(a1gm.fit(X, weights=V), folder)


def pickled(X, V, folder):
    return pickle.loads(pickle.dumps(a1gm.fit(X, weights=V)))


def copied(X, V, folder):
    return copy.deepcopy(a1gm.fit(X, weights=V))


MAKERS = (
    *(plain, fortran, pandas_frames, polars_table),
    *(sparse_tables, saved, pickled, copied),
)
HAVE_NAMES = (pandas_frames, polars_table)
tables = pytest.mark.parametrize("table", WEIGHTED)
makers = pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)


def given(make, X):
    return pd.DataFrame(X, columns=names_of(X)) if make in HAVE_NAMES else X


@tables
@makers
def test_the_weighted_table(make, table, tmp_path):
    X, V = TABLES[table], weights_of(table)
    right, fit = Oracle(X, V), make(X, V, tmp_path)
    filled = np.asarray(fit.impute(given(make, X), weights=V))
    np.testing.assert_allclose(filled, right.filled, rtol=RTOL, atol=0.0)
    product = np.where(right.fates == "finite", np.outer(right.w, right.h), np.nan)
    ours = np.where(
        right.fates == "finite", np.outer(fit.row_factor, fit.col_factor), np.nan
    )
    np.testing.assert_allclose(ours, product, rtol=RTOL, atol=0.0)
    n, m = X.shape
    found = fit.fate(np.arange(n)[:, None], np.arange(m)).astype(object)
    np.testing.assert_array_equal(found, right.fates)
    measured = right.certificate(fit.row_factor, fit.col_factor)
    assert abs(fit.certificate - measured) <= 1e-14
    assert fit.converged


@tables
@makers
def test_new_rows_bring_their_weights(make, table, tmp_path):
    X, V = TABLES[table], weights_of(table)
    right, fit = Oracle(X, V), make(X, V, tmp_path)
    rows = np.vstack(list(new_rows(X, right).values()))
    weights = np.random.default_rng(3).gamma(2.0, size=rows.shape) + 0.1
    filled = np.asarray(fit.impute(given(make, rows), weights=weights))
    settled = right.settled(rows)
    truth = right.fill(rows, weights)
    np.testing.assert_allclose(
        np.where(settled, filled, truth), truth, rtol=RTOL, atol=0.0
    )
    factors = fit.transform(given(make, rows), weights=weights)
    # The scale between row and column factors is free; the fit's own is taken.
    scale = np.nansum(right.h) / np.nansum(fit.col_factor)
    truth = right.transform(rows, weights)
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
