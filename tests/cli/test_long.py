"""Files with one row per cell, on the command line."""

from __future__ import annotations

import json
import re
import shlex
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from support.commands import run

import a1gm

LONG = "--long", "shop,month,sales"
BY = pytest.mark.parametrize("by", [[], ["--by", "who"]])
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


def test_impute_writes_every_pair_in_the_columns_of_the_input(long):
    done = run("impute", long, "-o", "-", *LONG)
    lines = done.stdout.splitlines()
    before = TEXT.splitlines()
    assert lines[:4] == before[:4]
    assert lines[4] == "B,feb,10.25,z"
    assert lines[5] == before[5]
    assert lines[6].startswith("C,jan,3.90243902439024")
    assert len(lines) == 7
    assert "3 values of 'shop' × 2 of 'month'" in done.stderr
    assert "Filled 2 pairs" in done.stderr


def test_fit_inspect_assess_and_report(long, tmp_path):
    out = tmp_path / "results"
    run("fit", long, "-o", out, *LONG)
    rows = pd.read_csv(out / "row_factor.csv")
    assert rows["shop"].tolist() == ["A", "B", "C"]
    assert rows["row_factor"].tolist() == pytest.approx([30.5, 15.25, 488 / 41])
    assert a1gm.load(out / "model.a1gm").predict("B", "feb") == pytest.approx(10.25)
    summary = json.loads((out / "fit.json").read_text())
    assert (summary["columns"], summary["col_block"]) == (["jan", "feb"], [0, 0])
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


APART = "shop,month,sales,who\nA,jan,10,p\nA,feb,20,p\nB,mar,5,p\n"


@pytest.mark.parametrize("command", ["inspect", "fit", "impute", "report"])
def test_warnings_of_long_files_name_what_a_command_has(csv, tmp_path, command):
    path = csv(APART)
    names = {"fit": "out", "impute": "out.csv", "report": "out.html"}
    out = ["-o", tmp_path / names[command]] if command in names else []
    words = run(command, path, *out, *LONG, code=None).stderr
    assert "They stay missing; a1gm report lists them." in words
    assert "fit.undetermined" not in words
    assert words.count("missing") == 2 + (command == "impute")  # with the summary
    assert words.count("warning:") == 1


@BY
@pytest.mark.parametrize("command", ["fit", "impute"])
def test_strict_refuses_long_files_with_unknown_cells(tmp_path, command, by):
    path, out = tmp_path / "long.csv", tmp_path / "out.csv"
    path.write_text(APART)
    done = run(command, path, "-o", out, *LONG, *by, "--strict", code=1)
    assert "3 missing cells are undetermined" in done.stderr
    assert "on_undetermined" not in done.stderr
    assert not out.exists()


BAD_GROUPS = """who,shop,month,sales
P,A,jan,10
P,A,feb,20
P,B,jan,5
Q,A,jan,10
Q,A,feb,-20
Q,B,jan,5
R,A,jan,10
R,A,jan,20
S,A,jan,1
S,A,feb,inf
"""


def test_a_bad_value_stops_its_own_group_only(csv, tmp_path):
    """Seen: exit 1 and no file for one negative value in one group."""
    path, out = csv(BAD_GROUPS), tmp_path / "out"
    done = run("fit", path, "-o", out, *LONG, "--by", "who")
    assert "3 of 4 tables could not be fitted." in done.stderr
    rows = (out / "row_factor.csv").read_text()
    assert rows == "who,shop,row_factor,row_block\nP,A,30,0\nP,B,15,0\n"
    summary = json.loads((out / "fit.json").read_text())
    assert (summary["n_tables"], list(summary["failed"])) == (1, ["Q", "R", "S"])
    assert "['A', 'feb'] = -20" in summary["failed"]["Q"]
    assert "pass --negatives allow" in summary["failed"]["Q"]
    assert "pass --duplicates sum" in summary["failed"]["R"]
    place = f"twice, in {path}, line 8 and {path}, line 9 (1 such row in all)"
    assert place in summary["failed"]["R"]
    assert "infinity" in summary["failed"]["S"]
    done = run("impute", path, "-o", "-", *LONG, "--by", "who")
    assert done.stdout == BAD_GROUPS + "P,B,feb,10\n"
    # No group can be fitted.
    path = csv("who,shop,month,sales\nQ,A,jan,-1\nQ,A,feb,2\n")
    run("fit", path, "-o", out, *LONG, "--by", "who", "--overwrite")
    summary = json.loads((out / "fit.json").read_text())
    assert (summary["n_tables"], summary["n_failed"]) == (0, 1)
    assert (out / "row_factor.csv").read_text() == "who,shop,row_factor,row_block\n"


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        # Another dialect.
        (
            "a;b;v\nx;1;1,50\nx;2;3,0\ny;1;2,0\ny;2;?\n",
            "--long a,b,v --delimiter ; --decimal , --missing ?",
            ["x;1;1,50", "x;2;3,0", "y;1;2,0", "y;2;4"],
        ),
        # A pair that has a sum is not missing; one that is empty twice is filled once.
        *(
            (
                "g,r,c,v\np,a,x,\np,a,x,5\np,a,y,10\np,b,x,4\np,b,y,\np,b,y,\n",
                f"--long r,c,v --duplicates sum {more}",
                ["p,a,x,", "p,a,x,5", "p,a,y,10", "p,b,x,4", "p,b,y,8", "p,b,y,"],
            )
            for more in ("", "--by g")
        ),
        # Seen: an internal error, as names were joined.
        (
            "a,b,abplace\nx,p,1\nx,q,2\ny,p,3\ny,q,\n",
            "--long a,b,abplace",
            ["x,p,1", "x,q,2", "y,p,3", "y,q,6"],
        ),
        (
            TEXT,
            "--long shop,month,sales --only-filled --round 1",
            ["B,feb,10.2,z", "C,jan,3.9,"],
        ),
        (
            TEXT,
            "--long shop,month,sales --only-filled --mark",
            ["B,feb,10.25,z,true", None],
        ),
    ],
)
def test_pairs(csv, text, options, expected):
    done = run("impute", csv(text), "-o", "-", *options.split())
    lines = done.stdout.splitlines()[1:]
    assert len(lines) == len(expected)
    for line, words in zip(lines, expected, strict=True):
        assert words in (None, line)
    assert "stay" not in done.stderr


def test_typed_files_and_folders_of_parts(tmp_path):
    path, out = tmp_path / "long.parquet", tmp_path / "out.parquet"
    rows = [(2020, "a", 2), (2021, "a", 4), (2020, "b", 3)]
    pl.DataFrame(rows, schema=["year", "site", "n"], orient="row").write_parquet(path)
    done = run("impute", path, "-o", out, "--long", "site,year,n", "--json")
    assert json.loads(done.stdout)["n_filled"] == 1
    assert pl.read_parquet(out).rows() == [*rows, (2021, "b", 6.0)]
    folder, out = tmp_path / "parts", tmp_path / "out.csv"
    folder.mkdir()
    (folder / "1.csv").write_text("a,b,v\nx,p,1\nx,q,2\n")
    (folder / "2.csv").write_text("b,v,a,note\np,3,y,n\n")
    run("impute", folder, "-o", out, "--long", "a,b,v")
    assert out.read_text() == "a,b,v,note\nx,p,1,\nx,q,2,\ny,p,3,n\ny,q,6,\n"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_whole_numbers_that_are_filled_with_such_stay_integers(tmp_path, ending):
    """Seen: a double column of whole numbers, with --round auto."""
    cells = [(a, b, 3 * a + b) for a in range(4) for b in range(3)][:-1]
    frame = pd.DataFrame(cells, columns=["a", "b", "n"]).astype({"n": "int16"})
    path, out = tmp_path / f"long.{ending}", tmp_path / "out.parquet"
    getattr(frame, f"to_{ending}")(path, index=False)
    run("impute", path, "-o", out, "--long", "a,b,n", "--round", "auto")
    found = pd.read_parquet(out).n
    assert found.dtype == np.int64
    assert found[:11].tolist() == frame.n.tolist()
    frame.assign(n=2.0**80).to_csv(path := tmp_path / "large.csv", index=False)
    run("impute", path, "-o", out, "--overwrite", "--long", "a,b,n", "--round", "auto")
    assert pd.read_parquet(out).n.tolist() == [2.0**80] * 12


def test_intervals_of_pairs_are_those_of_the_wide_table(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.poisson(9, (6, 4)) + 1.0)
    table.iloc[[1, 1, 4], [0, 2, 0]] = np.nan
    path, out = tmp_path / "long.csv", tmp_path / "out.parquet"
    pairs = table.rename_axis("shop").reset_index().melt("shop", None, "month", "sales")
    pairs.dropna().to_csv(path, index=False)
    run("impute", path, "-o", out, *LONG, "--mark", "--interval", "0.9")
    found = pd.read_parquet(out)
    fit = a1gm.fit(table.to_numpy())
    bounds = fit.uncertainty().interval(table.to_numpy(), 0.9)
    new = found[found["sales_filled"]]
    assert len(found) == 24
    assert len(new) == 4
    at = new["shop"].astype(int), new["month"].astype(int)
    for name, expected in zip(["sales_low", "sales_high"], bounds, strict=True):
        np.testing.assert_allclose(new[name], expected[at], rtol=1e-8)
    assert found[~found["sales_filled"]]["sales_low"].isna().all()


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ('my shop,"the, month",n\na,x,5\na,y,6\nb,x,9\n', "'my shop,\"the, month\",n'"),
        (
            "region,shop,month,sales\nn,a,2024-05,\nn,b,2024-05,5\n"
            + "".join(
                f"{region},{shop},2024-0{month},{month}\n"
                for region, shop, month in product("ns", "abc", range(1, 5))
            ),
            "region,shop,month,sales",
        ),
    ],
)
def test_the_advice_for_long_files_can_be_pasted(csv, text, option):
    path = csv(text)
    for command in (("inspect",), ("impute", "-o", "-")):
        done = run(command[0], path, *command[1:], code=None)
        assert f"--long {option}" in done.stderr
    done = run("impute", path, "-o", "-", "--long", *shlex.split(option))
    assert re.search("Filled [1-9]", done.stderr)


def test_errors_and_intervals_of_every_table(tmp_path):
    rng = np.random.default_rng(0)
    cells = pd.MultiIndex.from_product(
        [[*"PQ"], [*"abcde"], [*"xyz"]], names=["by", *"rc"]
    )
    frame = pd.DataFrame({"v": rng.poisson(30, 30) + 1.0}, cells).reset_index()
    frame.loc[[3, 7, 20], "v"] = np.nan
    few = pd.DataFrame([["few", "a", "x", 1.0], ["few", "b", "y", 2.0]])
    frame = pd.concat([frame, few.set_axis(frame.columns, axis=1)])
    path, out = tmp_path / "long.csv", tmp_path / "out"
    frame.to_csv(path, index=False)
    options = "--long", "r,c,v", "--by", "by"
    done = run(
        "impute", path, "-o", out.with_suffix(".csv"), *options, "--interval", "0.9"
    )
    assert "1 of 3 tables have no standard errors" in done.stderr
    found = pd.read_csv(out.with_suffix(".csv"))
    many = a1gm.fit_groups(frame, "by", ["r", "c"], "v", on_undetermined="ignore")
    for key in "PQ":
        own = found[(found["by"] == key) & found["v_low"].notna()]
        filled = many[key].fill_long(interval=0.9)
        assert own["v_low"].tolist() == pytest.approx(filled["lower"].tolist())
        assert own["v_high"].tolist() == pytest.approx(filled["upper"].tolist())
    run("fit", path, "-o", out, *options)
    assert "se" not in pd.read_csv(out / "row_factor.csv")
    run("fit", path, "-o", out, *options, "--errors", "--overwrite")
    for name in ("row", "col"):
        se = pd.read_csv(out / f"{name}_factor.csv").set_index("by")["se"]
        assert se["few"].isna().all()
        at = ["row", "col"].index(name)
        expected = many["Q"].uncertainty().factor_errors()[at]
        assert se["Q"].tolist() == pytest.approx(list(expected))
    sure = json.loads((out / "fit.json").read_text())["uncertainty"]
    total = many["P"].uncertainty().totals("all")
    assert sure["P"]["totals"]["missing"]["se"] == pytest.approx(total.se[0])
    assert "degrees of freedom" in sure["few"]["why_not"]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("se", ["--long", "se,month,sales"]),
        ("se", ["--long", "se,month,sales", "--by", "year"]),
        ("index", ["--long", "index,month,year,sales"]),
    ],
)
def test_a_key_that_is_called_like_a_result_is_refused(tmp_path, name, options):
    """Seen: two columns called se in row_factor.csv."""
    path = tmp_path / "a.csv"
    cells = [f"{i},m{j},2024,{i * j + i % 2}" for i in range(1, 5) for j in range(1, 4)]
    path.write_text("\n".join([f"{name},month,year,sales", *cells]))
    done = run("fit", path, "-o", tmp_path / "out", *options, "--errors", code=2)
    assert f"two columns {name!r}" in done.stderr
    assert "Rename the column of the data" in done.stderr
    assert not (tmp_path / "out").exists()
