"""Whole numbers that keep all totals: controlled rounding.

Cells are rounded to the nearest; what that leaves of the totals is moved by unit flows
through the cells whose fractions are nearest to one half. Since whole totals can always
be met by rounding each cell up or down, the last flow, through all of them, does it.
"""

from __future__ import annotations

import numpy as np

from a1gm._base.types import Bools, Floats, Ints
from a1gm._rows.seed import cells_at

NEAR = (0.01, 0.03, 0.1, 0.25, 0.5)  # of one half: the cells that may move


def rounded_cells(
    i: Ints, j: Ints, f: Floats, rows: Floats, cols: Floats
) -> Ints | None:
    """Round the cells ``f`` at (i, j); totals that are NaN are free.

    None where it cannot be done within the digits of the cells.
    """
    whole = np.rint(f)
    up = f > whole  # a unit can be added, or taken from the others
    away = 0.5 - np.abs(f - whole)
    for near in NEAR:
        needs = [
            np.where(
                np.isnan(totals), 0.0, totals - np.bincount(at, whole, len(totals))
            )
            for totals, at in ((rows, i), (cols, j))
        ]
        if not any(need.any() for need in needs):
            break
        may = np.flatnonzero((away <= near) & (f != np.rint(f)) & (whole == np.rint(f)))
        free = np.concatenate([np.isnan(rows), np.isnan(cols)])
        sent = _flow(i[may], j[may], up[may], needs[0], needs[1], free)
        whole[may] += np.where(up[may], sent, -sent)
    needs = [
        np.where(np.isnan(totals), 0.0, totals - np.bincount(at, whole, len(totals)))
        for totals, at in ((rows, i), (cols, j))
    ]
    return None if any(need.any() for need in needs) else whole.astype(np.int64)


def _flow(
    i: Ints, j: Ints, up: Bools, of_rows: Floats, of_cols: Floats, is_free: Bools
) -> Ints:
    """Which cells move by one, from rows that need it to columns that need it.

    A negative need is one of the other side; rows and columns without a total take what
    is left.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import maximum_flow

    n, m = len(of_rows), len(of_cols)
    source, sink, ground = n + m, n + m + 1, n + m + 2
    # Supply of the rows, demand of the columns.
    supply = np.concatenate([of_rows, -of_cols]).astype(np.int64)
    free = np.flatnonzero(is_free)
    supply = np.append(supply, -supply.sum())
    nodes = np.append(np.arange(n + m), ground)
    gives, takes = np.flatnonzero(supply > 0), np.flatnonzero(supply < 0)
    much = np.full(len(free), int(np.abs(supply).sum()) + 1)
    at = np.full(len(free), ground)
    heads = [np.full(len(gives), source), nodes[takes], free, at]
    tails = [nodes[gives], np.full(len(takes), sink), at, free]
    sizes = [supply[gives], -supply[takes], much, much]
    heads.append(np.where(up, i, j + n))
    tails.append(np.where(up, j + n, i))
    sizes.append(np.ones(len(i), np.int64))
    ends = np.concatenate(heads), np.concatenate(tails)
    values = np.minimum(np.concatenate(sizes), 2**30).astype(np.int32)
    shape = n + m + 3, n + m + 3
    flow = maximum_flow(coo_array((values, ends), shape=shape).tocsr(), source, sink)
    moved: Ints = cells_at(flow.flow, heads[-1], tails[-1]) > 0
    return moved.astype(np.int64)
