"""Long tables given as wide ones, stacks given as tables, pairs twice: 75 and 76."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import a1gm
from a1gm.exceptions import (
    DataError,
    FileFormatError,
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


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_75_a_long_file_is_refused_by_its_first_rows(tmp_path, kind):
    frame = pd.concat([three_keys(same_shops=True)] * 50, ignore_index=True)
    path, done = tmp_path / f"long.{kind}", []
    getattr(frame, f"to_{kind}")(path, index=False)

    def progress(rows, _):
        done.append(rows)

    with pytest.raises(LabelError, match="If it has one row per cell"):
        a1gm.fit_file(path, batch_rows=24, progress=progress)
    assert not done


def test_75_columns_that_only_begin_with_text_are_no_keys(tmp_path):
    rows = [("a", "x", "?", 1.0)] * 12 + [("b", "y", k, k + 0.5) for k in range(60)]
    path = tmp_path / "t.csv"
    pd.DataFrame(rows, columns=["shop", "kind", "jan", "feb"]).to_csv(path, index=False)
    with pytest.raises(FileFormatError, match=r"'jan': '\?' is not a number"):
        a1gm.fit_file(path, batch_rows=10)
