"""Shared row factors of new rows, for given column factors."""

from __future__ import annotations

import numpy as np

from a1gm._base.float_range import product, row_sums
from a1gm._base.types import Bools, Floats, SmallInts
from a1gm._observe.one_pass import check_faults
from a1gm._result.new_rows import checked_factors, find_faults
from a1gm.nmmf.layout import SharedTable

__all__ = ["shared_row_factors"]

ROWS_AT_ONCE = 1 << 12


def shared_row_factors(tables: list[tuple[SharedTable, Floats]]) -> Floats:
    """Best factor of each row for tables side by side with their column factors.

    With the column factors fixed it is the weighted sum of the row's observed cells
    over the weighted sum of their factors; NaN where nothing is observed. A table of
    weight 0 is checked, but says nothing of the rows.
    """
    read = [(table.weight, _sums(table, factor)) for table, factor in tables]
    found = [part for weight, part in read if weight > 0.0]
    weights = np.array([[weight] for weight, _ in read if weight > 0.0])
    fitted = np.array([part[2] for part in found])
    # Only ratios of weights count: to the largest of those that a row meets.
    largest = np.where(fitted > 0.0, weights, 0.0).max(axis=0)
    ratio = weights / np.where(largest > 0.0, largest, 1.0)
    divisor = (ratio * fitted).sum(axis=0)
    factors: Floats = sum(  # type: ignore[assignment]
        product(sums, of_table, over=divisor, exponent=exponent)
        for (sums, exponent, _, _), of_table in zip(found, ratio, strict=True)
    )
    has_data = np.any([part[0] > 0.0 for part in found], axis=0)
    observes = np.any([part[3] for part in found], axis=0)
    return checked_factors(factors, has_data, observes, divisor)


def _sums(
    table: SharedTable, factor: Floats
) -> tuple[Floats, SmallInts, Floats, Bools]:
    """Sum and exponent of each row, the sum of its factors, and if there is any."""
    known = ~np.isnan(factor)
    h = np.where(known, factor, 0.0)
    n = table.source.n_rows
    sums, exponents = np.zeros(n), np.zeros(n, np.int32)
    fitted, seen = np.zeros(n), np.zeros(n, bool)
    for start in range(0, n, ROWS_AT_ONCE):
        rows = slice(start, min(start + ROWS_AT_ONCE, n))
        block = table.source.rows(rows)
        check_faults(table, *find_faults(block, start), None)
        if table.is_passive:
            continue
        observed = ~np.isnan(block) & known
        sums[rows], exponents[rows] = row_sums(np.where(observed, block, 0.0))
        fitted[rows] = observed @ h
        seen[rows] = observed.any(axis=1)
    return sums, exponents, fitted, seen
