"""New rows of tables side by side, placed by the rule for rows of one table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from a1gm._base.types import Bools, Floats
from a1gm._result.new_rows import NewRows, Placed
from a1gm._solve.column_graph import ColumnGraph
from a1gm._sources import Source
from a1gm._sources.cells import check_piece
from a1gm.nmmf.layout import SharedTable

__all__ = ["place_rows"]


def place_rows(
    tables: Sequence[SharedTable], col_factors: Sequence[Floats], graph: ColumnGraph
) -> Placed:
    """Place rows that the tables share; the columns of ``graph`` are those of all.

    A table of weight 0 is checked, but says nothing of the rows.
    """
    observes = [_check(table.source) for table in tables]
    steering = [k for k, table in enumerate(tables) if not table.is_passive]
    used = np.repeat(
        [not table.is_passive for table in tables], [table.n_cols for table in tables]
    )
    label, factors = (
        graph.label[used],
        np.concatenate([col_factors[k] for k in steering]),
    )
    source = Source(
        [part for k in steering for part in tables[k].parts],
        tables[0].n_rows,
        len(label),
    )
    weights = _cell_weights(
        [tables[k] for k in steering], [observes[k] for k in steering]
    )
    rule = NewRows(factors, ColumnGraph.of_blocks(label, graph.n))
    return rule.place(source, weights)


def _check(source: Source) -> Bools:
    """Raise for bad cells, in the words of their table; tell which rows observe."""
    observes = np.zeros(source.n_rows, bool)
    for rows, piece in source.blocks():
        check_piece(source, piece, rows.start, None)
        observes[rows] = (~np.isnan(piece)).any(axis=1)
    return observes


def _cell_weights(tables: list[SharedTable], observes: list[Bools]) -> Floats | None:
    """Weight of each cell; None where all count alike.

    Only ratios count: to the largest weight of the tables that a row meets, so that no
    cell of a row that meets a table of small weight only is lost.
    """
    weights = np.array([table.weight for table in tables])
    if (weights == weights[0]).all():
        return None
    met = np.stack(observes, axis=1) * weights
    largest = np.where(met.any(axis=1), met.max(axis=1), weights.max())
    n_cols = [table.n_cols for table in tables]
    ratios: Floats = np.repeat(weights / largest[:, None], n_cols, axis=1)
    return ratios
