"""From the core back to the table: replay the log, fix the scale of each block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from a1gm._solve.core import CoreSolution
from a1gm._base.types import Floats, SmallInts, Solver
from a1gm.exceptions import NotRepresentableError

__all__ = ["Factors", "expand_factors"]


@dataclass(frozen=True, slots=True)
class Factors:
    """Factors of the lines (patterns) and columns, and the block of each.

    ``line_scale`` times a row's sum is that row's factor. Blocks are -1 where a line
    or column has no positive cell.
    """

    line_factor: Floats
    line_scale: Floats
    col_factor: Floats
    line_block: SmallInts
    col_block: SmallInts
    n_blocks: int
    solver: Solver
    n_iter: int
    gap: float
    all_inside: bool  # one block holds every line and column


def expand_factors(
    reduced: Any, core: CoreSolution, row_sums: Floats, observed_col: Any
) -> Factors:
    """Replay the peeling and put each block on its scale.

    ``row_sums`` are those of the lines; ``observed_col`` marks the columns with an
    observed cell, which have factor 0 when no block holds them.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        w, h, line_block, col_block = reduced.replay(core.w, core.h)
    n_blocks = int(reduced.n_core_blocks + reduced.n_roots)
    all_inside = n_blocks == 1 and line_block.min() == 0 == col_block.min()
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if all_inside:
            total = h.sum()
            h /= total
            w *= total
        else:
            line_block, col_block = _order_by_first_line(
                line_block, col_block, n_blocks
            )
            _share_out(w, h, line_block, col_block, row_sums, n_blocks)
        scale = w / row_sums
    _check_range(w[line_block >= 0], h[col_block >= 0])
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
        solver=core.solver,
        n_iter=core.n_iter,
        gap=core.gap,
        all_inside=all_inside,
    )


def _check_range(w: Floats, h: Floats) -> None:
    """Refuse factors of lines with data that are 0 or infinite in float64."""
    for factor in (w, h):
        if not np.isfinite(factor).all() or not factor.all():
            msg = (
                "The optimal factors of this table are outside the range of float64 "
                "(about 1e-308 to 1e308). Rescale rows or columns, or drop extreme "
                "ones."
            )
            raise NotRepresentableError(msg)


def _order_by_first_line(
    line_block: SmallInts, col_block: SmallInts, n_blocks: int
) -> tuple[SmallInts, SmallInts]:
    labels, first = np.unique(line_block, return_index=True)
    labels, first = labels[labels >= 0], first[labels >= 0]
    rename = np.full(n_blocks + 1, -1, np.int32)
    rename[labels[np.argsort(first)]] = np.arange(n_blocks)
    return rename[line_block], rename[col_block]


def _share_out(
    w: Floats,
    h: Floats,
    line_block: SmallInts,
    col_block: SmallInts,
    row_sums: Floats,
    n_blocks: int,
) -> None:
    """Let the column factors of each block sum to its share of the observed total."""
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
    """Lines and columns with data but no positive cell have factor 0."""
    w[line_block < 0] = 0.0
    zero = col_block < 0
    if zero.any():
        zero &= observed_col()
    # In a table of zeros the rows carry the zero, and the columns are all alike.
    h[zero] = 0.0 if n_blocks else 1.0 / max(int(zero.sum()), 1)
