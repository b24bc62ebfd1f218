"""Factors of new rows of tables side by side, for given column factors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from a1gm._base.float_range import product, row_sums
from a1gm._base.types import Bools, Floats, SmallInts
from a1gm._sources.cells import check_piece
from a1gm.exceptions import NotRepresentableError
from a1gm.nmmf.layout import SharedTable
from a1gm.nmmf.passive import SEVERAL, common_label

__all__ = ["NewRows", "shared_row_factors"]

ROWS_AT_ONCE = 1 << 12


@dataclass(frozen=True, slots=True)
class NewRows:
    """New rows of one table, with the factor and the block of each of its columns."""

    table: SharedTable
    factor: Floats
    block: SmallInts


def shared_row_factors(tables: list[NewRows]) -> tuple[Floats, Bools]:
    """Best factor of each row of tables side by side, and which have several.

    It is the weighted sum of the row's observed cells over the weighted sum of their
    column factors, in the block where the row is positive. NaN for a row that observes
    nothing, or is positive in several blocks. A table of weight 0 is checked, but says
    nothing of the rows.
    """
    n = tables[0].table.n_rows
    factors, several = np.empty(n), np.empty(n, bool)
    for start in range(0, n, ROWS_AT_ONCE):
        rows = slice(start, min(start + ROWS_AT_ONCE, n))
        pieces = [_read(new, rows) for new in tables]
        steering = [k for k, new in enumerate(tables) if not new.table.is_passive]
        factors[rows], several[rows] = _factors(
            [tables[k] for k in steering], [pieces[k] for k in steering], start
        )
    return factors, several


def _read(new: NewRows, rows: slice) -> Floats:
    """Read some rows; raise for bad cells. Columns of unknown factor say nothing."""
    cells = new.table.source.rows(rows)
    check_piece(new.table, cells, rows.start, None)
    return np.where(np.isnan(new.factor), np.nan, cells)


def _factors(
    tables: list[NewRows], pieces: list[Floats], start: int
) -> tuple[Floats, Bools]:
    """Factors of the rows of a piece, which begins at row ``start``."""
    blocks, beside = np.concatenate([new.block for new in tables]), np.hstack(pieces)
    own = common_label(beside > 0.0, blocks)
    fitted = np.array(
        [
            (~np.isnan(cells) & (new.block == own[:, None])) @ np.nan_to_num(new.factor)
            for new, cells in zip(tables, pieces, strict=True)
        ]
    )
    weights = np.array([[new.table.weight] for new in tables])
    # Only ratios of weights count: to the largest of those that a row meets.
    largest = np.where(fitted > 0.0, weights, 0.0).max(axis=0)
    ratio = weights / np.where(largest > 0.0, largest, 1.0)
    divisor = (ratio * fitted).sum(axis=0)
    factors = np.zeros(len(own))
    for cells, of_table in zip(pieces, ratio, strict=True):
        sums, exponent = row_sums(np.nan_to_num(cells))
        factors += product(sums, of_table, over=divisor, exponent=exponent)
    known = (beside > 0.0).any(axis=1) & (divisor > 0.0) & (own != SEVERAL)
    _check_range(factors, known, start)
    only_zeros = np.nanmax(beside, axis=1, initial=-1.0) == 0.0
    return np.where(known, factors, np.where(only_zeros, 0.0, np.nan)), own == SEVERAL


def _check_range(factors: Floats, known: Bools, start: int) -> None:
    bad = np.flatnonzero(known & ~(np.isfinite(factors) & (factors != 0.0)))
    if len(bad):
        msg = (
            f"The factor of row {start + bad[0]} is outside the range of float64 "
            "(about 1e-308 to 1e308). Multiply the rows by a power of ten first."
        )
        raise NotRepresentableError(msg)
