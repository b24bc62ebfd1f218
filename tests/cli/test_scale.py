"""``a1gm scale``, and ``a1gm impute`` with totals."""

import json
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from support.commands import run

import a1gm

SEED = "shop,note,x,y,z\nA,hi,1,2,3\nB,ho,4,5,6\n"
EXPECTED = a1gm.scale([[1, 2, 3], [4, 5, 6]], [40, 60], [20, 30, 50]).table


@pytest.fixture
def seed(csv):
    csv("shop,total\nB,60\nA,40\n", "rows.csv")
    csv("x,y,z\n20,30,50\n", "line.csv")
    csv("column,total\nz,50\nx,20\n", "cols.csv")
    csv("z,50\nx,20\n", "bare.csv")
    csv("shop,x,y,z\nA,,,20\nB,,,\n", "known.csv")
    csv("shop,x,y,z\nA,1,2,3\nB,4,,\n", "holes.csv")
    return csv(SEED, "seed.csv")


def options_of(seed, rows="rows.csv", cols="cols.csv"):
    folder = seed.parent
    return "--id", "shop", "--row-totals", folder / rows, "--col-totals", folder / cols


@pytest.mark.parametrize("cols", ["cols.csv", "line.csv", "bare.csv"])
def test_totals_are_found_by_name(seed, tmp_path, cols):
    out = tmp_path / "out.csv"
    done = run("scale", seed, *options_of(seed, cols=cols), "-o", out)
    assert "the largest relative error of a total" in done.stderr
    frame = pd.read_csv(out)
    assert frame.columns.tolist() == ["shop", "note", "x", "y", "z"]
    assert frame["note"].tolist() == ["hi", "ho"]
    np.testing.assert_allclose(frame[["x", "y", "z"]], EXPECTED, rtol=1e-12)


def test_whole_numbers_go_to_standard_output(seed):
    done = run("scale", seed, *options_of(seed), "--round", "-q")
    assert done.stdout == "shop,note,x,y,z\nA,hi,6,12,22\nB,ho,14,18,28\n"


def test_a_summary_for_machines(seed, tmp_path):
    known = "--known", tmp_path / "known.csv"
    found = json.loads(run("scale", seed, *options_of(seed), *known, "--json").stdout)
    assert found["converged"]
    assert found["n_blocks"] == 1
    out = tmp_path / "out.parquet"
    run("scale", seed, *options_of(seed), *known, "-o", out, "--json")
    assert pd.read_parquet(out)["z"].tolist()[0] == 20.0
    run("scale", seed, "-o", "-", "--json", code=2)


def test_a_proof_for_machines(seed, csv):
    csv("shop,x,y,z\nA,1,0,0\nB,4,5,6\n", "zeros.csv")
    zeros = seed.parent / "zeros.csv"
    done = run("scale", zeros, *options_of(seed), "--json", "-q", code=1)
    error = json.loads(done.stderr.splitlines()[-1])
    assert error["kind"] == "TotalsError"
    assert (error["rows"], error["cols"]) == ([0], [0])
    assert (error["needs"], error["has"], error["side"]) == (40, 20, "row")
    assert "Row 'A' needs 40; the only column" in error["message"]


def test_names_that_are_not_there(seed, csv):
    csv("shop,total\nC,60\n", "rows.csv")
    done = run("scale", seed, *options_of(seed), code=2)
    assert "No row is called 'C'" in done.stderr


TOTALS = "40\n60\n", "total\n40\n60\n", "A,40\nB,60\n", ",0\nA,40\nB,60\n"


@pytest.mark.parametrize("text", TOTALS)
def test_totals_without_names_or_header(seed, csv, text):
    csv(text, "rows.csv")
    rows = "--row-totals", seed.parent / "rows.csv"
    done = run("scale", seed, "--id", "shop", *rows, "-q")
    frame = pd.read_csv(StringIO(done.stdout))
    assert frame[["x", "y", "z"]].sum(axis=1).tolist() == [40, 60]


@pytest.mark.parametrize("total", ["70", "+70", ".5", "7e1", "NA", '"1,234"'])
@pytest.mark.parametrize("others", ["", "A,40\n"])
def test_a_first_line_with_a_mistyped_name_is_no_header(seed, csv, total, others):
    csv(f"b,{total}\n{others}", "rows.csv")
    rows = "--row-totals", seed.parent / "rows.csv"
    is_marked = total == '"1,234"'
    code = 1 if is_marked else 2
    done = run("scale", seed, "--id", "shop", *rows, code=code)
    if is_marked:  # in a notation that needs an option
        assert "rows.csv, line 1" in done.stderr
        assert "--thousands ','" in done.stderr
    else:
        assert "rows.csv, line 1: the table has no 'b'" in done.stderr
        assert "Did you mean 'B'?" in done.stderr
    holes, out = seed.parent / "holes.csv", seed.parent / "filled.csv"
    run("impute", holes, "-o", out, *rows, code=code)
    assert not out.exists()


@pytest.mark.parametrize("header", ["shop,0", "shop,2020", ",0", "Name,total"])
def test_a_header_with_a_number(seed, csv, header):
    csv(f"{header}\nA,40\nB,60\n", "rows.csv")
    rows = "--row-totals", seed.parent / "rows.csv"
    done = run("scale", seed, "--id", "shop", *rows, "-q")
    assert done.stdout.splitlines()[1].startswith("A,hi,6.66")


def test_sums_of_a_frame_with_two_names(csv):
    table = csv("r,city,x,y\nN,A,1,2\nS,B,3,5\n", "two.csv")
    frame = pd.read_csv(table).set_index(["r", "city"])
    frame.sum(axis=1).to_csv(table.parent / "rows.csv")
    ids = "--id", "r", "--id", "city"
    done = run("scale", table, *ids, "--row-totals", table.parent / "rows.csv", "-q")
    assert done.stdout.splitlines() == table.read_text().splitlines()


def test_a_header_of_another_name_needs_a_word(seed, csv):
    csv("town,2020\nA,40\nB,60\n", "rows.csv")
    rows = "--row-totals", seed.parent / "rows.csv"
    done = run("scale", seed, "--id", "shop", *rows, code=2)
    assert "line 1: the table has no 'town'" in done.stderr
    assert "because the last cell, '2020', is a number" in done.stderr
    assert "If this line is a header, write a word" in done.stderr


@pytest.mark.parametrize("total", ["$70", "(70)", "0x10", "７０", "70 USD"])
def test_a_first_total_in_another_notation_is_not_dropped(seed, csv, total):
    csv(f"b,{total}\nA,40\n", "rows.csv")
    rows = "--row-totals", seed.parent / "rows.csv"
    done = run("scale", seed, "--id", "shop", *rows, code=1)
    assert "rows.csv, line 1" in done.stderr
    assert f"pass --missing {total}" in done.stderr.replace("'", "")


def test_a_first_total_that_names_columns_of_parquet(seed):
    path = seed.parent / "rows.parquet"
    pd.DataFrame({"b": ["A"], "70": [40]}).to_parquet(path)
    done = run("scale", seed, "--id", "shop", "--row-totals", path, code=1)
    assert "called 'b' and '70', which is a total" in done.stderr
    pd.DataFrame({"shop": ["A"], "70": [40]}).to_parquet(path)
    run("scale", seed, "--id", "shop", "--row-totals", path, "-q")


def test_a_first_line_that_is_no_total_of_its_row(seed, csv):
    csv("B,$60\nA,40\n", "rows.csv")
    rows = "--row-totals", seed.parent / "rows.csv"
    done = run("scale", seed, "--id", "shop", *rows, code=1)
    assert "rows.csv, line 1" in done.stderr
    assert "'$60' is not a number" in done.stderr


def test_one_total_without_a_header(seed, csv):
    csv("B,45\n", "rows.csv")
    rows = "--row-totals", seed.parent / "rows.csv"
    done = run("scale", seed, "--id", "shop", *rows, "-q")
    assert done.stdout.splitlines()[1:] == ["A,hi,1,2,3", "B,ho,12,15,18"]


def test_totals_of_years(seed, csv):
    csv("shop,2001,2002\nA,1,2\nB,4,5\n", "years.csv")
    csv("2001,2002\n20,30\n", "cols.csv")
    cols = "--col-totals", seed.parent / "cols.csv"
    done = run("scale", seed.parent / "years.csv", "--id", "shop", *cols, "-q")
    frame = pd.read_csv(StringIO(done.stdout))
    assert frame[["2001", "2002"]].sum().round(9).tolist() == [20, 30]


def test_weights_without_a_header(seed, csv):
    csv("A,2\nB,3\n", "weights.csv")
    weights = "--weights", seed.parent / "weights.csv", "--id", "shop"
    done = run("fit", seed, *weights, "-o", seed.parent / "out", "--json")
    expected = a1gm.fit([[1, 2, 3], [4, 5, 6]], weights=[[2], [3]])
    assert json.loads(done.stdout)["divergence"] == expected.divergence


def test_totals_of_other_numbers(seed, csv):
    csv("40\n60\n5\n", "three.csv")
    done = run("scale", seed, "--row-totals", seed.parent / "three.csv", code=1)
    assert "three.csv has 3 numbers, but the seed has 2 rows" in done.stderr
    assert "by the names of the rows" in done.stderr


def test_no_totals_are_refused(seed):
    done = run("scale", seed, code=2)
    assert "Give --row-totals, --col-totals, or both" in done.stderr


def test_missing_cells_are_referred_to_impute(seed, tmp_path):
    done = run("scale", tmp_path / "holes.csv", *options_of(seed), code=1)
    assert "Put 0 for a cell" in done.stderr
    assert "a1gm impute FILE --row-totals FILE --col-totals FILE" in done.stderr


def test_fills_to_totals(seed, tmp_path):
    holes, out = tmp_path / "holes.csv", tmp_path / "filled.csv"
    (tmp_path / "rows.csv").write_text("shop,total\nB,64\n")
    totals = "--row-totals", tmp_path / "rows.csv"
    run("impute", holes, "-o", out, *totals, "--mark")
    frame = pd.read_csv(out)
    assert frame[["x", "y", "z"]].to_numpy().tolist() == [[1, 2, 3], [4, 24, 36]]
    assert frame["y_filled"].tolist() == [False, True]
    a1gm.impute_file(holes, tmp_path / "same.csv", row_totals={"B": 64}, mark=True)
    assert (tmp_path / "same.csv").read_text() == out.read_text()
    for more in (["--round", "auto"], ["--interval", "0.9"]):
        given = [*totals, *more, "--overwrite"]
        done = run("impute", holes, "-o", out, *given, code=2)
        assert f"Leave out {more[0]}" in done.stderr
    run("impute", holes, "-o", totals[1], *totals, "--overwrite", code=2)
