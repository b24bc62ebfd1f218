"""A peeled table: its core, how that is scaled, and the way back."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from a1gm._base.float_range import LEAST
from a1gm._base.types import AnyArray, Bools, Floats, Ints, SmallInts
from a1gm._kernel.network import overlap_step, reach_of, rounding_of_sums
from a1gm._kernel.reference.big import Big, apart, is_normal
from a1gm._kernel.reference.checks import (
    check_array,
    check_length,
    check_pairs,
    check_sweeps,
    check_threads,
    require,
)
from a1gm._kernel.reference.edges import settle_by_edges

SMALLEST_START = 1e-290
EDGE_FLOPS, SETTLED = 3e7, 5e-9
AHEAD = 0.03  # of tol may be left to further sweeps


@dataclass(frozen=True)
class LogEntry:
    """One step of the peeling; see ``peel.hpp``."""

    step: str
    gone: int
    kept: int
    sum_gone: float
    sum_kept: float
    ratio: float


@dataclass
class Reduced:
    """What peeling leaves: a core, its margins, and the log to undo the peeling."""

    shape: tuple[int, int]
    log: list[LogEntry]
    core_rows: Ints
    core_cols: Ints
    P: Floats
    core_row_sums: Floats
    core_col_sums: Floats
    n_core_blocks: int = 0

    def __post_init__(self) -> None:
        """Label the connected blocks of the core in order of their first row."""
        met, (n, m) = self.P > 0, self.core_shape
        self.core_row_block: SmallInts = np.full(n, -1, np.int32)
        self.core_col_block: SmallInts = np.full(m, -1, np.int32)
        for start in range(n):
            if self.core_row_block[start] >= 0:
                continue
            rows: Bools = np.arange(n) == start
            while True:
                cols: Bools = np.asarray(met[rows].any(axis=0))
                grown: Bools = np.asarray(met[:, cols].any(axis=1))
                if (grown == rows).all():
                    break
                rows = grown
            self.core_row_block[rows] = self.core_col_block[cols] = self.n_core_blocks
            self.n_core_blocks += 1

    @property
    def core_shape(self) -> tuple[int, int]:
        """Rows and columns of the core."""
        return len(self.core_row_sums), len(self.core_col_sums)

    @property
    def n_roots(self) -> int:
        """Blocks that were peeled away whole."""
        return sum(entry.step == "root" for entry in self.log)

    @property
    def n_listed(self) -> int:
        """Observed cells of the core."""
        return int(np.count_nonzero(self.P))

    @property
    def lists_missing(self) -> bool:
        """Whether holes are listed instead."""
        return False

    @property
    def longest_sum(self) -> int:
        """Numbers in the longest sum of a product."""
        met = self.P > 0.0
        return int(max(met.sum(axis=0).max(), met.sum(axis=1).max()))

    @property
    def core_mask(self) -> tuple[Ints, SmallInts, bool, Floats | None]:
        """Row pointers, column indices, whether they name holes, and weights."""
        rows, cols = np.nonzero(self.P)
        counts = np.bincount(rows, minlength=self.core_shape[0])
        ptr = np.concatenate(([0], np.cumsum(counts)))
        weights = self.P[rows, cols]
        plain = bool((weights == 1.0).all())
        return ptr, cols.astype(np.int32), False, None if plain else weights

    def scale(
        self, h: Floats, tol: float, max_sweeps: int, patience: int, n_threads: int = 1
    ) -> tuple[Floats, Floats, int, float, bool]:
        """Alternate w = R / (P h) and h = C / (Pᵀ w) until the margins agree."""
        P, R, C = self.P, self.core_row_sums, self.core_col_sums
        check_array(h, "h", 1, np.float64)
        check_length(h, len(C), "h must be one number per column of the core")
        check_sweeps(tol, max_sweeps, n_threads)
        require(patience >= 0, "patience must be 0 or more")
        w, previous, k = R / (P @ h), 0.0, 0
        while True:
            k += 1
            h = C / (P.T @ w)
            t = P @ h
            gap = float(np.max(np.abs(w * t - R) / R, initial=0.0))
            w = R / t
            rate = gap / previous if previous > 0.0 else 0.0
            # What further sweeps would still move the factors by.
            ahead = gap * rate / (1.0 - rate) if rate < 0.999 else 0.0
            settled = gap <= tol and ahead <= AHEAD * tol
            if settled or k >= max_sweeps or not gap < 1e300:
                return w, h, k, gap, gap <= tol
            if k >= 8 and previous > 0.0:
                left = np.log(tol / gap) / np.log(rate) if rate < 1.0 else np.inf
                if k + left > patience:
                    return w, h, k, gap, False
            previous = gap

    @property
    def start(self) -> Floats:
        """Column factors to start from."""
        h = self.core_col_sums
        if self.core_mask[3] is None:
            h = h / (self.P.T @ self.core_row_sums)
        start: Floats = np.maximum(h / h.max(), SMALLEST_START)
        return start

    @property
    def core_places(self) -> tuple[SmallInts, SmallInts]:
        """Where each row and column of the table is in the core; -1 if peeled off."""
        sizes = dict(zip(("row", "col"), self.shape, strict=True))
        place = {side: np.full(size, -1, np.int32) for side, size in sizes.items()}
        for side, kept in (("row", self.core_rows), ("col", self.core_cols)):
            place[side][kept] = np.arange(len(kept))
        for e in reversed(self.log):
            if e.step.startswith("twin_"):
                side = e.step.removeprefix("twin_")
                place[side][e.gone] = place[side][e.kept]
        return place["row"], place["col"]

    @property
    def edges_are_cheap(self) -> bool:
        """Whether ``settle`` costs less than a few hundred sweeps of a small table."""
        small, large = sorted(self.core_shape)
        return (small + large) * small**2 <= EDGE_FLOPS

    def sweep(self, h: Floats) -> tuple[Floats, Floats]:
        """Row factors that fit the rows exactly, and the column sums they give."""
        check_array(h, "h", 1, np.float64)
        check_length(
            h, self.core_shape[1], "h must be one number per column of the core"
        )
        w: Floats = self.core_row_sums / (self.P @ h)
        return w, h * (self.P.T @ w)

    def product(self, d: Floats, x: Floats) -> Floats:
        """Pᵀ (d (P x))."""
        self._check(d, x, "core_w", "core_h", np.float64)
        product: Floats = self.P.T @ (d * (self.P @ x))
        return product

    def cheap_step(
        self, core_w: Floats, core_h: Floats, gap: float, n_threads: int = 1
    ) -> float:
        """Bound what Newton would still move a cell by; infinite if not known."""
        self._check(core_w, core_h, "core_w", "core_h", np.float64)
        check_threads(n_threads)
        R, C = self.core_row_sums, self.core_col_sums
        if not len(R) or min(R.min(), C.min()) < LEAST:
            return math.inf
        step = math.inf
        if self.core_mask[3] is None:
            means = core_h * (self.P.T @ R / C)
            blocks = self.core_row_block, self.core_col_block
            step = overlap_step(
                *(R / core_w, blocks[0], core_h, means, blocks[1]),
                *(gap, max(self.core_shape)),
            )
        # A small core is better settled by its edges.
        if step <= SETTLED or self.edges_are_cheap:
            return step
        F = self.P * np.outer(core_w, core_h)
        reach = reach_of(F.T @ (F / R[:, None]), C, self.core_col_block)
        return min(step, 2.0 * reach * (gap + rounding_of_sums(self.longest_sum)))

    def settle(
        self, core_w: Floats, core_h: Floats, cells: Floats | None, max_steps: int
    ) -> tuple[Floats, Floats, int, float, float, tuple[int, int]]:
        """Newton's method on the smaller side; two columns that may be furthest off."""
        self._check(core_w, core_h, "core_w", "core_h", np.float64)
        require(min(self.core_shape) > 0, "the core is empty")
        require(max_steps >= 0, "max_steps must be 0 or more")
        if cells is not None:
            check_array(cells, "cells", 2, np.float64)
            is_right = cells.shape == self.core_shape
            require(is_right, "cells must be one number per cell of the core")
        R, C, P, X = self.core_row_sums, self.core_col_sums, self.P, cells
        if self.core_shape[0] < self.core_shape[1]:
            X = None if X is None else X.T
            sums, block = (C, R), self.core_row_block
            found = settle_by_edges(P.T, *sums, X, core_w, block, max_steps)
            h, w, n, step, gap, v = found
            moved = P.T @ (v * w) / (P.T @ w)
        else:
            block = self.core_col_block
            found = settle_by_edges(P, R, C, X, core_h, block, max_steps)
            w, h, n, step, gap, moved = found
        low, high = (self.core_cols[k] for k in (moved.argmin(), moved.argmax()))
        return w, h, n, step, gap, (int(low), int(high))

    def settle_sparse(
        self,
        core_w: Floats,
        core_h: Floats,
        ptr: Ints,
        cols: SmallInts,
        sums: Floats,
        tol: float,
        max_steps: int,
        most_work: int,
    ) -> tuple[Floats, Floats, int, float, float, tuple[int, int]] | None:
        """Do as ``settle`` with the table's pairs; None where that is too much work."""
        self._check(core_w, core_h, "core_w", "core_h", np.float64)
        check_pairs(ptr, cols, sums, None, self.shape[1])
        is_right = len(ptr) - 1 == self.shape[0]
        require(is_right, "ptr must have one row per row of the table")
        require(min(self.core_shape) > 0, "the core is empty")
        check_sweeps(tol, 0)
        require(max_steps >= 0, "max_steps must be 0 or more")
        require(most_work >= 0, "most_work must be 0 or more")
        small, large = sorted(self.core_shape)
        if (small + large) * small**2 > most_work:
            return None
        row, col = self.core_places
        i, j = row[np.repeat(np.arange(self.shape[0]), np.diff(ptr))], col[cols]
        kept, cells = (i >= 0) & (j >= 0), np.zeros(self.core_shape)
        np.add.at(cells, (i[kept], j[kept]), sums[kept])
        return self.settle(core_w, core_h, np.where(self.P > 0, cells, 0.0), max_steps)

    def replay(
        self, core_w: Floats, core_h: Floats
    ) -> tuple[Floats, Floats, SmallInts, SmallInts, bool]:
        """Undo the log: all factors, and the connected block of each row and column.

        The last says whether no number has lost a digit on the way.
        """
        self._check(core_w, core_h, "core_w", "core_h", np.float64)
        w, h, *blocks, exact = self._replay(core_w, core_h, np.float64)
        return w.astype(np.float64), h.astype(np.float64), *blocks, exact

    def replay_wide(
        self,
        core_w: Floats,
        core_h: Floats,
        row_exponent: Ints,
        col_exponent: Ints,
    ) -> tuple[tuple[Floats, Ints], tuple[Floats, Ints], SmallInts, SmallInts]:
        """Undo the log for factors of any size, given as mantissas and exponents."""
        self._check(core_w, core_h, "core_w", "core_h", np.float64)
        self._check(
            row_exponent, col_exponent, "row_exponent", "col_exponent", np.int64
        )
        w = [Big(x, int(e)) for x, e in zip(core_w, row_exponent, strict=True)]
        h = [Big(x, int(e)) for x, e in zip(core_h, col_exponent, strict=True)]
        found_w, found_h, *blocks, _ = self._replay(w, h, Big)
        return apart(found_w), apart(found_h), *blocks

    def rescaled(self, row_exponent: Ints, col_exponent: Ints, lift: int) -> Reduced:
        """The same core on another scale.

        Its mask is times 2**(a_i + b_j), and its margins are times 2**lift.
        """
        self._check(
            row_exponent, col_exponent, "row_exponent", "col_exponent", np.int64
        )
        power = np.clip(row_exponent[:, None] + col_exponent, -(1 << 14), 1 << 14)
        made = replace(self, n_core_blocks=0)
        with np.errstate(over="ignore", under="ignore"):
            least = np.where(self.P > 0.0, np.finfo(float).smallest_subnormal, 0.0)
            made.P = np.maximum(np.ldexp(self.P, power.astype(np.int32)), least)
            made.core_row_sums = np.ldexp(self.core_row_sums, lift)
            made.core_col_sums = np.ldexp(self.core_col_sums, lift)
        return made

    def _check(
        self, rows: AnyArray, cols: AnyArray, row_name: str, col_name: str, dtype: Any
    ) -> None:
        n, m = self.core_shape
        check_array(rows, row_name, 1, dtype)
        check_array(cols, col_name, 1, dtype)
        check_length(rows, n, f"{row_name} must be one number per row of the core")
        check_length(cols, m, f"{col_name} must be one number per column of the core")

    def _replay(self, core_w: Any, core_h: Any, number: Any) -> Any:
        """Undo the log with numbers of this kind."""
        sizes = dict(zip(("row", "col"), self.shape, strict=True))
        factor = {
            side: np.full(size, number(np.nan), object) for side, size in sizes.items()
        }
        block = {side: np.full(size, -1, np.int32) for side, size in sizes.items()}
        factor["row"][self.core_rows] = core_w
        factor["col"][self.core_cols] = core_h
        block["row"][self.core_rows] = self.core_row_block
        block["col"][self.core_cols] = self.core_col_block
        next_block, made = self.n_core_blocks, []
        for e in reversed(self.log):
            gone, kept, ratio = number(e.sum_gone), number(e.sum_kept), number(e.ratio)
            if e.step == "root":
                # The scale is free; 1 on the side whose factors will sum to 1.
                factor["row"][e.gone] = gone / ratio
                factor["col"][e.kept] = number(1.0)
                block["row"][e.gone] = block["col"][e.kept] = next_block
                made.append(factor["row"][e.gone])
                next_block += 1
                continue
            kind, side = e.step.split("_")
            other = "col" if side == "row" else "row"
            if kind == "leaf":
                quotient = gone / factor[other][e.kept]
                factor[side][e.gone] = quotient / ratio
                block[side][e.gone] = block[other][e.kept]
                made += [quotient, factor[side][e.gone]]
            else:
                each = factor[side][e.kept] / number(e.sum_gone + e.sum_kept)
                part = each * gone
                factor[side][e.gone] = part / ratio
                factor[side][e.kept] = each * kept
                block[side][e.gone] = block[side][e.kept]
                made += [each, part, factor[side][e.gone], factor[side][e.kept]]
        exact = number is Big or all(is_normal(x) for x in made)
        return factor["row"], factor["col"], block["row"], block["col"], exact
