"""One pass of the kernel over a table in one piece, or over tables side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from a1gm._base.float_range import TOO_FAR_APART
from a1gm._base.types import AnyArray, Floats, Negatives
from a1gm._kernel import SMALL, SMALL_PIECE, kernel, say_if_slow, threads_for
from a1gm._observe.observation import LIFT, TABLE_CELLS, TINY, Observation
from a1gm._observe.statistics import MaskStatistics, PatternStatistics
from a1gm._rows.rows import Fault, Rows, check_faults
from a1gm.exceptions import NotRepresentableError

SAME = 1e-13  # relative: sums of the same numbers on two scales


class Columns(Protocol):
    """What the pass needs of a table in one piece whose columns stand beside others."""

    @property
    def name(self) -> str:
        """What messages call the table."""

    @property
    def parts(self) -> Sequence[Any]:
        """Stretches of columns, as the kernel reads them."""

    @property
    def n_rows(self) -> int:
        """Rows of the table."""

    @property
    def n_cols(self) -> int:
        """Columns of the table."""

    def where(self, row: int, col: int, row_offset: int = 0) -> str:
        """Name a cell the way its owner does."""


def observe_parts(
    source: Rows,
    *,
    n_threads: int | None = None,
    negatives: Negatives | None = "raise",
    keep_table: bool = False,
    row_offset: int = 0,
) -> Observation:
    """Observe a table in one piece, and raise for cells that cannot be fitted."""
    row_sums, *found = _observe(
        [source], source.parts, 1, n_threads, keep_table, negatives, row_offset
    )
    return _observation(row_sums[0], row_sums[0], *found)


def observe_side_by_side(
    sources: Sequence[Columns],
    *,
    separate: bool,
    n_threads: int | None = None,
    keep_table: bool = False,
) -> Observation:
    """Observe tables with the same rows in one pass, as if they were one table.

    The statistics have the columns of all tables, one table after the other. With
    ``separate`` each table has row sums of its own; otherwise they count into one.
    Negative cells are refused: several tables have no option that allows them.
    """
    parts = [
        (*part[:4], k if separate else 0)
        for k, source in enumerate(sources)
        for part in source.parts
    ]
    n_groups = len(sources) if separate else 1
    row_sums, *found = _observe(
        sources, parts, n_groups, n_threads, keep_table, None, 0
    )
    total = row_sums[0] if n_groups == 1 else row_sums.sum(axis=0)
    return _observation(row_sums, total, *found)


def _observe(
    sources: Sequence[Columns],
    parts: Any,
    n_groups: int,
    n_threads: int | None,
    keep_table: bool,
    negatives: Negatives | None | None,
    row_offset: int,
) -> tuple[Any, bool, Any, int, int]:
    """Run the kernel's pass, again on another scale when the sums leave float64."""
    say_if_slow()
    n_cells = 0
    for source in sources:
        n_cells += source.n_rows * source.n_cols
    threads = threads_for(n_cells, n_threads, SMALL_PIECE if keep_table else SMALL)
    exponent, before = 0, None
    while True:
        row_sums, wide, found, total, overflow, negative, infinite = kernel.observe(
            parts,
            n_groups,
            threads,
            math.ldexp(1.0, -exponent),
            TABLE_CELLS,
            keep_table,
        )
        if negative[0] or infinite[0]:
            _check_columns(sources, negative, infinite, negatives, row_offset)
        # Sums that are finite still overflow when their total does: it divides them.
        if (overflow or not math.isfinite(total)) and exponent <= 0:
            before = _sums_of(row_sums, wide, found)
            exponent = 2 + int(math.log2(n_cells))
        elif exponent == 0 and 0.0 < total < TINY:
            exponent = -int(math.log2(LIFT))
        else:
            if before is not None:
                _check_digits(before, _sums_of(row_sums, wide, found), exponent)
            return row_sums, wide, found, exponent, negative[0]


def _sums_of(row_sums: Floats, wide: bool, found: Any) -> list[AnyArray]:
    """Sums that a pass has kept and, where it keeps bits, the signs of the cells."""
    return [row_sums, found[2], found[1]] if wide else [row_sums, found[3]]


def _check_digits(before: list[AnyArray], after: list[AnyArray], exponent: int) -> None:
    """Raise if sums that did not overflow have lost digits on the new scale."""
    for old, new in zip(before, after, strict=True):
        if old.dtype != np.float64:
            is_lost = old != new
        else:
            with np.errstate(invalid="ignore", over="ignore"):
                is_lost = np.abs(np.ldexp(new, exponent) - old) > SAME * np.abs(old)
            is_lost &= np.isfinite(old)
        if is_lost.any():
            raise NotRepresentableError(TOO_FAR_APART)


def _observation(
    row_sums: Floats, of_rows: Floats, wide: bool, found: Any, exponent: int, n: int
) -> Observation:
    """Statistics in the form that the pass has kept; n cells are negative."""
    if not wide:
        ids, keys, counts, sums = found
        table = PatternStatistics(keys, counts, sums)
        return Observation(row_sums, ids, table, exponent, n)
    bits, positive, col_sums, has_zero = found
    mask = MaskStatistics(bits, positive if has_zero else None, of_rows, col_sums)
    return Observation(row_sums, None, mask, exponent, n)


def _check_columns(
    sources: Sequence[Columns],
    negative: Fault,
    infinite: Fault,
    negatives: Negatives | None | None,
    row_offset: int,
) -> None:
    """Raise for bad cells in the words of the table that has the first of them."""
    col = (infinite if infinite[0] else negative)[2]
    for source in sources:
        if col < source.n_cols:
            break
        col -= source.n_cols
    negative = (*negative[:2], col, negative[3])
    infinite = (*infinite[:2], col, infinite[3])
    check_faults(source, negative, infinite, negatives, row_offset)
