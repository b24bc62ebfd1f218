"""``a1gm.fit_groups``: a long frame that holds many tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from a1gm._api.fit import DEFAULT_MAX_ITER, DEFAULT_TOL, FitOptions
from a1gm._api.fit_long import check_duplicates
from a1gm._api.fit_many import fit_tables
from a1gm._base.types import Negatives, OnUndetermined
from a1gm._fit.many import ManyFits
from a1gm._rows.long import Duplicates, read_groups


def fit_groups(
    frame: Any,
    by: Any,
    keys: Sequence[Any],
    value: Any,
    *,
    duplicates: Duplicates = "raise",
    negatives: Negatives = "raise",
    on_undetermined: OnUndetermined = "warn",
    tol: float = DEFAULT_TOL,
    max_iter: int = DEFAULT_MAX_ITER,
    n_threads: int | None = None,
) -> ManyFits:
    """Fit every group of a long table on its own, in one call.

    Parameters
    ----------
    frame : pandas, polars or pyarrow frame
        One row per cell of one of the tables.
    by : name, or list of names
        The column that identifies the table of a row. With several, a group's key
        is the tuple of their values.
    keys : two names
        The columns with the keys of the rows and of the columns.
    value : name
        The column with the values; null and NaN are missing cells.
    duplicates : {"raise", "sum"}, default="raise"
        What to do with pairs that are in a group more than once. A group that is
        refused is in ``many.failed``.
    negatives, on_undetermined, tol, max_iter
        As in ``a1gm.fit``.
    n_threads : int, optional
        As in ``a1gm.fit_many``.

    Returns
    -------
    ManyFits
        ``many[key]`` is the ``RankOneFit`` of a group; groups, rows and columns are in
        the order of their keys, as in ``fit_long``. ``many.to_frames()`` has all
        factors, ``many.fill_long()`` all missing pairs of all groups, filled.

    Warns
    -----
    SkippedWarning, UndeterminedWarning, EmptyLineWarning, ConvergenceWarning
        As in ``a1gm.fit_many``.

    Examples
    --------
    >>> import pandas as pd, a1gm
    >>> frame = pd.DataFrame(
    ...     {
    ...         "protein": ["P1", "P1", "P1", "P2"],
    ...         "peptide": ["a", "a", "b", "c"],
    ...         "sample": [1, 2, 1, 1],
    ...         "value": [10.0, 30.0, 5.0, 8.0],
    ...     }
    ... )
    >>> many = a1gm.fit_groups(
    ...     frame, by="protein", keys=["peptide", "sample"], value="value"
    ... )
    >>> many["P1"].col_factor
    array([0.25, 0.75])
    >>> many.fill_long()
      protein peptide  sample  value
    0      P1       b       2   15.0
    """
    options = FitOptions(negatives, on_undetermined, tol, max_iter, n_threads)
    check_duplicates(duplicates)
    groups = read_groups(frame, by, keys, value, duplicates)
    return fit_tables(
        groups.keys,
        groups.tables,
        (groups.rows, groups.cols),
        options,
        named=groups.named,
        parts=groups.parts,
        backend=groups.backend,
        value=groups.names[2],
    )
