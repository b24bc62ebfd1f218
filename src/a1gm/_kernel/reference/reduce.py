"""Twins and leaves, down to the core, in NumPy."""

from __future__ import annotations

import numpy as np

from a1gm._base.bits import unpack_bits
from a1gm._base.types import Bools, Floats, Ints, SmallInts, Words
from a1gm._kernel.reference.reduced import LogEntry, Reduced


def reduce_mask(
    bits: Words, row_sums: Floats, col_sums: Floats, rows_distinct: bool, force: bool
) -> Reduced | None:
    """Merge twins using margins only; None when a leaf needs the sums of cells.

    ``rows_distinct`` saves the compiled kernel a search.
    """
    observed = unpack_bits(bits, len(col_sums))
    log: list[LogEntry] = []
    rows, R = _merge_by_margins(observed, row_sums, "twin_row", log)
    cols, C = _merge_by_margins(observed.T, col_sums, "twin_col", log)
    core = observed[np.ix_(rows, cols)]
    if not force and ((core.sum(axis=1) == 1).any() or (core.sum(axis=0) == 1).any()):
        return None
    return Reduced(observed.shape, log, rows, cols, core.astype(np.float64), R, C)


def _merge_by_margins(
    patterns: Bools, sums: Floats, step: str, log: list[LogEntry]
) -> tuple[Ints, Floats]:
    kept: dict[bytes, int] = {}
    merged: dict[int, float] = {}
    for i in np.flatnonzero(patterns.any(axis=1)):
        to = kept.setdefault(patterns[i].tobytes(), int(i))
        if to != i:
            log.append(LogEntry(step, int(i), to, sums[i], merged[to], 1.0))
        merged[to] = merged.get(to, 0.0) + sums[i]
    return np.array(list(merged), dtype=int), np.array(list(merged.values()))


def reduce_table(keys: Words, sums: Floats) -> Reduced:
    """Peel a pattern table."""
    observed = unpack_bits(keys, sums.shape[1])
    return _Peeling(observed.astype(np.float64), sums * observed, weighted=False).run()


def reduce_pairs(
    ptr: Ints, cols: SmallInts, sums: Floats, weights: Floats | None, n_cols: int
) -> Reduced:
    """Peel observed (row, column) pairs, sorted by row."""
    n = len(ptr) - 1
    rows = np.repeat(np.arange(n), np.diff(ptr))
    P, S = np.zeros((n, n_cols)), np.zeros((n, n_cols))
    P[rows, cols] = 1.0 if weights is None else weights
    S[rows, cols] = sums
    return _Peeling(P, S, weighted=weights is not None).run()


class _Peeling:
    """Twins and leaves, one at a time, until neither is left."""

    def __init__(self, P: Floats, S: Floats, *, weighted: bool) -> None:
        self.P, self.S, self.weighted = P, S, weighted
        self.rows = [int(i) for i in np.flatnonzero(P.any(axis=1))]
        self.cols = [int(j) for j in np.flatnonzero(P.any(axis=0))]
        self.log: list[LogEntry] = []

    def run(self) -> Reduced:
        while (
            self._drop_leaf(is_row=True)
            or self._drop_leaf(is_row=False)
            or self._merge_twins(is_row=True)
            or self._merge_twins(is_row=False)
        ):
            pass
        rows, cols = np.array(self.rows, int), np.array(self.cols, int)
        P, S = self.P[np.ix_(rows, cols)], self.S[np.ix_(rows, cols)]
        margins = S.sum(axis=1), S.sum(axis=0)
        return Reduced(self.P.shape, self.log, rows, cols, P, *margins)

    def _sides(self, *, is_row: bool) -> tuple[list[int], list[int], Floats, Floats]:
        if is_row:
            return self.rows, self.cols, self.P, self.S
        return self.cols, self.rows, self.P.T, self.S.T

    def _drop_leaf(self, *, is_row: bool) -> bool:
        own, other, P, S = self._sides(is_row=is_row)
        if not own:
            return False
        met = P[np.ix_(own, other)] > 0
        leaves = np.flatnonzero(met.sum(axis=1) == 1)
        if len(leaves) == 0:
            return False
        leaf, stem = own[leaves[0]], other[int(met[leaves[0]].argmax())]
        own.remove(leaf)
        step = "leaf_row" if is_row else "leaf_col"
        gone, kept = leaf, stem
        if met[:, other.index(stem)].sum() == 1:
            other.remove(stem)
            step = "root"
            gone, kept = (leaf, stem) if is_row else (stem, leaf)
        self.log.append(LogEntry(step, gone, kept, S[leaf, stem], 0.0, P[leaf, stem]))
        return True

    def _merge_twins(self, *, is_row: bool) -> bool:
        own, other, P, S = self._sides(is_row=is_row)
        first: dict[bytes, int] = {}
        found = False
        for pattern in list(own):
            weights = P[pattern, other]
            kept = first.setdefault((weights > 0).tobytes(), pattern)
            if kept == pattern:
                continue
            positive = weights > 0
            ratios = weights[positive] / P[kept, other][positive]
            if self.weighted and np.ptp(ratios) > 2.0**-50 * ratios[0]:
                continue
            step = "twin_row" if is_row else "twin_col"
            sums = S[pattern, other].sum(), S[kept, other].sum()
            self.log.append(LogEntry(step, pattern, kept, *sums, ratios[0]))
            S[kept, other] += S[pattern, other]
            own.remove(pattern)
            found = True
        return found
