"""Solve with the Laplacian of the columns: the Hessian of the cost in log h.

One column of each component is the ground and stays where it is; the others are free.
A small Hessian is an array and is factorised. A large one is a sparse graph, and the
kernel's conjugate gradients solve with it; how they are preceded is decided by cost,
as it is known while they run (``FACTORS``, ``PRECEDED``; see ``flow.hpp``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from a1gm._base.types import Bools, Floats, SmallInts
from a1gm._solve.mask import ListedMask, Mask, Sweep

# Directions so flat that their slope is rounding; they move no margin by 1e-11.
RIDGE = 1e-13
# In products with the Hessian, by benchmarks/costs.py: thin factors with their use, and
# one product that they precede.
FACTORS, PRECEDED = 200, 4
MOST_PRODUCTS = 2000


class Enough(NamedTuple):
    """When potentials are good enough.

    No column may miss its current by more than its sum times ``least``, or times
    ``share`` of the range of the potentials.
    """

    least: float
    share: float = 0.0


#: Gives the potentials of currents; those of the ground are 0.
Solve: TypeAlias = Callable[[Floats, Enough], Floats]


def free_columns(block: SmallInts, sums: Floats) -> Bools:
    """All columns with data but the heaviest of each component."""
    free: Bools = block >= 0
    if not block.any():  # one component, and every column in it
        free[sums.argmax()] = False
        return free
    order = np.lexsort((-sums, block))
    order = order[free[order]]
    _, first = np.unique(block[order], return_index=True)
    free[order[first]] = False
    return free


def hessian_at(mask: Mask, state: Sweep) -> Callable[[Floats | None], Solve]:
    """What makes solvers with the Hessian of a mask at the factors of a sweep.

    They are given what the Hessian shall have more on its diagonal.
    """
    if isinstance(mask, ListedMask):
        return partial(_flow_solver, mask.flow(state))
    off = mask.laplacian(state.h)
    return partial(_dense_solver, off, free_columns(mask.block, mask.col_sums))


def _flow_solver(flow: Any, extra: Floats | None) -> Solve:
    def solve(rhs: Floats, enough: Enough) -> Floats:
        found: Floats = flow.solve(
            rhs, extra, *enough, FACTORS, PRECEDED, MOST_PRODUCTS
        )[0]
        return found

    return solve


def _dense_solver(off: Floats, free: Bools, extra: Floats | None) -> Solve:
    # The diagonal is minus the sum of the others: no cancellation between parts that
    # a few cells join.
    diagonal = -off.sum(axis=1)[free]
    if extra is not None:
        diagonal += extra[free]
    H = off[np.ix_(free, free)]
    np.fill_diagonal(H, diagonal)
    scale = 1.0 / np.sqrt(np.maximum(diagonal, np.finfo(float).tiny))
    H = H * scale[:, None] * scale
    np.fill_diagonal(H, H.diagonal() + RIDGE)

    def solve(rhs: Floats, _: Enough) -> Floats:
        found, currents = np.zeros_like(rhs), rhs[free] * scale
        try:
            found[free] = np.linalg.solve(H, currents) * scale
        except np.linalg.LinAlgError:
            found[free] = np.linalg.lstsq(H, currents, rcond=None)[0] * scale
        return found

    return solve


def conjugate_gradients(
    times: Callable[[Floats], Floats],
    rhs: Floats,
    diagonal: Floats,
    free: Bools,
    sums: Floats,
    enough: Enough,
    max_steps: int,
) -> tuple[Floats, Floats]:
    """Solve with a Laplacian until it is enough; return also the residual."""
    x, residual = np.zeros_like(rhs), np.where(free, rhs, 0.0)
    scale = np.where(free, 1.0 / np.where(free, diagonal, 1.0), 0.0)
    direction, before = np.zeros_like(rhs), 1.0
    for _ in range(max_steps):
        scaled = scale * residual
        now = float(residual @ scaled)
        if not now > 0.0:
            break
        direction = scaled + now / before * direction
        before = now
        product = np.where(free, times(direction), 0.0)
        curvature = float(direction @ product)
        if not (curvature > 0.0 and math.isfinite(length := now / curvature)):
            break
        x = x + length * direction
        residual = residual - length * product
        missed = float(np.abs(residual[free] / sums[free]).max())
        if missed <= max(enough.least, enough.share * float(np.ptp(x))):
            break
    return x, residual
