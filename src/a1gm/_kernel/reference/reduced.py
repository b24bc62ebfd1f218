"""A peeled table: its core, how that is scaled, and the way back."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from a1gm._base.types import Bools, Floats, Ints, SmallInts
from a1gm._kernel.reference.checks import check_array, check_sweeps, require

__all__ = ["LogEntry", "Reduced"]


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
        check_array(h, "h", 1, np.float64)
        one_each = len(h) == len(self.C)
        require(one_each, "h must be one number per column of the core")
        check_sweeps(tol, max_sweeps, n_threads)
        require(patience >= 0, "patience must be 0 or more")
        w = self.R / (self.P @ h)
        previous = 0.0
        k = 0
        while True:
            k += 1
            h = self.C / (self.P.T @ w)
            t = self.P @ h
            gap = float(np.max(np.abs(w * t - self.R) / self.R, initial=0.0))
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
        check_array(core_w, "core_w", 1, np.float64)
        check_array(core_h, "core_h", 1, np.float64)
        one_each = len(core_w) == len(self.R)
        require(one_each, "core_w must be one number per row of the core")
        one_each = len(core_h) == len(self.C)
        require(one_each, "core_h must be one number per column of the core")
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
