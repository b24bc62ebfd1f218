"""Long tables given as wide ones, stacks given as tables, pairs twice: 75 and 76."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from support.commands import run

import a1gm
from a1gm.exceptions import (
    DataError,
    LabelError,
)

LONG = pd.DataFrame(
    {
        "shop": ["north", "north", "east", "east"],
        "month": ["jan", "feb", "jan", "feb"],
        "sales": [1.0, 2.0, 3.0, 6.0],
    }
)
MAKE = [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas]


def three_keys(*, same_shops: bool) -> pd.DataFrame:
    """Regions with shops, whose names are the same in each or not."""
    rows = [
        (region, shop if same_shops else region + shop, month, float(i + j + 1))
        for i, region in enumerate(["north", "south"])
        for shop in "abc"
        for j, month in enumerate(["2024-01", "2024-02", "2024-03", "2024-04"])
    ]
    return pd.DataFrame(rows, columns=["region", "shop", "month", "sales"])


GROUPS = "a1gm.fit_groups({}, by='region', keys=['shop', 'month'], value='sales')"
PAIRS = "a1gm.fit_long({}, keys=['shop', 'month'], value='sales')"


@pytest.mark.parametrize(
    ("same_shops", "options"),
    [(True, "--long shop,month,sales --by region"), (False, "--long shop,month,sales")],
)
def test_75_the_commands_name_the_options_and_nothing_else(
    tmp_path, same_shops, options
):
    frame = three_keys(same_shops=same_shops)
    frame.loc[0, "sales"] = None
    path = tmp_path / "long.csv"
    frame.to_csv(path, index=False)
    for command in ("inspect", "assess"):
        done = run(command, path, code=None)
        assert f"if it has one row per cell, fit it with {options}" in done.stderr
    done = run("impute", path, "-o", "-", *options.split())
    assert "Filled 1 pair" in done.stderr


def test_75_a_series_with_two_levels_is_told_the_call_that_works():
    series = LONG.set_index(["shop", "month"])["sales"]
    with pytest.raises(DataError, match=r"a1gm\.fit_long\(X\)"):
        a1gm.fit(series)
    assert a1gm.fit_long(series).shape == (2, 2)


def test_75_a_stack_is_told_the_call_that_works():
    stack = np.ones((2, 3, 4))
    with pytest.raises(DataError, match=r"a1gm\.fit_many\(X\)"):
        a1gm.fit(stack)
    assert len(a1gm.fit_many(stack)) == 2


@pytest.mark.parametrize("make", MAKE)
def test_76_pairs_twice(make):
    frame = make(pd.concat([LONG, LONG[1:2]], ignore_index=True))
    with pytest.raises(LabelError, match=r"\('north', 'feb'\).*row 1 and row 4.*sum"):
        a1gm.fit_long(frame, ["shop", "month"], "sales")
    fit = a1gm.fit_long(frame, ["shop", "month"], "sales", duplicates="sum")
    assert fit.divergence > 0.0
