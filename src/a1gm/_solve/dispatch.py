"""The one dispatcher: from statistics to factors, by the cheapest way that is exact.

    statistics ──► components ──► reduce ──► core ──► expand ──► factors

Three fast ways do all of this in one call of the kernel where they can.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn

import numpy as np

from a1gm._base.float_range import check_range
from a1gm._base.types import Floats, Ints
from a1gm._kernel import kernel, threads_for
from a1gm._observe.patterns import Patterns, weighted_counts
from a1gm._rows.rows import Rows
from a1gm._rows.sparse import SparseRows
from a1gm._solve.cell_error import SETTLED, Network, rounding_of
from a1gm._solve.certificate import margin_mismatch
from a1gm._solve.components import (
    ColumnGraph,
    Components,
    find_components,
    separate_zero_sums,
)
from a1gm._solve.expand import (
    CANCELLED,
    expand_factors,
    expand_signed,
    in_range,
    place_cancelling,
)
from a1gm._solve.factors import NO_CORE, Factors, solver_name
from a1gm._solve.scaling import precision_for, solve_core
from a1gm.exceptions import DataError

NO_MARGIN_FIT = (
    "No factors reproduce the row and column sums of this table: its negative cells "
    "outweigh the others in some part of the pattern. Fit the parts of the table by "
    "themselves."
)
LEAF, TWIN = 1, 2  # steps of the peeling
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
        return is_one and self.statistics.has_zeros


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
    read_cells = None
    if not seen.is_table or seen.n_negative:
        _check_columns(seen)
    if source is not None and not isinstance(source, SparseRows):
        here = source if isinstance(source, Rows) else None
        if here or (seen.is_mask and seen.n_patterns * seen.n_cols <= CELLS_AGAIN):
            read_cells = partial(_read_cells, source, seen)
        if here and seen.is_mask and not seen.n_negative and seen.weights is None:
            nested = _solve_nested(seen, here, n_threads)
            if nested is not None:
                return Solved(nested, seen)
    if seen.n_negative:
        options: Any = {"tol": tol, "max_iter": max_iter, "n_threads": n_threads}
        return _solve_signed(seen, read_cells, **options)
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
    patterns: Patterns, read_cells: Callable[[], Patterns] | None, **options: Any
) -> Solved:
    """Fit the margins of a table with negative cells.

    In closed form sums of any sign will do, as in chain-ladder; elsewhere all margins
    of the core must be positive. Rows and columns of zeros go first where the form
    would divide by their sums.
    """
    if patterns.is_mask and read_cells is not None:
        patterns, read_cells = read_cells(), None
    try:
        return Solved(_signed_factors(patterns, read_cells, **options), patterns)
    except DataError:
        components = separate_zero_sums(patterns)
        if components is None:
            raise
        rest = patterns.inside(components.pattern, components.col)
        sums = (rest.row_sums, patterns.row_sums), (rest.col_sums, patterns.col_sums)
        if not all(np.array_equal(*pair) for pair in sums):
            raise
        factors = _signed_factors(rest, None, **options)
    if not place_cancelling(factors, patterns, components):
        _refuse_zero_denominator(patterns)
    factors.col_factor[patterns.has_observed()[1] & (factors.col_block < 0)] = 0.0
    return Solved(factors, patterns, components)


def _signed_factors(
    patterns: Patterns, read_cells: Callable[[], Patterns] | None, **options: Any
) -> Factors:
    """Return factors with the margins of the patterns, or raise DataError."""
    if _divides_by_rounding(patterns, read_cells):
        _refuse_zero_denominator(patterns)
    reduced, core = patterns.reduce(force=True), NO_CORE
    if reduced.core_shape[0]:
        sides = {"column": reduced.core_col_sums, "row": reduced.core_row_sums}
        for k, (side, sums) in enumerate(sides.items()):
            if sums.min() <= 0.0:
                at = int((reduced.core_places[1 - k] == sums.argmin()).argmax())
                _refuse_margin(side, at, sums.min())
        core = solve_core(reduced, partial(_cells, patterns, None), **options)
    factors = expand_signed(reduced, core, patterns)
    if factors is None and core is NO_CORE:
        _refuse_zero_denominator(patterns)
    if factors is None or margin_mismatch(factors, patterns) > POOR:
        raise DataError(NO_MARGIN_FIT)
    return factors


def _divides_by_rounding(
    patterns: Patterns, read_cells: Callable[[], Patterns] | None
) -> bool:
    """Whether the closed form divides by cells that sum to 0 or cancel to rounding.

    The absolute values of the cells, peeled in the same steps, give the size of every
    sum. Twins are divided by their joint sum, a leaf by the factor of what it meets.
    """
    listed = patterns.cell_sums()
    if listed is None:
        return False
    sizes, pattern_of_row = np.abs(listed.sums), patterns.pattern_of_row
    if read_cells and pattern_of_row is not None and patterns.weights is None:
        sizes = _sizes_of_cells(listed, pattern_of_row, read_cells())
    steps, sums = listed.reduce(force=True).steps
    size = replace(listed, sums=sizes).reduce(force=True).steps[1]
    is_lost = np.abs(sums) <= CANCELLED * size
    has_no_total = np.abs(sums.sum(axis=1)) <= CANCELLED * size.sum(axis=1)
    lost: tuple[set[int], set[int]] = set(), set()  # columns and rows
    for k in range(len(steps) - 1, -1, -1):
        step, is_row, gone, kept = steps[k].tolist()
        if step == TWIN:
            if has_no_total[k]:
                return True
            lost[is_row].discard(kept)
            lost[is_row].update({kept} if is_lost[k, 1] else ())
        elif step == LEAF and kept in lost[1 - is_row]:
            return True
        lost[is_row].update({gone} if is_lost[k, 0] else ())
    return False


def _sizes_of_cells(listed: Patterns, pattern_of_row: Ints, cells: Patterns) -> Floats:
    """Sums of the absolute values of the cells in each listed pair."""
    m = listed.n_cols
    pattern, column = listed.places(slice(0, listed.n_patterns))
    row, j = cells.places(slice(0, cells.n_patterns))
    own = pattern_of_row[row].astype(np.int64)
    pair = np.searchsorted(pattern * m + column, own * m + j)
    return weighted_counts(pair, np.abs(cells.sums), len(pattern))


def _refuse_margin(side: str, at: int, value: float) -> NoReturn:
    which = "this one sums" if side == "column" else "some rows sum"
    text = (
        "The holes of this table have no closed form, and then every row and column "
        f"sum must be positive, but {which} to {value:g} where the form ends. Leave "
        f"out such {side}s and treat them by themselves."
    )
    raise _column_error(at, text) if side == "column" else DataError(text)


def _refuse_zero_denominator(patterns: Patterns) -> NoReturn:
    """Name the column projected from cells of earlier columns that sum to zero."""
    observed = patterns.observed_cells(slice(0, patterns.n_patterns))
    cells, n_known = patterns.cell_sums(), observed.sum(axis=0)
    column = int(n_known.argmin())
    if cells is not None:
        table = np.zeros(observed.shape)
        table[cells.places(slice(0, cells.n_patterns))] = cells.sums
        for j in np.argsort(-n_known, kind="stable")[1:]:
            before = table[observed[:, j]][:, n_known > n_known[j]]
            if abs(before.sum()) <= CANCELLED * np.abs(before).sum():
                column = int(j)
                break
    raise _column_error(
        column,
        "The cells from which it is projected sum to 0, or cancel to rounding, so its "
        "factor cannot be computed. Leave out the column, or the rows that end there.",
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
