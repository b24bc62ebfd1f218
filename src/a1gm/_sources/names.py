"""What messages call the rows, columns and cells of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from a1gm._base.words import MOST_NAMED, named
from a1gm._sources.labels import text_of_label

__all__ = ["LabelNames", "Names"]


class Names(Protocol):
    """What messages call the rows, columns and cells of a table."""

    @property
    def see(self) -> str:
        """Where the cells are listed that cannot be known."""

    def rows(self, places: Sequence[int], total: int) -> str:
        """Name the first of some rows, with their noun; empty for none."""

    def columns(self, places: Sequence[int], total: int) -> str:
        """Name the first of some columns, with their noun; empty for none."""

    def cell(self, row: int, col: int) -> str:
        """Name a cell."""


@dataclass(frozen=True)
class LabelNames:
    """Names as the user of the library knows them: labels, or places from 0."""

    row_labels: Any = None
    col_labels: Any = None
    see: str = "see fit.undetermined"

    def rows(self, places: Sequence[int], total: int) -> str:
        """Name the first of some rows."""
        names = [_text(self.row_labels, place) for place in places[:MOST_NAMED]]
        return named("row", names, total)

    def columns(self, places: Sequence[int], total: int) -> str:
        """Name the first of some columns."""
        names = [_text(self.col_labels, place) for place in places[:MOST_NAMED]]
        return named("column", names, total)

    def cell(self, row: int, col: int) -> str:
        """Name a cell."""
        return f"({_text(self.row_labels, row)}, {_text(self.col_labels, col)})"


def _text(labels: Any, place: int) -> str:
    return str(place) if labels is None else text_of_label(labels[place])
