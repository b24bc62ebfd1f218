"""scikit-learn estimators."""

from __future__ import annotations

from a1gm.estimators._imputer import RankOneImputer
from a1gm.estimators._nmf import RankOneNMF

__all__ = ["RankOneImputer", "RankOneNMF"]
