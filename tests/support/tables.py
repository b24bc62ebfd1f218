"""Random tables whose holes have every shape a user may meet."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import strategies as st

Mask = np.ndarray
Table = np.ndarray
#: For tests of tables some of whose cells cannot be known.
quiet = [
    pytest.mark.filterwarnings("ignore::a1gm.exceptions.UndeterminedWarning"),
    pytest.mark.filterwarnings("ignore::a1gm.exceptions.EmptyLineWarning"),
]


def complete(rng: np.random.Generator, n: int, m: int) -> Mask:
    return np.ones((n, m), bool)


def corner(rng: np.random.Generator, n: int, m: int) -> Mask:
    observed = np.ones((n, m), bool)
    observed[rng.integers(1, n + 1) :, rng.integers(1, m + 1) :] = False
    return observed


def grid(rng: np.random.Generator, n: int, m: int) -> Mask:
    rows, cols = rng.random(n) < 0.5, rng.random(m) < 0.5
    rows[rng.integers(n)] = cols[rng.integers(m)] = False
    return ~np.outer(rows, cols)


def staircase(rng: np.random.Generator, n: int, m: int) -> Mask:
    depth = np.sort(rng.integers(1, m + 1, n))[::-1]
    depth[0] = m
    return np.arange(m) < depth[:, None]


def few_patterns(rng: np.random.Generator, n: int, m: int) -> Mask:
    patterns = rng.random((3, m)) < 0.6
    patterns[0] = True
    return patterns[rng.integers(0, 3, n)]


def at_random(rng: np.random.Generator, n: int, m: int) -> Mask:
    return rng.random((n, m)) < 0.8


def mostly_missing(rng: np.random.Generator, n: int, m: int) -> Mask:
    return rng.random((n, m)) < 0.25


def banded(rng: np.random.Generator, n: int, m: int) -> Mask:
    width = int(rng.integers(1, 3))
    place = np.arange(n)[:, None] * m / n
    return np.abs(place - np.arange(m)) <= width


def block_diagonal(rng: np.random.Generator, n: int, m: int) -> Mask:
    n_blocks = int(rng.integers(2, 4))
    rows, cols = np.arange(n) * n_blocks // n, np.arange(m) * n_blocks // m
    inside = rows[:, None] == cols
    holes = rng.random((n, m)) < 0.2
    return inside & ~holes


def bridge(rng: np.random.Generator, n: int, m: int) -> Mask:
    rows, cols = np.arange(n) < n // 2, np.arange(m) < m // 2
    observed = rows[:, None] == cols
    if n > 1 and m > 1:
        observed[0, -1] = True
    return observed


KINDS: dict[str, Callable[[np.random.Generator, int, int], Mask]] = {
    "complete": complete,
    "corner": corner,
    "grid": grid,
    "staircase": staircase,
    "few patterns": few_patterns,
    "at random": at_random,
    "mostly missing": mostly_missing,
    "banded": banded,
    "block-diagonal": block_diagonal,
    "bridge": bridge,
}


def make_mask(kind: str, n: int, m: int, seed: int) -> Mask:
    """A mask (True = observed) of some kind, with at least one observed cell."""
    rng = np.random.default_rng(seed)
    observed = KINDS[kind](rng, n, m)
    if not observed.any():
        observed[rng.integers(n), rng.integers(m)] = True
    return observed


def make_table(
    kind: str, n: int, m: int, seed: int, *, zeros: float = 0.0, spread: float = 1.0
) -> Table:
    """A table of that kind; the one cell that joins the halves of a bridge is tiny."""
    observed = make_mask(kind, n, m, seed)
    rng = np.random.default_rng(seed + 1)
    X = np.exp(spread * rng.standard_normal((n, m)))
    if kind == "bridge":
        X[0, -1] *= 1e-6
    X[rng.random((n, m)) < zeros] = 0.0
    X[~observed] = np.nan
    return X


def tables(
    *,
    kinds: list[str] | None = None,
    max_rows: int = 9,
    max_cols: int = 9,
    zeros: float = 0.0,
    spread: float = 1.0,
) -> st.SearchStrategy[Table]:
    """Tables of every kind; what shrinks is the shape and the seed."""
    return st.builds(
        lambda kind, n, m, seed: make_table(
            kind, n, m, seed, zeros=zeros, spread=spread
        ),
        st.sampled_from(kinds or sorted(KINDS)),
        st.integers(1, max_rows),
        st.integers(1, max_cols),
        st.integers(0, 2**31),
    )


def without_empty_lines(X: Table) -> Table:
    """The table without rows and columns that observe nothing."""
    seen = ~np.isnan(X)
    return X[seen.any(axis=1)][:, seen.any(axis=0)]


def gamma_table(
    n: int = 400, m: int = 6, seed: int = 0, holes: float = 0.3
) -> np.ndarray:
    """A table with a share of its cells missing, its first column complete."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=(n, m))
    X[rng.random((n, m)) < holes] = np.nan
    X[:, 0] = rng.gamma(2.0, size=n)
    return X
