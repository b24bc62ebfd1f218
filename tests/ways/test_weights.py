"""Tables with weights or exposures, by every way in that takes them."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from support.commands import run

import a1gm
from a1gm import RankOneImputer, RankOneNMF
from a1gm._rows import long
from a1gm.exceptions import (
    EmptyLineWarning,
    LabelError,
    ParameterError,
    UndeterminedWarning,
    WeightsError,
)
from ways.containers import names_of, polars_frame, sparse_table
from ways.oracle import Oracle
from ways.tables import TABLES, WEIGHTED, new_rows, weights_of
from ways.ways import KEYS, VALUE, loaded, long_frame

RTOL = 1e-9
pytestmark = pytest.mark.filterwarnings("ignore::a1gm.exceptions.A1gmWarning")


def pandas_frames(X, V):
    return (pd.DataFrame(T, columns=names_of(X)) for T in (X, V))


#: What is fitted, and how the fit comes here.
CONTAINERS = {
    "array": lambda X, V: (X, V),
    "by columns": lambda X, V: (np.asfortranarray(X), np.asfortranarray(V)),
    "masked array": lambda X, V: (np.ma.masked_invalid(X), V),
    "pandas": pandas_frames,
    "polars": lambda X, V: (polars_frame(X), V),
    "sparse": lambda X, V: (
        sparse_table(X),
        sparse_table(np.where(np.isnan(X), np.nan, V)),
    ),
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


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("fallback", [None, "column"])
def test_weights_of_rows_in_the_imputer(form, fallback):
    X = TABLES["random holes"]
    s = np.random.default_rng(6).integers(0, 4, len(X)).astype(float)
    repeated = np.repeat(X, s.astype(int), axis=0)
    right = RankOneImputer(fallback=fallback).fit(repeated)
    new = np.vstack([X, np.full(X.shape[1], np.nan)])
    model = RankOneImputer(fallback=fallback).fit(form(X), sample_weight=s)
    close(model.col_factor_, right.col_factor_)
    close(model.transform(new), right.transform(new))


# ----------------------------------------------------------- many tables
def by_key(tables):
    return dict(zip("ab", tables, strict=True))


@words
@pytest.mark.parametrize("kind", ["stack", "list", "dict"])
def test_many_tables_have_weights(word, kind):
    X, V = TABLES["random holes"], weights_of("random holes")
    X, V = np.stack([X, X + 1.0]), np.stack([V, V + 1.0])
    given = {"stack": np.asarray, "list": list, "dict": by_key}
    many = a1gm.fit_many(given[kind](X), **{word: given[kind](V)})
    for k, key in enumerate(many):
        close(many[key].col_factor, a1gm.fit(X[k], **{word: V[k]}).col_factor)
    with pytest.raises(WeightsError, match="has 1 table, but there are 2"):
        a1gm.fit_many(X, **{word: V[:1]})
    with pytest.raises(ParameterError, match="must be one table for each of the 2"):
        a1gm.fit_many(X, **{word: 2.0})
    with pytest.raises(ParameterError, match="cannot be combined"):
        a1gm.fit_many(X, **{word: V}, negatives="allow")
    many = a1gm.fit_many(by_key(X), **{word: {"a": V[0]}})
    assert f"{word} has no table 'b'" in str(many.failed["b"])


# ----------------------------------------------------------- files
def write(T, path, names=None):
    frame = pd.DataFrame(T, columns=names or names_of(T))
    frame.insert(0, "id", [f"r{i}" for i in range(len(T))])
    writer = frame.to_parquet if path.suffix == ".parquet" else frame.to_csv
    writer(path, index=False)
    return path


def filled(path):
    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    return frame.drop(columns="id").to_numpy(float)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@tables
@words
def test_files_have_weights(suffix, word, table, tmp_path):
    X, V = TABLES[table], weights_of(table)
    x, v = (write(T, tmp_path / f"{k}{suffix}") for k, T in (("x", X), ("v", V)))
    out = tmp_path / f"filled{suffix}"
    right = a1gm.fit(X, **{word: V})
    for given in (v, [v], V, pd.DataFrame(V, columns=names_of(X))):
        fit = a1gm.fit_file(x, **{word: given})
        close(fit.col_factor, right.col_factor)
        close(fit.row_factor[:], right.row_factor)
        close(fit.reconstruct(), right.reconstruct())
    a1gm.impute_file(x, out, batch_rows=4, **{word: v})
    close(filled(out), right.impute(X))
    new = write(X[::-1], tmp_path / f"new{suffix}")
    W = write(V[::-1], tmp_path / f"w{suffix}")
    with pytest.raises(ParameterError, match=f"theirs with {word}="):
        a1gm.impute_file(new, out, fit=fit, overwrite=True)
    a1gm.impute_file(new, out, fit=fit, overwrite=True, **{word: W})
    close(filled(out), right.impute(X)[::-1])


@words
def test_a_file_of_one_number_per_row_or_column(word, tmp_path):
    X, E = counts()
    x = write(X, tmp_path / "x.csv")
    for side, V in (("rows", E[:, :1]), ("columns", E[:1])):
        names = ["hours"] if side == "rows" else None
        v = write(V, tmp_path / f"{side}.csv", names)
        fit = a1gm.fit_file(x, id="id", **{word: v})
        close(fit.col_factor, a1gm.fit(X, **{word: V}).col_factor)
    with pytest.raises(WeightsError, match=r"has shape \(3, "):
        a1gm.fit_file(x, **{word: write(E[:3], tmp_path / "few.csv")})
    other = pd.read_csv(write(E, tmp_path / "e.csv"))[::-1]
    other.to_csv(tmp_path / "e.csv", index=False)
    with pytest.raises(LabelError, match="rows of"):
        a1gm.fit_file(x, **{word: tmp_path / "e.csv"})


@words
def test_the_commands_take_weights(word, tmp_path):
    X, V = counts()
    X[3, 2] = X[5, 1] = np.nan
    x, v = write(X, tmp_path / "x.csv"), write(V, tmp_path / "v.csv")
    right = a1gm.fit(X, **{word: V})
    run("fit", x, f"--{word}", v, "-o", tmp_path / "results")
    found = pd.read_csv(tmp_path / "results" / "col_factor.csv")
    close(found["col_factor"].to_numpy(), right.col_factor)
    out = tmp_path / "filled.csv"
    bounds = ["--interval", "0.9"]
    run("impute", x, f"--{word}", v, "-o", out, *bounds)
    close(pd.read_csv(out)[names_of(X)].to_numpy(float), right.impute(X))
    _, high = right.uncertainty().interval(X, 0.9)
    name = names_of(X)[2]
    close(pd.read_csv(out)[f"{name}_high"][3], high[3, 2])
    model = ["--model", tmp_path / "results" / "model.a1gm"]
    run("impute", x, f"--{word}", v, "-o", out, "--overwrite", *model)
    close(filled(out), right.impute(X))
    done = run("impute", x, f"--{word}", v, "-o", v, "--overwrite", code=2)
    assert "v.csv" in done.stderr
    expected = a1gm.assess(X, random_state=0, **{word: V})
    done = run("assess", x, f"--{word}", v, "--json")
    assert json.loads(done.stdout)["skill"] == pytest.approx(expected.skill)
    frame = long_frame(X).assign(size=V.ravel())
    frame.to_csv(tmp_path / "long.csv", index=False)
    keys = ["--long", ",".join([*KEYS, VALUE]), f"--{word}", "size"]
    run("impute", tmp_path / "long.csv", *keys, "-o", out, "--overwrite")
    frame["value"] = right.impute(X).ravel()
    close(pd.read_csv(out)[VALUE].to_numpy(), frame[VALUE].to_numpy())
    run("report", x, f"--{word}", v, "-o", tmp_path / "page.html")


# ----------------------------------------------------------- long tables and groups
def as_groups(frame, **options):
    both = pd.concat([frame.assign(group="a"), frame.assign(group="b")])
    many = a1gm.fit_groups(both, "group", KEYS, VALUE, **options)
    both = many.fill_long(only_missing=False)
    truth = many["b"].fill_long(only_missing=False)[VALUE]
    np.testing.assert_array_equal(both[both.group == "b"][VALUE], truth)
    return many["b"]


LONG = {"fit_long": lambda frame, **o: a1gm.fit_long(frame, KEYS, VALUE, **o)}
LONG["fit_groups"] = as_groups


@pytest.mark.parametrize("way", [*LONG, "sparse groups"])
@tables
@words
def test_long_tables_have_weights(way, word, table, monkeypatch):
    if way == "sparse groups":
        monkeypatch.setattr(long, "SMALL_TABLE", 0)
        monkeypatch.setattr(long, "SPARSE", 0)
    X, V = TABLES[table], weights_of(table)
    sizes = np.where(np.isnan(X) & (word == "weights"), np.nan, V)  # nothing to weigh
    frame = long_frame(X).assign(size=sizes.ravel())
    fit = LONG.get(way, as_groups)(frame, **{word: "size"})
    wide = a1gm.fit(X, **{word: V})
    close(fit.col_factor, wide.col_factor, RTOL)
    every = fit.fill_long(only_missing=False)[VALUE].to_numpy().reshape(X.shape)
    close(every, wide.impute(X), RTOL)
    i, j = np.indices(X.shape)
    close(fit.predict(i, j), wide.predict(i, j), RTOL)


@pytest.mark.parametrize("way", LONG)
@words
def test_weights_of_long_tables_that_cannot_be_used(way, word):
    frame = long_frame(TABLES["random holes"]).assign(size=2.0)
    two = {"weights": "size", "exposure": "size"}
    for other in ({"negatives": "allow"}, {"duplicates": "sum"}, two):
        with pytest.raises(ParameterError, match="cannot be combined"):
            LONG[way](frame, **{word: "size", **other})
    frame.loc[0, "size"] = -1.0
    if way == "fit_long":
        with pytest.raises(WeightsError, match=r"size\[.* = -1.0 is negative"):
            LONG[way](frame, **{word: "size"})
    else:
        many = a1gm.fit_groups(frame.assign(g="a"), "g", KEYS, VALUE, **{word: "size"})
        assert f"{word}[0, 0] = -1.0 is negative" in str(many.failed["a"])


def test_a_missing_pair_without_exposure_stays_missing():
    frame = pd.DataFrame({"row": [*"aabb"], "column": [*"xyxy"], "hours": 2.0})
    frame["value"] = [4.0, 6.0, 2.0, np.nan]
    assert LONG["fit_long"](frame, exposure="hours").fill_long()[
        VALUE
    ].item() == pytest.approx(3.0)
    fit = LONG["fit_long"](frame[:3], exposure="hours")
    assert np.isnan(fit.fill_long()[VALUE].item())
    assert fit.predict("b", "y", exposure=10.0) == pytest.approx(15.0)


# ------------------------------------------------------ one number per row or column
def shuffled(series):
    return series.sample(frac=1.0, random_state=3)


#: One number per row or per column, as a user may have it.
LINES = {
    "(n, 1)": lambda v, names: v[:, None] if names[0] == "r0" else v[None, :],
    "1-D": lambda v, names: v,
    "list": lambda v, names: v.tolist(),
    "polars": lambda v, names: pl.Series(v),
    "pyarrow": lambda v, names: pa.chunked_array([v]),
    "Series": lambda v, names: pd.Series(v, index=names),
    "nullable Series": lambda v, names: pd.Series(v, index=names, dtype="Float64"),
    "Series in another order": lambda v, names: shuffled(pd.Series(v, index=names)),
    "Series without labels": lambda v, names: pd.Series(v),
    "one column": lambda v, names: (
        pd.DataFrame({"years": v}, index=names)
        if names[0] == "r0"
        else pd.DataFrame([v], columns=names)
    ),
}


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("side", [0, 1])
@words
def test_one_number_per_row_or_column(word, side, line):
    X, _ = counts()
    frame = pd.DataFrame(X, [f"r{i}" for i in range(9)], names_of(X))
    names = [frame.index, frame.columns][side]
    v = np.linspace(0.5, 4.0, X.shape[side])
    full = np.broadcast_to(v[:, None] if side == 0 else v, X.shape)
    given = LINES[line](v, names)
    fit, right = a1gm.fit(frame, **{word: given}), a1gm.fit(X, **{word: full})
    close(fit.reconstruct(), right.reconstruct())
    new = frame + 1.0
    close(fit.impute(new, **{word: given}), right.impute(X + 1.0, **{word: full}))
    if not line.startswith(("Series", "nullable", "one")):
        sparse = a1gm.fit(sparse_table(X), absent="missing", **{word: given})
        close(sparse.col_factor, right.col_factor)
    close(fit.uncertainty().totals().se, right.uncertainty().totals().se)


@words
def test_labels_decide_where_lengths_do_not(word):
    X, _ = counts(6, 6)
    rows, cols = list("uvwxyz"), list("abcdef")
    v = np.linspace(0.5, 4.0, 6)
    frame = pd.DataFrame(X, rows, cols)
    for names, full in ((rows, v[:, None]), (cols, v[None])):
        fit = a1gm.fit(frame, **{word: pd.Series(v, index=names)})
        close(fit.reconstruct(), a1gm.fit(X, **{word: full}).reconstruct())
    for unclear in (v, pd.Series(v), v.tolist()):
        with pytest.raises(WeightsError, match="6 rows and 6 columns") as error:
            a1gm.fit(frame, **{word: unclear})
        for shape in ((-1, 1), (1, -1)):
            assert f"np.reshape({word}, {shape})" in str(error.value)
            a1gm.fit(frame, **{word: np.reshape(unclear, shape)})
    with pytest.raises(LabelError, match="neither those of the rows"):
        a1gm.fit(frame, **{word: pd.Series(v, index=list("uvwxyq"))})
    with pytest.raises(WeightsError, match="has 4 numbers, but X has 6 rows"):
        a1gm.fit(frame, **{word: v[:4]})


def test_a_sparse_table_with_one_number_per_row_is_not_spread_out():
    n = 200_000
    cells = np.arange(1.0, n + 1), (np.arange(n), np.arange(n) % 50_000)
    X = sp.csr_array(cells, shape=(n, 50_000))
    fit = a1gm.fit(X, exposure=np.full(n, 2.0), absent="missing")
    close(fit.row_factor * 2.0, a1gm.fit(X, absent="missing").row_factor)


# ------------------------------------------------------- exposures: counts over rates
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


def close(found, expected, rtol=1e-11, atol=0.0):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)


@pytest.mark.parametrize("shape", SHAPES)
def test_is_the_fit_of_rates_weighted_by_exposure(shape):
    X, E = counts(**shape)
    fit, rates = a1gm.fit(X, exposure=E), a1gm.fit(X / E, weights=E)
    for name in ("row_factor", "col_factor", "divergence", "deviance_explained"):
        close(getattr(fit, name), getattr(rates, name))
    close(fit.impute(X), rates.impute(X / E) * E)
    close(fit.reconstruct(), rates.reconstruct() * E)
    for kind in ("pearson", "deviance"):
        close(fit.residuals(X, kind), rates.residuals(X / E, kind), 1e-9, 1e-7)
    close(fit.residuals(X, "response"), X - fit.reconstruct(), 1e-9, 1e-8)


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
    close(fit.row_factor, same.row_factor)
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
        for given in ({}, {"weights": E[:3]}):
            with pytest.raises(ParameterError, match="Pass exposure="):
                use(X[:3], **given)
        with pytest.raises(ParameterError, match="without exposure"):
            getattr(a1gm.fit(X), use.__name__)(X, exposure=E)
    close(fit.reconstruct(exposure=2.0 * E), 2.0 * fit.reconstruct())


def test_columns_of_the_exposure_are_those_of_the_table():
    X, E = (pd.DataFrame(T, columns=list("abcdef")) for T in counts())
    assert list(a1gm.fit(X, exposure=E).reconstruct()) == list("abcdef")
    with pytest.raises(LabelError, match="columns of exposure"):
        a1gm.fit(X, exposure=E[list("fedcba")])


def test_a_sparse_table_keeps_the_exposure_of_stored_cells():
    X, E = counts()
    fit, stored = a1gm.fit(X, exposure=E), sp.csr_array(np.nan_to_num(X))
    other = a1gm.fit(stored, exposure=E, absent="missing")
    close(other.divergence, fit.divergence)
    close(other.reconstruct(exposure=E), fit.reconstruct())
    with pytest.raises(ParameterError, match="only that of stored cells"):
        other.reconstruct()
    with pytest.raises(ParameterError, match="absent"):
        a1gm.fit(stored, exposure=E, absent="zero")


def test_predicted_cells_are_in_units_of_the_counts():
    X, E = counts()
    E[2, 3], E[3, 2] = 0.0, np.nan
    X[2, 3] = X[3, 2] = np.nan
    fit, (i, j) = a1gm.fit(X, exposure=E), np.indices(X.shape)
    np.testing.assert_array_equal(fit.predict(i, j), fit.reconstruct())
    assert fit.predict(2, 3) == 0.0
    assert np.isnan(fit.predict(3, 2))
    rate = fit.row_factor[3] * fit.col_factor[2]
    close(fit.predict(3, 2, exposure=7.0), 7.0 * rate)
    close(fit.predict(3, [2, 2], exposure=[1.0, 2.0]), [rate, 2.0 * rate])
    stored = sp.csr_array(np.nan_to_num(X))
    sparse = a1gm.fit(stored, exposure=E, absent="missing")
    truth = np.where(np.nan_to_num(X) > 0.0, fit.predict(i, j), np.nan)
    close(sparse.predict(i, j), truth)
    other = pickle.loads(pickle.dumps(fit))
    close(other.predict(3, 2, exposure=7.0), 7.0 * rate)
    with pytest.raises(ParameterError, match="has kept no exposure"):
        other.predict(3, 2)
    with pytest.raises(ParameterError, match="made without exposure"):
        a1gm.fit(X).predict(3, 2, exposure=7.0)
    with pytest.raises(WeightsError, match="must be finite and >= 0"):
        fit.predict(3, 2, exposure=-1.0)


def test_an_unknown_exposure_of_a_cell_of_rate_zero_is_unknown():
    X = np.array([[4.0, 6.0, 2.0], [0.0, np.nan, 0.0], [2.0, 3.0, 1.0]])
    E = np.ones((3, 3))
    E[1, 1] = np.nan
    fit = a1gm.fit(X, exposure=E)
    assert fit.fate(1, 1) == "zero"
    u = fit.uncertainty("poisson")
    found = fit.impute(X)[1, 1], fit.reconstruct()[1, 1], fit.predict(1, 1)
    assert np.isnan([*found, u.standard_error(1, 1)]).all()
    assert np.isnan([bound[1, 1] for bound in u.interval(X)]).all()
    E[1, 1] = 0.0
    assert a1gm.fit(X, exposure=E).reconstruct()[1, 1] == 0.0


@pytest.mark.parametrize("form", [np.asarray, sparse_table])
def test_rows_of_unknown_exposure_are_placed_alone_as_among_others(form):
    X, E = counts()
    options = {"absent": "missing"} if form is sparse_table else {}
    fit = a1gm.fit(form(X), exposure=E, **options)
    X[4, 1], E[4] = np.nan, np.nan
    alone = form(X[4:5])
    assert np.isnan(fit.transform(form(X), exposure=E)[4])
    assert np.isnan(fit.transform(alone, exposure=E[4:5])).all()
    assert fit.divergence_of(alone, exposure=E[4:5]) == 0.0
    if form is np.asarray:
        filled = fit.impute(X, exposure=E)[4:5]
        np.testing.assert_array_equal(fit.impute(X[4:5], exposure=E[4:5]), filled)
        assert np.isnan(filled[0, 1])


def test_a_saved_fit_has_no_exposure(tmp_path):
    X, E = counts(30, 6, kinds=3)
    other = loaded(a1gm.fit(X, exposure=E), tmp_path)
    with pytest.raises(ParameterError, match="Pass exposure="):
        other.impute(X)
    with pytest.raises(ParameterError, match="has kept no exposure"):
        other.reconstruct()


@pytest.mark.parametrize(
    ("of_counts", "of_exposure"),
    [(1.0, 1e-130), (1.0, 1e130), (1e130, 1.0), (1e100, 1e-100)],
)
def test_any_size(of_counts, of_exposure):
    X, E = counts()
    fit = a1gm.fit(X, exposure=E)
    far = a1gm.fit(X * of_counts, exposure=E * of_exposure)
    close(far.reconstruct() / of_counts, fit.reconstruct())
    close(far.impute(X * of_counts) / of_counts, fit.impute(X))
    close(far.divergence / of_counts, fit.divergence)
    close(far.row_factor / of_counts * of_exposure, fit.row_factor)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda E: E - 3.0, r"{}\[0, \d\] = -\S+ is negative"),
        (lambda E: np.where(E > 3.0, np.inf, E), "infinite"),
        (lambda E: E[:2], r"{} has shape \(2, 6\).*shape \(9, 6\)"),
    ],
)
@words
def test_bad_weights(word, change, words):
    X, E = counts()
    fit, wrong = a1gm.fit(X, **{word: E}), {word: change(E)}
    for use in (a1gm.fit, fit.impute, fit.transform):
        with pytest.raises(WeightsError, match=words.format(word)):
            use(X + 1.0, **wrong)


def test_weights_of_nothing():
    X, E = counts()
    for nothing in (E * 0.0, E * np.nan):
        with pytest.raises(WeightsError, match="No exposure is above 0"):
            a1gm.fit(X, exposure=nothing)
    with pytest.raises(WeightsError, match="All weights are zero"):
        a1gm.fit(X, weights=E * 0.0)
    with pytest.raises(ValueError, match="weights"):
        a1gm.fit(X, weights=np.full(E.shape, "a"))
    fit = a1gm.fit(X, weights=E)
    for use in (a1gm.fit, fit.impute, fit.transform):
        with pytest.raises(WeightsError, match=r"weights\[0, 0\] = nan is NaN"):
            use(X + 1.0, weights=E * np.nan)


def test_weights_or_negative_cells_are_not_combined_with_exposure():
    X, E = counts()
    for other in ({"weights": E}, {"negatives": "allow"}):
        with pytest.raises(ParameterError, match="cannot be combined"):
            a1gm.fit(X, exposure=E, **other)
