"""Ids, years and the index that pandas writes are names of rows, not data."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from support.commands import run, run_executable
from support.files import SAME

import a1gm
from a1gm.exceptions import (
    DataHintWarning,
    FileFormatError,
    LabelError,
)

nan = np.nan


@pytest.mark.filterwarnings("ignore")  # those of chainladder
def test_65_an_index_that_to_csv_wrote(tmp_path):
    """RAA, as chain-ladder projects it: a reserve of 52,135, not 54,356."""
    cl = pytest.importorskip("chainladder")
    frame = cl.load_sample("raa").cum_to_incr().to_frame()
    frame.index = range(1981, 1991)
    path, out = tmp_path / "raa.csv", tmp_path / "filled.csv"
    frame.to_csv(path)
    done = run("impute", path, "--negatives", "allow", "-o", out)
    assert "note: " in done.stderr
    assert "column '' has no name: taken for names of the rows" in done.stderr
    assert "--id '' says so; to fit it, pass --columns." in done.stderr
    filled = pd.read_csv(out, index_col=0)
    assert filled.values[np.isnan(frame.values)].sum() == pytest.approx(52135.2, abs=1)
    assert list(filled.index) == list(frame.index)


def test_65_ids_and_years(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(
        "id,year,jan,feb,mar\n1,2020,5,7.8,9\n2,2021,15,,27\n3,2022,1,1,2\n"
    )
    with pytest.warns(DataHintWarning, match=r"'id' holds.*'year' holds years.*id=\["):
        fit = a1gm.impute_file(path, tmp_path / "b.csv")
    assert fit.col_labels == ["jan", "feb", "mar"]
    X = np.array([[5, 7.8, 9], [15, nan, 27], [1, 1, 2]])
    cell = float((tmp_path / "b.csv").read_text().split("\n")[2].split(",")[3])
    assert cell == pytest.approx(a1gm.impute(X)[1, 1])
    # Said, so no word of it; and fitted after all.
    assert a1gm.fit_file(path, id=["id", "year"]).col_labels == fit.col_labels
    assert a1gm.fit_file(path, exclude=["id", "year"]).col_labels == fit.col_labels
    for how in ({"columns": ["id", "jan"]}, {"id": []}):
        assert a1gm.fit_file(path, **how).col_labels[0] == "id"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("id,a,b\n1,2,3\n1,4,\n", ["--id id", "--columns id,a,b"]),
        ("x,y,z\n1,2,3\n2,,6\n3,6,9\n", ["--id x", "--columns x,y,z"]),
        ("a,month\n5,1\n4,\n3,12\n", ["--id month", "--columns a,month"]),
        ("plot,a\n" + "1,2\n2,3\n3,5\n" * 2, ["--id plot", "--columns plot,a"]),
        ("3,1.5\n1,2\n4,\n", ["add a header before it", "--columns"]),
        ("A,31,7,12\nB,20,6,\nC,1,,3\n", ["add a header before it", "--columns"]),
    ],
)
def test_65_what_is_unclear_is_refused_with_both_options(tmp_path, text, options):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises((LabelError, FileFormatError)):
        a1gm.fit_file(path)
    done = run_executable("impute", "-", "-o", "-", input=text)
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    for option in options:
        assert option in done.stderr
    # The advice works.
    for option in options:
        if option.startswith("--"):
            given = option.split()
            if option == "--columns":
                given.append(text.split("\n")[0].removeprefix("A,"))
            run("impute", path, "-o", tmp_path / "o.csv", *given, "--overwrite")


def test_65_an_id_that_repeats_beyond_the_first_block_is_refused(tmp_path):
    """The rows that were read first look like ids; the last ones tell."""
    path = tmp_path / "a.csv"
    ids = [*range(200_000, 0, -1), 7]
    body = "".join(f"{i},{i % 7 + 1},{i % 5 + 1}\n" for i in ids)
    path.write_text("id,a,b\n" + body)
    with pytest.raises(LabelError, match="some of its numbers come twice"):
        a1gm.fit_file(path)


def test_65_a_count_that_ends_beyond_the_first_block_is_data(tmp_path):
    path = tmp_path / "a.csv"
    rows = [(i, i % 7 + 1) for i in range(1, 300_000)] + [(12.5, 3)]
    path.write_text("dose,a\n" + "".join(f"{x},{y}\n" for x, y in rows))
    fit = a1gm.fit_file(path)
    assert fit.col_labels == ["dose", "a"]
    whole = a1gm.fit(np.array(rows, float))
    np.testing.assert_allclose(fit.col_factor, whole.col_factor, rtol=SAME)


def test_65_measurements_that_are_all_different_are_data(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("visits,sales\n31,402\n7,\n12,220\n")
    assert a1gm.fit_file(path).col_labels == ["visits", "sales"]


def test_65_the_index_of_a_parquet_file(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, nan]}, index=[17, 4])
    frame.to_parquet(tmp_path / "a.parquet")
    fit = a1gm.fit_file(tmp_path / "a.parquet")
    assert fit.col_labels == ["a", "b"]
    a1gm.impute_file(tmp_path / "a.parquet", tmp_path / "b.parquet")
    filled = pd.read_parquet(tmp_path / "b.parquet")
    assert list(filled.index) == [17, 4]
    assert filled.loc[4, "b"] == 4.0


TYPED = {"parquet": pd.DataFrame.to_parquet, "feather": pd.DataFrame.to_feather}


@pytest.mark.parametrize("kind", TYPED)
def test_65_the_same_rule_in_typed_files(tmp_path, kind):
    """raa.csv, converted to a typed file, gave another reserve."""
    path = tmp_path / f"a.{kind}"
    names = {"id": [7, 5, 9], "year": [2020, 2021, 2022]}
    data = {"jan": [5, 15, 1], "feb": [7.8, nan, 1.0], "mar": [9, 27, 2]}
    TYPED[kind](pd.DataFrame(names | data), path)
    with pytest.warns(DataHintWarning, match=r"'id' holds.*'year' holds years.*id=\["):
        fit = a1gm.impute_file(path, tmp_path / f"b.{kind}")
    assert fit.col_labels == ["jan", "feb", "mar"]
    filled = pq.read_table if kind == "parquet" else pa.feather.read_table
    filled = filled(tmp_path / f"b.{kind}").to_pandas()
    whole = a1gm.impute(np.column_stack(list(data.values())))
    np.testing.assert_allclose(filled[list(data)], whole, rtol=SAME)
    assert filled["id"].tolist() == names["id"]
    # Its own output is read by the same rule; what is said is no news.
    with pytest.warns(DataHintWarning):
        assert a1gm.fit_file(tmp_path / f"b.{kind}").col_labels == fit.col_labels
    assert a1gm.fit_file(path, id=["id", "year"]).col_labels == fit.col_labels
    for how in ({"columns": ["id", "jan"]}, {"id": []}):
        assert a1gm.fit_file(path, **how).col_labels[0] == "id"


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ({"": [4, 2, 9]}, ("",)),
        ({"month": ["may", "jun", "jul"]}, ("month",)),
        ({"when": pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01"])}, "when"),
        ({"ok": [True, False, True]}, None),
        ({"a": [1.5, 2.5, 3.5]}, None),
    ],
)
def test_65_the_first_column_of_a_parquet_file(tmp_path, columns, names):
    frame = pd.DataFrame({**columns, "x": [5, 15, 1], "y": [7.8, nan, 1.0]})
    pq.write_table(
        pa.Table.from_pandas(frame).replace_schema_metadata(),
        path := tmp_path / "a.parquet",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataHintWarning)
        fit = a1gm.fit_file(path)
    assert (fit.row_labels is None) == (names is None)
    assert fit.col_labels[-2:] == ["x", "y"]


def test_65_beside_an_index_no_column_is_the_first(tmp_path):
    """A column that counts up is data, as in the frame, but years are not."""
    path, names = tmp_path / "a.parquet", pd.Index(["k", "l", "m"], name="shop")
    frame = pd.DataFrame({"x": [1, 2, 3], "y": [2.0, nan, 7.0]}, index=names)
    frame.to_parquet(path)
    fit = a1gm.fit_file(path)
    assert (fit.col_labels, fit.row_labels) == (["x", "y"], ["k", "l", "m"])
    frame.insert(0, "year", [2020, 2021, 2022])
    frame.to_parquet(path)
    with pytest.warns(DataHintWarning, match="'year' holds years"):
        assert a1gm.fit_file(path).col_labels == ["x", "y"]


def test_65_an_index_without_the_words_of_pandas(tmp_path):
    """pandas appends its index; polars keeps the column and drops what tells of it."""
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, nan]}, index=[17, 4])
    table = pa.Table.from_pandas(frame).replace_schema_metadata()
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.warns(DataHintWarning, match="'__index_level_0__' holds whole numbers"):
        assert a1gm.fit_file(tmp_path / "a.parquet").col_labels == ["a", "b"]


def test_65_ids_of_typed_files_beyond_the_first_piece(tmp_path):
    path = tmp_path / "a.parquet"
    rows = pa.table({"id": [3, 1, 2, 4, 5, 1], "x": range(6), "y": [2.0] * 6})
    pq.write_table(rows, path)
    for size in (2, None):
        with pytest.raises(LabelError, match="some of its numbers come twice"):
            a1gm.fit_file(path, batch_rows=size)
    pq.write_table(pa.table({"dose": [1, 2, 3, 4, 5, 5], "y": [2.0] * 6}), path)
    fit = a1gm.fit_file(path, batch_rows=3)  # looks like a count, and is data
    assert fit.col_labels == ["dose", "y"]
    assert fit.row_factor[:].tolist() == [3, 4, 5, 6, 7, 7]


def test_65_factors_are_written_beside_the_names(tmp_path):
    path, out = tmp_path / "a.csv", tmp_path / "out"
    path.write_text("id,year,a,b\n7,2020,1,2\n5,2021,2,\n")
    run("fit", path, "-o", out)  # the divergence reads the file again
    lines = (out / "row_factor.csv").read_text().split()
    assert lines[:2] == ["id,year,row_factor,se,block", "7,2020,3,,0"]
