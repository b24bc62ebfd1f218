"""How wrong a fitted cell can be: what matching margins do not show.

Columns are the nodes of a network whose conductances come from the fitted cells. The
mismatch of the column sums is a current that is put in; the potentials that it causes
are the step that Newton would still take, and the spread of the potentials bounds the
error of the logarithm of any cell. Rounding of the sums is such a current, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from a1gm._base.types import Bools, Floats, SmallInts
from a1gm._kernel.network import ROUNDING, rounding_of_sums
from a1gm._observe.patterns import Patterns
from a1gm._solve.newton import Enough

if TYPE_CHECKING:  # the compiled kernel has the same class
    from a1gm._kernel.reference.reduced import Reduced

CELLS_RIGHT = 1e-8  # what a converged fit may be off by
SURELY_RIGHT = 0.99 * CELLS_RIGHT  # a step of which nothing need be computed
SETTLED = 5e-9  # half of it: no correction is needed below
SUPERSOLUTION, CLOSE = 0.3, 0.95  # enough of it proves a bound, or a close one
PRODUCTS = 60  # a table that needs more is worth a factorisation

#: Gives the potentials of currents; those of the ground are 0.
Solve: TypeAlias = Callable[[Floats, Enough], Floats]


def cell_error(step: float) -> float:
    """Bound of the relative error of any finite cell, from the step that is left."""
    return step / (1.0 - step) if step < 0.5 else math.inf


def way_left(step: float, n: int) -> float:
    """Bound the whole way to the optimum from Newton's first step, in n columns.

    On the way conductances change by a share of twice its length e at most, so that
    each pair of columns errs by 3/2 e² (e <= 1/4); along a tree, as any potential is a
    mean over trees, the errors of n - 1 pairs add up: e <= step + 3/2 (n - 1) e².
    """
    loss = 3.0 * (n - 1) * step
    return step / (1.0 - loss) if loss <= 0.5 else math.inf


def rounding_of(n_patterns: int, n_cols: int) -> float:
    """Bound on the rounding error of a cell when a core is expanded.

    Each pattern and column may be a step of the log. It rounds up to eight times, and
    weights that differ by eight roundings are proportional.
    """
    n = n_patterns + n_cols
    return 16.0 * ROUNDING * (n if n <= 2500 else 50.0 * math.sqrt(n))


class Bound(NamedTuple):
    """Bound of the step that is left; the step itself where it had to be computed."""

    step: float
    direction: Floats | None = None


@dataclass(frozen=True)
class Network:
    """Columns joined by the fitted cells; rows are fitted exactly."""

    sums: Floats  # of the columns of the data
    fitted: Floats  # of those of the fit
    block: SmallInts  # component of each column; -1 for columns without data
    # Gives the product of the conductances between columns (and of a column with
    # itself, by its rows) with some potentials.
    between: Callable[[Floats], Floats]
    longest: int  # numbers in the longest sum, for its rounding

    @classmethod
    def of_core(cls, reduced: Reduced, w: Floats, h: Floats) -> Network:
        """Return the columns of a core."""
        d = w / (reduced.core_row_sums / w)  # rows are fitted exactly
        return cls(
            reduced.core_col_sums,
            h * reduced.product(d, h),
            np.asarray(reduced.core_col_block),
            lambda x: h * reduced.product(d, h * x),
            reduced.longest_sum,
        )

    @classmethod
    def of_rows(cls, mask: Patterns, d: Floats, h: Floats, n_threads: int) -> Network:
        """Return the columns of a table in one block, by its mask.

        ``d`` are the factors of the rows, squared and over their sums.
        """

        def product(x: Floats) -> Floats:
            return h * mask.product(d, h * x, n_threads)

        block = np.where(mask.col_sums > 0.0, 0, -1).astype(np.int32)
        fitted = product(np.ones_like(h))
        return cls(mask.col_sums, fitted, block, product, max(len(d), len(h)))

    def times(self, x: Floats) -> Floats:
        """Multiply by the Laplacian."""
        product: Floats = self.fitted * x - self.between(x)
        return product

    @property
    def _mismatch(self) -> float:
        """Largest relative mismatch of a column, and rounding."""
        on = self.block >= 0
        off = np.abs(self.sums[on] - self.fitted[on]) / self.sums[on]
        return float(off.max()) + self._rounding

    @property
    def _rounding(self) -> float:
        return rounding_of_sums(self.longest)

    @np.errstate(all="ignore")  # what leaves the range proves nothing
    def bound(self, solve: Solve | None = None) -> Bound:
        """Bound the step; ``solve`` solves with the Laplacian where that is cheap."""
        free = free_columns(self.block, self.sums)
        if not free.any():
            return Bound(0.0)
        reach = self._reach(free, solve)
        if SETTLED < 8.0 * reach * self._rounding < math.inf:
            reach = self._reach(free, solve, CLOSE)
        step = 2.0 * reach * self._mismatch
        if not math.isfinite(step):
            return Bound(math.inf)
        if step <= SETTLED or 2.0 * reach * self._rounding >= 0.5:
            return Bound(step)

        def missed(residual: Floats) -> float:
            return 2.0 * reach * float(np.abs(residual[free] / self.sums[free]).max())

        off = np.where(free, self.sums - self.fitted, 0.0)
        # What the residual may hide is a quarter of the step, or of what is settled.
        enough = Enough(0.125 * SETTLED / reach, 0.125 / reach)
        x, residual = self._solve(off, free, enough, solve)
        own = self._spread(x) + missed(residual) + 2.0 * reach * self._rounding
        return Bound(min(step, own) if own >= 0.0 else step, x)

    def _spread(self, x: Floats) -> float:
        """Largest difference of potentials within a component."""
        on = self.block >= 0
        n = int(self.block.max()) + 1
        low, high = np.full(n, math.inf), np.full(n, -math.inf)
        np.minimum.at(low, self.block[on], x[on])
        np.maximum.at(high, self.block[on], x[on])
        return float((high - low)[high >= low].max())

    def _reach(
        self, free: Bools, solve: Solve | None, enough: float = SUPERSOLUTION
    ) -> float:
        """Bound the potential that a current of a column's sum can cause.

        By the maximum principle any x with S x >= k c > 0 off the ground bounds it by
        max x / k; how x was found does not matter.
        """
        c = np.where(free, self.sums, 0.0)
        x, _ = self._solve(c, free, Enough(1.0 - enough), solve)
        if not np.isfinite(x).all():
            return math.inf
        most, rounding = float(np.abs(x).max()), self._rounding
        ratio = self.times(x)[free] / self.sums[free]
        least = float(ratio.min()) - rounding * most
        if rounding * most > 0.25 or not least > 0.0:
            return math.inf
        return most / least

    def _solve(
        self, rhs: Floats, free: Bools, enough: Enough, solve: Solve | None
    ) -> tuple[Floats, Floats]:
        """Solve with the Laplacian off the ground until it is enough.

        By ``solve`` or by conjugate gradients: potentials, and what is left of the
        currents.
        """
        if solve is not None:
            x = solve(rhs, enough)
            return x, np.where(free, rhs - self.times(x), 0.0)
        x, residual = np.zeros_like(rhs), np.where(free, rhs, 0.0)
        scale = np.where(free, 1.0 / np.where(free, self.fitted, 1.0), 0.0)
        direction, before = np.zeros_like(rhs), 1.0
        for _ in range(PRODUCTS):
            scaled = scale * residual
            now = float(residual @ scaled)
            if not now > 0.0:
                break
            direction = scaled + now / before * direction
            before = now
            product = np.where(free, self.times(direction), 0.0)
            curvature = float(direction @ product)
            if not (curvature > 0.0 and math.isfinite(length := now / curvature)):
                break
            x = x + length * direction
            residual = residual - length * product
            missed = float(np.abs(residual[free] / self.sums[free]).max())
            if missed <= max(enough.least, enough.share * float(np.ptp(x))):
                break
        return x, residual


def free_columns(block: SmallInts, sums: Floats) -> Bools:
    """All columns with data but the heaviest of each component."""
    free: Bools = block >= 0
    order = np.lexsort((-sums, block))
    order = order[free[order]]
    _, first = np.unique(block[order], return_index=True)
    free[order[first]] = False
    return free
