"""Guesses at hidden cells: how far they are off, and how that is shown."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from a1gm._base.types import Floats
from a1gm._base.words import html_grid, text_grid
from a1gm._fit.frames import labelled_frame


def misses(x: Floats, guess: Floats, exact: float) -> Floats:
    """How far guesses are off; 0 within ``exact`` times the cell, which is rounding."""
    off: Floats = np.abs(x - guess)
    return np.where(off <= exact * np.abs(x), 0.0, off)


def skill_of(own: Floats, other: Floats, v: Floats) -> float:
    """1 - mean error / that of the other guesses; above 0 is better."""
    if not other.any():
        return -math.inf if own.any() else 0.0
    return 1.0 - float(v @ own) / float(v @ other)


class Scored(ABC):
    """What shows its verdict, tables of its scores, and notes."""

    _of: str  # what is scored
    scores: Mapping[str, Any]  # named tuples by name

    @property
    @abstractmethod
    def verdict(self) -> str:
        """One sentence."""

    @property
    def _notes(self) -> list[str]:
        return []

    @abstractmethod
    def _grids(self) -> list[list[list[str]]]:
        """Tables of words."""

    def to_frame(self, backend: str = "pandas") -> Any:
        """The scores as a frame of pandas, polars or pyarrow."""
        rows = [score._asdict() for score in self.scores.values()]
        columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        return labelled_frame(self._of, list(self.scores), columns, backend)

    def __repr__(self) -> str:
        return "\n".join([self.verdict, *map(text_grid, self._grids()), *self._notes])

    def _repr_html_(self) -> str:
        *others, last = self._grids()
        tables = "".join(map(html_grid, others)) + html_grid(last, self._notes)
        return f"<p>{escape(self.verdict)}</p>{tables}"
