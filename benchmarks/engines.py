"""Tables where they are: a fit against the engine's own sum of every column.

    python benchmarks/engines.py [--rows 5000000] [--postgres] [--spark]
    python benchmarks/engines.py --larger 100000000    # files larger than memory

Only ratios inside one run count: the engine's SUM of every column, or a copy of the
table, and the fit or the fill run in turns, and the medians are compared. Times are of
the processor, because the machine is shared: of this process, and of the server of
PostgreSQL or Spark's JVM, which are started as the tests start them. Writes
benchmarks/results/engines.csv (with ``--larger`` engines_larger.csv; rows that were not
measured stay), and exits with 1 when a row misses.

``--larger`` writes so many rows into 8 Parquet files in a temporary folder; every way
reads them in a process of its own, whose memory is compared with that of the engine's
own sum.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from measuring import machine, markdown, read_csv, write_csv

import a1gm

HERE = Path(__file__).parent
RESULTS = HERE / "results"
sys.path.insert(0, str(HERE.parent / "tests"))
N_COLS, N_PATTERNS, TURNS = 10, 16, 3
NAMES = [f"c{j}" for j in range(N_COLS)]
SUMS = ", ".join(f"sum({name})" for name in NAMES)
Call = Callable[[], Any]


class Row(NamedTuple):
    """Seconds of what the engine does by itself, and of what we ask it for."""

    engine: str
    what: str
    own: float
    ours: float
    at_most: float

    @property
    def misses(self) -> bool:
        return self.ours > self.at_most * self.own

    def shown(self) -> dict[str, str]:
        return {
            "engine": self.engine,
            "what": self.what,
            "own_seconds": f"{self.own:.3f}",
            "seconds": f"{self.ours:.3f}",
            "ratio": f"{self.ours / self.own:.2f}",
            "at_most": f"{self.at_most:g}",
        }


def processor_time(pids: Sequence[int] = ()) -> float:
    """Seconds of the processor that this process and others have used so far.

    Those of a process and of its children that have ended.
    """
    total = time.process_time()
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return total


def in_turns(
    engine: str,
    what: str,
    own: Call,
    ours: Call,
    at_most: float,
    pids: Sequence[int] = (),
) -> Row:
    """The medians of two calls that run in turns, after one turn to warm up."""
    seconds: dict[Call, list[float]] = {own: [], ours: []}
    for _ in range(1 + TURNS):
        for call, times in seconds.items():
            start = processor_time(pids)
            call()
            times.append(processor_time(pids) - start)
    own_time, our_time = (statistics.median(times[1:]) for times in seconds.values())
    row = Row(engine, what, own_time, our_time, at_most)
    print(row, file=sys.stderr, flush=True)
    return row


def table_of(
    n: int,
    m: int = N_COLS,
    n_patterns: int = N_PATTERNS,
    digits: int = 2,
    seed: int = 0,
) -> pa.Table:
    """Amounts of rank 1 with a few patterns of holes."""
    rng = np.random.default_rng(seed)
    patterns = rng.random((n_patterns, m)) < 0.2
    patterns[:, 0] = False
    of_row = rng.integers(n_patterns, size=n)
    w = rng.gamma(2.0, 50.0, size=n)
    columns = {}
    for j, h in enumerate(rng.gamma(2.0, size=m)):
        values = np.round(w * h * rng.gamma(20.0, 0.05, size=n), digits)
        columns[f"c{j}"] = pa.array(values, mask=patterns[of_row, j])
    return pa.table(columns)


# ------------------------------------------------------------------------------ engines
def duckdb(table: pa.Table, path: Path) -> list[Row]:
    import duckdb

    con = duckdb.connect()
    con.register("given", table)
    con.execute("CREATE TABLE t AS SELECT * FROM given")
    relation, files = con.table("t"), con.read_parquet(str(path))
    fit = a1gm.fit(relation)

    def copy(source: Any) -> None:
        con.execute("DROP TABLE IF EXISTS copied")
        source.create("copied")

    return [
        in_turns(
            "DuckDB",
            "fit / own sum",
            lambda: con.execute(f"SELECT {SUMS} FROM t").fetchall(),
            lambda: a1gm.fit(relation),
            3.0,
        ),
        in_turns(
            "DuckDB on Parquet",
            "fit / own sum",
            lambda: con.execute(f"SELECT {SUMS} FROM '{path}'").fetchall(),
            lambda: a1gm.fit(files),
            3.0,
        ),
        in_turns(
            "DuckDB",
            "fill / copy",
            lambda: copy(relation),
            lambda: copy(fit.impute(relation)),
            3.5,
        ),
    ]


def long_tables(n: int, m: int = 50) -> list[Row]:
    """The cells of a table in any order, with integers or text as keys."""
    import duckdb

    con = duckdb.connect()
    con.register("given", table_of(n, m, 100).append_column("i", pa.array(range(n))))
    con.execute(
        "CREATE TABLE whole AS SELECT i, substr(j, 2)::INTEGER AS j, v FROM "
        "(UNPIVOT given ON * EXCLUDE (i) INTO NAME j VALUE v) ORDER BY hash(i, j)"
    )
    con.execute(
        "CREATE TABLE text AS SELECT 'row ' || i AS i, 'column ' || j AS j, v "
        "FROM whole"
    )
    return [
        in_turns(
            f"DuckDB, long, {kind} keys",
            "fit_long lazy / collected",
            lambda name=name: a1gm.fit_long(
                con.table(name).to_arrow_table(), ["i", "j"], "v"
            ),
            lambda name=name: a1gm.fit_long(con.table(name), ["i", "j"], "v"),
            1.3,
        )
        for kind, name in (("integer", "whole"), ("text", "text"))
    ]


def polars(path: Path) -> list[Row]:
    lazy, out = pl.scan_parquet(path), path.with_name("out.parquet")
    fit, frame = a1gm.fit(lazy), lazy.collect()
    return [
        in_turns(
            "polars on Parquet",
            "fit / own sum",
            lambda: lazy.sum().collect(engine="streaming"),
            lambda: a1gm.fit(lazy),
            1.5,
        ),
        in_turns(
            "polars on Parquet",
            "fill / copy",
            lambda: lazy.sink_parquet(out),
            lambda: fit.impute(lazy).sink_parquet(out),
            1.5,
        ),
        in_turns(
            "polars in memory",
            "fit.impute lazy / eager",
            lambda: fit.impute(frame),
            lambda: fit.impute(frame.lazy()).collect(),
            1.0,
        ),
    ]


def arrow(path: Path) -> list[Row]:
    return [
        in_turns(
            "Dataset on Parquet",
            "fit / to_table",
            lambda: ds.dataset(path).to_table(),
            lambda: a1gm.fit(ds.dataset(path)),
            1.5,
        ),
        in_turns(
            "fit_file on Parquet",
            "fit_file / fit of a Dataset",
            lambda: a1gm.fit(ds.dataset(path)),
            lambda: a1gm.fit_file(path),
            3.0,
        ),
    ]


def dask(path: Path) -> list[Row]:
    import dask.dataframe as dd

    return [
        in_turns(
            "Dask on Parquet",
            "distributed.fit / own sum",
            lambda: dd.read_parquet(path).sum().compute(),
            lambda: a1gm.distributed.fit(dd.read_parquet(path)),
            1.5,
        )
    ]


def postgres(table: pa.Table) -> list[Row]:
    from support.lazy import ibis_of, ibis_table

    con = ibis_of("postgres").con
    backend = con.info.backend_pid
    server = int(
        Path(f"/proc/{backend}/stat").read_text().rpartition(")")[2].split()[1]
    )
    pids = [backend, server]  # whose workers are children of the server

    def copy(query: str) -> None:
        con.execute("DROP TABLE IF EXISTS copied")
        con.execute(f"CREATE TABLE copied AS {query}")
        con.commit()

    def fill(fit: Any, name: str) -> None:
        copy(fit.to_sql(name, dialect="postgres"))

    t, wide = (
        ibis_table("postgres", given) for given in (table, table_of(300, 130, 300))
    )
    name, fit, wide_fit = t.get_name(), a1gm.fit(t), a1gm.fit(wide)
    start = processor_time(pids)
    fill(wide_fit, wide.get_name())
    seconds = processor_time(pids) - start
    return [
        Row("PostgreSQL, 300 x 130", "to_sql and fill / 5 s", 5.0, seconds, 1.0),
        in_turns(
            "PostgreSQL",
            "fit / own sum",
            lambda: con.execute(f"SELECT {SUMS} FROM {name}").fetchall(),
            lambda: a1gm.fit(t),
            7.0,
            pids,
        ),
        in_turns(
            "PostgreSQL",
            "divergence / fit",
            lambda: a1gm.fit(t),
            lambda: fit.divergence_of(t),
            5.0,
            pids,
        ),
        in_turns(
            "PostgreSQL",
            "fill / copy",
            lambda: copy(f"SELECT * FROM {name}"),
            lambda: fill(fit, name),
            3.5,
            pids,
        ),
    ]


def spark(path: Path) -> list[Row]:
    from support.lazy import spark as start

    session = start()
    frame = session.read.parquet(str(path))
    java = session.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    return [
        in_turns(
            "Spark on Parquet",
            "fit / own sum",
            lambda: frame.selectExpr(*SUMS.split(", ")).collect(),
            lambda: a1gm.fit(frame),
            2.0,
            [java],
        )
    ]


# ------------------------------------------------------------------- larger than memory
N_FILES, MEMORY = 8, "1GB"
OWN_MEMORY = 200  # MB beyond the engine's own sum


def write_files(folder: Path, n: int) -> None:
    """Files with row groups as DuckDB writes them, and amounts that nothing packs."""
    for k in range(N_FILES):
        table = table_of(n // N_FILES // 5, digits=15, seed=k)
        with pq.ParquetWriter(folder / f"{k}.parquet", table.schema) as writer:
            for _ in range(5):
                writer.write_table(table, row_group_size=1 << 17)


def one_way(name: str, folder: Path) -> dict[str, Any]:
    """Read all files in one way; how long it took, and the peak of the memory."""
    files = str(folder / "*.parquet")

    def database() -> Any:
        import duckdb

        con = duckdb.connect(config={"memory_limit": MEMORY})
        return con, con.read_parquet(files)

    ways: dict[str, Call] = {
        "DuckDB, own sum": lambda: database()[1].aggregate(SUMS).fetchall(),
        "DuckDB, fit": lambda: a1gm.fit(database()[1]),
        "polars, own sum": lambda: (
            pl.scan_parquet(files).sum().collect(engine="streaming")
        ),
        "polars, fit": lambda: a1gm.fit(pl.scan_parquet(files)),
        "Dataset, fit": lambda: a1gm.fit(ds.dataset(folder)),
        "fit_file": lambda: a1gm.fit_file(folder),
    }
    start = time.perf_counter()
    found = ways[name]()
    seconds = time.perf_counter() - start
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    factor = found.col_factor.tolist() if hasattr(found, "col_factor") else None
    return {"seconds": seconds, "peak": peak / 1024, "factor": factor}


#: Ways, and the sum whose memory they are compared with: where there is no other, that
#: which needs least.
PAIRS = {
    "DuckDB, fit": "DuckDB, own sum",
    "polars, fit": "polars, own sum",
    "Dataset, fit": "polars, own sum",
    "fit_file": "polars, own sum",
}


def larger(n: int) -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, n)
        size = sum(file.stat().st_size for file in folder.iterdir()) / 1e9
        found = {}
        for way in dict.fromkeys([*PAIRS.values(), *PAIRS]):
            command = [sys.executable, __file__, "--way", way, "--folder", name]
            out = subprocess.run(command, check=True, capture_output=True, text=True)
            found[way] = json.loads(out.stdout)
            print(way, found[way], file=sys.stderr, flush=True)
    right = found["polars, fit"]["factor"]
    for way in PAIRS:
        np.testing.assert_allclose(found[way]["factor"], right, rtol=1e-11)
    rows = [
        {
            "way": way,
            "seconds": f"{measured['seconds']:.1f}",
            "peak_mb": f"{measured['peak']:.0f}",
            "mb_beyond_own_sum": f"{measured['peak'] - found[PAIRS[way]]['peak']:.0f}"
            if way in PAIRS
            else "",
        }
        for way, measured in found.items()
    ]
    print(f"{n:,} x {N_COLS}, {size:.1f} GB of Parquet in {N_FILES} files. {machine()}")
    print(markdown(rows))
    write_csv(rows, RESULTS / "engines_larger.csv")
    return any(float(row["mb_beyond_own_sum"] or 0) > OWN_MEMORY for row in rows)


def merged(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Rows of this run, and those of earlier ones that it did not measure."""
    path = RESULTS / "engines.csv"
    before = read_csv(path) if path.exists() else []
    found = {(row["engine"], row["what"]): row for row in [*before, *rows]}
    return list(found.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--local", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--larger", type=int, metavar="ROWS")
    parser.add_argument("--way", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.way:
        print(json.dumps(one_way(asked.way, asked.folder)))
        return 0
    if asked.larger:
        return larger(asked.larger)
    table = table_of(asked.rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        pq.write_table(table, path)
        rows = []
        if asked.local:
            rows += [*duckdb(table, path), *long_tables(asked.rows // 10)]
            rows += [*polars(path), *arrow(path), *dask(path)]
        if asked.postgres:
            rows += postgres(table.slice(0, asked.rows // 5))
        if asked.spark:
            rows += spark(path)
    shown = [row.shown() for row in rows]
    print(f"{asked.rows:,} x {N_COLS}, {N_PATTERNS} patterns. {machine()}")
    print(markdown(shown))
    write_csv(merged(shown), RESULTS / "engines.csv")
    return any(row.misses for row in rows)


if __name__ == "__main__":
    sys.exit(main())
