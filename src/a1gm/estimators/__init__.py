"""scikit-learn estimators."""

from __future__ import annotations

from a1gm.estimators._imputer import RankOneImputer
from a1gm.estimators._nmf import RankOneNMF
from a1gm.estimators._nmmf import RankOneNMMF

__all__ = ["RankOneImputer", "RankOneNMF", "RankOneNMMF"]
