"""The statistics of a table in each of their forms, every row its own line."""

from __future__ import annotations

import numpy as np

from a1gm._base.bits import pack_bits
from a1gm._observe.observe import observe
from a1gm._observe.statistics import MaskStatistics, PairStatistics, PatternStatistics
from a1gm._rows import read_input


def patterns_of(X: np.ndarray) -> PatternStatistics:
    """Rows of one pattern together."""
    statistics = observe(read_input(X), keep_table=True).statistics
    assert isinstance(statistics, PatternStatistics)
    return statistics


def pairs_of(X: np.ndarray) -> PairStatistics:
    seen = ~np.isnan(X)
    rows, cols = np.nonzero(seen)
    ptr = np.concatenate(([0], np.cumsum(seen.sum(axis=1))))
    return PairStatistics(ptr, cols.astype(np.int32), X[rows, cols], None, X.shape[1])


def mask_of(X: np.ndarray) -> MaskStatistics:
    seen, positive = ~np.isnan(X), np.nan_to_num(X) > 0.0
    return MaskStatistics(
        pack_bits(seen),
        None if (seen == positive).all() else pack_bits(positive),
        np.nansum(X, axis=1),
        np.nansum(X, axis=0),
    )
