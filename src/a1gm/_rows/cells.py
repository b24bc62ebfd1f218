"""Bad cells, and the errors that name them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from a1gm._base.types import Bools, Floats, Negatives
from a1gm._rows.dense import Rows
from a1gm._rows.sparse import SparseRows
from a1gm.exceptions import InfiniteValuesError, NegativeValuesError

#: Cells of one bad kind: how many, and row, column and value of the first.
Fault: TypeAlias = tuple[int, int, int, float]
ADVICE = ', or pass negatives="allow" to fit the margins only'


def check_faults(
    source: Any,
    negative: Fault,
    infinite: Fault,
    negatives: Negatives | None,
    row_offset: int = 0,
) -> None:
    """Raise for infinite cells, and for negative ones unless they are allowed.

    ``negatives`` is None where the caller has no such option to advise.
    """
    count, row, col, value = infinite
    if count:
        where = source.where(row, col, row_offset)
        raise InfiniteValuesError(
            f"Input {source.name} contains infinity: {where} = {value} ({count} in "
            "all). Entries must be finite; mark unknown ones as NaN."
        )
    count, row, col, value = negative
    if count and negatives != "allow":
        where = source.where(row, col, row_offset)
        advice = "" if negatives is None else ADVICE
        raise NegativeValuesError(
            f"Negative values in data: {where} = {value:g} ({count} in all). Entries "
            f"must be >= 0; mark unknown ones as NaN{advice}."
        )


def check_piece(
    source: Rows | SparseRows,
    piece: Floats,
    start: int,
    negatives: Negatives | None = "raise",
    row_offset: int = 0,
) -> None:
    """Raise for negative and infinite cells of some dense rows of a table.

    ``start`` is the place of the first of these rows in the table.
    """
    infinite = np.isinf(piece)
    faults: list[Fault] = []
    for bad in ((piece < 0.0) & ~infinite, infinite):
        n = int(bad.sum())
        row, col = divmod(int(bad.argmax()), piece.shape[1])
        first = (n, row + start, col, float(piece[row, col]))
        faults.append(first if n else (0, 0, 0, 0.0))
    check_faults(source, faults[0], faults[1], negatives, row_offset)


def check_stored_cells(
    source: SparseRows, negatives: Negatives | None, row_offset: int = 0
) -> int:
    """Raise for bad cells of a sparse table; returns how many are negative."""
    x = source.values
    low, high = (float(x.min()), float(x.max())) if len(x) else (0.0, 0.0)
    if low >= 0.0 and high < np.inf:  # neither is NaN: nothing to look for
        return 0
    infinite = np.isinf(x)
    negative = (x < 0.0) & ~infinite
    faults = [_stored_fault(source, bad) for bad in (negative, infinite)]
    check_faults(source, faults[0], faults[1], negatives, row_offset)
    return faults[0][0]


def _stored_fault(source: SparseRows, bad: Bools) -> Fault:
    count = int(bad.sum())
    if count == 0:
        return 0, -1, -1, 0.0
    at = int(bad.argmax())
    return count, *source.place(at), float(source.values[at])
