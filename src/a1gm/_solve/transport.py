"""Is there a table with these totals: one by a maximum flow, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from a1gm._base.types import Bools, Floats, Ints
from a1gm._rows.seed import cells_at

MOST_CAPACITY = 2**30  # SciPy's flow has 32 bits, and wraps without a word
MOST_TRIED = 30  # rows from which a proof is sought
NEAR = (0.01, 0.03, 0.1, 0.25, 0.5)  # of one half: the cells that rounding may move


def send(heads: Ints, tails: Ints, room: Ints, supply: Ints) -> Ints:
    """Send as much as can be from nodes with supply to those where it is below 0.

    ``heads`` to ``tails`` are the edges; what each of them carries is returned.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import maximum_flow

    source, sink = len(supply), len(supply) + 1
    gives, takes = np.flatnonzero(supply > 0), np.flatnonzero(supply < 0)
    ends = (
        np.concatenate([np.full(len(gives), source), takes, heads]),
        np.concatenate([gives, np.full(len(takes), sink), tails]),
    )
    sizes = np.concatenate([supply[gives], -supply[takes], room])
    sizes = np.minimum(sizes, MOST_CAPACITY).astype(np.int32)
    graph = coo_array((sizes, ends), shape=(sink + 1, sink + 1)).tocsr()
    flow = maximum_flow(graph, source, sink).flow
    sent: Ints = cells_at(flow, heads, tails).astype(np.int64)
    return sent


def left_of(i: Ints, j: Ints, cells: Any, rows: Any, cols: Any) -> tuple[Any, Any]:
    """What cells leave of the totals of the rows and of the columns."""
    left = rows.copy(), cols.copy()
    np.subtract.at(left[0], i, cells)
    np.subtract.at(left[1], j, cells)
    return left


def transport(i: Ints, j: Ints, rows: Ints, cols: Ints) -> tuple[Ints, Ints, Ints]:
    """Whole cells at (i, j) that fill as much of whole totals as can be.

    Also what they leave of the totals of the rows and of the columns.
    The highest bits are sent first, so that capacities stay small. What can still be
    sent after them is less than one of their units per edge.
    """
    n = len(rows)
    heads, tails = np.concatenate([i, j + n]), np.concatenate([j + n, i])
    room = np.minimum(rows[i], cols[j])
    cells = np.zeros_like(room)
    shift = max(int(rows.sum()).bit_length() - 30, 0)
    fewer = max(30 - (len(heads) + n + len(cols)).bit_length(), 1)
    while True:
        left_rows, left_cols = left_of(i, j, cells, rows, cols)
        supply = np.concatenate([left_rows >> shift, -(left_cols >> shift)])
        capacity = np.concatenate([room - cells, cells]) >> shift
        sent = send(heads, tails, capacity, supply)[: len(i)]
        if not sent.any() and shift == 0:
            return cells, left_rows, left_cols
        cells = cells + (sent << shift)
        shift = max(shift - fewer, 0)


def cuts(
    i: Ints, j: Ints, cells: Ints, of_rows: Ints, of_cols: Ints
) -> Iterator[tuple[Bools, Bools]]:
    """Yield rows that lack something, and the only columns they can use.

    These are all that the residual network reaches from a row with something left,
    ``of_rows``. What such rows lack, the other columns lack as well: they are yielded
    with the only rows that they can use.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order

    n, m, used = len(of_rows), len(of_cols), cells > 0
    ends = np.concatenate([i, j[used] + n]), np.concatenate([j + n, i[used]])
    ones = np.ones(len(ends[0]), np.int8)
    graph: Any = coo_array((ones, ends), shape=(n + m, n + m)).tocsr()
    most_first = np.argsort(-of_rows, kind="stable")[: int((of_rows > 0).sum())]
    for start in most_first[:MOST_TRIED]:
        found = np.zeros(n + m, bool)
        found[breadth_first_order(graph, start, return_predecessors=False)] = True
        rows, cols = found[:n], found[n:]
        yield rows, cols
        yield ~rows & (np.bincount(i[~cols[j]], minlength=n) > 0), ~cols


# ----------------------------------------------------------------- controlled rounding
def rounded_cells(
    i: Ints, j: Ints, f: Floats, rows: Floats, cols: Floats
) -> Ints | None:
    """Round the cells ``f`` at (i, j); whole totals are kept, those that are NaN free.

    Cells are rounded to the nearest; what that leaves of the totals is moved by units
    through the cells whose fractions are nearest to one half. Since whole totals can
    always be met by rounding each cell up or down, the last of these flows does it.
    None where it cannot be done within the digits of the cells.
    """
    n, whole = len(rows), np.rint(f)
    nearest = whole.copy()
    up, away = f > nearest, 0.5 - np.abs(f - nearest)
    free = np.flatnonzero(np.isnan(np.concatenate([rows, cols])))
    ground = np.full(len(free), n + len(cols))  # takes what totals do not fix
    much = np.full(2 * len(free), MOST_CAPACITY)
    for near in (*NEAR, None):
        left = left_of(i, j, whole, rows, cols)
        supply = np.nan_to_num(np.concatenate([left[0], -left[1]])).astype(np.int64)
        if near is None or not supply.any():
            break
        may = np.flatnonzero((away <= near) & (f != nearest) & (whole == nearest))
        ends = np.where(up[may], (i[may], j[may] + n), (j[may] + n, i[may]))
        heads = np.concatenate([ends[0], free, ground])
        tails = np.concatenate([ends[1], ground, free])
        room = np.concatenate([np.ones(len(may), np.int64), much])
        sent = send(heads, tails, room, np.append(supply, -supply.sum()))[: len(may)]
        whole[may] += np.where(up[may], sent > 0, -1.0 * (sent > 0))
    return None if supply.any() else whole.astype(np.int64)
