"""Components of the columns of a mask that lies in a file."""

from __future__ import annotations

import numpy as np

from a1gm._base.bits import pack_bits, unpack_bits
from a1gm._solve.column_graph import ColumnGraph
from a1gm._observe.row_log import MaskLog
from a1gm._base.types import Bools, Words

__all__ = ["find_graph"]


def find_graph(log: MaskLog, observed: Bools, positive: Bools) -> ColumnGraph:
    """Find which columns share a scale.

    Parameters
    ----------
    log : MaskLog
        The mask.
    observed, positive : ndarray of bool
        Columns with an observed and with a positive cell.
    """
    if not positive.any():
        return ColumnGraph.of_edges(np.zeros((log.n_cols,) * 2, bool), observed)
    pivot = int(positive.argmax())
    ahead = _spread(log, pivot, backward=False)
    # Without zeros the two directions are the same.
    behind = _spread(log, pivot, backward=True) if log.has_zeros else ahead
    if not (positive & ~(ahead & behind)).any():
        return ColumnGraph.of_one_block(observed, positive, ahead)
    return ColumnGraph.of_edges(_edges(log), observed)


def _spread(log: MaskLog, pivot: int, *, backward: bool) -> Bools:
    """Columns reached from one, pass by pass; the usual mask needs one pass or two."""
    reached = np.zeros(log.n_cols, bool)
    reached[pivot] = True
    n_found = 0
    while n_found < (n_found := int(reached.sum())) < log.n_cols:
        words = pack_bits(reached[None])[0]
        for _, _, bits, positive in log.blocks():
            start, end = (bits, positive) if backward else (positive, bits)
            # Rows of zeros lead to columns, but nothing leads to them.
            words = words | _union(end[(start & words).any(axis=1)])
        reached = unpack_bits(words[None], log.n_cols)[0]
    return reached


def _union(bits: Words) -> Words:
    union: Words = np.bitwise_or.reduce(bits, axis=0)
    return union


def _edges(log: MaskLog) -> Bools:
    """Pairs of columns, the first positive and the second observed in some row."""
    found = np.zeros((log.n_cols, log.n_cols), bool)
    step = 4096
    for _, _, bits, positive in log.blocks():
        for at in range(0, len(bits), step):
            seen = unpack_bits(bits[at : at + step], log.n_cols).astype(np.float32)
            above = unpack_bits(positive[at : at + step], log.n_cols).astype(np.float32)
            found |= above.T @ seen > 0.0
    return found
