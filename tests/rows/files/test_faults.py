"""Cells that are numbers in another notation, and what to do about them."""

import gzip
import io
import pickle
import re
import shlex
import zipfile

import pyarrow as pa
import pytest
from pyarrow import feather
from support.commands import run

import a1gm
from a1gm._rows.files.faults import marks_advice
from a1gm._rows.files.source import TableOptions
from a1gm._rows.hints import sign_remedy
from a1gm.exceptions import (
    A1gmError,
    FileFormatError,
    NotNumericError,
    ParameterError,
)


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("2.000,5", {}, "decimal=',' and thousands='.'"),
        ("2.000,5", {"decimal": ","}, "thousands='.'"),
        ("2.000", {"decimal": ","}, "decimal='.', or thousands='.'"),
        ("1,234", {}, "decimal=',', or thousands=','"),
        ("1.234.567", {}, "decimal=',' and thousands='.'"),
        ("1,5", {"thousands": ","}, "decimal=','"),
        ("1,234.5", {}, "thousands=','"),
        ("2 000,5", {}, "decimal=',' and thousands=' '"),
        ("2 000", {"decimal": ","}, "thousands=' '"),
        *((word, {}, None) for word in ("?", "-", "n/a", "1.2.3", "12,34,5", "7 %")),
    ],
)
def test_the_advice_names_the_options(text, options, words):
    advice = marks_advice(text, TableOptions(**options))
    expected = f"If it is a number, pass {words}."
    assert advice is None if words is None else str(A1gmError(advice)) == expected


OFF, FRONT = "take the sign off", "write it as -5"


@pytest.mark.parametrize(
    ("token", "words"),
    [
        *((token, OFF) for token in ("$1,200", "€ 5,00", "12 %", "5%", "-$5", "$-5")),
        *((token, OFF) for token in ("1.200,50 €", "1\u202f200,50\u00a0€", "1 200 kr")),
        *((token, OFF) for token in ("EUR 5", "US$5", "£5.00", "1'329 CHF", "5 zł")),
        *((token, FRONT) for token in ("(5)", "5-", "(5.00)", "($5)", "5,00-")),
        *((token, None) for token in ("Q1", "north", "1-2", "()", "-", "%", "5", "")),
        *((token, None) for token in ("2020-01-01", "10:30", "A", "5 apples", "12/5")),
    ],
)
def test_numbers_with_a_sign(token, words):
    said = sign_remedy(token)
    assert said is None if words is None else words in str(said)


@pytest.mark.parametrize("cell", ["$5", "12 %", "(5)", "5-"])
def test_a_table_of_numbers_with_signs(tmp_path, cell):
    path = tmp_path / "a.csv"
    path.write_text(f"shop,jan,feb\na,{cell},{cell}\nb,{cell},\n")
    with pytest.raises(NotNumericError, match="has no number column"):
        a1gm.fit_file(path)
    path.write_text(f"shop,jan,feb\na,{cell},7\nb,8,\n")
    with pytest.raises(FileFormatError, match="is not a number") as caught:
        a1gm.fit_file(path)
    assert f"In the file, {sign_remedy(cell)}" in str(caught.value)


@pytest.mark.parametrize("mark", [" ", "'", "’", "\u00a0", "\u202f"])
def test_the_command_takes_the_mark_that_it_advises(tmp_path, mark):
    path = tmp_path / "a.csv"
    path.write_text(f"shop,jan,feb\na,1{mark}329,820\nb,970,\n", "utf-8")
    refused = run("inspect", path, code=1)
    option = re.search(r"pass (--thousands .*?)\. If", refused.stderr)
    assert option is not None, refused.stderr
    run("inspect", path, *shlex.split(option[1]))


def _zipped(name, data):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, data)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.json", b'[{"x": 1, "y": 2}]', "read it by pandas.read_json"),
        ("a.csv", b'{"columns": ["x"], "data": [[1]]}', "is a JSON file"),
        ("a.db", b"SQLite format 3\0", "pandas.read_sql"),
        ("a.h5", b"\x89HDF\r\n\x1a\n" + bytes(64), "pandas.read_hdf"),
        ("a.pkl", pickle.dumps({"x": [1]}), "is a pickle"),
        ("a.parquet", b'{"x": 1}', "is a JSON file"),
        ("a.zip", _zipped("a.csv", "x\n1\n"), "is a zip archive, not a table file"),
        ("a.npz", _zipped("arr_0.npy", b"\x93NUMPY"), "numpy.load"),
        ("a.npy", b"\x93NUMPY\1\0" + bytes(64), "numpy.load"),
        ("a.csv.bz2", b"BZh91AY&SY" + bytes(20), "is compressed, not a table file"),
        (
            "a.tar.gz",
            gzip.compress(bytes(257) + b"ustar" + bytes(300), mtime=0),
            "is a tar archive, not a table file",
        ),
        ("a.json.gz", gzip.compress(b'[{"x": 1}]', mtime=0), "pandas.read_json"),
        ("a.parquet.gz", gzip.compress(b"PAR1" + bytes(30), mtime=0), "is damaged"),
        ("a.xls", b"<html><table><tr><td>1", "pandas.read_html"),
        ("a.xlsx", b"PK\x03\x04" + bytes(30), "damaged zip archive or spreadsheet"),
        ("a.pdf", b"%PDF-1.7\n", "is a document or a picture"),
    ],
)
def test_other_formats_are_recognised_by_their_bytes(tmp_path, name, data, words):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(FileFormatError) as caught:
        a1gm.fit_file(path)
    assert words in str(caught.value)


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


@pytest.mark.parametrize("paths", [None, 3, [None], b"a.csv"])
def test_what_is_no_path(paths):
    with pytest.raises(ParameterError, match="Pass a path or a list of paths, got"):
        a1gm.fit_file(paths)


@pytest.mark.parametrize("encoding", ["rot13", "hex", "undefined", "a\0b", None])
def test_encodings_that_are_not_of_text(encoding):
    with pytest.raises(ParameterError, match="Unknown encoding"):
        a1gm.fit_file("a.csv", encoding=encoding)


def test_marks_of_wide_encodings(tmp_path):
    path = tmp_path / "a.csv"
    for wide in ("utf-16", "utf-32"):
        path.write_text("a,b\n1,2\n2,\n", encoding=wide)
        with pytest.raises(FileFormatError, match=f"encoding='{wide}'"):
            a1gm.fit_file(path)
        assert a1gm.fit_file(path, encoding=wide).shape == (2, 2)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(FileFormatError, match="is not punycode text"):
        a1gm.fit_file(path, encoding="punycode")


def test_a_unicode_minus_is_a_minus(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n2,\u22125\n3,4\n", encoding="utf-8")
    with pytest.raises(FileFormatError, match="write it as -5 to have numbers"):
        a1gm.fit_file(path)


def test_a_name_that_is_not_utf8(tmp_path):
    path = tmp_path / "a.feather"
    feather.write_feather(pa.table({"xxxx": [1.0]}), path, compression="uncompressed")
    path.write_bytes(path.read_bytes().replace(b"xxxx", b"x\xff\xfex"))
    with pytest.raises(FileFormatError, match="is damaged"):
        a1gm.fit_file(path)
