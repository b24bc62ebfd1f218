"""Values for the missing cells of any rows, from column factors alone.

Each identifiability block has a scale of its own, so a row has one factor per block:
its sum over the columns of the block that it observes, by the sum of their factors. A
row that observes nothing in a block says nothing about the cells there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from a1gm._sources import AnySource
from a1gm._result.new_rows import row_factors
from a1gm._base.types import Floats, Ints, SmallInts

__all__ = ["values_for_rows"]


def values_for_rows(
    source: AnySource, col_factor: Floats, col_block: SmallInts
) -> Callable[[Ints, Ints], Floats]:
    """Return a function that gives the value of any missing cell, NaN if unknown."""
    blocks = np.unique(col_block[col_block >= 0])
    of_block = [
        row_factors(source, np.where(col_block == b, col_factor, np.nan))
        for b in blocks
    ]
    # Columns of zeros belong to no block; their cells are 0 whatever the row.
    place = np.searchsorted(blocks, col_block)
    zero = (col_block < 0) & ~np.isnan(col_factor)

    def values(i: Ints, j: Ints) -> Floats:
        found = np.full(len(i), np.nan)
        for b, w in enumerate(of_block):
            chosen = (place[j] == b) & (col_block[j] >= 0)
            found[chosen] = w[i[chosen]] * col_factor[j[chosen]]
        found[zero[j]] = 0.0
        return found

    return values
