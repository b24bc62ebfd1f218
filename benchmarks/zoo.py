"""The sparse zoo: every kind of sparse table beside plain scaling in SciPy.

    python benchmarks/zoo.py                   # up to ten minutes; or: make bench
    python benchmarks/zoo.py --only bands      # these kinds only
    python benchmarks/zoo.py --up-to 10000     # smaller tables only

Prints a Markdown table with solver, sweeps, certificate and cell error of each row,
writes benchmarks/results/zoo.csv (whole runs only), and exits with 1 when a row misses:
a fit that has not converged, or one that takes more than ``LIMIT`` times plain scaling
to the same certificate. Plain scaling is stopped after some seconds. The row then says
how far it was ("stopped at 6 s, 2e-04 off") and is judged by the time that it needs
at its last rate, at least ("~" before the ratio); such rows count in no worst ratio and
no mean. Each row runs in a process of its own.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from measuring import duration, machine, markdown, write_csv
from paths import Plain, alone, random_sparse, scale_plainly

import a1gm
from a1gm.exceptions import ConvergenceWarning

RESULTS = Path(__file__).parent / "results" / "zoo.csv"
LIMIT = 1.5
PATIENCE, PATIENCE_PER_ROW = 5.0, 1e-5  # seconds until plain scaling is stopped
BUDGET, RUNS = 1.0, 9  # of each way, in turns; the fastest counts
ALONE = 60.0  # seconds for a row


# ------------------------------------------------------------------------ the kinds
def table_of(rows: np.ndarray, cols: np.ndarray, n: int, m: int) -> sp.csr_array:
    """Gamma numbers at these places."""
    key = np.unique(rows.astype(np.int64) * m + cols)
    values = np.random.default_rng(5).gamma(2.0, size=len(key))
    return sp.csr_array((values, (key // m, key % m)), shape=(n, m))


def ratings(n: int, per_row: int) -> sp.csr_array:
    """Active and popular ones have most cells, as users and films have."""
    random = np.random.default_rng(0)
    m = max(n // 10, 10)
    counts = np.minimum(np.ceil(per_row / 3 * random.pareto(1.5, n) + 1), m // 2)
    rows = np.repeat(np.arange(n), counts.astype(np.int64))
    cols = (m * random.random(len(rows)) ** 2.5).astype(np.int64)
    return table_of(rows, cols, n, m)


def lattice(n: int, _: int) -> sp.csr_array:
    """Places in the plane observe themselves and their four neighbours."""
    side = math.isqrt(n)
    at = np.arange(side * side).reshape(side, side)
    pairs = [(at, at), (at[1:], at[:-1]), (at[:-1], at[1:])]
    pairs += [(at[:, 1:], at[:, :-1]), (at[:, :-1], at[:, 1:])]
    rows, cols = (np.concatenate([p[k].ravel() for p in pairs]) for k in (0, 1))
    return table_of(rows, cols, side * side, side * side)


def bands(n: int, width: int) -> sp.csr_array:
    """Row i observes the next ``width`` columns."""
    rows = np.repeat(np.arange(n), width)
    cols = rows + np.tile(np.arange(width), n)
    return table_of(rows, cols, n, n + width - 1)


def bridged(n: int, per_row: int, *, parts: int = 2, size: float = 1.0) -> sp.csr_array:
    """Random parts, each joined to the next by one cell."""
    small = n // parts
    S = sp.block_diag([random_sparse(small, per_row, seed) for seed in range(parts)])
    at = np.arange(1, parts) * small
    joints = sp.coo_array((np.full(len(at), size), (at - small, at)), shape=S.shape)
    return sp.csr_array(S + joints)


def chain(n: int, per_row: int) -> sp.csr_array:
    """Eight expanders that small cells join."""
    return bridged(n, per_row, parts=8, size=1e-3)


def tree(n: int, extra: int) -> sp.csr_array:
    """A random tree of rows and columns, and one more cell per ``extra`` rows."""
    random = np.random.default_rng(0)
    parent = (random.random(n) * np.arange(n)).astype(np.int64)
    more = random.integers(n, size=(2, n // extra))
    rows = np.concatenate([np.arange(n), np.arange(1, n), more[0]])
    cols = np.concatenate([np.arange(n), parent[1:], more[1]])
    return table_of(rows, cols, n, n)


Make = Callable[[int, int], sp.csr_array]
THOUSANDS = (1_000, 10_000, 100_000)
KINDS: dict[str, tuple[str, Make, tuple[int, ...], tuple[int, ...]]] = {
    "random": (
        "random, {} per row",
        random_sparse,
        (2, 3, 4, 6, 10, 20, 50),
        THOUSANDS,
    ),
    "large": ("random, {} per row", random_sparse, (4, 10), (1_000_000,)),
    "ratings": ("ratings, about {} per row", ratings, (4, 20), (*THOUSANDS, 1_000_000)),
    "lattice": ("places in a plane", lattice, (5,), (*THOUSANDS, 1_000_000)),
    "bands": ("bands of {}", bands, (3, 10), (*THOUSANDS, 1_000_000)),
    "bridges": ("two halves of {} per row, a bridge", bridged, (4, 10), THOUSANDS),
    "chains": ("eight parts of {} per row, thin joints", chain, (4, 10), THOUSANDS),
    "trees": (
        "a tree, a cell more per {} rows",
        tree,
        (100, 5),
        (*THOUSANDS, 1_000_000),
    ),
}


# --------------------------------------------------------------------- one row each
@dataclass(frozen=True)
class Row:
    """One table: seconds of both ways, and what the fit says of itself."""

    table: str
    n_cells: int
    plain: Plain
    patience: float
    seconds: float = math.inf
    solver: str = "none"
    n_iter: int = 0
    certificate: float = math.inf
    cell_error: float = math.inf
    converged: bool = False

    @property
    def is_stopped(self) -> bool:
        return self.plain.seconds == math.inf

    @property
    def ratio(self) -> float:
        return self.seconds / self.plain.needs

    @property
    def holds(self) -> bool:
        return self.converged and self.ratio <= LIMIT

    def written(self) -> dict[str, object]:
        stopped = f"stopped at {self.patience:.0f} s, {self.plain.gap:.0e} off"
        return {
            "table": self.table,
            "cells": f"{self.n_cells:,}",
            "a1gm": duration(self.seconds),
            "plain scaling": stopped if self.is_stopped else duration(self.plain.needs),
            "ratio": f"{'~ ' if self.is_stopped else ''}{self.ratio:.2g}",
            "solver": self.solver,
            "sweeps": self.n_iter,
            "certificate": f"{self.certificate:.0e}",
            "cell error": f"{self.cell_error:.0e}",
            "holds": "yes" if self.holds else "NO",
        }


def measure(kind: str, n: int, per_row: int) -> Row:
    """Both ways on one table, in turns where they are quick."""
    name, make, _, _ = KINDS[kind]
    S = make(n, per_row)
    patience = PATIENCE + PATIENCE_PER_ROW * n
    warnings.simplefilter("ignore", ConvergenceWarning)  # it is in the row
    a1gm.fit(sp.csr_array(np.eye(2)), absent="missing")  # whatever is imported late
    fits, ours = [], []
    theirs: list[Plain] = []
    while not ours or (sum(ours) < BUDGET and len(ours) < RUNS):
        started = time.perf_counter()
        fits.append(a1gm.fit(S, absent="missing"))
        ours.append(time.perf_counter() - started)
        if sum(run.seconds for run in theirs) < BUDGET:
            theirs.append(scale_plainly(S, patience))
    fit = fits[-1]
    return Row(
        f"{name.format(per_row)}, {S.shape[0]:,} x {S.shape[1]:,}",
        S.nnz,
        min(theirs, key=lambda run: run.needs),
        patience,
        min(ours),
        fit.solver,
        fit.n_iter,
        fit.certificate,
        fit.cell_error,
        fit.converged,
    )


def growth(rows: dict[tuple[str, int, int], Row]) -> list[str]:
    """How the time of the fit grows per doubling, from 10^5 rows to 10^6."""
    lines = []
    for (kind, n, per_row), row in rows.items():
        before = rows.get((kind, n // 10, per_row))
        if n == 1_000_000 and before is not None:
            per_doubling = (row.seconds / before.seconds) ** math.log10(2.0)
            lines.append(f"{row.table}: x {per_doubling:.2f} per doubling of the rows")
    return lines


def summary(rows: Sequence[Mapping[str, object]]) -> dict[str, float]:
    """The worst ratio and the geometric mean, of rows as they are written."""
    ratios = [str(row["ratio"]) for row in rows]
    whole = [float(r) for r in ratios if not r.startswith("~")]
    stopped = [float(r.removeprefix("~ ")) for r in ratios if r.startswith("~")]
    found = {}
    if whole:
        mean = math.exp(sum(map(math.log, whole)) / len(whole))
        found |= {"worst ratio": max(whole), "geometric mean": mean}
    if stopped:
        found |= {f"worst of {len(stopped)} where plain was stopped": max(stopped)}
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=KINDS, nargs="+", help="these kinds only")
    parser.add_argument("--up-to", type=int, default=10**9, help="rows at most")
    chosen = parser.parse_args()
    print(machine())
    rows = {}
    for kind in chosen.only or KINDS:
        _, _, widths, sizes = KINDS[kind]
        for width, n in itertools.product(widths, sizes):
            if n <= chosen.up_to:
                row = alone(measure, kind, n, width, patience=ALONE)
                if row == math.inf:
                    name = f"{KINDS[kind][0].format(width)}, {n:,} rows"
                    row = Row(name, 0, Plain(math.inf, math.nan, ALONE), ALONE)
                rows[kind, n, width] = row
                print(*row.written().values(), sep=" | ", flush=True)
                if chosen.only is None and chosen.up_to == 10**9:
                    write_csv([row.written() for row in rows.values()], RESULTS)
    print()
    print(markdown([row.written() for row in rows.values()]))
    print()
    print("\n".join(growth(rows)))
    for name, ratio in summary([row.written() for row in rows.values()]).items():
        print(f"{name}: {ratio:.2g}")
    return int(not all(row.holds for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
