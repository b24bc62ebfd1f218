"""Random tables of every kind that a way in must treat alike."""

from __future__ import annotations

import numpy as np

Generator = np.random.Generator
Table = np.ndarray


def values(rng: Generator, n: int, m: int) -> Table:
    """Positive cells: whole counts, amounts or noise-free products."""
    mean = np.outer(rng.gamma(2.0, 5.0, n) + 0.5, rng.gamma(2.0, 2.0, m) + 0.2)
    form = rng.integers(4)
    if form == 0:
        return rng.poisson(mean).astype(float)
    if form == 1:
        return np.round(mean * rng.gamma(4.0, 0.25, (n, m)), 3) + 0.001
    if form == 2:
        return mean
    return rng.integers(0, 9, (n, m)).astype(float)


def holes(rng: Generator, n: int, m: int) -> np.ndarray:
    """Which cells are missing: at random, a grid, a staircase, blocks, bands, rows."""
    rows = np.arange(n)[:, None]
    columns = np.arange(m)[None, :]
    form = rng.integers(8)
    if form == 0:
        return np.zeros((n, m), dtype=bool)
    if form == 1:
        return rng.random((n, m)) < rng.choice([0.05, 0.2, 0.5, 0.8])
    if form == 2:
        return (rng.random(n) < 0.5)[:, None] & (rng.random(m) < 0.5)[None, :]
    if form == 3:
        return rows * m + columns * n > n * m
    if form == 4:
        row_side = rng.integers(0, 3, n)[:, None]
        return row_side != rng.integers(0, 3, m)[None, :]
    if form == 5:
        return abs(rows * m / n - columns) > 1.5
    if form == 6:
        missing = rng.random((n, m)) < 0.2
        missing[rng.integers(n)] = True
        missing[:, rng.integers(m)] = True
        return missing
    return rng.random((3, m))[rng.integers(0, 3, n)] < 0.4


def table(rng: Generator, most_rows: int = 14, most_columns: int = 9) -> Table:
    """A table with holes and, in half of them, zeros; at least one cell observed."""
    n = int(rng.integers(1, most_rows))
    m = int(rng.integers(1, most_columns))
    X = values(rng, n, m)
    if rng.random() < 0.4:
        X[rng.random(X.shape) < rng.choice([0.1, 0.5])] = 0.0
    if rng.random() < 0.15:
        X[rng.integers(n)] = 0.0
    if rng.random() < 0.15:
        X[:, rng.integers(m)] = 0.0
    X[holes(rng, n, m)] = np.nan
    if np.isnan(X).all():
        X[rng.integers(n), rng.integers(m)] = 3.0
    return X


def weights(rng: Generator, shape: tuple[int, ...]) -> Table:
    """Weights of cells: general, a product of two sides, or 0 and 1."""
    form = rng.integers(3)
    if form == 0:
        return rng.choice([0.5, 1.0, 2.0, 3.0], shape)
    if form == 1:
        sides = [rng.choice([0.5, 1.0, 4.0], size) for size in shape]
        product = sides[0]
        for side in sides[1:]:
            product = np.multiply.outer(product, side)
        return product
    return (rng.random(shape) < 0.8).astype(float)


def triangle(rng: Generator) -> Table:
    """Increments of a run-off triangle, a few of them negative."""
    n = int(rng.integers(3, 11))
    X = np.round(values(rng, n, n) * 10, 1) + 1.0
    if rng.random() < 0.6:
        X[rng.random(X.shape) < 0.1] *= -0.3
    if rng.random() < 0.3:
        X[rng.random(X.shape) < 0.1] = 0.0
    X[np.add.outer(np.arange(n), np.arange(n)) >= n] = np.nan
    return X


def array_of_modes(rng: Generator) -> Table:
    """A table of three or four keys with holes and zeros."""
    shape = tuple(rng.integers(1, 5, rng.integers(3, 5)))
    T = rng.poisson(rng.gamma(2.0, 3.0, shape)).astype(float)
    if rng.random() < 0.5:
        T += 1.0
    T[rng.random(shape) < rng.choice([0.0, 0.2, 0.5])] = np.nan
    if np.isnan(T).all():
        T.flat[0] = 2.0
    return T
