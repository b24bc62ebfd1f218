"""The columns of a core as a network: see ``flow.hpp``."""

from __future__ import annotations

import numpy as np

from a1gm._base.types import Bools, Floats
from a1gm._kernel.reference.checks import check_array, check_length, require
from a1gm._kernel.reference.reduced import Reduced


class Flow:
    """Potentials of currents, by a factorisation: always precise enough."""

    def __init__(self, core: Reduced, w: Floats, h: Floats) -> None:
        self.core = core
        self.is_ground: Bools = np.zeros(core.core_shape[1], bool)
        for block in range(core.n_core_blocks):
            own = np.where(core.core_col_block == block, core.core_col_sums, -1.0)
            self.is_ground[own.argmax()] = True
        self.move(w, h)

    def move(self, w: Floats, h: Floats) -> None:
        """Take other factors; the rows are fitted exactly."""
        n, m = self.core.core_shape
        check_array(w, "w", 1, np.float64)
        check_array(h, "h", 1, np.float64)
        check_length(w, n, "w must be one number per row of the core")
        check_length(h, m, "h must be one number per column of the core")
        F = self.core.P * np.outer(w, h)
        self.between = F.T @ (F / self.core.core_row_sums[:, None])
        np.fill_diagonal(self.between, 0.0)

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
        m = len(self.is_ground)
        check_array(y, "y", 1, np.float64)
        check_length(y, m, "y must be one number per column of the core")
        if extra is not None:
            check_array(extra, "extra", 1, np.float64)
            check_length(extra, m, "extra must be as long as y")
        require(factors >= 0 and preceded >= 0, "costs must be 0 or more")
        require(max_products >= 0, "max_products must be 0 or more")
        diagonal = self.between.sum(axis=1) + (0.0 if extra is None else extra)
        S, free = np.diag(diagonal) - self.between, ~self.is_ground
        x = np.zeros(m)
        if max_products:
            x[free] = np.linalg.lstsq(S[np.ix_(free, free)], y[free], rcond=None)[0]
        return x, min(1, max_products)
