"""Statistics of rows with weights: a row's cells times its weight.

In the weighted cost the factor of row i appears as s_i w_i only, so weights change the
column factors as if each row were multiplied by its weight.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from a1gm._sources import AnySource, SparseSource
from a1gm._observe.one_pass import Observation, observe
from a1gm._api.pattern_table import PatternTable
from a1gm._result.new_rows import refuse_bad_cells
from a1gm._base.types import Floats, Negatives

__all__ = ["collect_rows", "observe_weighted_sparse"]

BLOCK_CELLS = 1 << 20


def collect_rows(
    source: AnySource,
    sample_weight: Floats | None,
    *,
    negatives: Negatives,
    n_threads: int | None,
    call: int,
    row_offset: int = 0,
) -> PatternTable:
    """Collect the pattern table of some rows, without a copy of the whole.

    ``call`` tells these blocks from those of other calls, so that tables can be merged.
    """
    table = PatternTable(
        source.n_cols, keep_rows=False, negatives=negatives, n_threads=n_threads
    )
    if sample_weight is None and not isinstance(source, SparseSource):
        seen = observe(
            source,
            n_threads=n_threads,
            negatives=negatives,
            keep_table=True,
            row_offset=row_offset,
        )
        table.add_observation(seen, (call, 0))
        return table
    for k, (rows, block) in enumerate(_row_blocks(source)):
        refuse_bad_cells(source, block, rows.start, negatives, row_offset)
        if sample_weight is not None:
            s = sample_weight[rows]
            block = block[s > 0.0] * s[s > 0.0, None]  # noqa: PLW2901
        if len(block):
            table.update(block, key=(call, k))
        else:
            table.skip((call, k))
    return table


def observe_weighted_sparse(
    source: SparseSource, sample_weight: Floats, negatives: Negatives
) -> Observation:
    """Observe a sparse table with its rows multiplied by their weights."""
    observe(source, negatives=negatives)  # its checks name the cells as they are
    return observe(source.scaled_rows(sample_weight), negatives=negatives)


def _row_blocks(source: AnySource) -> Iterator[tuple[slice, Floats]]:
    if not isinstance(source, SparseSource):
        yield from source.blocks()
        return
    step = max(1, BLOCK_CELLS // source.n_cols)
    for start in range(0, source.n_rows, step):
        rows = slice(start, min(start + step, source.n_rows))
        yield rows, np.asarray(source.rows(rows))
