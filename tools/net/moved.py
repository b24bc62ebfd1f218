"""Differences that are meant: which answers changed, and the line that says why."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import NamedTuple


class Moved(NamedTuple):
    """A change that was decided; the three patterns are those of ``fnmatch``."""

    kind: str
    place: str
    words: str
    reason: str


MOVED: list[Moved] = [
    Moved("joint", "[whab]", "values", "scale of a block without cells of X"),
    Moved("*", "warnings*", "*DataHintWarning*", "another list of hints"),
    Moved("files", "warnings length", "*", "another list of hints"),
    Moved("frames", "warnings length", "*", "another list of hints"),
    Moved(
        "triangles", "residuals", "values", "NaN only beside a fitted cell of 0 or less"
    ),
    Moved("*", "deviance residuals", "values", "square roots of rounding"),
    Moved("*", "robust *", "values", "errors of exact tables: roots of rounding"),
    Moved("*", "frames", "values", "rows and columns of zeros are in block -1"),
]


def reason_for(kind: str, place: str, words: str) -> str:
    """Why an answer may differ; empty where nothing says so."""
    for moved in MOVED:
        if (
            fnmatch(kind, moved.kind)
            and fnmatch(place, moved.place)
            and fnmatch(words, moved.words)
        ):
            return moved.reason
    return ""
