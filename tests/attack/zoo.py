"""Random tables of every kind that has ever gone wrong, each made from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

RIGHT, ANNOUNCED, WRONG, UNKNOWN = "right", "announced", "silently wrong", "no truth"
nan = np.nan
Rng = np.random.Generator


@dataclass
class Case:
    """A table, and the way it is fitted."""

    X: np.ndarray
    V: np.ndarray | None = None
    way: str = "array"  # or one of those in case_of
    signed: bool = False


@dataclass(frozen=True)
class Kind:
    """How tables are made, and what is expected of them."""

    make: Callable[[Rng], Case]
    share: float = 1.0  # of the tables of a run
    ordinary: bool = False  # no warning may be given
    exact: bool = False  # never judged in long double
    strict: bool = False  # whatever has an answer gets it, with its scatter


@dataclass
class Verdict:
    """What became of one table."""

    verdict: str
    why: str = ""
    error: float = 0.0  # worst relative error of a finite cell
    ratio: float = 0.0  # that error in units of the bound that the fit gives
    digits: int = 0
    needless: bool = False  # announced, though nothing was wrong or out of range


FORMATS = ("csv", "tsv", "csv.gz", "parquet", "feather", "model", "bytes")
DAMAGED = {f"damaged {name}": name for name in FORMATS}
KINDS: dict[str, Kind] = {}


def kind(**options):
    def enter(make):
        KINDS[make.__name__.replace("_", " ")] = Kind(make, **options)
        return make

    return enter


def case_of(name: str, seed: int) -> Case:
    """The table of a kind and a seed; half of them go another way than as an array."""
    rng = np.random.default_rng([seed, *name.encode()])
    case = KINDS[name].make(rng)
    if case.V is not None or case.signed or case.way != "array":
        return case
    ways = ["array"] * 4 + ["sparse", "pieces", "masks", "weights", "file", "disk"]
    return replace(case, way=str(rng.choice(ways)))


# ------------------------------------------------------------------------ parts
def sides(rng: Rng, most: int = 14) -> tuple[int, int]:
    return int(rng.integers(1, 3 * most)), int(rng.integers(1, most))


def values(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Ordinary positive numbers: near rank 1, or not at all, or whole."""
    choice = rng.integers(3)
    if choice == 0:
        n, m = shape
        X = np.outer(rng.gamma(2.0, size=n), rng.gamma(2.0, size=m))
        return X * rng.lognormal(0.0, 0.2, shape)
    if choice == 1:
        return rng.lognormal(0.0, rng.uniform(0.1, 2.0), shape)
    return rng.integers(1, 100, shape).astype(float)


def with_holes(rng: Rng, X: np.ndarray, share: float) -> np.ndarray:
    """Holes at random; one cell at least stays."""
    X = np.where(rng.random(X.shape) < share, nan, X)
    if np.isnan(X).all():
        X[0, 0] = 1.0
    return X


def hollow(rng: Rng, k: int) -> np.ndarray:
    """A block without closed form: a cycle with a few more cells."""
    X = rng.lognormal(0.0, 1.0, (k, k))
    keep = np.eye(k, dtype=bool) | np.roll(np.eye(k, dtype=bool), 1, axis=1)
    keep |= rng.random((k, k)) < rng.uniform(0.0, 0.7)
    keep[np.arange(k), (np.arange(k) + 2) % k] = False
    return np.where(keep, X, nan)


def expander(rng: Rng, k: int) -> np.ndarray:
    """A few cells in each row, no cut thinner than any other."""
    X = np.full((k, k), nan)
    for _ in range(int(rng.integers(3, 5))):
        X[np.arange(k), rng.permutation(k)] = rng.lognormal(0.0, 1.0, k)
    return X


def joined(rng: Rng, parts: list[np.ndarray], smallest: float) -> np.ndarray:
    """Parts in a row, each tied to the next by small cells, one way or both."""
    ends = np.cumsum([0] + [len(part) for part in parts])
    X = np.full((ends[-1], ends[-1]), nan)
    for part, start in zip(parts, ends[:-1], strict=True):
        X[start : start + len(part), start : start + len(part)] = part
    for a in range(len(parts) - 1):
        size = 10.0 ** rng.uniform(smallest, -2.0)
        both, up = rng.random() < 0.3, rng.random() < 0.5
        for _ in range(int(rng.integers(1, 4))):
            p, q = (a, a + 1) if up ^ (both and rng.random() < 0.5) else (a + 1, a)
            i, j = (
                rng.integers(ends[p], ends[p + 1]),
                rng.integers(ends[q], ends[q + 1]),
            )
            X[i, j] = size * rng.lognormal(0.0, 0.5)
    return X[rng.permutation(len(X))][:, rng.permutation(len(X))]


def stretched(rng: Rng, X: np.ndarray, decades: float) -> np.ndarray:
    """Rows, columns or cells over so many decades either way, inside float64."""
    n, m = X.shape
    what = rng.integers(4)
    logs = np.zeros((n, m))
    if what in (0, 2):
        logs = logs + rng.uniform(-decades, decades, (n, 1))
    if what in (1, 2):
        logs = logs + rng.uniform(-decades, decades, (1, m))
    if what == 3:
        logs = logs + rng.uniform(-decades, decades, (n, m))
    return X * 10.0 ** np.clip(logs, -305.0, 305.0)


def any_pattern(rng: Rng) -> np.ndarray:
    """A small table with some pattern of holes."""
    choice = rng.integers(4)
    if choice == 0:
        return hollow(rng, int(rng.integers(3, 7)))
    if choice == 1:
        return banded(rng).X[:10, :10]
    X = values(rng, (int(rng.integers(1, 10)), int(rng.integers(1, 8))))
    return with_holes(rng, X, rng.uniform(0.0, 0.7))


# --------------------------------------------------------------------- ordinary kinds
@kind(share=4.0, ordinary=True)
def ordinary(rng):
    return Case(with_holes(rng, values(rng, sides(rng)), rng.uniform(0.0, 0.6)))


@kind(share=3.0, ordinary=True)
def zeros(rng):
    X = rng.poisson(rng.choice([0.3, 1.0, 3.0]), sides(rng, 9)).astype(float)
    X[rng.random(X.shape) < 0.1] = -0.0
    return Case(with_holes(rng, X, rng.uniform(0.0, 0.7)))


@kind(ordinary=True)
def banded(rng):
    n, width = int(rng.integers(4, 30)), int(rng.integers(1, 4))
    away = np.arange(n) - np.arange(n)[:, None]
    return Case(np.where((away >= 0) & (away <= width), values(rng, (n, n)), nan))


@kind(ordinary=True)
def staircase(rng):
    X = values(rng, sides(rng))
    ends = np.sort(rng.integers(1, X.shape[1] + 1, len(X)))
    X[np.arange(X.shape[1]) >= ends[:, None]] = nan
    return Case(X[rng.permutation(len(X))][:, rng.permutation(X.shape[1])])


@kind(ordinary=True)
def blocks(rng):
    parts = [any_pattern(rng) for _ in range(int(rng.integers(2, 4)))]
    X = np.full(np.sum([part.shape for part in parts], axis=0), nan)
    i = j = 0
    for part in parts:
        X[i : i + part.shape[0], j : j + part.shape[1]] = part
        i, j = i + part.shape[0], j + part.shape[1]
    return Case(X[rng.permutation(len(X))][:, rng.permutation(X.shape[1])])


@kind(ordinary=True)
def random_sparse(rng):
    return Case(expander(rng, int(rng.integers(8, 40))))


@kind(ordinary=True)
def weighted(rng):
    X = with_holes(rng, values(rng, sides(rng, 9)), rng.uniform(0.0, 0.6))
    V = rng.lognormal(0.0, 1.0, X.shape)
    V[rng.random(X.shape) < 0.2] = 0.0
    V[~np.isnan(X).all(axis=1), :] += 0.0 if rng.random() < 0.5 else 0.1
    return Case(X, np.maximum(V, 0.0) if (V * ~np.isnan(X)).any() else V + 1.0)


@kind(ordinary=True, share=0.5)
def signed(rng):
    X = values(rng, sides(rng, 9)) + 1.0
    if rng.random() < 0.5:  # a triangle
        X[np.add.outer(np.arange(len(X)), np.arange(X.shape[1])) >= max(X.shape)] = nan
    else:
        X = with_holes(rng, X, rng.uniform(0.0, 0.4))
    flip = rng.random(X.shape) < 0.08
    return Case(np.where(flip, np.round(-0.3 * X), X), signed=True)


@kind(share=0.5)
def signed_triangle(rng):
    """A triangle with negative cells, zeros, and rows or columns of any sign."""
    n, m = (int(k) for k in rng.integers(2, 9, 2))
    X = rng.integers(-3, 12, (n, m)).astype(float)
    X[rng.random(X.shape) < rng.choice([0.0, 0.4])] = 0.0
    X[np.add.outer(np.arange(n), np.arange(m)) >= max(n, m)] = nan
    X[int(rng.integers(n))] *= rng.choice([-1.0, 1.0])
    X[:, int(rng.integers(m))] *= rng.choice([-1.0, 0.0, 1.0])
    return Case(X[:, rng.permutation(m)], signed=True)


# ------------------------------------------------------------------ nearly unconnected
@kind(share=2.0, exact=True)
def bridge(rng):
    a, b = rng.integers(3, 7, 2)
    return Case(joined(rng, [hollow(rng, int(a)), hollow(rng, int(b))], -15.0))


@kind(exact=True)
def chain(rng):
    parts = [hollow(rng, int(rng.integers(3, 5))) for _ in range(rng.integers(3, 6))]
    return Case(joined(rng, parts, -10.0))


@kind(share=0.5, exact=True)
def expanders(rng):
    parts = [expander(rng, int(rng.integers(6, 14))) for _ in range(2)]
    return Case(joined(rng, parts, -15.0))


@kind(exact=True)
def weighted_bridge(rng):
    X = bridge(rng).X
    return Case(X, rng.lognormal(0.0, 2.0, X.shape))


@kind(share=0.01, exact=True)
def large_bridge(rng):
    parts = [expander(rng, int(rng.integers(40, 80))) for _ in range(2)]
    return Case(joined(rng, parts, -15.0))


@kind(exact=True)
def bridge_with_zeros(rng):
    X = bridge(rng).X
    X[rng.random(X.shape) < 0.05] = 0.0
    return Case(X)


# --------------------------------------------------------------------- extreme spans
@kind(exact=True)
def span_30(rng):
    return Case(stretched(rng, any_pattern(rng), 30.0))


@kind(exact=True)
def span_120(rng):
    return Case(stretched(rng, any_pattern(rng), 120.0))


@kind(exact=True)
def span_300(rng):
    return Case(stretched(rng, any_pattern(rng), 300.0))


@kind(exact=True, strict=True)
def near_limits(rng):
    """Ordinary tables of numbers near 1e140 or 1e-140, or beyond."""
    X = any_pattern(rng)
    size = 10.0 ** rng.uniform(130.0, 150.0)
    return Case(X * (size if rng.random() < 0.5 else 1.0 / size))


@kind(exact=True)
def subnormal(rng):
    X = stretched(rng, any_pattern(rng), rng.choice([0.0, 5.0, 20.0]))
    X = X / np.nanmax(X) * 10.0 ** rng.uniform(-322.0, -300.0)
    return Case(X if (X > 0.0).any() else np.where(np.isnan(X), nan, 5e-324))


@kind(exact=True)
def extreme_weights(rng):
    X = stretched(rng, any_pattern(rng), rng.choice([0.0, 30.0, 150.0]))
    V = stretched(rng, np.ones(X.shape), rng.choice([10.0, 120.0, 290.0]))
    return Case(X, V)


@kind(share=0.5, exact=True)
def pieces(rng):
    X = stretched(rng, any_pattern(rng), rng.choice([30.0, 120.0]))
    return Case(X, way="pieces")


@kind(exact=True)
def odd(rng):
    """Tiny tables of the numbers at the ends of float64, zeros and holes."""
    ends = [nan, nan, 0.0, 1.0, 1.0, 3.0, 5e-324, 1e-310, 1e-200, 1e-30, 1e200, 1.7e308]
    X = rng.choice(ends, (int(rng.integers(1, 5)), int(rng.integers(1, 5))))
    return Case(with_holes(rng, X, 0.0))
