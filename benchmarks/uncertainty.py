"""What errors cost: every row a ratio measured in one run.

    python benchmarks/uncertainty.py            # or: make bench
    python benchmarks/uncertainty.py --quick    # a tenth of the rows, for a first look

Prints a Markdown table, writes benchmarks/results/uncertainty.csv, and exits with 1
when a row misses. Rivals answer the same question on tables that they can hold: the
errors of all totals by row.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from engine import Report
from measuring import Call, fastest, machine, markdown, write_csv

import a1gm

RESULTS = Path(__file__).parent / "results" / "uncertainty.csv"
BUDGET = 2.0
N_DRAWS = 1000


def counts(n: int, m: int, n_patterns: int = 16) -> np.ndarray:
    """Over-dispersed counts with few patterns of holes."""
    rng = np.random.default_rng(15)
    mean = np.outer(rng.gamma(2.0, 50.0, n), rng.dirichlet(np.full(m, 5.0)))
    X = 2.0 * rng.poisson(mean / 2.0)
    patterns = rng.random((n_patterns, m)) < 0.25
    patterns[:, 0] = False
    X[patterns[rng.integers(n_patterns, size=n)]] = np.nan
    return X


# --------------------------------------------------------------------- large tables
def large(report: Report, n: int) -> None:
    X, work = counts(n, 10), f"{n:,} x 10, 16 patterns"
    fit = a1gm.fit(X)

    def errors() -> object:
        fit.__dict__.pop("_evidence", None)  # nothing is remembered
        return fit.uncertainty().totals("column")

    u = fit.uncertainty()
    calls: dict[str, Call] = {
        "fit": lambda: a1gm.fit(X),
        "errors": errors,
        "draws": lambda: u.simulate(N_DRAWS, "column", random_state=0),
        "plain": lambda: a1gm.PatternTable(keep_rows=False).update(X),
        "sums": lambda: a1gm.PatternTable(keep_rows=False, uncertainty=True).update(X),
    }
    times = fastest(calls, budget=BUDGET)
    what = f"uncertainty() and totals by column, {work}"
    report.add(what, times["errors"], "a1gm.fit", times["fit"], 4.0)
    what = f"{N_DRAWS:,} simulated refits, {work}"
    report.add(what, times["draws"], "a1gm.fit", times["fit"], 20.0)
    what = f"PatternTable(uncertainty=True), {work}"
    report.add(what, times["sums"], "PatternTable()", times["plain"], 10.0)
    sizes = [_bytes_beyond(rows) for rows in (n // 10, n // 5)]
    what = "bytes beyond the fit, twice the rows"
    report.add_size(what, sizes[1] / sizes[0], "half of them", 1.1)


def _bytes_beyond(n: int) -> int:
    fit = a1gm.fit(counts(n, 10))
    return _peak(lambda: fit.uncertainty().totals("column"))


# ---------------------------------------------------------------------------- files
def files(report: Report, n: int, folder: Path) -> None:
    X, work = counts(n, 10), f"Parquet, {n:,} x 10, 16 patterns"
    path = folder / "counts.parquet"
    pd.DataFrame(X, columns=[f"c{j}" for j in range(10)]).to_parquet(path)
    fit = a1gm.fit_file(path)

    def forget() -> None:
        fit.__dict__.pop("_scatter", None)

    def divergence() -> float:
        forget()
        return fit.divergence

    def errors() -> object:
        forget()
        return fit.uncertainty()

    calls: dict[str, Call] = {
        "fit": lambda: a1gm.fit_file(path),
        "errors": errors,
        "divergence": divergence,
    }
    times = fastest(calls, budget=BUDGET)
    for name, what in (("errors", "uncertainty()"), ("divergence", "divergence")):
        report.add(f"{what}, {work}", times[name], "fit_file", times["fit"], 3.0)


# --------------------------------------------------------------------------- bounds
def bounds(report: Report, n: int, folder: Path) -> None:
    from scipy.special import gammaincinv

    X = counts(200_000, 10)
    u, n_fills = a1gm.fit(X).uncertainty(), int(np.isnan(X).sum())
    shape = np.random.default_rng(0).gamma(2.0, 20.0, n_fills)
    calls: dict[str, Call] = {
        "bounds": lambda: u.interval(X),
        "quantiles": lambda: [gammaincinv(shape, tail) for tail in (0.025, 0.975)],
    }
    times = fastest(calls, budget=BUDGET)
    work, other = f"bounds of {n_fills:,} fills", "SciPy's two gamma quantiles of each"
    report.add(work, times["bounds"], other, times["quantiles"], 1.2)
    path, out = folder / "table.parquet", folder / "out.parquet"
    names = [f"c{j}" for j in range(12)]
    pd.DataFrame(counts(n, 12), columns=names).to_parquet(path)
    plain = [sys.executable, "-m", "a1gm", "impute", path, "-o", out, "--overwrite"]
    calls = {
        "plain": lambda: subprocess.run(plain, check=True),
        "bounds": lambda: subprocess.run([*plain, "--interval", "0.95"], check=True),
    }
    times = fastest(calls, budget=BUDGET)
    work = f"a1gm impute --interval, {n:,} x 12"
    report.add(work, times["bounds"], "a1gm impute", times["plain"], 4.0)


# ---------------------------------------------------------------------- wide tables
def wide(report: Report, m: int) -> None:
    rng = np.random.default_rng(1)
    X = rng.poisson(np.outer(rng.gamma(2.0, 50.0, 200), rng.gamma(3.0, 1.0, m))) + 0.0
    X[rng.random(X.shape) < 0.1] = np.nan
    calls: dict[str, Call] = {}
    for name, table, by in (("wide", X, "column"), ("tall", X.T.copy(), "row")):
        calls |= {
            f"totals {name}": lambda T=table, by=by: _errors_of(T).totals(by),
            f"interval {name}": lambda T=table: _errors_of(T).interval(T),
            f"assess {name}": lambda T=table: a1gm.assess(T, random_state=0),
        }
    times = fastest(calls, budget=BUDGET)
    for what in ("totals", "interval", "assess"):
        own, other = times[f"{what} wide"], times[f"{what} tall"]
        report.add(f"{what} of 200 x {m:,}", own, "its transpose", other, 1.5)


def _errors_of(table: np.ndarray) -> a1gm.Uncertainty:
    return a1gm.fit(table).uncertainty()


# -------------------------------------------------------------------------- assess
def judged(report: Report, n: int) -> None:
    """A long table; its rows are sampled, and memory stays that of the fit."""
    rng = np.random.default_rng(3)
    i, j = rng.integers(n // 20, size=n), rng.integers(40, size=n)
    mean = rng.gamma(2.0, 50.0, n // 20)[i] * rng.gamma(3.0, 1.0, 40)[j]
    frame = pd.DataFrame({"shop": i, "month": j, "value": rng.poisson(mean) + 0.0})
    frame = frame.drop_duplicates(["shop", "month"])
    keys = ["shop", "month"]
    calls: dict[str, Call] = {
        "fit": lambda: a1gm.fit_long(frame, keys, "value"),
        "assess": lambda: a1gm.assess(frame, keys=keys, value="value"),
    }
    times = fastest(calls, budget=BUDGET)
    work = f"assess, {len(frame):,} long rows"
    report.add(work, times["assess"], "fit_long", times["fit"], 3.0)
    fit_bytes, assess_bytes = (_peak(calls[name]) for name in ("fit", "assess"))
    report.add_size(f"its memory, {work}", assess_bytes / fit_bytes, "fit_long", 1.1)


def _peak(call: Call) -> int:
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


# --------------------------------------------------------------------------- rivals
def rivals(report: Report) -> None:
    X = counts(120, 12)
    calls: dict[str, Call] = {
        "a1gm": lambda: a1gm.fit(X).uncertainty().totals("row"),
        "statsmodels": lambda: _statsmodels(X),
        "glum": lambda: _glum(X),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        times = fastest(calls, budget=BUDGET)
    for name in ("statsmodels", "glum"):
        work = "errors of totals by row, 120 x 12"
        report.add(work, times["a1gm"], f"{name}'s Poisson", times[name], 0.5)


def _design(X: np.ndarray, cells: np.ndarray) -> np.ndarray:
    i, j = np.nonzero(cells)
    D = np.zeros((len(i), X.shape[0] + X.shape[1] - 1))
    D[np.arange(len(i)), i] = 1.0
    later = np.flatnonzero(j > 0)
    D[later, X.shape[0] + j[later] - 1] = 1.0
    return D


def _errors(X: np.ndarray, params: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    holes = np.isnan(X)
    D = _design(X, holes)
    gradient = np.zeros((X.shape[0], D.shape[1]))
    np.add.at(gradient, np.nonzero(holes)[0], D * np.exp(D @ params)[:, None])
    return np.sqrt(np.sum(gradient @ covariance * gradient, axis=1))


def _statsmodels(X: np.ndarray) -> np.ndarray:
    import statsmodels.api as sm

    known = ~np.isnan(X)
    model = sm.GLM(X[known], _design(X, known), family=sm.families.Poisson())
    found = model.fit(scale="X2")
    return _errors(X, found.params, found.cov_params())


def _glum(X: np.ndarray) -> np.ndarray:
    from glum import GeneralizedLinearRegressor

    known = ~np.isnan(X)
    D = _design(X, known)
    model = GeneralizedLinearRegressor(family="poisson", alpha=0, fit_intercept=False)
    model.fit(D, X[known])
    covariance = model.covariance_matrix(D, X[known], robust=False)
    return _errors(X, model.coef_, covariance)


def triangles(report: Report) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import chainladder as cl

        sample = cl.load_sample("genins").set_backend("numpy")
        cumulative = np.array(sample.values[0, 0], float)
        later = np.add.outer(np.arange(10), np.arange(10)) >= 10
        X = np.where(later, np.nan, np.diff(cumulative, axis=1, prepend=0.0))
        u = a1gm.fit(X).uncertainty()
        draws = cl.BootstrapODPSample(n_sims=N_DRAWS, random_state=0)
        calls: dict[str, Call] = {
            "errors": lambda: a1gm.fit(X).uncertainty().totals("row"),
            "Mack": lambda: cl.MackChainladder().fit(sample).full_std_err_,
            "draws": lambda: u.simulate(N_DRAWS, "row", random_state=0),
            "bootstrap": lambda: cl.Chainladder().fit(draws.fit_transform(sample)),
        }
        times = fastest(calls, budget=BUDGET)
    work, other = "errors of Taylor and Ashe's reserves", "chainladder's Mack"
    report.add(work, times["errors"], other, times["Mack"], 0.5)
    work, other = f"{N_DRAWS:,} draws of its reserves", "chainladder's bootstrap"
    report.add(work, times["draws"], other, times["bootstrap"], 2.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    is_quick = parser.parse_args().quick
    print(machine())
    report = Report()
    large(report, 500_000 if is_quick else 5_000_000)
    with tempfile.TemporaryDirectory() as folder:
        files(report, 100_000 if is_quick else 1_000_000, Path(folder))
        bounds(report, 100_000 if is_quick else 1_000_000, Path(folder))
    wide(report, 2_000 if is_quick else 5_000)
    judged(report, 400_000 if is_quick else 4_000_000)
    rivals(report)
    triangles(report)
    print()
    print(markdown(report.rows))
    if not is_quick:
        write_csv(report.rows, RESULTS)
    return int(report.missed)


if __name__ == "__main__":
    sys.exit(main())
