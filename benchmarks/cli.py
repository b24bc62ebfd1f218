"""Measure the command line: impute against pyarrow alone, and how fast help answers.

Usage: python benchmarks/cli.py [rows]

Prints the time of ``a1gm impute`` on a CSV of 1,000,000 × 20 (or the rows given) as a
ratio to reading and writing the same file with pyarrow (must stay within 2); on wide
files of 200 rows, as a ratio to pandas (within 2) and as growth when the columns double
(within 2.3); and how much longer ``a1gm --help`` takes than ``python -c pass`` (must
stay within 0.4 s).
"""

import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

A1GM = Path(sysconfig.get_path("scripts")) / "a1gm"
REPEATS = 5
READ_AND_WRITE = """
import sys
from pyarrow import csv
csv.write_csv(csv.read_csv(sys.argv[1]), sys.argv[2])
"""
PANDAS = """
import sys
import pandas
pandas.read_csv(sys.argv[1]).to_csv(sys.argv[2], index=False)
"""


def write_table(path: Path, n_rows: int, n_columns: int = 20) -> None:
    rng = np.random.default_rng(0)
    mean = np.outer(rng.gamma(2, 2, n_rows), rng.gamma(2, 2, n_columns))
    X = rng.poisson(10 * mean) / 10
    patterns = rng.random((16, n_columns)) < 0.15
    patterns[:, 0] = False
    X[patterns[rng.integers(0, 16, n_rows)]] = np.nan
    columns = {f"c{j}": pa.array(X[:, j], from_pandas=True) for j in range(n_columns)}
    csv.write_csv(pa.table(columns), path)


def seconds(*command: object) -> float:
    started = time.perf_counter()
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    return time.perf_counter() - started


def compare(code: str, n_rows: int, n_columns: int) -> tuple[float, float]:
    """Fastest of some runs: of code that reads and writes a file, and of impute."""
    with tempfile.TemporaryDirectory() as folder:
        source, copy = Path(folder) / "in.csv", Path(folder) / "copy.csv"
        filled = Path(folder) / "filled.csv"
        write_table(source, n_rows, n_columns)
        plain, impute = [], []
        for _ in range(REPEATS):  # in turns, so that both see the same noise
            plain.append(seconds(sys.executable, "-c", code, source, copy))
            impute.append(
                seconds(A1GM, "impute", source, "-o", filled, "-q", "--overwrite")
            )
    return min(plain), min(impute)


def main() -> None:
    n_rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    plain, impute = compare(READ_AND_WRITE, n_rows, 20)
    print(f"{n_rows:,} x 20 CSV, fastest of {REPEATS}, whole processes")
    print(f"  pyarrow read + write   {plain:6.2f} s")
    print(f"  a1gm impute            {impute:6.2f} s")
    print(f"  ratio                  {impute / plain:6.2f}   (at most 2)")
    before = None
    for n_columns in (5_000, 10_000, 20_000, 40_000):
        plain, impute = compare(PANDAS, 200, n_columns)
        growth = "" if before is None else f", {impute / before:.2f} x half as wide"
        print(
            f"  200 x {n_columns:6,}: impute {impute:5.2f} s, pandas {plain:5.2f} s, "
            f"ratio {impute / plain:.2f}{growth}"
        )
        before = impute
    bare = min(seconds(sys.executable, "-c", "pass") for _ in range(9))
    help_time = min(seconds(A1GM, "--help") for _ in range(9))
    print(
        f"  a1gm --help            {help_time - bare:6.2f} s more than python -c pass "
        "(at most 0.4)"
    )


if __name__ == "__main__":
    main()
