"""Solve the joint table and share its factors out among the entity sets."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from a1gm._base.float_range import LEAST, product
from a1gm._base.types import AnyArray, Floats, SmallInts
from a1gm._kernel import kernel, threads_for
from a1gm._observe.observation import Observation
from a1gm._observe.statistics import Statistics, weighted_counts
from a1gm._solve.certificate import margin_mismatch
from a1gm._solve.dispatch import Solved, solve
from a1gm._solve.factors import Factors
from a1gm.exceptions import NotRepresentableError
from a1gm.nmmf.exponent import OUT_OF_RANGE, check_in_range, inside_blocks
from a1gm.nmmf.join import JointTable
from a1gm.nmmf.layout import SharedTable
from a1gm.nmmf.observe import weighted_row_sums

MODERATE, LARGEST = 2.0**400, 2.0**980
STEEP = 2.0**-60


@dataclass(frozen=True, slots=True)
class Solution:
    """Factors of the joint table as solved, and as shared out.

    Those of ``solved`` fit the weighted sums. ``pattern_factor``, ``col_factor`` and
    ``pattern_scale`` are in the data's units, with each block on its scale. ``gap`` is
    the mismatch with which the solver stopped.
    """

    joint: JointTable
    solved: Solved
    pattern_factor: Floats
    pattern_scale: Floats
    col_factor: Floats

    @property
    def raw(self) -> Factors:
        """Factors that fit the weighted sums."""
        return self.solved.factors

    @property
    def gap(self) -> float:
        """The mismatch with which the solver stopped."""
        return self.raw.gap

    def certificate(self) -> float:
        """Measure the mismatch of the weighted margins."""
        return margin_mismatch(self.raw, self.solved.statistics)


def solve_joint(
    joint: JointTable, *, tol: float, max_iter: int, n_threads: int | None = None
) -> Solution:
    """Solve the joint table, and share its factors out."""
    solved = solve(
        joint.statistics(),
        tol=tol,
        max_iter=max_iter,
        n_threads=n_threads,
        read_cells=joint.pairs,
    )
    raw, statistics = solved.factors, solved.statistics
    shared = _share_out_one_block(joint, raw)
    if shared is None:
        check_digits(raw, statistics, tol)
        shared = _share_out(joint, raw, statistics.row_sums)
    return Solution(joint, solved, *shared)


def check_digits(raw: Factors, statistics: Statistics, tol: float) -> None:
    """Raise for factors so small or so large that their margins miss the data's."""
    factors = inside_blocks(raw, raw.line_factor, raw.col_factor)
    if all(f.size == 0 or (f.min() >= LEAST and f.max() < LARGEST) for f in factors):
        return
    with np.errstate(all="ignore"):
        gap = margin_mismatch(raw, statistics)
    if not gap <= max(tol, 2.0 * raw.gap):  # nor is NaN
        raise NotRepresentableError(OUT_OF_RANGE)


def _share_out_one_block(
    joint: JointTable, raw: Factors
) -> tuple[Floats, Floats, Floats] | None:
    """Do as ``_share_out`` for the usual tables; None for extremes and several blocks.

    Small tables spend more time between the steps than in them.
    """
    if not (raw.all_inside and joint.exponent == 0):
        return None
    if not (_is_moderate(raw.line_factor) and _is_moderate(raw.col_factor)):
        return None
    first = joint.layout.steering[0]
    left = raw.line_factor[joint.patterns[first.row_set]].sum()
    right = raw.col_factor[joint.columns[first.col_set]].sum()
    balance = math.sqrt(right / left) * _root_of_weights(joint, first)
    pattern_factor, col_factor = raw.line_factor.copy(), raw.col_factor.copy()
    pattern_scale = raw.line_scale.copy()
    used = []
    for r, place in joint.patterns.items():
        used.append(balance / float(joint.row_weight[r]))
        pattern_factor[place] *= used[-1]
        pattern_scale[place] *= used[-1] * joint.largest_weight(r)
    for c, place in joint.columns.items():
        used.append(1.0 / balance / float(joint.col_weight[c]))
        col_factor[place] *= used[-1]
    if not (min(used) > 1.0 / MODERATE and max(used) < MODERATE):
        return None
    return pattern_factor, pattern_scale, col_factor


def _is_moderate(values: Floats) -> bool:
    return bool(values.min() > 1.0 / MODERATE and values.max() < MODERATE)


def _root_of_weights(joint: JointTable, table: SharedTable) -> float:
    row, col = joint.row_weight[table.row_set], joint.col_weight[table.col_set]
    return math.sqrt(row) / math.sqrt(col)


def _share_out(
    joint: JointTable, raw: Factors, sums: Floats
) -> tuple[Floats, Floats, Floats]:
    """Undo the weights and put every block on the scale of Theorem 1.

    The scale of the patterns is for row sums whose largest weight is 1.
    """
    if raw.n_blocks == 0:  # zeros everywhere
        col_factor = np.where(np.isnan(raw.col_factor), np.nan, 0.0)
        return raw.line_factor, np.zeros(joint.n_patterns), col_factor
    pattern_unit, col_unit, sum_unit = _units(joint)
    balance = np.append(_balance(joint, raw), 1.0)
    by_pattern, by_col = balance[raw.line_block], 1.0 / balance[raw.col_block]
    half = joint.exponent // 2  # of the power of two to each side
    pattern_factor = product(raw.line_factor, by_pattern, pattern_unit, exponent=half)
    col_factor = product(raw.col_factor, by_col, col_unit, exponent=half)
    pattern_scale = product(
        *(raw.line_factor, by_pattern, pattern_unit, sum_unit),
        over=np.where(sums > 0.0, sums, np.inf),
        exponent=half,
    )
    check_in_range(raw, pattern_factor, col_factor)
    check_in_range(raw, pattern_scale, col_factor)
    return pattern_factor, pattern_scale, col_factor


def _units(joint: JointTable) -> tuple[Floats, Floats, Floats]:
    """What turns factors of the weighted sums into factors of the data.

    The third is the weight of the row sums from which rows are expanded.
    """
    pattern_unit, col_unit = np.empty(joint.n_patterns), np.empty(joint.n_cols)
    sum_unit = np.empty(joint.n_patterns)
    for r, place in joint.patterns.items():
        pattern_unit[place] = 1.0 / joint.row_weight[r]
        sum_unit[place] = joint.largest_weight(r)
    for c, place in joint.columns.items():
        col_unit[place] = 1.0 / joint.col_weight[c]
    return pattern_unit, col_unit, sum_unit


def _balance(joint: JointTable, raw: Factors) -> Floats:
    """Factor for the patterns of each block that makes both sides of a table equal.

    Theorem 1 gives the factors of X the same sum. A block without entities of X on
    both sides is balanced by the first table that has entities in it on both.
    """
    balance = np.full(raw.n_blocks, np.nan)
    for table in joint.layout.steering:
        rows, cols = joint.patterns[table.row_set], joint.columns[table.col_set]
        left = _totals(raw.line_block[rows], raw.line_factor[rows], raw.n_blocks)
        right = _totals(raw.col_block[cols], raw.col_factor[cols], raw.n_blocks)
        usable = np.isnan(balance) & (left > 0.0) & (right > 0.0)
        # Roots before quotients: these are in range wherever the sums are.
        root = np.sqrt(right[usable]) / np.sqrt(left[usable])
        balance[usable] = root * _root_of_weights(joint, table)
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
    empty = ~solution.solved.statistics.has_observed_lines()
    factors: dict[int, Floats] = {}
    for r, place in joint.patterns.items():
        seen = joint.seen[r]
        if seen.line_of_row is None:
            factors[r] = solution.pattern_factor[place].copy()
            factors[r][empty[place]] = np.nan
            continue
        factors[r] = factors_of_rows(solution, r, seen, n_threads)
        if empty[place].any():
            factors[r][empty[place][seen.line_of_row]] = np.nan
    return factors


def factors_of_rows(
    solution: Solution, r: int, seen: Observation, n_threads: int | None = None
) -> Floats:
    """Factors of rows of a row set from their sums, which are overwritten."""
    assert seen.line_of_row is not None
    weights = solution.joint.table_weights(r) / solution.joint.largest_weight(r)
    rows = weighted_row_sums(seen, weights)
    scale = solution.pattern_scale[solution.joint.patterns[r]]
    _expand_rows(rows, seen.line_of_row, scale, n_threads)
    return rows


def _expand_rows(
    rows: Floats, line_of_row: AnyArray, scale: Floats, n_threads: int | None
) -> None:
    """Turn row sums into row factors in place; none may become 0."""
    is_steep = bool(scale.min() < STEEP)  # elsewhere only what is nearly 0 can
    n_positive = np.count_nonzero(rows) if is_steep else 0
    kernel.expand_rows(rows, line_of_row, scale, threads_for(len(rows), n_threads))
    if is_steep and np.count_nonzero(rows) < n_positive:
        raise NotRepresentableError(OUT_OF_RANGE)
