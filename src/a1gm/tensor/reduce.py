"""Exact reductions: twins merged, and two groups given to the engine of two ways.

Two levels of a group whose cells have the same levels in all other groups keep the
ratio of their sums, so they merge into one level with the sum of both. A mode that no
hole touches is one whose levels are all twins.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from a1gm._api.fit import FitOptions, fit_rows
from a1gm._base.types import Floats, Ints, SmallInts, Solver
from a1gm._observe.patterns import weighted_counts
from a1gm._rows.sparse import SparseRows
from a1gm.tensor.problem import Problem, distinct_rows

WORTH = 4  # merging twins is worth its time where it leaves a quarter of the cells
MIXER = np.uint64(0x9E3779B97F4A7C15)
BITS = np.uint64((1 << 26) - 1)  # numbers that add up exactly in float64


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
    random, groups = np.random.default_rng(0), range(len(p.sizes))
    # Twins agree in one other group, too: a quick bound on how much is merged.
    quick = (_alike(p.level, p.starts, g, [g - 1], random) for g in groups)
    if math.prod(len(new) / len(first) for first, new in quick) < WORTH:
        return None
    level, place = p.level, np.arange(p.starts[-1])
    for g, start in enumerate(p.starts[:-1]):
        others = [k for k in groups if k != g]
        first, new = _alike(level, p.starts, g, others, random)
        place[start : start + len(new)] = start + first[new]
        is_first = np.zeros(len(new), bool)
        is_first[first] = True
        level = level[:, is_first[level[g] - start]]
    if level.shape[1] * WORTH > len(p.s):
        return None
    ends = [p.starts[-1]] * len(groups)
    cells, of_cell = distinct_rows([place[row] for row in p.level], ends)
    if len(cells[0]) != level.shape[1]:  # two hashes that are equal by chance
        return None
    s = weighted_counts(of_cell, p.s, len(cells[0]))
    merged = replace(p, s=s, level=np.array(cells, np.int32))
    total = merged.sums[place]
    share = np.divide(p.sums, total, out=np.zeros(len(total)), where=total > 0.0)
    return Merged(merged, place, share)


def _alike(
    level: SmallInts,
    starts: Ints,
    g: int,
    others: Iterable[int],
    random: np.random.Generator,
) -> tuple[Ints, Ints]:
    """First levels of a group that differ in other groups, and which each is like.

    By sums of hashes of what the cells of a level have in the other groups.
    """
    codes = random.integers(1 << 62, size=starts[-1]).astype(np.uint64)
    hashes = np.zeros(level.shape[1], np.uint64)
    for k in others:
        hashes = (hashes ^ codes[level[k]]) * MIXER
    own, size = level[g] - starts[g], int(starts[g + 1] - starts[g])
    keys = [
        weighted_counts(own, part.astype(np.float64), size)
        for part in (hashes & BITS, hashes >> np.uint64(38))
    ]
    _, first, new = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    return first, new.ravel()


# ------------------------------------------------------------------------- two groups
def solve_two_groups(
    p: Problem, tol: float, max_iter: int
) -> tuple[Floats, Solver, int, float] | None:
    """Solve a problem in which at most two groups have more than one level.

    Returns the factors of all levels, the solver, its iterations and its bound on the
    error of a cell; None for other problems.
    """
    has_cells = p.counts > 0.0
    is_one = [int(part.sum()) <= 1 for part in p.split(has_cells)]
    if is_one.count(False) > 2:
        return None
    pair = np.argsort(is_one, kind="stable")[:2]
    a, n = p.level[pair[0]] - p.starts[pair[0]], int(p.sizes[pair[0]])
    b, m = np.zeros_like(a), 1
    if len(pair) > 1:
        b, m = p.level[pair[1]] - p.starts[pair[1]], int(p.sizes[pair[1]])
    v = np.ones(len(p.s)) if p.v is None else p.v
    # Cells of one pair of levels are added up, as are their weights.
    S, V = (sp.csr_array((x, (a, b)), (n, m)) for x in (p.s, v))
    ptr, cols = S.indptr.astype(np.int64), S.indices.astype(np.int32)
    table = SparseRows(ptr, cols, S.data / V.data[0], n, m, absent="missing")
    if (V.data != V.data[0]).any():
        weights = replace(table, values=V.data)
        table = replace(table, values=S.data, weights=weights, exposed=True)
    options = FitOptions("raise", "ignore", tol, max_iter, p.n_threads)
    fit = fit_rows(table, options, policy=None)
    t = has_cells.astype(np.float64)
    for g, factor in zip(pair, (fit.row_factor, fit.col_factor), strict=False):
        t[p.starts[g] : p.starts[g + 1]] = np.nan_to_num(factor[:])
    return t, fit.solver, fit.n_iter, fit.cell_error
