"""Tables larger than memory, and clusters: time and memory as ratios in one run.

    python benchmarks/scale.py            # makes a 4 GB file in a temporary folder
    python benchmarks/scale.py --quick    # a twentieth of it, nothing written
    python benchmarks/scale.py --only cluster
    python benchmarks/scale.py --only commands --source wide.parquet --long long.parquet

Prints a Markdown table and writes benchmarks/results/scale.csv. Whatever touches a
file runs in a process of its own, so that its peak memory is its own; compared runs
take turns and the fastest of each counts. The files are removed at the end.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from measuring import machine, markdown, read_csv, write_csv

RESULTS = Path(__file__).parent / "results" / "scale.csv"
GIGABYTE = 1 << 30
N_COLS = 50
ROUNDS = 3

# ------------------------------------------------------ what a child process does
CHILD = """
import json, sys, time
import numpy as np, pyarrow as pa
from pyarrow import parquet
task, source, target = sys.argv[1:4]
import a1gm, a1gm._api.impute_file  # the import is no part of the work
from a1gm._rows.files.columnar import batch_rows_for
from a1gm._rows.files.options import TableOptions

names = parquet.read_schema(source).names
batch_rows = batch_rows_for(len(names), TableOptions())
start, cpu = time.perf_counter(), time.process_time()
found = {}
if task == "read":  # as pyarrow reads when nothing is said
    for batch in parquet.ParquetFile(source).iter_batches(batch_rows):
        pass
elif task == "read checked":  # as fit_file reads
    file = parquet.ParquetFile(
        source, page_checksum_verification=True, pre_buffer=False, buffer_size=1 << 18
    )
    for batch in file.iter_batches(batch_rows):
        pass
elif task == "fit":
    fit = a1gm.fit_file(source)
    found = {"solver": fit.solver, "sweeps": fit.n_iter, "gap": fit.certificate}
elif task == "fill":
    a1gm.impute_file(source, target, overwrite=True)
elif task == "compare":
    fit = a1gm.fit_file(source)
    whole = a1gm.fit(parquet.read_table(source, pre_buffer=False))
    off = np.abs(fit.col_factor / whole.col_factor - 1).max()
    for first in range(0, len(fit.row_factor), 1 << 20):
        some = slice(first, first + (1 << 20))
        off = max(off, np.abs(fit.row_factor[some] / whole.row_factor[some] - 1).max())
    found = {"off": float(off)}
seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
# Not ru_maxrss: a child inherits it from the process that started it.
status = dict(line.split(":") for line in open("/proc/self/status"))
peak = int(status["VmHWM"].split()[0]) / 1024
print(json.dumps({"seconds": seconds, "cpu": cpu, "peak": peak, **found}))
"""


def run(task: str, source: Path, target: Path) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, task, str(source), str(target)],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(done.stdout)


def take_turns(
    tasks: list[str], source: Path, target: Path, rounds: int = ROUNDS
) -> dict[str, dict[str, float]]:
    """Run the tasks in turns; the fastest run of each, with the largest peak."""
    best: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for task in tasks:
            result = run(task, source, target)
            old = best.get(task, result)
            peak = max(old["peak"], result["peak"])
            cpu = min(old["cpu"], result["cpu"])
            fastest = min(old, result, key=lambda r: r["seconds"])
            best[task] = fastest | {"peak": peak, "cpu": cpu}
    return best


# ------------------------------------------------------------------- the commands
COMMAND = """
import json, sys, time
start = time.perf_counter()
if sys.argv[1] == "python":
    import pyarrow.parquet as pq, a1gm
    task, source = sys.argv[2:]
    if task == "fit_long":
        keys = {"keys": ["user", "item"], "value": "rating"}
        a1gm.fit_long(pq.read_table(source), **keys)
    else:
        fit = a1gm.fit_file(source)
        if task == "uncertainty":
            u = fit.uncertainty()
            u.totals("column"), u.index(), u.factor_errors().rows[:10], fit.row_labels
else:
    from a1gm.cli import main
    try:
        sys.argv[1:] = [*sys.argv[1:], "-q"]
        main()
    except SystemExit as stopped:
        assert not stopped.code, stopped.code
seconds = time.perf_counter() - start
status = dict(line.split(":") for line in open("/proc/self/status"))
peak = int(status["VmHWM"].split()[0]) / 1024
print(json.dumps({"seconds": seconds, "peak": peak}), file=sys.stderr)
"""


def run_command(*arguments: object) -> dict[str, float]:
    """Seconds and peak memory of a command, or of a call in Python, start included."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stderr.splitlines()[-1])


def write_counts(path: Path, n_rows: int, *, with_id: bool) -> None:
    """Write counts in 8 columns, 5 % of them missing at random."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    h = np.array([5.0, 8.0, 12.0, 20.0, 30.0, 9.0, 3.0, 40.0])
    schema = pa.schema([(f"c{j}", pa.float64()) for j in range(len(h))])
    if with_id:
        schema = schema.insert(0, pa.field("shop", pa.string()))
    with parquet.ParquetWriter(
        path, schema, use_dictionary=False, write_page_checksum=True
    ) as writer:
        for start in range(0, n_rows, 1 << 20):
            n = min(1 << 20, n_rows - start)
            X = rng.poisson(rng.gamma(2.0, 1.0, n)[:, None] * h).astype(float)
            holes = rng.random(X.shape) < 0.05
            cells = [
                pa.array(x, mask=hole) for x, hole in zip(X.T, holes.T, strict=True)
            ]
            if with_id:
                names = np.arange(start, start + n).astype("U8")
                cells = [pa.array(np.char.add("shop", names)), *cells]
            writer.write_batch(pa.record_batch(cells, schema=schema))


def write_pairs(path: Path, n_rows: int) -> None:
    """Write about so many ratings of 1,000 items by n_rows / 20 users."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    user = rng.integers(0, n_rows // 20, n_rows)
    pair = np.unique(user * 1000 + (rng.random(n_rows) ** 2 * 1000).astype(int))
    rng.shuffle(pair)
    columns = {"user": pair // 1000, "item": pair % 1000}
    parquet.write_table(
        pa.table(columns | {"rating": rng.poisson(3.0, len(pair)) + 0.0}), path
    )


def measure_commands(
    folder: Path, n_rows: int, source: Path | None, long: Path | None
) -> list[dict[str, object]]:
    """Every command on a long file of 8 columns, and on one row per cell."""
    if source is None:
        source = folder / "counts.parquet"
        write_counts(source, n_rows, with_id=False)
        write_counts(source.with_stem("counts_id"), n_rows, with_id=True)
    named = source.with_stem(source.stem + "_id")
    out = folder / "out"
    size, cells = f"{n_rows / 1e6:.0f} million x 8", n_rows * 8
    tasks: dict[str, tuple[object, ...]] = {
        "a1gm inspect": ("inspect", source),
        "a1gm fit": ("fit", source, "-o", out),
        "a1gm fit, with names": ("fit", named, "-o", out),
        "a1gm impute": ("impute", source, "-o", folder / "filled.parquet"),
        "a1gm impute, with names": ("impute", named, "-o", folder / "filled.parquet"),
        "a1gm assess": ("assess", source),
        "a1gm report": ("report", source, "-o", folder / "report.html"),
        "fit_file": ("python", "fit_file", source),
        "fit_file and uncertainty(), with names": ("python", "uncertainty", named),
    }
    rows = []
    for name, arguments in tasks.items():
        more = ["--overwrite"] if "-o" in arguments else []
        found = run_command(*arguments, *more)
        rows.append(row(f"{size}: {name}", cells, found, asked="< 500 MB"))
        print(markdown(rows[-1:]), flush=True)
    if long is None:
        long = folder / "pairs.parquet"
        write_pairs(long, n_rows)
    keys = ["--long", "user,item,rating", "-o", out, "--overwrite"]
    fit = run_command("python", "fit_long", long)
    command = run_command("fit", long, *keys)
    model = (out / "model.a1gm").stat().st_size / 1e6
    ratio = command["seconds"] / fit["seconds"]
    size, what = f"{n_rows / 1e6:.0f} million pairs", "read_table and fit_long"
    rows.append(row(f"{size}: {what}", n_rows, fit))
    rows.append(
        row(
            f"{size}: a1gm fit --long (model of {model:.0f} MB)",
            n_rows,
            command,
            ratio=ratio,
            to=what,
            asked="<= 2",
        )
    )
    return rows


# ----------------------------------------------------------------------- the files
def write_file(path: Path, n_bytes: int, n_cols: int, *, patterns: int | None) -> int:
    """Write a Parquet file of about so many bytes; returns its rows.

    ``patterns`` is how many patterns of holes the rows have; None for 5 % of the cells
    missing at random.
    """
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    keep = rng.random((patterns or 1, n_cols)) < 0.8
    keep[:, 0] = True
    schema = pa.schema([(f"c{j}", pa.float64()) for j in range(n_cols)])
    step = max(1024, (1 << 23) // n_cols)
    n_rows = 0
    with parquet.ParquetWriter(
        path, schema, use_dictionary=False, write_page_checksum=True
    ) as writer:
        while path.stat().st_size < n_bytes:
            X = rng.random((step, n_cols)) + 0.01
            if patterns is None:
                holes = rng.random(X.shape) < 0.05
            else:
                holes = ~keep[rng.integers(0, patterns, step)]
            columns = [pa.array(X[:, j], mask=holes[:, j]) for j in range(n_cols)]
            writer.write_batch(pa.record_batch(columns, schema=schema))
            n_rows += step
    return n_rows


# --------------------------------------------------------------------- the reports
def row(
    work: str,
    cells: int,
    result: dict[str, float],
    *,
    ratio: float | None = None,
    to: str = "",
    asked: str = "",
) -> dict[str, object]:
    return {
        "work": work,
        "cells": cells,
        "seconds": round(result["seconds"], 3),
        "cpu": round(result["cpu"], 3) if "cpu" in result else "",
        "peak": f"{result['peak']:.0f} MB" if "peak" in result else "",
        "ratio": "" if ratio is None else f"{ratio:.2f}",
        "to": to,
        "asked": asked,
    }


def measure_file(folder: Path, n_bytes: int) -> list[dict[str, object]]:
    """A long file with few patterns: reading, fitting, filling."""
    source, target = folder / "long.parquet", folder / "filled.parquet"
    n_rows = write_file(source, n_bytes, N_COLS, patterns=24)
    cells = n_rows * N_COLS
    size = f"{source.stat().st_size / GIGABYTE:.1f} GB"
    best = take_turns(["read", "read checked", "fit"], source, target)
    plain, read, fit = best["read"], best["read checked"], best["fit"]
    fill = take_turns(["fill"], source, target, rounds=1)["fill"]
    target.unlink()
    rows = [
        row(f"{size}: read by pyarrow", cells, plain),
        row(f"{size}: read, pages verified", cells, read),
        row(
            f"{size}: fit_file",
            cells,
            fit,
            ratio=fit["seconds"] / read["seconds"],
            to="read, pages verified",
            asked="<= 1.5, < 600 MB",
        ),
        row(
            f"{size}: fit_file",
            cells,
            fit,
            ratio=fit["seconds"] / plain["seconds"],
            to="read by pyarrow",
        ),
        row(
            f"{size}: impute_file",
            cells,
            fill,
            ratio=fill["seconds"] / read["seconds"],
            to="read, pages verified",
            asked="< 600 MB",
        ),
    ]
    same = run("compare", source, target)
    rows.append(
        row(f"{size}: largest difference from a1gm.fit", cells, same)
        | {"ratio": f"{same['off']:.1e}", "to": "relative", "asked": "<= 1e-11"}
    )
    source.unlink()
    return rows


def measure_growth(folder: Path, n_bytes: int) -> list[dict[str, object]]:
    """The same fit at sizes a factor of ten apart."""
    rows = []
    for cells in (10**7, 10**8):
        if cells * 8 > 2 * n_bytes:
            break
        source = folder / "part.parquet"
        n_rows = write_file(source, int(cells * 6.5), N_COLS, patterns=24)
        fit = take_turns(["fit"], source, folder / "none")["fit"]
        n_cells = n_rows * N_COLS
        pace = fit["seconds"] / n_cells * 1e9
        each = {"ratio": f"{pace:.1f}", "to": "s per 10⁹ cells"}
        rows.append(
            row(f"fit_file, {n_cells / 1e6:.0f} million cells", n_cells, fit) | each
        )
        source.unlink()
    return rows


def measure_masks(folder: Path, n_bytes: int) -> list[dict[str, object]]:
    """A wide file with holes at random: every row its own pattern."""
    source = folder / "wide.parquet"
    n_rows = write_file(source, n_bytes // 5, 500, patterns=None)
    best = take_turns(["read checked", "fit"], source, folder / "none")
    read, fit = best["read checked"], best["fit"]
    source.unlink()
    what = f"{n_rows} x 500, 5 % missing at random: fit_file"
    sweeps = f"{fit['solver']}, {fit['sweeps']} sweeps, certificate {fit['gap']:.0e}"
    return [
        row(
            f"{what} ({sweeps})",
            n_rows * 500,
            fit,
            ratio=fit["seconds"] / read["seconds"],
            to="read, pages verified",
        )
    ]


def make_block(number: int, n_rows: int) -> np.ndarray:
    rng = np.random.default_rng(number)
    keep = np.random.default_rng(1).random((24, N_COLS)) < 0.8
    keep[:, 0] = True
    X = rng.random((n_rows, N_COLS)) + 0.01
    X[~keep[rng.integers(0, 24, n_rows)]] = np.nan
    return X


def _seconds_alone(n_rows: int) -> float:
    import a1gm

    X = make_block(0, n_rows)
    return min(_clock(lambda: a1gm.fit(X, n_threads=1)) for _ in range(ROUNDS))


def _fit_seconds(lazy: object, number: int) -> float:
    import a1gm

    # Another limit makes other tasks: Dask would remember the results of the same.
    limit = (1 << 32) + number
    return _clock(lambda: a1gm.distributed.fit(lazy, max_bytes=limit))


def measure_cluster(n_rows: int) -> list[dict[str, object]]:
    """Rows per second of processes that hold the partitions in memory."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    alone = _seconds_alone(n_rows)
    cells = n_rows * N_COLS
    rows = [row("a1gm.fit in memory, 1 thread", cells, {"seconds": alone})]
    for workers in (1, 2):
        cluster = LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            memory_limit=0,
        )
        with cluster, Client(cluster):
            for partitions in (2, 8, 32, 128):
                size = n_rows // partitions
                make = dask.delayed(make_block)
                lazy = da.concatenate(
                    [
                        da.from_delayed(make(k, size), (size, N_COLS), float)
                        for k in range(partitions)
                    ]
                ).persist()
                wait(lazy)
                seconds = min(_fit_seconds(lazy, k) for k in range(6))
                rate = n_rows / seconds
                rows.append(
                    row(
                        f"Dask, {workers} worker{'s' * (workers > 1)}, {partitions} "
                        f"partitions: {rate / 1e6:.1f} million rows/s",
                        cells,
                        {"seconds": seconds},
                        ratio=alone / seconds,
                        to="speed of a1gm.fit, 1 thread",
                    )
                )
                del lazy
    return rows


def _clock(call: object) -> float:
    start = time.perf_counter()
    call()  # type: ignore[operator]
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument(
        "--only", choices=["file", "growth", "masks", "cluster", "commands"]
    )
    parser.add_argument("--source", type=Path, help="of commands; made otherwise")
    parser.add_argument("--long", type=Path, help="one row per cell, the same")
    options = parser.parse_args()
    n_bytes = 4 * GIGABYTE // (20 if options.quick else 1)
    n_rows = 1_000_000 if options.quick else 20_000_000
    warnings.simplefilter("ignore")
    rows: list[dict[str, object]] = []
    if options.only is not None and RESULTS.exists():
        rows = [r for r in read_csv(RESULTS) if r["part"] != options.only]
    with tempfile.TemporaryDirectory(prefix="a1gm-scale-") as name:
        folder = Path(name)
        parts = {
            "growth": lambda: measure_growth(folder, n_bytes),
            "masks": lambda: measure_masks(folder, n_bytes),
            "cluster": lambda: measure_cluster(200_000 if options.quick else 1_000_000),
            "file": lambda: measure_file(folder, n_bytes),
            "commands": lambda: measure_commands(
                folder, n_rows, options.source, options.long
            ),
        }
        for part, measure in parts.items():
            if options.only in (None, part):
                rows += [{"part": part, **line} for line in measure()]
                print(markdown(rows), flush=True)
    print(machine())
    if not options.quick:
        write_csv(rows, RESULTS)


if __name__ == "__main__":
    main()
