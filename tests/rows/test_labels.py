"""Frames that are used together must name the same rows and columns."""

from __future__ import annotations

import pickle
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import a1gm
from a1gm._rows.labels import Lookup, text_of_label
from a1gm.exceptions import A1gmWarning, DataError, LabelError


@pytest.fixture
def named() -> pd.DataFrame:
    return pd.DataFrame(
        {"x": [1.0, 2.0, np.nan], "y": [2.0, np.nan, 6.0]}, index=["a", "b", "c"]
    )


def test_columns_in_another_order_are_found_by_name(
    named: pd.DataFrame, tmp_path: Path
) -> None:
    fit = a1gm.fit(named)
    fit.save(tmp_path / "model.a1gm")
    other = named[["y", "x"]]
    for known in (fit, a1gm.load(tmp_path / "model.a1gm")):
        pd.testing.assert_frame_equal(
            known.impute(other)[["x", "y"]], fit.impute(named)
        )
        assert known.transform(other).tolist() == fit.transform(named).tolist()
        assert known.divergence_of(other) == fit.divergence
        pd.testing.assert_frame_equal(
            known.residuals(other)[["x", "y"]], fit.residuals(named)
        )
    rows = fit.impute(other.set_axis(["b", "new", "a"]))  # labels of rows do not matter
    assert list(rows.index) == ["b", "new", "a"]
    assert rows["x"].tolist() == fit.impute(named)["x"].tolist()
    polars = a1gm.fit(pl.from_pandas(named)).impute(pl.from_pandas(other))
    assert polars.columns == ["y", "x"]
    assert polars["x"].to_list() == fit.impute(named)["x"].to_list()
    bounds = zip(*map(fit.uncertainty(1.0).interval, (other, named)), strict=True)
    for bound, right in bounds:
        pd.testing.assert_frame_equal(bound[["x", "y"]], right)
    with pytest.raises(LabelError, match="of weights are not those of X"):
        a1gm.fit(named, weights=other.notna() * 1.0)
    with pytest.raises(LabelError, match="of this piece are not those of the table"):
        a1gm.PatternTable().update(named).update(other)


def test_columns_of_a_dask_frame_are_found_by_name(named: pd.DataFrame) -> None:
    dask = pytest.importorskip("dask")
    frames = pytest.importorskip("dask.dataframe")
    with dask.config.set(scheduler="synchronous"):
        fit = a1gm.distributed.fit(frames.from_pandas(named, npartitions=2))
        other = frames.from_pandas(named[["y", "x"]], npartitions=2)
        filled = fit.impute(other).compute()
        factors = np.asarray(fit.transform(other))
    right = a1gm.fit(named).impute(named).to_numpy()
    np.testing.assert_allclose(filled[["x", "y"]].to_numpy(), right)
    np.testing.assert_allclose(factors, a1gm.fit(named).transform(named))


def test_missing_and_extra_columns_are_named(named: pd.DataFrame) -> None:
    fit = a1gm.fit(named)
    with pytest.raises(LabelError, match="it lacks column 'y', column 'z' is new"):
        fit.impute(named.rename(columns={"y": "z"}))
    with pytest.raises(DataError, match="but the fit has 2: column 'z' is new"):
        fit.impute(named.assign(z=1.0))
    with pytest.raises(DataError, match="1 column, but the fit has 2: it lacks"):
        fit.transform(named[["x"]])


def test_names_that_are_no_text_survive_a_file(
    named: pd.DataFrame, tmp_path: Path
) -> None:
    named.index = pd.to_datetime(["2024-01-01", "2024-02-01", None])
    a1gm.fit(named).save(tmp_path / "model.a1gm")
    filled = a1gm.load(tmp_path / "model.a1gm").impute(named)
    assert filled.notna().all(axis=None)


def test_warnings_call_lines_by_their_labels() -> None:
    frame = pd.DataFrame(
        {"x": [1.0, np.nan, np.nan], "y": np.nan, "z": [np.nan, 2.0, np.nan]},
        index=["ann", "bob", "cid"],
    )
    with pytest.warns(A1gmWarning) as said:
        a1gm.fit(frame)
    assert "Nothing is observed in row 'cid' and column 'y':" in str(said[0].message)
    assert "undetermined, the first at ('ann', 'z')" in str(said[1].message)


DAYS = pd.to_datetime(["2024-01-31", "2024-02-29"])
LEAP = date(2024, 2, 29), "2024-02-29", np.datetime64("2024-02-29"), DAYS[1]
SPANS = pd.to_timedelta([1, 36], unit="h")
LONGER = timedelta(hours=36), np.timedelta64(36, "h"), "1 days 12:00:00"
MONTHS = pd.PeriodIndex(DAYS, freq="M")
YEARS = 2021, 2022, 2023
IDS = ["7", "1", "3"]  # of a text file
PAIRS = [(1, 1), (1, 2)], [("a", 1), ("a", pd.Timestamp("2024-05-01"))]


@pytest.mark.parametrize(
    ("labels", "asked", "at"),
    [
        (["a", "b", "c"], ["c", 0, -1], [2, 0, 2]),
        (["a", "b", "c"], "b", 1),
        (["a", "b", "c"], np.array([["a"], ["b"]]), [[0], [1]]),
        (YEARS, [2023, 2021], [2, 0]),
        (range(3), [-1, 2], [2, 2]),
        (IDS, [1, 7], [1, 0]),
        (["--7", "x"], [1, 0], [1, 0]),  # no number
        (pd.Index([0, 2, 5]), 2, 1),
        (DAYS, DAYS[::-1], [1, 0]),
        *((DAYS, day, 1) for day in LEAP),
        (SPANS, SPANS[::-1], [1, 0]),
        *((SPANS, span, 1) for span in LONGER),
        (MONTHS, "2024-02", 1),
        *((pd.MultiIndex.from_tuples(pairs), pairs[1], 1) for pairs in PAIRS),
        *((pd.MultiIndex.from_tuples(pairs), pairs[::-1], [1, 0]) for pairs in PAIRS),
    ],
)
def test_labels_are_found_whatever_type_holds_them(labels, asked, at):
    found = Lookup("row", labels, len(labels)).find(asked)
    np.testing.assert_array_equal(found, np.array(at), strict=True)


@pytest.mark.parametrize(
    ("labels", "asked", "words"),
    [
        (YEARS, 0, "No row is called 0"),  # numbers are labels
        (IDS, 0, "No row is called 0"),
        (MONTHS, date(2024, 2, 1), r"2024-02-01\. .* mean '2024-02'"),
    ],
)
def test_labels_that_do_not_exist(labels, asked, words):
    with pytest.raises(LabelError, match=words):
        Lookup("row", labels, len(labels)).find(asked)


INDEXES = {
    "levels": pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]),
    "periods": pd.period_range("2024-01", periods=3, freq="M"),
    "days": pd.date_range("2024-01-01", periods=3),
    "spans": pd.timedelta_range("1D", periods=3),
    "intervals": pd.interval_range(0, 3),
}


@pytest.mark.parametrize("kind", INDEXES)
def test_frames_of_a_fit_have_the_names_of_the_table(kind: str) -> None:
    names = INDEXES[kind]
    X = pd.DataFrame(
        [[10.0, 20.0, 33.0], [21.0, np.nan, 59.0], [30.0, 61.0, 92.0]], names, names
    )
    fit = a1gm.fit(X)
    u = fit.uncertainty()
    for like in (fit.impute(X), fit.reconstruct(), fit.residuals(X), u.interval(X)[0]):
        assert like.index.equals(names)
        assert like.columns.equals(names)
    for lines in (*fit.to_frames(), u.totals("row").to_frame(), u.index().to_frame()):
        assert lines.index.equals(names)
        assert type(lines.index) is type(names)
    assert len(fit.to_frames("polars").columns) == 3
    assert len(u.totals("column").to_frame("pyarrow")) == 3


def test_a_name_that_several_rows_have_is_refused(named: pd.DataFrame) -> None:
    named.index = pd.Index(["a", "b", "a"])
    fit = a1gm.fit(named)
    for asked in (fit.predict, fit.fate, fit.uncertainty(1.0).standard_error):
        with pytest.raises(LabelError, match=r"2 rows are called 'a' \(0, 2\)"):
            asked(["b", "a"], "x")


@pytest.mark.parametrize(
    ("label", "text"),
    [
        (pd.Timestamp("2024-05-01"), "2024-05-01"),
        (pd.Timestamp("2024-05-01 10:30"), "2024-05-01 10:30:00"),
        (pd.Period("2024Q2"), "2024Q2"),
        (("north", 2024, pd.Period("2024-05")), "('north', 2024, 2024-05)"),
        (np.str_("a"), "'a'"),
        (np.int64(3), "3"),
    ],
)
def test_labels_read_well(label, text):
    assert text_of_label(label) == text


@pytest.mark.parametrize("cells", [float, "Int64"])
def test_the_names_of_both_axes_are_kept(tmp_path, cells):
    columns = pd.Index(["a", "b", "c"], name="month")
    index = pd.RangeIndex(5, 11, 2, name="shop")
    frame = pd.DataFrame(
        np.array([[1, 2, 3], [2, 4, 6], [3, 6, 9]]), index, columns
    ).astype(cells)
    fit = a1gm.fit(frame)
    for other in (fit, pickle.loads(pickle.dumps(fit))):
        found = other.reconstruct()
        assert found.columns.equals(columns)
        assert (found.index.name, found.columns.name) == ("shop", "month")
        assert other.to_frames().columns.index.name == "month"
    assert fit.col_labels == ("a", "b", "c")
    pairs = pd.MultiIndex.from_product([[2023], ["a", "b", "c"]], names=["year", None])
    found = a1gm.fit(frame.set_axis(pairs, axis=1)).reconstruct()
    assert found.columns.equals(pairs)
    assert list(found.columns.names) == ["year", None]


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_a_range_of_names_is_kept_in_typed_files(tmp_path, ending):
    index = pd.RangeIndex(5, 11, 2, name="shop")
    cells = [[11.0, 20.0, 31.0], [24.0, np.nan, 60.0], [33.0, 60.0, 88.0]]
    frame = pd.DataFrame(cells, index, ["a", "b", "c"])
    path, out = tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
    if ending == "parquet":
        frame.to_parquet(path)
    else:
        feather.write_feather(pa.Table.from_pandas(frame), path)
    for options in ({}, {"mark": True, "interval": 0.9, "overwrite": True}):
        a1gm.impute_file(path, out, **options)
        table = pq.read_table(out) if ending == "parquet" else feather.read_table(out)
        assert table.to_pandas().index.equals(index)
        assert table.to_pandas().index.name == "shop"


def test_labels_of_files_are_read_where_they_are_looked_at(tmp_path: Path) -> None:
    names = [f"shop {k}" for k in range(70_000)] + ["twice", "twice"]
    x = np.arange(1.0, len(names) + 1)
    table = {"shop": names, "x": x, "y": 2 * x, "z": np.where(x % 3 == 0, np.nan, x)}
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    fit = a1gm.fit_file(tmp_path / "a.parquet", uncertainty=True)
    files, reads = fit._table.source, []
    read = files.id_batches
    files.id_batches = lambda: (reads.append(batch) or batch for batch in read())
    u = fit.uncertainty()
    u.totals("column"), u.totals("row"), u.index(), u.factor_errors().rows[:9]
    labels = fit.row_labels
    assert not reads
    assert labels[:2] == names[:2]
    assert [labels[k] for k in range(3)] == names[:3]
    assert [batch.num_rows for batch in reads] == [1 << 16]
    assert len(labels) == len(names)
    assert labels[-1] == "twice"
    assert labels[:1:-1] == names[:1:-1]
    assert labels == names
    assert labels != names[1:]
    assert np.asarray(labels).tolist() == list(labels) == names
    assert pickle.loads(pickle.dumps(labels)) == names
    assert repr(labels).startswith("['shop 0', 'shop 1',")
    assert repr(labels).endswith(f"'shop 11', ...] ({len(names):,} rows)")
    assert fit.fate("shop 69000", "z") == "finite"
    assert u.standard_error(["shop 5", "shop 3"], "z").shape == (2,)
    assert fit.predict(-3, "x") == pytest.approx(70_000)  # no label is a number
    with pytest.raises(IndexError):
        labels[len(names)]
    with pytest.raises(LabelError, match="2 rows are called 'twice'"):
        fit.fate("twice", "z")
    with pytest.raises(LabelError, match="Did you mean 'shop 1"):
        fit.fate("shap 11", "z")
