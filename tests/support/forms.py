"""The patterns of a table in each of their forms, every row its own pattern."""

from __future__ import annotations

import numpy as np

from a1gm._base.bits import pack_bits
from a1gm._observe import patterns
from a1gm._observe.observe import observe
from a1gm._observe.patterns import Patterns
from a1gm._rows import read_input


def patterns_of(X: np.ndarray) -> Patterns:
    """Rows of one pattern together."""
    return observe(read_input(X), keep_table=True)


def pairs_of(X: np.ndarray) -> Patterns:
    rows, cols = np.nonzero(~np.isnan(X))
    return patterns.pairs_of(rows, cols, X[rows, cols], None, *X.shape)


def mask_of(X: np.ndarray) -> Patterns:
    seen, positive = ~np.isnan(X), np.nan_to_num(X) > 0.0
    return Patterns(
        X.shape[1],
        pack_bits(seen),
        None if (seen == positive).all() else pack_bits(positive),
        row_margin=np.nansum(X, axis=1),
        col_margin=np.nansum(X, axis=0),
    )
