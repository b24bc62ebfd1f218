"""Cells of tables with any number of modes: a list of them, or of fibres of an array.

A fitted cell is ``v`` times the product of the factors ``t`` of its levels, one of each
group; levels are positions in one vector, those of group g from ``starts[g]`` on.
Along a fibre, the levels of group g grow by ``step[g]``.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from a1gm._base.types import Floats, Ints, SmallInts

SETTLED = 4  # sweeps before the rate is looked at


def fit_cells(
    level: SmallInts,
    step: Ints | None,
    starts: Ints,
    v: Floats | None,
    t: Floats,
    n_threads: int,
) -> tuple[Floats, Floats]:
    """Return the fitted cells, and their sums by level."""
    level = _of_cells(level, step, v)
    f = np.ones(level.shape[1]) if v is None else v.copy()
    for of_cell in level:
        f *= t[of_cell]
    return f, _sums(level, starts, f)


def multiply_cells(
    level: SmallInts,
    step: Ints | None,
    starts: Ints,
    f: Floats,
    x: Floats,
    n_threads: int,
) -> tuple[Floats, float]:
    """Return the product of x with the Hessian, and the largest move of a cell."""
    moves = x[_of_cells(level, step, f)].sum(axis=0)
    sizes = np.abs(moves if step is None else moves[f > 0.0])
    return _sums(_of_cells(level, step, f), starts, f * moves), float(sizes.max())


def scale_cells(
    level: SmallInts,
    step: Ints | None,
    starts: Ints,
    v: Floats | None,
    sums: Floats,
    t: Floats,
    tol: float,
    max_sweeps: int,
    patience: int,
    n_threads: int,
) -> tuple[int, Floats]:
    """Scale t in place, one group after the other; sweeps, and the sums by level."""
    level = _of_cells(level, step, v)
    f, _ = fit_cells(level, None, starts, v, t, 1)
    gap = math.inf
    for sweep in range(1, max_sweeps + 1):
        gap, before = 0.0, gap
        for of_cell, (start, stop) in zip(level, pairwise(starts), strict=True):
            got = np.bincount(of_cell - start, f, stop - start)
            s = sums[start:stop]
            ratio = np.divide(s, got, out=np.ones(len(got)), where=got > 0.0)
            off = np.abs(got[s > 0.0] / s[s > 0.0] - 1.0)
            gap = max(gap, float(off.max(initial=0.0)))
            t[start:stop] *= ratio
            f *= ratio[of_cell - start]
        if gap <= tol:
            break
        if sweep >= SETTLED:
            rate = gap / before
            if not rate < 1.0:
                break
            if sweep + math.log(tol / gap) / math.log(rate) > patience:
                break
    return sweep, fit_cells(level, None, starts, v, t, 1)[1]


def _of_cells(level: SmallInts, step: Ints | None, v: Any) -> SmallInts:
    """Levels of cells, where those of fibres may be given."""
    if step is None:
        return level
    along = np.multiply.outer(step, np.arange(len(v) // level.shape[1]))
    found = level[:, :, None] + along[:, None, :]
    return np.asarray(found.reshape(len(level), -1), np.int32)


def _sums(level: SmallInts, starts: Ints, f: Floats) -> Floats:
    found = np.zeros(int(starts[-1]))
    for of_cell in level:
        found += np.bincount(of_cell, f, len(found))
    return found
