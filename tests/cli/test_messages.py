"""What the commands say about files that are a mess."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.commands import run


@pytest.mark.parametrize(
    ("text", "options", "code", "words"),
    [
        # What is part of the table is said: numbers may be ids.
        ("id,x\n1001,2\n1002,\n", [], 0, "2 numeric columns (id, x)."),
        (",x,y\nA,1,2\n", [], 0, "untouched: a column without a name."),
        ("x,p\n1,12%\n2,3%\n", [], 0, "p (text such as '12%': take the sign off"),
        ("x,p\n1,$ 12.50\n2,\n", [], 0, "p (text such as '$ 12.50': take the"),
        ("x,p\n1,12 EUR\n2,\n", [], 0, "p (text such as '12 EUR': take the"),
        (
            "4.5,2,3\n1,2,3\n",
            [],
            0,
            "Line 1 of a.csv was taken for the header",
        ),
        ("3,2,3\n1,2,3\n", [], 1, "If the file has no header, add one"),
        (",,x\n1,2,3\n", [], 1, "columns 1 and 2 have no name."),
        ("a b c\n1 2 3\n4 5 6\n", [], 1, "Pass --delimiter ' '"),
        ("my value\n1 200\n3 400\n", [], 1, "Its space groups thousands"),
        ("x,y\n,\n,\n", [], 1, "a.csv: nothing is observed, every cell"),
        (
            "day,x\n2020-01-01,1\n",
            ["--columns", "day"],
            1,
            "'2020-01-01' is not a number, and the column has no other numbers. Leave "
            "it out of --columns.",
        ),
        (
            "day,x\n1,1\n?,2\n",
            ["--columns", "day"],
            1,
            "If the column is not part of the table, leave it out of --columns.",
        ),
    ],
)
def test_messages(tmp_path, monkeypatch, text, options, code, words):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(text)
    assert words in run("inspect", "a.csv", *options, code=code).stderr


@pytest.mark.parametrize("header", ["2020,2021,2022", "0,1,2", "jan,feb,mar"])
def test_numbers_that_count_are_names(tmp_path, header):
    path = tmp_path / "a.csv"
    path.write_text(header + "\n1,2,3\n")
    assert "header" not in run("inspect", path).stderr


def test_one_row_and_one_column_are_singular(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n")
    assert "1 row × 1 column\n" in re.sub(" +\n", "\n", run("inspect", path).stdout)


def test_only_columns_with_filled_cells_are_counted(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y,z\n1,2,\n2,,\n,,\n")
    done = run("impute", path, "-o", tmp_path / "b.csv", "--json")
    assert "Filled 1 cell in 1 column;" in done.stderr
    assert json.loads(done.stdout)["columns_filled"] == ["y"]
