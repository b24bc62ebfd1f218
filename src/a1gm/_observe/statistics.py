"""What a fit needs to know of a table, in the forms that a pass can keep."""

from __future__ import annotations

from a1gm._observe.mask_statistics import MaskStatistics, as_mask
from a1gm._observe.pair_statistics import PairStatistics
from a1gm._observe.pattern_statistics import PatternStatistics
from a1gm._observe.statistics_base import Statistics, weighted_counts
from a1gm._observe.weighted_statistics import WeightedStatistics

__all__ = [
    "MaskStatistics",
    "PairStatistics",
    "PatternStatistics",
    "Statistics",
    "WeightedStatistics",
    "as_mask",
    "weighted_counts",
]
