"""Frames: the columns that are the table, their kinds, and reading in place."""

import gc
import pickle
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from support.frames import (
    RTOL,
    as_nulls,
    as_pandas,
    as_polars,
    assert_same_fit,
    holed_table,
    names,
)

import a1gm
from a1gm import RankOneNMF
from a1gm._kernel import is_compiled
from a1gm._observe import accumulate
from a1gm._rows import libraries, read_input
from a1gm._rows.rows import kind_of_cells
from a1gm.exceptions import (
    DataError,
    DataHintWarning,
    EmptyLineWarning,
    LabelError,
    NegativeValuesError,
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
    with pytest.warns(DataHintWarning, match="took 'year' as row labels and 'note' as"):
        a1gm.fit(frame)
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


@pytest.mark.parametrize("make", [pd.Index, np.array, pd.Series, pl.Series, tuple])
def test_names_in_any_list(make, tmp_path):
    FRAME.to_parquet(tmp_path / "t.parquet")
    one, three = make(["shop"]), make(["z", "x", "y"])
    for fit in (
        a1gm.fit(FRAME, id=one, columns=three),
        a1gm.fit(FRAME, id="shop", exclude=make(["year", "note"])),
        a1gm.fit_file(tmp_path / "t.parquet", id=one, columns=three),
    ):
        assert sorted(fit.col_labels) == ["x", "y", "z"]
    in_memory = a1gm.fit(FRAME, columns=three)
    assert in_memory.col_labels == ("x", "y", "z")  # in the order of the frame
    fits = a1gm.fit_groups(FRAME, by=make(["note"]), keys=["shop", "year"], value="x")
    assert len(fits) == 3


@pytest.mark.parametrize("option", ["id", "columns", "exclude"])
def test_columns_that_cannot_be_chosen(option):
    with pytest.raises(LabelError, match=r"no column 'nute'\. .*Did you mean 'note'"):
        a1gm.fit(FRAME, **{option: ["nute"]})
    with pytest.raises(ParameterError, match="need a DataFrame; X is a ndarray"):
        a1gm.fit(np.ones((2, 2)), **{option: ["x"]})


def test_the_name_of_the_columns_may_change():
    frame = pd.DataFrame(np.ones((3, 2)), columns=pd.Index(["a", "b"], name="one"))
    a1gm.fit(frame)
    frame.columns.name = "two"
    assert a1gm.fit(frame).to_frames()[1].index.name == "two"


def test_an_index_labels_rows_unless_it_is_the_default():
    with pytest.warns(DataHintWarning, match="took 'year', 'note' as not part"):
        fit = a1gm.fit(FRAME.set_index("shop"))
    assert list(fit.row_labels) == ["a", "b", "c"]
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


def test_estimators_take_every_column():
    frame = FRAME[["year", "x", "z"]]
    assert a1gm.RankOneNMF().fit(frame).n_features_in_ == 3
    assert a1gm.RankOneImputer().fit(frame).transform(frame).shape == (3, 3)
    with pytest.raises(NotNumericError, match=r"'shop' \(text\)"):
        a1gm.RankOneNMF().fit(FRAME[["shop", "x"]])


@pytest.mark.parametrize("kind", KINDS)
def test_hints_look_at_the_first_rows(kind):
    columns = {"x": [1.0, 2, 3], "y": [2.0, 2, 2], "total": [3.0, 4, 5]}
    frame = KINDS[kind](pd.DataFrame(columns))
    with pytest.warns(DataHintWarning, match="total of the others"):
        a1gm.fit(frame)
    a1gm.fit(frame, columns=list(columns))  # asked for, so without a hint


COLUMNS = {
    "text": ["a", "b"],
    "bytes": [b"a", b"b"],
    "dates": pd.to_datetime(["2020-01-01", "2020-01-02"]),
    "time spans": pd.to_timedelta([1, 2]),
    "complex": [1 + 2j, 3],
    "categories": pd.Categorical([1, 2]),
    "bools": [True, False],
    "intervals": pd.interval_range(0, 2),
}


@pytest.mark.filterwarnings("ignore:.*is text such as '1'")  # of the categories
@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_that_are_not_numbers(kind):
    frame = pd.DataFrame({"good": [1.0, 2.0], "bad": COLUMNS[kind]})
    for read in (a1gm.fit, a1gm.MissingPattern):
        with pytest.warns(DataHintWarning, match="'bad' as not part of the table"):
            read(frame)
    if kind != "bools":
        with pytest.raises(NotNumericError, match="'bad'"):
            RankOneNMF().fit(frame)
        with pytest.raises(NotNumericError, match="'bad'"):
            a1gm.fit(frame, columns=["good", "bad"])
    with pytest.raises(NotNumericError, match=r"no number column.*'bad'"):
        a1gm.fit(frame[["bad"]])


@pytest.mark.parametrize("kind", ["boolean", "bool[pyarrow]", "polars", "pyarrow"])
def test_booleans_with_holes(kind):
    cells = {"a": [True, False, True], "b": [True, True, None]}
    makers = {"polars": pl.DataFrame, "pyarrow": pa.table}
    frame = makers.get(kind, lambda cells: pd.DataFrame(cells, dtype=kind))(cells)
    table = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, np.nan]])
    found = a1gm.fit(frame, columns=["a", "b"])
    np.testing.assert_allclose(found.col_factor, a1gm.fit(table).col_factor)


def test_a_stored_index_is_not_fitted_as_data():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [2.0, 4.0, np.nan]}, [30, 50, 80])
    table = pa.Table.from_pandas(frame)
    with pytest.warns(DataHintWarning, match="'__index_level_0__'"):
        fit = a1gm.fit(table)
    np.testing.assert_array_equal(fit.row_factor, a1gm.fit(frame).row_factor)
    assert fit.impute(table)["b"][2].as_py() == pytest.approx(6.0)


def test_frames_in_chunks_are_read_in_pieces(monkeypatch):
    monkeypatch.setattr(libraries, "PIECE_ROWS", 8)
    X = holed_table()
    whole = as_nulls(X)
    chunked = pl.concat([whole[:7], whole[7:20], whole[20:]], rechunk=False)
    source = read_input(chunked)
    assert source.steps == (0, 20, 60)
    np.testing.assert_array_equal(source.rows(slice(3, 33)), X[3:33])
    np.testing.assert_array_equal(np.vstack([b for _, b in source.in_pieces()]), X)
    expected, found = a1gm.fit(X), a1gm.fit(chunked)
    assert_same_fit(found, expected)
    filled = found.impute(chunked).to_numpy()
    np.testing.assert_allclose(filled, expected.impute(X), rtol=RTOL)
    monkeypatch.setattr(accumulate, "TABLE_BYTES", 1)  # too many patterns: joined
    assert_same_fit(a1gm.fit(chunked), expected)


def test_a_bad_cell_in_pieces_is_named_and_counted_as_in_one(monkeypatch):
    monkeypatch.setattr(libraries, "PIECE_ROWS", 8)
    X = holed_table(share=0.0)
    X[33, 2], X[50, 4] = -1.5, -2.0
    chunked = pl.concat([as_polars(X)[:20], as_polars(X)[20:]], rechunk=False)
    with pytest.raises(NegativeValuesError, match=r"X\[33, 'c2'\] = -1.5 \(2 in all\)"):
        a1gm.fit(chunked)
    assert_same_fit(
        a1gm.fit(chunked, negatives="allow"), a1gm.fit(X, negatives="allow")
    )


def test_frames_work_without_pyarrow(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    X = holed_table()
    for frame in (as_nulls(X), as_pandas(X).astype("Float64")):
        assert_same_fit(a1gm.fit(frame), a1gm.fit(X))


WIDTHS = ["decimal32", "decimal64", "decimal128", "decimal256", "Int128"]


@pytest.mark.parametrize("kind", WIDTHS)
def test_numbers_of_every_width(kind):
    if not hasattr(pl if kind == "Int128" else pa, kind):
        pytest.skip("not in this version")
    if kind == "Int128":
        X = pl.DataFrame({"a": [1, 2, 3], "b": [2, None, 6]}).cast(pl.Int128)
    else:
        X = pa.table({"a": pa.array([1, 2, None], getattr(pa, kind)(5, 1))})
        X = X.append_column("b", pa.array([2.0, 4.0, 6.0]))
    np.testing.assert_allclose(a1gm.fit(X).col_factor, [1 / 3, 2 / 3])


@pytest.mark.parametrize("library", [pd, pl])
def test_a_subclass_of_a_frame_is_a_frame(library):
    class Own(library.DataFrame):
        pass

    X = {"a": [1.0, 2.0, 3.0], "b": [2.0, 4.0, 6.0], "c": [5.0, 10.0, 15.0]}
    fit = a1gm.fit(Own(X))
    assert list(fit.col_labels) == ["a", "b", "c"]
    other = Own({"c": [5.0, 10.0, np.nan], "b": X["b"], "a": X["a"]})
    filled = fit.impute(other)
    assert isinstance(filled, library.DataFrame)
    np.testing.assert_allclose(filled["c"].to_numpy(), X["c"])
    assert list(a1gm.fit(Own(X), exclude="a").col_labels) == ["b", "c"]


def whole() -> np.ndarray:
    X = holed_table(70, 5)
    X[:, 0] = np.arange(70.0)[::-1] / 20.0  # without holes
    return X


NAMES = names(5)


@pytest.mark.parametrize("order", ["C", "F"])
def test_blocks_of_pandas_are_read_where_they_lie(order: str) -> None:
    X = np.array(whole(), order=order)
    frame = pd.DataFrame(X, columns=NAMES, copy=False)
    source = read_input(frame)
    assert len(source.parts) == 1
    assert np.shares_memory(source.parts[0][0], X)
    np.testing.assert_array_equal(source.rows(slice(0, 70)), X)


@pytest.mark.parametrize("start", [0, 3, 9])
@pytest.mark.parametrize("kind", ["polars", "arrow", "batch"])
def test_columns_by_address(kind: str, start: int) -> None:
    X = whole()
    frame = as_nulls(X)[start:]
    given = {
        "polars": frame,
        "arrow": as_nulls(X).to_arrow().slice(start),
        "batch": as_nulls(X).to_arrow().to_batches()[0].slice(start),
    }[kind]
    source = read_input(given)
    if is_compiled:
        assert not isinstance(source.parts, list)
    parts = list(source.parts)
    assert len(parts) == len(source.parts) == 5
    del frame, given
    gc.collect()
    np.testing.assert_array_equal(source.rows(slice(0, 70 - start)), X[start:])
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(again.rows(slice(0, 70 - start)), X[start:])


@pytest.mark.parametrize(
    "dtype", ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"]
)
def test_integers_by_address_keep_their_type_when_full(dtype: str) -> None:
    full = pl.Series("a", [1, 2, 3], getattr(pl, dtype))
    frame = pl.DataFrame([full, pl.Series("b", [2, None, 6], getattr(pl, dtype))])
    filled = a1gm.fit(frame).impute(frame)
    assert filled.dtypes == [getattr(pl, dtype), pl.Float64]
    np.testing.assert_allclose(filled["b"].to_numpy(), [2.0, 4.0, 6.0], rtol=1e-12)


@pytest.mark.parametrize("kind", ["polars", "arrow"])
def test_a_filled_frame_outlives_its_fit_and_its_table(kind: str) -> None:
    X = whole()
    given = as_nulls(X) if kind == "polars" else as_nulls(X).to_arrow()
    fit = a1gm.fit(given)
    filled = fit.impute(given)
    del fit, given
    gc.collect()
    columns = [np.asarray(filled[name]) for name in NAMES]
    np.testing.assert_allclose(np.column_stack(columns), a1gm.impute(X), rtol=1e-12)


def test_names_that_c_cannot_hold() -> None:
    # polars ends the process when it is asked to hand on the first of them
    frame = pl.DataFrame({"a\0b": [1.0, 2.0], "ü": [2.0, None], "": [3.0, 6.0]})
    filled = a1gm.fit(frame).impute(frame)
    assert filled.columns == frame.columns
    assert filled["ü"][1] == pytest.approx(4.0)


def test_a_short_frame_of_many_columns_is_made_from_its_rows() -> None:
    X = np.random.default_rng(0).gamma(2.0, size=(3, 200))
    X[1, ::3] = X[2, 5] = np.nan
    names = [f"ü{j}" for j in range(200)]
    frame = pl.DataFrame(X, schema=names, orient="row").fill_nan(None)
    filled = a1gm.fit(frame).impute(frame)
    assert filled.schema == frame.schema
    np.testing.assert_allclose(filled.to_numpy(), a1gm.impute(X), rtol=1e-12)
    assert a1gm.impute(frame).equals(filled)
    empty = frame.with_columns(pl.lit(None, pl.Float64).alias("ü7"))
    with pytest.warns(EmptyLineWarning):
        left = a1gm.fit(empty, on_undetermined="ignore").impute(empty)
    assert left["ü7"].null_count() == 3
    assert left.drop("ü7").null_count().sum_horizontal()[0] == 0


def test_names_are_those_of_now() -> None:
    frame = pd.DataFrame(whole(), columns=NAMES)
    first = a1gm.fit(frame)
    frame.columns = ["a", "b", "c", "d", "e"]
    second = a1gm.fit(frame)
    assert list(first.col_labels) == NAMES
    assert list(second.col_labels) == list("abcde")
    frame.columns = ["a", "a", "c", "d", "e"]
    for _ in range(2):  # refused each time
        with pytest.raises(LabelError, match="repeated column names: 'a'"):
            a1gm.fit(frame)


def test_columns_that_are_renamed_between_two_fits_are_seen():
    frame = pd.DataFrame(np.arange(1.0, 13.0).reshape(4, 3), columns=["a", "b", "c"])
    assert a1gm.fit(frame).to_frames()[1].index.tolist() == ["a", "b", "c"]
    frame.columns = ["d", "e", "f"]
    assert a1gm.fit(frame).to_frames()[1].index.tolist() == ["d", "e", "f"]
    frame = frame.rename(columns={"d": "No"})
    with pytest.warns(DataHintWarning, match="'No' as row labels"):
        a1gm.fit(frame)
    frame.index.name = "shop"
    frame.columns.names = ["answer"]  # levels of a key are all data
    assert a1gm.fit(frame).shape == (4, 3)
