"""Frames of factors, totals and indices, in every library."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from support.tables import quiet

import a1gm
from a1gm.exceptions import ParameterError

T = np.arange(1.0, 25.0).reshape(2, 3, 4)
LIBRARIES = "pandas", "polars", "pyarrow"
pytestmark = quiet


def columns_of(frame):
    """The columns of a frame of any library, as lists."""
    if hasattr(frame, "to_pydict"):
        return frame.to_pydict()
    return {
        name: frame[name].to_list()
        for name in getattr(frame, "column_names", frame.columns)
    }


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("names", [None, ["a", "b", ("c", "d")]])
def test_names_of_modes_that_are_no_text(names, library):
    """Seen: raw errors of the libraries, and an IndexError of a tuple."""
    fit = a1gm.fit_tensor(T, names=names)
    for mode, frame in fit.to_frames(library).items():
        name, factor = columns_of(frame)
        if library == "pandas":
            assert name == mode
        else:
            assert name == (f"({', '.join(mode)})" if mode == ("c", "d") else str(mode))
        assert columns_of(frame)[factor] == fit.factors[mode].tolist()


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("labels", [(1, "1x"), (("n", 1), ("n", 2))])
@pytest.mark.parametrize("is_loaded", [False, True])
def test_labels_that_a_library_cannot_hold_are_text(
    labels, library, is_loaded, tmp_path
):
    """Seen: raw errors of Arrow and polars for mixed labels and for tuples."""
    frame = pd.DataFrame(product(labels, [3, 4], "pq"), columns=list("abc"))
    frame["v"] = np.arange(1.0, 9.0)
    fit = a1gm.fit_long(frame, list("abc"), "v", interactions=["a:b"])
    if is_loaded:
        fit.save(tmp_path / "fit.a1gm")
        fit = a1gm.load(tmp_path / "fit.a1gm")
    found = columns_of(fit.to_frames(library)["a", "b"])
    texts = ["1", "1x"] if labels[0] == 1 else ["(n, 1)", "(n, 2)"]
    expected = labels if library == "pandas" else texts
    assert found["a"] == [one for one in expected for _ in range(2)]
    assert found["b"] == [3, 4, 3, 4]


@pytest.mark.parametrize("library", LIBRARIES)
def test_keys_of_several_columns_stay_several(library):
    frame = pd.DataFrame(product([1, "1x"], [3, 4], "pq", "xy"), columns=list("abcd"))
    frame["v"] = np.arange(1.0, 17.0)
    fit = a1gm.fit_long(frame, [("a", "b"), "c", "d"], "v")
    found = columns_of(fit.to_frames(library)["a", "b"])
    one = 1 if library == "pandas" else "1"
    assert list(found) == ["a", "b", "factor"]
    assert (found["a"], found["b"]) == ([one, one, "1x", "1x"], [3, 4, 3, 4])


@pytest.mark.parametrize("name", ["value", "se", "se_estimation"])
@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_keys_named_as_a_column_of_the_result(name, library):
    """Seen: the labels were lost silently."""
    sure = a1gm.fit_tensor(T**1.1, names=[name, "b", "c"]).uncertainty()
    results = [sure.totals(name), sure.totals([name, "b"])]
    for result in results if name == "se_estimation" else [*results, sure.index(name)]:
        with pytest.raises(ParameterError, match=f"two columns '{name}'"):
            result.to_frame(library)
        assert result.to_frame("pandas").index.names[0] == name
