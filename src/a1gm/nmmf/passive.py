"""Factors of the entities that only tables of weight 0 know.

Such a table does not steer the factors it shares, but its own entities still get
theirs: with the shared factors fixed, the best is a_n = sum_j Y_nj / sum_j h_j over the
observed cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from a1gm._base.float_range import product
from a1gm._base.types import Bools, Floats, SmallInts
from a1gm._observe.observation import Observation
from a1gm._observe.statistics import weighted_counts
from a1gm._solve.components import Components
from a1gm.exceptions import NotRepresentableError, WeightsError
from a1gm.nmmf.exponent import OUT_OF_RANGE
from a1gm.nmmf.join import JointTable
from a1gm.nmmf.layout import EntitySet, Layout, SharedTable
from a1gm.nmmf.solve import Solution

__all__ = ["Shares", "joint_components", "share_factors"]

TOP = np.iinfo(np.int32).max
SEVERAL = -2  # for a row whose observed columns belong to several components


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


def share_factors(
    layout: Layout, seen: list[Observation], solution: Solution, rows: dict[int, Floats]
) -> Shares:
    """Give every entity set its factors, those of passive tables included."""
    joint = solution.joint
    components = joint_components(solution)
    shares = Shares(rows)
    for r, place in joint.patterns.items():
        shares.pattern_component[r] = components.line[place]
    for c, place in joint.columns.items():
        shares.col_factor[c] = solution.col_factor[place]
        shares.col_component[c] = components.col[place]
    steering_rows, steering_cols = set(joint.patterns), set(joint.columns)
    for r, entities in enumerate(layout.row_sets):
        if r not in steering_rows:
            _passive_rows(layout, seen[r], r, entities, shares, steering_cols)
    for c, entities in enumerate(layout.col_sets):
        if c not in steering_cols:
            _passive_columns(layout, joint, c, entities, shares, steering_rows)
    return shares


def joint_components(solution: Solution) -> Components:
    """Components of the joint table; its blocks when no observed sum is zero."""
    if solution.solved.components is not None:
        return solution.solved.components
    return Components(solution.raw.line_block, solution.raw.col_block)


def _known_tables(
    layout: Layout, entities: EntitySet, known: set[int], *, by_columns: bool
) -> list[SharedTable]:
    tables = [layout.tables[t] for t in entities.tables]
    found = [t for t in tables if (t.col_set if by_columns else t.row_set) in known]
    if not found:
        names = " and ".join(t.name for t in tables)
        msg = (
            f"{names} has weight 0 and shares its entities with no table of positive "
            "weight, so nothing determines its factors. Give it a positive weight, or "
            "leave it out."
        )
        raise WeightsError(msg)
    return found


def _passive_rows(
    layout: Layout,
    seen: Observation,
    r: int,
    entities: EntitySet,
    shares: Shares,
    steering: set[int],
) -> None:
    tables = _known_tables(layout, entities, steering, by_columns=True)
    sums, divisors = np.zeros(entities.size), np.zeros(entities.size)
    some = np.zeros(entities.size, bool)
    unit = math.ldexp(1.0, -seen.exponent)
    for table in tables:
        h = shares.col_factor[table.col_set]
        known = ~np.isnan(h)
        factor = np.where(known, h, 0.0)
        for rows, piece in table.source.blocks():
            observed = ~np.isnan(piece) & known
            cells = np.where(observed, piece, 0.0)
            sums[rows] += (cells * unit if seen.exponent else cells).sum(axis=1)
            with np.errstate(over="ignore"):  # an infinite one is refused below
                divisors[rows] += observed @ factor
            some[rows] |= observed.any(axis=1)
    label, positive = _own_columns(layout, entities, shares, steering)
    component = np.full(seen.statistics.n_lines, -1, np.int32)
    for patterns, observed in seen.statistics.pieces():
        component[patterns] = _common_label(observed & positive, label)
    line_of_row = seen.line_of_row
    per_row = component if line_of_row is None else component[line_of_row]
    shares.row_factor[r] = _quotient(
        sums, divisors, some & (per_row != SEVERAL), seen.exponent
    )
    shares.pattern_component[r] = np.maximum(component, -1)


def _own_columns(
    layout: Layout, entities: EntitySet, shares: Shares, steering: set[int]
) -> tuple[SmallInts, Bools]:
    """Component of a row set's columns, and which have a positive factor."""
    components, positive = [], []
    for table in (layout.tables[t] for t in entities.tables):
        component, factor = np.full(table.n_cols, -1, np.int32), np.zeros(table.n_cols)
        if table.col_set in steering:
            component = shares.col_component[table.col_set]
            factor = shares.col_factor[table.col_set]
        components.append(component)
        positive.append(np.nan_to_num(factor) > 0.0)
    return np.concatenate(components), np.concatenate(positive)


def _common_label(chosen: Bools, label: SmallInts) -> SmallInts:
    """The one label among the chosen columns of each row; SEVERAL, or -1 for none."""
    low = np.where(chosen, label, TOP).min(axis=1)
    high = np.where(chosen, label, -1).max(axis=1)
    common = np.where(low == high, high, SEVERAL)
    return np.where(chosen.any(axis=1), common, -1).astype(np.int32)


def _quotient(sums: Floats, divisors: Floats, known: Bools, exponent: int) -> Floats:
    """Divide where something is known; 0 of nothing is 0, more of nothing is NaN.

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


def _passive_columns(
    layout: Layout,
    joint: JointTable,
    c: int,
    entities: EntitySet,
    shares: Shares,
    steering: set[int],
) -> None:
    tables = _known_tables(layout, entities, steering, by_columns=False)
    size = entities.size
    sums, divisors, some = np.zeros(size), np.zeros(size), np.zeros(size, bool)
    exponent = max(joint.seen[table.row_set].exponent for table in tables)
    low, high = np.full(size, TOP), np.full(size, -1)
    for table in tables:
        r = table.row_set
        w, seen = shares.row_factor[r], joint.seen[r]
        has_known, total = _by_pattern(seen, w)
        for patterns, observed in joint.observed_cells(table):
            with np.errstate(over="ignore"):  # an infinite one is refused below
                divisors += total[patterns] @ observed
            some |= (observed & has_known[patterns, None]).any(axis=0)
            positive = observed & (total[patterns, None] > 0.0)
            label = shares.pattern_component[r][patterns, None]
            low = np.minimum(low, np.where(positive, label, TOP).min(axis=0))
            high = np.maximum(high, np.where(positive, label, -1).max(axis=0))
        unit = math.ldexp(1.0, seen.exponent - exponent)
        sums += _column_sums(joint, table, ~np.isnan(w)) * unit
    several = (low < high) & (high >= 0)
    shares.col_factor[c] = _quotient(sums, divisors, some & ~several, exponent)
    shares.col_component[c] = np.where(low == high, high, -1).astype(np.int32)


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
        return seen.statistics.col_sums[joint.columns_of(table)]
    unit = math.ldexp(1.0, -seen.exponent)
    total = np.zeros(table.n_cols)
    for rows, piece in table.source.blocks():
        total += np.nan_to_num(piece[known[rows]] * unit).sum(axis=0)
    return total
