"""Figure 5 of the paper: runtime against the size of an N × N table with 5 % holes.

    python benchmarks/figure5.py                  # writes benchmarks/results/figure5.*
    python benchmarks/figure5.py --plot-only      # draws again from the CSV file

Panel (a) has the holes in the bottom right corner, panel (b) on a random grid. The
algorithms of the paper run up to N = 2000 as there, a1gm.fit and X.sum() to 10,000.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from measuring import duration, machine, one_trial, read_csv, write_csv

import a1gm
from a1gm import paper
from a1gm.paper.grid import algorithm1

RESULTS = Path(__file__).parent / "results"
SHARE_MISSING = 0.05
PAPER_SIZES = np.geomspace(10, 2000, 8).round().astype(int).tolist()
LARGER_SIZES = [4500, 10_000]
PANELS = {"corner": "(a) holes in a corner", "grid": "(b) holes on a random grid"}

# name → the call that is timed, and whether the paper ran it too
METHODS: dict[str, tuple[Callable[[np.ndarray], object], bool]] = {
    "KL-WNMF": (lambda X: paper.kl_wnmf(X, random_state=0), True),
    "A1GM as published": (lambda X: algorithm1(X, np.isnan(X)), True),
    "a1gm.fit": (a1gm.fit, False),
    "X.sum()": (lambda X: X.sum(), False),
}
STYLES = {
    "KL-WNMF": ("#7f7f7f", "o"),
    "A1GM as published": ("#1f77b4", "^"),
    "a1gm.fit": ("#d62728", "s"),
    "X.sum()": ("#000000", "."),
}


def make_table(size: int, pattern: str, rng: np.random.Generator) -> np.ndarray:
    """Draw a table of uniform random numbers with 5 % holes."""
    X = rng.random((size, size))
    side = int(size * np.sqrt(SHARE_MISSING))
    if pattern == "corner":
        X[size - side :, size - side :] = np.nan
    else:
        rows, columns = (rng.choice(size, side, replace=False) for _ in range(2))
        X[np.ix_(rows, columns)] = np.nan
    return X


def measure(sizes: list[int], n_trials: int) -> list[dict[str, object]]:
    """Time every method; each trial has a new table."""
    rows: list[dict[str, object]] = []
    for pattern in PANELS:
        for size in sizes:
            times: dict[str, list[float]] = {}
            for trial in range(n_trials):
                X = make_table(size, pattern, np.random.default_rng([size, trial]))
                for name, (call, in_paper) in METHODS.items():
                    if not in_paper or size <= PAPER_SIZES[-1]:
                        run = one_trial(lambda call=call, X=X: call(X))
                        times.setdefault(name, []).append(run)
            for name, runs in times.items():
                rows.append(_row(pattern, size, name, runs))
                print(f"{pattern:7} {size:6} {name:18} {duration(np.mean(runs))}")
    return rows


def _row(pattern: str, size: int, name: str, runs: list[float]) -> dict[str, object]:
    return {
        "pattern": pattern,
        "size": size,
        "method": name,
        "mean_seconds": f"{np.mean(runs):.4g}",
        "sd_seconds": f"{np.std(runs, ddof=1) if len(runs) > 1 else 0:.3g}",
        "n_trials": len(runs),
    }


def plot(rows: list[dict[str, str]], folder: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "a1gm"  # the same picture gives the same file
    mpl.rcParams["svg.fonttype"] = "none"  # text stays text: half the size
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True, layout="tight")
    for axis, (pattern, title) in zip(axes, PANELS.items(), strict=True):
        for name, (colour, marker) in STYLES.items():
            mine = [r for r in rows if (r["pattern"], r["method"]) == (pattern, name)]
            axis.errorbar(
                [int(r["size"]) for r in mine],
                [float(r["mean_seconds"]) for r in mine],
                yerr=_error_bars(mine),
                label=name,
                color=colour,
                marker=marker,
                linestyle=":" if name == "X.sum()" else "-",
                capsize=2,
            )
        axis.set(xscale="log", yscale="log", title=title, xlabel="N (table of N × N)")
        axis.grid(visible=True, which="major", alpha=0.3)
    axes[0].set_ylabel("runtime in seconds")
    axes[0].legend(frameon=False)
    for suffix in ("svg", "png"):
        metadata = {"Date": None} if suffix == "svg" else None
        figure.savefig(folder / f"figure5.{suffix}", dpi=120, metadata=metadata)


def _error_bars(rows: list[dict[str, str]]) -> np.ndarray:
    """Return mean ± s.d., the lower end kept above 0 for the logarithmic axis."""
    mean = np.array([float(r["mean_seconds"]) for r in rows])
    sd = np.array([float(r["sd_seconds"]) for r in rows])
    return np.array([np.minimum(sd, 0.9 * mean), sd])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--largest", type=int, default=LARGER_SIZES[-1], metavar="N")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FOLDER")
    parser.add_argument("--plot-only", action="store_true")
    options = parser.parse_args()
    table = options.out / "figure5.csv"
    if not options.plot_only:
        sizes = [n for n in PAPER_SIZES + LARGER_SIZES if n <= options.largest]
        print(machine())
        write_csv(measure(sizes, options.trials), table)
    plot(read_csv(table), options.out)
    print(f"wrote {table} and the same name with .svg and .png")


if __name__ == "__main__":
    main()
