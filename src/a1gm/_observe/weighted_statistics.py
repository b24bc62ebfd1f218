"""Statistics by row of tables with weights: margins, the mask, and the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from a1gm._base.types import AnyArray, Bools, Floats
from a1gm._kernel import kernel
from a1gm._observe.mask_statistics import MaskStatistics
from a1gm._observe.statistics_base import Statistics


@dataclass(frozen=True, slots=True)
class WeightedStatistics(MaskStatistics):
    """Margins, the mask, and the weights where they lie, of any type and layout."""

    weights: AnyArray  # those of cells that are not observed do not count

    @property
    def parts(self) -> list[Any]:
        """The weights as the kernel reads them."""
        return [(self.weights, None, None, 0, 0)]

    def shares(self, lines: slice, cells: Bools) -> Floats:
        """Weights of some cells of some lines; 0 for the others."""
        return np.where(cells, self.weights[lines], 0.0).astype(np.float64)

    def reach(self, h: Floats) -> Floats:
        """Weighted sum of the column factors over the observed cells of each row."""
        return Statistics.reach(self, h)

    def product(self, d: Floats, x: Floats, n_threads: int) -> Floats:
        """Pᵀ (d (P x)) for the weights P of the observed cells."""
        args = self.bits, self.parts, d, x, n_threads
        found: Floats = kernel.bits_product(*args)
        return found

    def reduce(self, *, force: bool) -> Any:
        """Return None: twins and leaves need the sums of single cells."""

    def check(self) -> None:
        """Raise ValueError if the arrays do not fit together."""
        MaskStatistics.check(self)
        V = self.weights
        if V.shape != (self.n_lines, self.n_cols):
            raise ValueError("weights are not one number per cell")
        for lines, observed in self.pieces():
            own = V[lines][observed]
            if not ((own > 0.0) & np.isfinite(own)).all():
                raise ValueError("a weight is not a positive number")
