"""Tables where they lie: a fit against the engine's own sum of every column.

    python benchmarks/engines.py [--rows 5000000] [--postgres] [--spark]

Only ratios inside one run count: the engine's SUM of every column and a copy of the
table are measured beside the fit and the fill. PostgreSQL and Spark are started as the
tests start them.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import a1gm

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))
N_COLS, N_PATTERNS, TRIES = 10, 16, 3


def table_of(n: int) -> pa.Table:
    """Counts of rank 1 with 16 patterns of holes."""
    rng = np.random.default_rng(0)
    patterns = rng.random((N_PATTERNS, N_COLS)) < 0.2
    patterns[:, 0] = False
    of_row = rng.integers(N_PATTERNS, size=n)
    w = rng.gamma(2.0, 50.0, size=n)
    columns = {}
    for j, h in enumerate(rng.gamma(2.0, size=N_COLS)):
        values = np.round(w * h * rng.gamma(20.0, 0.05, size=n), 2)
        columns[f"c{j}"] = pa.array(values, mask=patterns[of_row, j])
    return pa.table(columns)


def best(call: Callable[[], Any]) -> float:
    """Seconds of the fastest of some tries."""
    found = []
    for _ in range(TRIES):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


Row = tuple[str, str, float, float]


def duckdb(table: pa.Table, path: Path) -> list[Row]:
    import duckdb

    con = duckdb.connect()
    con.register("given", table)
    con.execute("CREATE TABLE t AS SELECT * FROM given")
    sums = "SELECT " + ", ".join(f"sum(c{j})" for j in range(N_COLS)) + " FROM "
    relation, files = con.table("t"), con.read_parquet(str(path))
    fit = a1gm.fit(relation)

    def copy(source: Any) -> None:
        con.execute("DROP TABLE IF EXISTS copied")
        source.create("copied")

    own = best(lambda: con.execute(sums + "t").fetchall())
    parquet = best(lambda: con.execute(f"{sums}read_parquet('{path}')").fetchall())
    rows = [
        ("DuckDB", "fit / own sum", own, best(lambda: a1gm.fit(relation))),
        ("DuckDB on Parquet", "fit / own sum", parquet, best(lambda: a1gm.fit(files))),
    ]
    plain = best(lambda: copy(relation))
    filled = best(lambda: copy(fit.impute(relation)))
    return [*rows, ("DuckDB", "fill / copy", plain, filled)]


def polars(path: Path) -> list[Row]:
    lazy = pl.scan_parquet(path)
    own = best(lambda: lazy.sum().collect(engine="streaming"))
    fit = a1gm.fit(lazy)
    out = path.with_name("out.parquet")
    plain = best(lambda: lazy.sink_parquet(out))
    filled = best(lambda: fit.impute(lazy).sink_parquet(out))
    frame = lazy.collect()
    here = best(lambda: fit.impute(frame))
    as_expressions = best(lambda: fit.impute(frame.lazy()).collect())
    return [
        ("polars on Parquet", "fit / own sum", own, best(lambda: a1gm.fit(lazy))),
        ("polars on Parquet", "fill / copy", plain, filled),
        ("polars in memory", "fit.impute lazy / eager", here, as_expressions),
    ]


def arrow(path: Path) -> list[Row]:
    read = best(lambda: ds.dataset(path).to_table())
    streamed = best(lambda: a1gm.fit(ds.dataset(path)))
    return [
        ("Dataset on Parquet", "fit / to_table", read, streamed),
        (
            "fit_file on Parquet",
            "/ Dataset",
            streamed,
            best(lambda: a1gm.fit_file(path)),
        ),
    ]


def postgres(table: pa.Table) -> list[Row]:
    from support.lazy import ibis_of, ibis_table

    t = ibis_table("postgres", table)
    fit, con = a1gm.fit(t), ibis_of("postgres").con
    sums = ", ".join(f"sum(c{j})" for j in range(N_COLS))

    def copy(query: str) -> None:
        con.execute("DROP TABLE IF EXISTS copied")
        con.execute(f"CREATE TABLE copied AS {query}")
        con.commit()

    name = t.get_name()
    own = best(lambda: con.execute(f"SELECT {sums} FROM {name}").fetchall())
    counted = best(lambda: a1gm.fit(t))
    plain = best(lambda: copy(f"SELECT * FROM {name}"))
    filled = best(lambda: copy(fit.to_sql(name, dialect="postgres")))
    return [
        ("PostgreSQL", "fit / own sum", own, counted),
        ("PostgreSQL", "fill / copy", plain, filled),
    ]


def spark(path: Path) -> list[Row]:
    from support.lazy import spark as start

    frame = start().read.parquet(str(path))
    sums = [f"sum(c{j})" for j in range(N_COLS)]
    own = best(lambda: frame.selectExpr(*sums).collect())
    return [("Spark on Parquet", "fit / own sum", own, best(lambda: a1gm.fit(frame)))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--spark", action="store_true")
    asked = parser.parse_args()
    table = table_of(asked.rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        pq.write_table(table, path)
        rows = [*duckdb(table, path), *polars(path), *arrow(path)]
        if asked.postgres:
            rows += postgres(table.slice(0, asked.rows // 5))
        if asked.spark:
            rows += spark(path)
    print(f"{asked.rows:,} x {N_COLS}, {N_PATTERNS} patterns")
    with (HERE / "results" / "engines.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("engine", "what", "own_seconds", "seconds", "ratio"))
        for engine, what, own, ours in rows:
            ratio = ours / own
            writer.writerow((engine, what, f"{own:.3f}", f"{ours:.3f}", f"{ratio:.2f}"))
            print(f"{engine:20} {what:26} {own:8.3f} s {ours:8.3f} s {ratio:6.2f}")


if __name__ == "__main__":
    main()
