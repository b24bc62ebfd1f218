"""``a1gm impute``."""

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import run, run_executable

import a1gm

nan = np.nan


def test_impute_keeps_everything_else(sales, tmp_path):
    done = run("impute", sales, "-o", tmp_path / "filled.csv")
    before = sales.read_text().splitlines()
    after = (tmp_path / "filled.csv").read_text().splitlines()
    assert after[0] == before[0]
    assert after[1] == before[1]
    assert after[4] == before[4]
    assert re.fullmatch(r"B,2021-05-01,20,(40|39\.9{6}\d*|40\.0{6}\d*),60", after[2])
    assert "Filled 2 cells in 2 columns" in done.stderr


def test_what_cannot_be_known_stays_missing(csv, tmp_path):
    path = csv("x,y\n1,NA\nNA,2\n3,NA\n")
    done = run("impute", path, "-o", tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text() == path.read_text()
    assert "3 cells stay missing" in done.stderr
    assert done.stderr.count("warning") == 1
    quiet = run("impute", path, "-o", tmp_path / "c.csv", "-q")
    assert quiet.stderr == ""


def test_integers_that_cannot_be_kept_are_refused(tmp_path):
    table = pa.table({"x": pa.array([2**60 + 1, None], pa.int64()), "y": [1.0, 2.0]})
    pq.write_table(table, tmp_path / "a.parquet")
    done = run("impute", tmp_path / "a.parquet", "-o", tmp_path / "b.parquet", code=1)
    assert "--exclude x" in done.stderr
    assert not (tmp_path / "b.parquet").exists()


def test_a_saved_model_fills_other_files(sales, tmp_path):
    run("fit", sales, "-o", tmp_path / "results", "-q")
    model = tmp_path / "results" / "model.a1gm"
    new = tmp_path / "new.csv"
    new.write_text("mar,name,jan,feb\n,E,50,\n6,F,,4\n")
    run("impute", new, "-o", tmp_path / "b.csv", "--model", model)
    lines = (tmp_path / "b.csv").read_text().splitlines()
    assert lines[0] == "mar,name,jan,feb"
    cells = [line.split(",") for line in lines[1:]]
    assert [float(cells[0][k]) for k in (0, 2, 3)] == pytest.approx([150, 50, 100])
    assert [float(cells[1][k]) for k in (0, 2, 3)] == pytest.approx([6, 2, 4])
    np.testing.assert_allclose(a1gm.load(model).col_factor, [1 / 6, 1 / 3, 1 / 2])


def test_models_that_do_not_fit_are_refused(sales, tmp_path):
    run("fit", sales, "-o", tmp_path / "results", "-q")
    model = tmp_path / "results" / "model.a1gm"
    other = tmp_path / "other.csv"
    other.write_text("jan,feb\n1,2\n")
    out = tmp_path / "b.csv"
    done = run("impute", other, "-o", out, "--model", model, code=2)
    assert "no column 'mar'" in done.stderr
    done = run("impute", sales, "-o", out, "--model", tmp_path / "none", code=2)
    assert "does not exist" in done.stderr
    model.write_bytes(b"not a model")
    assert "model" in run("impute", sales, "-o", out, "--model", model, code=1).stderr
    assert not out.exists()


def test_only_columns_with_filled_cells_are_counted(csv, tmp_path):
    path = csv("x,y,z\n1,2,\n2,,\n,,\n")
    done = run("impute", path, "-o", tmp_path / "b.csv", "--json")
    assert "Filled 1 cell in 1 column;" in done.stderr
    assert json.loads(done.stdout)["columns_filled"] == ["y"]


def counts_file(path):
    rng = np.random.default_rng(3)
    X = rng.poisson(np.outer(rng.gamma(4, 9, 12), rng.gamma(4, 0.5, 4))) + 1.0
    X[rng.random(X.shape) < 0.2] = nan
    names = ["a", "b", "c", "d"]
    table = pa.table([pa.array(x, from_pandas=True) for x in X.T], names=names)
    pq.write_table(table, path)
    return X


def test_intervals_that_cannot_be_had(tmp_path):
    def told(*options):
        done = run_executable("impute", *options, "--interval", "0.9")
        assert done.returncode in (1, 2)
        return done.stderr

    (tmp_path / "clash.csv").write_text("a,a_low,b\n1,2,3\n,4,6\n3,5,9\n4,,13\n")
    text = told(tmp_path / "clash.csv", "-o", tmp_path / "out.csv")
    assert "'a_low', which --interval would add" in text
    (tmp_path / "tiny.csv").write_text("a,b\n1,2\n2,\n")
    text = told(tmp_path / "tiny.csv", "-o", tmp_path / "out.csv")
    assert "0 degrees of freedom" in text
    assert "Leave out --interval" in text
    assert not (tmp_path / "out.csv").exists()


def test_a_saved_model_gives_the_intervals_of_its_own_table(tmp_path):
    counts_file(tmp_path / "in.parquet")
    run("fit", tmp_path / "in.parquet", "-o", tmp_path / "fit")
    how = tmp_path / "in.parquet", "--interval", "0.9", "-o"
    run("impute", *how, tmp_path / "new.csv")
    run("impute", *how, tmp_path / "old.csv", "--model", tmp_path / "fit/model.a1gm")
    new, old = (
        np.genfromtxt(tmp_path / f"{x}.csv", delimiter=",", skip_header=1)
        for x in ("new", "old")
    )
    np.testing.assert_allclose(old, new, rtol=1e-8)


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
    done = run("impute", path, "-o", "-", "--interval", 0.9, "--digits", 1, *options)
    numbers = re.findall(r"\d+\.(\d+)", done.stdout)
    assert len(numbers) >= 5
    assert {len(number) for number in numbers} == {1}


def test_an_input_that_does_not_exist_is_named_before_the_target(tmp_path):
    """Seen: words about the extension of the target only."""
    for given in ("typo/", "typo.csv"):
        done = run("impute", given, "-o", tmp_path / "out", code=2)
        assert f"a1gm: {given} does not exist. Check the path." in done.stderr


def test_several_files_are_named_by_their_folder_and_filled_in_one(tmp_path):
    (tmp_path / "parts").mkdir()
    for name in ("1.csv", "2.csv"):
        (tmp_path / "parts" / name).write_text("id,x,y\na,1,2\nb,2,\n")
    parts, out = tmp_path / "parts", tmp_path / "out.parquet"
    done = run("impute", parts, "-o", out, code=2)
    assert f"{out} is a stream or named like one file. Name a folder" in done.stderr
    assert not out.exists()
    for given in ([parts / "*.csv"], [parts / "1.csv", parts / "2.csv"]):
        done = run("impute", *given, "-o", tmp_path / "two.csv", code=2)
        assert (
            "two.csv is a stream or named like one file. Name a folder" in done.stderr
        )
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
