"""Uncertainty of a joint fit: errors of cells, totals and factors of each table."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from a1gm._base.types import Bools, Floats, Ints
from a1gm._fit.sure.arguments import Axis, By, Which
from a1gm._fit.sure.uncertainty import Errors, Uncertainty
from a1gm._rows.labels import Lookup
from a1gm.exceptions import ParameterError
from a1gm.nmmf.view import TableView


class TableUncertainty(Errors):
    """Uncertainty of one table of a joint fit. Made by ``fit.uncertainty()``.

    A cell of a table of weight v has the variance dispersion × mean / v. Dispersion,
    degrees of freedom and the tests of fit are those of all tables together.
    """

    def __init__(self, joint: Uncertainty, view: TableView, scale: float) -> None:
        vars(self).update(vars(joint))
        self._joint, self._view = joint, view
        self._scale = scale  # cells of the joint table over those of this one
        self._process = joint.dispersion / view.table.weight
        self._backend = None

    def summary(self) -> dict[str, str]:
        """The dispersion and the tests of fit, one entry each."""
        return {"table": self._view.table.name} | super().summary()

    def _finder(self, axis: Axis) -> Lookup:
        rows = self._view.table.rows
        if axis == "row":
            return Lookup(axis, rows.row_labels, rows.n_rows)
        return Lookup(axis, rows.col_labels, rows.n_cols)

    def _slice(self, axis: Axis) -> tuple[Axis, slice]:
        entities = self._view.row if axis == "row" else self._view.col
        return ("column" if entities.is_column else "row"), entities.place

    def _cells(self, rows: Ints, cols: Ints) -> tuple[Floats, Floats]:
        _, variance = self._joint._cells(*self._view.positions(rows, cols))
        return self._view.values(rows, cols), variance / self._scale**2

    def _sums(self, by: By, cells: Which) -> tuple[Floats, Floats, int]:
        if not self._view.table.rows.parts:
            raise ParameterError(
                "This fit was pickled without its tables, so their missing cells are "
                "not known. Compute totals() before, or fit the tables again."
            )
        side: By = "all"
        own = slice(None)
        if by != "all":
            side, own = self._slice(by)
        seen: list[tuple[Bools, Bools]] = []
        pieces = self._pieces(cells, seen)
        if side == "row":
            value, away, per_row = self._row_sums(pieces)
            variance = self.dispersion * value**2 * per_row + away
        else:
            value, variance = self._column_totals(side, pieces)
            value, variance = value[own], variance[own]
        wanted, known = (np.concatenate(part) for part in zip(*seen, strict=True))
        axis = {"row": 1, "column": 0, "all": None}[side]
        value[wanted.any(axis) & ~known.any(axis)] = np.nan
        return value, variance, int((wanted & ~known).sum())

    def _pieces(
        self, cells: Which, seen: list[tuple[Bools, Bools]]
    ) -> Iterator[tuple[Floats, ...]]:
        """Yield the chosen cells as the totals of the joint fit take them.

        ``seen`` gets which cells are wanted, and which of these have a value.
        """
        view, table = self._view, self._view.table
        row, col = (view.col, view.row) if table.is_turned else (view.row, view.col)
        for some, given in table.turned.in_pieces():
            if table.is_turned:
                fitted = view.fitted(slice(None), some).T
            else:
                fitted = view.fitted(some)
            wanted = np.isnan(given) | (cells == "fitted")
            known = wanted & ~np.isnan(fitted)
            seen.append((wanted, known))
            F = np.zeros((len(given), len(self._info.h)))
            F[:, col.place] = np.where(known, fitted, 0.0)
            rows = slice(row.start + some.start, row.start + some.stop)
            yield self._rows_of(rows, F)
