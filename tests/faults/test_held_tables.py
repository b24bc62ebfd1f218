"""Tables as people hold them: ids, folders of parts, files that are no tables."""

import gzip
import io
import json
import os
import pickle
import re
import sqlite3
import warnings
import zipfile

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
    A1gmWarning,
    BrokenFilesWarning,
    DoubtfulDataWarning,
    FileFormatError,
    LabelError,
    NotNumericError,
    RowNamesWarning,
    SkippedFilesWarning,
)

nan = np.nan


# ------------------------------------------------------------- 65: ids are not data
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
    with pytest.warns(RowNamesWarning, match=r"'id' holds.*'year' holds years.*id=\["):
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
    with pytest.warns(RowNamesWarning, match=r"'id' holds.*'year' holds years.*id=\["):
        fit = a1gm.impute_file(path, tmp_path / f"b.{kind}")
    assert fit.col_labels == ["jan", "feb", "mar"]
    filled = pq.read_table if kind == "parquet" else pa.feather.read_table
    filled = filled(tmp_path / f"b.{kind}").to_pandas()
    whole = a1gm.impute(np.column_stack(list(data.values())))
    np.testing.assert_allclose(filled[list(data)], whole, rtol=SAME)
    assert filled["id"].tolist() == names["id"]
    # Its own output is read by the same rule; what is said is no news.
    with pytest.warns(RowNamesWarning):
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
        warnings.simplefilter("ignore", RowNamesWarning)
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
    with pytest.warns(RowNamesWarning, match="'year' holds years"):
        assert a1gm.fit_file(path).col_labels == ["x", "y"]


def test_65_an_index_without_the_words_of_pandas(tmp_path):
    """pandas appends its index; polars keeps the column and drops what tells of it."""
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, nan]}, index=[17, 4])
    table = pa.Table.from_pandas(frame).replace_schema_metadata()
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.warns(RowNamesWarning, match="'__index_level_0__' holds whole numbers"):
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


# ------------------------------------------------------- 74: a folder of 200 parts
EMPTY = (0, 50, 120)
BROKEN = 77


@pytest.fixture
def parts(tmp_path):
    """Hive folders of 200 parts: three empty, one broken, and files beside them."""
    rng, root, tables = np.random.default_rng(0), tmp_path / "parts", []
    for k in range(200):
        folder = root / f"year={2000 + k // 50}"
        folder.mkdir(parents=True, exist_ok=True)
        X = rng.gamma(2.0, size=(0 if k in EMPTY else 5, 4))
        X[rng.random(X.shape) < 0.2] = nan
        columns = {f"c{j}": pa.array(X[:, j], from_pandas=True) for j in range(4)}
        columns = {n: c.cast(pa.float64()) for n, c in columns.items()}
        path = folder / f"part-{k % 50}.parquet"
        pq.write_table(pa.table(columns), path)
        if k == BROKEN:
            path.write_bytes(path.read_bytes()[:-30])
        else:
            tables.append((path, X))
    (root / "_SUCCESS").write_text("")
    (root / ".part-0.crc").write_bytes(b"\0\1")
    (root / "README.txt").write_text("Sales, by shop.\nAsk Ann.\n")
    tables.sort(key=lambda pair: pair[0])
    return root, np.vstack([X for _, X in tables])


def test_74_a_broken_part_stops_and_says_how_to_go_on(parts, tmp_path):
    root, _ = parts
    done = run("impute", root, "-o", tmp_path / "out", code=1)
    assert "year=2001/part-27.parquet is damaged" in done.stderr
    assert "--skip-bad goes on without the file." in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("given", ["folder", "glob", "files"])
def test_74_parts_are_one_table(parts, tmp_path, given):
    root, X = parts
    what = {
        "folder": [root],
        "glob": [f"{root}/*/*.parquet"],
        "files": sorted(root.glob("*/*.parquet")),
    }[given]
    out = tmp_path / "out"
    done = run("impute", *what, "-o", out, "--skip-bad", code=1)
    assert "3 files have no rows" in done.stderr
    last = done.stderr.strip().split("\n")[-1]
    assert last.startswith("a1gm: 1 file was left out: ")
    assert "part-27.parquet is damaged" in last
    if given == "folder":
        assert "1 is no table (README.txt)" in done.stderr
        assert "Hidden files left out: .part-0.crc, _SUCCESS." in done.stderr
    filled = sorted(out.glob("year=*/*.parquet"))  # hive folders keep their places
    assert len(filled) == 196
    tables = [pq.ParquetFile(path).read() for path in filled]
    found = np.vstack([table.to_pandas().values for table in tables])
    whole = a1gm.impute(X, on_undetermined="ignore")
    np.testing.assert_allclose(found, whole, rtol=1e-9)


def test_74_the_library_reads_the_same(parts):
    root, X = parts
    with (
        pytest.warns(BrokenFilesWarning, match="part-27.parquet is damaged"),
        pytest.warns(SkippedFilesWarning, match="3 files have no rows"),
    ):
        fit = a1gm.fit_file(root, skip_bad=True, on_undetermined="ignore")
    whole = a1gm.fit(X, on_undetermined="ignore")
    np.testing.assert_allclose(fit.col_factor, whole.col_factor, rtol=SAME)
    with pytest.raises(FileFormatError, match="skip_bad=True goes on"):
        a1gm.fit_file(root)


def test_74_every_command_and_program_is_told(parts, tmp_path):
    root, X = parts
    done = run("fit", root, "-o", tmp_path / "o", "--skip-bad", "--json", code=1)
    said = [json.loads(line) for line in done.stderr.splitlines()]
    kinds = [line.get("kind") for line in said]
    assert kinds.count("SkippedFilesWarning") == 1
    assert (kinds[-1], said[-1]["exit_code"]) == ("BrokenFilesWarning", 1)
    assert json.loads(done.stdout)["n_rows"] == len(X) == 196 * 5
    assert len(pd.read_csv(tmp_path / "o" / "row_factor.csv")) == len(X)
    for command in ("inspect", "assess"):
        run(command, root, "--skip-bad", code=1)
    with pytest.warns(SkippedFilesWarning):
        a1gm.impute_file(
            root, tmp_path / "lib", skip_bad=True, on_undetermined="ignore"
        )
    assert len(sorted((tmp_path / "lib").glob("year=*/*.parquet"))) == 196


def test_74_ids_in_parts_are_not_data_and_the_first_part_decides(tmp_path):
    for k in range(3):
        folder = tmp_path / f"year={2020 + k}"
        folder.mkdir()
        frame = pd.DataFrame({"id": [3, 1, 2], "x": [1.0, 2, 4], "y": [3.0, nan, k]})
        frame[: 3 * (k > 0)].to_parquet(folder / "part.parquet")  # the first is empty
    with pytest.warns(A1gmWarning) as said:
        fit = a1gm.fit_file(tmp_path)
    assert [w.category for w in said] == [RowNamesWarning, SkippedFilesWarning]
    assert fit.col_labels == ["x", "y"]
    assert fit.row_labels == ["3", "1", "2"] * 2


def test_74_a_part_that_breaks_in_its_middle_is_not_counted_in_part(tmp_path):
    good, bad = tmp_path / "a.csv", tmp_path / "b.csv"
    good.write_text("x,y\n5,2\n3,\n")
    rows = "5,2\n3,\n" * 400_000  # several pieces, then a row of another length
    bad.write_text("x,y\n" + rows + "1,2,3\n")
    with pytest.warns(BrokenFilesWarning, match="b.csv, line 800002: 3 cells"):
        fit = a1gm.fit_file([bad, good], skip_bad=True)
    assert fit.shape == (2, 2)


def test_74_strict_and_json(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("shop,x,y\na,1,\nb,,2\n")
    out = tmp_path / "b.csv"
    done = run("impute", path, "-o", out, "--strict", "--json", code=1)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert lines[-1]["level"] == "error"
    assert lines[-1]["kind"] == "UndeterminedError"
    assert lines[-1]["exit_code"] == 1
    assert not out.exists()
    done = run("impute", path, "-o", out, "--json")
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert {"warning", "info"} == {line["level"] for line in lines}
    assert json.loads(done.stdout)["n_left"] == 2
    done = run("inspect", tmp_path / "none.csv", "--json", code=2)
    assert json.loads(done.stderr)["kind"] == "MissingFileError"


def test_74_files_that_are_no_tables_are_refused_when_named(tmp_path):
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "README.txt").write_text("Sales, by shop.\nAsk Ann, she knows.\n")
    for name in ("_SUCCESS", "README.txt"):
        run("inspect", tmp_path / name, code=1)
    assert "It has: README.txt" in run("inspect", tmp_path, code=1).stderr
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").write_text("x\ty\n5\t2\n")  # text tables alone are read
    done = run("inspect", tmp_path, "--delimiter", "\\t")
    assert "2 are no tables (README.txt, sub/)" in done.stderr


# --------------------------------------------------- 75: files that are no tables
def _zipped(name, data):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, data)
    return file.getvalue()


def _database(tmp_path):
    with sqlite3.connect(tmp_path / "made.db") as database:
        database.execute("CREATE TABLE t (x REAL)")
    return (tmp_path / "made.db").read_bytes()


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.json", b'[{"x": 1, "y": 2}]', "pandas.read_json('{}')"),
        ("a.json", b'{"x": 1}\n{"x": 2}\n', "pandas.read_json('{}', lines=True)"),
        ("a.csv", b'{"columns": ["x"], "data": [[1]]}', "is a JSON file"),
        ("a.db", _database, "pandas.read_sql('SELECT * FROM name_of_table'"),
        ("a.h5", b"\x89HDF\r\n\x1a\n" + bytes(64), "pandas.read_hdf('{}')"),
        ("a.pkl", pickle.dumps({"x": [1]}), "is a pickle"),
        ("a.parquet", b'{"x": 1}', "is a JSON file"),
        ("a.zip", _zipped("a.csv", "x\n1\n"), "unzip '{}'"),
        ("a.npz", _zipped("arr_0.npy", b"\x93NUMPY"), "numpy.load('{}')['arr_0']"),
        ("a.npy", b"\x93NUMPY\1\0" + bytes(64), "numpy.load('{}')"),
        ("a.csv.bz2", b"BZh91AY&SY" + bytes(20), "bunzip2 -k '{}'"),
        (
            "a.tar.gz",
            gzip.compress(bytes(257) + b"ustar" + bytes(300), mtime=0),
            "tar xf '{}'",
        ),
        ("a.json.gz", gzip.compress(b'[{"x": 1}]', mtime=0), "pandas.read_json('{}')"),
        ("a.parquet.gz", gzip.compress(b"PAR1" + bytes(30), mtime=0), "gunzip -k '{}'"),
        ("a.xls", b"<html><table><tr><td>1", "pandas.read_html('{}')[0]"),
        ("a.xlsx", b"PK\x03\x04" + bytes(30), "damaged zip archive or spreadsheet"),
        ("a.pdf", b"%PDF-1.7\n", "is a PDF"),
    ],
)
def test_75_other_formats_are_told_by_their_bytes(tmp_path, name, data, words):
    path = tmp_path / name
    path.write_bytes(data(tmp_path) if callable(data) else data)
    with pytest.raises(FileFormatError) as told:
        a1gm.fit_file(path)
    assert words.format(path) in str(told.value)
    assert words.format(path) in run("inspect", path, code=1).stderr


def test_75_a_database_is_read_by_the_call_that_is_told(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [2.0, nan]})
    with sqlite3.connect(tmp_path / "a.db") as database:
        frame.to_sql("name_of_table", database, index=False)
    with pytest.raises(FileFormatError) as told:
        a1gm.fit_file(tmp_path / "a.db")
    call = str(told.value).partition("In Python: ")[2].partition(". Or")[0]
    fit = eval(call, {"a1gm": a1gm, "pandas": pd, "sqlite3": sqlite3})
    assert fit.impute(frame).iloc[1, 1] == 4.0


# -------------------------------------------------------------- 75: spreadsheets
@pytest.fixture
def book(tmp_path):
    pytest.importorskip("openpyxl")
    path = tmp_path / "sales.xlsx"
    frame = pd.DataFrame(
        {
            "shop": ["A", "B", "C"],
            "opened": pd.to_datetime(["2020-01-01", None, "2022-02-02"]),
            "year": [2020, 2021, 2022],
            "jan": [10, 20, 30.5],
            "feb": [20, None, 61],
        }
    )
    with pd.ExcelWriter(path) as writer:
        frame.to_excel(writer, sheet_name="Sales", index=False, startrow=2, startcol=1)
    return path


def test_75_spreadsheets_are_read(book, tmp_path):
    out = tmp_path / "filled.csv"
    done = run("impute", book, "-o", out)
    assert "column 'year' holds years: taken for names of the rows" in done.stderr
    assert out.read_text().split() == [
        "shop,opened,year,jan,feb",
        "A,2020-01-01,2020,10,20",
        "B,,2021,20,40",
        "C,2022-02-02,2022,30.5,61",
    ]
    assert run("impute", book, "-o", "-", "-q").stdout == out.read_text()
    run("impute", book, "-o", tmp_path / "filled.parquet")
    assert "extension" in run("impute", book, "-o", tmp_path / "o.xlsx", code=2).stderr
    with pytest.warns(RowNamesWarning, match="id="):
        fit = a1gm.fit_file(book)
    assert fit.shape == (3, 2)
    book.rename(tmp_path / "sales.csv")  # the bytes decide
    assert "3 rows, 2 numeric columns" in run("inspect", tmp_path / "sales.csv").stderr


def test_75_cells_of_a_spreadsheet_are_named(tmp_path):
    path = tmp_path / "a.xlsx"
    frame = pd.DataFrame({"x": [4, 2, -3.5], "y": [1, 2, 3.5]})
    frame.to_excel(path, sheet_name="S", index=False)
    words = run("inspect", path, code=1).stderr
    assert "a.xlsx, sheet 'S', row 4, column 'x': -3.5 is negative" in words
    pd.DataFrame({"x": [4, 2, "?"], "y": [1, 2, 3.5]}).to_excel(path, index=False)
    assert "--missing '?'" in run("inspect", path, code=1).stderr
    assert "3 rows" in run("inspect", path, "--missing", "?").stderr
    run("inspect", path, "--missing", "?", "--decimal", ",")  # cells have no marks
    frame.loc[2] = [nan, nan]
    frame.to_excel(path, index=False)
    assert "has no rows" not in run("inspect", path).stderr
    pd.DataFrame({"x": []}).to_excel(path, index=False)
    assert "has a header but no rows" in run("inspect", path, code=1).stderr


def test_75_one_sheet_is_chosen(tmp_path):
    path = tmp_path / "a.xlsx"
    with pd.ExcelWriter(path) as writer:
        for name in ("Jan", "Feb"):
            frame = pd.DataFrame({"x": [4, 2], "y": [1, nan]})
            frame.to_excel(writer, sheet_name=name, index=False)
    words = run("inspect", path, code=1).stderr
    assert "2 sheets with cells in them: 'Jan', 'Feb'. Pass --sheet Jan" in words
    assert "2 rows" in run("inspect", path, "--sheet", "Feb").stderr
    assert "has no sheet 'Mar'" in run("inspect", path, "--sheet", "Mar", code=1).stderr


def test_75_a_damaged_spreadsheet_is_told(book):
    book.write_bytes(book.read_bytes()[:-100])
    assert "spreadsheet" in run("inspect", book, code=1).stderr


# ------------------------------------------- 77: consoles that cannot print UTF-8
@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "cp437"])
@pytest.mark.parametrize(
    "command", ["inspect", "impute", "fit", "assess", "report", "demo", "help"]
)
def test_77_every_command_speaks_plainly(tmp_path, command, encoding):
    (tmp_path / "a.csv").write_text(
        "shop,a,b,c\nA,10,20,\nB,20,,60\nC,30,61,92\nD,,80,119\nE,9,19,31\n"
    )
    outputs = {"impute": "o.csv", "fit": "o", "report": "o.html", "demo": "d"}
    arguments = [command, "a.csv"] if command != "demo" else [command]
    arguments = ["inspect", "--help"] if command == "help" else arguments
    if command in outputs:
        arguments += ["-o", outputs[command]]
    done = run_executable(
        *arguments,
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        encoding=encoding,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    if command == "inspect":
        assert "#" in done.stdout
        assert encoding == "cp437" or "█" not in done.stdout


def test_74_what_is_named_decides_where_filled_files_go(tmp_path):
    folder, one = tmp_path / "parts", tmp_path / "one"
    folder.mkdir(), one.mkdir()
    (folder / "a.csv").write_text("x,y\n1.5,2\n3.5,\n")
    (folder / "b.csv").write_text("x,y\n")  # empty: only one of two is left
    (one / "a.csv").write_text("x,y\n1.5,2\n3.5,\n")
    for source in (folder, one):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            a1gm.impute_file(source, tmp_path / f"{source.name}-filled")
        filled = tmp_path / f"{source.name}-filled" / "a.csv"
        assert filled.read_text().splitlines()[2].startswith("3.5,4.6")


# ------------------------------------------- what people write around their numbers
@pytest.mark.parametrize(
    ("text", "above"),
    [
        ("Sales of 2024\nshop,jan,feb\na,1,2\nb,2,\n", "line 2, the header"),
        ("Sales, all of 2024\nshop,jan,feb\na,1,2\nb,2,\n", "line 2, the header"),
        ("Sales\nof 2024\n\nshop,jan,feb\na,1,2\nb,2,\n", "line 4, the header"),
        ("# made by x\nshop,2023,2024\na,1,2\nb,2,\n", "line 2, the header"),
        ("x\n1,5\n2,5\n", None),  # decimal commas
        ("shop;jan\na;1,x\nb;2,x\n", None),  # another delimiter
        ("a,b\n1,2\nx,y,z\nu,v,w\n", None),  # data above
        ("Sales of 2024,,\nshop,jan,feb\na,1,2\nb,2,\n", "the header"),
    ],
)
def test_a_title_above_the_header(tmp_path, text, above):
    (tmp_path / "a.csv").write_text(text)
    words = run("impute", tmp_path / "a.csv", "-o", "-", code=1).stderr
    advice = f"looks like a title. Delete what is above {above}."
    assert (advice in words) == (above is not None)


def test_a_title_in_a_spreadsheet(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["Sales"], [], ["shop", "jan", "feb"], ["a", 1, 2]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    with pytest.raises(FileFormatError, match="'Sales' looks like a title"):
        a1gm.fit_file(tmp_path / "a.xlsx")


def test_formulas_without_a_value_and_errors_are_counted(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book, path = openpyxl.Workbook(), tmp_path / "a.xlsx"
    book.create_sheet("Notes & more").append(["=1+1"])  # another sheet
    book.active.title = "Sales <1>"
    for row in (
        ["shop", "jan", "feb", "mar"],
        ["a", 1, 2, 3],
        ["b", 2, "=B3*3", 6],
        ["c", "#N/A", "=B2", 9],
    ):
        book.active.append(row)
    book.save(path)
    words = (
        r"a.xlsx, sheet 'Sales <1>': 2 formulas have no computed value \(first: C3; .*"
        r"1 cell shows an error such as #N/A \(first: B4\)\. They count as missing\."
    )
    with pytest.warns(DoubtfulDataWarning, match=words):
        a1gm.fit_file(path, sheet="Sales <1>", on_undetermined="ignore")
    book.active["C3"], book.active["B4"], book.active["C4"] = 6, None, None
    book.save(path)
    a1gm.fit_file(path, sheet="Sales <1>", on_undetermined="ignore")  # no warning


def test_a_computed_formula_has_its_value(tmp_path):
    """As Excel saves it: the value beside the formula, and empty text as a value."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["shop", "jan", "feb"], ["a", 1, "=B2*2"], ["b", 2, "=B3*2"]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    empty = rb"<f>B2\*2</f><v ?(/>|></v>)"  # either, with lxml or without
    with (
        zipfile.ZipFile(tmp_path / "a.xlsx") as before,
        zipfile.ZipFile(tmp_path / "b.xlsx", "w") as after,
    ):
        for name in before.namelist():
            text = re.sub(empty, b"<f>B2*2</f><v>2</v>", before.read(name))
            after.writestr(name, text.replace(b'r="C3"><f>', b'r="C3" t="str"><f>'))
    fit = a1gm.fit_file(tmp_path / "b.xlsx")
    assert fit.row_factor[0] == pytest.approx(3.0)


def test_a_column_of_holes_in_other_words_is_no_text(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("shop,jan,feb\na,1,n/a\nb,2,n/a\nc,4,8\n")
    words = run("impute", path, "-o", "-", code=1).stderr
    assert "line 2, column 'feb': 'n/a' is not a number (2 such cells" in words
    assert "pass --missing n/a." in words
    done = run("impute", path, "-o", "-", "--missing", "n/a")
    assert done.stdout.split()[1] == "a,1,2"
    # Words that no one writes for a hole make it text, as before.
    path.write_text("shop,jan,feb,mar\na,1,low,2\nb,2,low,5\nc,4,8,9\n")
    assert "text, 1 number in it" in run("impute", path, "-o", "-").stderr


def test_what_is_unclear_may_be_left_out(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("shop,Founded Year,jan,feb\na,1990,2,4\nb,1970,3,\nc,2000,4,4\n")
    words = run("impute", path, "-o", "-", code=2).stderr
    assert "--exclude 'Founded Year' if it is neither" in words
    run("impute", path, "-o", "-", "--exclude", "Founded Year")


def test_a_total_below_years_is_told(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("year,jan,feb\n2020,1,2\n2021,2,\nTotal,3,2\n")
    words = run("impute", path, "-o", "-", code=1).stderr
    assert "If the row is a total, delete it. If the column names the rows" in words
    assert "pass --id year." in words
    words = run("impute", path, "-o", "-", "--id", "year").stderr
    assert "row 'Total' looks like the total of the others" in words


@pytest.mark.parametrize("columns", [None, ["p", "q", "s"]])
@pytest.mark.parametrize("more", ["", "y,1,2,4\n"])
def test_text_in_a_column_of_a_later_file_is_a_bad_cell(tmp_path, columns, more):
    first, later = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("shop,p,q,s\na,1,2,3\nb,2,4,7\n")
    later.write_text(f"shop,p,q,s\nz,1,2,x\n{more}")
    with pytest.raises(FileFormatError) as caught:
        a1gm.fit_file([first, later], columns=columns)
    words = str(caught.value)
    assert "b.csv, line 2, column 's': 'x' is not a number (1 such cell" in words
    assert "pass missing=['x']" in words
    leave_out = "pass exclude=['s']" if columns is None else "leave it out of columns="
    assert leave_out in words
    assert "skip_bad=True goes on without the file." in words
    assert a1gm.fit_file([first, later], columns=columns, missing=["x"]).shape[1] == 3
    with pytest.warns(BrokenFilesWarning, match="line 2, column 's'"):
        fit = a1gm.fit_file([first, later], columns=columns, skip_bad=True)
    np.testing.assert_array_equal(fit.row_factor, a1gm.fit_file(first).row_factor)
    done = run("inspect", first, later, "--json", code=1)
    assert "line 2, column 's': 'x'" in done.stderr
    assert "internal error" not in done.stderr


def test_a_typed_later_file_may_be_told_which_column_to_leave_out(tmp_path):
    first, later = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pd.DataFrame({"p": [1.0, 2.0], "q": [2.0, 4.5], "s": [3.0, 7.5]}).to_parquet(first)
    pd.DataFrame({"p": [1.0], "q": [2.5], "s": ["x"]}).to_parquet(later)
    with pytest.raises(NotNumericError, match=r"b.parquet.*pass exclude=\['s'\]"):
        a1gm.fit_file([first, later])
    assert a1gm.fit_file([first, later], exclude=["s"]).shape == (3, 2)
