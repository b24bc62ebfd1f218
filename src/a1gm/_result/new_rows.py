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

from a1gm._base.float_range import LEAST, product
from a1gm._base.types import Bools, Floats, Ints, Negatives, SmallInts
from a1gm._observe.observe import observe
from a1gm._observe.statistics import weighted_counts
from a1gm._result.fates import ZERO, fates_of_row
from a1gm._result.messages import text_of_unplaced_rows
from a1gm._solve.column_graph import ColumnGraph
from a1gm._sources.cells import check_piece, check_stored_cells
from a1gm._sources.dense import Part, Source
from a1gm._sources.read import AnySource
from a1gm._sources.sparse import SparseSource
from a1gm.exceptions import NotRepresentableError, ParameterError

__all__ = ["NewRows", "Placed"]

HUGE = 2.0**900  # sums of larger cells may overflow


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
    needs_weights : bool
        Whether the fit had weights, so that rows cannot be placed without theirs.
    """

    col_factor: Floats
    graph: ColumnGraph
    has_negatives: bool = False
    needs_weights: bool = False

    @property
    def negatives(self) -> Negatives:
        """What to do with cells below zero."""
        return "allow" if self.has_negatives else "raise"

    def place(self, source: AnySource, V: Any = None) -> Placed:
        """Place the rows of a table; ``V`` are the weights of its cells, as read."""
        if self.needs_weights and V is None:
            raise ParameterError(
                "The fit had weights, so rows are placed by their weighted cells. Pass "
                "them in memory, with fit.impute(rows, weights=...)."
            )
        if self.graph.is_single and V is None:
            return _OneBlockRows(_row_factors(self, source), self.col_factor)
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


def _row_factors(rule: NewRows, source: AnySource) -> Floats:
    """Row sums over the sums of the observed columns' factors, pattern by pattern."""
    seen = observe(source, negatives=rule.negatives)
    line = slice(None) if seen.line_of_row is None else seen.line_of_row
    reach = seen.statistics.reach(rule.col_factor)[line]
    sums, has_data = seen.row_sums, seen.row_sums != 0.0
    with np.errstate(all="ignore"):
        factors: Floats = sums / reach
    if seen.exponent or not _in_range(factors)[has_data].all():
        factors = product(sums, over=reach, exponent=seen.exponent)
    if not has_data.all():
        factors[~has_data] = np.where(reach[~has_data] > 0.0, 0.0, np.nan)
    _check_range(factors, has_data)
    return factors


def _in_range(factors: Floats) -> Bools:
    inside: Bools = np.isfinite(factors) & (np.abs(factors) >= LEAST)
    return inside


def _check_range(factors: Floats, has_data: Bools) -> None:
    bad = has_data & (~np.isfinite(factors) | (factors == 0.0))
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
    exponent: SmallInts  # of the power of two by which the sums are divided
    is_touched: Bools  # something is observed
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
        factors[rows[own]] = product(
            g.sums[own], over=g.reach[own], exponent=g.exponent[own]
        )
        is_own = np.zeros(self._n_rows, bool)
        is_own[rows[own]] = g.sums[own] != 0.0
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
        out[own] = product(
            g.sums[place], h, over=g.reach[place], exponent=g.exponent[place]
        )
        if np.isinf(out[own]).any():
            raise NotRepresentableError(
                "The value of a missing cell is above the largest float64 (1.8e308). "
                "Divide the rows by a power of ten first."
            )
        rest = np.flatnonzero(~touched & (component >= 0))
        out[rest] = self._unreached(i[rest], component[rest])
        return out

    def _unreached(self, i: Ints, component: Ints) -> Floats:
        """0 or NaN for cells of components in which their row observes nothing."""
        out = np.full(len(i), np.nan)
        order = np.argsort(i, kind="stable")
        rows, first = np.unique(i[order], return_index=True)
        ends = np.append(first[1:], len(i))
        names = self._class_of(rows)
        # Rows that touch the same components share their fates.
        for name in np.unique(names):
            chosen = np.flatnonzero(names == name)
            fates = self._fates_of(int(rows[chosen[0]]))
            lengths = ends[chosen] - first[chosen]
            within = np.arange(lengths.sum()) - np.repeat(
                np.cumsum(lengths) - lengths, lengths
            )
            cells = order[np.repeat(first[chosen], lengths) + within]
            out[cells] = np.where(fates[component[cells]] == ZERO, 0.0, np.nan)
        return out

    def _class_of(self, rows: Ints) -> Ints:
        """Number of the class of each row: rows of one class observe alike."""
        g, n = self._groups, self._rule.graph.n
        state = g.key % n * 4 + g.is_positive * 2 + g.is_touched
        start, stop = np.searchsorted(g.key, (rows * n, (rows + 1) * n))
        is_one = stop - start == 1
        names = np.full(len(rows), -1)
        names[is_one] = state[start[is_one]]
        known: dict[bytes, int] = {}
        for k in np.flatnonzero(stop - start > 1).tolist():
            name = state[start[k] : stop[k]].tobytes()
            names[k] = 4 * n + known.setdefault(name, len(known))
        return names

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
    found = [_group(rule, cells) for cells in _observed_cells(rule, source, V)]
    key, sums, reach, positive, exponent = (
        np.concatenate(part) for part in zip(*found, strict=True)
    )
    if rule.has_negatives:
        sums = _with_zero_columns(sums, exponent, positive, key // rule.graph.n)
    groups = _Groups(key, sums, reach, positive, exponent, np.ones(len(key), bool))
    if isinstance(source, SparseSource) and source.absent == "zero":
        return _with_absent_zeros(rule, source, groups)
    return groups


def _with_zero_columns(
    sums: Floats, exponent: SmallInts, positive: Bools, rows: Ints
) -> Floats:
    """Count all cells of a row for its one component, as margins of signed cells do.

    Cells of columns that sum to zero have factor 0, but belong to the row's sum.
    """
    n_positive = np.bincount(rows, positive)
    own = positive & (n_positive[rows] == 1)
    first = np.zeros(len(n_positive), np.int32)
    first[rows[own]] = exponent[own]
    with np.errstate(over="ignore"):
        total = np.bincount(rows, np.ldexp(sums, exponent - first[rows]))
    return np.where(own, total[rows], sums)


def _observed_cells(rule: NewRows, source: AnySource, V: Any) -> Iterator[_Cells]:
    """Yield the observed cells, some rows at a time; raise for bad ones.

    Cells of weight 0 are as good as missing, whatever stands in them.
    """
    if isinstance(source, SparseSource):
        if V is not None:
            used = np.where(V.values > 0.0, source.values, np.nan)
            source = source.with_values(used)
        check_stored_cells(source, rule.negatives)
        seen = ~source.missing
        rows, cols = source.lines[seen], source.cols[seen].astype(np.int64)
        yield rows, cols, source.values[seen], None if V is None else V.values[seen]
        return
    for some, cells in source.blocks():
        piece = cells if V is None else np.where(V[some] > 0.0, cells, np.nan)
        check_piece(source, piece, some.start, rule.negatives)
        i, j = np.nonzero(~np.isnan(piece))
        v = None if V is None else V[some][i, j]
        yield i + some.start, j, piece[i, j], v


def _group(
    rule: NewRows, cells: _Cells
) -> tuple[Ints, Floats, Floats, Bools, SmallInts]:
    """Sums of the cells of each group, at a power of two where they are in range."""
    rows, cols, x, v = cells
    label = rule.graph.label[cols]
    used = label >= 0
    if not used.all():
        rows, cols, x, label = rows[used], cols[used], x[used], label[used]
        v = None if v is None else v[used]
    share = np.nan_to_num(rule.col_factor[cols])
    is_tied = (x != 0.0) & (share > 0.0)
    key, place = _numbered(rows * rule.graph.n + label)
    size = len(key)
    exponent = np.zeros(size, np.int32)
    if v is not None:  # only ratios of the weights of a group count
        v, _ = _at_most_one(v, place, size)
        share = share * v
    if len(x) and (np.abs(x).max() > HUGE or v is not None):
        x, exponent = _at_most_one(x, place, size)
    x = x if v is None else x * v
    positive = np.bincount(place[is_tied], minlength=size) > 0
    reach = weighted_counts(place, share, size)
    return key, weighted_counts(place, x, size), reach, positive, exponent


def _numbered(keys: Ints) -> tuple[Ints, Ints]:
    """Different keys, ascending, and the place of each key among them."""
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


def _at_most_one(x: Floats, place: Ints, size: int) -> tuple[Floats, SmallInts]:
    """Divide each group by a power of two: none of its numbers is above 1."""
    of_cell = np.frexp(x)[1]
    exponent = np.full(size, np.iinfo(np.int16).min, np.int32)
    np.maximum.at(exponent, place, of_cell)
    return np.ldexp(x, -exponent[place]), exponent


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
    exponent = np.zeros(len(key), np.int32)
    sums[place], is_positive[place] = stored.sums, stored.is_positive
    exponent[place] = stored.exponent
    touched = n_holes < all_cols[component]
    return _Groups(key, sums, reach, is_positive, exponent, touched, else_zeros=True)
