"""New rows of tables side by side, placed by the rule for rows of one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from a1gm._base.float_range import LEAST
from a1gm._base.types import Bools, Floats, SmallInts
from a1gm._fit.new_rows import NewRows, Placed
from a1gm._rows import Rows
from a1gm._rows.rows import check_piece, table_of
from a1gm._solve.column_graph import ColumnGraph
from a1gm.nmmf.layout import SharedTable

MOST = 2.0**980  # a sum of many such numbers is still finite


@dataclass(frozen=True, slots=True)
class RowsOfTable:
    """Rows of one table, with the factor and the component of each of its columns."""

    table: SharedTable
    factor: Floats
    label: SmallInts


def place_rows(given: Sequence[RowsOfTable], n_components: int) -> Placed:
    """Place rows that the tables share.

    A table of weight 0 is checked, but says nothing of the rows.
    """
    observes = [_check(rows.table.source) for rows in given]
    steering = [k for k, rows in enumerate(given) if not rows.table.is_passive]
    weighted = [_weighted(given[k]) for k in steering]
    used, weights = [rows for rows in weighted if rows is not None], None
    if len(used) < len(steering):
        used = [given[k] for k in steering]
        weights = table_of(_cell_weights(used, [observes[k] for k in steering]))
    parts = [part for rows in used for part in rows.table.parts]
    label = np.concatenate([rows.label for rows in used])
    factor = np.concatenate([rows.factor for rows in used])
    rule = NewRows(factor, ColumnGraph.of_blocks(label, n_components))
    return rule.place(Rows(parts, len(observes[0]), len(label)), weights)


def _check(source: Rows) -> Bools:
    """Raise for bad cells, in the words of their table; tell which rows observe."""
    observes = np.zeros(source.n_rows, bool)
    for rows, piece in source.blocks():
        check_piece(source, piece, rows.start, None)
        observes[rows] = (~np.isnan(piece)).any(axis=1)
    return observes


def _weighted(rows: RowsOfTable) -> RowsOfTable | None:
    """Cells and factors times the weight of the table; None where digits are lost.

    So the weighted rule is the plain one, which is much faster.
    """
    table = rows.table
    if table.weight == 1.0:
        return rows
    cells = table.source.rows(slice(0, table.n_rows))
    with np.errstate(over="ignore"):
        products = cells * table.weight, rows.factor * table.weight
    for before, after in zip((cells, rows.factor), products, strict=True):
        some = before > 0.0
        if (
            after.min(where=some, initial=1.0) < LEAST
            or after.max(where=some, initial=1.0) > MOST
        ):
            return None
    source = replace(table.source, parts=[(products[0], None, None, 0, 0)])
    return RowsOfTable(replace(table, source=source), products[1], rows.label)


def _cell_weights(given: list[RowsOfTable], observes: list[Bools]) -> Floats:
    """Weight of each cell, in ratio to the largest of the tables that its row meets."""
    weights = np.array([rows.table.weight for rows in given])
    met = np.stack(observes, axis=1) * weights
    largest = np.where(met.any(axis=1), met.max(axis=1), weights.max())
    n_cols = [rows.table.n_cols for rows in given]
    ratios: Floats = np.repeat(weights / largest[:, None], n_cols, axis=1)
    return ratios
