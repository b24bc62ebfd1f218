"""``a1gm.fit_many``, ``a1gm.fit_groups``: thousands of small tables in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from a1gm._api.fit import (
    DEFAULT_MAX_ITER,
    WARNINGS,
    FitOptions,
    fit_rows,
    refuse_negatives_with,
)
from a1gm._api.fit_long import check_long
from a1gm._base.types import Absent, Negatives, OnUndetermined
from a1gm._base.warn import warn_user
from a1gm._base.words import counted
from a1gm._fit.fit import RankOneFit
from a1gm._fit.many import ManyFits, warn_failed
from a1gm._fit.messages import text_of_convergence, text_of_empty, text_of_unknown
from a1gm._rows.columns import ColumnOptions
from a1gm._rows.labels import Names, text_of_label
from a1gm._rows.long import Duplicates, Side, TableKeys, read_groups
from a1gm._rows.read import is_triangle, read_input, read_triangles
from a1gm._rows.weights import Name, weights_or_exposure, with_weights
from a1gm.exceptions import (
    A1gmError,
    A1gmWarning,
    ConvergenceWarning,
    DataError,
    EmptyLineWarning,
    ParameterError,
    See,
    UndeterminedWarning,
    WeightsError,
)


def fit_many(
    tables: Any,
    *,
    weights: Any = None,
    exposure: Any = None,
    id: Any = None,
    columns: Any = None,
    exclude: Any = None,
    absent: Absent | None = None,
    negatives: Negatives = "raise",
    on_undetermined: OnUndetermined = "warn",
    tol: float | None = None,
    max_iter: int = DEFAULT_MAX_ITER,
    n_threads: int | None = None,
) -> ManyFits:
    """Fit many tables separately, in one call.

    Parameters
    ----------
    tables : array of shape (n_tables, n_rows, n_cols), mapping, or iterable of tables
        A stack of tables, with keys 0, 1, 2, ...; tables by key; or tables one
        after the other, of any kind that ``a1gm.fit`` takes. A ``Triangle`` of the
        package chainladder is the triangles it holds: their keys are the labels of its
        index and the name of its column, their rows the origins, their columns the
        ages. Cumulative claims are turned into increments, which is what the fit
        explains and ``many.fill_long()`` gives; increments below zero need
        ``negatives="allow"``. Ages before the first known one of an origin get parts of
        that amount, with a warning: the reserves are those of chain-ladder, and the
        errors count these cells as observed.
    weights, exposure : array, mapping, or sequence, optional
        As in ``a1gm.fit``, one for each table: a stack, by the same keys, or in the
        same order.
    id, columns, exclude : name or list of names, optional
        As in ``a1gm.fit``, for every frame.
    absent, negatives, on_undetermined, tol, max_iter
        As in ``a1gm.fit``.
    n_threads : int, optional
        As in ``a1gm.fit``, for each table.

    Returns
    -------
    ManyFits
        ``many[key]`` is a ``RankOneFit``; ``many.failed`` has the tables that could
        not be fitted, each with its error.

    Warns
    -----
    SkippedWarning
        Some tables could not be fitted; the others are.
    UndeterminedWarning, EmptyLineWarning, ConvergenceWarning
        As in ``a1gm.fit``, once for all tables, with their number and the first key.

    Examples
    --------
    >>> import numpy as np, a1gm
    >>> stack = np.array([[[1.0, 2.0], [2.0, np.nan]], [[3.0, 3.0], [np.nan, 5.0]]])
    >>> many = a1gm.fit_many(stack)
    >>> many
    ManyFits(2 tables)
    >>> many[1].impute(stack[1])
    array([[3., 3.],
           [5., 5.]])
    """
    options = FitOptions(negatives, on_undetermined, tol, max_iter, n_threads)
    keys: Sequence[Any]
    parts, sides, value = [], ("row", "column"), None
    wanted = ColumnOptions(id, columns, exclude)
    if is_triangle(tables):
        if wanted.has_names:
            raise ParameterError(
                "id=, columns= and exclude= need frames; this is a Triangle."
            )
        keys, names, sources = read_triangles(tables)
        places, values_of = np.arange(len(keys)), zip(*keys, strict=True)
        parts = [
            (name, np.array(values, object), places)
            for name, values in zip(names, values_of, strict=True)
        ]
        sides, value = ("origin", "development"), "increment"
    else:
        keys, sources = _read_each(tables, absent, wanted)
        own = keys if isinstance(keys, range) else np.fromiter(keys, object, len(keys))
        parts = [("table", np.asarray(own), np.arange(len(keys)))]
    name, given = weights_or_exposure(weights, exposure)
    if given is not None:
        refuse_negatives_with(name, negatives)
        sources = list(_with_weights_each(keys, sources, name, given))
    backends = {source.backend for source in sources if not _is_error(source)}
    backend = backends.pop() if len(backends) == 1 else None
    rows, cols = (
        _side(name, sources, side)
        for name, side in zip(sides, ("row", "col"), strict=True)
    )
    about = TableKeys(keys, parts, rows, cols, backend, value)
    return fit_tables(about, sources, options)


def _read_each(
    tables: Any, absent: Absent | None, columns: ColumnOptions
) -> tuple[Sequence[Any], list[Any]]:
    """Keys and tables; the error in place of one that cannot be read."""
    if isinstance(tables, np.ndarray) and (tables.ndim != 3 or 0 in tables.shape[1:]):
        raise DataError(
            "A stack of tables has three dimensions, none of them empty: tables, rows, "
            f"columns. This array has shape {tables.shape}; a1gm.fit takes a single "
            "table."
        )
    if not isinstance(tables, Iterable) or hasattr(tables, "columns"):
        raise DataError(
            "fit_many takes many tables: a 3-D array, a dict or a list of tables. "
            f"This is a single {type(tables).__name__}; a1gm.fit takes a single "
            "table, a1gm.fit_groups a long frame with groups."
        )
    by_key = tables if isinstance(tables, Mapping) else None
    found = list(tables if by_key is None else by_key.values())
    sources: list[Any] = []
    for table in found:
        try:
            sources.append(read_input(table, absent=absent, columns=columns))
        except A1gmError as error:
            sources.append(error)
    return range(len(found)) if by_key is None else list(by_key), sources


def _with_weights_each(
    keys: Sequence[Any], sources: list[Any], name: Name, given: Any
) -> Iterator[Any]:
    """Tables with their weights; the error in place of one that cannot have them."""
    by_key = given if isinstance(given, Mapping) else None
    if not isinstance(given, Iterable) or hasattr(given, "columns"):
        raise ParameterError(
            f"{name} must be one table for each of the {len(keys)}: a 3-D array, a "
            f"dict or a list. This is a single {type(given).__name__}."
        )
    found = [by_key.get(key) for key in keys] if by_key is not None else list(given)
    if len(found) != len(sources):
        raise WeightsError(
            f"{name} has {counted(len(found), 'table')}, but there are "
            f"{len(sources)} to fit. Pass one for each."
        )
    for key, source, V in zip(keys, sources, found, strict=True):
        if _is_error(source):
            yield source
        elif V is None:
            yield WeightsError(f"{name} has no table {text_of_label(key)}.")
        else:
            try:
                yield with_weights(source, name, V, is_observed=True)
            except A1gmError as error:
                yield error


def _is_error(source: Any) -> bool:
    return isinstance(source, A1gmError)


def _side(name: str, sources: Sequence[Any], side: str) -> Side:
    labels = [getattr(source, f"{side}_labels", None) for source in sources]
    lengths = [getattr(source, f"n_{side}s", 0) for source in sources]
    return Side.of_labels(name, labels, lengths)


def fit_groups(
    frame: Any,
    by: Any,
    keys: Sequence[Any],
    value: Any,
    *,
    weights: Any = None,
    exposure: Any = None,
    duplicates: Duplicates = "raise",
    negatives: Negatives = "raise",
    on_undetermined: OnUndetermined = "warn",
    tol: float | None = None,
    max_iter: int = DEFAULT_MAX_ITER,
    n_threads: int | None = None,
) -> ManyFits:
    """Fit every group of a long table separately, in one call.

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
    weights, exposure : name, optional
        As in ``a1gm.fit_long``.
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
        factors, ``many.fill_long()`` all missing pairs of all groups, filled,
        ``many.uncertainty().totals()`` the totals of all groups with their errors.

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
    weighting = weights_or_exposure(weights, exposure)
    check_long(duplicates, weighting, negatives)
    about, tables = read_groups(frame, by, keys, value, weighting, duplicates)
    return fit_tables(about, tables, options)


# ------------------------------------------------------------------------- fitting
def fit_tables(
    about: TableKeys, tables: Sequence[Any], options: FitOptions
) -> ManyFits:
    """Fit tables that were read, one after the other, and warn once for all of them.

    An error in place of a table is that of reading it. Groups of a long frame get the
    labels that an error mentions when there is one.
    """
    keys, value, sides = about.keys, about.value, (about.rows, about.columns)
    fits: dict[int, RankOneFit] = {}
    failed: dict[int, A1gmError] = {}
    policy = WARNINGS if options.on_undetermined == "raise" else None
    for k, table in enumerate(tables):
        if _is_error(table):
            failed[k] = table
            continue
        try:
            fits[k] = fit_rows(table, options, policy=policy)
        except A1gmError as error:
            failed[k] = error
            if value is not None and table.row_labels is None:
                rows, cols = (side.labels(k) for side in sides)
                named = {"row_labels": rows, "col_labels": cols, "name": str(value)}
                try:
                    fit_rows(replace(table, **named), options, policy=policy)
                except A1gmError as same:
                    failed[k] = same
    by_key = {keys[k]: error for k, error in failed.items()}
    warn_failed(by_key, len(tables), "could not be fitted", "many.failed")
    of_all = f"of {counted(len(tables), 'table')}"
    unsure = [k for k, fit in fits.items() if not fit._is_sure]
    for category, text_of, text in DOUBTS:
        doubtful = [keys[k] for k in unsure if text_of(fits[k])]
        ignored = category is UndeterminedWarning and options.on_undetermined != "warn"
        if doubtful and not ignored:
            first = text_of_label(doubtful[0])
            what = f"In {len(doubtful):,} {of_all} {text}. The first is {first}"
            warn_user(category(what, See("many[key]"), ".", count=len(doubtful)))
    return ManyFits(about, fits, failed)


#: The warnings about a fit, each issued once for all tables.
DOUBTS: tuple[tuple[type[A1gmWarning], Callable[[RankOneFit], Any], str], ...] = (
    (
        EmptyLineWarning,
        lambda fit: text_of_empty(fit, Names()),
        "some rows or columns have no observed cell",
    ),
    (
        UndeterminedWarning,
        lambda fit: text_of_unknown(fit, Names()),
        "the data do not determine some missing cells, or zeros are only approached",
    ),
    (ConvergenceWarning, text_of_convergence, "the certificate was not reached"),
)
