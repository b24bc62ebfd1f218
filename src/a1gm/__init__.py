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
    from a1gm._api.assess import Assessment, assess
    from a1gm._api.fit import fit, impute
    from a1gm._api.fit_file import fit_file, impute_file
    from a1gm._api.fit_long import fit_long
    from a1gm._api.fit_many import fit_groups, fit_many
    from a1gm._api.load import load
    from a1gm._api.pattern_table import PatternTable
    from a1gm._api.scale import scale
    from a1gm._fit.fit import RankOneFit
    from a1gm._fit.many import ManyFits, ManyUncertainty
    from a1gm._fit.pattern import MissingPattern
    from a1gm._fit.scaled import ScaledTable
    from a1gm._fit.sure.uncertainty import Uncertainty
    from a1gm.estimators import RankOneImputer, RankOneNMF
    from a1gm.nmmf import NMMFFit, fit_nmmf
    from a1gm.tensor import TensorAssessment, TensorFit, TensorUncertainty, fit_tensor

__all__ = [
    "Assessment",
    "ManyFits",
    "ManyUncertainty",
    "MissingPattern",
    "NMMFFit",
    "PatternTable",
    "RankOneFit",
    "RankOneImputer",
    "RankOneNMF",
    "ScaledTable",
    "TensorAssessment",
    "TensorFit",
    "TensorUncertainty",
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
    "fit_tensor",
    "impute",
    "impute_file",
    "load",
    "paper",
    "plot",
    "report",
    "scale",
]


# Loaded on first use: modules and the names that they hold; other names are modules.
_NAMES = {
    "_api.assess": ("Assessment", "assess"),
    "_api.fit": ("fit", "impute"),
    "_api.load": ("load",),
    "_api.fit_file": ("fit_file", "impute_file"),
    "_api.fit_long": ("fit_long",),
    "_api.fit_many": ("fit_groups", "fit_many"),
    "_api.pattern_table": ("PatternTable",),
    "_api.scale": ("scale",),
    "_fit.fit": ("RankOneFit",),
    "_fit.many": ("ManyFits", "ManyUncertainty"),
    "_fit.pattern": ("MissingPattern",),
    "_fit.scaled": ("ScaledTable",),
    "_fit.sure.uncertainty": ("Uncertainty",),
    "estimators": ("RankOneImputer", "RankOneNMF"),
    "nmmf": ("NMMFFit", "fit_nmmf"),
    "tensor": ("TensorAssessment", "TensorFit", "TensorUncertainty", "fit_tensor"),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}


#: Names of 0.1.0 that were removed, and what to call instead (docs/moving.md).
_REMOVED = {
    "RankOneNMMF": "use a1gm.fit_nmmf(X, Y, Z)",
    "RelationsFit": "use a1gm.fit_nmmf(X, Y, Z)",
    "fit_relations": "use a1gm.fit_nmmf(X, Y, Z), or a1gm.fit of the tables in one",
}


def __getattr__(name: str) -> Any:
    if name in _REMOVED:
        msg = f"a1gm.{name} was removed: {_REMOVED[name]}."
        raise AttributeError(msg)
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module

    home = import_module(f"{__name__}.{_HOMES.get(name, name)}")
    if name not in _HOMES:
        return home
    globals()[name] = getattr(home, name)  # from now on an ordinary look-up
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)
