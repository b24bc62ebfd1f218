"""Cells across weak cuts, and a bound on what convergence leaves in any cell.

Parts of a table that hang together by tiny cells can have right margins and wrong
cells between them: rounding of large sums hides the small ones. There the cells
themselves are fitted, not their sums.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from a1gm._base.types import Floats, Ints
from a1gm.tensor.problem import Problem, design, reach
from a1gm.tensor.solve import Eliminated, Solved

WEAK = 1e-3  # of its diagonal: a smaller pivot of the Hessian is that of a weak cut
TRUSTED = 1e-8  # a pivot that is not only rounding
MOST_WORK = 1 << 31  # multiplications of an elimination in the design
AT_ONCE = 256  # design rows
ROUNDS = 60
NULL = 1e-9  # combinations of design rows that are only rounding
STILL = 4e-15  # a move of a cell that is only rounding
NEARLY = 1e-6  # a move from which on rounds that no longer help end


def settle(p: Problem, solved: Solved, rank: int | None, tol: float) -> Solved:
    """The same fit with a bound on the error of its cells, mended where cuts are weak.

    An estimate where the Hessian is too large to be dense, or its rank is not known.
    """
    if solved.cell_error is not None:
        return solved
    f, margins = p.fitted(solved.t)
    if not p.is_small:
        return estimate(solved, p.sums, margins, p.starts)
    E = Eliminated(*p.pairs(f), rank)
    rounding = rounding_of(float(p.counts.max()))
    if rank is not None and E.least_pivot < WEAK:
        if len(p.s) * len(p.sums) ** 2 <= MOST_WORK:
            return _mended(p, solved, rank, rounding)
        if E.least_pivot < TRUSTED:
            return replace(solved, cell_error=math.inf)
    t = solved.t * np.exp(E.solve(p.sums - margins))
    _, new = p.fitted(t)
    if p.gap(new) <= max(solved.gap, tol):
        solved, margins = replace(solved, t=t, gap=p.gap(new)), new
    worst = error_left(E, p.sums - margins, rounding)
    return replace(with_error(solved, worst), is_bound=rank is not None)


def with_error(solved: Solved, worst: float) -> Solved:
    """The same fit with the error of its cells, by that of their logarithms."""
    error = worst / (1.0 - worst) if worst < 0.5 else math.inf
    return replace(solved, cell_error=max(error, solved.gap))


def estimate(solved: Solved, sums: Floats, margins: Floats, starts: Ints) -> Solved:
    """The same fit with an estimate of the error of its cells."""
    D = np.where(margins > 0.0, margins, 1.0)
    worst = reach((sums - margins) / D, starts) * math.sqrt(len(D))
    return replace(solved, cell_error=max(worst, solved.gap), is_bound=False)


def error_left(E: Eliminated, rest: Floats, rounding: float) -> float:
    """First-order error of cells: what convergence has left, and rounding.

    Sums by level are known up to a share of ``rounding``. They move the groups that
    were not eliminated by up to |G| D, twice: also by way of the other group, which
    then is moved by as much as they are.
    """
    moved = np.zeros(len(rest))
    moved[E.rest] = np.abs(E.inverse) @ E.D[E.rest]
    most = 1.0 + 4.0 * reach(moved, E.starts)
    return reach(E.solve(rest), E.starts) + rounding * most


def rounding_of(longest: float) -> float:
    """Share of a sum of so many numbers that rounding takes or adds."""
    return (4.0 + math.sqrt(longest)) * 2.0**-53


@np.errstate(under="ignore")
def _mended(p: Problem, solved: Solved, rank: int, rounding: float) -> Solved:
    """Factors whose light cells fit, too.

    The heaviest cells that can be chosen freely take the place of the factors. What
    any other cell takes from them are heavier cells only, so that the gradient of one
    of them is a sum over lighter cells: no large number hides a small one.
    """
    A = design(p.of_groups(slice(None)), p.sizes.tolist()).toarray().astype(np.float64)
    t, last = solved.t, math.inf
    for k in range(ROUNDS):
        f, margins = p.fitted(t)
        f = np.maximum(f, 1e-300)
        own = _heaviest(A, f, rank)
        K = np.linalg.pinv(A[own])
        M = A @ K
        M[np.abs(M) < NULL] = 0.0
        scale = f[own] ** -0.5
        H = (M.T * f) @ M * scale[:, None] * scale
        inverse = np.linalg.inv(H) * scale[:, None] * scale
        y = inverse @ (M.T @ (p.s - f))
        move = float(np.abs(M @ y).max())
        is_still = move < STILL or (move < NEARLY and move >= last)
        if is_still or k == ROUNDS - 1:
            break
        t, last = t * np.exp(K @ (y / max(1.0, move))), move
    left = np.abs(y) + np.abs(inverse) @ (rounding * (np.abs(M).T @ (p.s + f)))
    solved = replace(solved, t=t, gap=p.gap(margins))
    return with_error(solved, reach(np.abs(K) @ left, p.starts))


def _heaviest(A: Floats, f: Floats, rank: int) -> list[int]:
    """The heaviest cells whose design rows are independent, as many as there are."""
    order, found, pivots = np.argsort(-f, kind="stable"), list[int](), list[int]()
    R = np.zeros((0, A.shape[1]))  # what they span, reduced to echelon form
    for start in range(0, len(order), AT_ONCE):
        cells = order[start : start + AT_ONCE]
        W = A[cells] - A[cells][:, pivots] @ R
        while len(found) < rank and (is_new := (np.abs(W) > NULL).any(axis=1)).any():
            k = int(is_new.argmax())
            col = int(np.abs(W[k]).argmax())
            row = W[k] / W[k, col]
            W = W - np.outer(W[:, col], row)
            R = np.vstack([R - np.outer(R[:, col], row), row])
            found.append(int(cells[k]))
            pivots.append(col)
    return found
