"""One table of three keys by every way in: the same factors, fills and fates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from support.commands import run
from support.tensor_oracle import design, independent

import a1gm

sm = pytest.importorskip("statsmodels.api")

NAMES = ["site", "year", "month"]
PAIRS: dict[str, list[tuple[str, ...]]] = {
    "one factor each": [],
    "a pair": [("site", "month")],
    "two pairs": [("site", "month"), ("year", "month")],
    "all pairs": [("site", "month"), ("year", "month"), ("site", "year")],
}
OPTIONS = ("plain", "weights", "exposure")


def table() -> tuple[np.ndarray, np.ndarray]:
    """Counts with holes that every set of pairs fills, and weights of all cells."""
    rng = np.random.default_rng(0)
    T = rng.poisson(20.0, (4, 5, 6)) + 1.0
    T[0, 1, 2] = T[3, 4, 5] = T[2, 0, 0] = T[1, 1, 3] = np.nan
    return T, rng.integers(1, 5, T.shape).astype(float)


T, V = table()
HOLES = tuple(np.argwhere(np.isnan(T)).T)


def frame() -> pd.DataFrame:
    """Every cell in a row, missing ones without a value; years are numbers."""
    i, j, k = (at.ravel() for at in np.indices(T.shape))
    columns = {
        "site": np.array([f"s{a}" for a in "dbac"], object)[i],
        "year": 2001 + j,
        "month": np.array(["jan", "feb", "mar", "apr", "may", "jun"], object)[k],
        "n": T.ravel(),
        "v": V.ravel(),
    }
    return pd.DataFrame(columns)


def as_array(given, interactions, options):
    fit = a1gm.fit_tensor(given, interactions, names=NAMES, **options)
    return fit.factors, fit.reconstruct()[HOLES]


def dense(interactions, option, tmp_path):
    return as_array(T, interactions, {} if option == "plain" else {option: V})


def masked(interactions, option, tmp_path):
    given = np.ma.masked_invalid(T)
    return as_array(given, interactions, {} if option == "plain" else {option: V})


def mapped(interactions, option, tmp_path):
    np.save(tmp_path / "T.npy", T)
    given = np.load(tmp_path / "T.npy", mmap_mode="r")
    return as_array(given, interactions, {} if option == "plain" else {option: V})


def turned(interactions, option, tmp_path):
    """The modes in another order."""
    options = {} if option == "plain" else {option: V.transpose(2, 0, 1)}
    names = ["month", "site", "year"]
    fit = a1gm.fit_tensor(T.transpose(2, 0, 1), interactions, names=names, **options)
    return None, fit.reconstruct().transpose(1, 2, 0)[HOLES]


def listed(option):
    """Positions of the cells that have a value, or all that have a weight."""
    seen = np.nonzero(~np.isnan(T) | (option != "plain"))
    order = np.random.default_rng(1).permutation(len(seen[0]))
    return tuple(k[order] for k in seen)


def coordinates(interactions, option, tmp_path):
    index = listed(option)
    options = {} if option == "plain" else {option: V[index]}
    return as_array((index, T[index], T.shape), interactions, options)


def coo(interactions, option, tmp_path):
    sparse = pytest.importorskip("sparse")
    index = listed(option)
    given = sparse.COO(np.stack(index), T[index], T.shape, fill_value=np.nan)
    index = tuple(given.coords)  # in its own order
    options = {} if option == "plain" else {option: V[index]}
    return as_array(given, interactions, options)


def long(make):
    def ask(interactions, option, tmp_path):
        options = {} if option == "plain" else {option: "v"}
        given = make(frame())
        fit = a1gm.fit_long(given, NAMES, "n", interactions=interactions, **options)
        filled = fit.fill_long()
        assert type(filled) is type(given)
        np.testing.assert_array_equal(np.asarray(fit.predict(filled)), filled["n"])
        return fit.factors, np.asarray(filled["n"])

    return ask


def saved(interactions, option, tmp_path):
    options = {} if option == "plain" else {option: V}
    fit = a1gm.fit_tensor(T, interactions, names=NAMES, **options)
    fit.save(tmp_path / "m")
    fit = a1gm.load(tmp_path / "m")
    exposure = V[HOLES] if option == "exposure" else None
    return fit.factors, fit.predict(HOLES, exposure=exposure)


def command(suffix):
    def ask(interactions, option, tmp_path):
        path, out = tmp_path / f"t{suffix}", tmp_path / "filled.csv"
        if suffix == ".csv":
            frame().to_csv(path, index=False)
        else:
            frame().to_parquet(path, index=False)
        options = ["--long", "site,year,month,n"]
        options += [] if option == "plain" else [f"--{option}", "v"]
        for pair in interactions:
            options += ["--interactions", ":".join(pair)]
        run("impute", path, "-o", out, *options)
        run("fit", path, "-o", tmp_path / "fit", *options)
        factors = a1gm.load(tmp_path / "fit" / "model.a1gm").factors
        return factors, pd.read_csv(out)["n"].to_numpy().reshape(T.shape)[HOLES]

    return ask


WAYS = {
    "array": dense,
    "masked array": masked,
    "memory map": mapped,
    "modes turned": turned,
    "coordinates": coordinates,
    "sparse.COO": coo,
    "pandas": long(lambda given: given),
    "polars": long(pl.from_pandas),
    "pyarrow": long(pa.Table.from_pandas),
    "saved": saved,
    "command, CSV": command(".csv"),
    "command, Parquet": command(".parquet"),
}


def expected(pairs, option):
    """Fills by Poisson regression."""
    numbers = [tuple(NAMES.index(name) for name in pair) for pair in pairs]
    margins = [*numbers, *((k,) for k in range(3))]
    seen = np.nonzero(~np.isnan(T))
    A = design(seen, T.shape, margins)
    basis = independent(A)
    how = {
        "plain": {},
        "weights": {"var_weights": V[seen]},
        "exposure": {"offset": np.log(V[seen])},
    }[option]
    model = sm.GLM(T[seen], A[:, basis], family=sm.families.Poisson(), **how)
    found = model.fit(tol=1e-14, maxiter=100).params
    fills = np.exp(design(HOLES, T.shape, margins)[:, basis] @ found)
    return fills * V[HOLES] if option == "exposure" else fills


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("model", PAIRS)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_gives_the_same_fills(way, model, option, tmp_path):
    factors, fills = WAYS[way](PAIRS[model], option, tmp_path)
    np.testing.assert_allclose(fills, expected(PAIRS[model], option), rtol=1e-8)
    if factors is not None:
        own, _ = dense(PAIRS[model], option, tmp_path)
        assert list(factors) == list(own)
        if model in ("one factor each", "a pair"):  # else one choice of many
            for name, factor in own.items():
                np.testing.assert_allclose(factors[name], factor, rtol=1e-9)


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("make", [pl.from_pandas, lambda given: given])
def test_a_key_of_two_columns_is_a_pair_that_acts_together(make, option):
    options = {} if option == "plain" else {option: "v"}
    keys = [("site", "month"), "year"]
    fit = a1gm.fit_long(make(frame()), keys, "n", **options)
    assert isinstance(fit, a1gm.RankOneFit)
    filled = fit.fill_long()
    rows = pl.DataFrame(filled).to_pandas() if make is pl.from_pandas else filled
    found = rows.set_index(NAMES)["n"]
    whole = frame().set_index(NAMES)
    at = whole.index[np.isnan(whole["n"])]
    pair = PAIRS["a pair"]
    np.testing.assert_allclose(found[at], expected(pair, option), rtol=1e-8)


def test_two_modes_are_the_fit_of_a_table():
    X = T[:, :, 0]
    two, many = a1gm.fit(X), a1gm.fit_tensor(X)
    np.testing.assert_allclose(many.reconstruct(), two.reconstruct(), rtol=1e-9)
    np.testing.assert_allclose(many.factors[0], two.row_factor, rtol=1e-9)
    np.testing.assert_allclose(many.factors[1], two.col_factor, rtol=1e-9)
