"""The published algorithms, as published, in readable NumPy.

*Fast Rank-1 NMF for Missing Data with KL Divergence*, Ghalamkari & Sugiyama,
AISTATS 2022. For work, use `a1gm.fit`: it is exact for every pattern of holes.

==================  ============================================================
`rank1_nmf`         best rank-1 table of a complete table
`rank1_nmmf`        Theorem 1: three tables that share factors
`grid_like`         rows and columns that hold a hole; do the holes fill them
`complete_to_grid`  the holes grown to a grid
`a1gm`              Algorithm 1
`kl_wnmf`           multiplicative updates, the baseline of the experiments
`em`                the em-algorithm
`kl_divergence`     the error, on the observed cells
`geometry`          natural and expectation parameters, projection
==================  ============================================================
"""

from __future__ import annotations

from a1gm.paper import geometry
from a1gm.paper.grid import Grid, a1gm, complete_to_grid, grid_like
from a1gm.paper.iterative import em, kl_wnmf
from a1gm.paper.nmf import kl_divergence, rank1_nmf
from a1gm.paper.nmmf import rank1_nmmf

__all__ = [
    "Grid",
    "a1gm",
    "complete_to_grid",
    "em",
    "geometry",
    "grid_like",
    "kl_divergence",
    "kl_wnmf",
    "rank1_nmf",
    "rank1_nmmf",
]
