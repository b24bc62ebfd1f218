"""A peeled table: its core, how that is scaled, and the way back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from a1gm._base.types import AnyArray, Bools, Floats, Ints, SmallInts
from a1gm._kernel.reference.big import Big, apart, is_normal
from a1gm._kernel.reference.checks import (
    check_array,
    check_length,
    check_sweeps,
    require,
)

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
        """The same core, without the log, on another scale.

        Its mask is times 2**(a_i + b_j), and its margins are times 2**lift.
        """
        self._check(
            row_exponent, col_exponent, "row_exponent", "col_exponent", np.int64
        )
        power = np.clip(row_exponent[:, None] + col_exponent, -(1 << 14), 1 << 14)
        made = replace(self, log=[], n_core_blocks=0)
        with np.errstate(over="ignore", under="ignore"):
            made.P = np.ldexp(self.P, power.astype(np.int32))
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
