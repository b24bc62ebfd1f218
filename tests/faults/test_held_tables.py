"""Tables as people hold them: other formats, plain consoles, words among numbers."""

import gzip
import io
import os
import pickle
import sqlite3
import zipfile

import numpy as np
import pandas as pd
import pytest
from support.commands import run, run_executable

import a1gm
from a1gm.exceptions import (
    FileFormatError,
)

nan = np.nan


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


def test_a_column_of_holes_in_other_words_is_no_text(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("shop,jan,feb\na,1,n/a\nb,2,n/a\nc,4,8\n")
    words = run("impute", path, "-o", "-", code=1).stderr
    assert "line 2, column 'feb': 'n/a' is not a number" in words
    assert "pass --missing n/a." in words
    done = run("impute", path, "-o", "-", "--missing", "n/a")
    assert done.stdout.split()[1] == "a,1,2"


def test_a_total_below_years_is_told(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("year,jan,feb\n2020,1,2\n2021,2,\nTotal,3,2\n")
    words = run("impute", path, "-o", "-").stderr
    assert "row 'Total' looks like the total of the others" in words
