"""The one dispatcher: from statistics to factors, by the cheapest way that is exact.

    statistics ──► components ──► reduce ──► core ──► expand ──► factors

Four fast ways do all of this in one call of the kernel where they can.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, Protocol

import numpy as np

from a1gm._base.float_range import product
from a1gm._base.types import Floats, Solver
from a1gm._kernel import kernel, threads_for
from a1gm._observe.patterns import Patterns
from a1gm._rows.read import AnyRows
from a1gm._rows.rows import Rows
from a1gm._rows.sparse import SparseRows
from a1gm._solve.cell_error import SETTLED, Network, rounding_of
from a1gm._solve.certificate import margin_mismatch
from a1gm._solve.column_graph import ColumnGraph
from a1gm._solve.components import Components, find_components, separate_zero_lines
from a1gm._solve.expand import (
    expand_factors,
    expand_signed,
    in_range,
    place_cancelling,
)
from a1gm._solve.factors import Factors
from a1gm._solve.scaling import precision_for, solve_core
from a1gm.exceptions import DataError, NotRepresentableError

NO_MARGIN_FIT = (
    "No non-negative factors reproduce the row and column sums of this table: its "
    "negative cells outweigh the others in some part of the pattern, and its holes "
    "have no closed form. Fit the parts of the table by themselves."
)
POOR = 1e-3  # margins that are further off are those of no fit
CELLS_AGAIN = 1 << 24  # so many cells of a table in files may be held at once
PLAIN_SWEEPS = 60  # a table that needs more is worth choosing a method for
WEIGHTED_SWEEPS = 400  # listing the cells of a table with weights costs as much


class Rereadable(Protocol):
    """A table that can be read again, in blocks of rows."""

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield the place of some rows, and their cells."""


@dataclass
class Solved:
    """Factors, the statistics they fit, and the components of the table.

    ``components`` is None when no observed cell is zero, or one component has all lines
    and columns: the blocks of the factors are the components then. ``graph`` is there
    for masks in a file only, whose rows are not held.
    """

    factors: Factors
    statistics: Patterns
    components: Components | None = None
    graph: ColumnGraph | None = None


def solve_patterns(
    seen: Patterns,
    source: AnyRows | Rereadable | None = None,
    *,
    tol: float,
    max_iter: int,
    n_threads: int | None = None,
) -> Solved:
    """Solve what a pass has found; the source is read again only if it must be."""
    read_cells = None
    if source is not None and not isinstance(source, SparseRows):
        here = source if isinstance(source, Rows) else None
        if here or (seen.is_mask and seen.n_lines * seen.n_cols <= CELLS_AGAIN):
            read_cells = partial(_read_cells, source, seen)
        if here and seen.is_mask and not seen.n_negative and seen.weights is None:
            nested = _solve_nested(seen, here, n_threads)
            if nested is not None:
                return Solved(nested, seen)
    if seen.n_negative:
        return _solve_signed(seen, tol, max_iter, n_threads, read_cells=read_cells)
    more: Any = {"read_cells": read_cells, "row_of": seen.row_of}
    return solve(seen, tol, max_iter, n_threads, **more)


def solve(
    statistics: Patterns,
    tol: float,
    max_iter: int,
    n_threads: int | None = None,
    *,
    read_cells: Callable[[], Patterns] | None = None,
    row_of: Callable[[int], int] | None = None,
) -> Solved:
    """Solve a table of non-negative cells.

    ``read_cells`` gives the sum of every observed cell, for leaves among as many
    patterns as rows; without it they are left to the iteration. ``row_of`` gives a row
    of a line, for messages.
    """
    plain = _solve_plain(statistics, tol, max_iter, n_threads)
    if plain is not None:
        return plain
    components, reduced = _reduce(statistics, force=read_cells is None)
    if reduced is None and read_cells is not None:
        statistics = read_cells()
        components, reduced = _reduce(statistics, force=False)
    if reduced.n_core_blocks + reduced.n_roots == 0:
        _check_something_observed(statistics)
    options: Any = {"tol": tol, "max_iter": max_iter, "n_threads": n_threads}
    cells_of = partial(_cells, statistics, read_cells)
    expand = statistics.row_sums, lambda: statistics.has_observed()[1], row_of
    with np.errstate(all="ignore"):  # what leaves the range is refused below
        core = solve_core(reduced, cells_of, **options)
    factors = expand_factors(reduced, core, *expand)
    return Solved(factors, statistics, components)


def _cells(
    statistics: Patterns | None,
    read: Callable[[], Patterns] | None,
    *,
    again: bool,
) -> Patterns | None:
    """Sums of single cells: those kept or, ``again``, those read once more."""
    kept = None if statistics is None else statistics.cell_sums()
    return read() if kept is None and again and read is not None else kept


def _reduce(statistics: Patterns, *, force: bool) -> tuple[Components | None, Any]:
    components = find_components(statistics)
    inside = statistics
    if components is not None:
        inside = statistics.inside(components.line, components.col)
    return components, inside.reduce(force=force)


def _check_something_observed(statistics: Patterns) -> None:
    if not statistics.has_observed()[1].any():
        raise DataError(
            "Nothing is observed: every cell is missing. At least one must hold a "
            "number."
        )


# ------------------------------------------------------------------ negative cells
def _solve_signed(
    statistics: Patterns,
    tol: float,
    max_iter: int,
    n_threads: int | None,
    *,
    read_cells: Callable[[], Patterns] | None = None,
) -> Solved:
    """Fit the margins of a table with negative cells.

    In closed form sums of any sign will do, as in chain-ladder. Elsewhere lines and
    columns of zero sum have factor 0, but their cells still count in the margins they
    cross, so beside them no sums of cells are used. Lines in which rows of either sign
    cancel are set apart, too, and placed by the columns that are known then.
    """
    exponent, cancels = statistics.exponent, statistics.cancelling_lines()
    reduced = statistics.reduce(force=read_cells is None)
    if reduced is None and read_cells is not None:
        statistics = read_cells()
        reduced = statistics.reduce(force=False)
    components = separate_zero_lines(statistics)
    if reduced.core_shape[0] == 0:
        observed = statistics.has_observed()[1]
        factors = expand_signed(reduced, statistics, observed)
        if factors is not None and margin_mismatch(factors, statistics) <= POOR:
            if components is not None:  # signed factors: a sum of 0, not always a 0
                h = factors.col_factor
                components = separate_zero_lines(statistics, h, cancels)
            return Solved(factors, statistics, components)
        if components is not None:
            # It divides by a sum of zero; lines of nothing but zeros can go first.
            rest = statistics.inside(components.line, components.col)
            factors = expand_signed(rest.reduce(force=False), rest, observed)
            if factors is not None and _has_same_sums(rest, statistics):
                if not place_cancelling(factors, statistics, components, cancels):
                    _refuse_zero_denominator(statistics)
                return Solved(factors, statistics, components)
        if min(statistics.row_sums.min(), statistics.col_sums.min()) < 0.0:
            _refuse_zero_denominator(statistics)
    _check_sums(statistics, exponent)
    if components is not None:
        mask = statistics.as_mask().inside(components.line, components.col)
        reduced = mask.reduce(force=True)
    core = solve_core(
        reduced,
        partial(_cells, None if components else statistics, None),
        tol=tol,
        max_iter=max_iter,
        n_threads=n_threads,
    )
    try:
        factors = expand_factors(
            reduced, core, statistics.row_sums, lambda: statistics.has_observed()[1]
        )
    except NotRepresentableError:  # cells of either sign that cancel
        raise DataError(NO_MARGIN_FIT) from None
    bad = (factors.col_factor < 0.0).any() or (factors.line_factor < 0.0).any()
    if bad or max(factors.gap, margin_mismatch(factors, statistics)) > POOR:
        raise DataError(NO_MARGIN_FIT)
    if components and not place_cancelling(factors, statistics, components, cancels):
        raise DataError(NO_MARGIN_FIT)
    return Solved(factors, statistics, components)


def _refuse_zero_denominator(statistics: Patterns) -> NoReturn:
    """Name the column whose rows sum to zero in the columns that are known longer."""
    mask = statistics.as_mask()
    observed = mask.observed_lines(slice(0, mask.n_lines))
    cells, n_known = statistics.cell_sums(), observed.sum(axis=0)
    column = int(n_known.argmin())
    if cells is not None:
        table = np.zeros(observed.shape)
        table[cells.places(slice(0, cells.n_lines))] = cells.sums
        for j in np.argsort(-n_known, kind="stable")[1:]:
            before = table[observed[:, j]][:, n_known > n_known[j]]
            if abs(before.sum()) <= 1e-12 * np.abs(before).sum():
                column = int(j)
                break
    raise _column_error(
        column,
        "The cells from which it is projected sum to 0, so its factor "
        "cannot be computed. Leave out the column, or the rows that end there.",
    )


def _column_error(column: int, text: str) -> DataError:
    """An error about a column, whose name others may know."""
    return DataError(text, where=f"Column {column}", column=column)


def _has_same_sums(one: Patterns, other: Patterns) -> bool:
    sums = (one.row_sums, other.row_sums), (one.col_sums, other.col_sums)
    return all(np.array_equal(a, b) for a, b in sums)


def _check_sums(statistics: Patterns, exponent: int) -> None:
    sums = {"columns": statistics.col_sums, "rows": statistics.row_sums}
    for side, found in sums.items():
        below = np.flatnonzero(found < 0.0)
        if len(below):
            value = math.ldexp(float(found[below[0]]), exponent)
            which = "this one sums" if side == "columns" else "some rows sum"
            text = (
                "The holes of this table have no closed form, and then every row and "
                f"column sum must be positive, but {which} to {value:g}. Leave out "
                f"such {side} and treat them by themselves."
            )
            if side == "rows":
                raise DataError(text)
            raise _column_error(int(below[0]), text)


# ----------------------------------------------------------------------- fast ways
def _solve_plain(
    statistics: Patterns, tol: float, max_iter: int, n_threads: int | None
) -> Solved | None:
    """One call of the kernel for the usual table: one block, quick to scale.

    Small tables spend more time between the steps than in them. Zeros that leave the
    table in one component may be there, but in a mask without weights.
    """
    n, m = statistics.n_lines, statistics.n_cols
    tol, budget, max_steps = plain_options(tol, max_iter, n, m)
    keys, weights = statistics.keys, statistics.weights
    found = components = None
    if keys is None:
        return None
    if statistics.sums is not None:
        found = kernel.solve_plain(keys, statistics.sums, tol, budget, max_steps)
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
    line_factor, line_scale, col_factor, *_, step = found
    if step > SETTLED:
        d = line_factor * line_scale
        step = Network.of_rows(statistics, d, col_factor, threads).bound().step
        if step > SETTLED:
            return None
    factors = plain_factors(found, step)
    if weights is not None:
        # Lines and columns of zeros are in no block.
        blocks = factors.line_block, factors.col_block
        for block, factor in zip(blocks, (line_scale, col_factor), strict=True):
            block[~(factor > 0.0)] = -1
        factors.all_inside = bool(blocks[0].min() == 0 == blocks[1].min())
        if not factors.all_inside:
            col_factor[~statistics.has_observed()[1]] = np.nan
    return Solved(factors, statistics, components)


def plain_options(
    tol: float, max_iter: int, n_lines: int, n_cols: int
) -> tuple[float, int, int]:
    """Certificate, sweeps and steps of Newton for the usual table."""
    budget = min(PLAIN_SWEEPS, max_iter // 2)
    return min(tol, precision_for(n_lines, n_cols)), budget, max_iter - budget


def plain_factors(found: Any, step: float) -> Factors:
    """Factors that the kernel has found for a table of one block."""
    line_factor, line_scale, col_factor, n_iter, is_newton, gap, _ = found
    n, m = len(line_scale), len(col_factor)
    solver: Solver = "newton" if is_newton else "scaling" if n_iter else "closed form"
    blocks = np.zeros(n, np.int32), np.zeros(m, np.int32)
    step += rounding_of(n, m)
    given = line_factor, line_scale, col_factor, *blocks, 1, solver, n_iter, gap
    return Factors(*given, True, step)  # by place, which a small fit feels


def _solve_nested(
    mask: Patterns, source: Rows, n_threads: int | None
) -> Factors | None:
    """Solve a staircase of as many steps as rows in one more pass over its cells.

    None for any other table, and for zeros, whose components are found first.
    """
    if mask.positive is not None:
        return None
    if not source.parts:  # a table in pieces takes the general way
        return None
    threads = threads_for(source.n_rows * source.n_cols, n_threads)
    scale = math.ldexp(1.0, -mask.exponent)
    found = kernel.solve_nested(mask.keys, source.parts, mask.col_sums, scale, threads)
    if found is None:
        return None
    h, reach = found
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        line_scale, line_factor = 1.0 / reach, mask.row_sums / reach
    known = reach > 0.0
    if not in_range(h[~np.isnan(h)], line_scale[known], line_factor[known]):
        return None
    line_block = np.where(reach > 0.0, 0, -1).astype(np.int32)
    col_block = np.where(np.isnan(h), -1, 0).astype(np.int32)
    return Factors(
        line_factor=np.where(line_block < 0, 0.0, line_factor),
        line_scale=line_scale,
        col_factor=h,
        line_block=line_block,
        col_block=col_block,
        n_blocks=1,
        solver="closed form",
        n_iter=0,
        gap=0.0,
        step=rounding_of(len(line_scale), len(h)),
        all_inside=bool(line_block.min() == 0 == col_block.min()),
    )


def _read_cells(source: Rereadable, seen: Patterns) -> Patterns:
    """Every row its own pattern, with the sum, and weight, of every observed cell."""
    V, exponent = seen.weights, seen.exponent
    is_product = V is not None and seen.exposure_exponent is None
    scale = 1.0 if is_product else math.ldexp(1.0, -exponent)
    counts: list[Any] = [np.zeros(1, np.int64)]
    cols, values, weights = [], [], []
    for rows, piece in source.blocks():
        observed = ~np.isnan(piece)
        if V is not None:
            observed &= V[rows] > 0.0
            weights.append(V[rows][observed].astype(np.float64))
        counts.append(observed.sum(axis=1))
        cols.append(np.nonzero(observed)[1].astype(np.int32))
        values.append(piece[observed] * scale)
        if is_product:
            values[-1] = product(values[-1], weights[-1], exponent=-exponent)
    return Patterns(
        seen.n_cols,
        ptr=np.cumsum(np.concatenate(counts)),
        cols=np.concatenate(cols),
        sums=np.concatenate(values),
        weights=None if V is None else np.concatenate(weights),
        exponent=exponent,
        exposure_exponent=seen.exposure_exponent,
        n_negative=seen.n_negative,
    )
