"""Fits travel: files, pickle, joblib, copies, skops; hostile files are refused."""

from __future__ import annotations

import copy
import pickle
import zipfile
from datetime import date, datetime, timedelta
from functools import partial

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import skops.io
from support.commands import run
from support.frames import holed_table
from ways.kinds import KINDS
from ways.tables import TABLES
from ways.ways import loaded

import a1gm
from a1gm import RankOneImputer, RankOneNMF
from a1gm.exceptions import (
    FileFormatError,
    MissingExtraError,
    ParameterError,
)

nan = np.nan


def table(n=40, m=6, share=0.3, seed=0):
    return holed_table(n, m, share, seed)


MAKERS = {
    f"{kind}, {name}": partial(KINDS[kind], TABLES[name])
    for kind in ("in memory", "sparse", "file, masks")
    for name in ("random holes", "two blocks", "blocks beside zeros", "unbounded")
} | {"wide": partial(KINDS["in memory"], table(400, 900, 0.5))}


def by_joblib(fit, folder):
    joblib.dump(fit, folder / "fit.joblib")
    return joblib.load(folder / "fit.joblib")


TRAVELS = {
    "saved": loaded,
    "saved twice": lambda fit, folder: loaded(loaded(fit, folder), folder),
    "pickle": lambda fit, _: pickle.loads(pickle.dumps(fit)),
    "saved and pickled": lambda fit, folder: pickle.loads(
        pickle.dumps(loaded(fit, folder))
    ),
    "joblib": by_joblib,
    "copy": lambda fit, _: copy.copy(fit),
    "deep copy": lambda fit, _: copy.deepcopy(fit),
}
NUMBERS = (
    *("shape", "certificate", "converged", "divergence", "solver", "n_iter"),
    *("n_blocks", "n_undetermined", "attained", "col_labels"),
)


@pytest.mark.filterwarnings("ignore::a1gm.exceptions.A1gmWarning")
@pytest.mark.parametrize("looked", [False, True])
@pytest.mark.parametrize("travel", TRAVELS)
@pytest.mark.parametrize("make", MAKERS)
def test_the_whole_fit_travels(make, travel, looked, tmp_path):
    fit, X, *_ = MAKERS[make](tmp_path)
    assert fit.divergence >= 0.0
    if looked:  # every cached property is there when it travels
        _ = fit.pattern, fit.certificate, fit.undetermined, fit.row_block
        fit.reconstruct()
        repr(fit)
        repr(fit.pattern)
    other = TRAVELS[travel](fit, tmp_path)
    for name in ("row_factor", "col_factor", "row_block", "col_block"):
        np.testing.assert_array_equal(getattr(other, name), getattr(fit, name), name)
    for name in NUMBERS:
        np.testing.assert_equal(getattr(other, name), getattr(fit, name), name)
    assert list(other.undetermined) == list(fit.undetermined)
    assert other.pattern.n_missing == fit.pattern.n_missing
    assert (repr(other), repr(other.pattern)) == (repr(fit), repr(fit.pattern))
    np.testing.assert_array_equal(other.reconstruct(), fit.reconstruct())
    np.testing.assert_array_equal(other.transform(X), fit.transform(X))
    np.testing.assert_array_equal(other.impute(X), fit.impute(X))


def test_labels_travel(tmp_path):
    frame = pd.DataFrame(
        table(), columns=list("abcdef"), index=[f"r{i}" for i in range(40)]
    )
    fit = a1gm.fit(frame)
    other = loaded(fit, tmp_path)
    assert other.row_labels == list(frame.index)
    assert other.col_labels == list(frame.columns)
    pd.testing.assert_frame_equal(other.to_frames().rows, fit.to_frames().rows)


def test_a_file_keeps_which_columns_were_fitted(tmp_path):
    frame = pd.DataFrame({"id": [7, 8], "a": [1.0, nan], "b": [2.0, 4], "n": 5})
    fit = a1gm.fit(frame, id="id", exclude="n")
    other = loaded(fit, tmp_path)
    pd.testing.assert_frame_equal(other.impute(frame), fit.impute(frame))


# ------------------------------------------------------------- paths without a model
def test_a_path_without_a_model_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.npz does not exist\. Check"):
        a1gm.load(tmp_path / "absent.npz")
    with pytest.raises(FileFormatError, match="does not exist"):
        a1gm.load(str(tmp_path / "absent.npz"))
    with pytest.raises(FileFormatError, match=r"it is a folder\. Name a file in it"):
        a1gm.load(tmp_path)


def test_a_model_that_cannot_be_read_is_refused(tmp_path, monkeypatch):
    def refuse(*args, **options):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "fit.npz").touch()
    monkeypatch.setattr("zipfile.ZipFile.__init__", refuse)
    with pytest.raises(FileFormatError, match=r"cannot be read \(Permission denied\)"):
        a1gm.load(tmp_path / "fit.npz")


# ---------------------------------------------------------------------- estimators
@pytest.mark.parametrize(
    "model",
    [RankOneNMF(), RankOneImputer(), RankOneImputer(add_indicator=True)],
    ids=str,
)
def test_fault_61_estimators_travel(model, tmp_path):
    X = table()
    model.fit(X)
    joblib.dump(model, tmp_path / "model.joblib")
    skops.io.dump(model, tmp_path / "model.skops")
    types = skops.io.get_untrusted_types(file=tmp_path / "model.skops")
    for other in (
        pickle.loads(pickle.dumps(model)),
        joblib.load(tmp_path / "model.joblib"),
        copy.deepcopy(model),
        skops.io.load(tmp_path / "model.skops", trusted=types),
    ):
        np.testing.assert_array_equal(other.transform(X), model.transform(X))
    if isinstance(model, RankOneNMF):
        assert other.reconstruction_err_ == model.reconstruction_err_


def test_partial_fit_goes_on_after_a_pickle():
    X = table()
    model = pickle.loads(pickle.dumps(RankOneNMF().partial_fit(X[:20])))
    model.partial_fit(X[20:])
    expected = RankOneNMF().fit(X).components_
    np.testing.assert_allclose(model.components_, expected, rtol=1e-12)


# ------------------------------------------------------------------------ to_frame
@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_factors_as_frames(backend):
    fit = a1gm.fit(table())
    rows, columns = fit.to_frames(backend=backend)
    assert type(rows).__module__.startswith(backend)
    np.testing.assert_array_equal(np.asarray(rows["row_factor"]), fit.row_factor)
    np.testing.assert_array_equal(np.asarray(columns["col_factor"]), fit.col_factor)


def test_frames_of_the_users_library():
    X = table()
    frame = pd.DataFrame(
        X, columns=list("abcdef"), index=pd.Index(range(100, 140), name="id")
    )
    rows, columns = a1gm.fit(frame).to_frames()
    assert rows.index.equals(frame.index)
    assert list(columns.index) == list("abcdef")
    rows, columns = a1gm.fit(pl.DataFrame(X, schema=list("abcdef"))).to_frames()
    assert isinstance(rows, pl.DataFrame)
    assert columns["column"].to_list() == list("abcdef")


def test_to_frame_needs_a_library(monkeypatch):
    fit = a1gm.fit(table())
    with pytest.raises(ParameterError, match="backend must be one of"):
        fit.to_frames()
    with pytest.raises(ParameterError, match="must be one of"):
        fit.to_frames(backend="excel")
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="needs pandas"):
        fit.to_frames(backend="pandas")


@pytest.mark.parametrize("backend", ["polars", "pyarrow"])
@pytest.mark.parametrize(
    "labels",
    [
        [2**70, 1],
        [-1, 2**64 - 1],
        [True, 2**64 - 1],
        [timedelta.max, timedelta(1)],
        [date(2024, 1, 1), datetime(2024, 1, 1, 3)],
    ],
)
def test_names_that_make_no_column_of_one_type_are_text(backend, labels):
    index = pd.Index(labels, dtype=object)
    fit = a1gm.fit(pd.DataFrame([[1.0, 2.0], [2.0, 3.0]], index=index))
    names = fit.to_frames(backend).rows["row"]
    names = names.to_pylist() if backend == "pyarrow" else names.to_list()
    assert len(set(map(type, names))) == 1
    assert str(names[1])[:4] == str(labels[1])[:4]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["random holes", "two blocks", "blocks beside zeros"])
@pytest.mark.parametrize("way", ["long", "file"])
def test_a_model_of_a_file_with_many_patterns_holds_columns(
    tmp_path, monkeypatch, name, way
):
    X = pd.DataFrame(TABLES[name]).rename(columns="c{}".format)
    X.index = [f"r{k}" for k in X.index]
    pairs = X.rename_axis("row").reset_index().melt("row", var_name="column")
    monkeypatch.setattr("a1gm._fit.fit.MOST_BYTES", 0)
    if way == "long":
        pairs = pairs.dropna()
        pairs.to_csv(tmp_path / "a.csv", index=False)
        keys = ("--long", "row,column,value")
        fit = a1gm.fit_long(pairs, keys=["row", "column"], value="value")
    else:
        X.to_csv(tmp_path / "a.csv", index_label="row")
        keys, fit = (), a1gm.fit(X)
    run("fit", tmp_path / "a.csv", *keys, "-o", tmp_path / "out")
    has_zeros = way == "long" and bool((fit.row_factor == 0.0).any())
    with zipfile.ZipFile(tmp_path / "out" / "model.a1gm") as archive:
        arrays = set(archive.namelist())
    assert ({"patterns.keys.npy", "patterns.cols.npy"} & arrays) == (
        {"patterns.cols.npy"} if has_zeros else set()
    )
    assert ("row_factor.npy" in arrays) == (way == "long")
    own = a1gm.load(tmp_path / "out" / "model.a1gm")
    for model in (own, pickle.loads(pickle.dumps(own)), loaded(own, tmp_path)):
        assert model.shape == fit.shape
        assert model.certificate == pytest.approx(fit.certificate, abs=1e-15)
        assert repr(model) == repr(fit)
        assert (model.attained, model.n_undetermined) == (
            fit.attained,
            fit.n_undetermined,
        )
        np.testing.assert_allclose(
            model.impute(X[list(fit.col_labels)]),
            fit.impute(X[list(fit.col_labels)]),
            rtol=1e-12,
        )
        for ask in () if has_zeros else (model.uncertainty, lambda m=model: m.pattern):
            with pytest.raises(ParameterError, match="holds the columns of a file"):
                ask()
        if way == "long":
            np.testing.assert_array_equal(model.predict(pairs), fit.predict(pairs))


@pytest.mark.parametrize("most_bytes", [None, 0])
def test_a_saved_fit_of_files_knows_what_its_factors_explain(
    tmp_path, monkeypatch, most_bytes
):
    """Seen: NaN, though the divergence was in the file."""
    X = TABLES["random holes"]
    pd.DataFrame(X).rename(columns="c{}".format).to_csv(tmp_path / "a.csv", index=False)
    fit = a1gm.fit_file(tmp_path / "a.csv")
    if most_bytes is not None:
        monkeypatch.setattr("a1gm._fit.fit.MOST_BYTES", most_bytes)
    assert fit.divergence > 0.0
    for other in (loaded(fit, tmp_path), pickle.loads(pickle.dumps(fit))):
        expected = a1gm.fit(X).deviance_explained
        assert other.deviance_explained == pytest.approx(expected, rel=1e-9)
        again = pickle.loads(pickle.dumps(other))
        assert again.deviance_explained == other.deviance_explained
