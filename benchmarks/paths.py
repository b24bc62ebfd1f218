"""What people call around a fit must be as fast as the fit: ratios in one run.

    python benchmarks/paths.py                 # about ten minutes; or: make bench
    python benchmarks/paths.py --only impute   # these rows only

Prints a Markdown table, writes benchmarks/results/paths.csv (whole runs only), and
exits with 1 when a row misses. Calls that are compared run in turns and the fastest run
of each counts. What may take minutes runs in a process of its own, which is ended after
``PATIENCE`` seconds.
"""

from __future__ import annotations

import argparse
import functools
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from engine import Report, at_random, with_patterns
from measuring import fastest, machine, markdown, one_trial, write_csv

import a1gm
from a1gm.exceptions import DataHintWarning, EmptyLineWarning, UndeterminedWarning

RESULTS = Path(__file__).parent / "results" / "paths.csv"
A1GM = Path(sysconfig.get_path("scripts")) / "a1gm"
BUDGET = 2.0  # seconds for each call that is compared
PATIENCE = 60.0  # seconds for a call in a process of its own
TOL = 1e-10


@functools.cache
def patterns() -> np.ndarray:
    return with_patterns(1_000_000, 20)


# ------------------------------------------------------------------- around a fit
def impute(report: Report) -> None:
    for work, X in (
        ("impute, 1,000,000 x 20, 16 patterns", patterns()),
        ("impute, 250,000 x 500, 5 % at random", at_random(250_000, 500)),
    ):
        fit = a1gm.fit(X)
        ours = functools.partial(fit.impute, X)
        times = fastest({"a1gm": ours, "copy": X.copy}, BUDGET)
        report.add(work, times["a1gm"], "X.copy()", times["copy"], 1.5)


def transform(report: Report) -> None:
    X = patterns()
    fit = a1gm.fit(X)
    times = fastest(
        {"a1gm": lambda: fit.transform(X), "fit": lambda: a1gm.fit(X)}, BUDGET
    )
    work = "transform, 1,000,000 x 20, 16 patterns"
    report.add(work, times["a1gm"], "the fit", times["fit"], 2.0)


def divergence(report: Report) -> None:
    X = patterns()
    fit = a1gm.fit(X)
    times = fastest({"a1gm": lambda: fit.divergence_of(X), "sum": X.sum}, BUDGET)
    work = "divergence, 1,000,000 x 20, 16 patterns"
    report.add(work, times["a1gm"], "X.sum()", times["sum"], 8.0)


def imputer(report: Report) -> None:
    from sklearn.impute import SimpleImputer

    X = patterns()
    times = fastest(
        {
            "a1gm": lambda: a1gm.RankOneImputer().fit_transform(X),
            "sklearn": lambda: SimpleImputer().fit_transform(X),
        },
        BUDGET,
    )
    work = "RankOneImputer.fit_transform, 1,000,000 x 20"
    report.add(work, times["a1gm"], "SimpleImputer", times["sklearn"], 1 / 5)


# A frame as people hold it: a column of names before the numbers.
SHAPES = ((1_000, 1_000), (200_000, 20), (50, 4_000))
FIT_LIMIT, FILL_LIMIT = 1.5, 2.5  # beside the same frame without the names
WIDE_FIT_LIMIT, WIDE_FILL_LIMIT = 5.0, 25.0  # of 50 x 4,000 in polars, beside the array


def frame_of(X: np.ndarray) -> Any:
    """The numbers of an array in polars, missing ones as null."""
    import polars as pl

    return pl.DataFrame(X, schema=[f"c{j}" for j in range(X.shape[1])]).fill_nan(None)


def named(numbers: Any) -> Any:
    """The same frame of polars with a column of names in front."""
    import polars as pl

    names = pl.Series("name", [f"r{i}" for i in range(numbers.height)])
    return numbers.clone().insert_column(0, names)


LIBRARIES: dict[str, Callable[[Any], Any]] = {
    "pandas": lambda frame: frame.to_pandas(),
    "polars": lambda frame: frame,
    "Arrow": lambda frame: frame.to_arrow(),
}


def frames(report: Report) -> None:
    X = patterns()
    table = named(frame_of(X))
    tables = {name: of(table) for name, of in LIBRARIES.items()}
    calls = {name: lambda t=t: a1gm.fit(t).impute(t) for name, t in (*tables.items(),)}
    times = fastest(
        {"array": lambda: a1gm.fit(X).impute(X), **calls},
        BUDGET,
    )
    for name in LIBRARIES:
        work = f"fit().impute() in {name} with names, 1,000,000 x 20"
        report.add(work, times[name], "the array's", times["array"], 1.5)
    for n_rows, n_cols in SHAPES:
        numbers = frame_of(at_random(n_rows, n_cols))
        for library, of in LIBRARIES.items():
            work = f"{library}, {n_rows:,} x {n_cols:,}"
            plain = of(numbers)
            beside(report, work, "names", of(named(numbers)), "numbers alone", plain)
    other_labels(report)
    nullable(report)
    wide(report)


def beside(
    report: Report,
    work: str,
    what: str,
    table: Any,
    against: str,
    other: Any,
    limits: tuple[float, float] = (FIT_LIMIT, FILL_LIMIT),
) -> None:
    """Compare the fit and the fill of a table with those of another one."""
    fit, other_fit = a1gm.fit(table), a1gm.fit(other)
    times = fastest(
        {
            "fit": lambda: a1gm.fit(table),
            "other fit": lambda: a1gm.fit(other),
            "fill": lambda: fit.impute(table),
            "other fill": lambda: other_fit.impute(other),
        },
        BUDGET / 2,
        time.process_time,  # milliseconds: another program would take all of them
    )
    for call, limit in zip(("fit", "fill"), limits, strict=True):
        report.add(
            f"{call} with {what}, {work}",
            times[call],
            against,
            times[f"other {call}"],
            limit,
        )


def other_labels(report: Report) -> None:
    import pandas as pd

    n, m = 200_000, 20
    numbers = frame_of(at_random(n, m)).to_pandas()
    labels = {
        "dates": ("date", pd.date_range("1990", periods=n, freq="h")),
        "numbers as ids": ("customer_id", np.arange(n)),
        "categories": ("kind", pd.Categorical(np.arange(n) % 50 + 0.5)),
    }
    for what, (name, cells) in labels.items():
        table = numbers.copy()
        table.insert(0, name, cells)
        work = f"pandas, {n:,} x {m:,}"
        beside(report, work, what, table, "numbers alone", numbers)


def nullable(report: Report) -> None:
    import polars as pl

    numbers = frame_of(at_random(200_000, 20))
    whole = numbers.select(pl.all().mul(10.0).ceil().cast(pl.Int64))
    for library, of in LIBRARIES.items():
        table = of(named(whole))
        if library == "pandas":
            table = table.astype(dict.fromkeys(table.columns[1:], "Int64"))
        limits = (4.0, 6.0 if library == "pandas" else 4.0)
        work = f"{library}, 200,000 x 20"
        against = "floats with names"
        floats = of(named(numbers))
        beside(report, work, "nullable integers", table, against, floats, limits)


def wide(report: Report) -> None:
    X = at_random(50, 4_000)
    table = named(frame_of(X))
    fit = a1gm.fit(table)
    times = fastest(
        {
            "fit": lambda: a1gm.fit(table),
            "fill": lambda: fit.impute(table),
            "array's fit": lambda: a1gm.fit(X),
            "array's fit and fill": lambda: a1gm.impute(X),
        },
        BUDGET / 2,
        time.process_time,
    )
    work = "with names, polars, 50 x 4,000"
    for call, against, limit in (
        ("fit", "array's fit", WIDE_FIT_LIMIT),
        ("fill", "array's fit and fill", WIDE_FILL_LIMIT),
    ):
        report.add(
            f"{call} {work}", times[call], f"the {against}", times[against], limit
        )


def pieces(report: Report) -> None:
    X = patterns()

    def fit() -> a1gm.RankOneFit:
        table = a1gm.PatternTable()
        for piece in np.split(X, 50):
            table.update(piece)
        return table.solve()

    times = fastest({"a1gm": fit, "sum": X.sum}, BUDGET)
    work = "PatternTable in 50 pieces, 1,000,000 x 20"
    report.add(work, times["a1gm"], "X.sum()", times["sum"], 2.5)


# ---------------------------------------------------------------- fits by themselves
def fits(report: Report) -> None:
    for work, X, limit in (
        ("fit, float32, 1,000,000 x 20", patterns().astype(np.float32), 1.8),
        ("fit, 100,000 x 500, 5 % at random", at_random(100_000, 500), 2.5),
    ):
        times = fastest({"a1gm": lambda X=X: a1gm.fit(X), "sum": X.sum}, BUDGET)
        report.add(work, times["a1gm"], "X.sum()", times["sum"], limit)


def zeros(report: Report) -> None:
    """A row or a column of zeros, as paid triangles have them."""
    rng = np.random.default_rng(0)
    triangle = rng.poisson(200.0, (10, 10)) + 1.0
    triangle[np.add(*np.indices((10, 10))) > 9] = np.nan
    spread = np.where(rng.random((30, 12)) < 0.1, np.nan, rng.poisson(20.0, (30, 12)))
    spread += 1.0
    for name, X in (("triangle 10 x 10", triangle), ("30 x 12, 10 % holes", spread)):
        row, column = X.copy(), X.copy()
        row[4] *= 0.0
        column[:, 4] *= 0.0
        for what, zeroed in (("row", row), ("column", column)):
            for work in (a1gm.fit, a1gm.impute):
                label = f"{work.__name__}, a {what} of zeros, {name}"
                trials = [
                    [one_trial(functools.partial(work, table)) for table in (zeroed, X)]
                    for _ in range(5)
                ]
                seconds, usual = np.min(trials, axis=0)
                report.add(label, seconds, "the same without", usual, 3.0)


def weights(report: Report) -> None:
    X = at_random(20_000, 500)
    V = np.random.default_rng(1).random(X.shape) + 0.5
    times = fastest(
        {"a1gm": lambda: a1gm.fit(X, weights=V), "plain": lambda: a1gm.fit(X)}, BUDGET
    )
    work = "weighted fit, 20,000 x 500"
    report.add(work, times["a1gm"], "the plain fit", times["plain"], 5.0)
    X = at_random(100_000, 10)
    V = np.random.default_rng(1).random(X.shape) + 0.5
    i, j = np.nonzero(~np.isnan(X))
    S, W = (sp.csr_array((table[i, j], (i, j)), X.shape) for table in (X, V))
    times = fastest(
        {
            "sparse": lambda: a1gm.fit(S, weights=W, absent="missing"),
            "array": lambda: a1gm.fit(X, weights=V),
        },
        BUDGET,
    )
    work = "weighted fit, 100,000 x 10, 5 % at random, sparse"
    report.add(work, times["sparse"], "as array", times["array"], 3.0)
    memory = alone(weighted_memory)
    work = "weighted fit, 1 GB + 1 GB of weights: memory"
    report.add_size(work, memory, "X and weights", 1.3)


def weighted_memory() -> float:
    """Peak of the tables and their fit over the tables."""
    X = at_random(250_000, 500)
    V = np.random.default_rng(1).random(X.shape) + 0.5
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of the making
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    before = pages * os.sysconf("SC_PAGE_SIZE")
    a1gm.fit(X, weights=V)
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    return 1.0 + (peak * 1024 - before) / (X.nbytes + V.nbytes)


# --------------------------------------------------------------------------- sparse
def random_sparse(n: int, per_row: int, seed: int = 0) -> sp.csr_array:
    """So many cells per row at random places of a square table."""
    random = np.random.default_rng(seed)
    rows = np.repeat(np.arange(n), per_row)
    cells = (
        random.gamma(2.0, size=len(rows)),
        (rows, random.integers(n, size=len(rows))),
    )
    S = sp.csr_array(cells, shape=(n, n))
    S.sum_duplicates()
    return S


def bridged(n: int, per_row: int) -> sp.csr_array:
    """Two random halves that one cell joins."""
    halves = [random_sparse(n // 2, per_row, seed) for seed in (0, 1)]
    S = sp.block_diag(halves, format="lil")
    S[0, n - 1] = 1.0
    return sp.csr_array(S)


def plain_scaling(S: sp.csr_array, patience: float = PATIENCE) -> float:
    """Seconds of plain scaling; infinite where that takes too long."""
    return scale_plainly(S, patience).seconds


@dataclass(frozen=True)
class Plain:
    """How far plain scaling got, and after how long."""

    seconds: float  # infinite where it was stopped
    gap: float
    needs: float  # seconds; at the rate of its last half where it was stopped


def scale_plainly(S: sp.csr_array, patience: float) -> Plain:
    """Alternating scaling of the mask in SciPy, to the fit's certificate.

    Its rate falls as it goes on, so one that was stopped needs longer than it says.
    """
    started = time.perf_counter()
    mask = sp.csr_array((np.ones(S.nnz), S.indices, S.indptr), shape=S.shape)
    row_sums, col_sums = S.sum(axis=1), S.sum(axis=0)
    if not (col_sums > 0.0).all():
        mask, col_sums = mask[:, col_sums > 0.0], col_sums[col_sums > 0.0]
    across = mask.T.tocsr()
    h = np.ones(len(col_sums))
    half: tuple[float, float] | None = None  # seconds and gap, half way to its end
    while True:
        w = row_sums / (mask @ h)
        fitted = h * (across @ w)
        seconds = time.perf_counter() - started
        gap = float((np.abs(fitted - col_sums) / col_sums).max())
        if gap <= TOL:
            return Plain(seconds, gap, seconds)
        if half is None and seconds > patience / 2:
            half = seconds, gap
        if half is not None and seconds > patience:
            falls = math.log(half[1] / gap) / (seconds - half[0])
            left = math.log(gap / TOL) / falls if falls > 0.0 else math.inf
            return Plain(math.inf, gap, seconds + left)
        h *= col_sums / fitted


def sparse(report: Report) -> None:
    for n, per_row, limit in ((5_000, 4, 1.0), (20_000, 4, 1.0), (20_000, 10, 0.5)):
        S = random_sparse(n, per_row)
        times = {
            "a1gm": min(alone(seconds_of, fit_sparse, S) for _ in range(3)),
            "scaling": min(alone(plain_scaling, S) for _ in range(3)),
        }
        work = f"sparse, {n:,} x {n:,}, {per_row} cells per row"
        rival = "plain scaling in SciPy"
        report.add(work, times["a1gm"], rival, times["scaling"], limit)
    seconds = alone(seconds_of, fit_sparse, bridged(10_000, 4))
    work = "sparse, 10,000 x 10,000, two halves and a bridge"
    report.add(work, seconds, "five seconds", 5.0, 1.0)


def fit_sparse(S: sp.csr_array) -> None:
    a1gm.fit(S, absent="missing")


# ------------------------------------------------------------------------------ files
def text_file(report: Report) -> None:
    n_rows, n_cols = 200, 20_000
    code = "import sys, pandas as p; p.read_csv(sys.argv[1]).to_csv(sys.argv[2])"
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "in.csv", Path(folder) / "out.csv"
        names = ",".join(f"c{j}" for j in range(n_cols))
        X = at_random(n_rows, n_cols)
        lines = (",".join("" if np.isnan(v) else f"{v:.4f}" for v in row) for row in X)
        source.write_text("\n".join([names, *lines, ""]), encoding="utf-8")
        ours = [A1GM, "impute", source, "-o", out, "-q", "--overwrite"]
        theirs = [sys.executable, "-c", code, source, out]
        times = fastest(
            {
                "a1gm": lambda: run_quietly(ours),
                "pandas": lambda: run_quietly(theirs),
            },
            BUDGET,
        )
    work = f"a1gm impute, text file of {n_rows} x {n_cols:,}"
    report.add(work, times["a1gm"], "pandas' read and write", times["pandas"], 2.0)


def run_quietly(command: list[object]) -> None:
    subprocess.run(list(map(str, command)), check=True, capture_output=True)


# ------------------------------------------------------------------------- interrupts
SLOW = {
    "the pass": (
        "X = np.broadcast_to(np.arange(1.0, 5e4), (200_000, 49_999)); do = a1gm.fit"
    ),
    "a factorisation": (
        "import paths, zoo; X = zoo.lattice(1_000_000, 5); do = paths.fit_sparse"
    ),
}


def interrupts(report: Report) -> None:
    for where, table in SLOW.items():
        code = f"import numpy as np, a1gm; {table}; print(flush=True); do(X)"
        slowest = max(seconds_to_stop(code, after) for after in (0.5, 2.0, 6.0))
        report.add(f"Ctrl-C in {where}", slowest, "a second", 1.0, 1.0)


def seconds_to_stop(code: str, after: float) -> float:
    """Time from an interrupt to the end of the process."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parent,
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    started = time.perf_counter()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return time.perf_counter() - started


# ----------------------------------------------------------------------------- growth
def growth(report: Report) -> None:
    """Time per doubling, from tables that no cache holds to four times as much."""
    by_rows = [with_patterns(n, 20) for n in (500_000, 2_000_000)]
    by_cols = [at_random(50_000, m) for m in (200, 800)]
    for what, pair in (("rows x 20", by_rows), ("columns x 50,000", by_cols)):
        fits = [a1gm.fit(X) for X in pair]
        add_doubling(report, f"impute, {what}", [f.impute for f in fits], pair)
        add_doubling(report, f"transform, {what}", [f.transform for f in fits], pair)
    V = [np.random.default_rng(1).random(X.shape) + 0.5 for X in by_cols]
    fit_weighted = [functools.partial(a1gm.fit, weights=v) for v in V]
    add_doubling(report, "weighted fit, columns x 50,000", fit_weighted, by_cols)
    squares = [random_sparse(n, 10) for n in (40_000, 160_000)]
    add_doubling(report, "sparse fit, 10 cells per row", [fit_sparse] * 2, squares)


def add_doubling(
    report: Report,
    work: str,
    calls: list[Callable[[object], object]],
    tables: list[object],
) -> None:
    """Compare a call of a table with that of a table four times as large."""
    runs = zip(("small", "large"), calls, tables, strict=True)
    times = fastest({k: functools.partial(call, X) for k, call, X in runs}, BUDGET)
    report.add_growth(
        f"{work}: time per doubling", (times["large"] / times["small"]) ** 0.5
    )


# ---------------------------------------------------------------- a process of its own
def alone(
    call: Callable[..., Any], *arguments: object, patience: float = PATIENCE
) -> Any:
    """Result of a call in a process of its own; infinity when it takes too long."""
    with multiprocessing.get_context("spawn").Pool(1, quiet) as pool:
        try:
            return pool.apply_async(call, arguments).get(patience)
        except multiprocessing.TimeoutError:
            return math.inf


def seconds_of(call: Callable[[object], object], table: object) -> float:
    call(sp.csr_array(np.eye(2)))  # whatever is imported late
    started = time.perf_counter()
    call(table)
    return time.perf_counter() - started


def quiet() -> None:
    warnings.simplefilter("ignore", EmptyLineWarning)
    warnings.simplefilter("ignore", UndeterminedWarning)
    warnings.simplefilter("ignore", DataHintWarning)


ROWS = {
    "impute": impute,
    "transform": transform,
    "divergence": divergence,
    "imputer": imputer,
    "frames": frames,
    "pieces": pieces,
    "fits": fits,
    "zeros": zeros,
    "weights": weights,
    "sparse": sparse,
    "text": text_file,
    "interrupts": interrupts,
    "growth": growth,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=ROWS, nargs="+", help="these rows only")
    chosen = parser.parse_args().only
    quiet()
    print(machine())
    report = Report()
    for name in chosen or ROWS:
        ROWS[name](report)
    print()
    print(markdown(report.rows))
    if chosen is None:
        write_csv(report.rows, RESULTS)
    return int(report.missed)


if __name__ == "__main__":
    sys.exit(main())
