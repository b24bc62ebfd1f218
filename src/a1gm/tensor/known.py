"""What the data determine: cells that are finite, zero, unbounded or undetermined.

The design row of a cell has a 1 for its level in every group. A cell is finite if its
row is in the span of the rows of those cells that stay positive. Otherwise it is
decided by the directions d along which factors can go to infinity at no cost: those
with d·a = 0 on positive cells and d·a <= 0 on observed zeros. The cell is zero if
none of them raises it, unbounded if none lowers it, else undetermined.

Most of this is union-find: two cells that agree in all groups but one tie their two
levels of that group together. What is left of the design is tiny and is decided
modulo a prime, and by linear programs where zeros are left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, reduce
from itertools import combinations, product
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import lsmr

from a1gm._base.bits import pack_bits
from a1gm._base.types import Bools, Floats, Ints, SmallInts, Words
from a1gm._fit.place import EMPTY, FINITE, UNBOUNDED, UNDETERMINED, ZERO
from a1gm.tensor.problem import DENSE, Margin, Problem
from a1gm.tensor.reduce import distinct_rows, number_rows

PRIME = 2_147_483_629  # below 2**31: products fit into int64
MOST_EXACT = 300  # classes up to which the span is found by elimination
FIRST = 1 << 15  # cells of a large list that are contracted first
MOST_PROGRAMS = 1000  # pairs of linear programs for kinds of missing cells
MOST_NUMBERS = 1 << 20  # in all of them together
NULL = 1e-8  # products with null vectors that are only rounding
MOST_PRODUCTS = 20_000
MOST_CUBES = 40  # of every cell that are looked at
SIGN = 1e-7  # of a linear program's answer

Tuples = list[Ints]  # per group: the class of every cell


def contract(columns: Sequence[Ints], sizes: Sequence[int]) -> tuple[Tuples, Tuples]:
    """Classes of levels that cells tie together, and the distinct cells by classes.

    ``columns`` are the levels of the cells, group by group. Levels without a cell keep
    a class of their own. Any part of the cells gives valid ties: a part of a large
    list is contracted first, and usually leaves nothing to do.
    """
    n_cells = len(columns[0])
    labels = [np.arange(n) for n in sizes]
    sizes = list(sizes)
    part = max(FIRST, n_cells // 16)
    if n_cells > 2 * part:
        chosen = np.random.default_rng(0).choice(n_cells, part, replace=False)
        chosen.sort()
        labels, _ = contract([column[chosen] for column in columns], sizes)
        sizes = [int(label.max(initial=-1)) + 1 for label in labels]
        if all(n == 1 for n in sizes):
            return labels, [np.zeros(1, np.int64) for _ in sizes]
        columns = [label[c] for label, c in zip(labels, columns, strict=True)]
    cells, _ = distinct_rows(columns, *sizes)
    quiet, g = 0, len(sizes) - 1
    while quiet < len(sizes) and len(cells[0]):
        quiet += 1
        others = [cells[g] * 0, *cells[:g], *cells[g + 1 :]]
        ends = [1, *sizes[:g], *sizes[g + 1 :]]
        key = number_rows(others, ends)
        if key is None:
            _, key = distinct_rows(others, *ends)
        order = np.argsort(key, kind="stable")
        same = np.flatnonzero(key[order[1:]] == key[order[:-1]])
        a, b = cells[g][order[same]], cells[g][order[same + 1]]
        if (a != b).any():
            ties = sp.csr_array((np.ones(len(a), np.int8), (a, b)), (sizes[g],) * 2)
            sizes[g], new = connected_components(ties, directed=False)
            labels[g] = new[labels[g]].astype(np.int64)
            cells[g] = new[cells[g]].astype(np.int64)
            cells, _ = distinct_rows(cells, *sizes)
            quiet = 0
        g = (g - 1) % len(sizes)
    return labels, cells


def design(cells: Tuples, sizes: Sequence[int]) -> Any:
    """Design rows of cells given by their classes."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    n, k = len(cells[0]), len(cells)
    at = np.concatenate([c + start for c, start in zip(cells, starts, strict=False)])
    rows = np.tile(np.arange(n), k)
    return sp.csr_array((np.ones(n * k), (rows, at)), (n, int(starts[-1])))


class ExactSpan:
    """Row space of a small design, by elimination modulo a prime below 2**31.

    The rank of a matrix of a few ones can drop modulo a prime, with a probability of
    less than rank / 2**31; then a cell stays missing that could be known.
    """

    def __init__(self, A: Any) -> None:
        self._rows: list[Ints] = []
        self._pivots: list[int] = []
        for row in A.toarray().astype(np.int64):
            left = self._reduce(row[None])[0]
            at = np.flatnonzero(left)
            if len(at):
                inverse = pow(int(left[at[0]]), PRIME - 2, PRIME)
                self._rows.append(left * inverse % PRIME)
                self._pivots.append(int(at[0]))

    @property
    def rank(self) -> int:
        """Of the design."""
        return len(self._rows)

    def _reduce(self, rows: Ints) -> Ints:
        for row, pivot in zip(self._rows, self._pivots, strict=True):
            factor = rows[:, pivot : pivot + 1]
            if factor.any():
                rows = (rows - factor * row) % PRIME
        return rows

    def has(self, A: Any) -> Bools:
        """Whether rows are in it."""
        return np.asarray((self._reduce(A.toarray().astype(np.int64)) == 0).all(axis=1))


class LargeSpan:
    """Row space of a large design, by random vectors of its null space.

    A row is in the span if and only if it is orthogonal to the null space; a random
    null vector misses a row outside with probability 0. Products are rounding, or of
    order 1; a row between counts as outside, which leaves a cell missing.
    """

    def __init__(self, A: Any) -> None:
        random = np.random.default_rng(0)
        self._null = np.stack([_null_vector(A, random) for _ in range(3)], axis=1)

    @property
    def rank(self) -> None:
        """Not known."""

    def has(self, A: Any) -> Bools:
        """Whether rows are in it."""
        return np.asarray(np.abs(A @ self._null).max(axis=1, initial=0.0) <= NULL)


def _null_vector(A: Any, random: np.random.Generator) -> Floats:
    """Projection of a random vector onto the null space."""
    counts = np.asarray(A.sum(axis=0)).ravel()
    scale = np.where(counts > 0.0, counts, 1.0) ** -0.5
    x = random.normal(size=A.shape[1])
    B = A @ sp.diags_array(scale)
    inside = lsmr(B, B @ x, atol=0.0, btol=1e-15, conlim=0.0, maxiter=MOST_PRODUCTS)[0]
    return np.asarray(scale * (x - inside))


class Known:
    """Fates of the cells of a table, and the observed zeros that are given up."""

    def __init__(self, p: Problem, whole_rank: int | None = None) -> None:
        """``whole_rank``: the rank, if positive cells are known to decide all cells."""
        self._p = p
        sizes = p.sizes.tolist()
        self._whole_rank = whole_rank
        if whole_rank is not None:
            self._labels = [np.zeros(n, np.int64) for n in sizes]
            self._sizes = [1] * len(sizes)
            self._span = _span_of(sp.csr_array(np.ones((1, len(sizes)))))
            self._driven = self._alone = np.zeros(0, bool)
            return
        positive = p.s > 0.0
        some = slice(None) if positive.all() else positive
        self._labels, self._positive = contract(p.of_groups(some), sizes)
        zeros = p.of_groups(~positive)
        self._sizes = [int(c.max(initial=-1)) + 1 for c in self._labels]
        self._zeros, self._zero_of_cell = distinct_rows(
            [c[z] for c, z in zip(self._labels, zeros, strict=True)], *self._sizes
        )
        self._decide_zeros()

    def _decide_zeros(self) -> None:
        """Find the zeros that no minimiser attains, and the span of all others."""
        A, Z = design(self._positive, self._sizes), design(self._zeros, self._sizes)
        self._span = _span_of(A)
        outside = ~self._span.has(Z)
        self._driven = np.zeros(len(outside), bool)
        # A class without any positive cell can go to 0 by itself.
        is_free = np.asarray(A.sum(axis=0)).ravel() == 0.0
        alone = outside & (Z @ is_free > 0)
        self._driven[alone] = True
        self._alone = alone
        left = np.flatnonzero(outside & ~alone)
        if len(left):
            self._driven[left] = _can_vanish(A, Z[left])
            kept = left[~self._driven[left]]
            if len(kept):
                self._span = _span_of(sp.vstack([A, Z[kept]]).tocsr())
        self._A, self._Z = A, Z

    @cached_property
    def given_up(self) -> Bools:
        """Whether a cell is an observed zero that is fitted by 0."""
        return self._of_cells(self._driven)

    @cached_property
    def stay(self) -> Problem:
        """The cells without the zeros that are given up."""
        return self._p.only(~self.given_up) if self.given_up.any() else self._p

    @cached_property
    def n_approached(self) -> int:
        """Zeros that are given up and have no level of zeros, whose factor is 0."""
        return int(self._of_cells(self._driven & ~self._alone).sum())

    def _of_cells(self, of_zeros: Bools) -> Bools:
        found = np.zeros(self._p.n_cells, bool)
        if of_zeros.any():
            found[self._p.s == 0.0] = of_zeros[self._zero_of_cell]
        return found

    @property
    def is_whole(self) -> bool:
        """Whether every cell of levels with data is known."""
        return not self._driven.any() and all(
            len(np.unique(label[has])) <= 1
            for label, has in zip(
                self._labels, self._p.split(self._p.has_cells), strict=True
            )
        )

    def fates(self, levels: Sequence[Ints]) -> SmallInts:
        """Codes of the fates of cells, given by their level in every group, or -1."""
        found = np.full(len(levels[0]), EMPTY, np.int32)
        has_cells = self._p.split(self._p.has_cells)
        is_there = np.ones(len(found), bool)
        for level, has in zip(levels, has_cells, strict=True):
            is_there &= (level >= 0) & has[level]
        tuples = [
            label[level[is_there]]
            for label, level in zip(self._labels, levels, strict=True)
        ]
        kinds, inverse = distinct_rows(tuples, *self._sizes)
        found[is_there] = self._fates_of_kinds(kinds)[inverse]
        return found

    def _fates_of_kinds(self, kinds: Tuples) -> SmallInts:
        rows = design(kinds, self._sizes)
        found = np.where(self._span.has(rows), FINITE, UNDETERMINED).astype(np.int32)
        if not self._driven.any():  # directions come in both signs
            return found
        driven = [column[self._driven] for column in self._zeros]
        n = len(kinds[0])
        both = [np.concatenate(pair) for pair in zip(kinds, driven, strict=True)]
        _, number = distinct_rows(both, *self._sizes)
        is_driven = np.isin(number[:n], number[n:])
        found[is_driven & (found != FINITE)] = ZERO
        most = min(MOST_PROGRAMS, MOST_NUMBERS // (self._A.nnz + self._Z.nnz))
        for k in np.flatnonzero(found == UNDETERMINED)[:most]:
            up, down = (self._can_move(rows[[k]], sign) for sign in (1.0, -1.0))
            if not (up and down):
                found[k] = UNBOUNDED if up else ZERO
        return found

    def _can_move(self, row: Any, sign: float) -> bool:
        """Whether a direction raises (or lowers) a cell."""
        result = linprog(
            -sign * row.toarray().ravel(),
            A_ub=self._Z,
            b_ub=np.zeros(self._Z.shape[0]),
            A_eq=self._A,
            b_eq=np.zeros(self._A.shape[0]),
            bounds=(-1.0, 1.0),
            method="highs",
        )
        return bool(result.fun is not None and result.fun < -SIGN)

    @cached_property
    def rank(self) -> int | None:
        """Rank of the design of the cells that stay; None where it is not known."""
        rank = self._span.rank
        if rank is None or self._whole_rank is not None:
            return self._whole_rank
        # Ties of levels count, too: each joins two classes of the levels with cells.
        p, stay = self._p, self.stay.has_cells
        n_levels = int(stay.sum())
        n_classes = sum(
            len(np.unique(label[has]))
            for label, has in zip(self._labels, p.split(stay), strict=True)
        )
        return rank + n_levels - n_classes


def whole_rank(
    cells: Any, groups: Sequence[Margin], bits: Words | None = None
) -> int | None:
    """Rank of the design, if cubes of positive cells decide every cell of a table.

    ``bits`` are the positive cells, a row per fibre along the last mode. No margin has
    all modes of a cube, so the logarithm of a corner is an alternating sum of those of
    its other corners: a fibre that shares a level of the last mode with the others of a
    cube gets all levels that those have. None where cubes prove nothing: then the
    design decides.
    """
    *outer, last = shape = cells.shape
    if min(shape) < 2:
        return None
    if bits is None:
        if math.prod(shape) > DENSE * len(cells.values):
            return None
        positive = np.zeros(shape, bool)
        positive[cells.index] = cells.values > 0.0
        bits = pack_bits(positive.reshape(-1, last))
    # Words first: NumPy is slow along short rows.
    known = np.ascontiguousarray(bits.T).reshape(-1, *outer)
    every = pack_bits(np.ones((1, last), bool)).reshape(-1, *(1 for _ in outer))
    random = np.random.default_rng(0)
    n = max(map(len, groups))  # modes of a cube beside the last one
    corners = np.array(list(product((0, 1), repeat=n))[1:])
    for _ in range(MOST_CUBES):
        if (known == every).all():
            return n_parameters(groups, shape)
        axes = random.choice(len(outer), n, replace=False)
        steps = random.integers(1, np.array(outer)[axes])
        moved = reduce(
            np.bitwise_and, (np.roll(known, c * steps, axes + 1) for c in corners)
        )
        closes = np.bitwise_or.reduce(known & moved, axis=0) != 0
        known = known | moved * closes
    return None


def n_parameters(groups: Sequence[Margin], lengths: Sequence[int]) -> int:
    """Rank of the design of a whole table."""
    parts = {part for group in groups for part in subsets(group)}
    return sum(math.prod(lengths[k] - 1 for k in part) for part in parts)


def subsets(group: Margin) -> list[Margin]:
    """All parts of a set of modes, the empty one and itself included."""
    return [p for k in range(len(group) + 1) for p in combinations(group, k)]


def _span_of(A: Any) -> ExactSpan | LargeSpan:
    return ExactSpan(A) if A.shape[1] <= MOST_EXACT else LargeSpan(A)


def _can_vanish(A: Any, Z: Any) -> Bools:
    """Which zeros can go to 0 while the positive cells stay: one linear program.

    Such directions add up, so one of them lowers every zero that any of them lowers.
    """
    n, k = Z.shape[1], Z.shape[0]
    result = linprog(
        np.concatenate([np.zeros(n), -np.ones(k)]),
        A_ub=sp.hstack([Z, sp.eye_array(k)]).tocsr(),
        b_ub=np.zeros(k),
        A_eq=sp.hstack([A, sp.csr_array((A.shape[0], k))]).tocsr(),
        b_eq=np.zeros(A.shape[0]),
        bounds=[(None, None)] * n + [(0.0, 1.0)] * k,
        method="highs",
    )
    assert result.x is not None, result.message  # 0 is feasible, and s is bounded
    return np.asarray(result.x[n:] > 0.5)
