"""A fit that is saved is the same fit when it is read again."""

from __future__ import annotations

import itertools
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


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("shape", [3, 4]),
        ("margins", [[0, 1, 2]]),
        ("solved.solver", "magic"),
        ("options.tol", -1.0),
        ("solved.gap", "none"),
        ("solved.rank", -1),
        ("solved.exponent", 0.5),
        ("labels", [["a"], None, None]),
    ],
)
def test_a_file_that_was_tampered_with_is_refused(tmp_path, part, value):
    import json
    import zipfile

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
