"""A fit that is saved is the same fit when it is read again."""

from __future__ import annotations

import io
import itertools
import json
import zipfile
from functools import reduce
from operator import getitem

import numpy as np
import pandas as pd
import pytest
from support.tensor_oracle import MARGINS, random_table

import a1gm
from a1gm.exceptions import FileFormatError


@pytest.mark.parametrize("seed", range(6))
def test_a_saved_fit_is_the_same(tmp_path, seed):
    rng = np.random.default_rng(seed)
    T, margins = random_table(rng), MARGINS[seed % len(MARGINS)]
    V = rng.uniform(0.5, 2.0, T.shape) if seed % 2 else None
    fit = a1gm.fit_tensor(T, margins, weights=V, on_undetermined="ignore")
    fit.save(tmp_path / "m")
    again = a1gm.load(tmp_path / "m")
    np.testing.assert_array_equal(again.reconstruct(), fit.reconstruct())
    assert repr(again) == repr(fit)
    assert again.divergence == fit.divergence
    assert repr(again.uncertainty("poisson")) == repr(fit.uncertainty("poisson"))


def test_labels_and_keys_of_several_columns_travel(tmp_path):
    cells = itertools.product("ab", [2001, 2002], ["jan", "feb"], ["x", "y"])
    frame = pd.DataFrame(cells, columns=["site", "year", "month", "kind"])
    frame["n"] = np.arange(16.0) + 1.0
    some = frame.drop([3, 10])
    fit = a1gm.fit_long(some, [("site", "month"), "year", "kind"], "n")
    fit.save(tmp_path / "m")
    again = a1gm.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(frame), fit.predict(frame))
    pd.testing.assert_frame_equal(again.fill_long(), fit.fill_long(), check_dtype=False)


@pytest.mark.parametrize("is_list", [False, True])
def test_exposures_of_missing_cells_travel(tmp_path, is_list):
    rng = np.random.default_rng(1)
    T, E = random_table(rng, (3, 4, 5)), rng.uniform(0.5, 2.0, (3, 4, 5))
    given, exposure = T, E
    if is_list:
        index = [k.ravel() for k in np.indices(T.shape)]
        given, exposure = (index, T.ravel()), E.ravel()
    fit = a1gm.fit_tensor(given, exposure=exposure)
    fit.save(tmp_path / "m")
    again = a1gm.load(tmp_path / "m")
    np.testing.assert_array_equal(again.impute(T), fit.impute(T))
    weighted = a1gm.fit_tensor(given, weights=exposure)
    weighted.save(tmp_path / "w")
    other = np.ones(T.shape)
    np.testing.assert_array_equal(
        a1gm.load(tmp_path / "w").residuals(other), weighted.residuals(other)
    )


def test_weights_of_missing_cells_that_mean_nothing_are_no_fault(tmp_path):
    """Seen: a fit that could be saved, and not be read."""
    T = random_table(np.random.default_rng(0), (3, 4, 5))
    V = np.where(np.isnan(T), -1.0, 2.0)
    fit = a1gm.fit_tensor(T, weights=V)
    fit.save(tmp_path / "m")
    np.testing.assert_array_equal(a1gm.load(tmp_path / "m").impute(T), fit.impute(T))


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("shape", [3, 4]),
        ("shape", [3, 4, 2]),
        ("shape", [3, 4, -5]),
        ("shape", 3),
        ("modes", [0, 0, 1]),
        ("long", [["a", "b", "c", "n"], "pandas"]),
        ("margins", [[0, 1, 2]]),
        ("solved.solver", "magic"),
        ("options.tol", -1.0),
        ("solved.gap", "none"),
        ("solved.rank", -1),
        ("labels", [["a"], None, None]),
    ],
)
def test_a_file_that_was_tampered_with_is_refused(tmp_path, part, value):
    path, other = tmp_path / "m", tmp_path / "o"
    a1gm.fit_tensor(random_table(np.random.default_rng(0), (3, 4, 5))).save(path)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(other, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "header.json":
                header = json.loads(data)
                *outer, name_of_part = ["content", *part.split(".")]
                reduce(getitem, outer, header)[name_of_part] = value
                data = json.dumps(header).encode()
            new.writestr(name, data)
    with pytest.raises(FileFormatError):
        a1gm.load(other)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("index", lambda a: a[:2]),
        ("index", lambda a: a - 1),
        ("index", lambda a: a.astype(float)),
        ("index", lambda a: a[:, np.r_[0, : a.shape[1] - 1]]),  # a cell that is there
        ("values", lambda a: -a),
        ("values", lambda a: a * np.nan),
        ("values", lambda a: a[1:]),
        ("values", lambda a: np.stack([a, a], axis=1)),
        ("exposure", lambda a: a - 100.0),
        ("exposure", lambda a: a[:2]),
        ("solved.t", lambda a: a[1:]),
        ("solved.t", lambda a: a * np.inf),
        ("solved.t", lambda a: a * np.nan),
    ],
)
def test_arrays_that_are_no_fit_are_refused(tmp_path, name, change):
    T = random_table(np.random.default_rng(0), (3, 4, 5))
    path, other = tmp_path / "m", tmp_path / "o"
    a1gm.fit_tensor(T, exposure=np.full(T.shape, 2.0)).save(path)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(other, "w") as new:
        for entry in old.namelist():
            data = old.read(entry)
            if entry == f"{name}.npy":
                file = io.BytesIO()
                np.save(file, np.ascontiguousarray(change(np.load(io.BytesIO(data)))))
                data = file.getvalue()
            new.writestr(entry, data)
    with pytest.raises(FileFormatError):
        a1gm.load(other)


def test_dates_stay_dates(tmp_path):
    pd = pytest.importorskip("pandas")
    dates = pd.date_range("2024-01-01", periods=4)
    levels = pd.MultiIndex.from_product([["x", "y"], ["p", "q"], dates])
    frame = levels.to_frame(index=False, name=["a", "b", "date"])
    frame["value"] = np.arange(1.0, 17.0)
    fit = a1gm.fit_long(frame, keys=["a", "b", "date"], value="value")
    fit.save(tmp_path / "fit.a1gm")
    loaded = a1gm.load(tmp_path / "fit.a1gm")
    assert (loaded.labels[2] == fit.labels[2]).all()
    assert loaded.labels[2].dtype == fit.labels[2].dtype
    np.testing.assert_array_equal(loaded.predict(frame), fit.predict(frame))
