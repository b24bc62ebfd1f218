"""Queries as text, run by the drivers of the databases themselves."""

from __future__ import annotations

import atexit
import sqlite3
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from engines.test_lazy import arrow, random_table, wide
from support.lazy import connected, duck, load, new_name, spark, spark_frame
from support.suite import need
from ways.tables import TABLES

import a1gm
from a1gm.engines.sql import DIALECTS
from a1gm.exceptions import LabelError, ParameterError

pytestmark = pytest.mark.filterwarnings(
    "ignore::a1gm.exceptions.A1gmWarning",
    "ignore:PySpark does not yet fully support pandas:FutureWarning",
)
nan = np.nan


def in_sqlite(table: pa.Table, name: str):
    connection = sqlite3.connect(":memory:")
    load(connection, "sqlite", name, table)
    return lambda query: connection.execute(query).fetchall()


def in_duckdb(table: pa.Table, name: str):
    con = duck()
    con.register("given", table)
    con.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    con.unregister("given")
    return lambda query: con.execute(query).fetchall()


@cache
def server():
    connection = connected()
    atexit.register(connection.close)
    return connection


def in_postgres(table: pa.Table, name: str):
    load(server(), "postgres", name, table)
    return lambda query: server().execute(query).fetchall()


def in_spark(table: pa.Table, name: str):
    spark_frame(table).createOrReplaceTempView(name)
    return lambda query: [tuple(row) for row in spark().sql(query).collect()]


OPEN = {
    "sqlite": in_sqlite,
    "duckdb": in_duckdb,
    "postgres": in_postgres,
    "pyspark": in_spark,
}


@pytest.fixture(autouse=True)
def ibis():
    """Queries are written by Ibis."""
    need("ibis")


def as_array(rows) -> np.ndarray:
    return np.array([[nan if x is None else x for x in row] for row in rows], float)


@pytest.mark.parametrize("dialect", OPEN)
def test_fills(dialect):
    rng = np.random.default_rng(3)
    tables = [TABLES["zeros"], TABLES["two blocks"], TABLES["zero chain"]]
    n = 1 if dialect == "pyspark" else 15
    for X in [*tables, *(random_table(rng)[0] for _ in range(n))]:
        name, table = new_name(), arrow(X)
        run, memory = OPEN[dialect](table, name), a1gm.fit(table)
        found = as_array(run(memory.to_sql(name, dialect=dialect)))
        np.testing.assert_allclose(found, memory.impute(X), rtol=1e-12, atol=1e-300)


@pytest.mark.nightly
@pytest.mark.xdist_group("PostgreSQL")
def test_a_table_made_in_postgres():
    X, name = wide(130, 300), new_name()
    table = arrow(X).add_column(0, "shop id", pa.array([f"s{i}" for i in range(300)]))
    run, fit = in_postgres(table, name), a1gm.fit(arrow(X))
    query = fit.to_sql(name, dialect="postgres", others={"shop id": "string"})
    server().execute(f"CREATE TABLE filled_{name} AS {query}")
    rows = run(f"SELECT * FROM filled_{name}")
    assert [row[0] for row in rows] == table["shop id"].to_pylist()
    found = as_array([row[1:] for row in rows])
    np.testing.assert_allclose(found, fit.impute(X), rtol=1e-12)


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_numbers_are_read_back_to_the_bits(dialect):
    h = np.random.default_rng(9).lognormal(0.0, 8.0, 60)
    names = [f"c{j}" for j in range(60)]
    X = pd.DataFrame([h], columns=names)
    fit, name = a1gm.fit(X), new_name()
    rows = np.full((1, 60), nan)
    rows[0, 0] = 1.0
    run = OPEN[dialect](arrow(rows), name)
    found = as_array(run(fit.to_sql(name, dialect=dialect)))[0]
    w = 1.0 / fit.col_factor[0]
    np.testing.assert_array_equal(found[1:], w * fit.col_factor[1:])


@pytest.mark.parametrize("written", DIALECTS)
def test_every_dialect_is_written(written):
    fit = a1gm.fit(arrow(TABLES["zeros"]))
    assert "SELECT" in fit.to_sql("sales", dialect=written)


@pytest.mark.parametrize("written", ["mysql", "mssql", "flink", "polars", "nope"])
def test_other_dialects_are_refused(written):
    """Seen: NotImplementedError for MySQL, which has no infinite number."""
    fit = a1gm.fit(arrow(wide(3)))
    with pytest.raises(ParameterError, match=f"dialect='{written}'.*postgres, pyspark"):
        fit.to_sql("t", dialect=written)


def test_what_has_no_query():
    fit = a1gm.fit(arrow(wide(3)))
    with pytest.raises(LabelError, match=r"\['c0'\] are columns of the fit"):
        fit.to_sql("t", dialect="sqlite", others={"c0": "int64"})
    for others in ({"shop": "integer"}, ["shop"]):
        with pytest.raises(ParameterError, match="not a mapping of names to types"):
            fit.to_sql("t", dialect="sqlite", others=others)
    with pytest.raises(ParameterError, match="has no names"):
        a1gm.fit(wide(3)).to_sql("t", dialect="sqlite")
    weighted = a1gm.fit(arrow(wide(3)), weights=np.ones((40, 3)))
    with pytest.raises(ParameterError, match="without weights or exposure"):
        weighted.to_sql("t", dialect="sqlite")
