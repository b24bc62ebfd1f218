"""Every way in that keeps the scatter of the cells is as sure as the fit in memory."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest

import a1gm
from a1gm.exceptions import A1gmWarning, DataError, ParameterError
from ways import containers, ways
from ways.kinds import KINDS, WITHOUT_ROWS, of
from ways.tables import TABLES, WEIGHTED, weights_of
from ways.test_weights import made

RTOL = 1e-8
KEPT = {"uncertainty": True}


#: Kinds of fit that have the cells or read them again, and ones that kept their sums.
WITH_CELLS = "in memory", "sparse", "file, patterns", "loaded", "unpickled"
WITH_SUMS = (
    *("pieces", "pieces without rows", "file, patterns", "file, masks"),
    *("Dask array", "Dask frame", "loaded pieces", "loaded pieces without rows"),
    *("unpickled pieces without rows", "loaded file, patterns"),
    "unpickled file, patterns",
)
MAKERS = {
    **{kind: KINDS[kind] for kind in (*WITH_CELLS, "loaded sparse")},
    "by columns": of(a1gm.fit, np.asfortranarray),
    "polars": of(a1gm.fit, containers.polars_frame),
    "bytes": partial(of(ways.between_workers), **KEPT),
    **{f"sums: {kind}": partial(KINDS[kind], **KEPT) for kind in WITH_SUMS},
}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", A1gmWarning)
        yield


def answers(fit, *, rows=True):
    """All that a fit says of how sure it is, as numbers."""
    u = fit.uncertainty(2.0)
    found = {
        "dof": u.dof,
        "pearson_chi2": u.pearson_chi2,
        "deviance": u.deviance,
        "divergence": fit.divergence,
        "explained": fit.deviance_explained,
        "index": u.index().se,
    }
    for by in ("column", "all") if not rows else ("row", "column", "all"):
        for cells in ("fitted", "missing"):
            if by == "row" or cells == "fitted" or rows:
                totals = u.totals(by, cells)
                found |= {f"{by} {cells}": totals.se, f"{by} of {cells}": totals.value}
    if rows:
        i, j = np.indices(fit.shape)
        found["cells"] = u.standard_error(i, j)
        found["guesses"] = u.standard_error(i, j, prediction=True)
    return found


def check(found, right, total):
    for name, value in found.items():
        # Sums of the first pass are right to the last digits of the total.
        atol = 1e-13 * total if np.ndim(value) == 0 else 1e-12
        np.testing.assert_allclose(value, right[name], RTOL, atol, err_msg=name)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("maker", MAKERS)
def test_every_way_is_as_sure(maker, table, tmp_path):
    X = TABLES[table]
    fit = MAKERS[maker](X, tmp_path).fit
    if maker.startswith("sums: ") and "patterns" in maker:
        (tmp_path / "table.parquet").unlink()  # it is not read again
    rows = maker.removeprefix("sums: ") not in WITHOUT_ROWS
    right = answers(a1gm.fit(X))
    check(answers(fit, rows=rows), right, np.nansum(X))
    if right["dof"] > 0:
        phi = a1gm.fit(X).uncertainty().dispersion
        assert fit.uncertainty().dispersion == pytest.approx(phi, RTOL, 1e-13)
    else:
        with pytest.raises(a1gm.exceptions.DataError, match="degrees of freedom"):
            fit.uncertainty()


@pytest.mark.parametrize("table", TABLES)
def test_the_statistics_are_their_definitions(table):
    X = TABLES[table]
    fit = a1gm.fit(X)
    f, x = fit.reconstruct(), X
    own = ~np.isnan(x) & (np.nan_to_num(f) > 0.0)
    f, x = f[own], x[own]
    u = fit.uncertainty(1.0)
    close = {"rel": 1e-9, "abs": 1e-12 * x.sum()}
    assert u.pearson_chi2 == pytest.approx(((x - f) ** 2 / f).sum(), **close)
    logs = np.where(x > 0.0, x * np.log(np.where(x > 0.0, x, 1.0) / f), 0.0)
    assert u.deviance == pytest.approx(2.0 * (logs - x + f).sum(), **close)


@pytest.mark.parametrize("table", WEIGHTED)
@pytest.mark.parametrize("way", ["sparse", "saved", "pickled", "by columns"])
def test_weighted_fits_are_as_sure(way, table, tmp_path):
    X, V = TABLES[table], weights_of(table)
    fit, _ = made(way, "weights", X, V, tmp_path)
    check(answers(fit), answers(a1gm.fit(X, weights=V)), np.nansum(X))


# ------------------------------------------------------------------ what is not kept
def test_what_was_not_kept_is_said_with_the_call_that_keeps_it(tmp_path):
    X = TABLES["random holes"]
    for kind in ("pieces", "loaded file, patterns"):
        fit = KINDS[kind](X, tmp_path).fit
        assert np.isnan(fit.divergence)
        with pytest.raises(ParameterError, match="uncertainty=True"):
            fit.uncertainty()
    fit = ways.in_pieces(X, **KEPT).solve()
    with pytest.raises(ParameterError, match=r"robust=True.*a1gm\.fit"):
        fit.uncertainty(robust=True)


def test_tables_with_and_without_the_sums_are_not_merged():
    X = TABLES["random holes"]
    with_sums = ways.in_pieces(X[:6], **KEPT)
    without = ways.in_pieces(X[6:])
    before = with_sums.solve().uncertainty().dispersion
    for one, other in ((with_sums, without), (without, with_sums)):
        with pytest.raises(ParameterError, match="Only one of the two tables"):
            one.merge(other)
    with pytest.raises(ParameterError, match="Only one of the two tables"):
        a1gm.PatternTable(**KEPT).merge(without)
    assert with_sums.solve().uncertainty().dispersion == before
    taken = a1gm.PatternTable().merge(with_sums).update(X[:2])  # the other's statistics
    assert taken.solve().uncertainty().dispersion > 0.0


@pytest.mark.parametrize(
    "kind", ["pieces", "pieces without rows", "file, patterns", "Dask array"]
)
def test_a_perfect_fit_is_perfect_from_sums(kind, tmp_path):
    X = np.outer(np.arange(1.0, 9.0), [3.0, 1.0, 4.0, 0.1]) / 7.0
    X[2, 2] = X[5, 0] = np.nan
    fit = KINDS[kind](X, tmp_path, **KEPT).fit
    u = fit.uncertainty()
    assert u.dispersion == u.pearson_chi2 == u.deviance == fit.divergence == 0.0
    assert "perfect fit" in repr(u)


@pytest.mark.parametrize("scale", [1e-138, 1e-90, 1.0, 1e90, 1e136])
def test_data_of_any_size(scale, tmp_path):
    X = TABLES["random holes"]
    right = a1gm.fit(X).uncertainty()
    u = ways.in_pieces(X * scale, **KEPT).solve().uncertainty()
    assert u.dispersion / scale == pytest.approx(right.dispersion, rel=1e-9)
    assert u.deviance / scale == pytest.approx(right.deviance, rel=1e-9)


def test_negative_cells(tmp_path):
    X = np.array([[5.0, -0.25, 2.0], [2.0, 4.0, 3.0], [9.0, 3.0, np.nan]])
    right = a1gm.fit(X, negatives="allow")
    fit = ways.in_pieces(X, negatives="allow", **KEPT).solve()
    assert np.isnan(fit.divergence)
    assert fit.uncertainty().dispersion == pytest.approx(right.uncertainty().dispersion)
    with pytest.raises(ParameterError, match="Negative cells have no deviance"):
        right.uncertainty("deviance")
    X[0] = [1.0, -4.0, 2.0]  # sums to less than zero
    for fit in (
        a1gm.fit(X, negatives="allow"),
        ways.in_pieces(X[[1, 2, 0]], negatives="allow", **KEPT).solve(),
    ):
        with pytest.raises(DataError, match="Mack's method"):
            fit.uncertainty()


def cells_of(X, V=None):
    """A long frame of all cells; missing ones have their weight, too."""
    places = np.indices(X.shape).reshape(2, -1)
    named = dict(zip(("row", "column"), places, strict=True))
    V = np.ones(X.shape) if V is None else V
    return pd.DataFrame({"by": "one", **named, "x": X.ravel(), "v": V.ravel()})


LONG = {"keys": ["row", "column"], "value": "x"}


@pytest.mark.parametrize("given", ["nothing", "weights", "exposure"])
@pytest.mark.parametrize("table", ["random holes", "zeros", "two blocks"])
def test_long_tables_and_groups_are_as_sure_as_wide_ones(table, given, tmp_path):
    X = TABLES[table]
    V = np.random.default_rng(5).uniform(0.5, 2.0, X.shape)
    wide = a1gm.fit(X) if given == "nothing" else a1gm.fit(X, **{given: V})
    right = wide.uncertainty(2.0)
    names = {} if given == "nothing" else {given: "v"}
    frame = cells_of(X, V)
    long = a1gm.fit_long(frame, **LONG, **names)
    many = a1gm.fit_groups(frame, by="by", **LONG, **names)
    many.save(tmp_path / "many.a1gm")
    fits = [long, many["one"]]
    if given != "exposure":  # which is not saved
        fits.append(a1gm.load(tmp_path / "many.a1gm")["one"])
    for fit in fits:
        u = fit.uncertainty(2.0)
        for by in ("row", "column", "all"):
            for cells in ("missing", "fitted"):
                found, expected = u.totals(by, cells), right.totals(by, cells)
                np.testing.assert_allclose(found.se, expected.se, rtol=RTOL)
    u = many.uncertainty(2.0)
    for by in ("row", "column", "all"):
        frame = u.totals(by)
        np.testing.assert_allclose(frame["se"], right.totals(by).se, rtol=RTOL)
        assert frame["by"].eq("one").all()
    np.testing.assert_allclose(u.index()["se"], right.index().se, rtol=RTOL)


@pytest.mark.parametrize("given", ["nothing", "weights", "exposure"])
def test_intervals_of_long_tables_and_groups_are_those_of_wide_ones(given):
    X = TABLES["random holes"]
    V = np.random.default_rng(5).uniform(0.5, 2.0, X.shape)
    wide = a1gm.fit(X) if given == "nothing" else a1gm.fit(X, **{given: V})
    bounds = wide.uncertainty().interval(X, 0.9)
    names = {} if given == "nothing" else {given: "v"}
    for found in (
        a1gm.fit_long(cells_of(X, V), **LONG, **names),
        a1gm.fit_groups(cells_of(X, V), by="by", **LONG, **names),
    ):
        every = found.fill_long(interval=0.9, only_missing=False)
        filled = found.fill_long(interval=0.9)
        for name, bound in zip(("lower", "upper"), bounds, strict=True):
            np.testing.assert_allclose(every[name], bound.ravel(), rtol=RTOL)
            np.testing.assert_allclose(filled[name], bound[np.isnan(X)], rtol=RTOL)
        assert list(filled)[-3:] == ["x", "lower", "upper"]
