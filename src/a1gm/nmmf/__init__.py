"""Several tables that share factors: NMMF with holes, and any number of relations."""

from __future__ import annotations

from a1gm.nmmf.fit import fit_nmmf, fit_relations
from a1gm.nmmf.result import NMMFFit, RelationsFit

__all__ = ["NMMFFit", "RelationsFit", "fit_nmmf", "fit_relations"]
