"""A fit of several modes as arrays and plain values, and back."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._base.checks import is_array, is_count, need
from a1gm._base.types import AnyArray
from a1gm._fit.frames import Long
from a1gm._fit.save import BACKENDS, array_of, check_numbers, check_solution, options_of
from a1gm._observe.codec import (
    from_arrays,
    labels_from_json,
    labels_to_json,
    to_arrays,
)
from a1gm.tensor.known import Known
from a1gm.tensor.problem import Levels
from a1gm.tensor.read import Cells, margins_of, problem_of
from a1gm.tensor.solve import Solved

if TYPE_CHECKING:
    from a1gm.tensor.result import TensorFit

KIND_OF_TENSOR = "TensorFit"
_need = partial(need, "a fit")


def fit_to_arrays(fit: TensorFit) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """The parts of a fit; the observed cells belong to them."""
    cells, long = fit._cells, fit._long
    arrays: dict[str, AnyArray] = {
        "index": np.stack(cells.index),
        "values": cells.values,
    }
    if cells.weights is not None:
        arrays["weights"] = cells.weights
    content = {
        "shape": list(cells.shape),
        "modes": labels_to_json(cells.modes),
        "labels": [labels_to_json(own) for own in cells.labels],
        "margins": [list(group) for group in fit._groups],
        "exposed": cells.exposed,
        "solved": to_arrays("solved", fit._solved, arrays),
        "long": None if long is None else [labels_to_json(long.names), long.backend],
        "options": {"tol": fit.tol, "on_undetermined": fit._on_undetermined},
    }
    return content, arrays


def parts_from_arrays(
    content: dict[str, Any], arrays: dict[str, AnyArray]
) -> dict[str, Any]:
    """What a fit is made of, every part of it checked."""
    shape, values = tuple(content["shape"]), arrays["values"]
    n, m = len(shape), len(values)
    _need(all(is_count(k, 1) for k in shape) and n >= 1, "shape")
    index, weights = arrays["index"], arrays.get("weights")
    _need(is_array(index, "i8", (n, m)) and m >= 1, "index")
    inside = (index >= 0).all() and (index < np.array(shape)[:, None]).all()
    _need(bool(inside), "index")
    _check_known(values, m, "values")
    if weights is not None:
        _check_known(weights, m, "weights")
        _need(bool(weights.all()), "weights")
    is_exposed = content["exposed"]
    _need(
        type(is_exposed) is bool and (weights is not None or not is_exposed), "exposed"
    )
    labels = tuple(
        None if own is None else array_of(own, k)
        for own, k in zip(content["labels"], shape, strict=True)
    )
    modes = tuple(labels_from_json(content["modes"], n, unique=False) or ())
    _need(len(set(modes)) == n, "modes")
    cells = Cells(tuple(index), values, shape, modes, labels, weights, is_exposed)
    groups = margins_of([tuple(group) for group in content["margins"]], range(n))
    _need([list(group) for group in groups] == content["margins"], "margins")
    levels = tuple(Levels.every(group, shape).where(cells.index) for group in groups)
    problem, exponent = problem_of(cells, levels, None)
    solved = from_arrays("solved", Solved, content, arrays)
    check_solution(solved)
    _check_known(solved.t, int(problem.starts[-1]), "t")
    error = solved.cell_error
    _need(type(error) is float and error >= 0.0, "cell_error")
    _need(type(solved.is_bound) is bool, "is_bound")
    return {
        "cells": cells,
        "groups": groups,
        "levels": levels,
        "problem": problem,
        "known": Known(problem),
        "solved": solved,
        "exponent": exponent,
        "long": _long_of(content["long"], labels),
        **options_of(content),
    }


def _check_known(found: Any, n: int, name: str) -> None:
    check_numbers(found, n, name)
    _need(not np.isnan(found).any(), name)


def _long_of(given: Any, labels: tuple[Any, ...]) -> Long | None:
    if given is None:
        return None
    names, backend = given
    _need(backend in BACKENDS, "long")
    found = labels_from_json(names, len(labels) + 1, unique=False) or ()
    return Long(tuple(found), labels, backend)
