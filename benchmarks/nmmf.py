"""What joint fits must reach: every row a ratio measured in one run.

    python benchmarks/nmmf.py
    python benchmarks/nmmf.py --quick    # a tenth of the rows; nothing is judged

Prints a Markdown table, writes benchmarks/results/nmmf.csv, and exits with 1 when a row
misses. Calls that are compared run in turns and the fastest run of each counts.
Rows without a limit are there to be read.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from measuring import duration, fastest, machine, markdown, write_csv

import a1gm

RESULTS = Path(__file__).parent / "results" / "nmmf.csv"
FIT_LIMIT = 2.0
NO_HOLES, PATTERNS = "no holes", "16 patterns of holes"
AT_RANDOM = "10 % at random in all tables"
Row = dict[str, object]


def tables(
    n: int, m: int, n_side: int, m_side: int, *, holes: str = NO_HOLES
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, Y and Z; with holes, in a tenth of the cells of X, or of all tables."""
    rng = np.random.default_rng(20220401)
    X, Y, Z = rng.random((n, m)), rng.random((n_side, m)), rng.random((n, m_side))
    if holes == PATTERNS:
        patterns = rng.random((16, m)) < 0.1
        X[patterns[rng.integers(16, size=n)]] = np.nan
    elif holes == AT_RANDOM:
        for table in (X, Y, Z):
            table[rng.random(table.shape) < 0.1] = np.nan
    return X, Y, Z


def compare(
    work: str,
    ours: object,
    against: str,
    theirs: object,
    limit: float | None,
    budget: float,
) -> Row:
    times = fastest({"ours": ours, "theirs": theirs}, budget)
    ratio = times["ours"] / times["theirs"]
    holds = "" if limit is None else "yes" if ratio <= limit else "MISSED"
    row: Row = {
        "work": work,
        "a1gm": duration(times["ours"]),
        "against": against,
        "takes": duration(times["theirs"]),
        "reached": f"{ratio:.2f}",
        "asked": "" if limit is None else f"<= {limit:g}",
        "holds": holds,
    }
    print(" | ".join(str(value) for value in row.values()), flush=True)
    return row


def fits(scale: float, budget: float) -> list[Row]:
    n = int(1_000_000 * scale)
    rows = []
    for holes, beta, limit in (
        (NO_HOLES, 1.0, FIT_LIMIT),
        (NO_HOLES, 0.5, None),
        (PATTERNS, 1.0, None),
        (AT_RANDOM, 1.0, None),
    ):
        X, Y, Z = tables(n, 20, 1_000, 5, holes=holes)
        work = f"X {n:,} x 20, Y 1,000 x 20, Z {n:,} x 5, beta = {beta:g}, {holes}"
        rows.append(
            compare(
                work,
                lambda t=(X, Y, Z), b=beta: a1gm.fit_nmmf(*t, beta=b),
                "X.sum() + Y.sum() + Z.sum()",
                lambda t=(X, Y, Z): [table.sum() for table in t],
                limit,
                budget,
            )
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    scale, budget = (0.1, 0.3) if parser.parse_args().quick else (1.0, 3.0)
    rows = fits(scale, budget)
    print(f"\n{machine()}\n")
    print(markdown(rows))
    if scale < 1.0:
        return 0
    write_csv(rows, RESULTS)
    return int(any(row["holds"] == "MISSED" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
