"""Small tables of every kind that a way in must treat alike."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ways.oracle import Oracle

nan = np.nan
Table = np.ndarray


def _positive(n: int, m: int, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    return np.round(rng.gamma(3.0, size=(n, m)) + 0.25, 3)


def _with_holes() -> Table:
    X = _positive(12, 6, 0)
    X[np.random.default_rng(1).random(X.shape) < 0.3] = nan
    X[0], X[:, 0] = 1.5, _positive(12, 1, 2)[:, 0]
    return X


def _grid() -> Table:
    X = _positive(6, 5, 3)
    X[3:, 2:] = nan
    return X


def _staircase() -> Table:
    X = _positive(6, 6, 4)
    X[np.add.outer(np.arange(6), np.arange(6)) > 5] = nan
    return X


def _banded() -> Table:
    X = _positive(7, 7, 5)
    X[np.abs(np.subtract.outer(np.arange(7), np.arange(7))) > 1] = nan
    X[0, 6] = X[6, 0] = 2.0
    return X


def _hollow() -> Table:
    X = _positive(6, 6, 6)
    np.fill_diagonal(X, nan)
    return X


def _with_zeros() -> Table:
    X = _with_holes()
    X[1, 1], X[4, 2], X[7, 5] = 0.0, 0.0, 0.0
    return X


def _whole_numbers() -> Table:
    X = np.random.default_rng(7).integers(1, 40, size=(8, 4)).astype(float)
    X[2, 1] = X[5, 3] = nan
    return X


TABLES: dict[str, Table] = {
    "random holes": _with_holes(),
    "grid": _grid(),
    "staircase": _staircase(),
    "banded": _banded(),
    "hollow": _hollow(),
    "complete counts": np.arange(1.0, 13.0).reshape(4, 3),
    "whole numbers": _whole_numbers(),
    "zeros": _with_zeros(),
    "zero chain": np.array([[1.0, 0.0, nan], [nan, 1.0, 0.0], [nan, nan, 1.0]]),
    "unbounded": np.array([[0.0, 5.0, 1.0], [5.0, nan, nan], [2.0, nan, nan]]),
    "two blocks": np.array(
        [
            [1.0, 2.0, nan, nan],
            [2.0, nan, nan, nan],
            [nan, nan, 3.0, 1.0],
            [nan, nan, 6.0, nan],
        ]
    ),
    "three blocks": np.array(
        [
            [1.0, 3.0, nan, nan, nan],
            [nan, nan, 2.0, 4.0, nan],
            [2.5, nan, nan, nan, nan],
            [nan, nan, nan, nan, 7.0],
            [nan, nan, nan, 5.0, nan],
        ]
    ),
    "blocks beside zeros": np.array(
        [
            [1.0, 2.0, nan, nan, 0.0],
            [nan, 4.0, nan, nan, nan],
            [nan, nan, 3.0, 1.0, 0.0],
            [nan, nan, 2.0, nan, nan],
            [0.0, nan, nan, 0.0, nan],
        ]
    ),
    "empty lines": np.array(
        [
            [1.0, nan, 2.0, 1.0],
            [nan, nan, nan, nan],
            [2.0, nan, nan, 3.0],
            [nan, nan, 1.0, 2.0],
        ]
    ),
    "a row of zeros": np.array([[1.0, 2.0, 3.0], [0.0, 0.0, nan], [2.0, nan, 5.0]]),
    "a column of zeros": np.array([[1.0, 0.0, 3.0], [2.0, nan, nan], [4.0, 0.0, 5.0]]),
    "one row": np.array([[3.0, 1.0, 2.0]]),
    "one column": np.array([[3.0], [1.0], [2.0]]),
}

# Cell weights for some of the tables; 0 leaves a cell out.
WEIGHTED = ("random holes", "hollow", "zeros", "two blocks", "a row of zeros")


def weights_of(name: str) -> Table:
    X = TABLES[name]
    rng = np.random.default_rng(len(name))
    V = np.round(rng.gamma(2.0, size=X.shape) + 0.5, 2)
    if name in ("random holes", "zeros"):
        V[2, 0] = V[5, 0] = 0.0
    return V


def is_whole(X: Table) -> bool:
    """Whether every observed cell is a whole number."""
    seen = X[~np.isnan(X)]
    return bool((seen == np.round(seen)).all())


# ---------------------------------------------------------------------- new rows
def new_rows(X: Table, oracle: Oracle) -> dict[str, Table]:
    """Rows that were not in the fit, by what is special about them."""
    rng = np.random.default_rng(11)
    m = X.shape[1]
    rows = {
        "copies in another order": X[rng.permutation(len(X))],
        "other holes": np.array([_row_of_one_block(rng, oracle) for _ in range(8)]),
        "all missing": np.full((1, m), nan),
        "all zeros": np.zeros((1, m)),
        "one zero": np.where(np.arange(m) == int(oracle.h.argmax()), 0.0, nan)[None],
    }
    blocks = [np.flatnonzero(oracle.col_block == b) for b in oracle.blocks]
    if len(blocks) > 1:
        several = np.full((len(blocks) - 1, m), nan)
        for k, (a, b) in enumerate(pairwise(blocks)):
            several[k, a[0]], several[k, b[0]] = 1.0, 3.0
        rows["positive in two blocks"] = several
    return rows


def _row_of_one_block(rng: np.random.Generator, oracle: Oracle) -> Table:
    """A row with positive cells in one block and some zeros elsewhere."""
    block = oracle.blocks[int(rng.integers(len(oracle.blocks)))]
    inside = np.flatnonzero(oracle.col_block == block)
    row = np.full(len(oracle.h), nan)
    row[rng.random(len(row)) < 0.2] = 0.0
    row[inside] = nan
    seen = inside[rng.random(len(inside)) < 0.6]
    seen = seen if len(seen) else inside[:1]
    row[seen] = np.round(rng.gamma(3.0, size=len(seen)) + 0.25, 3)
    return row
