"""From the core back to the table: replay the log, fix the scale of each block."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from a1gm._base.float_range import LEAST, out_of_range
from a1gm._base.types import Floats, SmallInts
from a1gm._observe.patterns import Patterns, weighted_counts
from a1gm._solve.cell_error import rounding_of, way_left
from a1gm._solve.components import number_by_rows
from a1gm._solve.factors import NO_CORE, CoreSolution, Factors

CANCELLED = 1e-9  # of the sum of absolute values: a smaller sum is rounding


def expand_factors(reduced: Any, core: CoreSolution, patterns: Patterns) -> Factors:
    """Replay the peeling and put each block on its scale."""
    row_sums = patterns.row_sums
    with np.errstate(all="ignore"):
        w, h, pattern_block, col_block, exact = reduced.replay(core.w, core.h)
        if not (exact and in_range(core.w, core.h)):
            _refuse_range(w, h, pattern_block, col_block, patterns)
        n_blocks = int(reduced.n_core_blocks + reduced.n_roots)
        all_inside = n_blocks == 1 and pattern_block.min() == 0 == col_block.min()
        if all_inside:
            total = h.sum()
            h /= total
            w *= total
        else:
            pattern_block, col_block = number_by_rows(
                pattern_block, col_block, n_blocks
            )
            _share_out(w, h, pattern_block, col_block, row_sums, n_blocks)
        scale = w / row_sums
    has_data, cols = pattern_block >= 0, col_block >= 0
    if not in_range(w[has_data], h[cols], scale[has_data]):
        _refuse_range(w, h, pattern_block, col_block, patterns)
    if not all_inside:
        # Columns that are observed, and positive nowhere, have factor 0. In a table of
        # zeros the row factors are 0, and all columns are alike.
        w[~has_data] = 0.0
        zero = ~cols & patterns.has_observed()[1]
        h[zero] = 0.0 if n_blocks else 1.0 / max(int(zero.sum()), 1)
    if not np.isfinite(scale).all():
        scale[row_sums == 0.0] = 0.0
    return Factors(
        pattern_factor=w,
        pattern_scale=scale,
        col_factor=h,
        pattern_block=pattern_block,
        col_block=col_block,
        n_blocks=n_blocks,
        all_inside=all_inside,
        **_how_solved(core, len(w), len(h)),
    )


def expand_signed(reduced: Any, patterns: Patterns) -> Factors | None:
    """Replay a peeling to the end with sums of any sign.

    None where something is projected from factors that cancel.
    """
    nothing = np.zeros(0)
    with np.errstate(all="ignore"):
        _, h, pattern_block, col_block, _ = reduced.replay(nothing, nothing)
    n_blocks = int(reduced.n_core_blocks + reduced.n_roots)
    blocks = number_by_rows(pattern_block, col_block, n_blocks)
    return signed_factors(h, *blocks, patterns)


def signed_factors(
    h: Floats, pattern_block: SmallInts, col_block: SmallInts, patterns: Patterns
) -> Factors | None:
    """Put column factors of any sign on the scale of the data, and place the patterns.

    None where factors that a row observes cancel.
    """
    n_blocks = int(max(pattern_block.max(), col_block.max())) + 1
    on = col_block >= 0
    with np.errstate(all="ignore"):
        totals = weighted_counts(col_block[on], patterns.col_sums[on], n_blocks)
        sums = weighted_counts(col_block[on], h[on], n_blocks)
        # Where they cancel, another scale must do.
        size = weighted_counts(col_block[on], np.abs(h[on]), n_blocks)
        share = np.where(totals == 0.0, 1.0, totals / (totals.sum() or 1.0))
        factor = share / np.where(np.abs(sums) > CANCELLED * size, sums, size)
        h[on] = h[on] * factor[col_block[on]] + 0.0  # no -0.0
        h[~on] = np.nan
        inside = patterns.inside(pattern_block, col_block)
        ones = np.ones(patterns.n_patterns)
        reach, most = (
            inside.margins(ones, np.nan_to_num(x))[0] for x in (h, np.abs(h))
        )
        scale = 1.0 / np.where(np.abs(reach) > CANCELLED * most, reach, 0.0)
    is_empty = (pattern_block < 0) | ((most == 0.0) & ~patterns.has_row_sums())
    if not (np.isfinite(h[on]).all() and np.isfinite(scale[~is_empty]).all()):
        return None
    h[~on & patterns.has_observed()[1]] = 0.0
    scale[is_empty] = 0.0
    return Factors(
        pattern_factor=patterns.row_sums * scale + 0.0,
        pattern_scale=scale,
        col_factor=h,
        pattern_block=pattern_block,
        col_block=col_block,
        n_blocks=n_blocks,
        all_inside=n_blocks == 1 and bool(pattern_block.min() == 0 == col_block.min()),
        **_how_solved(NO_CORE, len(scale), len(h)),
    )


def _how_solved(core: CoreSolution, n_patterns: int, n_cols: int) -> dict[str, Any]:
    """Fields of `Factors` that describe the solution of the core."""
    n = min(len(core.w) or len(core.h), len(core.h))
    return {
        "solver": core.solver,
        "n_iter": core.n_iter,
        "gap": core.gap,
        "step": way_left(core.step, n) + rounding_of(n_patterns, n_cols),
        "cut": core.cut,
    }


def in_range(*factors: Floats) -> bool:
    """Whether no factor of a pattern with data is 0, infinite or without its digits."""
    return all(
        np.abs(f).min(initial=1.0) >= LEAST and np.abs(f).max(initial=1.0) < np.inf
        for f in factors
    )


def _refuse_range(
    w: Floats,
    h: Floats,
    pattern_block: SmallInts,
    col_block: SmallInts,
    patterns: Patterns,
) -> NoReturn:
    """Name the first column, else row, whose factor is out of range."""
    for side, factor, block in (("column", h, col_block), ("row", w, pattern_block)):
        lost = (block >= 0) & ~((factor >= LEAST) & (factor < np.inf))
        if lost.any():
            at = int(lost.argmax())
            raise out_of_range(side, at if side == "column" else patterns.row_of(at))
    raise out_of_range("row")


def _share_out(
    w: Floats,
    h: Floats,
    pattern_block: SmallInts,
    col_block: SmallInts,
    row_sums: Floats,
    n_blocks: int,
) -> None:
    """Scale the column factors of each block to sum to its share of the total."""
    has_data, cols = pattern_block >= 0, col_block >= 0
    of_data = pattern_block[has_data]
    totals = np.bincount(of_data, row_sums[has_data], minlength=n_blocks)
    share = totals / max(totals.sum(), np.finfo(float).tiny)
    factor = share / np.bincount(col_block[cols], h[cols], minlength=n_blocks)
    h[cols] *= factor[col_block[cols]]
    w[has_data] /= factor[of_data]
