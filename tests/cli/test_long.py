"""Files with one row per cell, on the command line."""

from __future__ import annotations

import json
import shlex

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
    rows = [(2020, "a", 2), (2021, "a", 4), (2020, "b", 3)]
    pl.DataFrame(rows, schema=["year", "site", "n"], orient="row").write_parquet(path)
    run("impute", path, "-o", out, "--long", "site,year,n")
    assert pl.read_parquet(out).rows() == [*rows, (2021, "b", 6.0)]


def test_a_file_in_another_dialect(csv):
    path = csv("a;b;v\nx;1;1,50\nx;2;3,0\ny;1;2,0\ny;2;?\n")
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
    assert out.read_text() == "a,b,v,note\nx,p,1,\nx,q,2,\ny,p,3,n\ny,q,6,\n"


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


def test_bad_calls(long, tmp_path):
    for options, words in [
        (("--long", "shop,month"), "three different columns"),
        (("--long", "shop,month,price"), "no column 'price'"),
        ((*LONG, "--id", "note"), "drop --id"),
        (("--by", "note"), "--by needs --long"),
        (("--long", "shop,month,shop"), "three different columns"),
        ((*LONG, "--by", "shop"), "three different columns"),
    ]:
        done = run("fit", long, "-o", tmp_path / "out", *options, code=2)
        assert words in done.stderr
    long.write_text(TEXT.replace("B,jan", ",jan"))
    done = run("inspect", long, *LONG, code=2)
    assert f"The key 'shop' is missing in {long}, line 4" in done.stderr
    long.write_text(TEXT.replace("20.50", "-20.50"))
    assert "line 3" in run("inspect", long, *LONG, code=1).stderr


@pytest.fixture
def many_pairs(tmp_path):
    """Whole numbers, two pairs without a row and one without a value."""
    path = tmp_path / "many.csv"
    cells = {
        (i, j): i * j * 3 + (i + j * j) % 5 for i in range(1, 7) for j in range(1, 5)
    }
    del cells[2, 3], cells[5, 1]
    lines = [f"s{i},m{j},{n}" for (i, j), n in cells.items()]
    lines[4] = lines[4].rpartition(",")[0] + ","  # s2, m1
    path.write_text("\n".join(["shop,month,sales", *lines]) + "\n")
    return path


def wide(path):
    return pd.read_csv(path).pivot_table("sales", "shop", "month", dropna=False)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_digits_marks_and_intervals_of_pairs(many_pairs, tmp_path, kind):
    out = tmp_path / f"out.{kind}"
    options = "--digits", "1", "--mark", "--interval", "0.9"
    run("impute", many_pairs, "-o", out, *LONG, *options)
    read = pd.read_csv if kind == "csv" else pd.read_parquet
    found = read(out).set_index(["shop", "month"])
    assert len(found) == 24
    new = found[found["sales_filled"]]
    assert sorted(new.index) == [("s2", "m1"), ("s2", "m3"), ("s5", "m1")]
    table = wide(many_pairs)
    fit = a1gm.fit(table)
    bounds = fit.uncertainty().interval(table, 0.9)
    for name, expected in zip(
        ["sales", "sales_low", "sales_high"], (fit.impute(table), *bounds), strict=True
    ):
        for pair, value in new[name].items():
            assert value == pytest.approx(round(expected.loc[pair], 1), rel=1e-8)
    assert found[~found["sales_filled"]]["sales_low"].isna().all()
    done = run("impute", many_pairs, "-o", "-", *LONG, "--round", "auto")
    assert all(line.rpartition(",")[2].isdigit() for line in done.stdout.split()[1:])


def test_what_pairs_cannot_have_is_refused_with_what_to_do(many_pairs, groups):
    done = run("impute", groups, "-o", "-", *LONG, "--by", "who", "--mark")
    assert done.stdout.splitlines()[0].endswith("note,sales_filled")
    options = "--by", "who", "--interval", "0.9"
    done = run("impute", groups, "-o", "-", *LONG, *options, code=2)
    assert "--interval and --by cannot be combined" in done.stderr
    done = run("impute", many_pairs, "-o", "-", *LONG, "--model", "m.a1gm", code=2)
    assert "a1gm.load(model).predict(frame)" in done.stderr
    text = many_pairs.read_text().replace("shop,", "sales_low,")
    many_pairs.write_text(text)
    options = "--long", "sales_low,month,sales", "--interval", "0.9"
    done = run("impute", many_pairs, "-o", "-", *options, code=2)
    assert "already has a column 'sales_low', which --interval would add" in done.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("shop,month,sales\n1,1,5\n1,2,6\n2,1,10\n3,2,9\n", "--long shop,month,sales."),
        (
            "site,year,n\n"
            + "".join(f"{k % 5},{2020 + k // 5},{k}\n" for k in range(14)),
            "--long site,year,n.",
        ),
        (
            "user,item,rating\n"
            + "".join(f"{k},{k % 7},5\n{k},9,4\n" for k in range(30)),
            "--long user,item,rating.",
        ),
        (
            'my shop,"the, month",n\na,x,5\na,y,6\nb,x,9\n',
            "--long 'my shop,\"the, month\",n'.",
        ),
    ],
)
def test_a_long_file_is_told_an_option_that_can_be_pasted(csv, text, words):
    path = csv(text)
    done = run("impute", path, "-o", "-", code=None)
    assert words in done.stderr
    option = shlex.split(words.rstrip(".;"))
    assert run("impute", path, "-o", "-", *option).stdout.count("\n") > text.count("\n")


def test_a_pair_with_a_sum_is_not_said_to_stay_missing(csv):
    path = csv("r,c,v\na,x,\na,x,5\na,y,10\nb,x,4\nb,y,\nb,y,\n")
    long = "--long", "r,c,v", "--duplicates", "sum"
    done = run("impute", path, "-o", "-", *long)
    assert "missing" not in done.stderr
    assert "Filled 1 pair." in done.stderr
    assert done.stdout.splitlines()[1:3] == ["a,x,", "a,x,5"]


def test_names_are_taken_as_they_are_written(long):
    long.write_text(TEXT.replace("month", " month", 1))
    words = run("inspect", long, *LONG, code=2).stderr
    assert "no column 'month'. " in words
    assert "Did you mean ' month'?" in words
    run("inspect", long, "--long", "shop, month,sales")


def test_names_and_rows_of_long_files_in_messages(long, tmp_path):
    done = run("fit", long, "-o", tmp_path / "o", *LONG, "--by", "noet", code=2)
    assert "Did you mean 'note'?" in done.stderr
    long.write_text(TEXT.replace("A,feb", "\nA,feb") + "A,jan,3,\n")
    done = run("impute", long, "-o", "-", *LONG, code=2)
    lines = f"in {long}, line 2 and {long}, line 8 (1"
    assert lines in done.stderr
    (tmp_path / "parts").mkdir()
    long.rename(tmp_path / "parts" / "1.csv")
    (tmp_path / "parts" / "2.csv").write_text("shop,month,sales,note\n,jan,3,\n")
    done = run("impute", tmp_path / "parts", "-o", "-", *LONG, code=2)
    assert "The key 'shop' is missing in " in done.stderr
    assert "2.csv, line 2 (1 in all)" in done.stderr


APART = "shop,month,sales,who\nA,jan,10,p\nA,feb,20,p\nB,mar,5,p\n"


@pytest.mark.parametrize("command", ["inspect", "fit", "impute", "report", "assess"])
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


def test_pairs_twice_in_a_group_are_named_by_their_lines(groups, tmp_path):
    groups.write_text(groups.read_text() + "Q,A,jan,3,\n")
    out = tmp_path / "o"
    done = run("fit", groups, "-o", out, *LONG, "--by", "who")
    place = f"twice, in {groups}, line 7 and {groups}, line 13 (1 such row in all)"
    assert place in done.stderr
    assert "many" not in done.stderr
    assert place in json.loads((out / "fit.json").read_text())["failed"]["Q"]


@pytest.mark.parametrize(
    "options",
    [LONG, ("--columns", "sales"), ("--id", "shop"), ("--exclude", "shop")],
)
def test_another_delimiter_is_named_before_columns_that_are_absent(csv, options):
    path = csv("shop;month;sales\nA;jan;1\nA;feb;2\nB;jan;3\n")
    words = run("inspect", path, *options, code=1).stderr
    assert "every row is split by ';'. Pass --delimiter ';'." in words


def test_a_value_column_of_text_gets_advice_that_can_be_followed(long, tmp_path):
    name, needed = "--long", "column that --long names as the value."
    words = run("inspect", long, name, "shop,month,note", code=1).stderr
    assert f"Numbers are needed in the {needed}" in words
    long.write_text(TEXT.replace("20.50", "?"))
    words = run("inspect", long, *LONG, code=1).stderr
    assert f"pass --missing '?'. Numbers are needed in the {needed}" in words
    typed = tmp_path / "long.parquet"
    pl.read_csv(long).write_parquet(typed)
    words = run("inspect", typed, name, "shop,month,note", code=1).stderr
    assert f"not numbers. Numbers are needed in the {needed}" in words


def test_text_in_a_column_of_a_model_gets_advice_that_can_be_followed(tmp_path):
    path, out = tmp_path / "a.csv", tmp_path / "o"
    path.write_text("x,y\n4,2\n2,5\n3,7\n")
    run("fit", path, "-o", out)
    path.write_text("x,y\n4,?\n2,5\n3,7\n")
    model = out / "model.a1gm"
    words = run("impute", path, "-o", "-", "--model", model, code=1).stderr
    assert "--columns" not in words
    assert "Numbers are needed in the column that the fit has." in words


@BY
def test_a_pair_that_is_empty_twice_gets_its_value_once(csv, by):
    path = csv(
        "who,shop,month,sales\np,A,jan,10\np,A,feb,20\np,B,jan,5\np,B,feb,\np,B,feb,\n"
    )
    options = *LONG, *by, "--duplicates", "sum"
    lines = run("impute", path, "-o", "-", *options, "--mark").stdout.splitlines()
    assert lines[-2:] == ["p,B,feb,10,true", "p,B,feb,,false"]  # their sum is 10
    done = run("impute", path, "-o", "-", *options, "--only-filled")
    assert done.stdout.splitlines()[1:] == ["p,B,feb,10"]
    assert "Filled 1 pair" in done.stderr


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


def test_a_bad_value_stops_its_own_group_only(tmp_path):
    """Seen: exit 1 and no file for one negative value in one group."""
    path, out = tmp_path / "a.csv", tmp_path / "out"
    path.write_text(BAD_GROUPS)
    done = run("fit", path, "-o", out, *LONG, "--by", "who")
    assert "3 of 4 tables could not be fitted." in done.stderr
    summary = json.loads((out / "fit.json").read_text())
    assert (summary["n_tables"], list(summary["failed"])) == (1, ["Q", "R", "S"])
    assert "['A', 'feb'] = -20" in summary["failed"]["Q"]
    assert "pass --negatives allow" in summary["failed"]["Q"]
    assert "pass --duplicates sum" in summary["failed"]["R"]
    assert "infinity" in summary["failed"]["S"]
    done = run("impute", path, "-o", "-", *LONG, "--by", "who")
    assert done.stdout == BAD_GROUPS + "P,B,feb,10\n"


def test_when_no_group_can_be_fitted_the_summary_says_why(tmp_path):
    path, out = tmp_path / "a.csv", tmp_path / "out"
    path.write_text("who,shop,month,sales\nQ,A,jan,-1\nQ,A,feb,2\n")
    run("fit", path, "-o", out, *LONG, "--by", "who")
    summary = json.loads((out / "fit.json").read_text())
    assert (summary["n_tables"], summary["n_failed"]) == (0, 1)
    assert (out / "row_factor.csv").read_text() == "who,shop,row_factor,row_block\n"


def test_a_value_called_like_both_keys_and_more(csv):
    """Seen: an internal error of --long a,b,abplace."""
    path = csv("a,b,abplace\nx,p,1\nx,q,2\ny,p,3\ny,q,\n")
    done = run("impute", path, "-o", "-", "--long", "a,b,abplace")
    assert done.stdout.splitlines()[-1] == "y,q,6"


def three_keys(*, same_shops: bool) -> pd.DataFrame:
    """Regions with shops, whose names are the same in each or not."""
    rows = [
        (region, shop if same_shops else region + shop, month, float(i + j + 1))
        for i, region in enumerate(["north", "south"])
        for shop in "abc"
        for j, month in enumerate(["2024-01", "2024-02", "2024-03", "2024-04"])
    ]
    return pd.DataFrame(rows, columns=["region", "shop", "month", "sales"])


@pytest.mark.parametrize(
    ("same_shops", "options"),
    [(True, "--long shop,month,sales --by region"), (False, "--long shop,month,sales")],
)
def test_the_commands_name_the_options_and_nothing_else(tmp_path, same_shops, options):
    frame = three_keys(same_shops=same_shops)
    frame.loc[0, "sales"] = None
    path = tmp_path / "long.csv"
    frame.to_csv(path, index=False)
    for command in ("inspect", "assess"):
        done = run(command, path, code=None)
        assert f"if it has one row per cell, fit it with {options}" in done.stderr
    done = run("impute", path, "-o", "-", *options.split())
    assert "Filled 1 pair" in done.stderr
