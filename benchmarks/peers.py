"""The same problem solved by what a user would pick instead: time and excess error.

    python -m pip install --group peers           # pip >= 25.1; the absent are skipped
    python benchmarks/peers.py                    # writes benchmarks/results/peers.csv

The excess is how far a rival's divergence on the observed cells is above that of
a1gm.fit, relative to it; worst_cell is the largest relative difference of a fitted
observed cell. Both can be far apart. The adapters are in benchmarks/rivals.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
from measuring import duration, fastest, machine, markdown, read_csv, write_csv
from rivals import NotApplicableError

import a1gm
from a1gm import paper

RESULTS = Path(__file__).parent / "results" / "peers.csv"
EXACT = 1e-9  # relative excess below which an answer counts as the optimum
SHOWN = {"failed": "failed", "skipped": "not installed"}  # by how the note begins
RIVALS = (
    "a1gm_fit",
    "numpy_scaling",
    "paper_a1gm",
    "paper_wnmf",
    "sklearn_nmf",
    "statsmodels_poisson",
    "glum_poisson",
    "pyfixest_fepois",
    "fereg_fepois",
    "hdfe_stream_fepois",
    "ipfn_mask",
    "pot_sinkhorn",
    "tensorly_mask",
    "chainladder_triangle",
)


def noisy_rank_one(n_rows: int, n_columns: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    truth = np.outer(rng.gamma(2, 10, n_rows) + 1, rng.gamma(2, 1, n_columns) + 0.1)
    return truth * rng.gamma(5, 1 / 5, truth.shape)


def complete() -> np.ndarray:
    return noisy_rank_one(300, 40)


def grid() -> np.ndarray:
    X = noisy_rank_one(300, 40)
    X[np.ix_(np.arange(0, 300, 3), [2, 3, 11, 30])] = np.nan
    return X


def scattered() -> np.ndarray:
    X = noisy_rank_one(300, 40)
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    return X


def bridge() -> np.ndarray:
    """Two halves without a common row or column, joined by three cells."""
    X = noisy_rank_one(300, 40)
    joints = [10, 140, 200], [25, 33, 5]
    values = X[joints]
    X[:150, 20:] = np.nan
    X[150:, :20] = np.nan
    X[joints] = values
    return X


def triangle() -> np.ndarray:
    X = noisy_rank_one(12, 12)
    X[np.add.outer(np.arange(12), np.arange(12)) >= 12] = np.nan
    return X


TABLES = {f.__name__: f for f in (complete, grid, scattered, bridge, triangle)}


def measure(
    table: str, X: np.ndarray, rival: ModuleType, budget: float
) -> dict[str, object]:
    """Time one rival on one table and compare its answer with that of a1gm.fit."""
    row: dict[str, object] = {"table": table, "rival": rival.NAME}
    row |= dict.fromkeys(("seconds", "times_fit", "excess", "worst_cell", "note"), "")
    try:
        R = rival.solve(X)
    except ImportError as error:
        return row | {"note": f"skipped: {error.name or error} is not installed"}
    except NotApplicableError as reason:
        return row | {"note": str(reason)}
    except Exception as error:
        return row | {"note": f"failed: {type(error).__name__}"}
    calls = {"rival": lambda: rival.solve(X), "fit": lambda: a1gm.fit(X).reconstruct()}
    times = fastest(calls, budget)
    observed = ~np.isnan(X)
    best = a1gm.fit(X).reconstruct()
    excess = paper.kl_divergence(X, R) / paper.kl_divergence(X, best) - 1
    return row | {
        "seconds": f"{times['rival']:.4g}",
        "times_fit": f"{times['rival'] / times['fit']:.4g}",
        "excess": f"{excess:.2e}",
        "worst_cell": f"{abs(R[observed] / best[observed] - 1).max():.2e}",
    }


def pivot(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Write one line per rival, one column per table: time, and excess if any."""
    lines: dict[str, dict[str, str]] = {}
    for row in rows:
        line = lines.setdefault(row["rival"], {"": row["rival"]})
        line[row["table"]] = _cell(row)
    return list(lines.values())


def _cell(row: dict[str, str]) -> str:
    if not row["seconds"]:
        return SHOWN.get(row["note"].partition(":")[0], "–")
    excess = float(row["excess"])
    shown = f", +{excess:.0e}" if excess > EXACT else ""
    return duration(float(row["seconds"])) + shown


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--table", choices=TABLES, action="append", dest="tables")
    parser.add_argument("--budget", type=float, default=0.2, help="seconds per rival")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE")
    options = parser.parse_args()
    rows = []
    for name in options.tables or TABLES:
        X = TABLES[name]()
        for module in RIVALS:
            rival = import_module(f"rivals.{module}")
            rows.append(measure(name, X, rival, options.budget))
            print(*rows[-1].values(), sep="  ", flush=True)
    write_csv(rows, options.out)
    print(machine(), "", markdown(pivot(read_csv(options.out))), sep="\n")


if __name__ == "__main__":
    main()
