"""``a1gm impute``."""

import json
import re
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import run


def test_the_name_of_the_target_decides_the_delimiter(tmp_path):
    (tmp_path / "a.tsv").write_text("x\ty\n1\t2\n2\t\n")
    run("impute", tmp_path / "a.tsv", "-o", tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "x,y\n1,2\n2,4\n"
    options = "--delimiter", "\\t", "--overwrite"  # said: written as it was read
    run("impute", tmp_path / "a.tsv", "-o", tmp_path / "a.csv", *options)
    assert (tmp_path / "a.csv").read_text() == "x\ty\n1\t2\n2\t4\n"


@pytest.mark.parametrize("options", [[], ["--long", "shop,month,n"]])
def test_digits_are_those_of_the_bounds_too(tmp_path, options):
    path = tmp_path / "a.csv"
    wide = "shop,jan,feb,mar\na,3,6,9\nb,5,8,\nc,2,,7\n"
    long = "shop,month,n\na,1,3\na,2,6\na,3,9\nb,1,5\nb,2,8\nc,1,2\nc,3,7\n"
    path.write_text(long if options else wide)
    done = run("impute", path, "-o", "-", "--interval", 0.9, "--round", 1, *options)
    numbers = re.findall(r"\d+\.(\d+)", done.stdout)
    assert len(numbers) >= 5
    assert {len(number) for number in numbers} == {1}


def test_several_files_are_named_by_their_folder_and_filled_in_one(tmp_path):
    (tmp_path / "parts").mkdir()
    for name in ("1.csv", "2.csv"):
        (tmp_path / "parts" / name).write_text("id,x,y\na,1,2\nb,2,\n")
    parts, out = tmp_path / "parts", tmp_path / "out.parquet"
    done = run("impute", parts, "-o", tmp_path / "out")
    assert f"{parts} (2 files): 4 rows" in done.stderr
    assert f"wrote 2 files to {tmp_path / 'out'}." in done.stderr
    done = run("inspect", parts / "*.csv")
    assert f"{parts / '*.csv'} (2 files): 4 rows" in done.stderr
    done = run("inspect", parts / "1.csv", parts / "2.csv")
    assert f"{parts / '1.csv'} and 1 more file: 4 rows" in done.stderr
    # A folder that is named like a file, as Spark writes them, goes to another one.
    parts.rename(tmp_path / "parts.parquet")
    run("impute", tmp_path / "parts.parquet", "-o", out)
    assert sorted(path.name for path in out.iterdir()) == ["1.csv", "2.csv"]


def test_what_cannot_be_known_stays_missing(csv, tmp_path):
    path = csv("x,y\n1,NA\nNA,2\n3,NA\n")
    done = run("impute", path, "-o", tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text() == path.read_text()
    assert "3 cells stay missing" in done.stderr
    assert done.stderr.count("warning") == 1
    assert run("impute", path, "-o", tmp_path / "c.csv", "-q").stderr == ""
    path = csv("x,y,z\n1,2,\n2,,\n,,\n")
    done = run("impute", path, "-o", tmp_path / "d.csv", "--json")
    assert "Filled 1 cell in 1 column;" in done.stderr
    assert json.loads(done.stdout)["columns_filled"] == ["y"]


def test_a_saved_model_fills_other_files(sales, csv, tmp_path):
    run("fit", sales, "-o", tmp_path / "results", "-q")
    options = "--model", tmp_path / "results" / "model.a1gm", "--round", 6
    new = csv("mar,name,jan,feb\n,E,50,\n6,F,,4\n")
    found = run("impute", new, "-o", "-", *options).stdout
    assert found == "mar,name,jan,feb\n150,E,50,100\n6,F,2,4\n"
    done = run("impute", csv("jan,feb\n1,2\n"), "-o", "-", *options, code=2)
    assert "no column 'mar'" in done.stderr
    done = run(
        "impute", csv("jan,feb,mar\n1,2,?\n2,3,4\n"), "-o", "-", *options, code=1
    )
    assert "Numbers are needed in the column that the fit has." in done.stderr
    assert "--columns" not in done.stderr


def test_a_saved_model_gives_the_intervals_of_its_own_table(csv, tmp_path):
    path = csv("a,b,c\n3,6,\n5,8,14\n2,,7\n4,9,11\n")
    run("fit", path, "-o", tmp_path / "fit")
    how = path, "-o", "-", "--interval", "0.9", "--round", 6
    new = run("impute", *how).stdout
    assert run("impute", *how, "--model", tmp_path / "fit/model.a1gm").stdout == new


def test_what_is_refused_before_anything_is_written(tmp_path):
    long = [Decimal("12345678901234567.89"), None]  # float64 has fewer digits
    table = pa.table({"x": long, "y": [1.0, 2.0]})
    path, out = tmp_path / "a.parquet", tmp_path / "out.csv"
    pq.write_table(table, path)
    assert "--exclude x" in run("impute", path, "-o", out, code=1).stderr
    assert not out.exists()


@pytest.mark.parametrize("digits", [-1, 400, "some", "2.0", ""])
def test_digits_that_are_none(tmp_path, digits):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n3,\n4,8.5\n")
    done = run("impute", path, "-o", "-", "--round", digits, code=2)
    assert "--round takes none, auto or a number of digits" in done.stderr


def test_cells_that_a_model_leaves_are_counted_once(csv, tmp_path):
    path = csv("x,y\n1,2\n2,4\n3,6\n")
    run("fit", path, "-o", tmp_path / "results")
    new = csv("x,y\n1,NA\nNA,NA\n", "new.csv")
    model = tmp_path / "results" / "model.a1gm"
    done = run("impute", new, "-o", tmp_path / "b.csv", "--model", model)
    assert done.stderr.count("stay missing") == 1
