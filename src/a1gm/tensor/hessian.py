"""Newton's step, and what it leaves: the Hessian of a design, dense or as products.

Its null directions are factors that leave every cell as it is. A vector y of levels
moves the logarithm of a cell by the sum of what its levels have.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

from a1gm._base.types import Floats, Ints
from a1gm._kernel.network import rounding_of_sums
from a1gm.tensor.problem import Problem, reach

WEAK = 1e-3  # of its diagonal: a smaller pivot is that of a weak cut
MOST_WORK = 1 << 27  # multiplications of an elimination in the design
PIVOT = 1e-10  # of its diagonal: smaller pivots are null directions
LEAST_PIVOT = 1e-14  # where the rank is known: smaller ones are rounding
LEAST_PRODUCTS = 300  # of conjugate gradients, however large the table
MOST_MULTIPLIED = 1 << 30  # numbers in all products of one search
LOOSE = 1e-3  # share of a residual that an estimate of errors may leave
FINE = 1e-6  # one that a step may leave where no move is known to be found
SHARE_OF_MOVE = 1e-12  # of what a cell that is off by 1 leaves
FOUND = 1e-3  # error of a random move that is found again
REFINED = 5  # rounds in which it may be found
NEAR = 1e-9  # an error of cells of a large design that needs no further step
SAFELY = 100.0  # times as large as found, where errors are an estimate


class Eliminated:
    """The Hessian with its largest group eliminated, and a generalised inverse.

    ``D`` are the sums of the fitted cells f by level, ``inverse`` is that of the groups
    that are left. Null directions are pinned by a Cholesky factorisation with pivoting
    that stops where pivots vanish, or at the rank of the design if it is known.
    """

    def __init__(self, p: Any, f: Any, D: Floats, rank: int | None = None) -> None:
        self.D, self.starts = D, p.starts
        big = int(np.diff(p.starts).argmax())
        others = [g for g in range(len(p.starts) - 1) if g != big]
        self.own = slice(int(p.starts[big]), int(p.starts[big + 1]))
        self.rest = np.delete(np.arange(len(D)), self.own)
        n_own = int(np.count_nonzero(D[self.own]))
        self.d = np.where(D[self.own] > 0.0, D[self.own], 1.0)
        blocks: Any = [np.zeros((len(self.d), 0))]
        blocks += [p.cross(f, big, g) for g in others]
        is_sparse = any(map(sp.issparse, blocks))
        self.B: Any = sp.hstack(blocks, "csr") if is_sparse else np.hstack(blocks)
        S = np.diag(D[self.rest])  # of which the lower half is used
        ends = np.cumsum([0, *np.delete(np.diff(p.starts), big)])
        at = {g: slice(*ends[k : k + 2]) for k, g in enumerate(others)}
        for g, h in combinations(others, 2):
            S[at[h], at[g]] = _dense(p.cross(f, h, g))
        roots = self.B * self.d[:, None] ** -0.5
        S -= _dense(roots.T @ roots)
        scale = np.where(D[self.rest] > 0.0, D[self.rest], np.inf) ** -0.5
        S *= scale[:, None] * scale
        tol = PIVOT if rank is None else LEAST_PIVOT
        c, pivots, found, _ = sl.lapack.dpstrf(S, tol=tol, lower=1)
        wanted = int(found) if rank is None else rank - n_own
        k = min(wanted, int(found))
        self.rank = k + n_own
        least = float(c.diagonal()[:k].min(initial=1.0) ** 2)
        is_weak = rank is not None and (k < wanted or least < WEAK)
        if is_weak and len(f) * len(S) ** 2 <= MOST_WORK:
            k = min(wanted, len(f))
            c, pivots = self._by_cells(p, f, scale)
            least = float(c.diagonal()[:k].min(initial=1.0) ** 2)
        self.least_pivot = least if k == wanted else 0.0
        self.inverse, kept = np.zeros_like(S), pivots[:k].astype(np.int64) - 1
        self.inverse[np.ix_(kept, kept)] = sl.cho_solve(
            (c[:k, :k], True), np.eye(k), check_finite=False
        )
        self.inverse *= scale[:, None] * scale

    def _by_cells(self, p: Problem, f: Floats, scale: Floats) -> tuple[Floats, Ints]:
        """The Cholesky factor and its pivots, from the cells, not from their sums.

        Small pivots that sums would hide are found, if heavy cells come first.
        """
        cells = np.argsort(-f)
        A = p.design[cells]
        M = A[:, self.rest].toarray() - self.q[A[:, self.own].indices].toarray()
        M *= np.sqrt(f[cells])[:, None] * scale
        R, pivots = sl.qr(M, mode="r", pivoting=True, check_finite=False)
        return R.T, pivots + 1

    @property
    def q(self) -> Any:
        """Shares of the other levels in each of the eliminated ones, sparse."""
        return sp.csr_array(self.B / self.d[:, None])

    def solve(self, g: Floats, _: float = 0.0) -> Floats:
        """A solution x of H x = g."""
        x, own = np.empty_like(g), g[self.own]
        x[self.rest] = y = self.inverse @ (g[self.rest] - self.B.T @ (own / self.d))
        x[self.own] = (own - self.B @ y) / self.d
        return x

    def left(self, rest: Floats) -> float:
        """Bound on what a rest of the gradient moves a cell."""
        return 2.0 * reach(self.solve(rest), self.starts)

    def finds_moves(self, p: Problem, f: Floats) -> bool:
        """Whether random moves of all cells f are found again from their sums."""
        moves = p.moves(random_factors(p))
        for _ in range(REFINED):
            moves = moves - p.moves(self.solve(p.add_exactly(f * moves)))
            if float(np.abs(moves).max(initial=0.0)) <= FOUND:
                return True
        return False

    def error_left(self, rest: Floats, longest: int) -> float:
        """First-order error of logarithms of cells: what convergence left, rounding.

        Sums by level, of up to ``longest`` cells, are known up to a share. They move
        the groups that were not eliminated by up to |G| D, twice: also by way of the
        other group, which then is moved by as much as they are.
        """
        moved = np.zeros(len(rest))
        moved[self.rest] = np.abs(self.inverse) @ self.D[self.rest]
        most = 1.0 + 4.0 * reach(moved, self.starts)
        return reach(self.solve(rest), self.starts) + rounding_of_sums(longest) * most


def _dense(A: Any) -> Floats:
    return A if isinstance(A, np.ndarray) else np.asarray(A.toarray())


def random_factors(p: Problem) -> Floats:
    """Random logarithms of factors of all levels."""
    return np.random.default_rng(0).normal(size=int(p.starts[-1]))


class Iterated:
    """The Hessian of a large design as products, scaled to a diagonal of 1.

    ``D`` are the sums of the fitted cells f by level. Sums of random moves are exact if
    sums of the mismatch are.
    """

    def __init__(self, p: Problem, f: Floats, D: Floats, *, is_exact: bool) -> None:
        self.problem = p
        self.f = f
        self.D = D
        self.root = np.where(D > 0.0, D, np.inf) ** -0.5
        self.is_exact = is_exact

    def _approach(self, b: Floats) -> Iterator[tuple[Floats, float, float]]:
        """Conjugate gradients: solutions, the sizes of what they leave of b, moves.

        A move is the largest of a cell since the solution before.
        """
        p = self.problem
        x = np.zeros_like(b)
        move = math.inf
        direction = b
        size = float(b @ b)
        n_numbers = len(p.level) * len(self.f)
        for _ in range(max(LEAST_PRODUCTS, MOST_MULTIPLIED // n_numbers)):
            yield x, math.sqrt(size), move
            of_levels = self.root * direction
            product, most = p.multiply(self.f, of_levels)
            product *= self.root
            curvature = float(direction @ product)
            if not curvature > 0.0:
                break
            length = size / curvature
            move = length * most
            x = x + length * of_levels
            b = b - length * product
            before = size
            size = float(b @ b)
            direction = b + size / before * direction

    def solve(self, g: Floats, share: float) -> Floats:
        """A solution of H x = g that leaves a share of g.

        Of ``share`` 0, one that leaves nothing that could move a cell.
        """
        b = self.root * g
        enough = (share or FINE) * float(np.linalg.norm(b))
        if share == 0.0 and self.size_of_move > 0.0:
            enough = SHARE_OF_MOVE * self.size_of_move
        for x, size, _ in self._approach(b):  # noqa: B007
            if size <= enough:
                break
        return x

    @cached_property
    def size_of_move(self) -> float:
        """What a cell that is off by 1 leaves of the gradient; 0 if it is not known.

        Random factors move all parts of the table against each other. A weak cut hides
        as long as other cells leave more; then its cells are off by much more than
        what is left. In the end all moves are found again.
        """
        p = self.problem
        d = random_factors(p)
        sums = p.multiply(self.f, d)[0]
        if self.is_exact:
            sums = p.add_exactly(self.f * p.moves(d))
        enough = FOUND / math.sqrt(len(self.root))
        next_size = math.inf
        sizes = list[float]()
        moves = list[float]()
        for x, size, move in self._approach(self.root * sums):
            sizes.append(size)
            moves.append(move)
            if move <= enough and size < next_size:
                next_size = 0.25 * size
                off = p.multiply(self.f, x - d)[1]
                if off <= enough:
                    later = np.cumsum([off, *moves[:0:-1]])[::-1]  # to be moved
                    return float((sizes / np.maximum(later, enough)).min())
        return 0.0

    def left(self, rest: Floats) -> float:
        """Bound on what a rest of the gradient moves a cell."""
        return SAFELY * float(np.linalg.norm(self.root * rest)) / self.size_of_move

    def error_left(self, rest: Floats, longest: int) -> float:
        """Estimate of the error of logarithms of cells, as for few levels."""
        if self.size_of_move == 0.0:
            return math.inf
        hidden = rounding_of_sums(longest) * self.D
        bound = self.left(np.abs(rest) + hidden)
        if bound <= NEAR:
            return bound
        d = self.solve(rest, LOOSE)
        off = rest - self.problem.multiply(self.f, d)[0]
        return reach(d, self.problem.starts) + self.left(np.abs(off) + hidden)

    def finds_moves(self, p: Problem, f: Floats) -> bool:
        """Whether random moves of all cells f are found again from their sums."""
        return self.size_of_move > 0.0
