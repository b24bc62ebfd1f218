"""Guesses at hidden cells: how far they are off, and how that is shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from a1gm._base.types import Floats
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


def scores_frame(of: str, scores: Mapping[str, Any], backend: str) -> Any:
    """Named scores, each a named tuple, as a frame."""
    fields = next(iter(scores.values()))._fields
    columns = {
        name: np.array([getattr(score, name) for score in scores.values()])
        for name in fields
    }
    return labelled_frame(of, list(scores), columns, backend)
