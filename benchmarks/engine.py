"""What the engine must reach: every row a ratio measured in one run.

    python benchmarks/engine.py            # or: make bench
    python benchmarks/engine.py --quick    # a tenth of the rows, for a first look

Prints a Markdown table, writes benchmarks/results/engine.csv, and exits with 1 when a
row misses. Calls that are compared run in turns and the fastest run of each counts,
because on a shared machine the others measure its other users.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import numpy as np
from measuring import (
    Call,
    duration,
    fastest,
    machine,
    markdown,
    write_csv,
)

import a1gm
from a1gm import paper
from a1gm._kernel import kernel
from a1gm.exceptions import UndeterminedWarning

RESULTS = Path(__file__).parent / "results" / "engine.csv"
CERTIFICATE = 1e-10
BUDGET = 1.0  # seconds for each call that is compared


@dataclass
class Report:
    """The rows so far, and whether any missed."""

    rows: list[dict[str, object]] = field(default_factory=list)
    missed: bool = False

    def add(
        self,
        work: str,
        fit_seconds: float,
        other: str,
        other_seconds: float,
        limit: float,
    ) -> None:
        """Add a row that holds when fit / other is at most the limit."""
        ratio = fit_seconds / other_seconds
        at_least = limit < 1.0  # "so many times faster" reads better than 0.03
        reached = f"{1 / ratio:.1f} x faster" if at_least else f"{ratio:.2f}"
        asked = f">= {1 / limit:.3g} x faster" if at_least else f"<= {limit:g}"
        self._write(
            work,
            duration(fit_seconds),
            other,
            duration(other_seconds),
            reached,
            asked,
            ratio <= limit,
        )

    def add_size(self, work: str, ratio: float, other: str, limit: float) -> None:
        """Add a row that holds when the memory is at most so many times another."""
        reached = f"{ratio:.2f}"
        self._write(work, "", other, "", reached, f"<= {limit:g}", ratio <= limit)

    def add_growth(self, work: str, per_doubling: float) -> None:
        """Add a row that holds when the time grows no faster than the rows."""
        ratio = per_doubling / 2.0
        reached = f"{ratio:.2f}"
        self._write(
            work,
            f"x {per_doubling:.2f}",
            "the rows",
            "x 2",
            reached,
            "<= 1.15",
            ratio <= 1.15,
        )

    def add_certificate(self, work: str, fit: a1gm.RankOneFit) -> None:
        """Add a row that holds when the certificate does."""
        holds = fit.certificate <= CERTIFICATE
        solver = f"{fit.solver}, {fit.n_iter} iterations"
        self._write(
            work, solver, "certificate", "", f"{fit.certificate:.1e}", "<= 1e-10", holds
        )

    def _write(
        self,
        work: str,
        fit: str,
        other: str,
        seconds: str,
        ratio: str,
        asked: str,
        holds: bool,
    ) -> None:
        self.missed |= not holds
        row = {
            "work": work,
            "a1gm": fit,
            "against": other,
            "takes": seconds,
            "reached": ratio,
            "asked": asked,
            "holds": "yes" if holds else "MISSED",
        }
        self.rows.append(row)
        print(" | ".join(str(value) for value in row.values()), flush=True)


# ---------------------------------------------------------------------- tables
def rng() -> np.random.Generator:
    return np.random.default_rng(20220401)


def with_grid(n: int, m: int) -> np.ndarray:
    random = rng()
    X = random.random((n, m)) + 0.1
    X[np.ix_(random.random(n) < 0.3, random.random(m) < 0.1)] = np.nan
    return X


def with_patterns(n: int, m: int, n_patterns: int = 16) -> np.ndarray:
    """Few patterns, and a hole in every row."""
    random = rng()
    X = random.random((n, m)) + 0.1
    patterns = random.random((n_patterns, m)) < 0.3
    patterns[np.arange(n_patterns), np.arange(n_patterns) % m] = True
    patterns[:, 0] &= np.arange(n_patterns) % 2 == 0
    X[patterns[random.integers(n_patterns, size=n)]] = np.nan
    return X


def at_random(n: int, m: int, share: float = 0.05) -> np.ndarray:
    random = rng()
    X = random.random((n, m)) + 0.1
    X[random.random((n, m)) < share] = np.nan
    return X


def bridge(n: int, m: int) -> np.ndarray:
    """Two halves that a few cells join."""
    random = rng()
    X = random.random((n, m)) + 0.1
    X[: n // 2, m // 2 :] = np.nan
    X[n // 2 :, : m // 2] = np.nan
    for k in range(3):
        X[k, m // 2 + k] = random.random() + 0.1
    return X


def banded(n: int, m: int) -> np.ndarray:
    X = rng().random((n, m)) + 0.1
    X[np.abs(np.arange(n)[:, None] * m / n - np.arange(m)) > max(3, m // 50)] = np.nan
    return X


def staircase(n: int, m: int) -> np.ndarray:
    X = rng().random((n, m)) + 0.1
    X[np.arange(m) > (np.arange(n)[:, None] + 1) * m / n] = np.nan
    return X


TABLES: dict[str, Callable[[int, int], np.ndarray]] = {
    "grid": with_grid,
    "16 patterns": with_patterns,
    "at random": at_random,
    "staircase": staircase,
    "banded": banded,
    "bridge": bridge,
}


# --------------------------------------------------------------------- rivals
def plain_scaling(X: np.ndarray, max_sweeps: int) -> tuple[int, float]:
    """Alternating scaling in NumPy to the same certificate, or so many sweeps."""
    observed = ~np.isnan(X)
    P = observed.astype(np.float64)
    cells = np.where(observed, X, 0.0)
    R, C = cells.sum(axis=1), cells.sum(axis=0)
    h = C / C.sum()
    w = R / (P @ h)
    gap, sweeps = np.inf, 0
    while gap > CERTIFICATE and sweeps < max_sweeps:
        sweeps += 1
        h = C / (P.T @ w)
        t = P @ h
        gap = np.max(np.abs(w * t - R) / R)
        w = R / t
    return sweeps, float(gap)


# ----------------------------------------------------------------------- rows
def against_sum(report: Report, work: str, X: np.ndarray, limit: float) -> None:
    calls: dict[str, Call] = {"fit": lambda: a1gm.fit(X), "sum": X.sum}
    # Long enough for an idle second core to have been woken.
    times = fastest(calls, 3 * BUDGET)
    report.add(work, times["fit"], "X.sum()", times["sum"], limit)
    report.add_certificate(work, a1gm.fit(X))


def the_bridge(report: Report) -> None:
    X, Y = bridge(20_000, 20), with_patterns(20_000, 20)
    times = fastest(
        {"bridge": lambda: a1gm.fit(X), "patterns": lambda: a1gm.fit(Y)}, BUDGET
    )
    work = "20,000 x 20, bridge"
    report.add(work, times["bridge"], "same size, 16 patterns", times["patterns"], 2.0)
    report.add_certificate(work, a1gm.fit(X))


def against_wnmf(report: Report) -> None:
    for name in ("grid", "16 patterns", "at random", "bridge"):
        X = TABLES[name](1000, 1000)
        wnmf = {"wnmf": lambda X=X: paper.kl_wnmf(X, random_state=0)}
        times = fastest({"fit": lambda X=X: a1gm.fit(X), **wnmf}, BUDGET)
        report.add(
            f"1,000 x 1,000, {name}",
            times["fit"],
            "KL-WNMF in NumPy",
            times["wnmf"],
            1 / 30,
        )


def against_scaling(report: Report) -> None:
    for n, m in ((1000, 1000), (20_000, 20)):
        for name, make in TABLES.items():
            X = make(n, m)
            sweeps, gap = plain_scaling(X, 2000)
            what = (
                "plain scaling"
                if gap <= CERTIFICATE
                else f"plain scaling, stopped at {gap:.0e}"
            )
            rival = {"scaling": lambda X=X, s=sweeps: plain_scaling(X, s)}
            times = fastest({"fit": lambda X=X: a1gm.fit(X), **rival}, BUDGET)
            work = f"{n:,} x {m:,}, {name}"
            report.add(
                work, times["fit"], f"{what}, {sweeps} sweeps", times["scaling"], 1 / 3
            )
            report.add_certificate(work, a1gm.fit(X))


def against_algorithm1(report: Report) -> None:
    X = with_grid(400, 8)
    times = fastest(
        {"fit": lambda: a1gm.fit(X), "paper": lambda: paper.a1gm(X)}, BUDGET
    )
    report.add("400 x 8", times["fit"], "Algorithm 1 in NumPy", times["paper"], 0.5)


def against_zeros(report: Report, n: int) -> None:
    X = with_patterns(n, 20)
    Y = np.where(rng().random(X.shape) < 0.3, X * 0.0, X)
    times = fastest({"zeros": lambda: a1gm.fit(Y), "none": lambda: a1gm.fit(X)}, BUDGET)
    report.add(
        f"{n:,} x 20, 30 % zeros", times["zeros"], "without zeros", times["none"], 1.3
    )


def against_rows(report: Report, largest: int) -> None:
    """Doubling the rows doubles the time, up to 15 %, over the whole range."""
    sizes = [10_000 * 2**k for k in range(12) if 10_000 * 2**k <= largest]
    X = with_patterns(sizes[-1], 10)
    times = fastest({str(n): lambda n=n: a1gm.fit(X[:n]) for n in sizes}, BUDGET / 2)
    first, last = times[str(sizes[0])], times[str(sizes[-1])]
    doublings = np.log2(sizes[-1] / sizes[0])
    per_doubling = (last / first) ** (1.0 / doublings)
    report.add_growth(
        f"{sizes[0]:,} to {sizes[-1]:,} rows x 10, time per doubling", per_doubling
    )


def against_threads(report: Report, n: int) -> None:
    """Two threads are never slower than one, up to noise."""
    X = with_patterns(n, 10)
    times = fastest(
        {str(k): lambda k=k: a1gm.fit(X, n_threads=k) for k in (1, 2)}, BUDGET
    )
    report.add(f"{n:,} x 10, two threads", times["2"], "one thread", times["1"], 1.1)


def the_staircase(report: Report) -> None:
    """A staircase of 5,000 steps; the limit is one second for the whole fit."""
    X = staircase(5000, 5000)
    times = fastest({"fit": lambda: a1gm.fit(X)}, BUDGET)
    report.add("5,000 x 5,000, staircase", times["fit"], "one second", 1.0, 1.0)
    report.add_certificate("5,000 x 5,000, staircase", a1gm.fit(X))


def the_short_cuts(report: Report) -> None:
    """What a short cut of the kernel saves: the same fit when it declines."""

    def without(name: str, X: np.ndarray) -> Call:
        def fit() -> a1gm.RankOneFit:
            with patch.object(kernel, name, lambda *_: None):
                return a1gm.fit(X)

        return fit

    for name, work, X in (
        ("solve_nested", "5,000 x 5,000, staircase", staircase(5000, 5000)),
        ("solve_nested", "2,000 x 500, staircase", staircase(2000, 500)),
        ("solve_bits", "50,000 x 100, 5 % at random", at_random(50_000, 100)),
        ("solve_bits", "20,000 x 250, 30 % at random", at_random(20_000, 250, 0.3)),
    ):
        times = fastest(
            {"fit": lambda X=X: a1gm.fit(X), "without": without(name, X)}, BUDGET
        )
        report.add(work, times["fit"], f"without {name}", times["without"], 1 / 1.3)


def the_import(report: Report) -> None:
    def run(code: str) -> Call:
        return lambda: subprocess.run([sys.executable, "-c", code], check=True)

    times = fastest(
        {"a1gm": run("import a1gm"), "numpy": run("import numpy"), "pass": run("pass")},
        2.0,
    )
    bare = times["pass"]
    report.add(
        "import a1gm", times["a1gm"] - bare, "import numpy", times["numpy"] - bare, 1.3
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    options = parser.parse_args()
    small = 10 if options.quick else 1
    warnings.simplefilter("ignore", UndeterminedWarning)
    print(machine())
    report = Report()
    against_sum(report, "100,000 x 500, grid", with_grid(100_000 // small, 500), 1.15)
    against_sum(
        report,
        "5,000,000 x 10, 16 patterns",
        with_patterns(5_000_000 // small, 10),
        2.5,
    )
    against_sum(
        report, "5,000 x 2,000, 5 % at random", at_random(5000, 2000 // small), 4.0
    )
    the_bridge(report)
    against_wnmf(report)
    against_scaling(report)
    against_algorithm1(report)
    against_zeros(report, 1_000_000 // small)
    against_rows(report, 5_120_000 // small)
    against_threads(report, 5_000_000 // small)
    the_staircase(report)
    the_short_cuts(report)
    the_import(report)
    print()
    print(markdown(report.rows))
    if small == 1:
        write_csv(report.rows, RESULTS)
    return int(report.missed)


if __name__ == "__main__":
    sys.exit(main())
