"""Count how often 95 % intervals hold: of hidden cells, of their totals, of indices.

    python benchmarks/coverage_of_intervals.py              # two minutes
    python benchmarks/coverage_of_intervals.py --tables 20  # quick

Draws tables whose means multiply, hides cells, fits the rest, and looks. Every mean is
at least 3 times the dispersion. A total holds when it is within 1.96 standard errors.
Hidden cells are also counted by the size of their fill, with plain and robust errors.
Exits with 1 when a share, pooled over the sizes of tables, is not within 93 and 98 %,
or one of robust indices of few rows is not within 90 and 98 %.
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
from scipy.stats import t as student

import a1gm

RESULTS = Path(__file__).parent / "results" / "coverage.csv"
Floats = npt.NDArray[np.float64]
Noise = Callable[[np.random.Generator, Floats, float], Floats]
SIZES = ((12, 6), (40, 10), (200, 12))
LOWEST, HIGHEST, LOWEST_OF_INDICES = 0.93, 0.98, 0.90


def poisson(rng: np.random.Generator, mean: Floats, phi: float) -> Floats:
    """Poisson counts; where phi is not 1, negative binomial ones of that variance."""
    if phi != 1.0:
        mean = rng.gamma(mean / (phi - 1.0), phi - 1.0)
    return rng.poisson(mean).astype(float)


def gamma(rng: np.random.Generator, mean: Floats, phi: float) -> Floats:
    """Gamma numbers of the same mean and variance."""
    return rng.gamma(mean / phi, phi)


def autoregressive(rng: np.random.Generator, mean: Floats, phi: float) -> Floats:
    """Poisson counts whose means follow each other along a row."""
    n, m = mean.shape
    log = rng.normal(size=(n, m))
    for j in range(1, m):
        log[:, j] = 0.7 * log[:, j - 1] + np.sqrt(1.0 - 0.7**2) * log[:, j]
    spread = np.sqrt(np.log1p((phi - 1.0) / mean.mean()))
    return poisson(rng, mean * np.exp(spread * log - spread**2 / 2.0), 1.0)


def negative_binomial(rng: np.random.Generator, mean: Floats, phi: float) -> Floats:
    """Counts whose variance grows with the square of the mean, phi times the mean."""
    shape = mean.mean() / (phi - 1.0)
    return poisson(rng, mean * rng.gamma(shape, 1.0 / shape, mean.shape), 1.0)


KINDS: dict[str, tuple[Noise, float]] = {
    "Poisson": (poisson, 1.0),
    "over-dispersed Poisson": (poisson, 5.0),
    "gamma": (gamma, 4.0),
}
OF_INDICES = KINDS | {"autoregressive": (autoregressive, 5.0)}
BY_SIZE = KINDS | {
    "negative binomial": (negative_binomial, 5.0),
    "autoregressive": (autoregressive, 5.0),
}
QUARTERS = "smallest fills", "second quarter", "third quarter", "largest fills"


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


def index_held(
    kind: str, size: tuple[int, int], rng: np.random.Generator, *, robust: bool
) -> npt.NDArray[np.bool_]:
    """Which indices of the columns of one table were within their 95 % bands."""
    noise, phi = OF_INDICES[kind]
    n, m = size
    columns = 1.0 + rng.gamma(1.0, 0.5, m)
    X = noise(rng, phi * np.outer(3.0 + rng.gamma(1.0, 15.0, n), columns), phi)
    hidden = rng.random(size) < 0.2
    hidden[0] = hidden[:, 0] = False
    fit = a1gm.fit(np.where(hidden, np.nan, X), on_undetermined="ignore")
    found = fit.uncertainty(robust=robust).index()
    width = student.ppf(0.975, n - 1 if robust else np.inf) * found.se
    held: npt.NDArray[np.bool_] = np.abs(found.value - columns / columns[0]) <= width
    return held[1:]


def coverage_of_indices(
    kind: str, size: tuple[int, int], n_tables: int, *, robust: bool, seed: int = 0
) -> float:
    """Share of the indices of many tables that were held."""
    rng = np.random.default_rng(seed)
    found = [index_held(kind, size, rng, robust=robust) for _ in range(n_tables)]
    return float(np.mean(found))


def held_by_size(
    kind: str, size: tuple[int, int], rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Which hidden cells were held, by plain and robust errors; and their ranks."""
    noise, phi = BY_SIZE[kind]
    n, m = size
    mean = np.outer(3.0 + rng.gamma(1.0, 15.0, n), 1.0 + rng.gamma(1.0, 0.5, m))
    X = noise(rng, phi * mean, phi)
    hidden = rng.random(size) < 0.2
    hidden[0] = hidden[:, 0] = False
    left = np.where(hidden, np.nan, X)
    fit = a1gm.fit(left, on_undetermined="ignore")
    bounds = (fit.uncertainty(robust=robust).interval(left) for robust in (False, True))
    held = np.array([((low <= X) & (high >= X))[hidden] for low, high in bounds])
    fills = fit.reconstruct()[hidden]
    return held, (fills.argsort().argsort() + 0.5) / len(fills)


def coverage_by_size(kind: str, size: tuple[int, int], n_tables: int) -> Floats:
    """Shares of the hidden cells of many tables that were held.

    By plain and robust errors, of all cells and of the quarters of a table, from the
    smallest fills to the largest.
    """
    rng = np.random.default_rng(0)
    tables = (held_by_size(kind, size, rng) for _ in range(n_tables))
    held, rank = (np.concatenate(x, axis=-1) for x in zip(*tables, strict=True))
    quarter = (4 * rank).astype(int)
    shares = [held[:, quarter == k].mean(axis=1) for k in range(4)]
    return np.transpose([held.mean(axis=1), *shares])


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
    rows = []
    for kind in OF_INDICES:
        for n in (8, 15, 40):
            plain, robust = (
                coverage_of_indices(kind, (n, 6), options.tables, robust=robust)
                for robust in (False, True)
            )
            is_right &= LOWEST_OF_INDICES <= robust <= HIGHEST
            shares = {"plain": plain, "robust": robust}
            rows.append(
                {"noise": kind, "rows": str(n)}
                | {name: f"{100 * share:.1f} %" for name, share in shares.items()}
            )
    print(markdown(rows))
    write_csv(rows, options.out.with_stem(f"{options.out.stem}_of_indices"))
    rows = []
    for kind in BY_SIZE:
        for n in (8, 15, 40):
            found = coverage_by_size(kind, (n, 8), options.tables)
            for errors, shares in zip(("plain", "robust"), found, strict=True):
                words = (f"{100 * share:.1f} %" for share in shares)
                rows.append(
                    {"noise": kind, "rows": str(n), "errors": errors}
                    | dict(zip(("all", *QUARTERS), words, strict=True))
                )
    print(markdown(rows))
    write_csv(rows, options.out.with_stem(f"{options.out.stem}_by_size"))
    return 0 if is_right else 1


if __name__ == "__main__":
    warnings.simplefilter("error")
    sys.exit(main())
