"""Long tables with three keys or more."""

from __future__ import annotations

import numpy as np

from a1gm._fit.frames import Long
from a1gm._observe.patterns import weighted_counts
from a1gm._rows.long import Duplicates, LongTable
from a1gm.tensor.read import Cells, Listed
from a1gm.tensor.reduce import distinct_rows


def cells_of_long(table: LongTable, duplicates: Duplicates) -> tuple[Cells, Long]:
    """The cells of a long table, and what its frame has beside them."""
    shape = tuple(len(key.values) for key in table.keys)
    codes = [key.codes.astype(np.int64) for key in table.keys]
    distinct, inverse = distinct_rows(codes, *shape)
    if len(distinct[0]) < len(table.values) and duplicates == "raise":
        table.refuse_duplicates()
    known = ~np.isnan(table.values)
    n = len(distinct[0])
    values = weighted_counts(inverse[known], table.values[known], n)
    is_known = np.bincount(inverse[known], minlength=n) > 0
    weights = every = None
    if table.weights is not None:
        weights = np.full(n, np.nan)
        weights[inverse] = table.weights
        every = Listed.of(distinct, weights, shape)
        is_known &= np.nan_to_num(weights) > 0.0
    cells = Cells(
        tuple(k[is_known] for k in distinct),
        values[is_known],
        shape,
        tuple(table.names[:-1]),
        tuple(key.labels for key in table.keys),
        None if weights is None else weights[is_known],
        table.exposed,
        every,
        name=str(table.names[-1]),
    )
    cells.check()
    keys = tuple(key.values for key in table.keys)
    backend = str(table.frame.implementation.value)
    return cells, Long(table.names, keys, backend)
