"""Long frames with three keys or more, and keys of several columns."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import a1gm
from a1gm.exceptions import LabelError, NegativeValuesError, ParameterError

KEYS = ["site", "year", "month"]


def whole(seed=0):
    cells = itertools.product(["b", "a", "c"], [2003, 2001, 2002], ["jan", "feb"])
    frame = pd.DataFrame(cells, columns=KEYS)
    frame["n"] = np.random.default_rng(seed).poisson(20.0, len(frame)) + 1.0
    return frame


def spread(frame):
    """The same cells as an array, years ascending, other keys as they come."""
    T = np.full((3, 3, 2), np.nan)
    sites, months = list(frame["site"].unique()), list(frame["month"].unique())
    for row in frame.itertuples():
        T[sites.index(row.site), row.year - 2001, months.index(row.month)] = row.n
    return T


some = whole().drop([3, 8, 14])
OTHERS = [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas]


@pytest.mark.parametrize("interactions", [None, [("site", "year")], ["year:month"]])
@pytest.mark.parametrize("make", OTHERS)
def test_a_long_frame_is_the_table_it_lists(make, interactions):
    T = spread(some)
    numbers = {None: None, "site": [(0, 1)], "year": [(1, 2)]}
    first = None if interactions is None else str(interactions[0])
    chosen = numbers["site" if first and "site" in first else "year" if first else None]
    options = {"on_undetermined": "ignore"}
    expected = a1gm.fit_tensor(T, chosen, **options)
    frame = make(some.reset_index(drop=True))
    fit = a1gm.fit_long(frame, KEYS, "n", interactions=interactions, **options)
    np.testing.assert_allclose(fit.reconstruct(), expected.reconstruct(), rtol=1e-12)
    filled = fit.fill_long()
    assert type(filled) is type(frame)
    assert len(filled) == 3
    values = np.asarray(filled["n"], float)
    np.testing.assert_allclose(
        np.sort(values), np.sort(expected.reconstruct()[np.isnan(T)]), rtol=1e-12
    )
    np.testing.assert_array_equal(fit.predict(filled), values)


def test_bounds_stand_beside_the_fills():
    fit = a1gm.fit_long(some, KEYS, "n")
    filled = fit.fill_long(interval=0.9)
    lower, upper = fit.uncertainty().interval(spread(some), 0.9)
    at = np.isnan(spread(some))
    np.testing.assert_array_equal(np.sort(filled["lower"]), np.sort(lower[at]))
    np.testing.assert_array_equal(np.sort(filled["upper"]), np.sort(upper[at]))


@pytest.mark.parametrize("make", OTHERS)
def test_totals_by_several_keys_have_a_column_for_each(make):
    frame = make(some.reset_index(drop=True))
    u = a1gm.fit_long(frame, KEYS, "n").uncertainty()
    totals = u.totals(["year", "site"])
    assert "year, site" in repr(totals)
    made = totals.to_frame()
    if make is pd.DataFrame:
        assert list(made.index.names) == ["year", "site"]
        made = made.reset_index()
    rows = zip(made["year"], made["site"], strict=True)
    assert [(int(str(year)), str(site)) for year, site in rows] == totals.labels


def test_totals_and_indices_have_the_labels():
    u = a1gm.fit_long(some, KEYS, "n").uncertainty()
    assert list(u.totals("site").labels) == ["b", "a", "c"]
    assert list(u.index("year").labels) == [2001, 2002, 2003]
    assert u.totals(("site", "month")).labels[0] == ("b", "jan")
    frame = u.totals("site").to_frame()
    assert list(frame.index) == ["b", "a", "c"]


def test_a_key_of_two_columns_is_one_key():
    fit = a1gm.fit_long(some, [("site", "month"), "year"], "n")
    together = a1gm.fit_long(some, KEYS, "n", interactions=[("site", "month")])
    assert isinstance(fit, a1gm.RankOneFit)
    frame = whole()
    np.testing.assert_allclose(fit.predict(frame), together.predict(frame), rtol=1e-9)
    assert list(fit.fill_long().columns) == ["site", "month", "year", "n"]


def test_exposures_of_missing_cells_are_listed():
    frame = whole()
    frame["effort"] = np.arange(18) % 3 + 1.0
    frame.loc[[3, 8], "n"] = np.nan
    fit = a1gm.fit_long(frame, KEYS, "n", exposure="effort")
    filled = fit.fill_long()
    twice = a1gm.fit_long(
        frame.assign(effort=2.0 * frame["effort"]), KEYS, "n", exposure="effort"
    )
    np.testing.assert_allclose(twice.fill_long()["n"], filled["n"], rtol=1e-9)
    assert filled["n"].notna().all()


@pytest.mark.parametrize(
    ("change", "options", "error", "words"),
    [
        ({"n": -1.0}, {}, NegativeValuesError, r"n\['b', 2003, 'jan'\] in row 0"),
        ({"site": None}, {}, LabelError, "'site' is missing"),
        ({}, {"interactions": [("site", "moth")]}, ParameterError, "'month'"),
        ({}, {"negatives": "allow"}, ParameterError, "two keys"),
    ],
)
def test_faults_are_named_by_their_keys(change, options, error, words):
    frame = whole()
    for column, value in change.items():
        frame.loc[0, column] = value
    with pytest.raises(error, match=words):
        a1gm.fit_long(frame, KEYS, "n", **options)


def test_a_combination_may_occur_once():
    frame = pd.concat([whole(), whole().iloc[[4]]])
    with pytest.raises(
        LabelError, match=r"combination \('b', 2002, 'jan'\) occurs twice"
    ):
        a1gm.fit_long(frame, KEYS, "n")
    summed = a1gm.fit_long(frame, KEYS, "n", duplicates="sum")
    doubled = whole()
    doubled.loc[4, "n"] *= 2.0
    expected = a1gm.fit_long(doubled, KEYS, "n")
    np.testing.assert_allclose(summed.reconstruct(), expected.reconstruct())


def test_interactions_need_three_keys():
    with pytest.raises(ParameterError, match="three keys"):
        a1gm.fit_long(some, KEYS[:2], "n", interactions=[("site", "year")])


def test_lazy_frames_are_collected():
    right = a1gm.fit_long(some, KEYS, "n").reconstruct()
    found = a1gm.fit_long(pl.LazyFrame(some), KEYS, "n").reconstruct()
    np.testing.assert_array_equal(found, right)
