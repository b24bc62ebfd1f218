"""A fit as arrays and plain values, to be written to a file and read back."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from a1gm._base.atomic import atomic_write, is_special
from a1gm._base.types import AnyArray
from a1gm._base.version import __version__
from a1gm._base.words import shown
from a1gm._fit.table import FitRows
from a1gm._observe.codec import (
    from_arrays,
    is_count,
    labels_from_json,
    labels_to_json,
    need,
    read_archive,
    to_arrays,
    write_archive,
)
from a1gm._observe.patterns import Patterns
from a1gm._solve.components import Components
from a1gm._solve.dispatch import Solved
from a1gm._solve.factors import Factors
from a1gm.exceptions import FileFormatError, MissingFileError

KIND = "RankOneFit"
_need = partial(need, "a fit")
BACKENDS = (None, "pandas", "polars", "pyarrow", "modin", "cudf")
SCATTER = ("pearson_chi2", "gain")
PLAIN = ("absent", "backend", "takes_negatives", "is_weighted", "is_exposed")


# ------------------------------------------------------------------------- writing
def save_fit(
    state: dict[str, Any], path: str | os.PathLike[str], *, overwrite: bool
) -> None:
    """Write the state of a fit to a file, whole or not at all."""
    solved, rows, table = state["solved"], state["rows"], state["table"]
    is_held = rows.is_held
    content: dict[str, Any] = {
        "tol": float(state["tol"]),
        "on_undetermined": state["on_undetermined"],
        "certificate": _number(state["certificate"]),
        "divergence": _number(state["divergence"]),
        "scatter": {name: _number(state[name]) for name in SCATTER},
        "row_labels": labels_to_json(state["row_labels"]) if is_held else None,
        "col_labels": labels_to_json(state["col_labels"]),
        "table": {name: getattr(table, name) for name in PLAIN},
        "long": table.long and labels_to_json(table.long),
        "n_rows": int(rows.n_rows),
    }
    arrays: dict[str, AnyArray] = {}
    parts: dict[str, Any] = {"factors": solved.factors}
    if is_held:
        arrays["row_factor"] = rows.factor
    parts["patterns"] = solved.statistics
    if not is_held:
        parts["patterns"] = replace(solved.statistics, pattern_of_row=None)
    if solved.components is not None:
        parts["components"] = solved.components
    for part, value in parts.items():
        content[part] = to_arrays(part, value, arrays)
    with atomic_write(path, overwrite=overwrite) as file:
        write_archive(file, KIND, content, arrays, version=__version__)


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


# ------------------------------------------------------------------------- reading
def read_fit(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the state of a fit, every part of it checked.

    Raises
    ------
    FileFormatError
        The file is damaged, hostile, of something else, or of another release.
    MissingFileError
        There is no such file.
    """
    place = Path(path)
    if is_special(place):
        raise _refusal(place, "it is a pipe or a device", "Name a file.")
    try:
        with read_archive(place, place.stat().st_size, KIND) as (content, arrays):
            return _state_of(content, arrays)
    except FileNotFoundError:
        raise MissingFileError(
            f"{shown(place)} does not exist. Check the path; save() of a fit writes "
            "a model."
        ) from None
    except IsADirectoryError:
        raise _refusal(place, "it is a folder", "Name a file in it.") from None
    except FileFormatError as error:
        raise _refusal(place, str(error)) from error
    except (OSError, ValueError) as error:  # ValueError: NUL in the name
        why = f"it cannot be read ({getattr(error, 'strerror', None) or error})"
        raise _refusal(place, why, "Check the file and its permissions.") from error


def _refusal(
    place: Path, why: str, what_to_do: str = "Save the model again with its save()."
) -> FileFormatError:
    return FileFormatError(f"{shown(place)} is refused: {shown(why)}. {what_to_do}")


def _state_of(content: dict[str, Any], arrays: dict[str, AnyArray]) -> dict[str, Any]:
    state = _plain_state(content)
    factors = from_arrays("factors", Factors, content, arrays)
    n_rows = content["n_rows"]
    _need(is_count(n_rows, 1), "the number of rows")
    patterns = from_arrays("patterns", Patterns, content, arrays)
    n_cols, signed = len(factors.col_factor), patterns.n_negative > 0
    patterns.check(signed=signed)
    _check_factors(factors, patterns.n_patterns, patterns.n_cols, signed=signed)
    components = _components_of(content, arrays, patterns)
    rows = _rows_of(arrays, patterns, n_rows, signed=signed)
    solved = Solved(factors, patterns, components)
    state |= {"solved": solved, "rows": rows}
    state["row_labels"] = labels_from_json(content["row_labels"], n_rows, unique=False)
    state["col_labels"] = labels_from_json(content["col_labels"], n_cols, unique=True)
    return state


def _plain_state(content: dict[str, Any]) -> dict[str, Any]:
    tol, how, table = content["tol"], content["on_undetermined"], content["table"]
    _need(type(tol) is float and 0.0 < tol < math.inf, "tol")
    _need(how in ("warn", "raise", "ignore"), "on_undetermined")
    _need(isinstance(table, dict) and set(table) == set(PLAIN), "table")
    _need(table["absent"] in (None, "missing", "zero"), "absent")
    _need(table["backend"] in BACKENDS, "backend")
    for name in PLAIN[2:]:
        _need(isinstance(table[name], bool), name)
    _need(table["is_weighted"] or not table["is_exposed"], "is_exposed")
    long = labels_from_json(content.get("long"), 3, unique=True)
    table = {**table, "long": long and tuple(long)}
    state = {"tol": tol, "on_undetermined": how, "table": table}
    for name in ("certificate", "divergence"):
        state[name] = _number_of(content[name], name)
    found = content.get("scatter", dict.fromkeys(SCATTER))
    _need(isinstance(found, dict) and set(found) == set(SCATTER), "scatter")
    state["scatter"] = {name: _number_of(found[name], name) for name in SCATTER}
    return state


def _number_of(value: Any, name: str) -> float:
    _need(value is None or type(value) is float, name)
    return math.nan if value is None else float(value)


def _check_factors(
    factors: Factors, n_patterns: int, n_cols: int, *, signed: bool
) -> None:
    for name in ("pattern_factor", "pattern_scale", "col_factor"):
        n = n_cols if name == "col_factor" else n_patterns
        _check_numbers(getattr(factors, name), n, name, signed=signed)
    _need(n_cols > 0, "the number of columns")
    n = factors.n_blocks
    _need(is_count(n, 0, n_cols + 1), "n_blocks")
    _need_labels(factors.pattern_block, n_patterns, n, "pattern_block")
    _need_labels(factors.col_block, n_cols, n, "col_block")
    _need(factors.solver in ("closed form", "scaling", "newton"), "solver")
    _need(is_count(factors.n_iter), "n_iter")
    for name in ("gap", "step"):
        value = getattr(factors, name)
        _need(type(value) is float and value >= 0.0, name)
    cut: Any = factors.cut
    if cut is not None:
        is_pair = isinstance(cut, list) and len(cut) == 2
        _need(is_pair and all(is_count(j, 0, n_cols) for j in cut), "cut")
    _need(isinstance(factors.all_inside, bool), "all_inside")
    if factors.all_inside and n_patterns:
        inside = not (factors.pattern_block.any() or factors.col_block.any())
        _need(inside and n == 1, "all_inside")


def _check_numbers(found: Any, n: int, name: str, *, signed: bool) -> None:
    _need_array(found, "f8", n, name)
    _need(not np.isinf(found).any() and (signed or not (found < 0.0).any()), name)


def _components_of(
    content: dict[str, Any], arrays: dict[str, AnyArray], statistics: Patterns
) -> Components | None:
    if "components" not in content:
        return None
    found = from_arrays("components", Components, content, arrays)
    n = statistics.n_patterns + statistics.n_cols
    _need_labels(found.pattern, statistics.n_patterns, n, "components.pattern")
    _need_labels(found.col, statistics.n_cols, n, "components.col")
    return found


def _rows_of(
    arrays: dict[str, AnyArray], patterns: Patterns, n_rows: int, *, signed: bool
) -> FitRows:
    if "row_factor" not in arrays:
        counts, zero_counts = patterns.counts, patterns.zero_counts
        _need(counts is not None and zero_counts is not None, "counts")
        _need(patterns.n_rows == n_rows, "counts")
        return FitRows(patterns, is_kept=False)
    pattern = patterns.pattern_of_row
    _check_numbers(arrays["row_factor"], n_rows, "row_factor", signed=signed)
    _need(
        n_rows == (patterns.n_patterns if pattern is None else len(pattern)),
        "row_factor",
    )
    return FitRows(patterns, arrays["row_factor"])


def _need_array(array: Any, dtype: str, n: int, name: str) -> None:
    is_right = isinstance(array, np.ndarray) and array.dtype == np.dtype(dtype)
    _need(is_right and array.shape == (n,), name)


def _need_labels(labels: Any, n: int, most: int, name: str) -> None:
    _need_array(labels, "i4", n, name)
    _need(not n or bool(labels.min() >= -1 and labels.max() < most), name)
