"""A fit as arrays and plain values, to be written to a file and read back."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
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
    join_arrays,
    labels_from_json,
    labels_to_json,
    read_archive,
    split_arrays,
    to_arrays,
    write_archive,
)
from a1gm._observe.patterns import Patterns, PatternsGone
from a1gm._rows.columns import Choice
from a1gm._rows.long import KeyPart, Side, TableKeys, labels_of
from a1gm._solve.components import ColumnGraph, Components
from a1gm._solve.dispatch import Solved
from a1gm._solve.factors import Factors
from a1gm.exceptions import A1gmError, FileFormatError, MissingFileError

KIND, KIND_OF_MANY = "RankOneFit", "ManyFits"
#: What a fit is made of: the solution, its rows and table, and options.
Parts: TypeAlias = tuple[Solved, FitRows, Table, dict[str, Any]]
#: What makes a fit of content and arrays, by kind.
Readers: TypeAlias = dict[str, Callable[[dict[str, Any], dict[str, AnyArray]], Any]]
_need = partial(need, "a fit")
MOST_BYTES = 1 << 24  # of the patterns of a fit of files
BACKENDS = (None, "pandas", "polars", "pyarrow", "modin", "cudf")
TRUTHS = ("takes_negatives", "is_weighted", "is_exposed")
PLAIN = ("absent", "backend", *TRUTHS, *STATISTICS)


# ------------------------------------------------------------------------- writing
def save_model(
    path: str | os.PathLike[str],
    kind: str,
    content: dict[str, Any],
    arrays: dict[str, AnyArray],
    *,
    overwrite: bool,
) -> None:
    """Write a fit, or many, to a file, whole or not at all."""
    with atomic_write(path, overwrite=overwrite) as file:
        write_archive(file, kind, content, arrays, version=__version__)


def fit_to_arrays(
    solved: Solved, rows: FitRows, table: Table, **options: Any
) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return the parts of a fit as plain values and arrays."""
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
    parts: dict[str, Any] = {"factors": solved.factors, "patterns": solved.statistics}
    if is_held:
        arrays["row_factor"] = rows.factor
    else:
        parts["patterns"] = replace(solved.statistics, pattern_of_row=None)
    for name in ("components", "graph"):
        if getattr(solved, name) is not None:
            parts[name] = getattr(solved, name)
    for part, value in parts.items():
        content[part] = to_arrays(part, value, arrays)
    return content, arrays


def many_to_arrays(
    fits: dict[int, tuple[dict[str, Any], dict[str, AnyArray]]],
    about: TableKeys,
    failed: dict[int, A1gmError],
) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return many fits, by their places, as plain values and arrays."""
    contents, own = zip(*fits.values(), strict=True)
    shapes, arrays = join_arrays(own)
    arrays["places"] = np.array(list(fits), np.int64)
    content: dict[str, Any] = {
        "fits": contents,
        "shapes": shapes,
        "has_keys": not isinstance(about.keys, range),
        "backend": about.backend,
        "value": labels_to_json(None if about.value is None else [about.value]),
        "failed": {k: str(error) for k, error in failed.items()},
        "keys": [],
        "sides": [],
    }
    for k, (name, values, codes) in enumerate(about.parts):
        content["keys"].append(labels_to_json([name, *labels_of(values)]))
        arrays[f"keys.{k}"] = codes
    for k, side in enumerate((about.rows, about.columns)):
        names = None if side.values is None else labels_of(side.values)
        content["sides"].append([labels_to_json([side.name]), labels_to_json(names)])
        arrays[f"codes.{k}"], arrays[f"ends.{k}"] = side.codes, side.ends
    return content, arrays


# ------------------------------------------------------------------------- reading
def read_model(path: str | os.PathLike[str], readers: Readers) -> Any:
    """Read a fit, or many, from a file."""
    place = Path(path)
    if is_special(place):
        raise _refusal(place, "it is a pipe or a device", "Name a file.")
    try:
        size = place.stat().st_size
        with read_archive(place, size, *readers) as (content, arrays):
            return readers[content["kind"]](content, arrays)
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


def fit_from_arrays(content: dict[str, Any], arrays: dict[str, AnyArray]) -> Parts:
    """Read the parts of a fit, each of them checked."""
    n_rows = content["n_rows"]
    _need(is_count(n_rows, 1), "the number of rows")
    factors = from_arrays("factors", Factors, content, arrays)
    patterns: Any
    if "graph" in content:
        solved, rows = _columns_of(content, arrays, factors, n_rows)
        patterns = solved.statistics
    else:
        patterns = from_arrays("patterns", Patterns, content, arrays)
        signed = patterns.n_negative > 0
        patterns.check(signed=signed)
        _check_factors(factors, patterns.n_patterns, patterns.n_cols, signed=signed)
        solved = Solved(factors, patterns, _components_of(content, arrays, patterns))
        rows = _rows_of(arrays, patterns, n_rows, signed=signed)
    table = _table_of(content["table"], content["labels"], n_rows, patterns.n_cols)
    return solved, rows, table, options_of(content)


def options_of(content: dict[str, Any]) -> dict[str, Any]:
    """The options of a fit of any kind, checked."""
    options: dict[str, Any] = content["options"]
    _need(set(options) == {"tol", "on_undetermined"}, "options")
    tol, how = options["tol"], options["on_undetermined"]
    _need(type(tol) is float and 0.0 < tol < math.inf, "tol")
    _need(how in ("warn", "raise", "ignore"), "on_undetermined")
    return options


def check_solution(found: Any) -> None:
    """Raise for a solver, iterations or gap that no fit has."""
    _need(found.solver in ("closed form", "scaling", "newton"), "solver")
    _need(is_count(found.n_iter), "n_iter")
    _need(type(found.gap) is float and found.gap >= 0.0, "gap")


def _columns_of(
    content: dict[str, Any], arrays: dict[str, AnyArray], factors: Factors, n_rows: int
) -> tuple[Solved, FitRows]:
    """Read a model of columns, which may have the rows of a long table as well."""
    gone: Any = from_arrays("patterns", PatternsGone, content, arrays)
    graph = from_arrays("graph", ColumnGraph, content, arrays)
    gone.check()
    _need(gone.n_rows == n_rows, "the number of rows")
    m, signed, found = gone.n_cols, gone.n_negative > 0, arrays.get("row_factor")
    none = np.zeros(0, np.int32)
    _check_factors(replace(factors, pattern_block=none), 0, m, signed=signed)
    _need(is_count(graph.n), "graph.n")
    _need_labels(graph.label, m, graph.n, "graph.label")
    edges = graph.edges
    _need(is_array(edges, "i4", (len(edges), 2)), "graph.edges")
    _need(not ((edges < 0) | (edges >= graph.n)).any(), "graph.edges")
    component = factors.pattern_block
    n = 0 if found is None else n_rows
    _need_labels(component, n, graph.n, "pattern_block", least=-2)
    if found is not None:
        check_numbers(found, n_rows, "row_factor", signed=signed)
    rows = FitRows(gone, found, is_kept=found is not None)
    return Solved(factors, gone, graph=graph), rows


def many_from_arrays(
    content: dict[str, Any], arrays: dict[str, AnyArray]
) -> tuple[TableKeys, dict[int, Parts], dict[int, A1gmError]]:
    """Read the keys of many tables, the parts of their fits, and why some failed."""
    _need(content["backend"] in BACKENDS, "backend")
    _need(isinstance(content["has_keys"], bool), "has_keys")
    value = labels_from_json(content["value"], 1, unique=True)
    keys: list[KeyPart] = []
    for k, (name, *names) in enumerate(content["keys"]):
        _need_codes(arrays[f"keys.{k}"], len(names), "keys")
        keys.append((name, array_of(names), arrays[f"keys.{k}"]))
    n = len(keys[0][2])
    _need(all(len(codes) == n for *_, codes in keys), "keys")
    sides = [_side_of(k, own, n, arrays) for k, own in enumerate(content["sides"])]
    lengths = np.stack([np.diff(side.ends) for side in sides])
    fits: dict[int, Parts] = {}
    places, own = arrays["places"].tolist(), split_arrays(content["shapes"], arrays)
    for k, one, some in zip(places, content["fits"], own, strict=True):
        _need(is_count(k, len(fits), n), "places")
        fits[k] = fit_from_arrays(one, some)
        solved, rows, *_ = fits[k]
        size = [rows.n_rows, solved.statistics.n_cols]
        _need(lengths[:, k].tolist() == size, "the sizes of tables")
    failed = {int(k): A1gmError(str(why)) for k, why in content["failed"].items()}
    _need(sorted([*fits, *failed]) == list(range(n)), "failed")
    labels = [values[codes].tolist() for _, values, codes in keys]
    names = list(zip(*labels, strict=True)) if len(labels) > 1 else labels[0]
    keys_of = names if content["has_keys"] else range(n)
    last = content["backend"], value and value[0]
    return TableKeys(keys_of, keys, sides[0], sides[1], *last), fits, failed


def _side_of(k: int, content: Any, n: int, arrays: dict[str, AnyArray]) -> Side:
    (name,), names = content
    ends, codes = arrays[f"ends.{k}"], arrays[f"codes.{k}"]
    _need(is_array(ends, "i8", (n + 1,)) and ends[0] == 0, "ends")
    _need(bool((np.diff(ends) >= 0).all()) and ends[-1] == len(codes), "ends")
    _need_codes(codes, len(codes) if names is None else len(names), "codes")
    return Side(name, ends, codes, None if names is None else array_of(names))


def _need_codes(codes: Any, most: int, name: str) -> None:
    _need(is_array(codes, "i8", (len(codes),)), name)
    _need(not ((codes < 0) | (codes >= most)).any(), name)


def array_of(names: Any, n: int | None = None) -> AnyArray:
    """Labels of one type as an array of it, others as objects."""
    names = labels_from_json(names, len(names) if n is None else n, unique=False)
    if {type(name) for name in names} in ({int}, {float}):
        return np.array(names)
    return np.fromiter(names, object, len(names))  # a tuple is one label


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
        check_numbers(getattr(factors, name), n, name, signed=signed)
    n = factors.n_blocks
    cut: Any = factors.cut
    _need(is_count(n, 0, n_cols + 1), "n_blocks")
    _need_labels(factors.pattern_block, n_patterns, n, "pattern_block")
    _need_labels(factors.col_block, n_cols, n, "col_block")
    check_solution(factors)
    _need(type(factors.step) is float and factors.step >= 0.0, "step")
    if cut is not None:
        _need(len(cut) == 2 and all(is_count(j, 0, n_cols) for j in cut), "cut")
    _need(isinstance(factors.all_inside, bool), "all_inside")
    if factors.all_inside and n_patterns:
        inside = not (factors.pattern_block.any() or factors.col_block.any())
        _need(inside and n == 1, "all_inside")


def check_numbers(found: Any, n: int, name: str, *, signed: bool = False) -> None:
    """Raise unless a value is an array of n finite numbers, or NaN."""
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
    check_numbers(arrays["row_factor"], n_rows, "row_factor", signed=signed)
    _need(n_rows == (n if of_row is None else len(of_row)), "row_factor")
    return FitRows(patterns, arrays["row_factor"])


def _need_labels(labels: Any, n: int, most: int, name: str, least: int = -1) -> None:
    _need(is_array(labels, "i4", (n,)), name)
    _need(not n or bool(labels.min() >= least and labels.max() < most), name)
