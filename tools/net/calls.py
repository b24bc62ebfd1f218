"""Calls that are spelled differently in the two builds: the only place that knows."""

from __future__ import annotations

from typing import Any

import numpy as np

import a1gm

HAS_GROUPS = hasattr(a1gm, "fit_groups")
HAS_KEYS = hasattr(a1gm.RankOneFit, "keys")


def fit_groups(frame: Any, *, by: str, keys: list[str], value: str) -> Any:
    """Many long tables in one frame."""
    if HAS_GROUPS:
        return a1gm.fit_groups(frame, by, keys, value)
    return a1gm.fit_long(frame, keys=keys, value=value, by=by)


def fills_of_groups(many: Any) -> Any:
    """The missing cells of all groups in one frame."""
    if hasattr(many, "stack"):
        return many.stack(lambda fit: fit.fill_long())
    return many.fill_long()


def first_key(fit: Any) -> Any:
    """The name of the first key of a fit."""
    return fit.keys[0] if HAS_KEYS else fit.modes[0]


def totals(u: Any, by: Any, cells: str = "missing") -> Any:
    """Values and errors of totals; None: one total."""
    if by is None and not HAS_KEYS:
        by = ()
    answer = u.totals(by, cells)
    return [answer.value, answer.se_estimation, answer.se_process, answer.se]


def index(u: Any, key: Any) -> Any:
    """Factors of a key relative to its first level."""
    if HAS_KEYS:
        answer = u.index(key, base=0)
    elif key in ("row", "column") and hasattr(u, "simulate"):
        answer = u.index(0, key)
    else:
        answer = u.index(key, 0)
    return [answer.value, answer.se]


def standard_error(u: Any, rows: Any, columns: Any) -> Any:
    """Errors of cells by positions."""
    return u.standard_error(rows, columns)


def fates_of_cells(fit: Any, cells: np.ndarray) -> list[str]:
    """Fates of cells of a table of several keys, by positions."""
    if HAS_KEYS:
        return [str(fate) for fate in fit.fate(*cells)]
    return [str(fate) for fate in np.ravel(fit.fate(tuple(cells)))]


def errors_of_cells(fit: Any, cells: np.ndarray) -> Any:
    """Standard errors of cells of a table of several keys, by positions."""
    u = fit.uncertainty()
    if HAS_KEYS:
        return u.standard_error(*cells)
    return u.standard_error(tuple(cells))
