"""Is there a table with these totals: one by a maximum flow, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from a1gm._base.types import AnyArray, Bools, Ints
from a1gm._rows.seed import cells_at

MOST_CAPACITY = 2**30  # SciPy's flow has 32 bits, and wraps without a word
MOST_TRIED = 30  # rows, and columns, from which a proof is sought


class Cut(NamedTuple):
    """Rows that need more than the only columns they can use have; or the reverse."""

    rows: Ints
    cols: Ints
    side: str

    @property
    def size(self) -> int:
        """Rows and columns that it names."""
        return len(self.rows) + len(self.cols)


@dataclass
class Transport:
    """Whole totals of rows and columns, and the cells (i, j) that may be above 0."""

    i: Ints
    j: Ints
    rows: AnyArray  # of int64, or of Python's integers
    cols: AnyArray

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.rows), len(self.cols)

    @cached_property
    def cells(self) -> AnyArray:
        """Whole cells that fill as much of the totals as can be.

        The highest bits are sent first, so that capacities stay small. What can still
        be sent after them is less than one of their units per edge.
        """
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import maximum_flow

        (n, m), (i, j) = self.shape, (self.i, self.j + self.shape[0])
        source, sink = n + m, n + m + 1
        nodes = np.arange(n + m)
        heads = np.concatenate([np.full(n, source), i, j, nodes[n:]])
        tails = np.concatenate([nodes[:n], j, i, np.full(m, sink)])
        room = np.minimum(self.rows[i], self.cols[self.j])
        cells = np.zeros_like(room)
        shift = max(int(self.rows.sum()).bit_length() - 30, 0)
        fewer = max(30 - len(heads).bit_length(), 1)
        while True:
            left_rows, left_cols = self.left(cells)
            capacity = np.concatenate([left_rows, room - cells, cells, left_cols])
            capacity = np.minimum(capacity >> shift, MOST_CAPACITY).astype(np.int32)
            shape = n + m + 2, n + m + 2
            graph = coo_array((capacity, (heads, tails)), shape=shape).tocsr()
            flow = maximum_flow(graph, source, sink).flow
            sent = cells_at(flow, i, j).astype(np.int64)
            if not sent.any() and shift == 0:
                return cells
            cells = cells + (sent.astype(cells.dtype) << shift)
            shift = max(shift - fewer, 0)

    def left(self, cells: AnyArray) -> tuple[AnyArray, AnyArray]:
        """What cells leave of the totals of the rows and of the columns."""
        left_rows, left_cols = self.rows.copy(), self.cols.copy()
        np.subtract.at(left_rows, self.i, cells)
        np.subtract.at(left_cols, self.j, cells)
        return left_rows, left_cols

    # ------------------------------------------------------------------------- proof
    def cuts(self) -> Iterator[Cut]:
        """Yield proofs that there is no such table: each cut and its other side."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import breadth_first_order

        (n, m), used = self.shape, np.flatnonzero(self.cells > 0)
        i, j = self.i, self.j + n
        for side, left in zip(("row", "column"), self.left(self.cells), strict=True):
            forward = (i, j) if side == "row" else (j, i)
            back = (j[used], i[used]) if side == "row" else (i[used], j[used])
            ends = tuple(map(np.concatenate, zip(forward, back, strict=True)))
            ones = np.ones(len(ends[0]), np.int8)
            graph: Any = coo_array((ones, ends), shape=(n + m, n + m)).tocsr()
            most_first = np.argsort(-left, kind="stable")[: int((left > 0).sum())]
            starts = most_first[:MOST_TRIED] + (side == "column") * n
            for start in starts:
                reached = np.zeros(n + m, bool)
                found = breadth_first_order(graph, start, return_predecessors=False)
                reached[found] = True
                yield self._cut(reached[:n], reached[n:], side)
                yield self._cut(~reached[:n], ~reached[n:], _other(side))

    def _cut(self, rows: Bools, cols: Bools, side: str) -> Cut:
        """Of the side that has, keep what the side that needs can use."""
        if side == "row":
            usable = np.zeros_like(cols)
            usable[self.j[rows[self.i]]] = True
            cols = cols & usable
        else:
            usable = np.zeros_like(rows)
            usable[self.i[cols[self.j]]] = True
            rows = rows & usable
        return Cut(np.flatnonzero(rows), np.flatnonzero(cols), side)

    def missing(self, cut: Cut) -> int:
        """Return what the needing side of a cut lacks."""
        rows, cols = int(self.rows[cut.rows].sum()), int(self.cols[cut.cols].sum())
        return rows - cols if cut.side == "row" else cols - rows


def _other(side: str) -> str:
    return "column" if side == "row" else "row"
