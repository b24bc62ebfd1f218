"""The core as an operator: what its rows and columns sum to for given column factors.

Every kind answers ``sweep(h)``, the fitted column margins with the rows fitted exactly,
and ``laplacian(h)``, the Hessian of the cost in log h without its diagonal: an array,
a sparse table, or None where only products with it are cheap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from a1gm._base.bits import BITS_OF_BYTES, bits_times, pack_bits, unpack_bits
from a1gm._base.types import Bools, Floats, Ints, Words
from a1gm._kernel.network import overlap_step
from a1gm._observe.disk import DiskStatistics
from a1gm._solve.column_graph import ColumnGraph

if TYPE_CHECKING:  # the compiled kernel's class answers the same
    from a1gm._kernel.reference.reduced import Reduced

__all__ = ["CoreMask", "DiskMask", "Mask", "Sweep"]

DENSE_SIDE = 1500  # Hessians up to this side are dense
DENSE_CELLS = 20_000_000  # and so are masks of mostly observed cells up to this size
MAX_PAIRS = 20_000_000  # sparse Hessians are assembled up to this many products
SPARSE_SIDE, SPARSE_GAIN = 300, 100  # when a sparse Hessian is worth its overhead
MIDDLE = 500  # power of two far from both ends of float64
DISK_SIDE = 4000  # the Hessian of so many columns has 128 MB


@dataclass(frozen=True, slots=True)
class Sweep:
    """Column factors, the column margins they give, and the cost of the rows."""

    h: Floats
    fitted: Floats
    row_cost: float


class CoreMask:
    """The core in memory: dense, listed by its observed cells, or by its holes.

    With ``swapped`` rows and columns exchange their roles: Newton works on the smaller
    side.
    """

    def __init__(self, reduced: Reduced) -> None:
        self.swapped = reduced.core_shape[0] < reduced.core_shape[1]
        P = _operator(reduced)
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
        n, m = self.P.shape
        return int(max(n, m))

    def rows(self, h: Floats) -> Floats:
        """Row factors that fit the rows exactly."""
        factors: Floats = self.R / (self.P @ h)
        return factors

    def sweep(self, h: Floats) -> Sweep:
        """Fit the rows exactly and return the margins of the columns."""
        t = self.P @ h
        fitted = h * (self.P.T @ (self.R / t))
        return Sweep(h, fitted, float(self.R @ np.log(t)))

    def laplacian(self, h: Floats) -> Any:
        """Off-diagonal part of the Hessian, minus the weights between columns."""
        if isinstance(self.P, _Complement):
            return None
        scale = np.sqrt(self.R) / (self.P @ h)
        if isinstance(self.P, np.ndarray):
            Q = self.P * h * scale[:, None]
            off = -(Q.T @ Q)
            np.fill_diagonal(off, 0.0)
            return off
        # How many products of pairs of cells the Hessian is the sum of.
        products = (np.diff(self.P.tocsr().indptr).astype(float) ** 2).sum()
        side = len(h)
        is_dense = (
            side <= DENSE_SIDE and SPARSE_GAIN * products >= side**2 * SPARSE_SIDE
        )
        if not is_dense and products > MAX_PAIRS:
            return None
        return _listed_laplacian(self.P, scale, h, is_dense=is_dense)

    def laplacian_times(self, h: Floats, d: Floats) -> Floats:
        """Product of the Hessian, without its diagonal of fitted margins, with d."""
        t = self.P @ h
        product: Floats = -h * (self.P.T @ (self.R / t * (self.P @ (h * d) / t)))
        return product


def _listed_laplacian(P: Any, scale: Floats, h: Floats, *, is_dense: bool) -> Any:
    from scipy.sparse import diags_array

    Q = diags_array(scale) @ P @ diags_array(h)
    if is_dense:
        dense = -(Q.T @ Q).toarray()
        np.fill_diagonal(dense, 0.0)
        return dense
    off = (Q.T @ Q).tocsr()
    return diags_array(off.diagonal()) - off


class _Complement:
    """A mask that is given by its holes: P x = sum(x) - holes x."""

    def __init__(self, holes: Any) -> None:
        self.holes = holes

    @property
    def shape(self) -> tuple[int, int]:
        rows, cols = self.holes.shape
        return rows, cols

    @property
    def T(self) -> _Complement:  # noqa: N802 - NumPy's word
        return _Complement(self.holes.T)

    def __matmul__(self, x: Floats) -> Floats:
        product: Floats = x.sum(axis=0) - self.holes @ x
        return product


def _operator(reduced: Reduced) -> Any:
    """The core's mask as something that multiplies vectors."""
    from scipy.sparse import csr_array

    ptr, index, lists_missing, weights = reduced.core_mask
    values = np.ones(len(index)) if weights is None else weights
    listed = csr_array((values, index, ptr), shape=reduced.core_shape)
    small, large = sorted(reduced.core_shape)
    fits = small <= DENSE_SIDE and small * large <= DENSE_CELLS
    if lists_missing:
        return 1.0 - listed.toarray() if fits else _Complement(listed)
    # Products of sparse matrices cost ten times as much per cell.
    return listed.toarray() if fits and len(index) * 10 > small * large else listed


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
Mask: TypeAlias = CoreMask | DiskMask
