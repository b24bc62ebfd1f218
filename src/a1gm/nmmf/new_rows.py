"""Factors of new rows of tables side by side, for given column factors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from a1gm._base.float_range import product, row_sums
from a1gm._base.types import Floats, SmallInts
from a1gm._observe.one_pass import check_faults
from a1gm._result.new_rows import checked_factors, find_faults
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


def shared_row_factors(tables: list[NewRows]) -> Floats:
    """Best factor of each row of tables side by side.

    It is the weighted sum of the row's observed cells over the weighted sum of their
    column factors, in the block where the row is positive. NaN for a row that observes
    nothing, or is positive in several blocks. A table of weight 0 is checked, but says
    nothing of the rows.
    """
    n = tables[0].table.n_rows
    factors = np.empty(n)
    for start in range(0, n, ROWS_AT_ONCE):
        rows = slice(start, min(start + ROWS_AT_ONCE, n))
        pieces = [_read(new, rows) for new in tables]
        steering = [k for k, new in enumerate(tables) if not new.table.is_passive]
        factors[rows] = _factors(
            [tables[k] for k in steering], [pieces[k] for k in steering]
        )
    return factors


def _read(new: NewRows, rows: slice) -> Floats:
    """Read some rows; raise for bad cells. Columns of unknown factor say nothing."""
    cells = new.table.source.rows(rows)
    check_faults(new.table, *find_faults(cells, rows.start), None)
    return np.where(np.isnan(new.factor), np.nan, cells)


def _factors(tables: list[NewRows], pieces: list[Floats]) -> Floats:
    blocks = np.concatenate([new.block for new in tables])
    own = common_label(np.hstack(pieces) > 0.0, blocks)[:, None]
    fitted = np.array(
        [
            (~np.isnan(cells) & (new.block == own)) @ np.nan_to_num(new.factor)
            for new, cells in zip(tables, pieces, strict=True)
        ]
    )
    weights = np.array([[new.table.weight] for new in tables])
    # Only ratios of weights count: to the largest of those that a row meets.
    largest = np.where(fitted > 0.0, weights, 0.0).max(axis=0)
    ratio = weights / np.where(largest > 0.0, largest, 1.0)
    divisor = (ratio * fitted).sum(axis=0)
    factors, has_data = np.zeros(len(own)), np.zeros(len(own), bool)
    for cells, of_table in zip(pieces, ratio, strict=True):
        sums, exponent = row_sums(np.nan_to_num(cells))
        factors += product(sums, of_table, over=divisor, exponent=exponent)
        has_data |= sums > 0.0
    observes = (~np.isnan(np.hstack(pieces))).any(axis=1)
    divisor[own[:, 0] == SEVERAL] = 0.0
    return checked_factors(factors, has_data, observes, divisor)
