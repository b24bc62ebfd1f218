"""From the core back to the table: replay the log, fix the scale of each block."""

from __future__ import annotations

from typing import Any

import numpy as np

from a1gm._base.float_range import (
    LEAST,
    Wide,
    narrow_if_exact,
    product,
    sum_groups,
    wide_product,
)
from a1gm._base.types import Bools, Floats, Ints, SmallInts
from a1gm._observe.statistics import Statistics, weighted_counts
from a1gm._solve.cell_error import rounding_of, way_left
from a1gm._solve.column_graph import ColumnGraph
from a1gm._solve.components import Components, number_by_rows
from a1gm._solve.factors import NO_CORE, CoreSolution, Factors
from a1gm.exceptions import NotRepresentableError

OUT_OF_RANGE = (
    "The optimal factors of this table are outside the range of float64 (about 1e-308 "
    "to 1e308). Rescale rows or columns, or drop extreme ones."
)


def expand_factors(
    reduced: Any, core: CoreSolution, row_sums: Floats, observed_col: Any
) -> Factors | None:
    """Replay the peeling and put each block on its scale.

    ``row_sums`` are those of the lines; ``observed_col`` marks the columns with an
    observed cell, which have factor 0 when no block holds them. None where a number
    leaves the range in which float64 has all its digits.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        w, h, line_block, col_block, exact = reduced.replay(core.w, core.h)
        if not (exact and in_range(core.w, core.h)):
            return None
        n_blocks = int(reduced.n_core_blocks + reduced.n_roots)
        all_inside = n_blocks == 1 and line_block.min() == 0 == col_block.min()
        if all_inside:
            total = h.sum()
            h /= total
            w *= total
        else:
            line_block, col_block = number_by_rows(line_block, col_block, n_blocks)
            _share_out(w, h, line_block, col_block, row_sums, n_blocks)
        scale = w / row_sums
    lines, cols = line_block >= 0, col_block >= 0
    if not in_range(w[lines], h[cols], scale[lines]):
        return None
    if not all_inside:
        _fill_zero_lines(w, h, line_block, col_block, observed_col, n_blocks)
    if not np.isfinite(scale).all():
        scale[row_sums == 0.0] = 0.0
    return Factors(
        line_factor=w,
        line_scale=scale,
        col_factor=h,
        line_block=line_block,
        col_block=col_block,
        n_blocks=n_blocks,
        all_inside=all_inside,
        **_how_solved(core, len(w), len(h)),
    )


def expand_signed(
    reduced: Any, statistics: Statistics, observed_col: Bools
) -> Factors | None:
    """Replay the peeling of a table that has no core, with sums of any sign.

    ``observed_col`` marks the columns of the table with an observed cell. None where
    something is projected from cells that sum to zero.
    """
    with np.errstate(all="ignore"):
        _, h, line_block, col_block, _ = reduced.replay(NO_CORE.w, NO_CORE.h)
        n_blocks = int(reduced.n_roots)
        line_block, col_block = number_by_rows(line_block, col_block, n_blocks)
        on = col_block >= 0
        totals = weighted_counts(col_block[on], statistics.col_sums[on], n_blocks)
        sums = weighted_counts(col_block[on], h[on], n_blocks)
        # Where they cancel, another scale must do.
        size = weighted_counts(col_block[on], np.abs(h[on]), n_blocks)
        share = np.where(totals == 0.0, 1.0, totals / (totals.sum() or 1.0))
        factor = share / np.where(np.abs(sums) > 1e-9 * size, sums, size)
        h[on] *= factor[col_block[on]]
        h[~on] = np.nan
        inside = statistics.inside(line_block, col_block)
        reach = inside.reach(np.nan_to_num(h))
        scale = 1.0 / reach
    if not (np.isfinite(h[on]).all() and np.isfinite(scale[line_block >= 0]).all()):
        return None
    h[~on & observed_col] = 0.0
    scale[line_block < 0] = 0.0
    return Factors(
        line_factor=statistics.row_sums * scale,
        line_scale=scale,
        col_factor=h,
        line_block=line_block,
        col_block=col_block,
        n_blocks=n_blocks,
        all_inside=n_blocks == 1 and bool(line_block.min() == 0 == col_block.min()),
        **_how_solved(NO_CORE, len(reach), len(h)),
    )


def place_cancelling(
    factors: Factors, statistics: Statistics, components: Components, cancels: Bools
) -> bool:
    """Give rows that cancel within their line the factors that their columns leave.

    Lines that have such rows sum to 0 and add nothing to the columns, which are solved
    without them. False where one observes no block with a factor, or several.
    """
    h = np.nan_to_num(factors.col_factor)
    for k in np.flatnonzero(cancels):
        cols = np.flatnonzero(statistics.observed_lines(slice(k, k + 1))[0] & (h != 0))
        blocks, reach = np.unique(factors.col_block[cols]), h[cols].sum()
        if len(blocks) != 1 or abs(reach) <= 1e-12 * np.abs(h[cols]).sum():
            return False
        factors.line_scale[k] = 1.0 / reach
        factors.line_block[k] = blocks[0]
        components.line[k] = components.col[cols[0]]
    return True


def _how_solved(core: CoreSolution, n_lines: int, n_cols: int) -> dict[str, Any]:
    """What factors say of the solution of their core, expanded to so many lines."""
    n = min(len(core.w) or len(core.h), len(core.h))
    return {
        "solver": core.solver,
        "n_iter": core.n_iter,
        "gap": core.gap,
        "step": way_left(core.step, n) + rounding_of(n_lines, n_cols),
        "cut": core.cut,
    }


def in_range(*factors: Floats) -> bool:
    """Whether no factor of a line with data is 0, infinite or without its digits."""
    return all(
        np.abs(f).min(initial=1.0) >= LEAST and np.abs(f).max(initial=1.0) < np.inf
        for f in factors
    )


def expand_wide(
    reduced: Any,
    core: CoreSolution,
    exponents: tuple[Ints, Ints],
    row_sums: Floats,
    observed_col: Any,
) -> Factors:
    """Do as ``expand_factors`` for factors of any size.

    Those of the core are times two to the ``exponents`` of its rows and columns.
    """
    w, h, line_block, col_block = reduced.replay_wide(core.w, core.h, *exponents)
    n_blocks = int(reduced.n_core_blocks + reduced.n_roots)
    line_block, col_block = number_by_rows(line_block, col_block, n_blocks)
    lines, cols = line_block >= 0, col_block >= 0
    totals = sum_groups(row_sums[lines], line_block[lines], n_blocks)
    every = sum_groups(totals, np.zeros(n_blocks, np.int64), 1)[0]
    sums = sum_groups(Wide(*h)[cols], col_block[cols], n_blocks)
    factor = wide_product(totals, over=wide_product(every, sums))
    line_factor = wide_product(Wide(*w), over=factor[line_block])
    col_factor = wide_product(Wide(*h), factor[col_block])
    with np.errstate(invalid="ignore"):
        scale = wide_product(line_factor, over=row_sums)
    scale.mantissa[row_sums == 0.0] = 0.0
    _fill_zero_lines(
        line_factor.mantissa,
        col_factor.mantissa,
        *(line_block, col_block, observed_col, n_blocks),
    )
    # Plain numbers where only the way to them has left the range.
    numbers = [narrow_if_exact(x) for x in (line_factor, scale, col_factor)]
    if any(isinstance(x, Wide) for x in numbers):
        numbers = [line_factor, scale, col_factor]
    lines_, scales, columns = (
        (x.mantissa, x.exponent) if isinstance(x, Wide) else (x, None) for x in numbers
    )
    return Factors(
        line_factor=lines_[0],
        line_scale=scales[0],
        col_factor=columns[0],
        line_block=line_block,
        col_block=col_block,
        n_blocks=n_blocks,
        all_inside=n_blocks == 1 and bool(lines.all() and cols.all()),
        line_exponent=lines_[1],
        scale_exponent=scales[1],
        col_exponent=columns[1],
        **_how_solved(core, len(lines), len(cols)),
    )


def _share_out(
    w: Floats,
    h: Floats,
    line_block: SmallInts,
    col_block: SmallInts,
    row_sums: Floats,
    n_blocks: int,
) -> None:
    """Scale the column factors of each block to sum to its share of the total."""
    lines, cols = line_block >= 0, col_block >= 0
    totals = np.bincount(line_block[lines], row_sums[lines], minlength=n_blocks)
    share = totals / max(totals.sum(), np.finfo(float).tiny)
    factor = share / np.bincount(col_block[cols], h[cols], minlength=n_blocks)
    h[cols] *= factor[col_block[cols]]
    w[lines] /= factor[line_block[lines]]


def _fill_zero_lines(
    w: Floats,
    h: Floats,
    line_block: SmallInts,
    col_block: SmallInts,
    observed_col: Any,
    n_blocks: int,
) -> None:
    """Set the factors of lines and columns without a positive cell to 0."""
    w[line_block < 0] = 0.0
    zero = col_block < 0
    if zero.any():
        zero &= observed_col()
    # In a table of zeros the row factors are 0, and all columns are alike.
    h[zero] = 0.0 if n_blocks else 1.0 / max(int(zero.sum()), 1)


def expand_disk_factors(
    core: CoreSolution, block: SmallInts, col_sums: Floats, graph: ColumnGraph
) -> Factors:
    """Put each component of a mask in a file on its scale; rows are not held."""
    on = block >= 0
    h = np.where(graph.label >= 0, 0.0, np.nan)
    labels = np.unique(block[on])
    col_block = np.full(len(h), -1, np.int32)
    if len(labels):
        label = block[on]
        sums = weighted_counts(label, core.h[on], graph.n)
        totals = weighted_counts(label, col_sums[on], graph.n)
        share = totals / totals.sum()
        h[on] = product(core.h[on], share[label], over=sums[label])
        if not in_range(core.h[on], h[on]):
            raise NotRepresentableError(OUT_OF_RANGE)
        col_block[on] = np.searchsorted(labels, label)
    else:  # a table of zeros: the row factors are 0
        known = graph.label >= 0
        h[known] = 1.0 / int(known.sum())
    none, nowhere = np.zeros(0), np.zeros(0, np.int32)
    return Factors(
        line_factor=none,
        line_scale=none,
        col_factor=h,
        line_block=nowhere,
        col_block=col_block,
        n_blocks=len(labels),
        all_inside=graph.is_single,
        **_how_solved(core, 0, len(h)),
    )
