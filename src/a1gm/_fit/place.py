"""Rows, fitted or new, are placed by their observed cells.

A missing cell gets its value from the row's observed cells of the same component: their
sum over the sum of their columns' factors, times the factor of its column. Where
the row has no positive cell in that component, the edges between components decide: it
is 0 where only the row leads to the column, unbounded where only the column leads to
the row, and undetermined where neither does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias, overload

import numpy as np

from a1gm._base.float_range import check_cells, check_rows, out_of_range, product
from a1gm._base.types import AnyArray, Bools, Fate, Floats, Ints, Negatives, SmallInts
from a1gm._base.words import counted, html_grid
from a1gm._fit.table import ROWS_AT_ONCE, FitRows, LazyRows
from a1gm._kernel import kernel, threads_for, warn_if_slow
from a1gm._observe.patterns import PatternsGone, weighted_counts
from a1gm._rows.read import AnyRows
from a1gm._rows.rows import Rows, check_values, table_of
from a1gm._rows.sparse import SparseRows
from a1gm._solve.components import ColumnGraph, number_by_rows
from a1gm._solve.dispatch import Solved
from a1gm.exceptions import Option, ParameterError

# Codes from UNBOUNDED up have no value. EMPTY: the row or column observes nothing.
FINITE, ZERO, UNBOUNDED, UNDETERMINED, EMPTY = range(5)
FATES: tuple[Fate, ...] = (
    "finite",
    "zero",
    "unbounded",
    "undetermined",
    "undetermined",
)
CELLS_AT_ONCE = 1 << 20
MOST_SHOWN = 12  # cells in a notebook
#: Component of patterns that observe nothing, and of those without a positive cell.
NOTHING, ZEROS = -1, -2
LOW = 2.0**-1015  # smaller sums of weighted cells have lost digits

#: Where some columns are written; None for a column that is not needed.
Target: TypeAlias = AnyArray | None
#: The values of the cells (rows[k], cols[k]); NaN for a cell that stays missing.
Values: TypeAlias = Callable[[Ints, Ints], Floats]


def decided(values: Floats, fates: SmallInts) -> Floats:
    """Put 0 and NaN where cells have no finite value."""
    values[fates == ZERO] = 0.0
    values[fates >= UNBOUNDED] = np.nan
    return values


def with_exposure(values: Floats, exposure: Floats) -> Floats:
    """Put 0 where nothing could be counted, NaN where the exposure is not known."""
    values[exposure == 0.0] = 0.0
    values[np.isnan(exposure)] = np.nan
    return values


class Left(NamedTuple):
    """The cells that stay missing: how many, and the first.

    ``has_holes`` are the columns that had missing cells.
    """

    n: int
    first: tuple[int, int] | None
    has_holes: Bools


def fates_of_row(graph: ColumnGraph, own: Ints, touched: Ints) -> SmallInts:
    """Fate of a row's missing cells by component of the column; last: empty column.

    ``own`` are the components in which the row is positive, ``touched`` all those in
    which it observes something.
    """
    fates = np.full(graph.n + 1, UNDETERMINED, np.int32)
    ahead = graph.ahead(np.concatenate([own, touched]))
    behind = graph.behind(own)
    fates[:-1][behind & ~ahead] = UNBOUNDED
    # What lies between two components of one row is reached both ways: undecided.
    fates[:-1][ahead & ~behind] = ZERO
    fates[touched] = ZERO
    fates[own] = FINITE
    fates[-1] = EMPTY
    return fates


@dataclass(frozen=True)
class Columns:
    """The fitted columns, which place rows."""

    factor: Floats
    graph: ColumnGraph
    takes_negatives: bool = False
    weighted: bool = False  # rows cannot be placed without theirs
    exposed: bool = False  # by exposures: the factors are rates

    @property
    def negatives(self) -> Negatives | None:
        """How to treat cells below 0: as in the fit."""
        return "allow" if self.takes_negatives else None

    @cached_property
    def are_for_kernel(self) -> bool:
        """Whether the kernel can place rows by them.

        All share a scale, but those of factor 0, to which the others lead.
        """
        graph = self.graph
        if graph.is_single:
            return True
        label = graph.label
        if self.takes_negatives or label.min() < 0:
            return False
        main = label[int(np.argmax(self.factor))]
        is_placed = np.zeros(graph.n, bool)
        is_placed[graph.edges[graph.edges[:, 0] == main, 1]] = True
        is_right = (label == main) | (is_placed[label] & (self.factor == 0.0))
        return bool(is_right.all())

    def in_order(self, order: Ints | None) -> Columns:
        """The same columns in another order."""
        if order is None:
            return self
        graph = replace(self.graph, label=self.graph.label[order])
        return replace(self, factor=self.factor[order], graph=graph)

    def place(self, rows: AnyRows, otherwise: Floats | None = None) -> Placed:
        """Place rows with the weights that they carry.

        ``otherwise`` are the values, by column, of cells that the data do not
        determine; NaN, the default, leaves them missing.
        """
        return Placed(self, rows, otherwise)

    def fill(self, cells: Floats, weights: Floats | None = None) -> Floats:
        """Fill the holes of an array; NaN where the data determine no value."""
        if not np.isnan(cells).any():
            return cells
        rows = table_of(cells)
        if weights is not None:
            rows = replace(rows, weights=table_of(weights), exposed=self.exposed)
        filled = np.empty_like(cells)
        self.place(rows).write([filled])
        return filled


class Fills:
    """Rows and the values of their missing cells; NaN for a cell that stays missing."""

    def __init__(self, rows: AnyRows, values: Values) -> None:
        self.rows, self._compute = rows, values

    def values(self, i: Ints, j: Ints) -> Floats:
        """Values of missing cells; NaN where the data determine none."""
        return self._compute(i, j)

    def check(self) -> None:
        """Raise for cells that cannot be placed, before any is changed."""

    def write(self, targets: Sequence[Target]) -> Left:
        """Write the rows, filled, to targets that have their columns."""
        assert isinstance(self.rows, Rows)
        n_left, first = 0, None
        has_holes = np.zeros(self.rows.n_cols, bool)
        for some, piece in self.rows.in_pieces(CELLS_AT_ONCE):
            i, j = np.nonzero(np.isnan(piece))
            has_holes[j] = True
            if len(i):
                piece[i, j] = values = self.values(i + some.start, j)
                left = np.flatnonzero(np.isnan(values))
                if len(left) and first is None:
                    first = int(i[left[0]]) + some.start, int(j[left[0]])
                n_left += len(left)
            at = 0
            for target in targets:
                width = 1 if target is None else target.shape[1]
                if target is not None:  # -0.0 becomes 0.0
                    cells = piece[:, at : at + width]
                    np.add(cells, 0.0, out=target[some])
                at += width
        return Left(n_left, first, has_holes)


class Placed(Fills):
    """Rows with their factors, and the values of their cells.

    Dense rows of one component without weights are placed by the kernel, in the pass
    that needs them.
    """

    def __init__(
        self, columns: Columns, rows: AnyRows, otherwise: Floats | None = None
    ) -> None:
        if columns.weighted and rows.weights is None:
            name = "exposure" if columns.exposed else "weights"
            raise ParameterError(
                f"The fit had {name}, so rows are placed by their weighted cells. Pass "
                "theirs with ",
                Option(name),
                ".",
            )
        self.columns, self.rows, self.otherwise = columns, rows, otherwise
        self.is_plain = rows.weights is None and columns.graph.is_single

    @cached_property
    def _groups(self) -> Groups:
        cells = observed_cells(self.rows, self.columns.negatives)
        return Groups(self.columns, self.rows, cells)

    @cached_property
    def factors(self) -> Floats:
        """Factor of each row; NaN where it has none, or several."""
        h, negatives = self.columns.factor, self.columns.takes_negatives
        found = by_kernel(
            self.columns,
            self.rows,
            lambda _, parts, threads: kernel.row_factors(parts, h, negatives, threads),
        )
        if found is None:
            return self._groups.factors
        factors = found[0] if len(found) == 1 else np.concatenate(found)
        return factors + 0.0 if negatives else factors  # no -0.0

    @cached_property
    def has_several(self) -> Bools:
        """Which rows have positive cells in several components."""
        if self.is_plain:
            return np.zeros(self.rows.n_rows, bool)
        return self._groups.n_held > 1

    def check(self) -> None:
        """Raise for cells that cannot be placed, before any is changed."""
        _ = self.factors if self.is_plain else self._groups

    def values(self, i: Ints, j: Ints) -> Floats:
        """Values of missing cells; NaN where the data determine none."""
        if self.is_plain:
            values: Floats = self.factors[i] * self.columns.factor[j]
        else:
            weights: Any = self.rows.weights
            exposure = weights.values_at(i, j) if self.columns.exposed else None
            values = self._groups.values(i, j, exposure)
        check_cells(values)
        if self.otherwise is None:
            return values
        return np.where(np.isnan(values), self.otherwise[j], values)

    def write(self, targets: Sequence[Target]) -> Left:
        """Write the rows, filled, to targets that have their columns."""
        h, otherwise = self.columns.factor, self.otherwise
        if otherwise is None:
            otherwise = np.full(len(h), np.nan)

        def fill(first: int, parts: Any, threads: int) -> Any:
            rows = slice(first, first + len(parts[0][0]))
            some = [target if target is None else target[rows] for target in targets]
            signs = self.columns.takes_negatives
            written = kernel.fill_rows(parts, h, otherwise, some, signs, threads)
            if written is None:
                return None
            n_empty, first_empty, holes = written
            return n_empty, first + first_empty, np.isnan(holes)

        pieces = by_kernel(self.columns, self.rows, fill)
        if pieces is None:
            self.check()
            return super().write(targets)
        has_holes = pieces[0][2]
        for _, _, holes in pieces[1:]:
            has_holes |= holes
        n_empty = sum(n for n, _, _ in pieces)
        without = np.flatnonzero(np.isnan(otherwise))
        if not (n_empty and len(without)):
            return Left(0, None, has_holes)
        first_empty = next(row for n, row, _ in pieces if n)
        first = first_empty, int(without[0])
        return Left(n_empty * len(without), first, has_holes)


def by_kernel(
    columns: Columns, rows: Any, call: Callable[[int, Any, int], Any]
) -> list[Any] | None:
    """Call the kernel with first row, parts and threads of each piece of rows.

    None where it declines a piece, and for rows that it does not place: sparse, with
    weights, or of several components.
    """
    has_weights = getattr(rows, "weights", None) is not None  # files have none
    if isinstance(rows, SparseRows) or has_weights or not columns.are_for_kernel:
        return None
    warn_if_slow()
    found = []
    for first, piece in rows.tables():
        threads = threads_for(piece.n_rows * piece.n_cols, None)
        found.append(call(first, piece.parts, threads))
        if found[-1] is None:
            return None
    return found


def kernel_sums(
    columns: Columns, source: AnyRows, of: Literal["divergence", "pearson"]
) -> tuple[float, float] | None:
    """Sum over the cells, and of the row factors, in one pass of the kernel.

    None for rows that the kernel does not place.
    """

    def sums(_: int, parts: Any, threads: int) -> Any:
        if of == "divergence":
            return kernel.divergence(parts, columns.factor, threads)
        return kernel.pearson(parts, columns.factor, columns.takes_negatives, threads)

    found = by_kernel(columns, source, sums)
    if found is None:
        return None
    return sum(total for total, _ in found), sum(factors for _, factors in found)


# ------------------------------------------------------- several components or weights
#: Observed cells of some rows: row, column, value, and weight or None.
Cells: TypeAlias = tuple[Ints, Ints, Floats, Floats | None]


def observed_cells(rows: Any, negatives: Negatives | None) -> Iterator[Cells]:
    """Yield the observed cells of rows, some at a time; raise for bad ones.

    Cells of weight 0 are not observed.
    """
    V: Any = getattr(rows, "weights", None)  # files have none
    for cells in rows.observed():
        i, j, x = cells
        v = None if V is None else V.values_at(i, j)
        if v is not None:
            used = v > 0.0
            i, j, x, v = i[used], j[used], x[used], v[used]

        def position(at: int, i: Ints = i, j: Ints = j) -> tuple[int, int]:
            return int(i[at]), int(j[at])

        check_values(rows, x, negatives, position=position)
        yield i, j, x, v


class Groups:
    """The observed cells of rows, grouped by row and component of the column.

    ``key`` is row times number of components plus component, ascending. For each key:
    ``sums`` of the weighted cells, ``reach``, the sum of the weighted column factors,
    whether a positive cell ``held`` the row there, and whether anything is observed
    (``touched``). A key that is not there stands for nothing observed, or, with absent
    cells that are zeros (``else_zeros``), for zeros.
    """

    def __init__(self, columns: Columns, rows: Any, cells: Iterable[Cells]) -> None:
        self._columns, self._rows, self._n = columns, rows, columns.graph.n
        found = [_group(columns, *some) for some in cells]
        parts = (np.concatenate(part) for part in zip(*found, strict=True))
        self.key, self.sums, self.reach, self.held = parts
        if columns.takes_negatives and len(self.key):
            self._count_all_cells()
        self.touched = np.ones(len(self.key), bool)
        self.else_zeros = getattr(rows, "absent", None) == "zero"
        if self.else_zeros:
            self._add_absent_zeros()

    def _count_all_cells(self) -> None:
        """Count all cells of a row for its one component, as signed margins do.

        Cells of columns that sum to zero have factor 0, but belong to the row's sum.
        Where they are all of it, observed zeros decide which component it is.
        """
        rows = self.key // self._n
        rows, known = rows - rows[0], self.reach != 0.0
        n_held, n_known = np.bincount(rows, self.held), np.bincount(rows, known)
        total = weighted_counts(rows, self.sums, len(n_held))[rows]
        held = self.held | (known & (n_held[rows] == 0) & (n_known[rows] == 1))
        held &= total != 0.0  # a row of sum 0 has factor 0
        is_total = held & (np.bincount(rows, held)[rows] == 1)
        is_total |= total == 0.0
        self.sums, self.held = np.where(is_total, total, self.sums), held

    def _add_absent_zeros(self) -> None:
        """Let absent cells count as zeros: all cells but the holes are observed."""
        source, n, label = self._rows, self._n, self._columns.graph.label
        h, known = np.nan_to_num(self._columns.factor), label >= 0
        all_cols = np.bincount(label[known], minlength=n)
        totals = weighted_counts(label[known], h[known], n)
        shares = product(h, over=totals[label])  # of their component
        holes = np.flatnonzero(source.missing & known[source.cols])
        hole_cols = source.cols[holes]
        hole_key = source.row_of_cell[holes] * n + label[hole_cols]
        key = np.union1d(self.key, hole_key)
        component, at = key % n, np.searchsorted(key, hole_key)
        share = 1.0 - weighted_counts(at, shares[hole_cols], len(key))
        reach = totals[component] * share
        # Where nearly all of a sum is taken away, digits cancel: the cells are read.
        for k in np.flatnonzero(share < 0.25):
            row = int(key[k] // n)
            seen = ~np.isnan(source.rows(slice(row, row + 1))[0])
            reach[k] = h[seen & (label == component[k])].sum()
        sums, held = np.zeros(len(key)), np.zeros(len(key), bool)
        place = np.searchsorted(key, self.key)
        sums[place], held[place] = self.sums, self.held
        self.touched = np.bincount(at, minlength=len(key)) < all_cols[component]
        self.key, self.sums, self.reach, self.held = key, sums, reach, held

    # ------------------------------------------------------------------------ factors
    @cached_property
    def n_held(self) -> Ints:
        """In how many components each row is positive."""
        rows = self.key[self.held] // self._n
        return np.bincount(rows, minlength=self._rows.n_rows)

    @property
    def factors(self) -> Floats:
        """Factor of each row; NaN where it has none, or several."""
        rows, n_rows = self.key // self._n, self._rows.n_rows
        has_data = np.bincount(rows, self.sums != 0.0, minlength=n_rows) > 0
        touched = np.bincount(rows, self.touched, minlength=n_rows) > 0
        if self.else_zeros:  # then a row touches every component but those it misses
            label = self._columns.graph.label
            n_missed = np.bincount(rows, ~self.touched, minlength=n_rows)
            touched = n_missed < len(np.unique(label[label >= 0]))
        factors, data = np.where(~has_data & touched, 0.0, np.nan), np.zeros(n_rows)
        single = np.flatnonzero(self.held & (self.n_held[rows] == 1))
        data[rows[single]] = self.sums[single]
        factors[rows[single]] = product(self.sums[single], over=self.reach[single])
        check_rows(factors, data)
        return factors

    # ------------------------------------------------------------------------- values
    def values(self, i: Ints, j: Ints, exposure: Floats | None) -> Floats:
        """Values of cells; NaN where the data determine none."""
        component = self._columns.graph.label[j].astype(np.int64)
        known = component >= 0
        key = i * self._n + component
        at = np.minimum(np.searchsorted(self.key, key), max(len(self.key) - 1, 0))
        is_there = np.zeros(len(i), bool)
        if len(self.key):
            is_there = known & (self.key[at] == key)
        touched = known & self.else_zeros
        touched[is_there] = self.touched[at[is_there]]
        out = np.where(touched, 0.0, np.nan)
        rest = np.flatnonzero(known & ~touched)
        out[rest] = self._unreached(i[rest], component[rest])
        held = np.flatnonzero(is_there)
        held = held[self.held[at[held]]]
        factors = [self.sums[at[held]], self._columns.factor[j[held]]]
        if exposure is not None:
            factors.append(exposure[held])
        out[held] = product(*factors, over=self.reach[at[held]])
        return out if exposure is None else with_exposure(out, exposure)

    def _unreached(self, i: Ints, component: Ints) -> Floats:
        """0 or NaN for cells of components in which their row observes nothing."""
        out, graph, n = np.full(len(i), np.nan), self._columns.graph, self._n
        if not len(i) or not len(graph.edges):
            return out
        rows, at = np.unique(i, return_inverse=True)
        start, stop = np.searchsorted(self.key, (rows * n, (rows + 1) * n)).tolist()
        state = self.key % n * 4 + self.held * 2 + self.touched
        # Rows that observe the same components share their fates.
        known: dict[bytes, int] = {}
        names = (state[a:b].tobytes() for a, b in zip(start, stop, strict=True))
        kind = np.array([known.setdefault(name, len(known)) for name in names])[at]
        order = np.argsort(kind, kind="stable")
        for cells in np.split(order, np.flatnonzero(np.diff(kind[order])) + 1):
            row = at[cells[0]]
            keys = slice(start[row], stop[row])
            observed, touched = self.key[keys] % n, np.full(n, self.else_zeros)
            touched[observed] = self.touched[keys]
            held = observed[self.held[keys]]
            fates = fates_of_row(graph, held, np.flatnonzero(touched))
            out[cells] = np.where(fates[component[cells]] == ZERO, 0.0, np.nan)
        return out


def _group(
    columns: Columns, rows: Ints, cols: Ints, x: Floats, v: Floats | None
) -> tuple[Ints, Floats, Floats, Bools]:
    """Key, sum, reach of each group, and whether it holds the row."""
    label, n = columns.graph.label[cols], columns.graph.n
    used = label >= 0
    if not used.all():
        rows, cols, x, label = rows[used], cols[used], x[used], label[used]
        v = None if v is None else v[used]
    h = np.nan_to_num(columns.factor[cols])
    key, place = _numbered(rows * n + label)
    size = len(key)
    held = np.bincount(place[(x != 0.0) & (h != 0.0)], minlength=size) > 0
    with np.errstate(over="ignore"):
        if v is not None:
            if not columns.exposed:  # only their ratios count
                most = np.zeros(size)
                np.maximum.at(most, place, v)
                v = np.ldexp(v, -np.frexp(most)[1][place])
                x = x * v
            h = h * v
        sums, reach = (weighted_counts(place, values, size) for values in (x, h))
    lost = held & np.isinf(sums)
    if v is not None:
        lost |= held & ((np.abs(sums) < LOW) | (reach < LOW) | np.isinf(reach))
    if lost.any():
        raise out_of_range("row", int(key[lost.argmax()] // n))
    return key, sums, reach, held


def _numbered(keys: Ints) -> tuple[Ints, Ints]:
    """Distinct keys, ascending, and the position of each key among them."""
    if not len(keys):
        return keys, keys
    low = int(keys.min())
    span = int(keys.max()) - low + 1
    if span > 4 * len(keys) + 1024:
        found, place = np.unique(keys, return_inverse=True)
        return found, place.ravel()
    is_there = np.zeros(span, bool)  # without sorting
    is_there[keys - low] = True
    return np.flatnonzero(is_there) + low, (np.cumsum(is_there) - 1)[keys - low]


# ------------------------------------------------------------- the rows of a fit
class UndeterminedCell(NamedTuple):
    """A missing cell that the data do not determine."""

    row: int
    column: int
    kind: Fate


class UndeterminedCells(Sequence[Any]):
    """Missing cells without a value: tuples of positions and kind, and their arrays.

    ``positions`` has an array per mode, ``code`` the kinds as numbers.
    """

    def __init__(self, *parts: AnyArray) -> None:
        *positions, self.code = parts
        self.positions: tuple[Ints, ...] = tuple(positions)

    @property
    def row(self) -> Ints:
        """Position of each cell along the first mode."""
        return self.positions[0]

    @property
    def column(self) -> Ints:
        """Position of each cell along the second mode."""
        return self.positions[1]

    @property
    def kind(self) -> AnyArray:
        """Kind of each cell, as text."""
        return np.array(FATES)[self.code]

    def __len__(self) -> int:
        return len(self.code)

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> UndeterminedCells: ...
    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return UndeterminedCells(
                *(own[at] for own in self.positions), self.code[at]
            )
        cell: Any = *(int(own[at]) for own in self.positions), FATES[self.code[at]]
        return UndeterminedCell(*cell) if len(self.positions) == 2 else cell

    def __repr__(self) -> str:
        shown = ", ".join(repr(tuple(cell)) for cell in self[:3])
        more = ", ..." if len(self) > 3 else ""
        return (
            f"<{counted(len(self), 'undetermined cell')}{shown and ': '}{shown}{more}>"
        )

    def _repr_html_(self) -> str:
        some = [[str(i), str(j), kind] for i, j, kind in self[:MOST_SHOWN]]
        left = len(self) - len(some)
        notes = [f"... {left:,} more"] if left else []
        title = counted(len(self), "undetermined cell")
        return f"<p>{title}</p>{html_grid([['row', 'column', 'kind'], *some], notes)}"


class Totals(NamedTuple):
    """Counts over all rows."""

    n_empty_rows: int  # without an observed cell
    n_given_up: int  # observed zeros between components
    fates: Ints  # missing cells of each fate

    @property
    def n_undetermined(self) -> int:
        """Missing cells that cannot be known (unbounded and undetermined)."""
        return int(self.fates[UNBOUNDED:].sum())


class Fates:
    """The fate of every missing cell of the rows of a fit.

    Rows of one pattern share their fates, except rows of zeros: nothing leads to such a
    row, while it leads to whatever it observes. So a row belongs to a *class*: the
    component of its pattern, or, for a row of zeros, its pattern.
    """

    def __init__(self, solved: Solved, rows: FitRows) -> None:
        self.rows, self.patterns = rows, solved.statistics
        factors, found = solved.factors, solved.components
        self.graph = ColumnGraph(factors.col_block, factors.n_blocks)
        self.component = factors.pattern_block  # or NOTHING, or ZEROS
        if solved.graph is not None:
            self.graph = solved.graph
        elif solved.leads_to_zeros:
            self.graph = ColumnGraph.star(factors.col_block)
            self.component = np.where(self.component < 0, np.int32(ZEROS), 0)
        elif found is not None:
            self.graph = found.column_graph(self.patterns)
            nothing = np.where(self.patterns.nonempty_patterns(), ZEROS, NOTHING)
            own = np.where(found.patterns_with_data(), found.pattern, nothing)
            self.component = own.astype(np.int32)
        # Only margins count with negative cells, and no observed zero is given up.
        is_signed = self.patterns.n_negative > 0
        self._positive_cols: Bools = (self.patterns.col_sums > 0.0) & (not is_signed)

    # ---------------------------------------------------------------------- classes
    def _of_class(self, row_class: int) -> SmallInts:
        """Fate by component of the column; the last place is for empty columns."""
        n, none = self.graph.n, np.zeros(0, np.int64)
        if row_class < 0:
            return np.full(n + 1, EMPTY, np.int32)
        if row_class < n:
            return fates_of_row(self.graph, np.array([row_class]), none)
        pattern = row_class - n
        observed = self.patterns.observed_cells(slice(pattern, pattern + 1))[0]
        return fates_of_row(self.graph, none, np.unique(self.graph.label[observed]))

    def _table(self, patterns: Ints, is_zero: Bools) -> tuple[SmallInts, Ints]:
        """Fates by component for each class of rows, and the position of each row."""
        component = self.component[patterns].astype(np.int64)
        is_zero = (component == ZEROS) | (is_zero & (component >= 0))
        classes = np.where(is_zero, self.graph.n + patterns, component)
        unique, place = np.unique(classes, return_inverse=True)
        table = np.array([self._of_class(int(c)) for c in unique], np.int32)
        return table.reshape(len(unique), self.graph.n + 1), place.ravel()

    # ------------------------------------------------------------------------ cells
    def of_rows(self, start: int, stop: int) -> SmallInts:
        """Fate of every cell of some rows, were it missing."""
        return self.of_patterns(*self.rows.read(start, stop))

    def of_patterns(self, patterns: Ints, is_zero: Bools) -> SmallInts:
        """Fate of every cell of rows of these patterns, were it missing."""
        table, place = self._table(patterns, is_zero)
        return table[:, self.graph.label][place]

    def of_cells(self, rows: Ints, cols: Ints) -> SmallInts:
        """Fate of the cells (rows[k], cols[k]), were they missing."""
        out = np.zeros(len(rows), np.int32)
        piece = rows // self._step
        for k in np.unique(piece):
            chosen = np.flatnonzero(piece == k)
            first, last = int(rows[chosen].min()), int(rows[chosen].max())
            patterns, is_zero = self.rows.read(first, last + 1)
            within = rows[chosen] - first
            table, place = self._table(patterns[within], is_zero[within])
            out[chosen] = table[place, self.graph.label[cols[chosen]]]
        return out

    def observed(self, start: int, stop: int) -> Bools:
        """Observed cells of some rows."""
        patterns, _ = self.rows.read(start, stop)
        return self.patterns.observed_cells(patterns)

    @property
    def _step(self) -> int:
        return max(1, CELLS_AT_ONCE // len(self.graph.label))

    def pieces(self, step: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield ranges of rows, a bounded number of cells at a time."""
        n, step = self.rows.n_rows, step or self._step
        for start in range(0, n, step):
            yield start, min(start + step, n)

    # --------------------------------------------------------------------- counting
    @cached_property
    def totals(self) -> Totals:
        """Counts over all rows."""
        gone: Any = self.patterns
        if isinstance(gone, PatternsGone):
            return Totals(gone.n_empty_rows, gone.n_given_up, gone.fates)
        label, n = self.graph.label, self.graph.n
        cols = np.bincount(label % (n + 1), minlength=n + 1)  # last: empty columns
        with_data = np.zeros(n, np.int64)  # rows of each component
        rows_of: dict[int, int] = {}  # of other classes
        counts = np.zeros(len(FATES), np.int64)
        n_empty = n_given_up = 0
        for some in self.patterns.stretches():
            component = self.component[some]
            n_rows, n_zero = self.rows.pattern_counts(some)
            known, is_empty = component >= 0, component == NOTHING
            n_data = np.where(known, n_rows - n_zero, 0)
            observed, inside, between = self.patterns.count_cells(
                some, component, label, self._positive_cols
            )
            # A row reaches whatever it observes: such cells are finite or 0.
            n_finite = int(inside @ n_data)
            counts[FINITE] -= n_finite
            counts[ZERO] -= int(observed @ n_rows) - n_finite
            n_given_up += int(between @ n_data)
            n_empty += int(n_rows[is_empty].sum())
            np.add.at(with_data, component[known], n_data[known])
            zeros = np.where(is_empty, 0, n_rows - n_data)
            for k in np.flatnonzero(zeros).tolist():
                rows_of[n + some.start + k] = int(zeros[k])
        counts[EMPTY] += n_empty * len(label)
        if len(self.graph.edges):
            rows_of |= {c: with_data[c] for c in np.flatnonzero(with_data).tolist()}
        else:  # there may be many components, and none leads to another
            found = int(with_data @ cols[:-1]), int(with_data.sum() * cols[-1])
            counts[[FINITE, EMPTY]] += found
            counts[UNDETERMINED] += int(with_data.sum()) * len(label) - sum(found)
        for row_class, times in rows_of.items():
            cells = np.bincount(self._of_class(row_class), cols, minlength=len(FATES))
            counts += times * cells.astype(np.int64)
        return Totals(n_empty, n_given_up, counts)

    # --------------------------------------------------------------------- the cells
    def unknown_cells(
        self, *, below: int = EMPTY + 1
    ) -> Iterator[tuple[Ints, Ints, AnyArray]]:
        """Yield rows, columns and codes of the missing cells without a value."""
        for start, stop in self.pieces():
            fates = self.of_rows(start, stop)
            unknown = (fates >= UNBOUNDED) & (fates < below)
            if unknown.any():
                i, j = np.nonzero(unknown & ~self.observed(start, stop))
                if len(i):
                    yield start + i, j, fates[i, j]

    @cached_property
    def undetermined(self) -> UndeterminedCells:
        """All missing cells without a value, row by row."""
        none = np.zeros(0, np.int64)
        found = [(none, none, none), *self.unknown_cells()]
        parts = (np.concatenate(part) for part in zip(*found, strict=True))
        return UndeterminedCells(*parts)

    def zeros_given_up(self) -> Iterator[tuple[Ints, Ints]]:
        """Yield rows and columns of the observed zeros that no minimiser fits."""
        for start, stop in self.pieces():
            patterns, is_zero = self.rows.read(start, stop)
            component = self.component[patterns]
            apart = self.patterns.observed_cells(patterns) & self._positive_cols
            apart &= component[:, None] != self.graph.label
            apart[is_zero | (component < 0)] = False
            i, j = np.nonzero(apart)
            yield start + i, j

    def first(self, cells: Iterable[Any]) -> tuple[int, int] | None:
        """Position of the first of some cells; None where the rows are gone."""
        positions = ((int(i[0]), int(j[0])) for i, j, *_ in cells if len(i))
        return next(positions, None) if self.rows.is_kept else None

    def empty_rows(self, most: int) -> tuple[list[int], int]:
        """The first rows without an observed cell, and how many there are."""
        n_empty, found = self.totals.n_empty_rows, []
        if n_empty and self.rows.is_kept:
            for start, stop in self.pieces(self.patterns.patterns_at_once):
                component = self.component[self.rows.read(start, stop)[0]]
                found += (start + np.flatnonzero(component == NOTHING)).tolist()
                if len(found) >= most:
                    break
        return found[:most], n_empty

    def col_blocks(self) -> SmallInts:
        """Block of each column, numbered by patterns where the rows are gone."""
        component = np.maximum(self.component, -1)
        has_rows = np.isin(self.graph.label, component)
        label = np.where(has_rows, self.graph.label, -1)
        return number_by_rows(component, label, self.graph.n)[1]

    def row_blocks(self) -> tuple[Any, SmallInts]:
        """Block of each row and column, in the order of first rows.

        -1 if it observes nothing, or zeros only. Rows that are not held are numbered
        where they are looked at.
        """
        n, n_rows = self.graph.n, self.rows.n_rows
        first = np.full(n, n_rows)  # row of each component
        for start, stop in self.pieces(ROWS_AT_ONCE):
            component = self.component_of_rows(start, stop)
            known = np.flatnonzero(component >= 0)
            here, at = np.unique(component[known], return_index=True)
            first[here] = np.minimum(first[here], start + known[at])
        order = np.argsort(first, kind="stable")[: int((first < n_rows).sum())]
        number = np.full(n + 1, -1, np.int32)  # the last: no component
        number[order] = np.arange(len(order))

        def of_rows(start: int, stop: int) -> SmallInts:
            return number[np.maximum(self.component_of_rows(start, stop), -1)]

        lazy = LazyRows(n_rows, of_rows, np.int32)
        blocks = np.asarray(lazy) if self.rows.is_held else lazy
        return blocks, number[self.graph.label]

    def component_of_rows(self, start: int, stop: int) -> SmallInts:
        """Component of each of some rows, or NOTHING, or ZEROS."""
        patterns, is_zero = self.rows.read(start, stop)
        component = self.component[patterns]
        component[is_zero & (component >= 0)] = ZEROS
        return component
