"""The core as an operator: what its rows and columns sum to for given column factors.

Every kind answers ``sweep(h)``, the fitted column margins with the rows fitted exactly,
and ``laplacian(h)``, the Hessian of the cost in log h without its diagonal, or
``flow(state)``, which solves with a Hessian that nobody writes down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from a1gm._base.types import Floats
from a1gm._kernel import kernel

if TYPE_CHECKING:  # the compiled kernel's class answers the same
    from a1gm._kernel.reference.reduced import Reduced

DENSE_SIDE = 1500  # Hessians up to this side are dense
DENSE_CELLS = 20_000_000  # in cores up to this size


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
    rows = np.repeat(np.arange(len(P)), np.diff(ptr))
    P[rows, index] = 0.0 if lists_missing else 1.0 if weights is None else weights
    return P


#: Columns without data have factor 0 and are in no block (-1).
Mask: TypeAlias = CoreMask | ListedMask
