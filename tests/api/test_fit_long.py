"""Long tables: the fit of one row per cell is that of the table they make."""

from __future__ import annotations

import copy
import pickle
import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from support.frames import assert_same_fit

import a1gm
from a1gm.exceptions import (
    DataError,
    DataHintWarning,
    InfiniteValuesError,
    LabelError,
    NegativeValuesError,
    NotNumericError,
    ParameterError,
    TableTooLargeError,
    UndeterminedWarning,
    WeightsError,
)

KEYS = ["shop", "month"]
SHOPS = ["north", "east", "south", "west", "mid"]
MONTHS = [date(2024, m, 1) for m in (1, 2, 3, 4)]


def wide_table() -> np.ndarray:
    rng = np.random.default_rng(3)
    X = np.outer(rng.gamma(3.0, size=5), rng.gamma(3.0, size=4))
    X = rng.poisson(20 * X).astype(float)
    X[[0, 1, 3, 4], [1, 3, 0, 2]] = np.nan
    return X


X = wide_table()


makes = pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])


def long_frame(*, keeps_missing: bool = False) -> pd.DataFrame:
    """The cells of X, row by row: so keys appear in the order of the table."""
    rows = [
        (SHOPS[i], MONTHS[j], X[i, j])
        for i in range(5)
        for j in (2, 0, 1, 3)  # dates ascend in the fit, however they come
        if keeps_missing or i == 2 or not np.isnan(X[i, j])
    ]
    # Text keys stay in the order in which they come: south first.
    rows.sort(key=lambda row: row[0] != "south")
    return pd.DataFrame(rows, columns=[*KEYS, "sales"])


def categories(frame: pd.DataFrame) -> pd.DataFrame:
    # Categories in another order, one of them not used.
    kind = pd.CategoricalDtype(["nowhere", *sorted(SHOPS)])
    return frame.astype({"shop": kind})


FRAMES = {
    "pandas": lambda frame: frame,
    "pandas periods": lambda frame: frame.assign(
        month=pd.PeriodIndex(frame["month"], freq="M")
    ),
    "pandas categories": categories,
    "pandas, other index": lambda frame: frame.set_axis(range(7, 7 + len(frame))),
    "pandas, keys in the index": lambda frame: frame.set_index("shop"),
    "polars": pl.from_pandas,
    "polars categories": lambda frame: pl.from_pandas(frame).with_columns(
        pl.col("shop").cast(pl.Categorical)
    ),
    "polars in chunks": lambda frame: pl.concat(
        [pl.from_pandas(frame[:5]), pl.from_pandas(frame[5:])], rechunk=False
    ),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "pyarrow in chunks": lambda frame: pa.concat_tables(
        pa.Table.from_pandas(frame[k : k + 5], preserve_index=False)
        for k in range(0, len(frame), 5)
    ),
    "pyarrow dictionary": lambda frame: pa.Table.from_pandas(
        categories(frame), preserve_index=False
    ),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_the_fit_is_that_of_the_wide_table(kind):
    rows, as_they_come = [2, 0, 1, 3, 4], [2, 0, 1, 3]
    frame, wide = FRAMES[kind](long_frame()), a1gm.fit(X[rows])
    before, fit = copy.deepcopy(frame), a1gm.fit_long(frame, KEYS, "sales")
    assert_same_fit(fit, wide)
    assert fit.shape == (5, 4)
    table, seen = wide.reconstruct(), ~np.isnan(X[rows])
    expected = table[:, as_they_come][seen[:, as_they_come]]
    np.testing.assert_allclose(fit.predict(frame), expected, rtol=1e-9)
    filled = fit.fill_long()
    assert type(filled) is type(frame)
    np.testing.assert_allclose(np.asarray(filled["sales"]), table[~seen], rtol=1e-9)
    assert frame.equals(before)


@pytest.mark.parametrize(
    "labels",
    [
        ["2024-01", "2024-02", "2024-11"],
        ["2023-12-31", "2024-01-01", "2024-02-01"],
        ["2024-01-01 09:30", "2024-01-01 10:00", "2024-01-02 00:00"],
        ["2024-01-01T09:30:00Z", "2024-01-01T10:00:00Z", "2024-01-02T00:00:00Z"],
        ["2023-Q4", "2024-Q1", "2024-Q3"],
        ["2023Q4", "2024Q1", "2024Q3"],
        ["1999", "2000", "2024"],
        ["2", "9", "10"],
    ],
)
@makes
def test_dates_and_numbers_that_are_text_ascend(labels, make):
    first, second, third = labels
    table = {
        "shop": ["b", "b", "a", "a", "a"],
        "month": [third, second, first, second, third],
        "sales": [6.0, 4.0, 1.0, 2.0, 3.0],
        "group": ["g", "g", "g", "g", "g"],
    }
    fit = a1gm.fit_long(make(table), KEYS, "sales")
    assert list(fit.col_labels) == labels
    assert list(fit.row_labels) == ["b", "a"]
    np.testing.assert_allclose(fit.col_factor / fit.col_factor[0], [1.0, 2.0, 3.0])
    np.testing.assert_allclose(fit.predict(make(table)), table["sales"])
    many = a1gm.fit_groups(make(table), "group", KEYS, "sales")
    assert list(many["g"].col_labels) == labels


@pytest.mark.parametrize(
    "labels", [["2024-02", "2024-01", "late"], ["2024-02 b", "2024-01 a"], ["v2", "v1"]]
)
def test_text_of_which_some_is_no_date_stays_in_order_of_first_appearance(labels):
    table = {"shop": "a", "month": labels, "sales": [1.0] * len(labels)}
    fit = a1gm.fit_long(pd.DataFrame(table), KEYS, "sales")
    assert list(fit.col_labels) == labels


def test_a_series_with_two_levels():
    named = long_frame().set_index(KEYS)["sales"]
    fit = a1gm.fit_long(named)
    assert fit.fill_long().columns.tolist() == [*KEYS, "sales"]
    plain = named.rename_axis([None, None]).rename(None)
    assert [*a1gm.fit_long(plain).fill_long()] == ["row", "column", "value"]
    with pytest.raises(DataError, match="this one has 1"):
        a1gm.fit_long(long_frame()["sales"])


# -------------------------------------------------------------------- kinds of keys
PARIS = ZoneInfo("Europe/Paris")
#: Two keys of each kind, the later one first.
KINDS = {
    "text": ["b", "a"],
    "numbers": [2, 1],
    "fractions": [2.5, 1.5],
    "truth": [True, False],
    "days": [date(2021, 1, 1), date(2020, 1, 1)],
    "times": [datetime(2021, 1, 1, 5), datetime(2020, 1, 1)],
    "times with zones": [datetime(2021, m, 1, tzinfo=PARIS) for m in (7, 1)],
    "hours": [time(5), time(3)],
    "spans": [timedelta(2, 60), timedelta(microseconds=5)],
    "decimals": [Decimal("2.5"), Decimal("1.5")],
    "bytes": [b"b", b"a"],
}


def arrow_backed(key):
    values = pa.array(key)
    return pd.array(values, dtype=pd.ArrowDtype(values.type))


LIBRARIES = {
    "pandas": pd.DataFrame,
    "pandas nullable": lambda cells: pd.DataFrame(cells).convert_dtypes(),
    "pandas arrow": lambda cells: pd.DataFrame(cells).assign(
        row=arrow_backed(cells["row"])
    ),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}
#: Types that only one library has.
OWN_TYPES = {
    "pandas big-endian": lambda: pd.Series(np.array([2, 2, 1], ">i4")),
    "pandas small": lambda: pd.array([2, 2, 1], dtype="UInt8"),
    "pandas sparse": lambda: pd.arrays.SparseArray([2, 2, 1]),
    "pandas intervals": lambda: pd.IntervalIndex.from_breaks([0, 1, 2])[[1, 1, 0]],
    "pandas spans": lambda: pd.to_timedelta([2, 2, 1], unit="D"),
    "pandas pairs": lambda: pd.Series([(1, 2), (1, 2), (0, 1)]),
    "pandas several kinds": lambda: pd.Series(["a", "a", 1], dtype=object),
    "polars 128 bits": lambda: pl.Series([2, 2, 1], dtype=pl.Int128),
    "polars small": lambda: pl.Series([2, 2, 1], dtype=pl.UInt8),
    "polars enum": lambda: pl.Series(["b", "b", "a"], dtype=pl.Enum("azb")),
}


def cells_of(key):
    return {"row": key, "column": ["x", "y", "x"], "value": [10.0, 20.0, 5.0]}


def types_of(frame):
    types = frame.dtypes if hasattr(frame, "dtypes") else frame.schema.types
    return [np.dtype(t).newbyteorder("=") if str(t)[0] == ">" else t for t in types]


def check_keys_are_kept(frame, path):
    fit = a1gm.fit_long(frame, ["row", "column"], "value")
    filled = fit.fill_long()
    assert type(filled) is type(frame)
    assert types_of(filled)[:2] == types_of(frame)[:2]
    fit.save(path)
    names = list(fit.row_labels)
    assert fit.fate(names[0], "y") == "finite"
    for known in (fit, a1gm.load(path)):
        assert known.predict(filled).tolist() == [10.0]
        assert known.predict(frame).tolist() == [10.0, 20.0, 5.0]
        for several in (fit.row_labels, names):
            assert sorted(known.predict(several, "x")) == [5.0, 10.0]
    return filled


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", KINDS)
def test_keys_of_every_kind(kind, library, tmp_path):
    two, one = KINDS[kind]
    frame = LIBRARIES[library](cells_of([two, two, one]))
    filled = check_keys_are_kept(frame, tmp_path / "model.a1gm")
    if library == "pandas":
        levels = frame.set_index(["row", "column"])["value"]
        assert a1gm.fit_long(levels).fill_long().equals(filled)


@pytest.mark.parametrize("own", OWN_TYPES)
def test_keys_of_types_that_one_library_has(own, tmp_path):
    if own == "polars 128 bits" and not hasattr(pl, "Int128"):
        pytest.skip("not in this polars")
    make = pd.DataFrame if own.startswith("pandas") else pl.DataFrame
    check_keys_are_kept(make(cells_of(OWN_TYPES[own]())), tmp_path / "model.a1gm")


def test_columns_whose_names_are_numbers():
    frame = pd.DataFrame(cells_of(["a", "a", "b"])).set_axis(range(3), axis=1)
    fit = a1gm.fit_long(frame, [0, 1], 2)
    assert fit.fill_long().values.tolist() == [["b", "y", 10.0]]
    assert fit.predict(frame).tolist() == [10.0, 20.0, 5.0]


# ----------------------------------------------------------------------- filling
def test_filled_pairs_that_cannot_be_known_stay_missing():
    pairs = {"a": [0, 0, 1], "b": ["x", "y", "z"], "v": [1.0, 2.0, 3.0]}
    with pytest.warns(UndeterminedWarning):
        fit = a1gm.fit_long(pl.DataFrame(pairs), ["a", "b"], "v")
    assert fit.fill_long()["v"].to_list() == [None, None, None]
    assert np.isnan(fit.predict([0, 1], ["z", "x"])).all()


def test_too_many_pairs_are_counted_before_they_are_made():
    n = 200_000
    frame = pd.DataFrame({"a": np.r_[np.arange(n), [0] * n], "b": 0, "v": 1.0})
    frame.loc[n:, "b"] = np.arange(n) + 1
    fit = a1gm.fit_long(frame, ["a", "b"], "v")
    with pytest.raises(TableTooLargeError, match=r"39,999,8\d\d,\d{3} rows.*predict"):
        fit.fill_long()
    assert fit.predict(frame[:3]).tolist() == [1.0, 1.0, 1.0]


def test_fill_long_of_other_fits_says_what_to_do():
    with pytest.raises(ParameterError, match=r"fit\.impute\(X\) fills the table"):
        a1gm.fit(X).fill_long()
    fit = pickle.loads(pickle.dumps(a1gm.fit_long(long_frame(), KEYS, "sales")))
    with pytest.raises(ParameterError, match="loaded or unpickled"):
        fit.fill_long()
    with pytest.raises(ParameterError, match=r"long frame\. fit\.predict"):
        fit.impute(long_frame())


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_long_frame_is_told_where_its_errors_are(library):
    frame = FRAMES[library](long_frame())
    fit = a1gm.fit_long(frame, KEYS, "sales")
    u = fit.uncertainty("poisson")
    with pytest.raises(ParameterError, match="long frame") as caught:
        u.interval(frame)
    call = re.search(r"u(\.standard_error\(.*=True\))", str(caught.value))
    found = eval(call[0], {"u": u, "frame": frame})
    assert len(found) == len(fit.predict(frame))
    assert (found > 0.0).all()


# ---------------------------------------------------------------------- predicting
def test_predict_takes_arrays_of_labels():
    fit = a1gm.fit_long(long_frame(), KEYS, "sales")
    value = fit.predict("east", MONTHS[1])
    assert isinstance(value, float)
    assert value == fit.predict(["east"], "2024-02-01")[0]
    grid = fit.predict(np.array(fit.row_labels)[:, None], np.array(MONTHS))
    np.testing.assert_allclose(grid, fit.reconstruct(), rtol=1e-14)
    assert fit.fate("east", MONTHS[1]) == "finite"
    assert fit.uncertainty(1.0).standard_error("east", MONTHS[1]) > 0.0
    with pytest.raises(ParameterError, match="do not pair up"):
        fit.predict(["east", "west"], MONTHS)
    # A fit of a wide table has no key columns; one without labels has places.
    assert a1gm.fit(X).predict(0, -1) == pytest.approx(a1gm.fit(X).reconstruct()[0, -1])
    with pytest.raises(ParameterError, match=r"fit\.predict\(rows, columns\)"):
        a1gm.fit(X).predict(long_frame())
    with pytest.raises(LabelError, match="There is no row 9"):
        a1gm.fit(X).predict(9, 0)


def test_labels_that_are_new_are_named_once():
    fit = a1gm.fit_long(long_frame(), KEYS, "sales")
    months = [MONTHS[0], MONTHS[0], date(2030, 1, 1)]
    other = pd.DataFrame({"shop": ["east", "moon", "moon"], "month": months})
    with pytest.warns(UndeterminedWarning) as said:
        values = fit.predict(other)
    assert len(said) == 1
    assert "has no row 'moon' and no column 2030-01-01:" in str(said[0].message)
    assert np.isnan(values).tolist() == [False, True, True]
    numbers = a1gm.fit_long(
        pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "v": 1.0}), ["a", "b"], "v"
    )
    with pytest.warns(UndeterminedWarning, match="row 2"):
        assert np.isnan(numbers.predict(pd.DataFrame({"a": [2], "b": [0]})))


# -------------------------------------------------------------- weights, duplicates
def test_weights_are_those_of_the_cells():
    frame = long_frame(keeps_missing=True)
    V = np.random.default_rng(1).gamma(2.0, size=len(frame)) + 0.5
    V[3] = 0.0
    frame["trust"] = V
    frame.loc[3, "sales"] = -7.0  # ignored
    frame.loc[frame["sales"].isna(), "trust"] = np.nan  # nothing to weigh
    fit = a1gm.fit_long(frame, KEYS, "sales", weights="trust")
    table = frame.pivot(index="shop", columns="month", values="sales")
    weights = frame.pivot(index="shop", columns="month", values="trust").fillna(0.0)
    wide = a1gm.fit(table, weights=weights)
    shops = list(wide.row_labels)
    expected = wide.predict(shops, MONTHS[0])
    np.testing.assert_allclose(fit.predict(shops, MONTHS[0]), expected, rtol=1e-9)
    frame.loc[2, "trust"] = np.inf
    with pytest.raises(WeightsError, match=r"trust\['south', 2024-02-01\] in row 2"):
        a1gm.fit_long(frame, KEYS, "sales", weights="trust")


@makes
def test_pairs_that_are_there_twice(make):
    pairs = {"a": ["x", "x", "y", "x"], "b": [1, 2, 1, 2], "v": [1.0, 2.0, 3.0, 4.0]}
    with pytest.raises(
        LabelError, match=r"\('x', 2\) occurs twice, in row 1 and row 3"
    ):
        a1gm.fit_long(make(pairs), ["a", "b"], "v")
    fit = a1gm.fit_long(make(pairs), ["a", "b"], "v", duplicates="sum")
    assert fit.predict(["x", "y"], 2).tolist() == pytest.approx([6.0, 18.0])
    with pytest.raises(ParameterError, match="a sum of cells has no one weight"):
        a1gm.fit_long(make(pairs), ["a", "b"], "v", duplicates="sum", weights="v")
    with pytest.raises(ParameterError, match="duplicates must be one of"):
        a1gm.fit_long(make(pairs), ["a", "b"], "v", duplicates="first")


# ----------------------------------------------------------------------- bad input
@makes
@pytest.mark.parametrize(
    ("key", "words"),
    [
        ([[1]] * 3, r"values of 'row', such as \[1\], cannot be keys"),
        ([{"a": 1}] * 3, r"values of 'row', such as {'a': 1}, cannot be keys"),
        (["x", None, "y"], r"The key 'row' is missing in row 1 \(1 in all"),
        ([1.0, None, 2.0], r"The key 'row' is missing in row 1 \(1 in all"),
    ],
)
def test_bad_keys_are_refused(make, key, words):
    with pytest.raises(LabelError, match=words):
        a1gm.fit_long(make(cells_of(key)), ["row", "column"], "value")


def test_bad_values_are_named_by_their_keys_and_row():
    frame = long_frame()
    frame.loc[5, "sales"] = -2.0
    with pytest.raises(NegativeValuesError, match=r"sales\['north', 2024-01-01\] in r"):
        a1gm.fit_long(frame, KEYS, "sales")
    complete = long_frame(keeps_missing=True).fillna({"sales": 1.0})
    complete.loc[5, "sales"] = -2.0
    assert a1gm.fit_long(complete, KEYS, "sales", negatives="allow").shape == (5, 4)
    frame.loc[5, "sales"] = np.inf
    with pytest.raises(InfiniteValuesError, match="in row 5 = inf"):
        a1gm.fit_long(frame, KEYS, "sales", negatives="allow")


LONG = long_frame()


@pytest.mark.parametrize("kind", [np.array, iter, pd.Index, tuple])
def test_keys_in_any_sequence(kind):
    """Seen: raw errors for an array and for a generator."""
    fit = a1gm.fit_long(LONG, kind(KEYS), "sales")
    assert type(fit.fill_long().columns[0]) is str
    frame = LONG.assign(year=2024)
    three = a1gm.fit_long(frame, kind([*KEYS, "year"]), "sales")
    assert three.modes == (*KEYS, "year")
    assert repr(three.modes[0]) == "'shop'"
    a1gm.assess(frame, keys=kind([*KEYS, "year"]), value="sales", random_state=0)
    assert len(a1gm.fit_groups(frame, "year", kind(KEYS), "sales")) == 1
    lazy = pl.from_pandas(LONG).lazy()
    assert a1gm.fit_long(lazy, kind(KEYS), "sales").shape == fit.shape


@pytest.mark.parametrize(
    ("frame", "keys", "value", "error", "words"),
    [
        (LONG, ["shop"], "sales", ParameterError, "keys must be two names"),
        (LONG, "shop", "sales", ParameterError, "keys must be two names"),
        (LONG, [(), "shop"], "sales", ParameterError, "keys must be two names"),
        (LONG, ["shop", "mnth"], "sales", ParameterError, "'mnth'.*mean 'month'"),
        (LONG, KEYS, "month", ParameterError, "must be different columns"),
        (LONG, None, None, ParameterError, "Name the columns"),
        (LONG.assign(n=1.0), ["month", "n"], "shop", NotNumericError, "'shop'"),
        (X, KEYS, "sales", NotNumericError, "this is a ndarray"),
        (LONG[:0], KEYS, "sales", DataError, "no rows"),
    ],
)
def test_bad_calls_are_told_what_to_do(frame, keys, value, error, words):
    with pytest.raises(error, match=words):
        a1gm.fit_long(frame, keys, value)


def test_keys_that_are_no_names_or_have_no_order():
    day, hour = date(2024, 1, 1), datetime(2024, 1, 1, 5)
    frame = pd.DataFrame(
        {"d": [day, hour] * 2, "c": list("aabb"), "v": [1.0, 2.0, 3.0, 4.0]}
    )
    with pytest.raises(LabelError, match=r"'d', such as .* cannot be keys, or not"):
        a1gm.fit_long(frame, keys=["d", "c"], value="v")
    for keys, value in (([["d", "c"], "c"], "v"), (["d", "c"], ["v"])):
        with pytest.raises(ParameterError, match="is not the name of one column"):
            a1gm.fit_long(frame, keys=keys, value=value)
    zeros = pl.DataFrame({"a": [0.0, -0.0], "b": ["x", "y"], "v": [1.0, 2.0]})
    assert a1gm.fit_long(zeros, keys=["a", "b"], value="v").shape == (1, 2)


def test_sums_over_rows_without_a_value_are_counted():
    """A year of which some visits are missing is not a year of few birds."""
    counts = pd.DataFrame(
        {
            "site": list("aaaabbbbcc"),
            "year": [f"y{k}" for k in [1, 1, 2, 2, 1, 1, 2, 2, 1, 1]],
            "month": [f"m{k}" for k in [1, 2, 1, 2, 1, 2, 1, 2, 1, 2]],
            "n": [5, np.nan, 3, 4, 6, 2, np.nan, np.nan, 2, np.nan],
        }
    )
    words = "2 sums of rows with the same 'site', 'year' include rows without"
    lazy = pl.from_pandas(counts).lazy()
    for frame in (counts, pl.from_pandas(counts), lazy):
        with pytest.warns(DataHintWarning, match=words):
            fit = a1gm.fit_long(frame, ["site", "year"], "n", duplicates="sum")
        assert fit.predict("b", "y1") == pytest.approx(8.0)
    again = pd.concat([counts, counts.assign(n=np.nan)])
    with pytest.warns(DataHintWarning, match="6 sums of rows"):
        a1gm.fit_long(again, ["site", "year", "month"], "n", duplicates="sum")
    whole = counts[counts["site"] != "c"].fillna(1.0)
    a1gm.fit_long(whole, ["site", "year"], "n", duplicates="sum")


def test_a_long_table_of_few_holes_takes_what_a_sparse_one_does():
    from scipy.sparse import csr_array

    X = np.outer([1.0, 2.0, 4.0], [3.0, 1.0, 2.0, 5.0])
    for n_holes in (2, 8):  # read as an array, and by its cells
        i, j = np.divmod(np.arange(12), 4)
        i, j = (np.roll(codes, 1)[n_holes - 1 :] for codes in (i, j))
        frame = pd.DataFrame({"shop": i, "month": j, "value": X[i, j]})
        fit = a1gm.fit_long(frame, KEYS, "value", on_undetermined="ignore")
        cells = csr_array((X[i, j], (i - i.min(), j)))
        seen = a1gm.fit(cells, absent="missing", on_undetermined="ignore")
        np.testing.assert_allclose(fit.row_factor, seen.row_factor, 1e-14)
        assert fit.divergence_of(cells) == pytest.approx(seen.divergence, abs=1e-12)
        twice = pd.concat([frame, frame[:1]])
        with pytest.raises(LabelError, match="occurs twice"):
            a1gm.fit_long(twice, KEYS, "value")
