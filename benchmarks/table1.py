"""Table 1 of the paper: error and runtime relative to KL-WNMF on real data sets.

    python benchmarks/table1.py --data FOLDER     # or set A1GM_DATA

Every CSV file of FOLDER (plain or .gz; a header line, an empty cell is missing) is
prepared as in the paper, factorised by KL-WNMF, by A1GM as published and by a1gm.fit,
and compared. Writes benchmarks/results/table1.csv and prints a Markdown table.

    python benchmarks/table1.py --data FOLDER --printed FILE.csv

sets the figures printed in the paper beside the measured ones. FILE.csv has the columns
data_set, increase_rate, relative_error and relative_runtime, copied from the paper.
"""

from __future__ import annotations

import argparse
import gzip
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from measuring import duration, fastest, machine, markdown, read_csv, write_csv

import a1gm
from a1gm import paper
from a1gm.paper.grid import algorithm1

RESULTS = Path(__file__).parent / "results" / "table1.csv"


@dataclass(frozen=True)
class Printed:
    """What the paper prints of a data set: its size and number of holes."""

    n_rows: int
    n_columns: int
    n_holes: int


PAPER = {
    "Autompg": Printed(398, 8, 6),
    "DailySunSpot": Printed(73718, 9, 3247),
    "CaliforniaHousing": Printed(20640, 9, 207),
    "MTSLibrary": Printed(1533078, 4, 1247722),
    "BigMartSaleForecas": Printed(8522, 5, 1463),
    "BoardGameGeekData": Printed(101375, 17, 21),
    "CreditCardApproval": Printed(590, 7, 25),
    "HumanResourceAnaly": Printed(14999, 7, 519),
    "heartdisease": Printed(303, 14, 6),
    "lungcancer": Printed(32, 57, 5),
    "PerthHousePrice": Printed(33656, 14, 16585),
    "SleepData": Printed(62, 8, 12),
    "arrhythmia": Printed(452, 280, 408),
    "Bostonhousing": Printed(506, 14, 120),
    "LifeExpectancyData": Printed(2938, 19, 2563),
    "HCCSurvivalDataSet": Printed(165, 50, 826),
    "wiki4HE": Printed(913, 53, 1995),
}


def find_files(folder: Path) -> dict[str, Path]:
    """Find the data sets of a folder by name, those of the paper in its order."""
    found = {
        path.name.split(".csv")[0]: path
        for path in sorted(folder.iterdir())
        if path.name.endswith((".csv", ".csv.gz"))
    }
    if not found:
        sys.exit(f"{folder} holds no .csv or .csv.gz file")
    order = [name for name in PAPER if name in found]
    return {name: found[name] for name in order + [n for n in found if n not in PAPER]}


def read_table(path: Path) -> np.ndarray:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        return np.genfromtxt(file, delimiter=",", skip_header=1, dtype=np.float64)


def measure(X: np.ndarray, budget: float) -> dict[str, object]:
    """Factorise a prepared table by the three methods."""
    missing = np.isnan(X)
    grid = paper.grid_like(missing)
    fit = a1gm.fit(X)
    baseline = np.matmul(*paper.kl_wnmf(X, random_state=0))
    published = np.outer(*algorithm1(X, missing))
    error = paper.kl_divergence(X, baseline)
    times = fastest(
        {
            "wnmf": lambda: paper.kl_wnmf(X, random_state=0),
            "a1gm": lambda: paper.a1gm(X),
            "unchecked": lambda: algorithm1(X, np.isnan(X)),
            "fit": lambda: a1gm.fit(X),
        },
        budget,
    )
    return {
        "n_rows": X.shape[0],
        "n_columns": X.shape[1],
        "n_holes": grid.n_holes,
        "n_row_patterns": fit.pattern.n_row_patterns,
        "increase_rate": f"{grid.increase_rate:.6g}",
        "a1gm_relative_error": f"{paper.kl_divergence(X, published) / error:.8f}",
        "fit_relative_error": (
            f"{paper.kl_divergence(X, fit.reconstruct()) / error:.10f}"
        ),
        "fit_certificate": f"{fit.certificate:.1e}",
        "fit_solver": fit.solver,
        "wnmf_seconds": f"{times['wnmf']:.4g}",
        "a1gm_seconds": f"{times['a1gm']:.4g}",
        "unchecked_seconds": f"{times['unchecked']:.4g}",
        "fit_seconds": f"{times['fit']:.4g}",
    }


def display(row: dict[str, str]) -> dict[str, str]:
    """Choose what a reader wants to see of a row."""
    wnmf, published, unchecked, fit = (
        float(row[f"{name}_seconds"]) for name in ("wnmf", "a1gm", "unchecked", "fit")
    )
    return {
        "data set": row["data_set"],
        "size": f"{row['n_rows']} × {row['n_columns']}",
        "holes": row["n_holes"],
        "row patterns": row["n_row_patterns"],
        "increase rate": f"{float(row['increase_rate']):.5g}",
        "A1GM rel. error": f"{float(row['a1gm_relative_error']):.5f}",
        "`fit` rel. error": f"{float(row['fit_relative_error']):.7f}",
        "A1GM rel. runtime": f"{published / wnmf:.4f}",
        "`fit` rel. runtime": f"{fit / wnmf:.4f}",
        "`fit` time": duration(fit),
        "`fit` / A1GM": f"{fit / published:.2f}",
        "`fit` / A1GM unchecked": f"{fit / unchecked:.2f}",
    }


def beside_printed(rows: list[dict[str, str]], printed: Path) -> list[dict[str, str]]:
    """Set what the paper prints of A1GM beside what was measured."""
    paper_rows = {row["data_set"]: row for row in read_csv(printed)}
    none = dict.fromkeys(("increase_rate", "relative_error", "relative_runtime"), "–")
    compared = []
    for row in rows:
        theirs = paper_rows.get(row["data_set"], none)
        runtime = float(row["a1gm_seconds"]) / float(row["wnmf_seconds"])
        compared.append(
            {
                "data set": row["data_set"],
                "increase rate": f"{float(row['increase_rate']):.5g}",
                "increase rate, printed": theirs["increase_rate"],
                "A1GM rel. error": f"{float(row['a1gm_relative_error']):.5f}",
                "A1GM rel. error, printed": theirs["relative_error"],
                "A1GM rel. runtime": f"{runtime:.4f}",
                "A1GM rel. runtime, printed": theirs["relative_runtime"],
            }
        )
    return compared


def prepared(table: np.ndarray) -> np.ndarray:
    """Absolute values, each zero replaced by their mean, a hole counting as 1."""
    positive = np.abs(table)
    mean = np.where(np.isnan(positive), 1.0, positive).mean()
    return np.where(positive == 0, mean, positive)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("A1GM_DATA"))
    parser.add_argument("--budget", type=float, default=0.5, help="seconds per method")
    parser.add_argument("--printed", type=Path, metavar="FILE")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE")
    options = parser.parse_args()
    if options.data is None or not Path(options.data).is_dir():
        parser.error("give the folder of the CSV files: --data FOLDER, or A1GM_DATA")
    rows = []
    for name, path in find_files(Path(options.data)).items():
        X = prepared(read_table(path))
        rows.append({"data_set": name, **measure(X, options.budget)})
        printed = PAPER.get(name)
        if printed and printed != Printed(*X.shape, int(np.isnan(X).sum())):
            print(f"{name}: this copy differs from the paper's, {printed}")
    write_csv(rows, options.out)
    print(
        machine(), "", markdown([display(r) for r in read_csv(options.out)]), sep="\n"
    )
    if options.printed:
        print(
            "",
            markdown(beside_printed(read_csv(options.out), options.printed)),
            sep="\n",
        )
    absent = [name for name in PAPER if name not in {row["data_set"] for row in rows}]
    print("", f"not found: {', '.join(absent) or 'none'}", sep="\n")


if __name__ == "__main__":
    main()
