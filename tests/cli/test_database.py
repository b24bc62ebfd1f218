"""Tables of databases in place of files: ``URL::TABLE``."""

import json
import sqlite3

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from support.commands import run
from support.lazy import load, postgres
from support.suite import need

import a1gm

FRAME = pd.DataFrame(
    {
        "shop": ["A", "B", "C", "D, new"],
        "jan": [10.0, 20.0, 31.0, 40.0],
        "feb": [21.0, np.nan, 60.0, 79.0],
        "mar": [30.0, 61.0, np.nan, 120.0],
    }
)


@pytest.fixture(params=["duckdb", "sqlite", "postgres"])
def database(request, tmp_path):
    """A database with two tables; its URL."""
    kind, table = request.param, pa.table(FRAME.to_dict("list"))
    if kind == "duckdb":
        with need("duckdb").connect(str(tmp_path / "shops.ddb")) as con:
            con.register("given", table)
            con.execute("CREATE TABLE sales AS SELECT * FROM given")
            con.execute("CREATE TABLE stock AS SELECT 1 AS a")
        return f"duckdb://{tmp_path}/shops.ddb"
    need("ibis")
    if kind == "sqlite":
        with sqlite3.connect(tmp_path / "shops.db") as con:
            load(con, kind, "sales", table)
            con.execute("CREATE TABLE stock (a REAL)")
        return f"sqlite://{tmp_path}/shops.db"
    import psycopg

    how = dict(postgres())
    with psycopg.connect(dbname=how.pop("database"), **how) as con:
        con.execute("DROP TABLE IF EXISTS sales, stock")
        load(con, kind, "sales", table)
        con.execute("CREATE TABLE stock (a REAL)")
    return f"postgres://{how['user']}:secret@{how['host']}:{how['port']}/postgres"


def test_fit_writes_what_it_writes_for_a_file(database, tmp_path):
    FRAME.to_csv(tmp_path / "sales.csv", index=False)
    there, here = tmp_path / "there", tmp_path / "here"
    done = run("fit", f"{database}::sales", "-o", there)
    assert "4 rows, 3 numeric columns (jan, feb, mar)" in done.stderr
    assert "secret" not in done.stderr
    run("fit", tmp_path / "sales.csv", "-o", here)
    found, right = (pd.read_csv(place / "row_factor.csv") for place in (there, here))
    assert list(found) == ["shop", "row_factor"]
    assert found["shop"].tolist() == right["shop"].tolist()
    np.testing.assert_allclose(found["row_factor"], right["row_factor"], rtol=1e-9)
    found, right = (pd.read_csv(place / "col_factor.csv") for place in (there, here))
    pd.testing.assert_frame_equal(found, right, rtol=1e-9)
    found, right = (
        json.loads((place / "fit.json").read_text()) for place in (there, here)
    )
    assert found["columns"] == right["columns"]
    np.testing.assert_allclose(
        found["uncertainty"]["dispersion"], right["uncertainty"]["dispersion"], 1e-9
    )
    model = a1gm.load(there / "model.a1gm")
    np.testing.assert_allclose(model.col_factor, a1gm.fit(FRAME).col_factor)


def test_impute_writes_the_filled_table(database, tmp_path):
    out, again = tmp_path / "filled.csv", tmp_path / "again.parquet"
    done = run("impute", f"{database}::sales", "-o", out)
    assert "Filled 2 cells; wrote" in done.stderr
    right = a1gm.impute(FRAME)
    pd.testing.assert_frame_equal(pd.read_csv(out), right, rtol=1e-9, check_dtype=False)
    run("fit", f"{database}::sales", "-o", tmp_path / "results")
    model = tmp_path / "results" / "model.a1gm"
    run("impute", f"{database}::sales", "-o", again, "--model", model)
    pd.testing.assert_frame_equal(pd.read_parquet(again), right, rtol=1e-9)
    done = run("impute", f"{database}::sales", "-o", out, code=2)
    assert "--overwrite" in done.stderr


def test_inspect_counts_the_holes(database):
    done = run("inspect", f"{database}::sales", "--json")
    assert json.loads(done.stdout)["n_missing"] == 2


def test_tables_are_listed_and_found(database, tmp_path):
    out = tmp_path / "results"
    done = run("fit", database, "-o", out, code=2)
    assert "'sales', 'stock'" in done.stderr
    assert "::TABLE'" in done.stderr
    assert "secret" not in done.stderr
    done = run("fit", f"{database}::sale", "-o", out, code=2)
    assert "has no table 'sale'" in done.stderr
    assert "Did you mean 'sales'?" in done.stderr
    assert not out.exists()


def test_what_databases_do_not_have(tmp_path):
    out = tmp_path / "filled.csv"
    url = "duckdb:///nowhere.ddb::sales"
    for option in (["--mark"], ["--interval", "0.9"], ["--delimiter", ";"]):
        done = run("impute", url, "-o", out, *option, code=2)
        assert f"{option[0]} is for files" in done.stderr
    done = run("impute", url, "-o", out, "--long", "a,b,c", code=2)
    assert "--long is for files" in done.stderr
    done = run("fit", url, "b.csv", "-o", out, code=2)
    assert "Name one table of a database" in done.stderr
    done = run("fit", url, "-o", tmp_path / "results", code=2)
    assert "a1gm: duckdb:///nowhere.ddb does not exist" in done.stderr
    done = run("scale", url, "-o", out, "--row-totals", "a.csv", code=2)
    assert done.stderr
    done = run("fit", "nope://somewhere::sales", "-o", tmp_path / "results", code=1)
    assert "nope://somewhere" in done.stderr
