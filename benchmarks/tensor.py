"""Tables of several modes: every row a ratio measured in one run.

    python benchmarks/tensor.py            # or: make bench
    python benchmarks/tensor.py --quick    # small tables, for a first look

Prints a Markdown table, writes benchmarks/results/tensor.csv, and exits with 1 when a
row misses. "NumPy's scaling" is iterative proportional fitting of the whole array,
written tightly and run to the same certificate. Rivals get a table that they can hold;
beside their names stands by how much their divergence is above the least one.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from engine import Report
from measuring import Call, fastest, machine, markdown, write_csv
from scipy.special import kl_div

import a1gm

RESULTS = Path(__file__).parent / "results" / "tensor.csv"
BUDGET, TOL = 2.0, 1e-10
RANK_1 = ((0,), (1,), (2,))
PAIRS = ((0, 1), (0, 2), (1, 2))
Margins = Sequence[tuple[int, ...]]


def counts(shape: tuple[int, ...], holes: str) -> np.ndarray:
    """Counts around a product of factors, with a fifth of the cells missing."""
    rng = np.random.default_rng(28)
    mean = np.full(shape, 5.0)
    for k, n in enumerate(shape):
        mean *= rng.gamma(3.0, 1.0 / 3.0, n).reshape(
            [-1 if j == k else 1 for j in range(3)]
        )
    T = rng.poisson(mean) + 0.5
    size = shape if holes == "at random" else shape[:-1]
    T[rng.random(size) < 0.2] = np.nan
    return T


def scaling(T: np.ndarray, margins: Margins) -> np.ndarray:
    """Iterative proportional fitting of an array with holes."""
    observed = ~np.isnan(T)
    X, F = np.where(observed, T, 0.0), observed.astype(float)
    axes = [tuple(k for k in range(T.ndim) if k not in own) for own in margins]
    sums = [X.sum(axis=own, keepdims=True) for own in axes]
    gap = np.inf
    while gap > TOL:
        gap = 0.0
        for own, wanted in zip(axes, sums, strict=True):
            got = F.sum(axis=own, keepdims=True)
            ratio = np.divide(wanted, got, out=np.zeros_like(got), where=got > 0.0)
            gap = max(gap, float(np.abs(ratio - 1.0)[wanted > 0.0].max()))
            F *= ratio
    return F


# --------------------------------------------------------------------- large tables
def dense(report: Report, shape: tuple[int, ...]) -> None:
    size = " x ".join(map(str, shape))
    for holes, limit in (("at random", 12.0), ("whole fibres", 5.0)):
        T = counts(shape, holes)
        calls: dict[str, Call] = {
            "fit": lambda T=T: a1gm.fit_tensor(T),
            "sum": T.sum,
            "scaling": lambda T=T: scaling(T, RANK_1),
        }
        times = fastest(calls, budget=BUDGET)
        work = f"{size}, 20 % missing, {holes}"
        report.add(work, times["fit"], "T.sum()", times["sum"], limit)
        report.add(work, times["fit"], "NumPy's scaling", times["scaling"], 1 / 3)
    T = counts(shape, "at random")
    calls = {
        "fit": lambda: a1gm.fit_tensor(T, PAIRS),
        "scaling": lambda: scaling(T, PAIRS),
    }
    times = fastest(calls, budget=BUDGET)
    work = f"{size}, at random, margins of all pairs of modes"
    report.add(work, times["fit"], "NumPy's scaling", times["scaling"], 1.0)


def listed(report: Report, n: int, n_cells: int) -> None:
    rng = np.random.default_rng(29)
    flat = np.unique(rng.integers(0, n**3, n_cells))
    cells = np.unravel_index(flat, (n, n, n))
    factors = rng.gamma(3.0, 1.0 / 3.0, (3, n))
    mean = 20.0 * np.prod([f[k] for f, k in zip(factors, cells, strict=True)], axis=0)
    x = rng.poisson(mean) + 0.5
    calls: dict[str, Call] = {
        "fit": lambda: a1gm.fit_tensor((cells, x, (n, n, n))),
        "sums": lambda: [np.bincount(k, x, n) for k in cells],
    }
    times = fastest(calls, budget=BUDGET)
    work = f"{len(x):,} cells of {n:,} x {n:,} x {n:,} as coordinates"
    report.add(work, times["fit"], "its three margins", times["sums"], 20.0)


# --------------------------------------------------------------------------- rivals
def rivals(report: Report, shape: tuple[int, ...]) -> None:
    T = np.floor(counts(shape, "at random"))
    whole = np.where(np.isnan(T), 3.0, T)
    methods = {"statsmodels": _statsmodels, "ipfn": _ipfn, "tensorly": _tensorly}
    for name, method in methods.items():
        _beside(report, T, "20 % missing", name, lambda f=method: f(T))
    _beside(report, whole, "no holes", "pyttb", lambda: _pyttb(whole))


def _beside(report: Report, T: np.ndarray, holes: str, name: str, call: Call) -> None:
    size = " x ".join(map(str, T.shape))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        times = fastest({"a1gm": lambda: a1gm.fit_tensor(T), name: call}, budget=BUDGET)
        least = divergence(T, a1gm.fit_tensor(T).reconstruct())
        above = divergence(T, call()) / least - 1.0
    how = "the optimum" if abs(above) < 1e-9 else f"{above:.2g} above the optimum"
    report.add(f"{size}, {holes}", times["a1gm"], f"{name}, {how}", times[name], 0.5)


def divergence(T: np.ndarray, F: np.ndarray) -> float:
    seen = ~np.isnan(T)
    return float(kl_div(T[seen], F[seen]).sum())


def _statsmodels(T: np.ndarray) -> np.ndarray:
    import statsmodels.api as sm

    index = np.indices(T.shape).reshape(T.ndim, -1)
    parts = [np.eye(n)[k][:, 1:] for n, k in zip(T.shape, index, strict=True)]
    D = np.hstack([np.ones((T.size, 1)), *parts])
    seen = ~np.isnan(T.ravel())
    family = sm.families.Poisson()
    found = sm.GLM(T.ravel()[seen], D[seen], family=family).fit(tol=TOL)
    return np.exp(D @ found.params).reshape(T.shape)


def _ipfn(T: np.ndarray) -> np.ndarray:
    from ipfn import ipfn

    axes = range(T.ndim)
    sums = [np.nansum(T, axis=tuple(j for j in axes if j != k)) for k in axes]
    start = (~np.isnan(T)).astype(float)
    options = {"convergence_rate": TOL, "rate_tolerance": 0.0, "max_iteration": 1000}
    fitted = ipfn.ipfn(start, sums, [[k] for k in axes], **options).iteration()
    return np.asarray(fitted)


def _tensorly(T: np.ndarray) -> np.ndarray:
    import tensorly
    from tensorly.decomposition import non_negative_parafac

    seen = ~np.isnan(T)
    how = {"init": "random", "random_state": 0, "n_iter_max": 1000, "tol": TOL}
    found = non_negative_parafac(np.where(seen, T, 0.0), rank=1, mask=seen, **how)
    return np.asarray(tensorly.cp_to_tensor(found))


def _pyttb(T: np.ndarray) -> np.ndarray:
    import pyttb

    found, *_ = pyttb.cp_apr(
        pyttb.tensor(T), rank=1, printitn=0, stoptol=TOL, maxiters=1000
    )
    return np.asarray(found.full().data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small tables")
    options = parser.parse_args()
    report = Report()
    a1gm.fit_tensor(np.ones((2, 2, 2)))  # its imports are not measured
    if options.quick:
        dense(report, (60, 50, 40))
        listed(report, 200, 10**5)
        rivals(report, (12, 8, 6))
    else:
        dense(report, (300, 100, 100))
        listed(report, 1000, 10**6)
        rivals(report, (30, 20, 12))
    print(f"\n{markdown(report.rows)}\n\n{machine()}")
    if not options.quick:
        write_csv(report.rows, RESULTS)
    sys.exit(report.missed)


if __name__ == "__main__":
    main()
