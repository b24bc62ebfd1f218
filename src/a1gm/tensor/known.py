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
import time
from collections.abc import Sequence
from functools import cached_property, partial, reduce
from itertools import combinations, product
from threading import Thread
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components, shortest_path
from scipy.sparse.linalg import lsmr

from a1gm._base.bits import pack_bits
from a1gm._base.types import Bools, Floats, Ints, SmallInts
from a1gm._fit.place import EMPTY, FINITE, UNBOUNDED, UNDETERMINED, ZERO
from a1gm.tensor.problem import (
    DENSE,
    Levels,
    Margin,
    Problem,
    design,
    distinct_rows,
    row_keys,
)

PRIME = 2_147_483_629  # below 2**31: products fit into int64
MOST_EXACT = 300  # classes up to which the span is found by elimination
FIRST = 1 << 15  # cells of a large list that are contracted first
MOST_CLASSES = 3000  # of two groups, of which it is found which leads to which
MOST_CELLS = 1 << 20  # of a table whose kinds of cells are counted
MOST_KINDS = 1000  # of cells that linear programs decide
MOST_NUMBERS = 1 << 21  # in all of these programs together
SECONDS = 10.0  # for all linear programs of a fit
PROGRAM = "a1gm: linear program"
SURELY = 0.5  # of a zero that a direction lowers by 1
BY_WAYS = {(True, False): ZERO, (False, True): UNBOUNDED}
NULL = 1e-8  # products with null vectors that are only rounding
MOST_PRODUCTS = 20_000
MOST_CUBES = 40  # of every cell that are looked at

Tuples = list[Ints]  # per group: the class of every cell


def contract(columns: Tuples, sizes: Sequence[int]) -> tuple[Tuples, Tuples]:
    """Classes of levels that cells tie together, and the distinct cells by classes.

    ``columns`` are the levels of the cells, group by group. Levels without a cell keep
    a class of their own. Any part of the cells gives valid ties: a part of a large
    list is contracted first, and usually leaves nothing to do.
    """
    n_cells, sizes = len(columns[0]), list(sizes)
    labels = [np.arange(n) for n in sizes]
    part = max(FIRST, n_cells // 16)
    if n_cells > 2 * part:
        chosen = np.random.default_rng(0).choice(n_cells, part, replace=False)
        chosen.sort()
        labels, _ = contract([column[chosen] for column in columns], sizes)
        sizes = [int(label.max()) + 1 for label in labels]
        if all(n == 1 for n in sizes):
            return labels, [np.zeros(1, np.int64) for _ in sizes]
        columns = [label[c] for label, c in zip(labels, columns, strict=True)]
    cells, _ = distinct_rows(columns, sizes)
    quiet, g = 0, len(sizes) - 1
    while quiet < len(sizes):
        quiet += 1
        others = [cells[g] * 0, *cells[:g], *cells[g + 1 :]]
        key = row_keys(others, [1, *sizes[:g], *sizes[g + 1 :]])
        order = np.argsort(key, kind="stable")
        same = np.flatnonzero(key[order[1:]] == key[order[:-1]])
        a, b = cells[g][order[same]], cells[g][order[same + 1]]
        if (a != b).any():
            ties = sp.csr_array((np.ones(len(a), np.int8), (a, b)), (sizes[g],) * 2)
            sizes[g], found = connected_components(ties, directed=False)
            new = found.astype(np.int64)
            labels[g], cells[g] = new[labels[g]], new[cells[g]]
            cells, _ = distinct_rows(cells, sizes)
            quiet = 0
        g = (g - 1) % len(sizes)
    return labels, cells


class Span:
    """Row space of a design: the rows that its null vectors leave.

    Those of a small design are found modulo a prime below 2**31; a rank drops there
    with a probability of less than rank / 2**30, and then a cell stays missing that
    could be known. Those of a large one are three
    random ones: a row outside is missed with probability 0, and products are rounding,
    or of order 1; a row between counts as outside. ``n_free`` are the null directions
    of columns with rows, None where they are not known.
    """

    n_free: int | None = None

    def __init__(self, A: Any) -> None:
        random = np.random.default_rng(0)
        if A.shape[1] <= MOST_EXACT:
            self._null = _null_space(A, random)
            n_empty = A.shape[1] - len(np.unique(A.indices))
            self.n_free = self._null.shape[1] - n_empty
        else:
            self._null = np.stack([_null_vector(A, random) for _ in range(3)], axis=1)

    def has(self, A: Any) -> Bools:
        """Whether rows are in it."""
        off = A @ self._null
        if self.n_free is not None:
            off %= PRIME
        return np.asarray(np.abs(off).max(axis=1, initial=0) <= NULL)


def _null_space(A: Any, random: np.random.Generator) -> Ints:
    """Null vectors of a design modulo a prime, as columns.

    By Cauchy and Binet, a random diagonal between A' and A keeps the rank of A.
    """
    n = A.shape[1]
    w = random.integers(PRIME, size=A.shape[0])
    R = (A.T @ A.multiply(w[:, None])).toarray() % PRIME
    pivots: list[int] = []
    for col in range(n):
        r = len(pivots)
        at = np.flatnonzero(R[r:, col])
        if len(at):
            R[[r, r + at[0]]] = R[[r + at[0], r]]
            R[r] = R[r] * pow(int(R[r, col]), -1, PRIME) % PRIME
            factor = R[:, [col]]
            factor[r] = 0
            R = (R - factor * R[r]) % PRIME
            pivots.append(col)
    free = np.setdiff1d(np.arange(n), pivots)
    null = np.zeros((n, len(free)), np.int64)
    null[free, np.arange(len(free))] = 1
    null[pivots] = -R[: len(pivots), free]
    return null


def _null_vector(A: Any, random: np.random.Generator) -> Floats:
    """Projection of a random vector onto the null space."""
    counts = np.asarray(A.sum(axis=0)).ravel()
    scale = np.where(counts > 0.0, counts, 1.0) ** -0.5
    x = random.normal(size=A.shape[1])
    B = A @ sp.diags_array(scale)
    inside = lsmr(B, B @ x, atol=0.0, btol=1e-15, conlim=0.0, maxiter=MOST_PRODUCTS)[0]
    return np.asarray(scale * (x - inside))


class Known:
    """Fates of the cells of a problem, and the observed zeros that are given up.

    ``every`` are the levels of all cells of the table, ``whole_rank`` is the rank, if
    positive cells are known to decide all cells.
    """

    def __init__(
        self, p: Problem, every: Sequence[Levels], whole_rank: int | None = None
    ) -> None:
        self.problem, self._every, self._whole_rank = p, every, whole_rank
        sizes, self._is_zero = p.sizes.tolist(), p.s == 0.0
        if whole_rank is None:
            positive = ~self._is_zero if self._is_zero.any() else slice(None)
            self._labels, cells = contract(p.of_groups(positive), sizes)
        else:  # one class per group
            self._labels = [np.zeros(n, np.int64) for n in sizes]
            cells = [np.zeros(1, np.int64) for _ in sizes]
        self._sizes = [int(label.max()) + 1 for label in self._labels]
        parts = zip(self._labels, p.of_groups(self._is_zero), strict=True)
        classes = [label[level] for label, level in parts]
        self._zeros, self._zero_of_cell = distinct_rows(classes, self._sizes)
        self._A, self._Z = (design(own, self._sizes) for own in (cells, self._zeros))
        A, Z = self._A, self._Z
        self._decided: dict[tuple[int, ...], int] = {}  # by linear programs
        self.is_cut = False  # whether they would take too long
        self._seconds = SECONDS  # that are left for them
        self._span = Span(A)
        outside = ~self._span.has(Z)
        # A class without any positive cell can go to 0 by itself.
        is_free = np.asarray(A.sum(axis=0)).ravel() == 0
        self._alone = outside & (Z @ is_free > 0)
        self._driven = self._alone.copy()
        left = np.flatnonzero(outside & ~self._alone)
        self._are_zeros_decided = True
        if len(left) and (d := self._direction(A, Z[:0], Z[left])) is None:
            self._are_zeros_decided = False
        elif len(left):
            self._driven[left] = Z[left] @ d < -SURELY
            kept = left[~self._driven[left]]
            if len(kept):
                self._span = Span(sp.vstack([A, Z[kept]]).tocsr())

    def _direction(self, A: Any, Z: Any, R: Any) -> Floats | None:
        """A direction of ``_direction``; None once the budget is spent."""
        start = time.monotonic()
        d = _direction(A, Z, R, seconds=self._seconds)
        self._seconds = max(0.0, self._seconds - (time.monotonic() - start))
        self.is_cut |= d is None
        return d

    @cached_property
    def given_up(self) -> Bools:
        """Whether a cell is an observed zero that is fitted by 0."""
        return self._of_cells(self._driven)

    @cached_property
    def stay(self) -> Problem:
        """The cells without the zeros that are given up."""
        p = self.problem
        return p.only(~self.given_up) if self.given_up.any() else p

    @cached_property
    def n_approached(self) -> int:
        """Zeros that are given up and have no level of zeros, whose factor is 0."""
        return int(self._of_cells(self._driven & ~self._alone).sum())

    def _of_cells(self, of_zeros: Bools) -> Bools:
        found = np.zeros(len(self._is_zero), bool)
        if of_zeros.any():
            found[self._is_zero] = of_zeros[self._zero_of_cell]
        return found

    @property
    def is_whole(self) -> bool:
        """Whether every cell of levels with data is known."""
        return not self._driven.any() and max(self._sizes) == 1

    def fates(self, levels: Sequence[Ints]) -> SmallInts:
        """Codes of the fates of cells, given by their level in every group, or -1."""
        found = np.full(len(levels[0]), EMPTY, np.int32)
        kinds, inverse, is_there = self._kinds(levels)
        found[is_there] = self._fates_of_kinds(kinds)[inverse]
        return found

    def _kinds(self, levels: Sequence[Ints]) -> tuple[Tuples, Ints, Bools]:
        """Kinds of cells by classes, that of each, and which cells have levels."""
        is_there = np.min(levels, axis=0) >= 0
        pairs = zip(self._labels, levels, strict=True)
        tuples = [label[level[is_there]] for label, level in pairs]
        return *distinct_rows(tuples, self._sizes), is_there

    def _fates_by_spans(self, kinds: Tuples) -> tuple[SmallInts, Ints]:
        """Fates of kinds of cells, and which of them linear programs must decide."""
        rows = design(kinds, self._sizes)
        found = np.where(self._span.has(rows), FINITE, UNDETERMINED).astype(np.int32)
        if not self._driven.any():  # directions come in both signs
            return found, np.zeros(0, np.int64)
        driven = [column[self._driven] for column in self._zeros]
        both = [np.concatenate(pair) for pair in zip(kinds, driven, strict=True)]
        _, number = distinct_rows(both, self._sizes)
        is_driven = np.isin(number[: len(found)], number[len(found) :])
        found[is_driven & (found != FINITE)] = ZERO
        # What no cell compares goes both ways.
        is_left = (found == UNDETERMINED) & self._span_of_all.has(rows)
        return found, np.flatnonzero(is_left)

    @cached_property
    def _are_few(self) -> bool:
        """Whether linear programs decide: if the table has few kinds that need them.

        Not those that are asked for: answers would depend on earlier questions.
        """
        lengths: dict[int, int] = {}
        for own in self._every:
            lengths |= dict(zip(own.margin, own.lengths, strict=True))
        shape = [lengths[k] for k in sorted(lengths)]
        if math.prod(shape) > MOST_CELLS:
            return False
        index = [k.ravel() for k in np.indices(shape)]
        kinds, *_ = self._kinds([own.find(index) for own in self._every])
        _, left = self._fates_by_spans(kinds)
        n, n_numbers = len(left), self._A.nnz + self._Z.nnz
        return n <= MOST_KINDS and n * n_numbers <= MOST_NUMBERS

    def _fates_of_kinds(self, kinds: Tuples) -> SmallInts:
        rows, (found, left) = design(kinds, self._sizes), self._fates_by_spans(kinds)
        if not len(left):
            return found
        if len(kinds) == 2 and sum(self._sizes) <= MOST_CLASSES:
            a, b = kinds[0][left], kinds[1][left] + self._sizes[0]
            ahead, behind = self._leads[a, b], self._leads[b, a]
            found[left[ahead & ~behind]], found[left[behind & ~ahead]] = ZERO, UNBOUNDED
            return found
        if not self._are_few:
            self.is_cut = True
            return found
        along = np.zeros((len(left), 2), bool)  # directions lower a kind, and raise it
        for k, own in enumerate(left):
            kind = tuple(int(column[own]) for column in kinds)
            if kind not in self._decided:
                for way, sign in enumerate((1, -1)):
                    if not along[k, way]:
                        d = self._direction(self._A, self._Z, sign * rows[[own]])
                        if d is None:
                            return found
                        moved = rows[left] @ d
                        along |= np.stack([moved < -SURELY, moved > SURELY], axis=1)
                self._decided[kind] = BY_WAYS.get(
                    tuple(along[k].tolist()), UNDETERMINED
                )
            found[own] = self._decided[kind]
        return found

    @cached_property
    def _span_of_all(self) -> Span:
        return Span(sp.vstack([self._A, self._Z]).tocsr())

    @cached_property
    def _leads(self) -> Bools:
        """Which classes of two groups lead to which.

        Those of a positive cell lead to each other, the first of a zero to the second.
        """
        pairs = [own.indices.reshape(-1, 2) for own in (self._A, self._A, self._Z)]
        pairs[1] = pairs[1][:, ::-1]
        a, b = np.concatenate(pairs).T
        graph = sp.csr_array((np.ones(len(a)), (a, b)), (sum(self._sizes),) * 2)
        return np.isfinite(shortest_path(graph, unweighted=True))

    @cached_property
    def rank(self) -> int | None:
        """Rank of the design of the cells that stay; None where it is not known."""
        n_free = self._span.n_free if self._are_zeros_decided else None
        if self._whole_rank is not None or n_free is None:
            return self._whole_rank
        return int((self.stay.counts > 0.0).sum()) - n_free


def _direction(A: Any, Z: Any, R: Any, *, seconds: float) -> Floats | None:
    """A direction d with A d = 0 and Z d <= 0 that lowers each row of R if any does.

    Directions add up, so one linear program finds it; None if it is not found in so
    many seconds. It is solved in a thread, so that an interrupt ends the wait.
    """
    (k, n), m = R.shape, Z.shape[0]
    solve = partial(
        linprog,
        np.concatenate([np.zeros(n), -np.ones(k)]),
        A_ub=sp.block_array([[Z, sp.csr_array((m, k))], [R, sp.eye_array(k)]]).tocsr(),
        b_ub=np.zeros(m + k),
        A_eq=sp.hstack([A, sp.csr_array((A.shape[0], k))]).tocsr(),
        b_eq=np.zeros(A.shape[0]),
        bounds=[(None, None)] * n + [(0.0, 1.0)] * k,
        method="highs",
        options={"time_limit": seconds},
    )
    results: list[Any] = []
    thread = Thread(target=lambda: results.append(solve()), name=PROGRAM, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.1)
    if not results or results[0].status != 0:
        return None
    return np.asarray(results[0].x[:n])


# --------------------------------------------------------- tables that are known whole
def whole_rank(cells: Any, groups: Sequence[Margin]) -> int | None:
    """Rank of the design, if cubes of positive cells decide every cell of a table.

    No margin has all modes of a cube, so the logarithm of a corner is an alternating
    sum of those of its other corners. A fibre along the last mode that shares a level
    with the others of a cube gets all levels that those have. None where cubes prove
    nothing: then the design decides.
    """
    *outer, last = shape = cells.shape
    seen = cells.fibres if cells.positions is None else None
    if seen is not None and seen.pattern_of_row is None:
        bits = seen.keys if seen.positive is None else seen.positive
    else:
        positive = cells.numbers > 0.0
        if seen is None:
            if math.prod(shape) > DENSE * len(cells.values):
                return None
            positive = np.zeros(shape, bool)
            positive[cells.index] = cells.values > 0.0
        bits = pack_bits(positive.reshape(-1, last))
    # Words first: NumPy is slow along short rows.
    known = np.ascontiguousarray(bits.T).reshape(-1, *outer)
    every = pack_bits(np.ones((1, last), bool)).reshape(-1, *(1 for _ in outer))
    random = np.random.default_rng(0)
    n = max(map(len, groups))  # modes of a cube beside one
    for k in range(MOST_CUBES):
        if (known == every).all():
            return n_parameters(groups, shape)
        n_axes = min(n + (k % 4 == 3), len(outer))
        if n_axes < n or min(shape) < 2:
            break
        axes = random.choice(len(outer), n_axes, replace=False)
        steps = random.integers(1, np.array(outer)[axes])
        corners = np.array(list(product((0, 1), repeat=n_axes))[1:])
        moved = reduce(
            np.bitwise_and, (np.roll(known, c * steps, axes + 1) for c in corners)
        )
        if n_axes == n:
            moved *= np.bitwise_or.reduce(known & moved, axis=0) != 0
        known = known | moved
    return None


def n_parameters(groups: Sequence[Margin], lengths: Sequence[int]) -> int:
    """Rank of the design of a whole table."""
    parts = {
        part
        for group in groups
        for k in range(len(group) + 1)
        for part in combinations(group, k)
    }
    return sum(math.prod(lengths[k] - 1 for k in part) for part in parts)
