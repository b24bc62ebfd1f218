"""``a1gm.fit_long``: fit a table that has one row per cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from a1gm._api.fit import (
    DEFAULT_MAX_ITER,
    FitOptions,
    fit_rows,
    refuse_negatives_with,
)
from a1gm._base.types import Negatives, OnUndetermined
from a1gm._fit.fit import RankOneFit
from a1gm._fit.frames import Long
from a1gm._rows.long import Duplicates, read_long
from a1gm._rows.weights import Weighting, weights_or_exposure
from a1gm.exceptions import Option, ParameterError

if TYPE_CHECKING:
    from a1gm.tensor import TensorFit


def fit_long(
    frame: Any,
    keys: Sequence[Any] | None = None,
    value: Any = None,
    *,
    interactions: Any = None,
    weights: Any = None,
    exposure: Any = None,
    duplicates: Duplicates = "raise",
    negatives: Negatives = "raise",
    on_undetermined: OnUndetermined = "warn",
    tol: float | None = None,
    max_iter: int = DEFAULT_MAX_ITER,
    n_threads: int | None = None,
) -> RankOneFit | TensorFit:
    """Fit a long table: one row per cell, with two or more keys and a value.

    Rows and columns of the fit are the distinct keys: numbers, dates and periods in
    their own order, and so is text if all of it is whole numbers, or like ``2024-Q1``,
    ``2024-01``, ``2024-01-31`` or ``2024-01-31 09:30``; others in order of first
    appearance. The table is never spread out: a million rows by a hundred thousand
    columns cost what their ten million cells cost.

    Parameters
    ----------
    frame : pandas, polars or pyarrow frame, or pandas Series with two levels
        One row per cell; a pair that is not there is a missing cell, and so is one
        with a null or NaN value. The frame is never modified. Of a lazy frame (polars,
        DuckDB, Ibis, Spark) the columns that are named here are collected.
    keys : two names, or more
        The columns with the keys of the rows and of the columns: text, numbers, dates
        or categories. Not needed for a Series; levels of a pandas index will do. A
        tuple of columns is one key: ``[("site", "month"), "year"]``. Three keys or
        more make a table of as many modes, as in ``a1gm.fit_tensor``.
    value : name
        The column with the values.
    interactions : sequence of tuples of keys, optional
        Of three keys or more: those that act together, as in ``a1gm.fit_tensor``.
    weights, exposure : name, optional
        The column with a weight, or with the exposure, of each cell, as in
        ``a1gm.fit``. The exposure of a missing cell is that of a row without a value;
        without one the cell stays missing.
    duplicates : {"raise", "sum"}, default="raise"
        What to do with pairs that are there more than once: refuse them, or add their
        values. Rows without a value add nothing; a pair of only such rows is missing.
    negatives, on_undetermined, tol, max_iter, n_threads
        As in ``a1gm.fit``.

    Returns
    -------
    RankOneFit, or TensorFit for three keys or more
        ``fit.predict(frame)`` gives the fitted values of any pairs,
        ``fit.fill_long()`` the missing pairs with their values.

    Raises
    ------
    LabelError
        A key is missing, or a pair is there twice.
    NegativeValuesError, InfiniteValuesError, WeightsError
        A value or weight cannot be fitted; the message names its keys and its row.
    ParameterError, NotNumericError
        There is no such column, or it does not hold numbers.

    Examples
    --------
    >>> import pandas as pd, a1gm
    >>> sales = pd.DataFrame(
    ...     {
    ...         "shop": ["north", "north", "east"],
    ...         "month": ["jan", "feb", "jan"],
    ...         "sales": [10.0, 20.0, 5.0],
    ...     }
    ... )
    >>> fit = a1gm.fit_long(sales, keys=["shop", "month"], value="sales")
    >>> fit.fill_long()
       shop month  sales
    0  east   feb   10.0
    """
    options = FitOptions(negatives, on_undetermined, tol, max_iter, n_threads)
    weighting = weights_or_exposure(weights, exposure)
    check_long(duplicates, weighting, negatives)
    cells = read_long(frame, keys, value, weighting, negatives)
    if len(cells.keys) > 2:
        from a1gm.tensor.fit import fit_cells
        from a1gm.tensor.read import cells_of_long

        if negatives == "allow":
            raise ParameterError(
                'negatives="allow" is for two keys: tables of more modes are fitted '
                "to non-negative values."
            )
        table = cells_of_long(cells, duplicates, n_threads)
        values = tuple(key.values for key in cells.keys)
        long = Long(cells.names, values, cells.backend)
        return fit_cells(table, interactions, options, long)
    if interactions is not None:
        raise ParameterError(
            "interactions= is for three keys or more: two keys that act together "
            "would leave nothing to fill."
        )
    source = cells.rows(duplicates)
    names, values = cells.names, tuple(key.values for key in cells.keys)
    del cells  # its codes are not needed any more
    return fit_rows(source, options, absent="missing", long=names, key_values=values)


def check_long(duplicates: str, weighting: Weighting, negatives: Negatives) -> None:
    """Raise for ``duplicates`` and weights that are not allowed."""
    if duplicates not in ("raise", "sum"):
        raise ParameterError(
            f"duplicates must be one of ('raise', 'sum'), got {duplicates!r}."
        )
    name, column = weighting
    if column is None:
        return
    refuse_negatives_with(name, negatives)
    if duplicates == "sum":
        raise ParameterError(
            Option("duplicates", "sum"),
            " and ",
            Option(name),
            " cannot be combined: a sum of cells has no one weight. Add the values and "
            "their weights up before.",
        )
