"""Factors as the solver passes them on, and how far margins are from the data's."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from a1gm._base.types import Floats, SmallInts, Solver


@dataclass(frozen=True, slots=True)
class CoreSolution:
    """Factors of the core and how they were found."""

    w: Floats
    h: Floats
    solver: Solver
    n_iter: int
    gap: float
    step: float = math.inf  # bound of what Newton would still move a cell by
    cut: tuple[int, int] | None = None  # columns that may be furthest off


#: The solution of a core of nothing.
NO_CORE = CoreSolution(np.zeros(0), np.zeros(0), "closed form", 0, 0.0, 0.0)


@dataclass
class Factors:
    """Factors of the patterns and columns, and the block of each.

    ``pattern_scale`` times a row's sum is that row's factor. Blocks are -1 where a
    pattern or column has no positive cell. ``step`` bounds the error of the logarithm
    of any fitted cell, to first order; ``cut`` names two columns that may be furthest
    off.
    """

    pattern_factor: Floats
    pattern_scale: Floats
    col_factor: Floats
    pattern_block: SmallInts
    col_block: SmallInts
    n_blocks: int
    solver: Solver
    n_iter: int
    gap: float
    all_inside: bool  # one block holds every pattern and column
    step: float = math.inf
    cut: tuple[int, int] | None = None


def solver_name(n_iter: int, n_steps: int = 0, before: Solver | None = None) -> Solver:
    """How a fit was solved: by its iterations, and Newton's steps among the last.

    ``before`` is how it was solved up to those.
    """
    if n_steps > 0 or before == "newton":
        return "newton"
    return "scaling" if n_iter > 0 else "closed form"


def relative_gap(fitted: Floats, sums: Floats) -> float:
    """Largest relative difference from the sums that are positive."""
    known = sums > 0.0
    off = np.abs(fitted[known] - sums[known]) / sums[known]
    return float(off.max(initial=0.0))
