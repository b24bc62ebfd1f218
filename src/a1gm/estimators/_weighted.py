"""Statistics of rows with weights: a row's cells times its weight.

In the weighted cost the factor of row i appears as s_i w_i only, so weights change the
column factors as if each row were multiplied by its weight.
"""

from __future__ import annotations

from dataclasses import replace

from a1gm._api.pattern_table import PatternTable
from a1gm._base.types import Floats, Negatives
from a1gm._rows.read import AnyRows
from a1gm._rows.rows import check_piece, table_of
from a1gm._rows.sparse import SparseRows, check_stored_cells


def collect_rows(
    source: AnyRows,
    sample_weight: Floats | None,
    *,
    negatives: Negatives,
    n_threads: int | None,
    call: int,
    row_offset: int = 0,
) -> PatternTable:
    """Collect the pattern table of some rows, without a copy of the whole.

    ``call`` tells these pieces from those of other calls, so that tables can be merged.
    """
    table = PatternTable(
        source.n_cols, keep_rows=False, negatives=negatives, n_threads=n_threads
    )
    if sample_weight is None and not isinstance(source, SparseRows):
        return table.add_source(source, (call, 0), row_offset)
    for k, (rows, piece) in enumerate(source.blocks()):
        check_piece(source, piece, rows.start, negatives, row_offset)
        kept = piece
        if sample_weight is not None:
            s = sample_weight[rows]
            kept = piece[s > 0.0] * s[s > 0.0, None]
        if not len(kept):
            table.skip((call, k))
            continue
        part = replace(table_of(kept), col_labels=source.col_labels)
        table.add_source(part, (call, k))
    return table


def weighted_rows(
    source: AnyRows, sample_weight: Floats, negatives: Negatives
) -> SparseRows:
    """Multiply the rows of a sparse table by their weights."""
    assert isinstance(source, SparseRows)
    check_stored_cells(source, negatives)  # it names the cells as they are
    return source.scaled_rows(sample_weight)
