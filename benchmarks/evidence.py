"""Whether rank 1 is right: hidden cells of known tables, beside the column means.

    python benchmarks/evidence.py          # writes benchmarks/results/evidence.csv

10 % of the known cells of each table are hidden, five times; the error is the median of
|guess - cell| / cell. The tables: the demo's, which is simulated, and four of real
data, two triangles and two of unlike features. Seed 0 chooses the cells.
"""

from __future__ import annotations

from pathlib import Path

import chainladder
import numpy as np
from measuring import markdown, write_csv
from sklearn.datasets import load_iris, load_wine

import a1gm
from a1gm.cli.demo import demo_sales

RESULTS = Path(__file__).parent / "results" / "evidence.csv"


def triangle(name: str) -> np.ndarray:
    """Claims by year of origin and age: the increments, as they are."""
    return chainladder.load_sample(name).cum_to_incr().values[0, 0]


TABLES = {
    "shops by month (the demo, simulated)": demo_sales,
    "claims by year and age (ABC)": lambda: triangle("abc"),
    "claims by year and age (RAA)": lambda: triangle("raa"),
    "measurements of flowers (iris)": lambda: load_iris().data,
    "chemistry of wines (wine)": lambda: load_wine().data,
}


def main() -> None:
    rows = []
    for name, table in TABLES.items():
        X = table()
        negatives = "allow" if np.nanmin(X) < 0.0 else "raise"
        is_ordered = name.startswith(("shops", "claims"))  # months, and ages
        found = a1gm.assess(X, random_state=0, negatives=negatives, ordered=is_ordered)
        own, means = (
            found.scores[method].median_relative_error
            for method in ("rank 1", "column means")
        )
        rows.append(
            {
                "table": name,
                "median error of rank 1": f"{own:.1%}",
                "of the column means": f"{means:.1%}",
                "skill": f"{found.skill:+.2f}",
                "verdict of `a1gm.assess`": found.headline,
            }
        )
    print(markdown(rows))
    write_csv(rows, RESULTS)


if __name__ == "__main__":
    main()
