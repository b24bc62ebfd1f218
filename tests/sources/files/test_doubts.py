"""Totals in a file: a warning where the name and the sums agree, never a guess."""

import warnings

import pandas as pd
import pytest
from support.commands import run

import a1gm
from a1gm.exceptions import A1gmWarning, DoubtfulDataWarning

ROWS = "a,1,2,3,6\nb,2,,6,8\nc,3,6,9,18\n"


def said(path, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", A1gmWarning)
        a1gm.fit_file(path, **options)
    return [str(w.message) for w in caught if w.category is DoubtfulDataWarning]


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
