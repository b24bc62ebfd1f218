"""Write the columns of a table with their missing cells filled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from a1gm._base.types import AnyArray, Floats, Ints
from a1gm._rows.rows import Rows

#: Where some columns go; None for a column that nobody asks for.
Target: TypeAlias = AnyArray | None
#: The values of the cells (rows[k], cols[k]); NaN for a cell that stays missing.
Values: TypeAlias = Callable[[Ints, Ints], Floats]


class Left(NamedTuple):
    """The cells that stay missing: how many, and the first."""

    n: int
    first: tuple[int, int] | None


#: Fills the targets at once, or gives None where it cannot.
OnePass: TypeAlias = Callable[[Sequence[Target]], Left | None]


def fill_columns(
    source: Rows, values: Values, one_pass: OnePass | None, targets: Sequence[Target]
) -> Left:
    """Fill targets that have the columns of the source, in one pass if there is one."""
    left = None if one_pass is None else one_pass(targets)
    return _fill_pieces(source, values, targets) if left is None else left


def _fill_pieces(source: Rows, values: Values, targets: Sequence[Target]) -> Left:
    n_left, first = 0, None
    for rows, piece in source.blocks():
        i, j = np.nonzero(np.isnan(piece))
        if len(i):
            found = values(i + rows.start, j)
            piece[i, j] = found
            left = np.flatnonzero(np.isnan(found))
            if len(left) and first is None:
                first = int(i[left[0]]) + rows.start, int(j[left[0]])
            n_left += len(left)
        at = 0
        for target in targets:
            width = 1 if target is None else target.shape[1]
            if target is not None:  # -0.0 becomes 0.0
                cells = piece[:, at : at + width]
                np.add(cells, 0.0, out=target[rows], casting="same_kind")
            at += width
    return Left(n_left, first)
