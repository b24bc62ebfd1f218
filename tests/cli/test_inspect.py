"""``a1gm inspect`` and ``a1gm assess``."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from support.commands import run

import a1gm

nan = np.nan


def test_inspect_prints_what_there_is(sales):
    done = run("inspect", sales, "--id", "shop")
    for word in ("4 rows × 3 columns", "2 of 12 cells (16.7%)", "mar", "feb", "█"):
        assert word in done.stdout
    for words in ("fitted +jan, feb, mar", "row labels +shop", "as they are +opened"):
        assert re.search(words, done.stdout)


def test_a_table_that_cannot_be_fitted_is_shown_all_the_same(csv):
    path = csv("shop,x,y,z\nA,,5,6\nB,7,,8\nC,9,-6,\n")
    done = run("inspect", path, "--negatives", "allow", code=1)
    assert re.search("fitted +x, y, z", done.stdout)
    assert "no closed form" in done.stderr


def test_cells_below_zero_do_not_hide_the_columns(csv):
    done = run("inspect", csv("shop,x,y\nA,1,5\nB,-7,\n"), code=1)
    assert re.search("fitted +x, y", done.stdout)
    assert "--negatives allow" in done.stderr


def test_a_column_without_a_name_has_words(csv):
    done = run("inspect", csv("shop,x,\nA,1,5\nB,7,\nC,2,9\n"))
    assert "most missing  a column without a name 33.3%" in done.stdout


def test_inspect_for_programs(sales):
    done = run("inspect", sales, "--json")
    found = json.loads(done.stdout)
    pattern = a1gm.MissingPattern(
        np.array([[10, 20, 30], [20, nan, 60], [30, 60, nan], [40, 80, 120]])
    )
    expected = {
        "n_rows": 4,
        "n_cols": 3,
        "n_missing": 2,
        "n_row_patterns": 3,
        "n_col_patterns": 3,
        "is_complete": False,
        "is_grid_like": False,
        "is_nested": pattern.is_nested,
        "has_closed_form": pattern.has_closed_form,
        "core_shape": list(pattern.core_shape),
        "n_blocks": 1,
        "n_undetermined": 0,
        "columns": {
            "fitted": ["jan", "feb", "mar"],
            "row labels": ["shop", "opened"],
            "kept as they are": [],
        },
    }
    assert found == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x,y,z\n1,2,3\n1,2,\n1,,\n", "staircase"),
        ("x,y\n1,\n,2\n", "2: their scales cannot be compared"),
        ("x,y\n3,4\n0,0\n2,5\n", "1: all rows and columns with a cell above 0 can be"),
        ("x,y\n0,0\n0,0\n", "0: no cell is above 0"),
    ],
)
def test_inspect_names_the_shape_and_the_blocks(csv, text, words):
    path = csv(text)
    assert words in run("inspect", path).stdout


def test_one_row_and_one_column_are_singular(csv):
    path = csv("x\n1\n")
    assert "1 row × 1 column\n" in re.sub(" +\n", "\n", run("inspect", path).stdout)


SALES = "shop,a,b,c,d\n" + "".join(
    f"s{i},{10 * i},{21 * i},{29 * i + 1},{'' if i == 3 else 40 * i}\n"
    for i in range(1, 12)
)


def test_assess_reads_the_table_and_does_not_fit_it(csv):
    lines = SALES.replace("d\n", "d,e\n").replace("\ns", ",\ns").rstrip()
    path = csv(lines.replace("d,e,", "d,e") + ",\nt,,,,,7\n", "a.csv")
    done = run("assess", path)
    assert "warning" not in done.stderr  # of cells that a fit would not know
    assert "12 rows, 5 numeric columns (a, b, c, d, e)" in done.stderr
    weights = csv("a,b,c,d,e\n1,1,1,2,1\n", "weights.csv")
    weighted = run("assess", path, "--weights", weights, "--json").stdout
    X = pd.read_csv(path, index_col="shop")
    expected = a1gm.assess(X, random_state=0, weights=[[1, 1, 1, 2, 1]])
    assert json.loads(weighted)["skill"] == expected.skill
    run("assess", csv("a,b\n1,-2\n3,4\n", "b.csv"), code=1)


def test_the_verdict_comes_first(tmp_path):
    (tmp_path / "a.csv").write_text(SALES)
    words = run("assess", tmp_path / "a.csv").stdout
    assert words.startswith("Rank 1 is better than the overall mean: on ")
    summary = json.loads(run("assess", tmp_path / "a.csv", "--json").stdout)
    assert summary["skill"] > 0.5
    assert summary["scores"]["rank 1"]["deviance"] >= 0.0
    assert words.startswith(summary["verdict"])
    last = run("assess", tmp_path / "a.csv", "--hide", "last", "--seed", "3").stdout
    assert "last value" in last
