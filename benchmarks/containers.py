"""What the containers must reach: every row a ratio measured in one run.

    python benchmarks/containers.py            # about two minutes
    python benchmarks/containers.py --quick    # a tenth of the size, for a first look

Prints a Markdown table, writes benchmarks/results/containers.csv, and exits with 1 when
a row misses. Calls that are compared run in turns and the fastest run of each counts.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import scipy.sparse as sp
from measuring import Call, duration, fastest, machine, markdown, write_csv

import a1gm
from a1gm.exceptions import EmptyLineWarning

RESULTS = Path(__file__).parent / "results" / "containers.csv"
BUDGET = 4.0  # seconds for each call that is compared
TURNS = 12
SHAPES = {(15, 24): 5.0, (50, 4000): 3.0, (200_000, 20): 2.0}
BEFORE = {  # of a fit alone, when a frame was still asked for each column
    ("pandas", 15, 24): "64 x",
    ("polars", 15, 24): "61 x",
    ("pandas", 50, 4000): "over 500 x",
    ("polars", 50, 4000): "over 500 x",
}
FRAME_RATIO, SPARSE_RATIO, MEMORY_RATIO, CERTIFICATE = 2.0, 15.0, 3.0, 1e-10


def row(
    work: str, reached: str, asked: str, *, ok: bool, takes: str = "", before: str = ""
) -> dict:
    return {
        "work": work,
        "takes": takes,
        "before": before or "-",
        "reached": reached,
        "asked": asked,
        "met": "yes" if ok else "NO",
    }


# --------------------------------------------------------------------------- frames
def frame_tables(n_rows: int) -> dict[str, object]:
    """Return 16 patterns in 10 columns, in every container."""
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, size=(n_rows, 10))
    patterns = rng.random((16, 10)) < 0.25
    patterns[0] = False
    X[patterns[rng.integers(0, 16, n_rows)]] = np.nan
    polars = pl.DataFrame(X).fill_nan(None)
    step = n_rows // 10
    cuts = [polars[start : start + step] for start in range(0, n_rows, step)]
    return {
        "NumPy": X,
        "polars": polars,
        "Arrow": polars.to_arrow(),
        "polars in 10 chunks": pl.concat(cuts, rechunk=False),
        "pandas": polars.to_pandas(),
    }


def measure_frames(n_rows: int) -> list[dict]:
    tables = frame_tables(n_rows)
    calls = {name: (lambda t=t: a1gm.fit(t)) for name, t in tables.items()}
    times = fastest(calls, budget=BUDGET)
    rows = []
    for name in list(tables)[1:]:
        ratio = times[name] / times["NumPy"]
        asked = f"<= {FRAME_RATIO:g} x NumPy" if name in ("polars", "Arrow") else "-"
        rows.append(
            row(
                f"{name}, {n_rows:,} x 10 with nulls",
                f"{ratio:.2f} x NumPy",
                asked,
                ok=asked == "-" or ratio <= FRAME_RATIO,
                takes=duration(times[name]),
            )
        )
    return rows


def measure_shapes() -> list[dict]:
    """Small and wide frames beside the array, in processor time.

    On a shared machine the short calls of the array find a quiet moment and the longer
    ones do not.
    """
    rows = []
    for (n_rows, n_cols), limit in SHAPES.items():
        X = np.random.default_rng(0).gamma(2.0, size=(n_rows, n_cols))
        X[np.random.default_rng(1).random(X.shape) < 0.05] = np.nan
        polars = pl.DataFrame(X, orient="row").fill_nan(None)
        tables = {"NumPy": X, "pandas": polars.to_pandas(), "polars": polars}
        works = {
            "fit": a1gm.fit,
            "fit().impute()": lambda t: a1gm.fit(t).impute(t),
            "impute": a1gm.impute,
        }
        for work, do in works.items():
            calls = {k: (lambda t=t, do=do: do(t)) for k, t in tables.items()}
            if n_cols > n_rows:
                calls["polars alone"] = lambda p=polars: pl.DataFrame(Handed(p))
            times = fastest(calls, BUDGET / 4, time.process_time)
            for name in ("pandas", "polars"):
                ratio = times[name] / times["NumPy"]
                rows.append(
                    row(
                        f"{work} in {name}, {n_rows:,} x {n_cols:,}",
                        f"{ratio:.2f} x NumPy",
                        f"<= {limit:g} x NumPy",
                        ok=ratio <= limit,
                        takes=duration(times[name]),
                        before=BEFORE.get((name, n_rows, n_cols), ""),
                    )
                )
        if n_cols > n_rows:
            ratio = times["polars alone"] / times["NumPy"]
            rows.append(
                row(
                    f"  polars alone: {n_cols:,} columns handed out and taken back",
                    f"{ratio:.2f} x impute in NumPy",
                    "-",
                    ok=True,
                    takes=duration(times["polars alone"]),
                )
            )
    return rows


class Handed:
    """A frame of which only its Arrow stream is known."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)


# --------------------------------------------------------------------------- sparse
def sparse_table(scale: int) -> sp.csr_array:
    n, m, k = 1_000_000 // scale, 100_000 // scale, 10_000_000 // scale
    rng = np.random.default_rng(0)
    places = (
        rng.integers(0, n, k, dtype=np.int32),
        rng.integers(0, m, k, dtype=np.int32),
    )
    S = sp.csr_array((rng.gamma(2.0, size=k), places), shape=(n, m))
    S.sum_duplicates()
    return S


def in_turns(calls: dict[str, Call]) -> dict[str, float]:
    """Time each call as often as the others, and return its fastest run.

    The calls differ tenfold: by time, the short one would have ten times the chances
    of a quiet moment.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(TURNS):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: min(runs) for name, runs in times.items()}


def n_bytes(S: sp.csr_array) -> int:
    return S.data.nbytes + S.indices.nbytes + S.indptr.nbytes


def measure_sparse(scale: int) -> list[dict]:
    S = sparse_table(scale)
    times = in_turns(
        {
            "sums": lambda: (S.sum(axis=1), S.sum(axis=0)),
            "fit": lambda: a1gm.fit(S, absent="missing"),
            "zero": lambda: a1gm.fit(S, absent="zero"),
        }
    )
    certificate = a1gm.fit(S, absent="missing").certificate
    work = f"sparse {S.shape[0]:,} x {S.shape[1]:,}, {S.nnz:,} stored"
    ratio = times["fit"] / times["sums"]
    zero = times["zero"] / times["sums"]
    memory = peak_memory(scale)
    return [
        row(
            f'{work}, absent="missing"',
            f"{ratio:.1f} x both margins",
            f"<= {SPARSE_RATIO:g} x",
            ok=ratio <= SPARSE_RATIO,
            takes=duration(times["fit"]),
        ),
        row(
            "  its certificate",
            f"{certificate:.1e}",
            f"<= {CERTIFICATE:g}",
            ok=certificate <= CERTIFICATE,
        ),
        row(
            "  its peak memory, the table included",
            f"{memory:.2f} x the table",
            f"<= {MEMORY_RATIO:g} x",
            ok=memory <= MEMORY_RATIO,
        ),
        row(
            f'{work}, absent="zero"',
            f"{zero:.1f} x both margins",
            "-",
            ok=True,
            takes=duration(times["zero"]),
        ),
    ]


def peak_memory(scale: int) -> float:
    """Peak of the table and its fit over the table, in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak, (scale,))


def _peak(scale: int) -> float:
    warnings.simplefilter("ignore", EmptyLineWarning)
    small = sp.csr_array(np.ones((3, 3)))
    a1gm.fit(small, absent="missing")  # loads what is loaded on first use
    S = sparse_table(scale)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of the making
    before = _resident()
    a1gm.fit(S, absent="missing")
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    return 1.0 + (peak * 1024 - before) / n_bytes(S)


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    scale = 10 if parser.parse_args().quick else 1
    warnings.simplefilter("ignore", EmptyLineWarning)
    rows = measure_frames(5_000_000 // scale) + measure_shapes()
    rows += measure_sparse(scale)
    print(machine(), "\n")
    print(markdown(rows))
    if scale == 1:
        write_csv(rows, RESULTS)
    return int(any(r["met"] == "NO" for r in rows))


if __name__ == "__main__":
    sys.exit(main())
