"""Factors of the entities that are in tables of weight 0 only.

Such a table does not steer the factors it shares, but its own entities still get
theirs. With the shared factors fixed, the best is a_n = sum_j Y_nj / sum_j h_j over the
observed cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from a1gm._base.float_range import product
from a1gm._base.types import Bools, Floats, SmallInts
from a1gm._observe.observation import Observation
from a1gm._observe.statistics import weighted_counts
from a1gm._solve.components import Components
from a1gm.exceptions import NotRepresentableError
from a1gm.nmmf.exponent import OUT_OF_RANGE
from a1gm.nmmf.join import JointTable
from a1gm.nmmf.layout import SharedTable
from a1gm.nmmf.solve import Solution

TOP = np.iinfo(np.int32).max


@dataclass
class Shares:
    """Factor and component of every entity set, by its number.

    Row sets have a factor per row, and a component per pattern. A component is -1 where
    nothing is known.
    """

    row_factor: dict[int, Floats]
    col_factor: dict[int, Floats] = field(default_factory=dict)
    pattern_component: dict[int, SmallInts] = field(default_factory=dict)
    col_component: dict[int, SmallInts] = field(default_factory=dict)


def share_factors(solution: Solution, rows: dict[int, Floats]) -> Shares:
    """Give every entity set its factors, those of passive tables included."""
    joint, layout = solution.joint, solution.joint.layout
    components = joint_components(solution)
    shares = Shares(rows)
    for r, place in joint.patterns.items():
        shares.pattern_component[r] = components.line[place]
    for c, place in joint.columns.items():
        shares.col_factor[c] = solution.col_factor[place]
        shares.col_component[c] = components.col[place]
    steering_rows, steering_cols = set(joint.patterns), set(joint.columns)
    for r in range(len(layout.row_sets)):
        if r not in steering_rows:
            tables = [t for t in layout.of_rows(r) if t.col_set in steering_cols]
            _passive_rows(joint, r, tables, shares)
    for c, entities in enumerate(layout.col_sets):
        if c not in steering_cols:
            tables = [layout.tables[t] for t in entities.tables]
            tables = [t for t in tables if t.row_set in steering_rows]
            _passive_columns(joint, c, tables, shares)
    return shares


def joint_components(solution: Solution) -> Components:
    """Components of the joint table; its blocks when no observed sum is zero."""
    if solution.solved.components is not None:
        return solution.solved.components
    return Components(solution.raw.line_block, solution.raw.col_block)


class _Entities:
    """What the other sides of their tables tell of entities without a factor."""

    def __init__(self, size: int) -> None:
        self.divisors, self.observes = np.zeros(size), np.zeros(size, bool)
        self.low, self.high = np.full(size, TOP), np.full(size, -1)

    def add(
        self, own: slice, observed: Bools, factor: Floats, known: Bools, label: Any
    ) -> None:
        """Add the cells of some entities: factors and components of the other side."""
        with np.errstate(over="ignore"):  # `_quotient` refuses an infinite one
            self.divisors[own] += observed @ factor
        self.observes[own] |= (observed & known).any(axis=1)
        positive = observed & (factor > 0.0)
        low = np.where(positive, label, TOP).min(axis=1)
        high = np.where(positive, label, -1).max(axis=1)
        self.low[own] = np.minimum(self.low[own], low)
        self.high[own] = np.maximum(self.high[own], high)

    @property
    def is_known(self) -> Bools:
        """Which observe something, and not of several components."""
        return self.observes & ~((self.low < self.high) & (self.high >= 0))

    @property
    def component(self) -> SmallInts:
        """The component of each; -1 for none or several."""
        return np.where(self.low == self.high, self.high, -1).astype(np.int32)


def _passive_rows(
    joint: JointTable, r: int, tables: list[SharedTable], shares: Shares
) -> None:
    seen = joint.seen[r]
    patterns, sums = _Entities(seen.statistics.n_lines), np.zeros(seen.n_rows)
    unit = math.ldexp(1.0, -seen.exponent)
    for table in tables:
        h, label = shares.col_factor[table.col_set], shares.col_component[table.col_set]
        known = ~np.isnan(h)
        for some, observed in joint.observed_cells(table):
            patterns.add(some, observed, np.nan_to_num(h), known, label)
        for rows, piece in table.source.blocks():
            sums[rows] += np.nan_to_num(piece * unit).sum(axis=1, where=known)
    line = slice(None) if seen.line_of_row is None else seen.line_of_row
    divisors, is_known = patterns.divisors[line], patterns.is_known[line]
    shares.row_factor[r] = _quotient(sums, divisors, is_known, seen.exponent)
    shares.pattern_component[r] = patterns.component


def _passive_columns(
    joint: JointTable, c: int, tables: list[SharedTable], shares: Shares
) -> None:
    cols, sums = _Entities(tables[0].n_cols), np.zeros(tables[0].n_cols)
    exponent = max(joint.seen[table.row_set].exponent for table in tables)
    for table in tables:
        w, seen = shares.row_factor[table.row_set], joint.seen[table.row_set]
        label = shares.pattern_component[table.row_set]
        has_known, total = _by_pattern(seen, w)
        for some, observed in joint.observed_cells(table):
            cols.add(slice(None), observed.T, total[some], has_known[some], label[some])
        unit = math.ldexp(1.0, seen.exponent - exponent)
        sums += _column_sums(joint, table, ~np.isnan(w)) * unit
    shares.col_factor[c] = _quotient(sums, cols.divisors, cols.is_known, exponent)
    shares.col_component[c] = cols.component


def _quotient(sums: Floats, divisors: Floats, known: Bools, exponent: int) -> Floats:
    """Divide where something is known; 0 / 0 is 0, and more over 0 is NaN.

    ``sums`` are those of the data times 2**-exponent.
    """
    if exponent:
        factor = product(sums, over=divisors, exponent=exponent)
    else:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            factor = sums / divisors
    has_data = known & (sums > 0.0)
    factor[known & (sums == 0.0)] = 0.0
    factor[~known | (has_data & (divisors == 0.0))] = np.nan
    if np.isinf(factor).any() or not factor[has_data].all():
        raise NotRepresentableError(OUT_OF_RANGE)
    return factor


def _by_pattern(seen: Observation, w: Floats) -> tuple[Bools, Floats]:
    """Whether some row of each pattern has a known factor, and the sum of these."""
    known, filled = ~np.isnan(w), np.nan_to_num(w, nan=0.0)
    if seen.line_of_row is None:
        return known, filled
    n = seen.statistics.n_lines
    n_known = np.bincount(seen.line_of_row[known], minlength=n)
    return n_known > 0, weighted_counts(seen.line_of_row, filled, n)


def _column_sums(joint: JointTable, table: SharedTable, known: Bools) -> Floats:
    """Sum of each column over the rows whose factor is known, times 2**-exponent."""
    seen = joint.seen[table.row_set]
    if known.all():
        return seen.statistics.col_sums[table.columns]
    unit = math.ldexp(1.0, -seen.exponent)
    total = np.zeros(table.n_cols)
    for rows, piece in table.source.blocks():
        total += np.nan_to_num(piece[known[rows]] * unit).sum(axis=0)
    return total
