"""Count how often 95 % intervals hold: of hidden cells, and of totals of hidden cells.

    python benchmarks/coverage_of_intervals.py              # a minute
    python benchmarks/coverage_of_intervals.py --tables 20  # quick

Draws tables whose means multiply, hides cells, fits the rest, and looks. Every mean is
at least 3 times the dispersion. A total holds when it is within 1.96 standard errors.
Exits with 1 when a share, pooled over the sizes of tables, is not within 93 and 98 %.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from measuring import markdown, write_csv

import a1gm

RESULTS = Path(__file__).parent / "results" / "coverage.csv"
Floats = npt.NDArray[np.float64]
Noise = Callable[[np.random.Generator, Floats, float], Floats]
SIZES = ((12, 6), (40, 10), (200, 12))
LOWEST, HIGHEST = 0.93, 0.98


def poisson(rng: np.random.Generator, mean: Floats, phi: float) -> Floats:
    """Poisson counts; where phi is not 1, negative binomial ones of that variance."""
    if phi != 1.0:
        mean = rng.gamma(mean / (phi - 1.0), phi - 1.0)
    return rng.poisson(mean).astype(float)


def gamma(rng: np.random.Generator, mean: Floats, phi: float) -> Floats:
    """Gamma numbers of the same mean and variance."""
    return rng.gamma(mean / phi, phi)


KINDS: dict[str, tuple[Noise, float]] = {
    "Poisson": (poisson, 1.0),
    "over-dispersed Poisson": (poisson, 5.0),
    "gamma": (gamma, 4.0),
}


def held(
    kind: str, size: tuple[int, int], rng: np.random.Generator, share: float = 0.2
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which hidden cells of one table, and which totals by column, were held."""
    noise, phi = KINDS[kind]
    n, m = size
    mean = np.outer(3.0 + rng.gamma(1.0, 15.0, n), 1.0 + rng.gamma(1.0, 0.5, m))
    X = noise(rng, phi * mean, phi)
    hidden = rng.random(size) < share
    hidden[0] = hidden[:, 0] = False
    left = np.where(hidden, np.nan, X)
    sure = a1gm.fit(left, on_undetermined="ignore").uncertainty()
    low, high = sure.interval(left)
    cells = ((low <= X) & (high >= X))[hidden]
    total = sure.totals("column")
    some = hidden.any(axis=0)
    off = np.where(hidden, X, 0.0).sum(axis=0) - total.value
    return cells, (np.abs(off) <= 1.96 * total.se)[some]


def coverage(
    kind: str, size: tuple[int, int], n_tables: int, seed: int = 0
) -> list[npt.NDArray[np.bool_]]:
    """Which cells and which totals were held, in many tables."""
    rng = np.random.default_rng(seed)
    found = [held(kind, size, rng) for _ in range(n_tables)]
    return [np.concatenate(kinds) for kinds in zip(*found, strict=True)]


def main() -> int:
    """Print and keep the table; 1 when a share is too far from 95 %."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=400)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    rows, is_right = [], True
    for kind, (_, phi) in KINDS.items():
        every = {f"{n} x {m}": coverage(kind, (n, m), options.tables) for n, m in SIZES}
        both = zip(*every.values(), strict=True)
        every["all"] = [np.concatenate(kinds) for kinds in both]
        for size, found in every.items():
            shares = [float(one.mean()) for one in found]
            if size == "all":
                is_right &= all(LOWEST <= share <= HIGHEST for share in shares)
            rows.append(
                {"noise": kind, "dispersion": f"{phi:g}", "table": size}
                | {"hidden cells": f"{100 * shares[0]:.1f} %"}
                | {"totals by column": f"{100 * shares[1]:.1f} %"}
            )
    print(markdown(rows))
    write_csv(rows, options.out)
    return 0 if is_right else 1


if __name__ == "__main__":
    warnings.simplefilter("error")
    sys.exit(main())
