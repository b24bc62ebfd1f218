"""The kernel in NumPy: what the compiled one computes, written to be read.

Every function has a twin of the same name and signature in the compiled module.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from a1gm._base.bits import pack_bits, unpack_bits
from a1gm._base.types import AnyArray, Bools, Floats, Ints, SmallInts, Words

__all__ = [
    "Reduced",
    "expand_rows",
    "observe",
    "reduce_mask",
    "reduce_pairs",
    "reduce_table",
    "solve_nested",
    "solve_plain",
    "solve_wide",
]

Part = tuple[AnyArray, AnyArray | None, AnyArray | None, int, int]
BLOCK_CELLS = 1 << 18  # rows are read in blocks of about this many cells


# ------------------------------------------------------------------- observe
def observe(
    parts: list[Part],
    n_groups: int,
    n_threads: int,
    scale: float,
    table_cells: int,
    keep_table: bool,
) -> tuple[Any, ...]:
    """Observe all rows once; see ``Observation`` in ``a1gm._observe``."""
    del n_threads  # one is enough to define the answer
    n = parts[0][0].shape[0]
    m = sum(part[0].shape[1] for part in parts)
    seen = _Pass(n, m, n_groups)
    step = max(1, BLOCK_CELLS // max(m, 1))
    for start in range(0, n, step):
        seen.add(_read(parts, start, min(start + step, n), scale), start, parts)
    wide = not keep_table and len(seen.counts) * m > table_cells
    wide = wide and len(seen.counts) * 4 > n
    with np.errstate(over="ignore", invalid="ignore"):  # the flag tells of overflow
        form = seen.wide_form() if wide else seen.table_form()
        total = float(seen.row_sums.sum())
    return (
        seen.row_sums,
        wide,
        form,
        total,
        seen.overflow,
        tuple(seen.negative),
        tuple(seen.infinite),
    )


def _read(parts: list[Part], start: int, stop: int, scale: float) -> Floats:
    columns = []
    for values, mask, validity, bit_offset, _ in parts:
        block = values[start:stop].astype(np.float64)
        if mask is not None:
            block[mask[start:stop].astype(bool)] = np.nan
        if validity is not None:
            valid = np.unpackbits(validity, bitorder="little")
            block[valid[bit_offset + start : bit_offset + stop] == 0] = np.nan
        columns.append(block)
    block = columns[0] if len(columns) == 1 else np.hstack(columns)
    return block * scale if scale != 1.0 else block


class _Pass:
    """Accumulates blocks of rows."""

    def __init__(self, n: int, m: int, n_groups: int) -> None:
        self.row_sums = np.zeros((n_groups, n))
        self.ids = np.zeros(n, dtype=np.int32)
        self.n_cols = m
        self.index: dict[bytes, int] = {}
        self.keys: list[Words] = []
        self.sums: list[Floats] = []
        self.counts: list[int] = []
        self.positive: list[Words] = []
        self.overflow = False
        self.negative: list[Any] = [0, -1, -1, 0.0]
        self.infinite: list[Any] = [0, -1, -1, 0.0]

    def add(self, block: Floats, start: int, parts: list[Part]) -> None:
        observed = ~np.isnan(block)
        infinite = np.isinf(block)
        _note(self.infinite, block, infinite, start)
        _note(self.negative, block, (block < 0) & ~infinite, start)
        rows = slice(start, start + len(block))
        cells = np.where(observed, block, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            at = 0
            for values, _, _, _, group in parts:
                width = values.shape[1]
                self.row_sums[group, rows] += cells[:, at : at + width].sum(axis=1)
                at += width
            keys, inverse = np.unique(pack_bits(observed), axis=0, return_inverse=True)
            inverse = inverse.ravel()
            # Patterns are numbered in the order in which they first appear.
            for k in inverse[np.sort(np.unique(inverse, return_index=True)[1])]:
                chosen = inverse == k
                number = self._number(keys[k])
                self.sums[number] = self.sums[number] + cells[chosen].sum(axis=0)
                self.counts[number] += int(chosen.sum())
                self.ids[rows][chosen] = number
        self.positive.append(pack_bits(block > 0))
        if not infinite.any():
            self.overflow |= not np.isfinite(self.row_sums[:, rows]).all()

    def _number(self, key: Words) -> int:
        number = self.index.setdefault(key.tobytes(), len(self.keys))
        if number == len(self.keys):
            self.keys.append(key)
            self.sums.append(np.zeros(self.n_cols))
            self.counts.append(0)
        return number

    def table_form(self) -> tuple[Any, ...]:
        sums = np.array(self.sums).reshape(-1, self.n_cols)
        self.overflow |= not np.isfinite(sums).all()
        return (self.ids, np.array(self.keys), np.array(self.counts), sums)

    def wide_form(self) -> tuple[Any, ...]:
        bits = np.array(self.keys)[self.ids]
        positive = np.vstack(self.positive)
        col_sums = np.sum(self.sums, axis=0)
        self.overflow |= not np.isfinite(col_sums).all()
        return (bits, positive, col_sums, bool((bits != positive).any()))


def _note(fault: list[Any], block: Floats, bad: Bools, start: int) -> None:
    count = int(bad.sum())
    if count and fault[0] == 0:
        row, col = divmod(int(bad.argmax()), block.shape[1])
        fault[1:] = [start + row, col, float(block[row, col])]
    fault[0] += count


def expand_rows(
    row_sums: Floats, pattern_id: AnyArray, scale: Floats, n_threads: int
) -> None:
    """Turn row sums into row factors in place."""
    del n_threads
    row_sums *= scale[pattern_id]


def solve_plain(keys: Words, sums: Floats, tol: float, max_sweeps: int) -> None:
    """Decline: the short cut is the compiled kernel's, the answer the general one's."""
    del keys, sums, tol, max_sweeps


def solve_wide(
    bits: Words,
    row_sums: Floats,
    col_sums: Floats,
    tol: float,
    max_sweeps: int,
    n_threads: int,
) -> None:
    """Decline, as ``solve_plain`` does."""
    del bits, row_sums, col_sums, tol, max_sweeps, n_threads


def solve_nested(
    bits: Words, parts: list[Part], col_sums: Floats, scale: float, n_threads: int
) -> tuple[Floats, Floats] | None:
    """Column factors of nested patterns, and their sum over each row's cells.

    None when the patterns are not nested. With the columns sorted by the step of the
    staircase at which they appear, the factors of a step are to those of all earlier
    ones as its column sums are to the earlier cells of the rows that observe it.
    """
    del n_threads
    observed = unpack_bits(bits, len(col_sums))
    by_size = observed[np.argsort(observed.sum(axis=1), kind="stable")]
    if (by_size[:-1] & ~by_size[1:]).any() or not observed.any():
        return None
    cells = np.nan_to_num(_read(parts, 0, len(bits), scale), nan=0.0)
    h = np.full(len(col_sums), np.nan)
    known = np.zeros(len(col_sums), bool)
    for pattern in by_size:
        step = pattern & ~known
        if not step.any():
            continue
        rows = observed[:, step].any(axis=1)
        before, fresh = cells[np.ix_(rows, known)].sum(), col_sums[step].sum()
        share = fresh / (fresh + before)
        h[known] *= 1.0 - share if before == 0.0 else before / (fresh + before)
        h[step] = share * col_sums[step] / fresh
        known |= step
    return h, observed @ np.nan_to_num(h, nan=0.0)


# -------------------------------------------------------------------- reduce
def reduce_mask(
    bits: Words, row_sums: Floats, col_sums: Floats, rows_distinct: bool, force: bool
) -> Reduced | None:
    """Merge twins using margins only; None when a leaf asks for block sums."""
    del rows_distinct
    observed = unpack_bits(bits, len(col_sums))
    out = Reduced(*observed.shape)
    rows, out.R = _merge_by_margins(observed, row_sums, "twin_row", out.log)
    cols, out.C = _merge_by_margins(observed.T, col_sums, "twin_col", out.log)
    core = observed[np.ix_(rows, cols)]
    if not force and ((core.sum(axis=1) == 1).any() or (core.sum(axis=0) == 1).any()):
        return None
    out.core_rows, out.core_cols, out.P = rows, cols, core.astype(np.float64)
    return out.label()


def _merge_by_margins(
    lines: Bools, sums: Floats, step: str, log: list[LogEntry]
) -> tuple[Ints, Floats]:
    kept: dict[bytes, int] = {}
    merged: dict[int, float] = {}
    for i in np.flatnonzero(lines.any(axis=1)):
        to = kept.setdefault(lines[i].tobytes(), int(i))
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
    """Peel observed (row, column) pairs, given row by row."""
    n = len(ptr) - 1
    rows = np.repeat(np.arange(n), np.diff(ptr))
    P, S = np.zeros((n, n_cols)), np.zeros((n, n_cols))
    P[rows, cols] = 1.0 if weights is None else weights
    S[rows, cols] = sums
    return _Peeling(P, S, weighted=weights is not None).run()


@dataclass(frozen=True)
class LogEntry:
    """One step of the peeling; see ``peel.hpp``."""

    step: str
    gone: int
    kept: int
    sum_gone: float
    sum_kept: float
    ratio: float


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
        core = np.ix_(self.rows, self.cols)
        out = Reduced(*self.P.shape)
        out.log = self.log
        out.core_rows, out.core_cols = (
            np.array(self.rows, int),
            np.array(self.cols, int),
        )
        out.P = self.P[core]
        out.R, out.C = self.S[core].sum(axis=1), self.S[core].sum(axis=0)
        return out.label()

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
        for line in list(own):
            weights = P[line, other]
            kept = first.setdefault((weights > 0).tobytes(), line)
            if kept == line:
                continue
            positive = weights > 0
            ratios = weights[positive] / P[kept, other][positive]
            if self.weighted and np.ptp(ratios) > 1e-14 * ratios[0]:
                continue
            self.log.append(
                LogEntry(
                    "twin_row" if is_row else "twin_col",
                    line,
                    kept,
                    S[line, other].sum(),
                    S[kept, other].sum(),
                    ratios[0],
                )
            )
            S[kept, other] += S[line, other]
            own.remove(line)
            found = True
        return found


# --------------------------------------------------------------------- solve
@dataclass
class Reduced:
    """What peeling leaves: a core, its margins, and the log to undo the peeling."""

    n_rows: int
    n_cols: int
    log: list[LogEntry] = field(default_factory=list)
    core_rows: Ints = field(default_factory=lambda: np.zeros(0, int))
    core_cols: Ints = field(default_factory=lambda: np.zeros(0, int))
    P: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    R: Floats = field(default_factory=lambda: np.zeros(0))
    C: Floats = field(default_factory=lambda: np.zeros(0))
    row_label: SmallInts = field(default_factory=lambda: np.zeros(0, np.int32))
    col_label: SmallInts = field(default_factory=lambda: np.zeros(0, np.int32))
    n_core_blocks: int = 0

    def label(self) -> Reduced:
        """Label the connected blocks of the core in order of their first row."""
        met = self.P > 0
        self.row_label = np.full(len(self.R), -1, np.int32)
        self.col_label = np.full(len(self.C), -1, np.int32)
        for start in range(len(self.R)):
            if self.row_label[start] >= 0:
                continue
            rows: Bools = np.arange(len(self.R)) == start
            while True:
                cols: Bools = np.asarray(met[rows].any(axis=0))
                grown: Bools = np.asarray(met[:, cols].any(axis=1))
                if (grown == rows).all():
                    break
                rows = grown
            self.row_label[rows] = self.col_label[cols] = self.n_core_blocks
            self.n_core_blocks += 1
        return self

    @property
    def core_shape(self) -> tuple[int, int]:
        """Rows and columns of the core."""
        return len(self.R), len(self.C)

    @property
    def n_roots(self) -> int:
        """Blocks that were peeled away whole."""
        return sum(entry.step == "root" for entry in self.log)

    @property
    def n_listed(self) -> int:
        """Observed cells of the core."""
        return int(np.count_nonzero(self.P))

    @property
    def core_row_sums(self) -> Floats:
        """Row margins of the core."""
        return self.R.copy()

    @property
    def core_col_sums(self) -> Floats:
        """Column margins of the core."""
        return self.C.copy()

    @property
    def core_row_block(self) -> SmallInts:
        """Connected block of each row of the core."""
        return self.row_label.copy()

    @property
    def core_col_block(self) -> SmallInts:
        """Connected block of each column of the core."""
        return self.col_label.copy()

    @property
    def core_mask(self) -> tuple[Ints, SmallInts, bool, Floats | None]:
        """Row pointers, column indices, whether they name holes, and weights."""
        rows, cols = np.nonzero(self.P)
        ptr = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=len(self.R)))))
        weights = self.P[rows, cols]
        plain = bool((weights == 1.0).all())
        return ptr, cols.astype(np.int32), False, None if plain else weights

    def scale(
        self,
        h: Floats,
        tol: float,
        max_sweeps: int,
        patience: int,
        n_threads: int = 1,
    ) -> tuple[Floats, Floats, int, float, bool]:
        """Alternate w = R / (P h) and h = C / (Pᵀ w) until the margins agree."""
        del n_threads  # one is enough to define the answer
        h = h.copy()
        w = self.R / (self.P @ h)
        previous = 0.0
        k = 0
        while True:
            k += 1
            h = self.C / (self.P.T @ w)
            t = self.P @ h
            gap = float(np.max(np.abs(w * t - self.R) / self.R))
            w = self.R / t
            rate = gap / previous if previous > 0.0 else 0.0
            # What further sweeps would still move the factors by.
            ahead = gap * rate / (1.0 - rate) if rate < 0.999 else 0.0
            settled = gap <= tol and ahead <= 0.1 * tol
            if settled or k >= max_sweeps or not gap < 1e300:
                return w, h, k, gap, gap <= tol
            if k >= 8 and previous > 0.0:
                left = np.log(tol / gap) / np.log(rate) if rate < 1.0 else np.inf
                if k + left > patience:
                    return w, h, k, gap, False
            previous = gap

    def replay(
        self, core_w: Floats, core_h: Floats
    ) -> tuple[Floats, Floats, SmallInts, SmallInts]:
        """Undo the log: all factors, and the connected block of each line."""
        factor = {
            "row": np.full(self.n_rows, np.nan),
            "col": np.full(self.n_cols, np.nan),
        }
        block = {
            "row": np.full(self.n_rows, -1, np.int32),
            "col": np.full(self.n_cols, -1, np.int32),
        }
        factor["row"][self.core_rows], factor["col"][self.core_cols] = core_w, core_h
        block["row"][self.core_rows] = self.row_label
        block["col"][self.core_cols] = self.col_label
        next_block = self.n_core_blocks
        for e in reversed(self.log):
            if e.step == "root":
                # The scale is free; 1 on the side whose factors will sum to 1.
                factor["row"][e.gone] = e.sum_gone / e.ratio
                factor["col"][e.kept] = 1.0
                block["row"][e.gone] = block["col"][e.kept] = next_block
                next_block += 1
                continue
            kind, side = e.step.split("_")
            other = "col" if side == "row" else "row"
            if kind == "leaf":
                factor[side][e.gone] = e.sum_gone / factor[other][e.kept] / e.ratio
                block[side][e.gone] = block[other][e.kept]
            else:
                each = factor[side][e.kept] / (e.sum_gone + e.sum_kept)
                factor[side][e.gone] = each * e.sum_gone / e.ratio
                factor[side][e.kept] = each * e.sum_kept
                block[side][e.gone] = block[side][e.kept]
        return factor["row"], factor["col"], block["row"], block["col"]
