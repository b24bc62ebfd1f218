"""A fit of several modes as arrays and plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._base.types import AnyArray
from a1gm._observe.codec import labels_to_json

if TYPE_CHECKING:
    from a1gm.tensor.result import TensorFit

KIND_OF_TENSOR = "TensorFit"


def fit_to_arrays(fit: TensorFit) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """The parts of a fit; the observed cells belong to them."""
    cells, solved, long = fit._cells, fit._solved, fit._long
    arrays: dict[str, AnyArray] = {
        "index": np.stack(cells.index),
        "values": cells.values,
        "t": solved.t,
    }
    if cells.weights is not None:
        arrays["weights"] = cells.weights
    modes = [list(mode) if isinstance(mode, tuple) else mode for mode in cells.modes]
    content = {
        "shape": list(cells.shape),
        "modes": modes,
        "labels": [_labels_to_json(own) for own in cells.labels],
        "margins": [list(group) for group in fit._groups],
        "exposed": cells.exposed,
        "solver": solved.solver,
        "n_iter": solved.n_iter,
        "gap": solved.gap,
        "cell_error": solved.cell_error,
        "is_bound": solved.is_bound,
        "long": None if long is None else [labels_to_json([long.value]), long.backend],
        "tol": fit.tol,
        "on_undetermined": fit._on_undetermined,
    }
    return content, arrays


def _labels_to_json(labels: Any) -> Any:
    """Labels for JSON; those of a key of several columns are lists."""
    if labels is None or not any(isinstance(one, tuple) for one in labels):
        return labels_to_json(labels)
    return [labels_to_json(one) for one in labels]
