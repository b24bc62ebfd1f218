"""Columns of a frame that are its table: ``id=``, ``columns=`` and ``exclude=``."""

from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import a1gm
from a1gm._rows.arrays import kind_of_cells
from a1gm.exceptions import (
    DataError,
    DataHintWarning,
    LabelError,
    NotNumericError,
    ParameterError,
)

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
    assert lower.shape == (3, 6)
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
    with pytest.raises(LabelError, match="no column left"):
        a1gm.fit(FRAME, columns=["x"], exclude=["x"])
    with pytest.raises(ParameterError, match="need a DataFrame; X is a ndarray"):
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


@pytest.mark.parametrize("kind", KINDS)
def test_the_rule_chooses_and_names_what_it_inferred(kind):
    frame = KINDS[kind](FRAME)
    words = "took 'year' as row labels and 'note' as not part of the table"
    with pytest.warns(DataHintWarning, match=words):
        fit = a1gm.fit(frame)
    assert list(fit.col_labels) == ["x", "y", "z"]
    assert list(fit.row_labels) == [("a", 2020), ("b", 2021), ("c", 2022)]
    filled = fit.impute(frame)  # without a warning
    back = filled if kind == "pandas" else filled.to_pandas()
    want = FRAME.assign(y=[2.0, 4.0, 6.0])
    pd.testing.assert_frame_equal(back, want, check_dtype=False)


def test_an_index_labels_rows_unless_it_is_the_default():
    with pytest.warns(DataHintWarning, match="took 'year', 'note' as not part"):
        fit = a1gm.fit(FRAME.set_index("shop"))
    assert list(fit.row_labels) == ["a", "b", "c"]
    own = FRAME.set_index(["shop", "year"]).drop(columns="note")
    fit = a1gm.fit(own)
    assert list(fit.row_labels)[1] == ("b", 2021)
    assert fit.impute(own)["y"].tolist() == pytest.approx([2.0, 4.0, 6.0])
    few = FRAME[["shop", "x", "y", "z"]]
    assert list(a1gm.fit(few[1:]).row_labels) == ["b", "c"]  # and no warning


def test_new_frames_follow_the_columns_of_the_fit(tmp_path):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(DataHintWarning):
        fits = [a1gm.fit(FRAME), a1gm.fit_file(tmp_path / "t.csv")]
    for fit in fits:
        filled = fit.impute(pd.read_csv(tmp_path / "t.csv"))
        assert list(filled) == list(FRAME)
        assert filled["y"].tolist() == pytest.approx([2.0, 4.0, 6.0])
        other = FRAME[["z", "y", "x"]].assign(city="d")
        assert fit.impute(other)["y"].tolist() == pytest.approx([2.0, 4.0, 6.0])
        with pytest.raises(DataError, match="column 'q' is new"):
            fit.impute(FRAME.assign(q=1.0))
    year = a1gm.fit(FRAME, columns=["year", "x"])  # data by choice
    assert year.impute(FRAME)["year"].tolist() == [2020, 2021, 2022]


def test_weights_may_have_the_other_columns_too():
    V = FRAME.assign(x=1.0, y=2.0, z=3.0)
    want = a1gm.fit(FRAME[["x", "y", "z"]], weights=V[["x", "y", "z"]])
    with pytest.warns(DataHintWarning):
        fit = a1gm.fit(FRAME, weights=V)
    np.testing.assert_array_equal(fit.col_factor, want.col_factor)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([1, Decimal("2.5"), None], "number"),
        ([1.0, True, pd.NA], "number"),
        ([None, None], "number"),
        (["a", None, np.nan], "text"),
        ([date(2024, 1, 1), pd.NaT], "date"),
        ([True, None], "bool"),
        ([["a"], ["b"]], "other"),
        (["a", date(2024, 1, 1)], "other"),
        ([1j, None], "other"),
    ],
)
def test_the_kind_of_objects_is_that_of_all_cells(cells, kind):
    assert kind_of_cells(cells, "a", "X") == kind
    frame = pd.DataFrame({"x": [1.0] * len(cells), "a": pd.Series(cells, dtype=object)})
    if kind == "number":
        assert a1gm.MissingPattern(frame).n_cols == 2
    else:
        with pytest.warns(DataHintWarning, match="took 'a'"):
            assert a1gm.fit(frame).shape[1] == 1


def test_a_column_that_mixes_numbers_and_text_is_refused():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "a": [1, "n/a", 3]})
    with pytest.raises(NotNumericError, match=r"X\[1, 'a'\] = 'n/a'"):
        a1gm.fit(frame)
    with pytest.warns(DataHintWarning, match="took 'b'"):
        a1gm.fit(frame.assign(b="b"), exclude=["a"])


def test_estimators_take_every_column():
    frame = FRAME[["year", "x", "z"]]
    assert a1gm.RankOneNMF().fit(frame).n_features_in_ == 3
    assert a1gm.RankOneImputer().fit(frame).transform(frame).shape == (3, 3)
    with pytest.raises(NotNumericError, match=r"'shop' \(text\)"):
        a1gm.RankOneNMF().fit(FRAME[["shop", "x"]])


LONG = [(s, m, i + j + 1.5) for i, s in enumerate("abcd") for j, m in enumerate("xyz")]
HINTS = {
    "one row per cell": pd.DataFrame(LONG, columns=["shop", "month", "sales"]),
    "only rise": pd.DataFrame({"k": range(2, 26, 3), "a": [5.5, 1, 2, 8, 3, 1, 2, 4]}),
    "form a triangle": pd.DataFrame([[1, 3, 6], [2, 5, None], [3, None, None]]),
    "total of the others": pd.DataFrame(
        {"x": [1.0, 2, 3], "y": [2.0, 2, 2], "total": [3.0, 4, 5]}
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("words", HINTS)
def test_hints_look_at_the_first_rows(words, kind):
    frame = KINDS[kind](HINTS[words].set_axis(map(str, HINTS[words]), axis=1))
    with pytest.warns(DataHintWarning, match=words):
        a1gm.fit(frame)
    columns = ["sales"] if "sales" in HINTS[words] else list(map(str, HINTS[words]))
    a1gm.fit(frame, columns=columns)  # asked for, so without a hint
