"""Scaling to totals beside ipfn, POT and NumPy, to the same certificate.

    python benchmarks/totals.py            # some minutes
    python benchmarks/totals.py --quick    # smaller tables, for a first look

Prints a Markdown table and writes benchmarks/results/totals.csv. Every method stops
when the largest relative mismatch of a total is below 1e-10, or after its budget of
time, and then the mismatch that it has reached is shown. ipfn and POT have another
rule: they get one that is as strict, and are measured by the table that they return.
On easy positive seeds ten lines of NumPy are as fast: two products per sweep are all
that there is to do.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measuring import duration, machine, markdown, write_csv
from scipy import sparse

import a1gm
from a1gm.exceptions import A1gmError

RESULTS = Path(__file__).parent / "results" / "totals.csv"
TOL, CELLS = 1e-10, 1e-6
MODULES = {"ipfn": "ipfn", "POT": "ot"}
Problem = tuple[Any, Any, Any]


def mismatch(table: Any, r: Any, c: Any) -> float:
    """Largest relative mismatch of a total."""
    sums = (table.sum(axis=1), r), (table.sum(axis=0), c)
    return max(float(np.max(np.abs(np.ravel(a) - b) / b)) for a, b in sums)


# -------------------------------------------------------------------------- problems
def problems(small: bool) -> dict[str, Problem]:
    rng = np.random.default_rng(0)
    n = 300 if small else 1000

    def totals_of(table: Any) -> tuple[Any, Any]:
        sums = table.sum(axis=1), table.sum(axis=0)
        return np.ravel(sums[0]), np.ravel(sums[1])

    easy = rng.random((n, n)) + 0.01
    big = rng.random((n * 8, n * 8)) + 0.01
    near = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= 5
    band = near * rng.random((n, n))
    thin = rng.random((n, n))
    half = n // 2
    thin[:half, half:] = thin[half:, :half] = 0.0
    thin[0, half] = thin[half, 0] = 1e-6
    few = sparse.random_array((10 * n, 10 * n), density=5 / n, rng=rng)
    few = sparse.csr_array(few + sparse.eye_array(10 * n))
    other = few.copy()
    other.data = other.data * rng.random(len(other.data))
    edge = rng.random((n, n))
    edge[:half, half:] = 0.0
    blocks = rng.integers(1, 100, (n, n)).astype(float)
    blocks[:half, half:] = blocks[half:, :half] = 0.0
    r, c = totals_of(blocks)
    wrong = r + np.eye(n)[0] - np.eye(n)[-1]
    return {
        "easy": (easy, *totals_of(easy * rng.random((n, n)))),
        "easy, large": (big, *totals_of(big * rng.random(big.shape))),
        "sparse": (few, *totals_of(other)),
        "banded": (band, *totals_of(band * rng.random((n, n)))),
        "nearly unconnected": (thin, *totals_of(thin * rng.random((n, n)))),
        "on the boundary": (edge, r, c),
        "impossible by 1": (edge, wrong, c),
    }


# --------------------------------------------------------------------------- methods
def scaled(A: Any, r: Any, c: Any) -> Any:
    return a1gm.scale(A, r, c).table


def by_numpy(A: Any, r: Any, c: Any, budget: float) -> Any:
    h, end = np.ones(A.shape[1]), time.perf_counter() + budget
    while True:
        w = r / (A @ h)
        reach = A.T @ w
        if np.max(np.abs(h * reach - c) / c) < TOL or time.perf_counter() > end:
            break
        h = c / reach
    if sparse.issparse(A):
        return sparse.diags_array(w) @ A @ sparse.diags_array(h)
    return w[:, None] * A * h


def by_ipfn(A: Any, r: Any, c: Any, budget: float) -> Any:
    from ipfn import ipfn

    start = time.perf_counter()
    ipfn.ipfn(A.copy(), [r, c], [[0], [1]], max_iteration=1).iteration()
    each = time.perf_counter() - start
    options = {"convergence_rate": TOL / 100, "rate_tolerance": 0.0}
    options["max_iteration"] = max(2, min(5000, int(budget / each)))
    return ipfn.ipfn(A.copy(), [r, c], [[0], [1]], **options).iteration()


def by_pot(A: Any, r: Any, c: Any, budget: float) -> Any:
    import ot

    with np.errstate(divide="ignore"):
        M = -np.log(A)
    total = r.sum()
    start = time.perf_counter()
    ot.sinkhorn(r / total, c / total, M, 1.0, numItermax=10, warn=False)
    each = (time.perf_counter() - start) / 10
    most = max(20, min(100_000, int(budget / each)))
    rule = {"numItermax": most, "stopThr": TOL * c.min() / total, "warn": False}
    return total * ot.sinkhorn(r / total, c / total, M, 1.0, **rule)


def measured(
    method: Callable[[], Any], r: Any, c: Any, truth: Any = None
) -> tuple[str, Any]:
    """Time, and the mismatch where it is above the tolerance; and the table.

    Where the totals are met and cells are not those of ``truth``, by how much.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        try:
            table = method()
        except A1gmError as error:
            took = time.perf_counter() - start
            return f"{duration(took)}: {type(error).__name__}", None
        took = time.perf_counter() - start
    off = mismatch(table, r, c)
    if off > 2 * TOL:
        return f"{duration(took)}, off by {off:.0e}", table
    if truth is not None and isinstance(table, np.ndarray):
        some = truth > 0.0
        wrong = float(np.max(np.abs(table[some] / truth[some] - 1.0)))
        if wrong > CELLS:
            return f"{duration(took)}, cells off by {wrong:.0e}", table
    return duration(took), table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller tables")
    parser.add_argument("--budget", type=float, default=30.0, help="seconds per call")
    options = parser.parse_args()
    there = {n: importlib.util.find_spec(n) is not None for n in ("ipfn", "ot")}
    rows = []
    a1gm.scale(np.ones((2, 2)), [1, 1], [1, 1])  # its imports are not measured
    a1gm.scale(np.eye(2), [1, 1], [1, 1])
    methods = {"NumPy": by_numpy, "ipfn": by_ipfn, "POT": by_pot}
    for name, (A, r, c) in problems(options.quick).items():
        found = {"seed": f"{name}, {A.shape[0]:,} x {A.shape[1]:,}"}
        found["a1gm"], truth = measured(partial(scaled, A, r, c), r, c)
        is_small = not sparse.issparse(A) and A.size <= 2_000_000
        for title, method in methods.items():
            found[title] = "not run"
            if title == "NumPy" or (there[MODULES[title]] and is_small):
                call = partial(method, A, r, c, options.budget)
                found[title], _ = measured(call, r, c, truth)
        rows.append(found)
        print(found, flush=True)
    print(f"\n{markdown(rows)}\n\n{machine()}")
    if not options.quick:
        write_csv(rows, RESULTS)


if __name__ == "__main__":
    main()
