"""``a1gm.fit_many``: thousands of small tables in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from a1gm._api.fit import (
    DEFAULT_MAX_ITER,
    DEFAULT_TOL,
    WARNINGS,
    check_options,
    fit_patterns,
)
from a1gm._base.types import Absent, Negatives, OnUndetermined
from a1gm._base.warn import warn_user
from a1gm._base.words import counted
from a1gm._fit.fit import RankOneFit
from a1gm._fit.many import ManyFits, Side
from a1gm._fit.messages import text_of_convergence, text_of_empty, text_of_unknown
from a1gm._observe.observe import observe
from a1gm._rows.labels import Names, text_of_label
from a1gm._rows.read import AnyRows, read_input
from a1gm._rows.rows import Rows, as_kernel_array
from a1gm._rows.triangles import is_triangle, read_triangles
from a1gm.exceptions import (
    A1gmError,
    A1gmWarning,
    ConvergenceWarning,
    DataError,
    EmptyLineWarning,
    See,
    SkippedWarning,
    UndeterminedWarning,
)


def fit_many(
    tables: Any,
    *,
    absent: Absent | None = None,
    negatives: Negatives = "raise",
    on_undetermined: OnUndetermined = "warn",
    tol: float = DEFAULT_TOL,
    max_iter: int = DEFAULT_MAX_ITER,
    n_threads: int | None = None,
) -> ManyFits:
    """Fit many tables, each on its own, in one call.

    Parameters
    ----------
    tables : array of shape (n_tables, n_rows, n_cols), mapping, or iterable of tables
        A stack of tables, whose keys are 0, 1, 2, ...; tables by key; or tables one
        after the other, of any kind that ``a1gm.fit`` takes. A ``Triangle`` of the
        package chainladder is the triangles it holds: their keys are the labels of its
        index and the name of its column, their rows the origins, their columns the
        ages. Cumulative claims are turned into increments, which is what the fit
        explains and ``many.fill_long()`` gives; increments below zero need
        ``negatives="allow"``.
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
    options = check_options(
        negatives=negatives,
        on_undetermined=on_undetermined,
        tol=tol,
        max_iter=max_iter,
        n_threads=n_threads,
    )
    keys: Sequence[Any]
    sources: list[Any]
    parts, sides, value = [], ("row", "column"), None
    if is_triangle(tables):
        keys, names, sources = read_triangles(tables)
        places, columns = np.arange(len(keys)), zip(*keys, strict=True)
        parts = [
            (name, np.array(values, object), places)
            for name, values in zip(names, columns, strict=True)
        ]
        sides, value = ("origin", "development"), "increment"
    elif isinstance(tables, np.ndarray):
        sources = _stacked(tables)
        keys = range(len(sources))
    else:
        keys, sources = _read_each(tables, absent)
    known = [source for source in sources if not isinstance(source, A1gmError)]
    backends = {source.backend for source in known}
    return fit_tables(
        keys,
        sources,
        (_side(sides[0], sources, "row"), _side(sides[1], sources, "col")),
        options,
        parts=parts,
        backend=backends.pop() if len(backends) == 1 else None,
        value=value,
    )


def _stacked(stack: Any) -> list[Rows]:
    """The tables of a 3-D array, where they lie."""
    if stack.ndim != 3 or 0 in stack.shape[1:]:
        raise DataError(
            "A stack of tables has three dimensions, none of them empty: tables, rows, "
            f"columns. This array has shape {stack.shape}; a1gm.fit takes a single "
            "table."
        )
    n_rows, n_cols = stack.shape[1:]
    mask = np.ma.getmask(stack) if isinstance(stack, np.ma.MaskedArray) else None
    if mask is np.ma.nomask:
        mask = None
    data = np.asarray(np.ma.getdata(stack))
    values = as_kernel_array(data.reshape(-1, n_cols), "tables").reshape(data.shape)
    masks: Any = [None] * len(values) if mask is None else np.asarray(mask)
    return [
        Rows([(table, own, None, 0, 0)], n_rows, n_cols)
        for table, own in zip(values, masks, strict=True)
    ]


def _read_each(tables: Any, absent: Absent | None) -> tuple[Sequence[Any], list[Any]]:
    """Keys and tables; the error in place of one that cannot be read."""
    if isinstance(tables, Mapping):
        keys: Any = list(tables)
        tables = tables.values()
    else:
        if not isinstance(tables, Iterable) or hasattr(tables, "columns"):
            raise DataError(
                "fit_many takes many tables: a 3-D array, a dict or a list of tables. "
                f"This is a single {type(tables).__name__}; a1gm.fit takes a single "
                "table, a1gm.fit_groups a long frame with groups."
            )
        tables = list(tables)
        keys = range(len(tables))
    sources: list[Any] = []
    for table in tables:
        try:
            sources.append(read_input(table, absent=absent))
        except A1gmError as error:
            sources.append(error)
    return keys, sources


def _side(name: str, sources: Sequence[Any], side: str) -> Side:
    labels = [getattr(source, f"{side}_labels", None) for source in sources]
    lengths = [getattr(source, f"n_{side}s", 0) for source in sources]
    return Side.of_labels(name, labels, lengths)


# ------------------------------------------------------------------------- fitting
def fit_tables(
    keys: Sequence[Any],
    tables: Sequence[Any],
    sides: tuple[Side, Side],
    options: dict[str, Any],
    *,
    named: Callable[[int], AnyRows] | None = None,
    **more: Any,
) -> ManyFits:
    """Fit tables that were read, one after the other, and warn once for all of them.

    An error in place of a table is that of reading it. ``named`` gives a table with
    the labels that its error mentions; ``more`` is passed to ``ManyFits``.
    """
    fits: dict[int, RankOneFit] = {}
    failed: dict[int, A1gmError] = {}
    for k, table in enumerate(tables):
        if isinstance(table, A1gmError):
            failed[k] = table
            continue
        try:
            fits[k] = _fit_one(table, **options)
        except A1gmError as error:
            failed[k] = error
            if named is not None:
                try:
                    _fit_one(named(k), **options)
                except A1gmError as same:
                    failed[k] = same
    _warn_of_many(keys, fits, failed, options["on_undetermined"])
    return ManyFits(keys, fits, failed, *sides, **more)


def _fit_one(
    table: AnyRows,
    *,
    negatives: Negatives,
    n_threads: int | None,
    on_undetermined: OnUndetermined,
    **options: Any,
) -> RankOneFit:
    return fit_patterns(
        observe(table, n_threads=n_threads, negatives=negatives),
        table,
        takes_negatives=negatives == "allow",
        on_undetermined=on_undetermined,
        n_threads=n_threads,
        policy=WARNINGS if on_undetermined == "raise" else None,
        **options,
    )


def _warn_of_many(
    keys: Sequence[Any],
    fits: dict[int, RankOneFit],
    failed: dict[int, A1gmError],
    on_undetermined: OnUndetermined,
) -> None:
    """Warn once of each kind, with the number of tables and the first key."""
    doubts: dict[str, list[Any]] = {"convergence": [], "empty": [], "unknown": []}
    for k, fit in fits.items():
        if text_of_convergence(fit):
            doubts["convergence"].append(keys[k])
        if text_of_empty(fit, Names()):
            doubts["empty"].append(keys[k])
        if text_of_unknown(fit, Names()):
            doubts["unknown"].append(keys[k])
    of_all = f"of {counted(len(fits) + len(failed), 'table')}"
    if failed:
        k, error = next(iter(failed.items()))
        warn_user(
            SkippedWarning(
                f"{len(failed):,} {of_all} could not be fitted",
                See("many.failed"),
                f". The first is {text_of_label(keys[k])}: ",
                error.all_parts,
                count=len(failed),
            )
        )
    for name, (text, category) in _DOUBTS.items():
        if doubts[name] and (name != "unknown" or on_undetermined == "warn"):
            n, first = len(doubts[name]), text_of_label(doubts[name][0])
            first_one = f"In {n:,} {of_all} {text}. The first is {first}"
            warn_user(category(first_one, See("many[key]"), ".", count=n))


_DOUBTS: dict[str, tuple[str, type[A1gmWarning]]] = {
    "empty": ("some rows or columns have no observed cell", EmptyLineWarning),
    "unknown": (
        "the data do not determine some missing cells, or zeros are only approached",
        UndeterminedWarning,
    ),
    "convergence": ("the certificate was not reached", ConvergenceWarning),
}
