"""Solve the joint table and share its factors out among the entity sets."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from a1gm._blocks import Components, find_components
from a1gm._core import solve_core
from a1gm._expand import Factors, expand_factors
from a1gm._fit import solve_plain_table
from a1gm._kernel import kernel, threads_for
from a1gm._peel import reduce_statistics
from a1gm._statistics import Statistics, TableStatistics, weighted_counts
from a1gm._types import Floats, SmallInts
from a1gm.exceptions import NotRepresentableError
from a1gm.nmmf._join import JointTable
from a1gm.nmmf._observe import weighted_row_sums

__all__ = ["Solution", "row_factors_of_sets", "solve_joint"]


@dataclass(frozen=True, slots=True)
class Solution:
    """Factors of the joint table as solved, and as shared out.

    ``raw`` fits the weighted sums of ``statistics``. ``line_factor``, ``line_scale``
    and ``col_factor`` are in the data's units, with each block on its scale.
    """

    joint: JointTable
    statistics: Statistics
    components: Components | None
    raw: Factors
    line_factor: Floats
    line_scale: Floats
    col_factor: Floats


def solve_joint(joint: JointTable, *, tol: float, max_iter: int) -> Solution:
    """Reduce, solve and expand the joint table."""
    statistics = joint.statistics()
    if isinstance(statistics, TableStatistics):
        plain = solve_plain_table(statistics, tol=tol, max_iter=max_iter)
        if plain is not None:
            return Solution(joint, statistics, None, plain, *_share_out(joint, plain))
    components = find_components(statistics)
    reduced = reduce_statistics(statistics, components)
    if reduced is None:  # leaves among as many patterns as rows: the cells are needed
        statistics = joint.pairs()
        components = find_components(statistics)
        reduced = reduce_statistics(statistics, components)
    core = solve_core(reduced, tol=tol, max_iter=max_iter)
    raw = expand_factors(
        reduced, core, statistics.row_sums, lambda: statistics.has_observed()[1]
    )
    return Solution(joint, statistics, components, raw, *_share_out(joint, raw))


def _share_out(joint: JointTable, raw: Factors) -> tuple[Floats, Floats, Floats]:
    """Undo the weights and put every block on the scale of Theorem 1."""
    line_unit, col_unit = _units(joint)
    line_factor, col_factor = raw.line_factor * line_unit, raw.col_factor * col_unit
    if raw.n_blocks == 0:  # zeros everywhere
        col_factor = np.where(np.isnan(col_factor), np.nan, 0.0)
        return line_factor, raw.line_scale * line_unit, col_factor
    balance = _balance(joint, raw, line_factor, col_factor)
    by_line = np.append(balance, 1.0)[raw.line_block]
    col_factor = col_factor / np.append(balance, 1.0)[raw.col_block]
    line_factor = line_factor * by_line
    if np.isinf(line_factor).any() or np.isinf(col_factor).any():
        msg = (
            "The shared factors of these tables are outside the range of float64. "
            "Divide the tables by a power of ten first."
        )
        raise NotRepresentableError(msg)
    # The row sums from which rows are expanded still carry the weights.
    return line_factor, raw.line_scale * line_unit * by_line, col_factor


def _units(joint: JointTable) -> tuple[Floats, Floats]:
    """What turns factors of the weighted sums into factors of the data."""
    line_unit, col_unit = np.empty(joint.n_lines), np.empty(joint.n_cols)
    # Half of the power of two to each side: neither overflows alone.
    half = joint.exponent // 2
    for r, place in joint.lines.items():
        line_unit[place] = math.ldexp(1.0, joint.exponent - half) / joint.row_weight[r]
    for c, place in joint.columns.items():
        col_unit[place] = math.ldexp(1.0, half) / joint.col_weight[c]
    return line_unit, col_unit


def _balance(
    joint: JointTable, raw: Factors, line_factor: Floats, col_factor: Floats
) -> Floats:
    """Factor for the lines of each block that makes both sides of a table equal.

    Theorem 1 gives the factors of X the same sum. A block without entities of X on
    both sides is balanced by the first table that has entities in it on both.
    """
    balance = np.full(raw.n_blocks, np.nan)
    line_block, col_block = raw.line_block, raw.col_block
    for table in joint.layout.tables:
        if table.is_passive:
            continue
        rows, cols = joint.lines[table.row_set], joint.columns[table.col_set]
        left = _totals(line_block[rows], line_factor[rows], raw.n_blocks)
        right = _totals(col_block[cols], col_factor[cols], raw.n_blocks)
        usable = np.isnan(balance) & (left > 0.0) & (right > 0.0)
        balance[usable] = np.sqrt(right[usable] / left[usable])
        if not np.isnan(balance).any():
            break
    balance[np.isnan(balance)] = 1.0
    return balance


def _totals(block: SmallInts, factor: Floats, n_blocks: int) -> Floats:
    known = block >= 0
    return weighted_counts(block[known], factor[known], n_blocks)


def row_factors_of_sets(
    solution: Solution, n_threads: int | None = None
) -> dict[int, Floats]:
    """Factors of the rows of every row set that takes part.

    The row sums of the observation are overwritten.
    """
    joint = solution.joint
    empty = ~solution.statistics.has_observed()[0]
    factors: dict[int, Floats] = {}
    for r, place in joint.lines.items():
        seen = joint.seen[r]
        if seen.line_of_row is None:
            factors[r] = solution.line_factor[place].copy()
            factors[r][empty[place]] = np.nan
            continue
        rows = weighted_row_sums(seen, joint.table_weights(r))
        scale = solution.line_scale[place]
        threads = threads_for(len(rows), n_threads)
        kernel.expand_rows(rows, seen.line_of_row, scale, threads)
        if empty[place].any():
            rows[empty[place][seen.line_of_row]] = np.nan
        factors[r] = rows
    return factors
