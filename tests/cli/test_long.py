"""Files with one row per cell, on the command line."""

from __future__ import annotations

import json

import pandas as pd
import polars as pl
import pytest
from support.commands import run

import a1gm

LONG = "--long", "shop,month,sales"
TEXT = """shop,month,sales,note
A,jan,10,x
A,feb,20.50,
B,jan,5,"y, z"
B,feb,,z
C,feb,8,
"""


@pytest.fixture
def long(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text(TEXT)
    return path


@pytest.fixture
def groups(tmp_path):
    path = tmp_path / "groups.csv"
    rows = TEXT.splitlines()
    again = [f"{who},{row}" for who in "PQ" for row in rows[1:]]
    again.append("R,A,jan,,")
    path.write_text("\n".join([f"who,{rows[0]}", *again]) + "\n")
    return path


def test_impute_writes_every_pair_in_the_columns_of_the_input(long):
    done = run("impute", long, "-o", "-", *LONG)
    lines = done.stdout.splitlines()
    before = TEXT.splitlines()
    assert lines[:4] == before[:4]
    assert lines[4] == "B,feb,10.25,z"
    assert lines[5] == before[5]
    assert lines[6].startswith("C,jan,3.90243902439024")
    assert len(lines) == 7
    assert "3 different shop by 2 different month" in done.stderr
    assert "Filled 2 pairs" in done.stderr


def test_only_filled_writes_the_new_pairs(long, tmp_path):
    out = tmp_path / "out.parquet"
    done = run("impute", long, "-o", out, *LONG, "--only-filled", "--json")
    assert json.loads(done.stdout)["n_filled"] == 2
    frame = pl.read_parquet(out)
    assert frame.select("shop", "month").rows() == [("B", "feb"), ("C", "jan")]
    assert frame["sales"].to_list() == pytest.approx([10.25, 160 / 41])
    run("impute", long, "-o", out, "--only-filled", "--overwrite", code=2)


def test_a_typed_file_keeps_its_types(tmp_path):
    path, out = tmp_path / "long.parquet", tmp_path / "out.parquet"
    frame = pl.DataFrame(
        {"year": [2020, 2021, 2020], "site": ["a", "a", "b"], "n": [2, 4, 3]}
    )
    frame.write_parquet(path)
    run("impute", path, "-o", out, "--long", "site,year,n")
    assert pl.read_parquet(out).rows() == [
        (2020, "a", 2.0),
        (2021, "a", 4.0),
        (2020, "b", 3.0),
        (2021, "b", 6.0),
    ]


def test_a_file_in_another_dialect(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("a;b;v\nx;1;1,50\nx;2;3,0\ny;1;2,0\ny;2;?\n")
    options = "--delimiter", ";", "--decimal", ",", "--missing", "?"
    done = run("impute", path, "-o", "-", "--long", "a,b,v", *options)
    assert done.stdout.splitlines()[1:] == ["x;1;1,50", "x;2;3,0", "y;1;2,0", "y;2;4"]


def test_several_files_are_one_long_table(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "1.csv").write_text("a,b,v\nx,p,1\nx,q,2\n")
    (folder / "2.csv").write_text("b,v,a,note\np,3,y,n\n")
    out = tmp_path / "out.csv"
    run("impute", folder, "-o", out, "--long", "a,b,v")
    assert out.read_text().splitlines() == [
        "a,b,v,note",
        "x,p,1,",
        "x,q,2,",
        "y,p,3,n",
        "y,q,6,",
    ]


def test_fit_inspect_assess_and_report(long, tmp_path):
    out = tmp_path / "results"
    run("fit", long, "-o", out, *LONG)
    rows = pd.read_csv(out / "row_factor.csv")
    assert rows["shop"].tolist() == ["A", "B", "C"]
    assert rows["row_factor"].tolist() == pytest.approx([30.5, 15.25, 488 / 41])
    assert a1gm.load(out / "model.a1gm").predict("B", "feb") == pytest.approx(10.25)
    found = json.loads(run("inspect", long, *LONG, "--json").stdout)
    assert (found["n_rows"], found["n_cols"], found["n_missing"]) == (3, 2, 2)
    assert "3 rows × 2 columns" in run("inspect", long, *LONG).stdout
    page = tmp_path / "page.html"
    run("report", long, "-o", page, *LONG)
    assert "jan" in page.read_text()
    big = tmp_path / "big.csv"
    cells = [f"s{i},m{j},{(i + 1) * (j + 2)}" for i in range(6) for j in range(5)]
    big.write_text("\n".join(["shop,month,sales", *cells]) + "\n")
    assert "skill" in json.loads(run("assess", big, *LONG, "--json").stdout)


def test_groups(groups, tmp_path):
    out = tmp_path / "results"
    done = run("fit", groups, "-o", out, *LONG, "--by", "who")
    assert "1 of 3 tables could not be fitted" in done.stderr
    rows = pd.read_csv(out / "row_factor.csv")
    assert rows.columns.tolist() == ["who", "shop", "row_factor", "row_block"]
    assert rows["who"].tolist() == ["P"] * 3 + ["Q"] * 3
    summary = json.loads((out / "fit.json").read_text())
    assert (summary["n_tables"], summary["n_failed"]) == (2, 1)
    assert "observed" in summary["failed"]["R"]
    done = run("impute", groups, "-o", "-", *LONG, "--by", "who")
    lines = done.stdout.splitlines()
    assert lines[4] == "P,B,feb,10.25,z"
    assert lines[11] == "R,A,jan,,"
    assert [line[:7] for line in lines[12:]] == ["P,C,jan", "Q,C,jan"]


def test_pairs_twice(long):
    long.write_text(TEXT + "A,jan,3,\n")
    done = run("impute", long, "-o", "-", *LONG, code=2)
    assert "('A', 'jan') is there twice, in rows 0 and 5" in done.stderr
    assert "--duplicates sum" in done.stderr
    run("fit", long, "-o", long.parent / "out", *LONG, "--duplicates", "sum")


def test_75_a_long_file_is_told_the_option_that_works(long, tmp_path):
    for command in ("impute", "fit", "inspect", "report"):
        out = () if command == "inspect" else ("-o", tmp_path / f"{command}.html")
        out = ("-o", tmp_path / "x.csv") if command == "impute" else out
        done = run(command, long, *out, code=2)
        assert "--long shop,month,sales" in done.stderr
        assert "--columns sales" in done.stderr
    run("inspect", long, "--columns", "sales")


def test_bad_calls(long, tmp_path):
    for options, words in [
        (("--long", "shop,month"), "three columns"),
        (("--long", "shop,month,price"), "no column 'price'"),
        ((*LONG, "--id", "note"), "drop --id"),
        (("--by", "note"), "--by goes with --long"),
    ]:
        done = run("fit", long, "-o", tmp_path / "out", *options, code=2)
        assert words in done.stderr
    assert "--by is for" in run("inspect", long, *LONG, "--by", "note", code=2).stderr
    done = run("nmmf", long, "--y", long, "-o", tmp_path / "out", *LONG, code=2)
    assert "--long and --by are not for nmmf" in done.stderr
    long.write_text(TEXT.replace("B,jan", ",jan"))
    done = run("inspect", long, *LONG, code=2)
    assert "The key 'shop' is missing in row 2" in done.stderr
    long.write_text(TEXT.replace("20.50", "-20.50"))
    assert "line 3" in run("inspect", long, *LONG, code=1).stderr
