"""What the commands say about the tables they open."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import run

HOLES = "shop,jan,feb,mar\nA,1,,\n\nB,,2,\nC,,,\nD,,4,\n"
EMPTY = "Nothing is observed in"
OUTPUTS = {"impute": "b.csv", "fit": "results", "report": "b.html"}


@pytest.mark.parametrize(
    ("text", "options", "code", "words"),
    [
        # What is part of the table is said: numbers may be ids.
        ("id,x,y\n1001,2,1\n1002,,3\n", [], 0, "2 numeric columns (x, y)."),
        ("id,x\n1001,2\n1002,\n", [], 2, "one column left to fit, 'x'; 'id' was"),
        ("n,x\n1001,2\n1002,\n", [], 0, "2 numeric columns (n, x)."),
        (",x,y\nA,1,2\n", [], 0, "Row labels: a column without a name."),
        (
            ",x,y\n7,1,2\n",
            [],
            0,
            "note: a.csv: took '' as row labels, by name",
        ),
        ("3,2,3\n1,2,3\n", [], 1, "If the file has no header, pass --no-header."),
        (",,x\n1,2,3\n", [], 1, "columns 1 and 2 have no name."),
        ("a b c\n1 2 3\n4 5 6\n", [], 1, "Pass --delimiter ' '"),
        ("x,y\n,\n,\n", [], 1, "a.csv: Nothing is observed: every cell"),
        (
            "day,x\n2020-01-01,1\n",
            ["--columns", "day"],
            1,
            "'2020-01-01' is not a number",
        ),
        (
            "day,x\n1,1\n?,2\n",
            ["--columns", "day"],
            1,
            "If the column is not data, leave it out of --columns.",
        ),
    ],
)
def test_messages(tmp_path, monkeypatch, text, options, code, words):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(text)
    assert words in run("inspect", "a.csv", *options, code=code).stderr


@pytest.mark.parametrize("command", ["inspect", "impute", "fit", "report"])
def test_rows_go_by_their_id(csv, tmp_path, command):
    path = csv(HOLES)
    out = [] if command == "inspect" else ["-o", tmp_path / OUTPUTS[command]]
    words = run(command, path, *out).stderr  # the first text column
    out += [] if command == "inspect" else ["--overwrite"]
    assert run(command, path, *out, "--id", "shop").stderr == words
    assert f"{EMPTY} row 'C' and column 'mar':" in words
    assert (
        "3 missing cells are undetermined, the first at row 'A', column 'feb'." in words
    )
    assert "They stay missing; a1gm report lists them." in words
    assert "fit.undetermined" not in words


def test_rows_without_an_id_go_by_their_line(csv):
    path = csv(HOLES)
    words = run("inspect", path, "--exclude", "shop").stderr
    # The blank line counts, as it does in an editor.
    assert f"{EMPTY} line 5 and column 'mar':" in words
    assert "the first at line 2, column 'feb'." in words
    path.write_text(HOLES + ",,,\n" * 9)
    words = run("inspect", path, "--exclude", "shop").stderr
    assert f"{EMPTY} lines 5, 7, 8, 9, 10 and 5 more and column 'mar':" in words


def test_several_ids_and_typed_files(tmp_path):
    table = pa.table(
        {
            "town": ["Cork", "Cork", "Faro"],
            "shop": [1, 2, 1],
            "x": [1.0, None, None],
            "y": [2.0, 3.0, None],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1)
    words = run("inspect", tmp_path / "a.parquet", "--id", "town,shop").stderr
    assert f"{EMPTY} row 'Faro · 1':" in words
    words = run("inspect", tmp_path / "a.parquet", "--exclude", "shop").stderr
    assert f"{EMPTY} row 'Faro':" in words  # a first column of text, as in text files
    options = "--exclude", "town,shop"
    words = run("inspect", tmp_path / "a.parquet", *options).stderr
    assert f"{EMPTY} row 2:" in words


GERMAN = (
    "Umsätze 2024 – Filialen (in €)\n\nFiliale;Ort;Jan;Feb\nNord;Köln;1.234,5;1.100,0\n"
    "Süd;Fürth;980,1;n/a\nOst;Görlitz;450,0;470,5\n"
)


def test_a_messy_file_is_led_through_one_advice_after_the_other(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(GERMAN.replace("\n", "\r\n").encode("cp1252"))
    words = run("inspect", path, code=1).stderr
    assert "('Umsätze 2024 – Filialen (in €)' read as cp1252)" in words
    options = ["--encoding", "cp1252"]
    words = run("inspect", path, *options, code=1).stderr  # not: line 4 is the header
    assert "split by ';': pass --delimiter ';' and --decimal ','." in words
    options += ["--delimiter", ";", "--decimal", ","]
    words = run("inspect", path, *options, code=1).stderr
    assert "looks like a title. Delete what is above line 3, the header." in words
    _, _, rest = GERMAN.partition("\n\n")
    path.write_bytes(rest.encode("cp1252"))
    words = run("inspect", path, *options, code=1).stderr
    assert "pass --thousands '.'. If the column" in words
    options += ["--thousands", "."]
    words = run("inspect", path, *options, code=1).stderr
    assert "pass --missing n/a." in words
    run("inspect", path, *options, "--missing", "n/a")
