"""Weights and exposures of the cells of a table, read into `Rows.weights`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from a1gm._base.words import counted
from a1gm._rows.columns import columns_like
from a1gm._rows.frames import library_of
from a1gm._rows.labels import check_same_labels, first_difference, positions_among
from a1gm._rows.read import AnyRows, is_sparse, read_input
from a1gm._rows.rows import Rows, read_array, table_of
from a1gm._rows.sparse import SparseRows
from a1gm.exceptions import LabelError, Option, ParameterError, WeightsError

Name: TypeAlias = Literal["weights", "exposure"]
Weighting: TypeAlias = tuple[Name, Any]  # None for no weights


def weights_or_exposure(weights: Any, exposure: Any) -> Weighting:
    """Name and value of the argument that was passed; None for neither."""
    if exposure is None:
        return "weights", weights
    if weights is not None:
        raise ParameterError(
            Option("weights"),
            " and ",
            Option("exposure"),
            " cannot be combined. Pass ",
            Option("exposure"),
            " for counts collected over different lengths of time or areas, otherwise ",
            Option("weights"),
            ".",
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
        V: Any = _stored_weights(given, rows, name, is_fitted=is_observed)
    elif is_sparse(given):
        raise WeightsError(f"{name} is sparse, but X is dense. Pass {name}.toarray().")
    else:
        V = _given_weights(given, rows, name)
        if (V.n_rows, V.n_cols) != (rows.n_rows, rows.n_cols):  # takes no memory
            full = table_of(np.broadcast_to(V.cells, (rows.n_rows, rows.n_cols)))
            labels = {"row_labels": rows.row_labels, "col_labels": rows.col_labels}
            V = replace(full, name=name, **labels)
        elif is_observed and name == "exposure":
            V = V.kept()  # it is read again for what is filled later
        if not is_observed and not all(
            ((v >= 0.0) & (v < np.inf)).all() for _, v in V.in_pieces()
        ):
            check_weights(V, is_fitted=False)
    return replace(rows, weights=V, exposed=name == "exposure")


def _given_weights(given: Any, rows: AnyRows, name: Name) -> Rows:
    """Weights as passed: one per cell, or a single column or row of them."""
    if _is_vector(given):
        V = _read_vector(given, rows, name)
    else:
        columns = columns_like(getattr(rows, "choice", None), rows.col_labels)
        V = read_input(given, name=name, columns=columns)
    V = replace(V, name=name)
    _check_shape(V, rows)
    if V.n_rows == rows.n_rows:
        check_same_labels("row", V.row_labels, rows.row_labels, name, "X")
    if V.n_cols == rows.n_cols:
        check_same_labels("column", V.col_labels, rows.col_labels, name, "X")
    return V


def _is_vector(given: Any) -> bool:
    """Whether weights have one dimension: a Series, an array, an Arrow column, a list.

    Nothing is computed for this.
    """
    library = library_of(given)
    if hasattr(given, "columns") or library.startswith("dask"):
        return False
    if isinstance(given, list | tuple):
        return not any(np.ndim(one) for one in given)
    return library == "pyarrow" or len(getattr(given, "shape", ())) == 1


def _read_vector(given: Any, rows: AnyRows, name: Name) -> Rows:
    """One number per row or per column, found by labels, else by length."""
    vector = read_array(np.asanyarray(given).reshape(-1, 1), name)
    labels = given.index if hasattr(given, "iloc") else None
    n, sides = vector.n_rows, (rows.row_labels, rows.col_labels)
    fits = [length == n for length in (rows.n_rows, rows.n_cols)]
    orders: list[Any] = [
        [] if labels is None or others is None else positions_among(labels, others)
        for others in sides
    ]
    matches = [sorted(order) == list(range(n)) for order in orders]
    if not any(matches):
        orders = [slice(None)] * 2
        matches = [
            fit and first_difference(labels, others) is None
            for fit, others in zip(fits, sides, strict=True)
        ]
    if sum(matches) != 1:
        raise _unclear(name, n, rows, fits, matches)
    numbers = vector.cells[orders[matches.index(True)]]
    return table_of(numbers if matches[0] else numbers.T)


def _unclear(
    name: Name, n: int, rows: AnyRows, fits: list[bool], matches: list[bool]
) -> WeightsError | LabelError:
    """Return the error for numbers that do not match exactly one side of the table."""
    if any(fits) and not any(matches):
        return LabelError(
            f"The labels of {name} are neither those of the rows of X nor those of its "
            f"columns. Pass {name}.to_numpy() if the order is that of X."
        )
    link, advice = "but", "Pass one number per row, per column or per cell."
    if all(matches):
        link = "and"
        advice = (
            f"Pass np.reshape({name}, (-1, 1)) for one number per row, or "
            f"np.reshape({name}, (1, -1)) for one per column."
        )
    return WeightsError(
        f"{name} has {counted(n, 'number')}, {link} X has "
        f"{counted(rows.n_rows, 'row')} and {counted(rows.n_cols, 'column')}. {advice}"
    )


def _stored_weights(
    given: Any, rows: SparseRows, name: Name, *, is_fitted: bool
) -> SparseRows:
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
        V = _given_weights(given, rows, name)
    check_weights(V, is_fitted=is_fitted)
    if isinstance(V, SparseRows) and V.stores_cells_of(rows):
        stored = V.values
    else:
        i, j = rows.row_of_cell, rows.cols
        stored = V.values_at(i * (V.n_rows > 1), j * (V.n_cols > 1))
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
    repeats = isinstance(V, Rows)
    lengths = (V.n_rows, rows.n_rows), (V.n_cols, rows.n_cols)
    if any(n != own and not (repeats and n == 1) for n, own in lengths):
        raise WeightsError(
            f"{V.name} has shape ({V.n_rows}, {V.n_cols}), but X has "
            f"shape ({rows.n_rows}, {rows.n_cols}). Pass one number per cell, per row "
            "or per column."
        )


def check_weights(V: Any, *, is_fitted: bool = True) -> None:
    """Raise for weights or exposures that cannot be used; name and count them.

    ``V`` has ``cells``, and ``position`` and ``where`` to name one. Of a table that
    ``is_fitted`` some must be above 0; rows that are only placed may have none.
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
    if is_fitted and not (cells > 0.0).any():
        what = "No exposure is above 0" if is_exposure else "All weights are zero"
        raise WeightsError(f"{what}: nothing is left to fit.")
