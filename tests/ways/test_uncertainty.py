"""Every way in that keeps the scatter of the cells is as sure as the fit in memory."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

import a1gm
from a1gm.exceptions import A1gmWarning, DataError, ParameterError
from ways import containers, file_ways, ways
from ways.tables import TABLES, WEIGHTED, weights_of

RTOL = 1e-8
KEPT = {"uncertainty": True}


def file(X, folder, **options):
    path = file_ways.write_parquet(X, folder / "table.parquet")
    return a1gm.fit_file(path, columns=containers.names_of(X), batch_rows=3, **options)


def file_with_sums(X, folder):
    fit = file(X, folder, **KEPT)
    (folder / "table.parquet").unlink()  # it is not read again
    return fit


def file_of_masks(X, folder):
    with file_ways.masks_on_disk():
        return file(X, folder, **KEPT)


def saved(make):
    def again(X, folder):
        return ways.loaded(make(X, folder), folder)

    return again


def pickled(make):
    return lambda X, folder: pickle.loads(pickle.dumps(make(X, folder)))


MAKERS = {
    "in memory": lambda X, folder: a1gm.fit(X),
    "by columns": lambda X, folder: a1gm.fit(np.asfortranarray(X)),
    "polars": lambda X, folder: a1gm.fit(containers.polars_frame(X)),
    "sparse": lambda X, folder: a1gm.fit(containers.sparse_table(X), absent="missing"),
    "pieces": lambda X, _: ways.in_pieces(X, **KEPT).solve(),
    "pieces without rows": lambda X, _: ways.in_pieces(
        X, keep_rows=False, **KEPT
    ).solve(),
    "bytes": lambda X, _: ways.between_workers(X, **KEPT),
    "file, read again": file,
    "file": file_with_sums,
    "file, masks": file_of_masks,
    "Dask array": lambda X, _: a1gm.distributed.fit(ways.dask_array(X), **KEPT),
    "Dask frame": lambda X, _: a1gm.distributed.fit(ways.dask_frame(X), **KEPT),
}
for name in ("in memory", "sparse", "pieces", "pieces without rows", "file"):
    MAKERS[f"{name}, loaded"] = saved(MAKERS[name])
for name in ("in memory", "pieces without rows", "file"):
    MAKERS[f"{name}, unpickled"] = pickled(MAKERS[name])
GONE = ("without rows", "Dask", "file, loaded")


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
    fit = MAKERS[maker](X, tmp_path)
    rows = not any(word in maker for word in GONE)
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
@pytest.mark.parametrize("way", ["sparse", "loaded", "unpickled", "by columns"])
def test_weighted_fits_are_as_sure(way, table, tmp_path):
    X, V = TABLES[table], weights_of(table)
    right = fit = a1gm.fit(X, weights=V)
    if way == "sparse":
        S = containers.sparse_table(X)
        at = S.tocoo()
        W = at.copy()
        W.data = V[at.row, at.col]
        fit = a1gm.fit(at, weights=W, absent="missing")
    elif way == "loaded":
        fit = ways.loaded(fit, tmp_path)
    elif way == "unpickled":
        fit = pickle.loads(pickle.dumps(fit))
    else:
        fit = a1gm.fit(np.asfortranarray(X), weights=np.asfortranarray(V))
    check(answers(fit), answers(right), np.nansum(X))


# ------------------------------------------------------------------ what is not kept
def test_what_was_not_kept_is_said_with_the_call_that_keeps_it(tmp_path):
    X = TABLES["random holes"]
    for fit in (ways.in_pieces(X).solve(), ways.loaded(file(X, tmp_path), tmp_path)):
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


@pytest.mark.parametrize("way", ["pieces", "pieces without rows", "file", "Dask array"])
def test_a_perfect_fit_is_perfect_from_sums(way, tmp_path):
    X = np.outer(np.arange(1.0, 9.0), [3.0, 1.0, 4.0, 0.1]) / 7.0
    X[2, 2] = X[5, 0] = np.nan
    fit = MAKERS[way](X, tmp_path)
    u = fit.uncertainty()
    assert u.dispersion == u.pearson_chi2 == u.deviance == fit.divergence == 0.0
    assert "perfect fit" in repr(u)


@pytest.mark.parametrize("scale", [1e-280, 1e-150, 1.0, 1e150, 1e290])
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
