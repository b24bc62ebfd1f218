"""Whether a table in memory is still the one that was fitted."""

from __future__ import annotations

import numpy as np

from a1gm._base.float_range import Wide
from a1gm._base.types import Floats
from a1gm._fit.rows import HeldRows, RowStore
from a1gm._observe.observation import Observation
from a1gm._observe.statistics import (
    MaskStatistics,
    PairStatistics,
    Statistics,
    WeightedStatistics,
)
from a1gm._rows.rows import Rows
from a1gm._solve.dispatch import Solved
from a1gm._solve.factors import Factors


def is_as_fitted(
    seen: Observation, solved: Solved, rows: RowStore, exponent: int
) -> bool:
    """Whether a table that is seen again has the holes and sums that were fitted.

    Sums of the fit are those of the data times 2**-exponent.
    """
    shift = exponent - seen.exponent
    return _are_alike(seen.statistics, solved.statistics, shift) and _have_rows(
        seen, solved.factors, rows
    )


def marks_of(E: Rows) -> Floats:
    """A number for each row that changes with any of its exposures."""
    each = 1.0 + np.sqrt(np.arange(2.0, E.n_cols + 2.0)) % 1.0
    with np.errstate(all="ignore"):  # beyond float64 infinite, which is a mark, too
        rows = [np.nan_to_num(piece, nan=-1.0) @ each for _, piece in E.blocks()]
    return np.concatenate(rows)


def are_as_marked(E: Rows, marks: Floats) -> bool:
    """Whether exposures are those that had these marks."""
    return np.allclose(marks, marks_of(E), rtol=1e-9, atol=0.0)


def _are_alike(new: Statistics, old: Statistics, shift: int) -> bool:
    """Whether two tables have the same sums but for rounding, and the same holes."""
    sums = new.col_sums, np.ldexp(old.col_sums, shift)
    if not np.allclose(*sums, rtol=1e-9, atol=0.0, equal_nan=True):
        return False
    if type(new) is not type(old):  # read again in another way: cell by cell, say
        return True
    if new.n_lines != old.n_lines:
        return False
    if isinstance(new, PairStatistics):  # their holes show in the sums of the rows
        return True
    if isinstance(new, MaskStatistics) and not _are_close(
        new.sums, np.ldexp(old.line_sums(slice(0, old.n_lines)), shift)
    ):
        return False
    return np.array_equal(new.mask_words()[0], old.mask_words()[0])


def _have_rows(seen: Observation, factors: Factors, rows: RowStore) -> bool:
    """Whether rows have the sums that made their factors, as far as that is known."""
    if not isinstance(rows, HeldRows) or isinstance(rows.numbers, Wide):
        return True
    scale, own = factors.line_scale, rows.numbers
    if seen.exponent or seen.exposure_exponent or factors.scale_exponent is not None:
        return True
    if seen.line_of_row is not None and rows.line_of_row is not None:
        line, sums = seen.line_of_row, seen.row_sums
        if not np.array_equal(line, rows.line_of_row):
            return False
    elif isinstance(seen.statistics, PairStatistics | WeightedStatistics):
        own, line = factors.line_factor, np.arange(len(scale))
        if len(own) != seen.statistics.n_lines:
            return True
        sums = seen.statistics.line_sums(slice(0, len(own)))
    else:
        return True
    with np.errstate(all="ignore"):
        return _are_close(sums * scale[line], own)


def _are_close(one: Floats, other: Floats) -> bool:
    """Whether numbers are the same but for rounding, where the others are known."""
    known = np.isfinite(other)
    atol = 1e-9 * float(np.abs(other).max(initial=0.0, where=known))
    return bool(np.allclose(one[known], other[known], rtol=1e-9, atol=atol))
