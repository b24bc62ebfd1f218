"""The one rule for rows of any origin: they are placed by their own cells.

A missing cell gets its value from the row's observed cells of the same component:
their sum over the sum of their columns' factors, times the factor of its own column.
Where the row is nowhere positive in that component, reachability decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from a1gm._base.float_range import check_cells, check_rows, out_of_range, product
from a1gm._base.types import Bools, Floats, Ints, Negatives
from a1gm._fit import one_pass
from a1gm._fit.fates import ZERO, fates_of_row
from a1gm._fit.messages import text_of_unplaced_rows
from a1gm._observe.observe import observe
from a1gm._observe.statistics import weighted_counts
from a1gm._rows.read import AnyRows
from a1gm._rows.rows import Rows, check_piece
from a1gm._rows.sparse import SparseRows, check_stored_cells
from a1gm._rows.weights import cell_weights
from a1gm._solve.column_graph import ColumnGraph
from a1gm.exceptions import ParameterError

LOW = 2.0**-1015  # smaller sums of weighted cells have lost digits


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
    is_exposed : bool
        Whether these weights are exposures: the factors are rates then.
    """

    col_factor: Floats
    graph: ColumnGraph
    has_negatives: bool = False
    needs_weights: bool = False
    is_exposed: bool = False

    @property
    def negatives(self) -> Negatives | None:
        """What to do with cells below zero; the option is the fit's, not of rows."""
        return "allow" if self.has_negatives else None

    def in_order(self, order: Ints | None) -> NewRows:
        """The same rule for rows whose columns are in another order."""
        if order is None:
            return self
        graph = replace(self.graph, label=self.graph.label[order])
        return replace(self, col_factor=self.col_factor[order], graph=graph)

    def place(self, source: AnyRows, V: Any = None) -> Placed:
        """Place the rows of a table; ``V`` are the weights of its cells, as read."""
        if self.needs_weights and V is None:
            name = "exposure" if self.is_exposed else "weights"
            raise ParameterError(
                f"The fit had {name}, so rows are placed by their weighted cells. Pass "
                f"theirs in memory, with fit.impute(rows, {name}=...)."
            )
        h = self.plain_factors(V)
        if h is not None:
            factors = None
            if isinstance(source, Rows):
                factors = one_pass.row_factors(
                    source, h, takes_negatives=self.has_negatives
                )
            if factors is None:
                factors = _row_factors(h, source, self.negatives)
            return _OneBlockRows(factors, h)
        groups = _grouped(self, source, V)
        exposure = V if self.is_exposed else None
        return _SeveralBlocksRows(self, groups, source.n_rows, exposure)

    def divergence(self, source: AnyRows, V: Any = None) -> float | None:
        """Divergence of rows in one pass; None where that is not possible."""
        h = self.plain_factors(V)
        if h is None or not isinstance(source, Rows):
            return None
        found = one_pass.divergence(source, h)
        return None if found is None else found[0]

    def plain_factors(self, V: Any) -> Floats | None:
        """Column factors, where rows need no more to be placed."""
        is_plain = self.graph.is_single and V is None and not self.needs_weights
        return self.col_factor if is_plain else None


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


def _row_factors(h: Floats, source: AnyRows, negatives: Negatives | None) -> Floats:
    """Row sums over the sums of the observed columns' factors, pattern by pattern."""
    seen = observe(source, negatives=negatives)
    line = slice(None) if seen.line_of_row is None else seen.line_of_row
    reach = seen.statistics.reach(h)[line]
    sums, has_data = seen.row_sums, seen.row_sums != 0.0
    with np.errstate(all="ignore"):
        factors = product(sums, over=reach, exponent=seen.exponent)
    if not has_data.all():
        factors[~has_data] = np.where(reach[~has_data] > 0.0, 0.0, np.nan)
    check_rows(factors, sums)
    return factors


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
    else_zeros: bool = False


class _SeveralBlocksRows:
    """Rows placed in each component by what they observe of it."""

    def __init__(
        self, rule: NewRows, groups: _Groups, n_rows: int, exposure: Any = None
    ) -> None:
        self._rule, self._groups, self._n_rows = rule, groups, n_rows
        self._exposure = exposure
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
        factors[rows[own]] = product(g.sums[own], over=g.reach[own])
        data = np.zeros(self._n_rows)
        data[rows[own]] = g.sums[own]
        check_rows(factors, data)
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
        exposure = np.ones(1)
        if self._exposure is not None:
            exposure = cell_weights(self._exposure, i, j)
        times = exposure if self._exposure is None else exposure[own]
        out[own] = product(g.sums[place], h, times, over=g.reach[place])
        rest = np.flatnonzero(~touched & (component >= 0))
        out[rest] = self._unreached(i[rest], component[rest])
        if self._exposure is not None:
            out[exposure == 0.0] = 0.0  # nothing could be counted
            out[np.isnan(exposure)] = np.nan
        check_cells(out)
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


def _grouped(rule: NewRows, source: AnyRows, V: Any) -> _Groups:
    """Group the observed cells by row and component of the column."""
    found = [_group(rule, cells) for cells in _observed_cells(rule, source, V)]
    keys, all_sums, reaches, positives = zip(*found, strict=True)
    key, positive = np.concatenate(keys), np.concatenate(positives)
    sums, reach = np.concatenate(all_sums), np.concatenate(reaches)
    if rule.has_negatives:
        margins = _by_margins(sums, reach, positive, key // rule.graph.n)
        sums, positive = margins
    groups = _Groups(key, sums, reach, positive, np.ones(len(key), bool))
    if isinstance(source, SparseRows) and source.absent == "zero":
        return _with_absent_zeros(rule, source, groups)
    return groups


def _by_margins(
    sums: Floats, reach: Floats, positive: Bools, rows: Ints
) -> tuple[Floats, Bools]:
    """Count all cells of a row for its one component, as margins of signed cells do.

    Cells of columns that sum to zero have factor 0, but belong to the row's sum. Where
    they are all of it, observed zeros say which component it is.
    """
    known = reach != 0.0
    n_positive, n_known = np.bincount(rows, positive), np.bincount(rows, known)
    total = weighted_counts(rows, sums, len(n_positive))[rows]
    positive = positive | (known & (n_positive[rows] == 0) & (n_known[rows] == 1))
    positive &= total != 0.0  # a row of sum 0 has factor 0
    is_total = positive & (np.bincount(rows, positive)[rows] == 1)
    is_total |= total == 0.0
    return np.where(is_total, total, sums), positive


def _observed_cells(rule: NewRows, source: AnyRows, V: Any) -> Iterator[_Cells]:
    """Yield the observed cells, some rows at a time; raise for bad ones.

    Cells of weight 0 are as good as missing, whatever stands in them.
    """
    if isinstance(source, SparseRows):
        if V is not None:
            used = np.where(V.values > 0.0, source.values, np.nan)
            source = source.with_values(used)
        check_stored_cells(source, rule.negatives)
        seen = ~source.missing
        rows, cols = source.lines[seen], source.cols[seen].astype(np.int64)
        yield rows, cols, source.values[seen], None if V is None else V.values[seen]
        return
    for some, cells in source.blocks():
        V_some = None if V is None else V.rows(some)
        piece = cells if V_some is None else np.where(V_some > 0.0, cells, np.nan)
        check_piece(source, piece, some.start, rule.negatives)
        i, j = np.nonzero(~np.isnan(piece))
        v = None if V_some is None else V_some[i, j]
        yield i + some.start, j, piece[i, j], v


def _group(rule: NewRows, cells: _Cells) -> tuple[Ints, Floats, Floats, Bools]:
    """Sums of the cells of each group, and of the factors of their columns."""
    rows, cols, x, v = cells
    label = rule.graph.label[cols]
    used = label >= 0
    if not used.all():
        rows, cols, x, label = rows[used], cols[used], x[used], label[used]
        v = None if v is None else v[used]
    h = np.nan_to_num(rule.col_factor[cols])
    is_tied = (x != 0.0) & (h != 0.0)
    key, place = _numbered(rows * rule.graph.n + label)
    size = len(key)
    positive = np.bincount(place[is_tied], minlength=size) > 0
    with np.errstate(over="ignore"):
        if v is not None:
            if not rule.is_exposed:  # only their ratios count
                most = np.zeros(size)
                np.maximum.at(most, place, v)
                v = np.ldexp(v, -np.frexp(most)[1][place])
                x = x * v
            h = h * v
        sums, reach = (weighted_counts(place, values, size) for values in (x, h))
    lost = positive & np.isinf(sums)
    if v is not None:
        lost |= positive & ((np.abs(sums) < LOW) | (reach < LOW) | np.isinf(reach))
    if lost.any():
        raise out_of_range("row", int(key[lost.argmax()] // rule.graph.n))
    return key, sums, reach, positive


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


def _with_absent_zeros(rule: NewRows, source: SparseRows, stored: _Groups) -> _Groups:
    """Let the absent cells count as zeros: all cells but the holes are observed."""
    graph = rule.graph
    every, label = np.nan_to_num(rule.col_factor), graph.label
    known = label >= 0
    all_cols = np.bincount(label[known], minlength=graph.n)
    totals = weighted_counts(label[known], every[known], graph.n)
    h = product(every, over=totals[label])  # shares of their component
    holes = np.flatnonzero(source.missing & known[source.cols])
    hole_cols = source.cols[holes]
    hole_key = source.lines[holes] * graph.n + label[hole_cols]
    key = np.union1d(stored.key, hole_key)
    component = key % graph.n
    at = np.searchsorted(key, hole_key)
    n_holes = np.bincount(at, minlength=len(key))
    share = 1.0 - weighted_counts(at, h[hole_cols], len(key))
    reach = totals[component] * share
    # Where nearly all of a sum is taken away, digits cancel: the cells are read.
    for k in np.flatnonzero(share < 0.25):
        row = int(key[k] // graph.n)
        seen = ~np.isnan(source.rows(slice(row, row + 1))[0])
        seen &= label == component[k]
        reach[k] = every[seen].sum()
    sums, is_positive = np.zeros(len(key)), np.zeros(len(key), bool)
    place = np.searchsorted(key, stored.key)
    sums[place] = stored.sums
    is_positive[place] = stored.is_positive
    touched = n_holes < all_cols[component]
    return _Groups(key, sums, reach, is_positive, touched, else_zeros=True)
