"""Long tables and many small tables: every row a ratio measured in one run.

    python benchmarks/long.py            # about a minute
    python benchmarks/long.py --quick    # a tenth of the size, for a first look

Prints a Markdown table, writes benchmarks/results/long.csv, and exits with 1 when a row
misses. Calls that are compared run in turns and the fastest run of each counts; times
are of the processor, because the machine is shared.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
from containers import _resident, row
from measuring import Call, duration, fastest, machine, markdown, write_csv

import a1gm
from a1gm.exceptions import A1gmWarning

RESULTS = Path(__file__).parent / "results" / "long.csv"
MEMORY_RATIO, LOOP_RATIO, SMALL_RATIO = 3.0, 1.0, 5.0
SHAPES = [(12, 8), (15, 24)]  # of the many small tables
BEFORE = "24 x: a loop over pandas groups"
KEYS = ["user", "item"]


def in_turns(calls: dict[str, Call], turns: int) -> dict[str, float]:
    """Processor time of the fastest run of each call."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(turns):
        for name, call in calls.items():
            gc.collect()
            start = time.process_time()
            call()
            times[name].append(time.process_time() - start)
    return {name: min(runs) for name, runs in times.items()}


# ----------------------------------------------------------------------- one long table
def long_frame(scale: int) -> pd.DataFrame:
    n, m, k = 1_000_000 // scale, 100_000 // scale, 10_000_000 // scale
    rng = np.random.default_rng(0)
    pairs = np.unique(rng.integers(0, n * m, k))
    rng.shuffle(pairs)
    users, items = np.divmod(pairs, m)
    value = rng.gamma(2.0, size=len(pairs))
    return pd.DataFrame({"user": users, "item": items, "value": value})


def measure_long(scale: int) -> list[dict]:
    frame = long_frame(scale)
    times = in_turns(
        {
            "codes": lambda: [pd.factorize(frame[key]) for key in KEYS],
            "fit": lambda: a1gm.fit_long(frame, KEYS, "value"),
        },
        3,
    )
    fit = a1gm.fit_long(frame, KEYS, "value")
    work = f"long, {len(frame):,} rows, {fit.shape[0]:,} x {fit.shape[1]:,} keys"
    memory = peak_memory(frame)
    return [
        row(
            work,
            f"{times['fit'] / times['codes']:.1f} x pandas.factorize of both keys",
            "-",
            ok=True,
            takes=duration(times["fit"]),
        ),
        row(
            "  its peak memory, the frame included",
            f"{memory:.2f} x the frame",
            f"<= {MEMORY_RATIO:g} x",
            ok=memory <= MEMORY_RATIO,
        ),
        row(
            "  its certificate",
            f"{fit.certificate:.1e}",
            "<= 1e-10",
            ok=fit.certificate <= 1e-10,
        ),
    ]


def small_frames() -> dict[str, object]:
    """300 x 40 with a tenth of the pairs absent, its keys of several types."""
    rng = np.random.default_rng(0)
    shop, month = np.nonzero(rng.random((300, 40)) > 0.1)
    value = rng.gamma(2.0, size=len(shop))
    numbers = pd.DataFrame({"shop": shop, "month": month, "value": value})
    texts = numbers.astype({"shop": str, "month": str})
    texts["shop"] = "s" + texts["shop"]
    texts["month"] = "m" + texts["month"]
    polars = pl.from_pandas(texts)
    return {
        "pandas, text": texts,
        "pandas, numbers": numbers,
        "polars, text": polars,
        "Arrow, text": polars.to_arrow(),
    }


def measure_small() -> list[dict]:
    """What a fit of a small long table takes beyond coding its keys."""
    rows = []
    for name, frame in small_frames().items():
        keys = [frame["shop"], frame["month"]]
        if isinstance(frame, pl.DataFrame):
            keys = [key.to_arrow() for key in keys]
        calls = {
            "codes": lambda keys=keys: [factorize(key) for key in keys],
            "fit": lambda frame=frame: a1gm.fit_long(frame, ["shop", "month"], "value"),
        }
        times = fastest(calls, 1.0)
        ratio = times["fit"] / times["codes"]
        rows.append(
            row(
                f"long, 10,800 rows, 300 x 40 keys, {name}",
                f"{ratio:.1f} x factorising its keys",
                f"<= {SMALL_RATIO:g} x",
                ok=ratio <= SMALL_RATIO,
                takes=duration(times["fit"]),
            )
        )
    return rows


def factorize(key: object) -> object:
    """Code a column by its library."""
    is_pandas = isinstance(key, pd.Series)
    return pd.factorize(key) if is_pandas else key.dictionary_encode()


def peak_memory(frame: pd.DataFrame) -> float:
    """Peak of the frame and its fit over the frame, in a process of its own.

    The frame is made here: what its making leaves behind would hide the peak.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name in frame:
            np.save(Path(folder) / f"{name}.npy", frame[name].to_numpy())
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            return pool.apply(_peak, (folder,))


def _peak(folder: str) -> float:
    warnings.simplefilter("ignore", A1gmWarning)
    a1gm.fit_long(long_frame(10_000), KEYS, "value")  # loads what is loaded later
    columns = [*KEYS, "value"]
    frame = pd.DataFrame({c: np.load(f"{folder}/{c}.npy") for c in columns})
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = _resident()
    a1gm.fit_long(frame, KEYS, "value")
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    return 1.0 + (peak * 1024 - before) / frame.memory_usage(deep=True).sum()


# ------------------------------------------------------------------------- many tables
def measure_many(scale: int, n_rows: int, n_cols: int) -> list[dict]:
    rng = np.random.default_rng(0)
    stack = rng.gamma(2.0, size=(5_000 // scale, n_rows, n_cols))
    stack[rng.random(stack.shape) < 0.15] = np.nan
    table, i, j = np.nonzero(~np.isnan(stack))
    frame = pd.DataFrame(
        {
            "protein": np.char.add("P", table.astype(str)),
            "peptide": np.char.add("p", (n_rows * table + i).astype(str)),
            "sample": j,
            "value": stack[table, i, j],
        }
    )
    polars = pl.from_pandas(frame)
    args = "protein", ["peptide", "sample"], "value"
    times = in_turns(
        {
            "loop": lambda: [a1gm.fit(X) for X in stack],
            "fit_many of a stack": lambda: a1gm.fit_many(stack),
            "fit_many of a list": lambda: a1gm.fit_many(list(stack)),
            "fit_groups of pandas": lambda: a1gm.fit_groups(frame, *args),
            "fit_groups of polars": lambda: a1gm.fit_groups(polars, *args),
        },
        8,
    )
    loop = times.pop("loop")
    return [
        row(
            f"{name}, {len(stack):,} tables of {n_rows} x {n_cols}",
            f"{taken / loop:.2f} x a loop over arrays",
            f"<= {LOOP_RATIO:g} x",
            ok=taken <= LOOP_RATIO * loop,
            takes=duration(taken),
            before=BEFORE if "groups" in name else "",
        )
        for name, taken in times.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    scale = 10 if parser.parse_args().quick else 1
    warnings.simplefilter("ignore", A1gmWarning)
    rows = [r for shape in SHAPES for r in measure_many(scale, *shape)]
    rows += measure_small() + measure_long(scale)
    print(machine(), "\n")
    print(markdown(rows))
    if scale == 1:
        write_csv(rows, RESULTS)
    return int(any(r["met"] == "NO" for r in rows))


if __name__ == "__main__":
    sys.exit(main())
