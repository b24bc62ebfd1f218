"""A peeled table: its core, how that is scaled, and the way back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from a1gm._base.float_range import LEAST
from a1gm._base.types import Bools, Floats, Ints, SmallInts
from a1gm._kernel.network import overlap_step, rounding_of_sums

SMALLEST_START = 1e-290
SETTLED = 5e-9
AHEAD = 0.03  # of tol may be left to further sweeps
# Numbers of the steps in ``peel.hpp``, and whether a row goes.
STEPS = {
    "root": (0, 1),
    "leaf_row": (1, 1),
    "leaf_col": (1, 0),
    "twin_row": (2, 1),
    "twin_col": (2, 0),
}


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
    lists_missing = False  # holes are never listed here
    edges_are_cheap = False  # nor is the compiled kernel's elimination

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
    def steps(self) -> tuple[SmallInts, Floats]:
        """Kind, side, gone and kept of the log; and the sums of the last two."""
        steps = [(*STEPS[e.step], e.gone, e.kept) for e in self.log]
        sums = [(e.sum_gone, e.sum_kept) for e in self.log]
        return np.array(steps, np.int32).reshape(-1, 4), np.array(sums).reshape(-1, 2)

    @property
    def n_listed(self) -> int:
        """Observed cells of the core."""
        return int(np.count_nonzero(self.P))

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

    # ------------------------------------------------------------------- the core
    @property
    def start(self) -> Floats:
        """Column factors to start from."""
        h = self.core_col_sums
        if self.core_mask[3] is None:
            h = h / (self.P.T @ self.core_row_sums)
        start: Floats = np.maximum(h / h.max(), SMALLEST_START)
        return start

    def scale(
        self, h: Floats, tol: float, max_sweeps: int, patience: int, n_threads: int = 1
    ) -> tuple[Floats, Floats, int, float, bool]:
        """Alternate w = R / (P h) and h = C / (Pᵀ w) until the margins agree."""
        P, R, C = self.P, self.core_row_sums, self.core_col_sums
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

    def sweep(self, h: Floats) -> tuple[Floats, Floats]:
        """Row factors that fit the rows exactly, and the column sums they give."""
        w: Floats = self.core_row_sums / (self.P @ h)
        return w, h * (self.P.T @ w)

    def product(self, d: Floats, x: Floats) -> Floats:
        """Pᵀ (d (P x))."""
        product: Floats = self.P.T @ (d * (self.P @ x))
        return product

    def cheap_step(
        self, core_w: Floats, core_h: Floats, gap: float, n_threads: int = 1
    ) -> float:
        """Bound what Newton would still move a cell by; infinite if not known."""
        R, C = self.core_row_sums, self.core_col_sums
        if min(R.min(), C.min()) < LEAST:
            return math.inf
        step = math.inf
        if self.core_mask[3] is None:
            means = core_h * (self.P.T @ R / C)
            blocks = self.core_row_block, self.core_col_block
            step = overlap_step(
                *(R / core_w, blocks[0], core_h, means, blocks[1]),
                *(gap, max(self.core_shape)),
            )
        if step <= SETTLED:
            return step
        reach = Flow(self, core_w, core_h).reach()
        return min(step, 2.0 * reach * (gap + rounding_of_sums(self.longest_sum)))

    def settle(self, *args: object) -> Any:
        """Decline: thin cuts are settled by the compiled kernel only."""

    # -------------------------------------------------------------------- the way back
    def replay(
        self, core_w: Floats, core_h: Floats
    ) -> tuple[Floats, Floats, SmallInts, SmallInts, bool]:
        """Undo the log: all factors, and the connected block of each row and column.

        The last is whether no number has lost a digit on the way.
        """
        sizes = dict(zip(("row", "col"), self.shape, strict=True))
        factor = {side: np.full(size, np.nan) for side, size in sizes.items()}
        block = {side: np.full(size, -1, np.int32) for side, size in sizes.items()}
        factor["row"][self.core_rows] = core_w
        factor["col"][self.core_cols] = core_h
        block["row"][self.core_rows] = self.core_row_block
        block["col"][self.core_cols] = self.core_col_block
        next_block, made = self.n_core_blocks, []
        for e in reversed(self.log):
            if e.step == "root":
                # The scale is free; 1 on the side whose factors will sum to 1.
                factor["row"][e.gone] = e.sum_gone / e.ratio
                factor["col"][e.kept] = 1.0
                block["row"][e.gone] = block["col"][e.kept] = next_block
                made.append(factor["row"][e.gone])
                next_block += 1
                continue
            kind, side = e.step.split("_")
            other = "col" if side == "row" else "row"
            if kind == "leaf":
                quotient = e.sum_gone / factor[other][e.kept]
                factor[side][e.gone] = quotient / e.ratio
                block[side][e.gone] = block[other][e.kept]
                made += [quotient, factor[side][e.gone]]
            else:
                each = factor[side][e.kept] / (e.sum_gone + e.sum_kept)
                part = each * e.sum_gone
                factor[side][e.gone] = part / e.ratio
                factor[side][e.kept] = each * e.sum_kept
                block[side][e.gone] = block[side][e.kept]
                made += [each, part, factor[side][e.gone], factor[side][e.kept]]
        size = np.abs(made)
        exact = bool(((size >= LEAST) & (size < math.inf)).all())
        return factor["row"], factor["col"], block["row"], block["col"], exact


class Flow:
    """The columns of a core as a network, factorised as it is."""

    def __init__(self, core: Reduced, w: Floats, h: Floats) -> None:
        self.core = core
        self.free: Bools = np.ones(core.core_shape[1], bool)
        for block in range(core.n_core_blocks):
            own = np.where(core.core_col_block == block, core.core_col_sums, -1.0)
            self.free[own.argmax()] = False
        self.move(w, h)

    def move(self, w: Floats, h: Floats) -> None:
        """Take other factors; the rows are fitted exactly."""
        F = self.core.P * np.outer(w, h)
        self.between = F.T @ (F / self.core.core_row_sums[:, None])
        np.fill_diagonal(self.between, 0.0)

    def _laplacian(self, extra: Floats | float) -> Floats:
        """Of the columns but the grounds."""
        S = np.diag(self.between.sum(axis=1) + extra) - self.between
        return S[np.ix_(self.free, self.free)]

    def solve(
        self,
        y: Floats,
        extra: Floats | None,
        least: float,
        share: float,
        factors: int,
        preceded: int,
        max_products: int,
    ) -> tuple[Floats, int]:
        """Potentials of currents that leave at the ground."""
        x, S = np.zeros(len(y)), self._laplacian(0.0 if extra is None else extra)
        x[self.free] = np.linalg.lstsq(S, y[self.free], rcond=None)[0]
        return x, 1

    def reach(self) -> float:
        """Bound the potential that a current of a column's own sum can cause.

        Any x with S x >= k c > 0 off the ground bounds it by max x / k.
        """
        c, S = self.core.core_col_sums[self.free], self._laplacian(0.0)
        if not len(c):
            return 0.0
        x = np.linalg.lstsq(S, c, rcond=None)[0]
        most = float(np.abs(x).max())
        lost = rounding_of_sums(len(self.free)) * most
        least = float((S @ x / c).min() - lost)
        return most / least if lost <= 0.25 and least > 0.0 else math.inf
