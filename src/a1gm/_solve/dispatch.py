"""The one dispatcher: from statistics to factors, by the cheapest way that is exact.

    statistics ──► components ──► reduce ──► core ──► expand ──► factors

Three fast ways do all of this in one call of the kernel where they can.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from a1gm._base.float_range import check_range
from a1gm._base.types import Floats
from a1gm._kernel import kernel, threads_for
from a1gm._observe.patterns import Patterns
from a1gm._rows.rows import Rows
from a1gm._solve.cell_error import SETTLED, Network, rounding_of
from a1gm._solve.certificate import margin_mismatch
from a1gm._solve.components import (
    ColumnGraph,
    Components,
    find_components,
)
from a1gm._solve.expand import (
    CANCELLED,
    expand_factors,
    expand_signed,
    in_range,
    signed_factors,
)
from a1gm._solve.factors import Factors, solver_name
from a1gm._solve.scaling import precision_for, solve_core
from a1gm.exceptions import DataError

NO_MARGIN_FIT = (
    "No factors reproduce the row and column sums of this table: its negative cells "
    "outweigh the others in some part of the pattern. Fit the parts of the table by "
    "themselves."
)
NO_CLOSED_FORM = (
    "The holes of this table have no closed form, which negative cells need: triangles "
    "have one. Mark the negative cells as missing, or fit the parts of the table "
    "separately."
)
NO_DENOMINATOR = (
    "The cells from which it is projected sum to 0, or cancel to rounding, so its "
    "factor cannot be computed. Leave out the column, or the rows that end there."
)
POOR = 1e-3  # a larger mismatch of the margins is not a fit
CELLS_AGAIN = 1 << 24  # most cells of files that are held in memory at once
PLAIN_SWEEPS = 60  # a table that needs more is worth choosing a method for
WEIGHTED_SWEEPS = 400  # listing the cells of a table with weights costs as much


@dataclass
class Solved:
    """Factors, the statistics they fit, and the components of the table.

    ``components`` is None when no observed cell is zero, or one component has all
    patterns and columns but those of zeros, all of which share cells with it: the
    blocks of the factors are the components then.
    """

    factors: Factors
    statistics: Patterns
    components: Components | None = None
    graph: ColumnGraph | None = None  # of a model of columns, whose patterns are gone

    @property
    def is_plain(self) -> bool:
        """Whether one block holds every row and column: the usual case."""
        return self.components is None and self.factors.all_inside

    @property
    def leads_to_zeros(self) -> bool:
        """Whether one block leads to all rows and columns outside: they are zeros."""
        factors = self.factors
        if self.components is not None or self.graph is not None:
            return False
        is_one = factors.n_blocks == 1 and not factors.all_inside
        is_signed = self.statistics.n_negative > 0
        return is_one and not is_signed and self.statistics.has_zeros


def solve_patterns(
    seen: Patterns,
    source: Any = None,
    *,
    tol: float,
    max_iter: int,
    n_threads: int | None = None,
) -> Solved:
    """Solve what a pass has found.

    ``source`` has the rows in ``blocks``; they are read again only if they must be.
    """
    if not seen.is_table or seen.n_negative:
        _check_columns(seen)
    read_cells = None
    if source is not None:
        here = source if isinstance(source, Rows) else None
        if here or (seen.is_mask and seen.n_patterns * seen.n_cols <= CELLS_AGAIN):
            read_cells = partial(_read_cells, source, seen)
        if here and seen.is_mask and not seen.n_negative and seen.weights is None:
            nested = _solve_nested(seen, here, n_threads)
            if nested is not None:
                return Solved(nested, seen)
    if seen.n_negative:
        return _solve_signed(seen, read_cells)
    return solve(seen, tol, max_iter, n_threads, read_cells)


def solve(
    statistics: Patterns,
    tol: float,
    max_iter: int,
    n_threads: int | None = None,
    read_cells: Callable[[], Patterns] | None = None,
    start: Floats | None = None,
) -> Solved:
    """Solve a table of non-negative cells.

    ``read_cells`` gives the sum of every observed cell, for leaves among as many
    patterns as rows; without it they are left to the iteration. ``start`` are factors
    of the columns that are known to be near.
    """
    plain = _solve_plain(statistics, tol, max_iter, n_threads)
    if plain is not None:
        return plain
    _check_columns(statistics)
    components, reduced = _reduce(statistics, force=read_cells is None)
    if reduced is None and read_cells is not None:
        statistics = read_cells()
        components, reduced = _reduce(statistics, force=False)
    is_empty = reduced.n_core_blocks + reduced.n_roots == 0
    if is_empty and not statistics.has_observed()[1].any():
        raise DataError(
            "Nothing is observed: every cell is missing. At least one must hold a "
            "number."
        )
    options: Any = {"tol": tol, "max_iter": max_iter, "n_threads": n_threads}
    cells_of = partial(_cells, statistics, read_cells)
    if start is not None:
        options["start"] = _start_of(reduced, start)
    with np.errstate(all="ignore"):  # what leaves the range is refused below
        core = solve_core(reduced, cells_of, **options)
    factors = expand_factors(reduced, core, statistics)
    return Solved(factors, statistics, components)


def _check_columns(statistics: Patterns) -> None:
    """Raise where the sum of a column is too large or too small to be fitted."""
    check_range(statistics.col_sums, lambda at: f"Column {at}", "column")


def _cells(
    statistics: Patterns, read: Callable[[], Patterns] | None, again: bool
) -> Patterns | None:
    """Sums of single cells: those kept or, ``again``, those read once more."""
    kept = statistics.cell_sums()
    return read() if kept is None and again and read is not None else kept


def _start_of(reduced: Any, h: Floats) -> Floats:
    """Factors of the columns of a core from those of the table."""
    start, place = np.array(reduced.start), np.asarray(reduced.core_places[1])
    known = (place >= 0) & (h > 0.0) & np.isfinite(h)
    start[place[known]] = h[known]
    return start


def _reduce(statistics: Patterns, *, force: bool) -> tuple[Components | None, Any]:
    components = find_components(statistics)
    inside = statistics
    if components is not None:
        inside = statistics.inside(components.pattern, components.col)
    return components, inside.reduce(force=force)


# ------------------------------------------------------------------ negative cells
def _solve_signed(
    patterns: Patterns, read_cells: Callable[[], Patterns] | None
) -> Solved:
    """Fit the margins of a table with negative cells, in closed form only."""
    if patterns.is_mask and read_cells is not None:
        patterns = read_cells()
    factors = _nested_factors(patterns)
    if factors is None:
        reduced = patterns.reduce(force=True)
        if reduced.core_shape[0]:
            raise DataError(NO_CLOSED_FORM)
        factors = expand_signed(reduced, patterns)
    if factors is None or margin_mismatch(factors, patterns) > POOR:
        raise DataError(NO_MARGIN_FIT)
    return Solved(factors, patterns)


def _nested_factors(patterns: Patterns) -> Factors | None:
    """Chain-ladder's factors of a triangle; None for any other table.

    Columns follow in steps, each observed by fewer rows. The factors of a step are to
    those of all earlier ones as its sums to those of the same rows before: no other sum
    is divided by.
    """
    cells = patterns.cell_sums()
    if cells is None:
        return None
    observed = patterns.observed_cells(slice(0, patterns.n_patterns))
    order = np.argsort(-observed.sum(axis=0), kind="stable")
    steps = observed[:, order]
    if (steps[:, 1:] & ~steps[:, :-1]).any():
        return None
    table = np.zeros(observed.shape)
    table[cells.places(slice(0, cells.n_patterns))] = cells.sums
    h = np.zeros(patterns.n_cols)
    before = np.zeros((2, patterns.n_patterns))  # sums and sizes of the cells of a row
    ends = np.flatnonzero((steps[:, 1:] != steps[:, :-1]).any(axis=0)) + 1
    for columns in np.split(order, ends):
        rows = observed[:, columns[0]]
        cells_of_step = table[:, columns]
        total, size = before[:, rows].sum(axis=1)
        is_lost = abs(total) <= CANCELLED * size
        ratio = 1.0 if is_lost else h.sum() / total
        if is_lost and h.any():  # a step of zeros needs no ratio
            if cells_of_step.sum(axis=0).any():
                raise _column_error(int(columns[0]), NO_DENOMINATOR)
            ratio = 0.0
        h[columns] = ratio * cells_of_step.sum(axis=0)
        before += cells_of_step.sum(axis=1), np.abs(cells_of_step).sum(axis=1)
    return signed_factors(
        h,
        np.where(observed.any(axis=1), 0, -1).astype(np.int32),
        np.where(observed.any(axis=0), 0, -1).astype(np.int32),
        patterns,
    )


def _column_error(column: int, text: str) -> DataError:
    """Return an error about a column; callers may replace its number by a name."""
    return DataError(text, where=f"Column {column}", column=column)


# ----------------------------------------------------------------------- fast ways
def _solve_plain(
    statistics: Patterns, tol: float, max_iter: int, n_threads: int | None
) -> Solved | None:
    """One call of the kernel for the usual table: one block, quick to scale.

    Small tables spend more time between the steps than in them. Zeros that leave the
    table in one component may be there, but in a mask without weights.
    """
    n, m = statistics.n_patterns, statistics.n_cols
    tol, budget = min(tol, precision_for(n, m)), min(PLAIN_SWEEPS, max_iter // 2)
    keys, weights = statistics.keys, statistics.weights
    found = components = None
    if keys is None:
        return None
    if statistics.sums is not None:
        found = kernel.solve_plain(
            keys, statistics.sums, tol, budget, max_iter - budget
        )
    else:
        threads = threads_for(n * m, n_threads)
        margins = statistics.row_sums, statistics.col_sums
        options = tol, budget, threads
        if weights is not None:
            options = tol, min(WEIGHTED_SWEEPS, max_iter // 2), threads
            components = find_components(statistics)
            if components is None or components.hold_together(*margins):
                args = keys, statistics.parts, *margins, *options
                found = kernel.solve_bits(*args)
        elif statistics.positive is None:
            found = kernel.solve_bits(keys, None, *margins, *options)
    if found is None:
        return None
    pattern_factor, pattern_scale, col_factor, *_, step, is_whole = found
    if step > SETTLED:
        d = pattern_factor * pattern_scale
        step = Network.of_rows(statistics, d, col_factor, threads).bound().step
        if step > SETTLED:
            return None
    factors = _plain_factors(found, step)
    if not is_whole:  # patterns and columns of zeros are in no block
        factors.pattern_block[pattern_scale == 0.0] = -1
        factors.col_block[col_factor == 0.0] = -1
        factors.all_inside = False
        if weights is not None:
            col_factor[~statistics.has_observed()[1]] = np.nan
    return Solved(factors, statistics, components)


def _plain_factors(found: Any, step: float) -> Factors:
    """Return the factors that the kernel has found for a table of one block."""
    pattern_factor, pattern_scale, col_factor, n_iter, is_newton, gap, *_ = found
    n, m = len(pattern_scale), len(col_factor)
    solver = solver_name(n_iter, n_steps=is_newton)
    blocks = np.zeros(n, np.int32), np.zeros(m, np.int32)
    step += rounding_of(n, m)
    given = pattern_factor, pattern_scale, col_factor, *blocks, 1, solver, n_iter, gap
    return Factors(*given, True, step)  # positional: faster for small fits


def _solve_nested(
    mask: Patterns, source: Rows, n_threads: int | None
) -> Factors | None:
    """Solve a staircase of as many steps as rows in one more pass over its cells.

    None for any other table, and for tables with zeros.
    """
    if mask.positive is not None:
        return None
    if not source.parts:  # a table in pieces takes the general way
        return None
    threads = threads_for(source.n_rows * source.n_cols, n_threads)
    found = kernel.solve_nested(mask.keys, source.parts, mask.col_sums, threads)
    if found is None:
        return None
    h, reach = found
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        pattern_scale, pattern_factor = 1.0 / reach, mask.row_sums / reach
    known = reach > 0.0
    if not in_range(h[~np.isnan(h)], pattern_scale[known], pattern_factor[known]):
        return None
    pattern_block = np.where(reach > 0.0, 0, -1).astype(np.int32)
    col_block = np.where(np.isnan(h), -1, 0).astype(np.int32)
    return Factors(
        pattern_factor=np.where(pattern_block < 0, 0.0, pattern_factor),
        pattern_scale=pattern_scale,
        col_factor=h,
        pattern_block=pattern_block,
        col_block=col_block,
        n_blocks=1,
        solver="closed form",
        n_iter=0,
        gap=0.0,
        step=rounding_of(len(pattern_scale), len(h)),
        all_inside=bool(pattern_block.min() == 0 == col_block.min()),
    )


def _read_cells(source: Any, seen: Patterns) -> Patterns:
    """Sum, and weight, of every observed cell; every row is a pattern."""
    V = seen.weights
    counts: list[Any] = [np.zeros(1, np.int64)]
    cols, values, weights = [], [], []
    for rows, piece in source.in_pieces():
        observed = ~np.isnan(piece)
        if V is not None:
            observed &= V[rows] > 0.0
            weights.append(V[rows][observed].astype(np.float64))
        counts.append(observed.sum(axis=1))
        cols.append(np.nonzero(observed)[1].astype(np.int32))
        values.append(piece[observed])
        if V is not None and not source.exposed:
            values[-1] *= weights[-1]
    return Patterns(
        seen.n_cols,
        ptr=np.cumsum(np.concatenate(counts)),
        cols=np.concatenate(cols),
        sums=np.concatenate(values),
        weights=None if V is None else np.concatenate(weights),
        n_negative=seen.n_negative,
    )
