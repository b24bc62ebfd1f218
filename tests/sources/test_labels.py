"""Frames that are used together must name the same rows and columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import a1gm
from a1gm._sources import read_input
from a1gm._sources.labels import find_places
from a1gm.exceptions import (
    A1gmWarning,
    DimensionError,
    EmptyLineWarning,
    LabelError,
)


@pytest.fixture
def named() -> pd.DataFrame:
    return pd.DataFrame(
        {"x": [1.0, 2.0, np.nan], "y": [2.0, np.nan, 6.0]}, index=["a", "b", "c"]
    )


def test_columns_in_another_order_are_refused(
    named: pd.DataFrame, tmp_path: Path
) -> None:
    fit = a1gm.fit(named)
    fit.save(tmp_path / "model.a1gm")
    other = named[["y", "x"]]
    for known in (fit, a1gm.load(tmp_path / "model.a1gm")):
        for ask in (known.impute, known.transform, known.divergence_of):
            with pytest.raises(LabelError, match="column 0 is 'y' in X and 'x' in"):
                ask(other)
            ask(other[["x", "y"]])
            ask(named.to_numpy())
    with pytest.raises(LabelError, match="column 0 is 'y' in X"):
        a1gm.fit(pl.from_pandas(named)).impute(pl.from_pandas(other))
    with pytest.raises(LabelError, match="of weights are not those of X"):
        a1gm.fit(named, weights=other.notna() * 1.0)
    with pytest.raises(LabelError, match="of this piece are not those of the table"):
        a1gm.PatternTable().update(named).update(other)


def test_rows_in_another_order_are_placed_by_their_cells(named: pd.DataFrame) -> None:
    fit = a1gm.fit(named)
    filled = fit.impute(named.iloc[::-1])
    pd.testing.assert_frame_equal(filled, fit.impute(named).iloc[::-1])
    assert fit.transform(named.iloc[::-1]).tolist() == [9.0, 6.0, 3.0]


def test_names_that_are_no_text_survive_a_file(
    named: pd.DataFrame, tmp_path: Path
) -> None:
    named.index = pd.to_datetime(["2024-01-01", "2024-02-01", None])
    a1gm.fit(named).save(tmp_path / "model.a1gm")
    filled = a1gm.load(tmp_path / "model.a1gm").impute(named)
    assert filled.notna().all(axis=None)


def test_a_path_is_no_table() -> None:
    with pytest.raises(DimensionError, match=r"single str.*fit_file"):
        a1gm.fit("sales.csv")
    with pytest.raises(DimensionError, match="single NoneType, not a table"):
        read_input(None)


def test_warnings_call_lines_by_their_labels() -> None:
    frame = pd.DataFrame(
        {"x": [1.0, np.nan, np.nan], "y": np.nan, "z": [np.nan, 2.0, np.nan]},
        index=["ann", "bob", "cid"],
    )
    with pytest.warns(A1gmWarning) as said:
        a1gm.fit(frame)
    assert "Nothing is observed in row 'cid' and column 'y':" in str(said[0].message)
    assert "undetermined, the first at ('ann', 'z')" in str(said[1].message)
    with pytest.warns(A1gmWarning) as said:
        a1gm.fit(frame.to_numpy())
    assert "Nothing is observed in row 2 and column 1:" in str(said[0].message)
    assert "undetermined, the first at (0, 2)" in str(said[1].message)


def test_only_some_of_many_empty_rows_are_named() -> None:
    X = np.full((9, 2), np.nan)
    X[0] = 1.0
    with pytest.warns(EmptyLineWarning, match="in rows 1, 2, 3, 4, 5 and 3 more: the"):
        a1gm.fit(X)


def test_places_of_small_integers_in_a_long_table():
    places = find_places("row", np.array([-1, 5], np.int8), None, 1_000)
    assert places.tolist() == [999, 5]
    assert find_places("row", np.array([7], np.uint8), None, 1_000).tolist() == [7]


def test_places_by_name_and_number_together():
    names = ["a", "b", "c"]
    assert find_places("row", ["c", 0, -1], names, 3).tolist() == [2, 0, 2]
    assert find_places("row", "b", names, 3).shape == ()
    assert find_places("column", np.array([["a"], ["b"]]), names, 3).shape == (2, 1)
