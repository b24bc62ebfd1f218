"""Columns of a frame that are its table: ``id=``, ``columns=`` and ``exclude=``."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import a1gm
from a1gm.exceptions import LabelError, NotNumericError, ParameterError

FRAME = pd.DataFrame(
    {
        "shop": ["a", "b", "c"],
        "year": [2020, 2021, 2022],
        "x": [1.0, 2.0, 3.0],
        "note": ["u", "v", "w"],
        "y": [2.0, np.nan, 6.0],
        "z": [3.0, 6.0, 9.0],
    }
)
KINDS = {
    "pandas": lambda f: f,
    "polars": pl.from_pandas,
    "pyarrow": pa.Table.from_pandas,
}


@pytest.mark.parametrize("kind", KINDS)
def test_impute_gives_every_column_back(kind):
    frame = KINDS[kind](FRAME)
    fit = a1gm.fit(frame, id="shop", exclude=["year", "note"])
    assert list(fit.row_labels) == ["a", "b", "c"]
    assert list(fit.col_labels) == ["x", "y", "z"]
    filled = fit.impute(frame)
    assert type(filled) is type(frame)
    back = filled if kind == "pandas" else filled.to_pandas()
    want = FRAME.assign(y=[2.0, 4.0, 6.0])
    pd.testing.assert_frame_equal(back, want, check_dtype=False)
    assert fit.fate("b", "y") == "finite"
    np.testing.assert_allclose(fit.transform(frame), [6.0, 12.0, 18.0])
    lower, _ = fit.uncertainty("poisson").interval(frame)
    assert lower.shape == (3, 3)
    assert fit.residuals(frame).shape == (3, 3)


def test_columns_say_what_is_fitted_and_several_columns_name_rows():
    fit = a1gm.fit(FRAME, id=["shop", "year"], columns=["x", "y", "z"])
    assert fit.row_labels[1] == ("b", 2021)
    filled = a1gm.impute(FRAME, columns=["x", "y", "z"])
    assert filled["y"].tolist() == pytest.approx([2.0, 4.0, 6.0])
    assert list(filled) == list(FRAME)


@pytest.mark.parametrize("make", [pd.Index, np.array, pd.Series, pl.Series, tuple])
def test_names_in_any_list(make, tmp_path):
    one, three = make(["shop"]), make(["z", "x", "y"])
    fit = a1gm.fit(FRAME, id=one, columns=three)
    assert list(fit.col_labels) == ["x", "y", "z"]  # in the order of the frame
    assert list(fit.row_labels) == ["a", "b", "c"]
    others = make(["shop", "year", "note"])
    assert list(a1gm.fit(FRAME, exclude=others).col_labels) == ["x", "y", "z"]
    FRAME.to_parquet(tmp_path / "t.parquet")
    fit = a1gm.fit_file(tmp_path / "t.parquet", id=one, columns=three)
    assert set(fit.col_labels) == {"x", "y", "z"}
    fits = a1gm.fit_groups(FRAME, by=make(["note"]), keys=["shop", "year"], value="x")
    assert len(fits) == 3


def test_what_cannot_be_chosen_is_told():
    with pytest.raises(
        LabelError, match=r"no column 'month'\. Its columns are: 'shop'"
    ):
        a1gm.fit(FRAME, id="month")
    with pytest.raises(LabelError, match="No column is left"):
        a1gm.fit(FRAME, columns=["x"], exclude=["x"])
    with pytest.raises(ParameterError, match="name columns of a frame"):
        a1gm.fit(np.ones((2, 2)), id=0)


def test_columns_whose_names_are_numbers():
    frame = FRAME.set_axis(range(6), axis=1)
    fit = a1gm.fit(frame, id=0, columns=[2, 4, 5])
    assert fit.impute(frame)[4].tolist() == [2.0, 4.0, 6.0]
    assert fit.fate("b", 4) == "finite"


def test_a_name_that_is_nearly_one_is_asked_for():
    frame = pd.DataFrame({"month": ["a", "b"], "x": [1.0, 2.0]})
    with pytest.raises(LabelError, match="Did you mean 'month'"):
        a1gm.fit(frame, id="mounth")


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("function", [a1gm.fit, a1gm.impute])
def test_columns_of_text_are_told_the_options_that_choose(function, make):
    frame = make(
        {"Site": ["a", "b"], "x": [1.0, 2.0], "y": [3.0, 4.0], "Notes": ["p", "q"]}
    )
    with pytest.raises(NotNumericError) as caught:
        function(frame)
    words = "Pass id='Site' if it names the rows, and exclude=['Notes'] to leave it"
    assert words in str(caught.value)
    with pytest.raises(NotNumericError, match=r"Pass exclude=\['Notes'\] to leave it"):
        function(frame, id="Site")
    function(frame, id="Site", exclude=["Notes"])


def test_only_fit_and_impute_are_told_their_options():
    frame = pd.DataFrame({"Site": ["a", "b"], "x": [1.0, 2.0]})
    for function in (a1gm.fit_nmmf, a1gm.MissingPattern.of, a1gm.RankOneNMF().fit):
        with pytest.raises(NotNumericError) as caught:
            function(frame)
        assert "id=" not in str(caught.value)
    with pytest.raises(NotNumericError) as caught:
        a1gm.fit([["a", 1.0]])
    assert "id=" not in str(caught.value)
