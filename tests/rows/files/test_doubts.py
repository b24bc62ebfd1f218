"""Totals in a file: a warning where the name and the sums agree, never a guess."""

import warnings

import pandas as pd
import pytest
from support.commands import run

import a1gm
from a1gm.exceptions import A1gmWarning, DataHintWarning

ROWS = "a,1,2,3,6\nb,2,,6,8\nc,3,6,9,18\n"


def said(path, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", A1gmWarning)
        a1gm.fit_file(path, **options)
    return [str(w.message) for w in caught if w.category is DataHintWarning]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("name", ["Total", "SUM", "Grand total", "row_total", "Summe"])
def test_a_column_that_is_the_sum_of_the_others(tmp_path, name, kind):
    csv, path = tmp_path / "a.csv", tmp_path / f"a.{kind}"
    csv.write_text(f"shop,jan,feb,mar,{name}\n" + ROWS)
    if kind == "parquet":
        pd.read_csv(csv).to_parquet(path)
    (words,) = said(path)
    assert f"a.{kind}: column {name!r} looks like the total of the others" in words
    assert f"exclude=[{name!r}] leaves it out" in words
    assert said(path, exclude=[name]) == []
    assert said(path, columns=["jan", "feb", name]) == []  # it was asked for


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_last_row_that_is_the_sum_of_the_others(tmp_path, kind):
    csv, path = tmp_path / "a.csv", tmp_path / f"a.{kind}"
    csv.write_text("shop,jan,feb,mar,x\n" + ROWS + "Grand Total,6,8,18,32\n")
    if kind == "parquet":
        pd.read_csv(csv).to_parquet(path)
    (words,) = said(path)
    assert "row 'Grand Total' looks like the total of the others" in words
    assert "delete that row to leave it out" in words
    assert len(said(path, batch_rows=1)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "shop,jan,feb,total\na,1,2,30\nb,2,,7\n",  # named so, and no total
        "shop,jan,feb,mar\na,1,2,3\nb,2,5,7\n",  # a total that is not named so
        "shop,jan,feb\na,1,2\nb,2,3\ntotal,7,5\n",
        "shop,jan,feb\na,1,2\nb,2,3\nc,3,5\n",
        "total\n5\n7\n",  # alone
        "shop,jan,total\na,0,0\nb,0,0\ntotal,0,0\n",
        "shop,jan,summer\na,1,1\nb,2,2\n",
    ],
)
def test_no_word_of_what_is_no_total(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_text(text)
    assert said(path) == []


@pytest.mark.parametrize("command", ["fit", "impute", "inspect", "report", "assess"])
def test_the_commands_say_it_once(tmp_path, command):
    path = tmp_path / "a.csv"
    path.write_text(f"shop,jan,feb,mar,Total\n{ROWS}Total,6,8,18,32\n")
    out = {"fit": "o", "impute": "o.csv", "report": "o.html"}.get(command)
    done = run(command, path, *(["-o", tmp_path / out] if out else []))
    words = [line for line in done.stderr.split("\n") if "like the total" in line]
    assert len(words) == 2
    assert words[0].startswith("warning: ")
    assert "of them; --exclude Total leaves it out." in words[0]
    assert "row 'Total' looks like the total" in words[1]
    assert "fitted" not in words[0] + words[1]  # not every command fits


GERMAN = """Filiale;Jan;Feb;Mrz;Apr
F001;1.329;1.201;1.439;1.599
F002;821;;970;1.029
F003;629;578;;833
F004;221;195;239;257
"""


def test_points_that_may_stand_between_thousands(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(GERMAN)
    (words,) = said(path, delimiter=";")
    assert "a.csv: every number with a point has three digits behind it" in words
    assert "(1.329, 1.201, 1.439), and the others are below 1,000" in words
    assert (
        "If they do, pass decimal=',' and thousands='.'; if not, decimal='.'" in words
    )
    assert said(path, delimiter=";", batch_rows=1) == [words]
    # Either advice can be followed.
    assert said(path, delimiter=";", decimal=".") == []
    assert said(path, delimiter=";", decimal=",", thousands=".") == []


def test_commas_that_may_stand_between_thousands(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(GERMAN.replace(".", ","))
    (words,) = said(path, delimiter=";", decimal=",")
    assert "every number with a comma has three digits behind it (1,329, " in words
    assert "pass thousands=',' and drop decimal=','; if not, thousands='.'" in words
    assert said(path, delimiter=";", thousands=",") == []
    assert said(path, delimiter=";", decimal=",", thousands=".") == []


def test_points_between_thousands_of_files_and_of_long_tables(tmp_path):
    header, *rows = GERMAN.splitlines()
    for k, row in enumerate(rows):  # none of them alone tells
        (tmp_path / f"{k}.csv").write_text(f"{header}\n{row}\n")
    (words,) = said(tmp_path, delimiter=";")
    assert "the points may stand between thousands" in words
    path = tmp_path / "long.csv"
    sales = ["1.329", "980", "2.001"]
    cells = [f"s{i},m{j},{text}" for i in range(2) for j, text in enumerate(sales)]
    path.write_text("\n".join(["shop,month,sales", *cells]))
    done = run("inspect", path, "--long", "shop,month,sales")
    assert done.stderr.count("the points may stand between thousands") == 1
    assert (
        "pass --decimal ',' and --thousands '.'; if not, --decimal '.'" in done.stderr
    )


@pytest.mark.parametrize(
    "cells",
    [
        ["1.329", "2.500", "0.821", "970", "5"],  # below one
        ["1.329", "2.500", "1.5", "970", "5"],  # another number of digits
        ["1.329", "2.500", "1.125", "1.000", "2.000"],  # all of one kind
        ["1.329", "2.500", "1.125", "1000", "970"],  # a thousand without a mark
        ["1.329", "2.500", "970", "5", "7"],  # only two
        ["01.329", "2.500", "1.125", "5", "7"],
        ["1329.125", "2.500", "1.125", "5", "7"],
        ["970", "5", "7", "8", "9"],
    ],
)
def test_no_word_of_points_that_are_decimal(tmp_path, cells):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["shop,jan", *(f"s,{cell}" for cell in cells)]))
    assert said(path) == []


def test_only_the_numbers_of_the_table_count(tmp_path):
    path = tmp_path / "a.csv"
    rows = ["1.329,1.5,820", "1.201,1.5,1000", "1.439,1.5,9999", "1.599,1.5,5"]
    path.write_text("\n".join(["x,y,z", *rows]))
    assert said(path) == []
    assert len(said(path, columns=["x", "z"], missing=["9999", "1000"])) == 1


@pytest.mark.parametrize("kind", ["parquet", "xlsx"])
def test_numbers_of_typed_files_have_no_marks(tmp_path, kind):
    path = tmp_path / f"a.{kind}"
    frame = pd.DataFrame({"x": [1.329, 1.201, 1.439], "y": [820, 970, 5]})
    frame.to_parquet(path) if kind == "parquet" else frame.to_excel(path, index=False)
    assert said(path) == []
