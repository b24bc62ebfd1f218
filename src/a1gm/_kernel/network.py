"""The columns as a network, in NumPy."""

from __future__ import annotations

import math

import numpy as np

from a1gm._base.types import Floats, SmallInts

ROUNDING = 2.0**-53
LEAST_OVERLAP = 0.02
LONGEST = 2.0  # no gap between logarithms of factors changes by more in one step


def rounding_of_sums(n: int) -> float:
    """Relative rounding error of a sum of ``n`` numbers."""
    return (4.0 + math.sqrt(n)) * ROUNDING


def overlap_step(
    reach: Floats,
    row_block: SmallInts,
    h: Floats,
    means: Floats,
    col_block: SmallInts,
    gap: float,
    longest: int,
) -> float:
    """Bound the step of a 0/1 mask from how much of the columns any two rows share.

    ``reach`` are the sums of h over the cells of each row (or the largest of each
    block), ``means`` their means over the rows of each column, by what each row has in
    it, and ``longest`` counts the numbers in the longest sum.
    """
    least = 1.0
    for b in range(int(col_block.max(initial=-1)) + 1):
        own = col_block == b
        if np.count_nonzero(own) > 1:
            mean = np.where(np.isfinite(means[own]), means[own], -math.inf)
            shared = np.partition(mean, 1)[:2].sum() - h[own].sum()
            share = float(shared / reach[row_block == b].max())
            if not share > LEAST_OVERLAP:  # nor NaN
                return math.inf
            least = min(least, share)
    return 2.0 * (gap + rounding_of_sums(longest)) / least


def shortened(v: Floats) -> Floats:
    """Cut each gap between neighbouring numbers to at most ``LONGEST``.

    A monotone map of Newton's step is still a descent, and no gap is lost beside a
    larger one.
    """
    order = np.argsort(v, kind="stable")
    gaps = np.minimum(np.diff(v[order], prepend=v[order[:1]]), LONGEST)
    moved = np.empty_like(v)
    moved[order] = np.cumsum(gaps)
    return moved - moved[:1]
