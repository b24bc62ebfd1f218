"""Engines that hold a table elsewhere: how it gets there, and how it comes back.

Each is started once; where its parts are not installed, tests that need it are skipped
with what is missing.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

from support.suite import missing, need

NUMBERS = count()


def new_name() -> str:
    return f"table{next(NUMBERS)}"  # Ibis writes t0, t1, ... for its own


# ------------------------------------------------------------------------------- DuckDB
@cache
def duck() -> Any:
    return need("duckdb").connect()


def duckdb_relation(table: pa.Table) -> Any:
    name, con = new_name(), duck()
    con.register("given", table)
    con.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    con.unregister("given")
    return con.table(name)


def from_duckdb(relation: Any) -> pa.Table:
    found = relation.arrow()
    return found if isinstance(found, pa.Table) else found.read_all()


def sqlframe_frame(table: pa.Table) -> Any:
    need("sqlframe")
    from sqlframe.duckdb import DuckDBSession

    name, con = new_name(), duck()
    con.register("given", table)
    con.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    con.unregister("given")
    session = DuckDBSession(conn=con)
    kinds = {row[0]: row[1] for row in con.execute(f"DESCRIBE {name}").fetchall()}
    session.catalog.add_table(name, column_mapping=kinds)
    return session.table(name)


# --------------------------------------------------------------------------------- Ibis
@cache
def ibis_of(backend: str) -> Any:
    ibis = need("ibis")
    if backend == "postgres":
        return ibis.postgres.connect(**postgres())
    return getattr(ibis, backend).connect()


def ibis_table(backend: str, table: pa.Table) -> Any:
    con, name = ibis_of(backend), new_name()
    if backend == "duckdb":
        con.con.register("given", table)
        con.con.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        con.con.unregister("given")
        return con.table(name)
    load(con.con, backend, name, table)
    return con.table(name)


#: Types of the columns of a database by those of Arrow.
TYPES = {
    "double": {"sqlite": "REAL", "postgres": "DOUBLE PRECISION"},
    "float": {"sqlite": "REAL", "postgres": "REAL"},
    "int64": {"sqlite": "INTEGER", "postgres": "BIGINT"},
    "int32": {"sqlite": "INTEGER", "postgres": "INTEGER"},
    "bool": {"sqlite": "BOOLEAN", "postgres": "BOOLEAN"},
    "string": {"sqlite": "TEXT", "postgres": "TEXT"},
}


def load(con: Any, backend: str, name: str, table: pa.Table) -> None:
    """Make a table of a database by its own driver."""
    names = ['"' + field.name.replace('"', '""') + '"' for field in table.schema]
    kinds = [
        TYPES.get(str(field.type), {}).get(backend, "NUMERIC") for field in table.schema
    ]
    columns = ", ".join(map(" ".join, zip(names, kinds, strict=True)))
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    cursor = con.cursor()
    cursor.execute(f"CREATE TABLE {name} ({columns})")
    if backend == "postgres":
        with cursor.copy(f"COPY {name} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
    else:
        places = ", ".join("?" * len(names))
        cursor.executemany(f"INSERT INTO {name} VALUES ({places})", rows)
    con.commit()


def from_ibis(table: Any) -> pa.Table:
    return table.to_pyarrow()


@cache
def postgres() -> dict[str, Any]:
    """Start a server of its own in a temporary folder, as an ordinary user."""
    need("psycopg")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    initdb = str(found[-1]) if found else shutil.which("initdb")
    if initdb is None:
        missing("PostgreSQL's server is not installed (Debian: postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="a1gm-postgres-"))
    user = "postgres" if os.getuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data, how = str(folder / "data"), {"user": user, "cwd": folder}
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    options = ["-A", "trust", "-U", "a1gm", "-E", "UTF8", "--locale=C", "-N"]
    subprocess.run([initdb, "-D", data, *options], check=True, **how, **quiet)
    settings = (
        f"-c listen_addresses=127.0.0.1 -p {port} -k {folder} -F -c autovacuum=off"
    )
    control = [str(Path(initdb).with_name("pg_ctl")), "-D", data]
    subprocess.run(
        [*control, "-w", "-o", settings, "start"], check=True, **how, **quiet
    )

    def stop() -> None:
        subprocess.run(
            [*control, "-m", "immediate", "stop"], check=False, **how, **quiet
        )
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return {"host": "127.0.0.1", "port": port, "user": "a1gm", "database": "postgres"}


def connected() -> Any:
    """A connection of its own to the server."""
    how = dict(postgres())
    return need("psycopg").connect(dbname=how.pop("database"), **how)


# -------------------------------------------------------------------------------- Spark
def need_spark() -> None:
    need("pyspark")
    if shutil.which("java") is None:
        missing("Java is not installed (Debian: default-jre-headless)")


@cache
def spark() -> Any:
    need_spark()
    from pyspark.sql import SparkSession

    folder = tempfile.mkdtemp(prefix="a1gm-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.warehouse.dir", folder)
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .getOrCreate()
        )
    session.sparkContext.setLogLevel("OFF")
    atexit.register(session.stop)
    return session


def spark_frame(table: pa.Table) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return spark().createDataFrame(table).coalesce(1)


def from_spark(frame: Any) -> pa.Table:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return frame.toArrow()


# ----------------------------------------------------------------------------- registry
def lazy_polars(table: pa.Table) -> Any:
    import polars as pl  # not above: it does not load under ThreadSanitizer

    found = pl.from_arrow(table)
    assert isinstance(found, pl.DataFrame)
    return found.lazy()


Engine = tuple[Callable[[pa.Table], Any], Callable[[Any], pa.Table]]

ENGINES: dict[str, Engine] = {
    "polars": (lazy_polars, lambda frame: frame.collect().to_arrow()),
    "DuckDB": (duckdb_relation, from_duckdb),
    "Ibis DuckDB": (lambda table: ibis_table("duckdb", table), from_ibis),
    "SQLite": (lambda table: ibis_table("sqlite", table), from_ibis),
    "PostgreSQL": (lambda table: ibis_table("postgres", table), from_ibis),
    "SQLFrame": (sqlframe_frame, lambda frame: frame.toArrow()),
    "Spark": (spark_frame, from_spark),
}
