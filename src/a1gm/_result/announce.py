"""What a fit says when it is made, and of the cells that it leaves missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from a1gm._base.types import Floats, Ints, OnUndetermined
from a1gm._base.warn import warn_user
from a1gm._base.words import MOST_NAMED
from a1gm._result.fates import EMPTY, UNBOUNDED, UNDETERMINED, Fates
from a1gm._result.messages import (
    text_of_empty_lines,
    text_of_left_cells,
    text_of_unknown_cells,
    text_of_zeros,
)
from a1gm._sources.names import Names
from a1gm.exceptions import ConvergenceWarning, UndeterminedError, UndeterminedWarning

__all__ = [
    "Voice",
    "tell_undetermined",
    "text_of_empty",
    "text_of_left",
    "text_of_unknown",
]


@dataclass(frozen=True, slots=True)
class Voice:
    """What a fit says when it is made.

    ``names`` is what warnings call rows and columns, by default their labels; without
    ``tells_of_cells`` only a poor certificate is spoken of, as ``convergence``.
    """

    names: Names | None = None
    tells_of_cells: bool = True
    convergence: type[Warning] = ConvergenceWarning


def tell_undetermined(text: str, how: OnUndetermined) -> None:
    """Warn, raise, or keep quiet, as the user has said."""
    if how == "raise":
        raise UndeterminedError(text)
    if how == "warn":
        warn_user(text, UndeterminedWarning)


def text_of_empty(fates: Fates, col_factor: Floats, names: Names) -> str:
    """Say in which rows and columns nothing is observed; empty for none."""
    rows, n_rows = fates.empty_rows(MOST_NAMED)
    columns = np.flatnonzero(np.isnan(col_factor)).tolist()
    return text_of_empty_lines(
        names.rows(rows, n_rows), names.columns(columns, len(columns))
    )


def text_of_unknown(fates: Fates, n_blocks: int, names: Names) -> str:
    """Say which cells cannot be known and which zeros are given up; empty for none."""
    totals = fates.totals
    n_unbounded, n_open = totals.fates[UNBOUNDED], totals.fates[UNDETERMINED]
    if not (n_unbounded or n_open or totals.n_given_up):
        return ""
    parts = []
    if n_blocks > 1:
        parts.append(f"The table falls into {n_blocks:,} blocks.")
    if totals.n_given_up:
        first = _named(fates.first_given_up(), names)
        parts.append(text_of_zeros(totals.n_given_up, first))
    if n_unbounded or n_open:
        first = _named(fates.first_unknown(), names)
        parts.append(text_of_unknown_cells(n_unbounded, n_open, first, see=names.see))
    return " ".join(parts)


def _named(place: tuple[int, int] | None, names: Names) -> Any:
    return None if place is None else names.cell(*place)


def text_of_left(fates: Ints, n: int, where: str) -> str:
    """Say how many cells of a table stay missing, and the first of them."""
    kinds = fates[UNBOUNDED], fates[UNDETERMINED] + fates[EMPTY]
    # A table with other holes than the fitted one leaves other cells.
    if sum(kinds) != n:
        return text_of_left_cells(n, where)
    return text_of_left_cells(n, where, kinds) + " See fit.undetermined."
