"""The one rule for rows of any origin: they are placed by their own cells.

A missing cell gets its value from the row's observed cells of the same component:
their sum over the sum of their columns' factors, times the factor of its own column.
Where the row is nowhere positive in that component, reachability decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from a1gm._base.float_range import product
from a1gm._base.types import Bools, Floats, Ints, Negatives
from a1gm._observe.observe import observe
from a1gm._observe.statistics import weighted_counts
from a1gm._observe.weights import observe_weighted
from a1gm._result.fates import ZERO, fates_of_row
from a1gm._result.messages import text_of_unplaced_rows
from a1gm._solve.column_graph import ColumnGraph
from a1gm._sources.cells import check_piece, check_stored_cells
from a1gm._sources.dense import Part, Source
from a1gm._sources.read import AnySource
from a1gm._sources.sparse import SparseSource
from a1gm.exceptions import NotRepresentableError

__all__ = ["NewRows", "Placed"]

SPARE_BITS = 60  # cells whose sum overflows are divided by so many powers of two


@dataclass(frozen=True)
class NewRows:
    """Places rows, knowing the columns only.

    Attributes
    ----------
    col_factor : ndarray
        Factors of the columns.
    graph : ColumnGraph
        Which columns share a scale.
    has_negatives : bool
        Whether cells below zero are taken.
    """

    col_factor: Floats
    graph: ColumnGraph
    has_negatives: bool = False

    @property
    def negatives(self) -> Negatives:
        """What to do with cells below zero."""
        return "allow" if self.has_negatives else "raise"

    def place(self, source: AnySource, V: Any = None) -> Placed:
        """Place the rows of a table; ``V`` are the weights of its cells, as read."""
        if self.graph.is_single:
            return _OneBlockRows(_row_factors(self, source, V), self.col_factor)
        groups = _grouped(self, source, V)
        return _SeveralBlocksRows(self, groups, source.n_rows)

    def filled(self, values: Floats) -> Floats:
        """Rows with their holes filled; NaN where the data determine no value."""
        holes = np.isnan(values)
        if not holes.any():
            return values
        part: Part = (values, None, None, 0, 0)
        placed = self.place(Source([part], *values.shape))
        filled = values.copy(order="K")
        # Column by column, which is how pieces of files are stored.
        for j in np.flatnonzero(holes.any(axis=0)):
            i = np.flatnonzero(holes[:, j])
            filled[i, j] = placed.values(i, np.full(len(i), j))
        return filled


# ---------------------------------------------------------------------- one block
@dataclass(frozen=True)
class _OneBlockRows:
    """Rows of a table in which every column has data and all share a scale."""

    factors: Floats
    col_factor: Floats

    def values(self, i: Ints, j: Ints) -> Floats:
        """Values of missing cells."""
        values: Floats = self.factors[i] * self.col_factor[j]
        return values

    def unplaced(self) -> str:
        """Say which rows observe nothing."""
        return text_of_unplaced_rows(
            np.flatnonzero(np.isnan(self.factors)).tolist(), []
        )


def _row_factors(rule: NewRows, source: AnySource, V: Any) -> Floats:
    """Row sums over the sums of the observed columns' factors, pattern by pattern."""
    if V is None:
        seen = observe(source, negatives=rule.negatives)
    else:
        seen = observe_weighted(source, V)
    line = slice(None) if seen.line_of_row is None else seen.line_of_row
    reach = seen.statistics.reach(rule.col_factor)[line]
    factors = product(seen.row_sums, over=reach, exponent=seen.exponent)
    has_data = seen.row_sums != 0.0
    factors[~has_data] = np.where(reach[~has_data] > 0.0, 0.0, np.nan)
    _check_range(factors, has_data)
    return factors


def _check_range(factors: Floats, has_data: Bools) -> None:
    bad = has_data & ~(np.isfinite(factors) & (factors != 0.0))
    if bad.any():
        raise NotRepresentableError(
            f"The factor of row {int(bad.argmax())} is outside the range of float64 "
            "(about 1e-308 to 1e308). Multiply the rows by a power of ten first."
        )


# ----------------------------------------------------------------- several blocks
@dataclass(frozen=True)
class _Groups:
    """What each row observes of each component.

    ``key`` is row times number of components plus component, ascending; a key that is
    not there stands for nothing observed, or, ``else_zeros``, for zeros.
    """

    key: Ints
    sums: Floats
    reach: Floats  # sum of the observed columns' factors
    is_positive: Bools
    is_touched: Bools  # something is observed
    exponent: int = 0
    else_zeros: bool = False


class _SeveralBlocksRows:
    """Rows placed in each component by what they observe of it."""

    def __init__(self, rule: NewRows, groups: _Groups, n_rows: int) -> None:
        self._rule, self._groups, self._n_rows = rule, groups, n_rows
        self._fates: dict[bytes, Any] = {}

    @cached_property
    def _row_of_key(self) -> Ints:
        return self._groups.key // self._rule.graph.n

    @cached_property
    def _n_positive(self) -> Ints:
        """In how many components each row is positive."""
        chosen = self._row_of_key[self._groups.is_positive]
        return np.bincount(chosen, minlength=self._n_rows)

    @cached_property
    def factors(self) -> Floats:
        """Factor of each row; NaN where it has none, or several."""
        g, rows, label = self._groups, self._row_of_key, self._rule.graph.label
        has_data = np.bincount(rows, g.sums != 0.0, minlength=self._n_rows) > 0
        touched = np.bincount(rows, g.is_touched, minlength=self._n_rows) > 0
        if g.else_zeros:  # then a row touches every component but those it misses
            n_missed = np.bincount(rows, ~g.is_touched, minlength=self._n_rows)
            touched = n_missed < len(np.unique(label[label >= 0]))
        known = ~has_data & touched
        factors = np.where(known, 0.0, np.nan)
        own = np.flatnonzero(g.is_positive & (self._n_positive[rows] == 1))
        found = product(g.sums[own], over=g.reach[own], exponent=g.exponent)
        factors[rows[own]] = found
        is_own = np.zeros(self._n_rows, bool)
        is_own[rows[own]] = True
        _check_range(factors, is_own)
        return factors

    def unplaced(self) -> str:
        """Say which rows have no factor, and why."""
        several = self._n_positive > 1
        none = np.isnan(self.factors) & ~several
        return text_of_unplaced_rows(
            np.flatnonzero(none).tolist(), np.flatnonzero(several).tolist()
        )

    def values(self, i: Ints, j: Ints) -> Floats:
        """Values of missing cells; NaN where the data determine none."""
        g, n = self._groups, self._rule.graph.n
        component = self._rule.graph.label[j].astype(np.int64)
        key = i * n + component
        at = np.minimum(np.searchsorted(g.key, key), max(len(g.key) - 1, 0))
        is_there = np.zeros(len(i), bool)
        if len(g.key):
            is_there = g.key[at] == key
        is_there &= component >= 0
        out = np.full(len(i), np.nan)
        touched = np.full(len(i), g.else_zeros) & (component >= 0)
        touched[is_there] = g.is_touched[at[is_there]]
        out[touched] = 0.0
        own = np.flatnonzero(is_there)
        own = own[g.is_positive[at[own]]]
        h, place = self._rule.col_factor[j[own]], at[own]
        out[own] = product(g.sums[place], h, over=g.reach[place], exponent=g.exponent)
        rest = np.flatnonzero(~touched & (component >= 0))
        out[rest] = self._unreached(i[rest], component[rest])
        return out

    def _unreached(self, i: Ints, component: Ints) -> Floats:
        """0 or NaN for cells of components in which their row observes nothing."""
        out = np.full(len(i), np.nan)
        for row in np.unique(i):
            chosen = i == row
            fates = self._fates_of(int(row))[component[chosen]]
            out[chosen] = np.where(fates == ZERO, 0.0, np.nan)
        return out

    def _fates_of(self, row: int) -> Any:
        g, n = self._groups, self._rule.graph.n
        keys = slice(*np.searchsorted(g.key, (row * n, (row + 1) * n)))
        component = g.key[keys] - row * n
        touched = np.full(n, g.else_zeros)
        touched[component] = g.is_touched[keys]
        own = np.zeros(n, bool)
        own[component] = g.is_positive[keys]
        name = np.packbits(own).tobytes() + np.packbits(touched).tobytes()
        if name not in self._fates:
            self._fates[name] = fates_of_row(
                self._rule.graph, np.flatnonzero(own), np.flatnonzero(touched)
            )
        return self._fates[name]


#: Rows that have their place: their factors, and the values of their holes.
Placed: TypeAlias = _OneBlockRows | _SeveralBlocksRows


# ------------------------------------------------------------- grouping the cells
# Row, column, value and weight of some cells.
_Cells: TypeAlias = tuple[Ints, Ints, Floats, Floats | None]


def _grouped(rule: NewRows, source: AnySource, V: Any) -> _Groups:
    """Group the observed cells by row and component of the column."""
    for exponent in (0, SPARE_BITS):  # again, if a sum overflows
        found = [_group(rule, c, exponent) for c in _observed_cells(rule, source, V)]
        key, sums, reach, positive = (
            np.concatenate(part) for part in zip(*found, strict=True)
        )
        if np.isfinite(sums).all():
            break
    groups = _Groups(key, sums, reach, positive, np.ones(len(key), bool), exponent)
    if isinstance(source, SparseSource) and source.absent == "zero":
        return _with_absent_zeros(rule, source, groups)
    return groups


def _observed_cells(rule: NewRows, source: AnySource, V: Any) -> Iterator[_Cells]:
    """Yield the observed cells, some rows at a time; raise for bad ones."""
    if isinstance(source, SparseSource):
        check_stored_cells(source, rule.negatives)
        seen = ~source.missing
        rows, cols = source.lines[seen], source.cols[seen].astype(np.int64)
        yield rows, cols, source.values[seen], None if V is None else V.values[seen]
        return
    for some, piece in source.blocks():
        check_piece(source, piece, some.start, rule.negatives)
        i, j = np.nonzero(~np.isnan(piece))
        v = None if V is None else V[some][i, j]
        yield i + some.start, j, piece[i, j], v


def _group(
    rule: NewRows, cells: _Cells, exponent: int
) -> tuple[Ints, Floats, Floats, Bools]:
    rows, cols, x, v = cells
    label = rule.graph.label[cols]
    used = label >= 0 if v is None else (label >= 0) & (v > 0.0)
    rows, cols, x, label = rows[used], cols[used], x[used], label[used]
    share = np.nan_to_num(rule.col_factor[cols])
    x = np.ldexp(x, -exponent) if exponent else x
    is_tied = (x != 0.0) & (share > 0.0)
    if v is not None:
        x, share = x * v[used], share * v[used]
    key, place = np.unique(rows * rule.graph.n + label, return_inverse=True)
    size = len(key)
    positive = np.bincount(place[is_tied], minlength=size) > 0
    reach = weighted_counts(place, share, size)
    return key, weighted_counts(place, x, size), reach, positive


def _with_absent_zeros(rule: NewRows, source: SparseSource, stored: _Groups) -> _Groups:
    """Let the absent cells count as zeros: all cells but the holes are observed."""
    graph = rule.graph
    h, label = np.nan_to_num(rule.col_factor), graph.label
    known = label >= 0
    all_reach = weighted_counts(label[known], h[known], graph.n)
    all_cols = np.bincount(label[known], minlength=graph.n)
    holes = np.flatnonzero(source.missing & known[source.cols])
    hole_cols = source.cols[holes]
    hole_key = source.lines[holes] * graph.n + label[hole_cols]
    key = np.union1d(stored.key, hole_key)
    component = key % graph.n
    at = np.searchsorted(key, hole_key)
    n_holes = np.bincount(at, minlength=len(key))
    reach = all_reach[component] - weighted_counts(at, h[hole_cols], len(key))
    # Where nearly all of a sum is taken away, digits cancel: the cells are read.
    for k in np.flatnonzero(reach < 0.25 * all_reach[component]):
        row = int(key[k] // graph.n)
        seen = ~np.isnan(source.rows(slice(row, row + 1))[0])
        reach[k] = h[seen & (label == component[k])].sum()
    sums, is_positive = np.zeros(len(key)), np.zeros(len(key), bool)
    place = np.searchsorted(key, stored.key)
    sums[place], is_positive[place] = stored.sums, stored.is_positive
    touched = n_holes < all_cols[component]
    return _Groups(
        key, sums, reach, is_positive, touched, stored.exponent, else_zeros=True
    )
