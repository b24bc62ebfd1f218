"""The one place that observes: any source becomes statistics."""

from __future__ import annotations

from typing import Any

from a1gm._base.types import Negatives
from a1gm._observe.observation import Observation
from a1gm._observe.one_pass import observe_parts
from a1gm._observe.pieces import PieceSums
from a1gm._observe.sparse import observe_sparse
from a1gm._sources.dense import Source
from a1gm._sources.read import AnySource
from a1gm._sources.sparse import SparseSource
from a1gm.exceptions import DataError, InfiniteValuesError, NegativeValuesError

__all__ = ["check_row_sums", "observe"]


def observe(
    source: AnySource,
    *,
    n_threads: int | None = None,
    negatives: Negatives = "raise",
    keep_table: bool = False,
    row_offset: int = 0,
) -> Observation:
    """Observe a table once, and raise for cells that cannot be fitted.

    Parameters
    ----------
    source : Source or SparseSource
        The table.
    n_threads : int, optional
        Threads for the pass; the cores available by default.
    negatives : {"raise", "allow"}
        What to do with cells below zero.
    keep_table : bool
        Keep the sums of every pattern, however many there are.
    row_offset : int
        Rows of the table before this piece, for messages.
    """
    if isinstance(source, SparseSource):
        return observe_sparse(source, negatives=negatives, row_offset=row_offset)
    look = observe_parts if source.cut is None else _observe_pieces
    return look(
        source,
        n_threads=n_threads,
        negatives=negatives,
        keep_table=keep_table,
        row_offset=row_offset,
    )


def _observe_pieces(
    source: Source, *, row_offset: int = 0, keep_table: bool = False, **options: Any
) -> Observation:
    """Add up the pattern tables of the pieces, and join the pieces only if need be.

    A table with nearly as many patterns as rows is observed as a mask, which has no
    sum over pieces; a bad cell is looked for in the whole, to count them all.
    """
    pieces = PieceSums(source.n_rows, source.n_cols)
    try:
        for first, piece in source.pieces():
            seen = observe_parts(piece, keep_table=keep_table, **options)
            if not pieces.add(first, seen) or (not keep_table and pieces.is_waste):
                break
        else:
            return pieces.observation()
    except (InfiniteValuesError, NegativeValuesError):
        pass
    whole = source.in_one_piece()
    return observe_parts(whole, row_offset=row_offset, keep_table=keep_table, **options)


def check_row_sums(seen: Observation, labels: Any = None, row_offset: int = 0) -> None:
    """Raise for a row that sums to less than zero, where negative cells are allowed."""
    if not seen.n_negative or not (seen.row_sums < 0.0).any():
        return
    row = int((seen.row_sums < 0.0).argmax())
    name = row + row_offset if labels is None else repr(labels[row])
    value = float(seen.row_sums[row]) * 2.0**seen.exponent
    msg = (
        'With negatives="allow" every row and column sum must be positive, but the sum '
        f"of row {name} is {value:g}. Drop that row or mark its negative cells as "
        "missing."
    )
    raise DataError(msg)


def negatives_of(*, has_negatives: bool) -> Negatives:
    """Take new cells as the fitted ones were taken."""
    return "allow" if has_negatives else "raise"
