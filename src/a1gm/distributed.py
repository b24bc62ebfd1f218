"""Fits of Dask arrays and frames, on threads or on a cluster.

Each partition becomes a table of patterns, tables merge in a tree, and one of them
reaches this process: patterns × columns × 16 bytes, whatever the number of rows.
"""

from __future__ import annotations

from typing import Any

from a1gm._api.fit import DEFAULT_MAX_ITER, FitOptions
from a1gm._api.pattern_table import DEFAULT_MAX_BYTES, PatternTable
from a1gm._base.types import Negatives, OnUndetermined
from a1gm._fit.fit import RankOneFit
from a1gm._rows.columns import Choice, ColumnOptions
from a1gm.engines.dask import (
    DaskEngine,
    compute_safely,
    merged_table,
    names_of,
    table_of,
)
from a1gm.exceptions import DataError

__all__ = ["fit"]


def fit(
    collection: Any,
    *,
    id: Any = None,
    columns: Any = None,
    exclude: Any = None,
    negatives: Negatives = "raise",
    on_undetermined: OnUndetermined = "warn",
    tol: float | None = None,
    max_iter: int = DEFAULT_MAX_ITER,
    max_bytes: int = DEFAULT_MAX_BYTES,
    worker_timeout: float = 60.0,
    uncertainty: bool = False,
) -> RankOneFit:
    """Fit a Dask array or frame with one pass over its partitions.

    Parameters
    ----------
    collection : dask.array.Array or dask.dataframe.DataFrame
        Non-negative numbers; NaN (or the frame's own mark) is a missing cell. An array
        may be cut along its rows only; lengths of partitions need not be known, and
        partitions may be empty. Which columns of a frame are the table follows from
        their names and types, as in ``a1gm.fit``; the others come back as they are.
        Weights and exposures are for tables in memory and long tables: ``a1gm.fit``.
    id, columns, exclude : name or list of names, optional
        As in ``a1gm.fit``.
    negatives, on_undetermined, tol, max_iter
        As in ``a1gm.fit``.
    max_bytes : int, default=2**32
        The largest table of patterns, on a worker or here.
    worker_timeout : float, default=60
        On a cluster, seconds to wait while it has no worker at all.
    uncertainty : bool, default=False
        Keep what ``fit.uncertainty()`` and ``fit.divergence`` need of the scatter of
        the cells; they are not known otherwise.

    Returns
    -------
    RankOneFit
        As ``a1gm.fit`` gives it, except that ``row_factor`` is a lazy Dask array (or a
        series with the frame's index), and that ``impute`` and ``transform`` take
        collections like this one, lazily, beside tables in memory. Single rows have
        no fates.

    Raises
    ------
    ClusterError
        Workers were lost for good. A worker that dies is replaced by Dask; its
        partitions are counted again, and once.
    TableTooLargeError
        The rows have too many patterns of holes for ``max_bytes``.
    DataError, NotNumericError, LabelError
        The collection is not a table of numbers; the message has the remedy.

    Examples
    --------
    >>> import numpy as np, dask.array as da, a1gm
    >>> X = np.array([[1.0, 2.0], [2.0, np.nan], [3.0, 6.0]])
    >>> collection = da.from_array(X, chunks=(2, 2))
    >>> fit = a1gm.distributed.fit(collection)
    >>> fit.impute(collection).compute()
    array([[1., 2.],
           [2., 4.],
           [3., 6.]])
    """
    options = FitOptions(negatives, on_undetermined, tol, max_iter)
    table = table_of(collection, ColumnOptions(id, columns, exclude))
    root = merged_table(table, negatives, max_bytes, uncertainty)
    merged = PatternTable.from_bytes(compute_safely(root, worker_timeout))
    if merged.n_rows == 0:
        raise DataError(
            "Found a collection with 0 rows while a minimum of 1 is required: every "
            "partition is empty."
        )
    choice, names = None, names_of(table)
    if names is not None:
        choice = Choice(names, kept=[c for c in collection.columns if c not in names])
    engine = DaskEngine(collection)
    fit = merged._solve(options, engine=engine)
    fit._table.choice = choice
    engine.has_holes = fit.pattern.missing_per_col > 0
    fit._rows.found = fit._opened(collection)[0].factors(fit._columns)
    return fit
