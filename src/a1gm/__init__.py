"""The best rank-1 explanation of a non-negative table with holes.

``a1gm.fit(X)`` finds row and column factors with ``X[i, j] ≈ w[i] * h[j]``, the global
optimum of the Kullback-Leibler divergence on the observed cells, for every pattern of
missing cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from a1gm import _kernel as _kernel  # its import is paid here, not at the first fit
from a1gm._base.version import __version__ as __version__

if TYPE_CHECKING:
    from a1gm import distributed, exceptions, paper, plot, report
    from a1gm._api.fit import fit
    from a1gm._api.fit_file import fit_file
    from a1gm._api.fit_groups import fit_groups
    from a1gm._api.fit_long import fit_long
    from a1gm._api.fit_many import fit_many
    from a1gm._api.impute import impute
    from a1gm._api.impute_file import impute_file
    from a1gm._api.load import load
    from a1gm._api.pattern_table import PatternTable
    from a1gm._fit.fit import RankOneFit
    from a1gm._fit.many import ManyFits
    from a1gm._fit.pattern import MissingPattern
    from a1gm.estimators import RankOneImputer, RankOneNMF, RankOneNMMF
    from a1gm.nmmf import NMMFFit, RelationsFit, fit_nmmf, fit_relations

__all__ = [
    "Assessment",
    "ManyFits",
    "MissingPattern",
    "NMMFFit",
    "PatternTable",
    "RankOneFit",
    "RankOneImputer",
    "RankOneNMF",
    "RankOneNMMF",
    "RelationsFit",
    "Uncertainty",
    "assess",
    "distributed",
    "exceptions",
    "fit",
    "fit_file",
    "fit_groups",
    "fit_long",
    "fit_many",
    "fit_nmmf",
    "fit_relations",
    "impute",
    "impute_file",
    "load",
    "paper",
    "plot",
    "report",
]


# Loaded on first use: name -> module that holds it (None = the module itself).
_LAZY: dict[str, str | None] = {
    "Assessment": "a1gm._api.assess",
    "Uncertainty": "a1gm._fit.sure.uncertainty",
    "assess": "a1gm._api.assess",
    "ManyFits": "a1gm._fit.many",
    "MissingPattern": "a1gm._fit.pattern",
    "NMMFFit": "a1gm.nmmf",
    "PatternTable": "a1gm._api.pattern_table",
    "RankOneFit": "a1gm._fit.fit",
    "RelationsFit": "a1gm.nmmf",
    "exceptions": None,
    "fit": "a1gm._api.fit",
    "fit_nmmf": "a1gm.nmmf",
    "fit_relations": "a1gm.nmmf",
    "impute": "a1gm._api.impute",
    "load": "a1gm._api.load",
    "RankOneImputer": "a1gm.estimators",
    "RankOneNMF": "a1gm.estimators",
    "RankOneNMMF": "a1gm.estimators",
    "distributed": None,
    "fit_file": "a1gm._api.fit_file",
    "fit_groups": "a1gm._api.fit_groups",
    "fit_long": "a1gm._api.fit_long",
    "fit_many": "a1gm._api.fit_many",
    "impute_file": "a1gm._api.impute_file",
    "paper": None,
    "plot": None,
    "report": None,
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module

    home = _LAZY[name]
    if home is None:
        return import_module(f"{__name__}.{name}")
    found = getattr(import_module(home), name)
    globals()[name] = found  # from now on an ordinary look-up
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
