"""The core as an operator: what its rows and columns sum to for given column factors.

Every kind answers ``sweep(h)``, the fitted column margins with the rows fitted exactly,
and ``laplacian(h)``, the Hessian of the cost in log h without its diagonal, or
``flow(state)``, which solves with a Hessian that nobody writes down.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from a1gm._base.bits import BITS_OF_BYTES, bits_times, pack_bits, unpack_bits
from a1gm._base.types import Bools, Floats, Ints, Words
from a1gm._kernel import kernel
from a1gm._kernel.network import overlap_step
from a1gm._observe.disk import DiskStatistics
from a1gm._solve.column_graph import ColumnGraph

if TYPE_CHECKING:  # the compiled kernel's class answers the same
    from a1gm._kernel.reference.reduced import Reduced

DENSE_SIDE = 1500  # Hessians up to this side are dense
DENSE_CELLS = 20_000_000  # in cores up to this size
MIDDLE = 500  # power of two far from both ends of float64
DISK_SIDE = 4000  # the Hessian of so many columns has 128 MB


@dataclass(frozen=True, slots=True)
class Sweep:
    """Column factors, the column margins they give, and the cost of the rows."""

    h: Floats
    fitted: Floats
    row_cost: float
    w: Floats | None = None  # the rows, where they are held


def is_listed(reduced: Reduced) -> bool:
    """Whether a core is worked on by its listed cells, not as an array."""
    small, large = sorted(reduced.core_shape)
    if small > DENSE_SIDE or small * large > DENSE_CELLS:
        return True
    # Products of listed cells cost ten times as much each.
    return not reduced.lists_missing and reduced.n_listed * 10 <= small * large


class ListedMask:
    """A large core in memory: the kernel has its products and solves with them."""

    swapped = False

    def __init__(self, reduced: Reduced) -> None:
        self.reduced = reduced
        self.col_sums: Floats = reduced.core_col_sums
        self.block = np.asarray(reduced.core_col_block)
        self._row_sums = reduced.core_row_sums
        self._flow: Any = None

    def rows(self, h: Floats) -> Floats:
        """Row factors that fit the rows exactly."""
        factors: Floats = self.reduced.sweep(h)[0]
        return factors

    def sweep(self, h: Floats) -> Sweep:
        """Fit the rows exactly and return the margins of the columns."""
        w, fitted = self.reduced.sweep(h)
        R = self._row_sums
        return Sweep(h, fitted, float(R @ np.log(R / w)), w)

    def flow(self, state: Sweep) -> Any:
        """The network of the columns; what precedes its solutions is kept."""
        if self._flow is None:
            self._flow = kernel.Flow(self.reduced, state.w, state.h)
        else:
            self._flow.move(state.w, state.h)
        return self._flow


class CoreMask:
    """A small or dense core in memory, as an array.

    With ``swapped`` rows and columns exchange their roles: Newton works on the smaller
    side.
    """

    def __init__(self, reduced: Reduced) -> None:
        self.swapped = reduced.core_shape[0] < reduced.core_shape[1]
        P = _dense_mask(reduced)
        R, C = reduced.core_row_sums, reduced.core_col_sums
        block = reduced.core_col_block
        if self.swapped:
            P, R, C, block = P.T, C, R, reduced.core_row_block
        self.P, self.R = P, R
        self.col_sums: Floats = C
        self.block = np.asarray(block)

    @property
    def longest(self) -> int:
        """Numbers in the longest sum of a margin."""
        return int(max(self.P.shape))

    def rows(self, h: Floats) -> Floats:
        """Row factors that fit the rows exactly."""
        factors: Floats = self.R / (self.P @ h)
        return factors

    def sweep(self, h: Floats) -> Sweep:
        """Fit the rows exactly and return the margins of the columns."""
        t = self.P @ h
        fitted = h * (self.P.T @ (self.R / t))
        return Sweep(h, fitted, float(self.R @ np.log(t)))

    def laplacian(self, h: Floats) -> Floats:
        """Off-diagonal part of the Hessian, minus the weights between columns."""
        scale = np.sqrt(self.R) / (self.P @ h)
        Q = self.P * h * scale[:, None]
        off: Floats = -(Q.T @ Q)
        np.fill_diagonal(off, 0.0)
        return off

    def laplacian_times(self, h: Floats, d: Floats) -> Floats:
        """Product of the Hessian, without its diagonal of fitted margins, with d."""
        t = self.P @ h
        product: Floats = -h * (self.P.T @ (self.R / t * (self.P @ (h * d) / t)))
        return product


def _dense_mask(reduced: Reduced) -> Floats:
    ptr, index, lists_missing, weights = reduced.core_mask
    P = np.full(reduced.core_shape, 1.0 if lists_missing else 0.0)
    lines = np.repeat(np.arange(len(P)), np.diff(ptr))
    P[lines, index] = 0.0 if lists_missing else 1.0 if weights is None else weights
    return P


# ----------------------------------------------------------------- masks in a file
class DiskMask:
    """A mask in a file, cut down to the cells inside components; read in pieces.

    Products take a byte of the mask at a time: eight columns have 256 choices, and a
    table of 256 partial sums replaces eight multiplications by one look-up.
    """

    def __init__(self, statistics: DiskStatistics, graph: ColumnGraph) -> None:
        self.log, self.graph = statistics.log, graph
        # A power of two, so that nothing overflows and next to nothing is rounded.
        active: Bools = statistics.col_sums > 0.0
        powers = np.frexp(statistics.col_sums)[1][active] if active.any() else [0]
        low, high = int(min(powers)), int(max(powers))
        largest = MIDDLE if high - low < MIDDLE else 2 * MIDDLE
        self.unit = math.ldexp(1.0, min(largest - high, 1000))
        self.col_sums: Floats = statistics.col_sums * self.unit
        self.block = np.where(active, graph.label, -1).astype(np.int32)
        inside = np.zeros((graph.n + 1, self.log.n_cols), bool)  # the last: nothing
        known = np.flatnonzero(active)
        inside[graph.label[known], known] = True
        self._inside_words: Words = pack_bits(inside)

    @property
    def longest(self) -> int:
        """Numbers in the longest sum of a margin."""
        return max(self.log.n_rows, self.log.n_cols)

    @property
    def has_laplacian(self) -> bool:
        """Whether the Hessian fits into memory."""
        return self.log.n_cols <= DISK_SIDE

    def pieces(self) -> Iterator[tuple[Floats, Words]]:
        """Yield sums and mask of the rows with data."""
        for _, sums, bits, positive in self.log.pieces():
            row_sums = sums * self.unit
            kept = slice(None) if (row_sums > 0.0).all() else row_sums > 0.0
            component = self._components(positive[kept])
            yield row_sums[kept], bits[kept] & self._inside_words[component]

    def _components(self, positive: Words) -> Ints:
        if self.graph.n == 1:
            return np.zeros(len(positive), np.int64)
        found = np.full(len(positive), self.graph.n, np.int64)
        for c in np.unique(self.block[self.block >= 0]):
            found[(positive & self._inside_words[c]).any(axis=1)] = c
        return found

    def sweep(self, h: Floats) -> Sweep:
        """Fit the rows exactly and return the margins of the columns, in one read."""
        margins, cost = np.zeros_like(h), 0.0
        for row_sums, bits in self.pieces():
            octets = np.ascontiguousarray(bits, "<u8").view(np.uint8)
            t = bits_times(bits, h)
            margins += _times_octets(row_sums / t, octets, len(h))
            cost += float(row_sums @ np.log(t))
        return Sweep(h, h * margins, cost)

    def step_by_overlap(self, state: Sweep, gap: float) -> float:
        """Bound what Newton would still move a cell by, in one read."""
        h, n = state.h, self.graph.n
        sum_of_rows, reach = np.zeros_like(h), np.zeros(n + 1)
        for row_sums, bits in self.pieces():
            octets = np.ascontiguousarray(bits, "<u8").view(np.uint8)
            sum_of_rows += _times_octets(row_sums, octets, len(h))
            first = unpack_bits(bits, len(h)).argmax(axis=1)
            np.maximum.at(reach, self.block[first], bits_times(bits, h))
        on = self.block >= 0
        means = h[on] * (sum_of_rows[on] / self.col_sums[on])
        rows = np.arange(n, dtype=np.int32)
        return overlap_step(
            reach[:n], rows, h[on], means, self.block[on], gap, self.longest
        )

    def laplacian(self, h: Floats) -> Any:
        """Off-diagonal part of the Hessian, gathered in one read."""
        m = len(h)
        off = np.zeros((m, m))
        step = max(1, (1 << 20) // m)
        for row_sums, bits in self.pieces():
            for at in range(0, len(bits), step):
                mask = unpack_bits(bits[at : at + step], m) * h
                Q = mask * (np.sqrt(row_sums[at : at + step]) / mask.sum(1))[:, None]
                off -= Q.T @ Q
        np.fill_diagonal(off, 0.0)
        return off

    def laplacian_times(self, h: Floats, d: Floats) -> Floats:
        """Product of the Hessian, without its diagonal of fitted margins, with d."""
        product = np.zeros_like(h)
        for row_sums, bits in self.pieces():
            octets = np.ascontiguousarray(bits, "<u8").view(np.uint8)
            t = bits_times(bits, h)
            inner = row_sums / t * (bits_times(bits, h * d) / t)
            product -= _times_octets(inner, octets, len(h))
        return h * product


def _times_octets(w: Floats, octets: Any, n_cols: int) -> Floats:
    """Sum the w_i of the observed cells of each column."""
    n_octets = -(-n_cols // 8)
    by_value = np.empty((n_octets, 256))
    for k in range(n_octets):
        by_value[k] = np.bincount(octets[:, k], w, minlength=256)
    sums: Floats = (by_value @ BITS_OF_BYTES.T).ravel()[:n_cols]
    return sums


#: Columns without data have factor 0 and are in no block (-1).
Mask: TypeAlias = CoreMask | ListedMask | DiskMask
