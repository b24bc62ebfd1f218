"""Rows whose holes are to be filled, by the rule for rows of any origin."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from a1gm._base.types import Floats, Ints
from a1gm._fit import one_pass
from a1gm._fit.fill_columns import Left, Target, fill_columns
from a1gm._fit.new_rows import NewRows, Placed
from a1gm._rows.read import AnyRows
from a1gm._rows.rows import Rows, table_of
from a1gm._rows.sparse import SparseRows


def filled_rows(rule: NewRows, values: Floats) -> Floats:
    """Rows with their holes filled; NaN where the data determine no value."""
    if not np.isnan(values).any():
        return values
    source = table_of(values)
    rows, filled = RowsToFill(rule, source), np.empty_like(values)
    fill_columns(source, rows.values, rows.one_pass, [filled])
    return filled


class RowsToFill:
    """Rows whose holes are filled in one pass, or placed first where that fails.

    Parameters
    ----------
    rule : NewRows
        How they are placed.
    source, V
        The rows, and the weights of their cells.
    otherwise : ndarray, optional
        What cells without a value get, by column; NaN leaves them missing.
    """

    def __init__(
        self,
        rule: NewRows,
        source: AnyRows,
        V: Any = None,
        otherwise: Floats | None = None,
    ) -> None:
        self._rule, self._source, self._weights = rule, source, V
        self._otherwise = otherwise
        if isinstance(source, SparseRows):
            self._check()

    @cached_property
    def _placed(self) -> Placed:
        return self._rule.place(self._source, self._weights)

    def _check(self) -> None:
        """Raise for bad cells."""
        _ = self._placed

    def values(self, i: Ints, j: Ints) -> Floats:
        """Values of missing cells; NaN where the data determine none."""
        values = self._placed.values(i, j)
        if self._otherwise is None:
            return values
        return np.where(np.isnan(values), self._otherwise[j], values)

    def one_pass(self, targets: Sequence[Target]) -> Left | None:
        """Fill all columns of a dense table; None, after a check, where it cannot."""
        source, left = self._source, None
        assert isinstance(source, Rows)
        # Only arrays are filled in place: then before any cell is changed.
        if source.backend is None and any(_is_shared(t, source) for t in targets):
            self._check()
        h = self._rule.plain_factors(self._weights)
        if h is not None:
            takes_negatives = self._rule.has_negatives
            left = one_pass.fill_rows(
                source, h, targets, self._otherwise, takes_negatives=takes_negatives
            )
        if left is None:
            self._check()
        return left


def _is_shared(target: Target, source: Rows) -> bool:
    """Whether a target may lie in the memory of the table itself."""
    return target is not None and any(
        np.may_share_memory(target, part[0]) for part in source.parts
    )
