"""A fit of several modes from arrays and plain values."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from a1gm._base.checks import is_array, need
from a1gm._base.types import AnyArray
from a1gm._observe.codec import labels_from_json
from a1gm.tensor.known import Known
from a1gm.tensor.read import Cells, margins_of, problem_of
from a1gm.tensor.result import Long, TensorFit
from a1gm.tensor.solve import Solved

SOLVERS = ("closed form", "scaling", "newton")
_need = partial(need, "a fit")


def fit_from_arrays(content: dict[str, Any], arrays: dict[str, AnyArray]) -> TensorFit:
    """Make the fit again, every part of it checked."""
    shape, modes = tuple(content["shape"]), _tuples(content["modes"])
    index, values = arrays["index"], arrays["values"]
    n, m = len(shape), len(values)
    _need(all(type(k) is int and k >= 1 for k in shape) and n >= 1, "shape")
    _need(len(modes) == len(set(modes)) == n, "modes")
    _need(is_array(index, "i8", (n, m)) and m >= 1, "index")
    inside = (index >= 0).all() and (index < np.array(shape)[:, None]).all()
    _need(bool(inside), "index")
    _need(is_array(values, "f8", (m,)), "values")
    _need(bool((values >= 0.0).all() and (values < np.inf).all()), "values")
    weights = arrays.get("weights")
    if weights is not None:
        _need(is_array(weights, "f8", (m,)), "weights")
        _need(bool((weights > 0.0).all() and (weights < np.inf).all()), "weights")
    _need(type(content["exposed"]) is bool, "exposed")
    _need(weights is not None or not content["exposed"], "exposed")
    labels = tuple(
        _labels_of(own, k) for own, k in zip(content["labels"], shape, strict=True)
    )
    cells = Cells(
        tuple(index), values, shape, modes, labels, weights, content["exposed"]
    )
    groups = margins_of([tuple(group) for group in content["margins"]], tuple(range(n)))
    _need([list(group) for group in groups] == content["margins"], "margins")
    levels, problem, exponent = problem_of(cells, groups, None)
    t, gap, error = arrays["t"], content["gap"], content["cell_error"]
    _need(is_array(t, "f8", (int(problem.starts[-1]),)), "t")
    _need(bool((t >= 0.0).all() and (t < np.inf).all()), "t")
    _need(type(gap) is float and gap >= 0.0, "gap")
    _need(type(error) is float and error >= 0.0, "cell_error")
    _need(type(content["is_bound"]) is bool, "is_bound")
    _need(content["solver"] in SOLVERS and type(content["n_iter"]) is int, "solver")
    tol, how = content["tol"], content["on_undetermined"]
    _need(type(tol) is float and 0.0 < tol < math.inf, "tol")
    _need(how in ("warn", "raise", "ignore"), "on_undetermined")
    return TensorFit(
        cells,
        groups,
        levels,
        problem,
        Known(problem),
        Solved(
            t,
            content["solver"],
            content["n_iter"],
            gap,
            error,
            is_bound=content["is_bound"],
        ),
        exponent,
        tol=tol,
        on_undetermined=how,
        long=_long_of(content["long"], labels),
    )


def _tuples(names: Any) -> tuple[Any, ...]:
    return tuple(tuple(name) if isinstance(name, list) else name for name in names)


def _labels_of(labels: Any, n: int) -> Any:
    if labels is not None and any(isinstance(one, list) for one in labels):
        found = np.empty(n, object)
        found[:] = [
            tuple(labels_from_json(one, len(one), unique=False) or ()) for one in labels
        ]
        return found
    names = labels_from_json(labels, n, unique=False)
    if names is None:
        return None
    found = np.empty(n, object)
    found[:] = names
    return found


def _long_of(given: Any, labels: tuple[Any, ...]) -> Long | None:
    if given is None:
        return None
    names, backend = given
    value = (labels_from_json(names, 1, unique=True) or [None])[0]
    _need(backend in ("pandas", "polars", "pyarrow", "modin", "cudf"), "long")
    return Long(value, labels, backend)
