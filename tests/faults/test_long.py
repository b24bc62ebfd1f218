"""Long tables given as wide ones, stacks given as tables, pairs twice: 75 and 76."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import a1gm
from a1gm.exceptions import DimensionError, LabelError, NotNumericError

LONG = pd.DataFrame(
    {
        "shop": ["north", "north", "east", "east"],
        "month": ["jan", "feb", "jan", "feb"],
        "sales": [1.0, 2.0, 3.0, 6.0],
    }
)
MAKE = [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas]


@pytest.mark.parametrize("make", MAKE)
@pytest.mark.parametrize(
    "frame",
    [
        LONG,
        LONG.assign(month=[1, 2, 1, 2]),
        LONG.assign(month=pd.to_datetime(["2024-01-01", "2024-02-01"] * 2)),
        LONG.assign(note="x"),
    ],
    ids=["text", "numbers", "days", "a note"],
)
def test_75_a_long_frame_is_told_the_call_that_works(make, frame):
    words = "fit_long(X, keys=['shop', 'month'], value='sales')"
    with pytest.raises(NotNumericError) as refused:
        a1gm.fit(make(frame))
    assert words in str(refused.value)
    fit = a1gm.fit_long(make(frame), keys=["shop", "month"], value="sales")
    assert fit.shape == (2, 2)


def test_75_a_series_with_two_levels_is_told_the_call_that_works():
    series = LONG.set_index(["shop", "month"])["sales"]
    with pytest.raises(DimensionError, match=r"a1gm\.fit_long\(X\)"):
        a1gm.fit(series)
    assert a1gm.fit_long(series).shape == (2, 2)


def test_75_other_frames_get_no_such_hint():
    wide = pd.DataFrame({"name": ["a", "b", "c"], "x": [1, 2, 3], "y": [1, 2, 4]})
    wide["z"] = wide["x"]
    for frame in (wide, pd.DataFrame({"a": ["x", "y"], "v": [1.0, 2.0]})):
        with pytest.raises(NotNumericError) as refused:
            a1gm.fit(frame)
        assert "fit_long" not in str(refused.value)


def test_75_a_stack_is_told_the_call_that_works():
    stack = np.ones((2, 3, 4))
    with pytest.raises(DimensionError, match=r"a1gm\.fit_many\(X\)"):
        a1gm.fit(stack)
    assert len(a1gm.fit_many(stack)) == 2


@pytest.mark.parametrize("make", MAKE)
def test_76_pairs_twice(make):
    frame = make(pd.concat([LONG, LONG[1:2]], ignore_index=True))
    with pytest.raises(LabelError, match=r"\('north', 'feb'\).*rows 1 and 4.*sum"):
        a1gm.fit_long(frame, ["shop", "month"], "sales")
    fit = a1gm.fit_long(frame, ["shop", "month"], "sales", duplicates="sum")
    assert fit.divergence > 0.0
