"""Warnings that point at the line of the user that led to them."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

# scikit-learn wraps the methods of estimators and pandas calls functions passed to it;
# the others stand between two frames of this package, as decorators do.
NOT_THE_USER = frozenset(
    ("a1gm", "sklearn", "pandas", "numpy", "contextlib", "functools")
)


def warn_user(warning: Warning | str, category: type[Warning] | None = None) -> None:
    """Warn at the innermost line outside this package and what wraps its calls.

    Takes a warning, or a text and the class of its warning.
    """
    # Not skip_file_prefixes: that needs Python 3.12.
    level, frame = 2, sys._getframe(1)
    while _is_inside(frame) and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, category, stacklevel=level)


def _is_inside(frame: FrameType) -> bool:
    package, _, _ = str(frame.f_globals.get("__name__")).partition(".")
    return package in NOT_THE_USER
