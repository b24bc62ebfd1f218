"""A fit as arrays and plain values, to be written to a file and read back."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from a1gm._base.atomic import atomic_write, is_special
from a1gm._base.checks import is_array, is_count, need
from a1gm._base.types import AnyArray
from a1gm._base.version import __version__
from a1gm._base.words import shown
from a1gm._fit.table import STATISTICS, FitRows, Table
from a1gm._observe.codec import (
    from_arrays,
    labels_from_json,
    labels_to_json,
    read_archive,
    to_arrays,
    write_archive,
)
from a1gm._observe.patterns import Patterns
from a1gm._rows.columns import Choice
from a1gm._solve.components import Components
from a1gm._solve.dispatch import Solved
from a1gm._solve.factors import Factors
from a1gm.exceptions import FileFormatError, MissingFileError

KIND = "RankOneFit"
#: What a fit is made of: the solution, its rows and table, and options.
Parts: TypeAlias = tuple[Solved, FitRows, Table, dict[str, Any]]
_need = partial(need, "a fit")
BACKENDS = (None, "pandas", "polars", "pyarrow", "modin", "cudf")
TRUTHS = ("takes_negatives", "is_weighted", "is_exposed")
PLAIN = ("absent", "backend", *TRUTHS, *STATISTICS)


# ------------------------------------------------------------------------- writing
def save_fit(
    path: str | os.PathLike[str],
    solved: Solved,
    rows: FitRows,
    table: Table,
    *,
    overwrite: bool,
    **options: Any,
) -> None:
    """Write the parts of a fit to a file, whole or not at all."""
    is_held, choice = rows.is_held, table.choice
    labels = {
        "rows": table.row_labels if is_held else None,
        "columns": table.col_labels,
        "long": table.long,
        "ids": choice and choice.ids,
        "kept": choice and choice.kept,
    }
    content: dict[str, Any] = {
        "options": options,
        "labels": {name: labels_to_json(own) for name, own in labels.items()},
        "table": {name: getattr(table, name) for name in PLAIN},
        "n_rows": int(rows.n_rows),
    }
    arrays: dict[str, AnyArray] = {}
    parts = {"factors": solved.factors, "patterns": solved.statistics}
    if is_held:
        arrays["row_factor"] = rows.factor
    else:
        parts["patterns"] = replace(solved.statistics, pattern_of_row=None)
    if solved.components is not None:
        parts["components"] = solved.components
    for part, value in parts.items():
        content[part] = to_arrays(part, value, arrays)
    with atomic_write(path, overwrite=overwrite) as file:
        write_archive(file, KIND, content, arrays, version=__version__)


# ------------------------------------------------------------------------- reading
def read_fit(path: str | os.PathLike[str]) -> Parts:
    """Read the parts of a fit, each of them checked."""
    place = Path(path)
    if is_special(place):
        raise _refusal(place, "it is a pipe or a device", "Name a file.")
    try:
        with read_archive(place, place.stat().st_size, KIND) as (content, arrays):
            return _parts_of(content, arrays)
    except FileNotFoundError:
        raise MissingFileError(
            f"{shown(place)} does not exist. Check the path of the model file."
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


def _parts_of(content: dict[str, Any], arrays: dict[str, AnyArray]) -> Parts:
    n_rows = content["n_rows"]
    _need(is_count(n_rows, 1), "the number of rows")
    factors = from_arrays("factors", Factors, content, arrays)
    patterns = from_arrays("patterns", Patterns, content, arrays)
    signed = patterns.n_negative > 0
    patterns.check(signed=signed)
    _check_factors(factors, patterns.n_patterns, patterns.n_cols, signed=signed)
    components = _components_of(content, arrays, patterns)
    rows = _rows_of(arrays, patterns, n_rows, signed=signed)
    table = _table_of(content["table"], content["labels"], n_rows, patterns.n_cols)
    options = content["options"]
    _need(set(options) == {"tol", "on_undetermined"}, "options")
    tol, how = options["tol"], options["on_undetermined"]
    _need(type(tol) is float and 0.0 < tol < math.inf, "tol")
    _need(how in ("warn", "raise", "ignore"), "on_undetermined")
    return Solved(factors, patterns, components), rows, table, options


def _table_of(
    values: dict[str, Any], labels: dict[str, Any], n_rows: int, n_cols: int
) -> Table:
    _need(set(values) == set(PLAIN), "table")
    _need(values["absent"] in (None, "missing", "zero"), "absent")
    _need(values["backend"] in BACKENDS, "backend")
    for name in (*TRUTHS, *STATISTICS):
        _need(type(values[name]) is (bool if name in TRUTHS else float), name)
    _need(values["is_weighted"] or not values["is_exposed"], "is_exposed")
    long = labels_from_json(labels["long"], 3, unique=True)
    choice = None
    if labels["ids"] is not None:
        ids, kept = (
            labels_from_json(labels[name], len(labels[name]), unique=False) or []
            for name in ("ids", "kept")
        )
        choice = Choice(ids=ids, kept=kept)
    return Table(
        row_labels=labels_from_json(labels["rows"], n_rows, unique=False),
        col_labels=labels_from_json(labels["columns"], n_cols, unique=True),
        long=None if long is None else (long[0], long[1], long[2]),
        choice=choice,
        **values,
    )


def _check_factors(
    factors: Factors, n_patterns: int, n_cols: int, *, signed: bool
) -> None:
    for name in ("pattern_factor", "pattern_scale", "col_factor"):
        n = n_cols if name == "col_factor" else n_patterns
        _check_numbers(getattr(factors, name), n, name, signed=signed)
    n = factors.n_blocks
    cut: Any = factors.cut
    _need(is_count(n, 0, n_cols + 1), "n_blocks")
    _need_labels(factors.pattern_block, n_patterns, n, "pattern_block")
    _need_labels(factors.col_block, n_cols, n, "col_block")
    _need(factors.solver in ("closed form", "scaling", "newton"), "solver")
    _need(is_count(factors.n_iter), "n_iter")
    for value in (factors.gap, factors.step):
        _need(type(value) is float and value >= 0.0, "gap or step")
    if cut is not None:
        _need(len(cut) == 2 and all(is_count(j, 0, n_cols) for j in cut), "cut")
    _need(isinstance(factors.all_inside, bool), "all_inside")
    if factors.all_inside and n_patterns:
        inside = not (factors.pattern_block.any() or factors.col_block.any())
        _need(inside and n == 1, "all_inside")


def _check_numbers(found: Any, n: int, name: str, *, signed: bool) -> None:
    _need(is_array(found, "f8", (n,)), name)
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
    labels, observed = (found.pattern, found.col), statistics.has_observed()
    for label, known in zip(labels, observed, strict=True):
        _need(np.array_equal(label >= 0, known), "components")
    return found


def _rows_of(
    arrays: dict[str, AnyArray], patterns: Patterns, n_rows: int, *, signed: bool
) -> FitRows:
    if "row_factor" not in arrays:
        counts, zero_counts = patterns.counts, patterns.zero_counts
        _need(counts is not None and zero_counts is not None, "counts")
        _need(patterns.n_rows == n_rows, "counts")
        return FitRows(patterns, is_kept=False)
    of_row, n = patterns.pattern_of_row, patterns.n_patterns
    _check_numbers(arrays["row_factor"], n_rows, "row_factor", signed=signed)
    _need(n_rows == (n if of_row is None else len(of_row)), "row_factor")
    return FitRows(patterns, arrays["row_factor"])


def _need_labels(labels: Any, n: int, most: int, name: str) -> None:
    _need(is_array(labels, "i4", (n,)), name)
    _need(not n or bool(labels.min() >= -1 and labels.max() < most), name)
