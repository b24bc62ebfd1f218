"""Exact reductions: twins merged, and two groups given to the engine of two ways.

Two levels of a group whose cells have the same levels in all other groups keep the
ratio of their sums, so they merge into one level with the sum of both. A mode that no
hole touches is one whose levels are all twins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from a1gm._api.fit import FitOptions, fit_rows
from a1gm._base.types import Floats, Ints, SmallInts, Solver
from a1gm._observe.patterns import weighted_counts
from a1gm._rows.read import AnyRows
from a1gm._rows.rows import table_of
from a1gm._rows.sparse import SparseRows
from a1gm.tensor.problem import Problem

WORTH = 4  # merging twins is worth its time where it leaves a quarter of the cells
MIXER = np.uint64(0x9E3779B97F4A7C15)
DENSE = 4  # cells of a table per observed one up to which it is dense


@dataclass(frozen=True)
class Merged:
    """A smaller problem, and each level's place and share in it."""

    problem: Problem
    place: Ints
    share: Floats

    def expand(self, t: Floats) -> Floats:
        """Factors of the levels before twins were merged."""
        return t[self.place] * self.share


def merge_twins(p: Problem) -> Merged | None:
    """Merge twins; None where that leaves more than a quarter of the cells."""
    if p.v is not None:  # twins would need proportional weights
        return None
    random = np.random.default_rng(0)
    if _most_merged(p, random) < WORTH:
        return None
    level = p.level
    place = np.arange(p.starts[-1])
    for g, start in enumerate(p.starts[:-1]):
        size = int(p.sizes[g])
        keys = _signatures(level, p.starts, g, random)
        _, first, new = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        place[start : start + size] = start + first[new.ravel()]
        is_first = np.zeros(size, bool)
        is_first[first] = True
        level = level[:, is_first[level[g] - start]]
    if level.shape[1] * WORTH > p.n_cells:
        return None
    numbers, inverse = distinct_rows([place[row] for row in p.level], p.starts[-1])
    if len(numbers[0]) != level.shape[1]:  # two hashes that are equal by chance
        return None
    s = weighted_counts(inverse, p.s, len(numbers[0]))
    merged = replace(p, s=s, level=np.array(numbers, np.int32))
    total = merged.sums[place]
    share = np.divide(p.sums, total, out=np.zeros(len(total)), where=total > 0.0)
    return Merged(merged, place, share)


def _most_merged(p: Problem, random: np.random.Generator) -> float:
    """Bound on how many times fewer cells are left, by sums that twins have alike."""
    found, last = 1.0, p.level[-1]
    for row, start, size in zip(p.level, p.starts, p.sizes, strict=False):
        codes = random.integers(0, 1 << 26, p.starts[-1]).astype(np.float64)
        sums = weighted_counts(row, codes[last], p.starts[-1])
        found *= size / len(np.unique(sums[start : start + size]))
        last = row
    return found


def _signatures(
    level: SmallInts, starts: Ints, g: int, random: np.random.Generator
) -> Floats:
    """Numbers of each level of a group that are equal for twins alone.

    How many cells it has, and sums of two hashes of their other levels; 26 bits of a
    hash add up exactly in float64.
    """
    size, own = int(starts[g + 1] - starts[g]), level[g] - starts[g]
    found = [np.bincount(own, minlength=size).astype(np.float64)]
    for _ in range(2):
        h = np.zeros(level.shape[1], np.uint64)
        for k, row in enumerate(level):
            if k != g:
                codes = random.integers(1, 2**63, int(starts[k + 1] - starts[k]))
                h = (h ^ codes.astype(np.uint64)[row - starts[k]]) * MIXER
        found += [
            weighted_counts(own, part.astype(np.float64), size)
            for part in (h & np.uint64((1 << 26) - 1), h >> np.uint64(38))
        ]
    return np.array(found)


def number_rows(columns: Sequence[Ints], ends: Sequence[int]) -> Ints | None:
    """Tuples of numbers from 0 to below ``ends`` as numbers, if 64 bits hold them."""
    if math.prod(map(int, ends)) >= 2**62:
        return None
    key = np.zeros(len(columns[0]) if columns else 0, np.int64)
    for column, end in zip(columns, ends, strict=True):
        key = key * int(end) + column
    return key


def distinct_rows(columns: Sequence[Ints], *ends: int) -> tuple[list[Ints], Ints]:
    """Distinct tuples of non-negative numbers below ``ends``, and each one's place."""
    ends = ends * len(columns) if len(ends) == 1 else ends
    key = number_rows(columns, ends)
    if key is None:
        rows, inverse = np.unique(
            np.stack(columns, axis=1), axis=0, return_inverse=True
        )
        return list(rows.T), inverse.ravel()
    key, inverse = np.unique(key, return_inverse=True)
    found = []
    for end in reversed(ends):
        key, column = np.divmod(key, int(end))
        found.append(column)
    return found[::-1], inverse


# ------------------------------------------------------------------------- two groups
def solve_two_groups(
    p: Problem, tol: float, max_iter: int
) -> tuple[Floats, Solver, int, float] | None:
    """Solve a problem in which at most two groups have more than one level.

    Returns the factors of all levels, the solver, its iterations and its bound on the
    error of a cell; None for other problems.
    """
    used = [np.flatnonzero(part) for part in p.split(p.has_cells)]
    many = [g for g, levels in enumerate(used) if len(levels) > 1]
    if len(many) > 2:
        return None
    pair = sorted((many + [g for g in range(len(used)) if g not in many])[:2])
    a = p.level[pair[0]] - p.starts[pair[0]]
    b, n, m = np.zeros_like(a), int(p.sizes[pair[0]]), 1
    if len(pair) > 1:
        b, m = p.level[pair[1]] - p.starts[pair[1]], int(p.sizes[pair[1]])
    v = np.ones(p.n_cells) if p.v is None else p.v
    fit = fit_rows(
        _two_way_rows(p.s, v, a, b, n, m),
        FitOptions("raise", "ignore", tol, max_iter, p.n_threads),
        policy=None,
    )
    t = np.where(p.has_cells, 1.0, 0.0)
    for g, factor in zip(pair, (fit.row_factor, fit.col_factor), strict=False):
        t[p.starts[g] : p.starts[g + 1]] = np.nan_to_num(factor[:])
    return t, fit.solver, fit.n_iter, fit.cell_error


def _two_way_rows(s: Floats, v: Floats, a: Ints, b: Ints, n: int, m: int) -> AnyRows:
    """The table of two groups; cells of one pair are added up, as are their weights."""
    (rows, cols), inverse = distinct_rows([a, b], n, m)
    k = len(rows)
    S, V = weighted_counts(inverse, s, k), weighted_counts(inverse, v, k)
    is_even = bool((V[0] == V).all())
    if n * m <= DENSE * k:
        X = np.full((n, m), np.nan)
        X[rows, cols] = S
        if is_even:
            return table_of(X / V[0])
        E = np.full((n, m), np.nan)
        E[rows, cols] = V
        weights = replace(table_of(E), name="exposure")
        return replace(table_of(X), weights=weights, exposed=True)
    ptr = np.searchsorted(rows, np.arange(n + 1))
    table = SparseRows(
        ptr.astype(np.int64), cols.astype(np.int32), S, n, m, absent="missing"
    )
    if is_even:
        return replace(table, values=S / V[0])
    return replace(table, weights=replace(table, values=V), exposed=True)
