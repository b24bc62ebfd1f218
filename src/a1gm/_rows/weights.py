"""Weights and exposures of the cells of a table, read into `Rows.weights`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from a1gm._rows.columns import columns_like
from a1gm._rows.labels import check_same_labels
from a1gm._rows.read import AnyRows, is_sparse, read_input
from a1gm._rows.rows import Rows
from a1gm._rows.sparse import SparseRows
from a1gm.exceptions import ParameterError, WeightsError

Name: TypeAlias = Literal["weights", "exposure"]


def weights_or_exposure(weights: Any, exposure: Any) -> tuple[Name, Any]:
    """Name and value of the argument that was passed; None for neither."""
    if exposure is None:
        return "weights", weights
    if weights is not None:
        raise ParameterError(
            "weights and exposure cannot be combined. Pass exposure= for counts "
            "collected over different lengths of time or areas, otherwise weights=."
        )
    return "exposure", exposure


def with_weights(
    rows: AnyRows, name: Name, given: Any, *, is_observed: bool = False
) -> Any:
    """Return the table with weights or exposures of its cells.

    Values of dense weights are not checked where the table ``is_observed`` next: the
    pass checks them.
    """
    if isinstance(rows, SparseRows):
        V: Any = _stored_weights(given, rows, name)
    elif is_sparse(given):
        raise WeightsError(f"{name} is sparse, but X is dense. Pass {name}.toarray().")
    else:
        V = _dense_weights(given, rows, name)
        if not is_observed and not all(
            ((v >= 0.0) & (v < np.inf)).all() for _, v in V.in_pieces()
        ):
            check_weights(V)
    return replace(rows, weights=V, exposed=name == "exposure")


def _dense_weights(given: Any, rows: AnyRows, name: Name) -> Rows:
    """Weights as a table of the same shape and labels."""
    columns = columns_like(getattr(rows, "choice", None), rows.col_labels)
    V: Rows = replace(read_input(given, name=name, columns=columns), name=name)
    _check_shape(V, rows)
    check_same_labels("row", V.row_labels, rows.row_labels, name, "X")
    check_same_labels("column", V.col_labels, rows.col_labels, name, "X")
    return V


def _stored_weights(given: Any, rows: SparseRows, name: Name) -> SparseRows:
    """Weights of the cells that a sparse table stores; each must have one."""
    if rows.absent == "zero":
        raise ParameterError(
            f'With absent="zero" the absent cells need {name} as well. Pass '
            f'X.toarray() and an array of {name}, or absent="missing".'
        )
    if is_sparse(given):
        V: AnyRows = read_input(given, absent="missing", name=name)
        V = replace(V, name=name)
        _check_shape(V, rows)
    else:
        V = _dense_weights(given, rows, name)
    check_weights(V)
    stored = V.values_at(rows.row_of_cell, rows.cols)
    without = np.isnan(stored) & ~rows.missing
    if name == "weights" and without.any():
        row, col = rows.position(int(without.argmax()))
        raise WeightsError(
            f"X[{row}, {col}] is stored, but weights[{row}, {col}] is absent "
            f"({int(without.sum())} in all). Store a weight for every stored cell of "
            "X; use 0 for a cell to be ignored."
        )
    return rows.with_values(stored)


def _check_shape(V: AnyRows, rows: AnyRows) -> None:
    if (V.n_rows, V.n_cols) != (rows.n_rows, rows.n_cols):
        raise WeightsError(
            f"{V.name} has shape ({V.n_rows}, {V.n_cols}), but X has "
            f"shape ({rows.n_rows}, {rows.n_cols}). Pass one number per cell."
        )


def check_weights(V: Any) -> None:
    """Raise for weights or exposures that cannot be used; name and count them.

    ``V`` has ``cells``, and ``position`` and ``where`` to name one.
    """
    cells, is_exposure = V.cells, V.name == "exposure"
    faults = {"infinite": np.isinf(cells), "negative": cells < 0.0}
    zero = "0 is for a cell that cannot have counts, NaN for an unknown one"
    if not is_exposure:
        faults = {"NaN": np.isnan(cells), **faults}
        zero = "use 0 for a cell to be ignored"
    for what, bad in faults.items():
        if bad.any():
            at = int(bad.argmax())
            raise WeightsError(
                f"{V.where(*V.position(at))} = {cells.flat[at]} is {what} "
                f"({int(bad.sum())} in all). It must be finite and >= 0; {zero}."
            )
    if not (cells > 0.0).any():
        what = "No exposure is above 0" if is_exposure else "All weights are zero"
        raise WeightsError(f"{what}: nothing is left to fit.")
