"""Random tables with zeros and blocks, on every engine, against memory.

``PYTHONPATH=tests python -m attack.engines 300 DuckDB SQLite`` tries so many tables on
each of these engines, from seed 0 on, and all shaped tables; without names on all
engines but Spark, which takes seconds for each table.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from engines import test_lazy, test_long
from support.lazy import ENGINES
from ways.tables import TABLES

WIDTHS = 1, 16, 17, 62, 63, 130


def cases(engine: str, n: int) -> Iterator[tuple[str, Any]]:
    """Names of tables, and what compares all answers with those in memory."""
    for name, X in TABLES.items():
        yield name, lambda X=X: test_lazy.check_same(engine, X)
    for m in WIDTHS if engine != "Spark" else WIDTHS[:3]:
        yield (
            f"{m} columns",
            lambda m=m: test_lazy.check_same(engine, test_lazy.wide(m)),
        )
    for seed in range(n):
        rows, new = test_lazy.random_table(np.random.default_rng(seed))
        given = rows, new
        yield f"seed {seed}", lambda given=given: test_lazy.check_same(engine, *given)
        yield f"seed {seed}, long", lambda X=rows: test_long.check_same(engine, X)


def attack(engine: str, n: int) -> int:
    """Try the tables of an engine; print and count wrong answers."""
    n_tried = n_wrong = 0
    start = time.perf_counter()
    for name, compare in cases(engine, n):
        n_tried += 1
        try:
            compare()
        except pytest.skip.Exception as missing:
            print(f"{engine}: {missing}")
            return 0
        except Exception as error:  # noqa: BLE001 - all wrong answers are counted
            n_wrong += 1
            lines = str(error).split("\n")
            print(f"{engine}, {name}: {type(error).__name__}: {' '.join(lines)[:300]}")
    seconds = time.perf_counter() - start
    print(f"{engine}: {n_tried} tables, {n_wrong} wrong, {seconds:.0f} s", flush=True)
    return n_wrong


def main() -> int:
    """Try as many random tables as asked for; return the number of wrong answers."""
    n, *asked = sys.argv[1:] or ["300"]
    warnings.simplefilter("ignore")
    engines = asked or [name for name in ENGINES if name != "Spark"]
    return sum(attack(engine, int(n)) for engine in engines)


if __name__ == "__main__":
    sys.exit(bool(main()))
