"""``fit_nmmf`` and ``fit_relations``: lay the tables out as one and fit it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from numbers import Real
from typing import Any, TypeVar

from a1gm._api.fit import DEFAULT_MAX_ITER, FitOptions
from a1gm._base.float_range import float_of
from a1gm._base.types import OnUndetermined
from a1gm._rows.columns import BY_RULE, ColumnOptions
from a1gm._rows.read import read_dense
from a1gm.exceptions import ConvergenceWarning, ParameterError, WeightsError
from a1gm.nmmf.joint import fit_joint
from a1gm.nmmf.layout import Layout, SharedTable, lay_out
from a1gm.nmmf.result import NMMFFit, RelationsFit, SharedFit, check_mapping

LEAST_WEIGHT = 1e-100

Result = TypeVar("Result", bound=SharedFit)


def fit_nmmf(
    X: Any,
    Y: Any = None,
    Z: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    on_undetermined: OnUndetermined = "warn",
    tol: float | None = None,
    max_iter: int = DEFAULT_MAX_ITER,
    n_threads: int | None = None,
) -> NMMFFit:
    """Factorise three tables that share factors: X ≈ w⊗h, Y ≈ a⊗h, Z ≈ w⊗b.

    Parameters
    ----------
    X : table of shape (I, J)
        Non-negative numbers; NaN (or the container's own mark) is a missing cell. The
        inputs are never modified.
    Y : table of shape (N, J), optional
        Shares the columns of X. Holes are allowed here too.
    Z : table of shape (I, M), optional
        Shares the rows of X.
    alpha, beta : float, default=1.0
        Weights of the divergences of Y and Z. With 0 the table does not steer the
        factors it shares with X, but its own entities still get theirs.
    on_undetermined : {"warn", "raise", "ignore"}, default="warn"
        What to do when some missing cells have no value that the data determine.
    tol : float, optional
        The certificate to reach: largest relative mismatch of the margins. None: as in
        ``a1gm.fit``.
    max_iter : int, default=1000
        Budget of iterations for patterns without a closed form.
    n_threads : int, optional
        Threads for the pass over the data; the cores available by default.

    Returns
    -------
    NMMFFit
        The factors ``w, h, a, b``, and what they are worth.

    Raises
    ------
    DataError, LabelError
        Y has other columns, or Z other rows, than X. Names that only count from 0, like
        the default index of a frame, are no names.
    NegativeValuesError, InfiniteValuesError, DataError
        A table cannot be fitted; the message names the table and the cell.
    NotRepresentableError
        A factor, or the spread of the weighted cells, is beyond float64.
    ParameterError
        A weight is negative or not finite, or an option is out of range.

    Notes
    -----
    Minimises ``D(X, w⊗h) + alpha D(Y, a⊗h) + beta D(Z, w⊗b)``, each D the
    Kullback-Leibler divergence on the observed cells. This is the missing-data problem
    on the table ``[[X, Z], [Y, nothing]]`` with weights ``[[1, beta], [alpha, 0]]``;
    that table is never built. The answer is the global optimum for every pattern of
    holes, and Theorem 1 of Ghalamkari & Sugiyama (2022) without holes. As there,
    ``w`` and ``h`` have the same sum (in each block, when there are several).

    Examples
    --------
    >>> import numpy as np, a1gm
    >>> X = np.array([[1.0, 2.0], [np.nan, 4.0]])
    >>> fit = a1gm.fit_nmmf(X, Y=[[3.0, 6.0]], Z=[[5.0], [10.0]])
    >>> bool(fit.certificate <= 1e-10)
    True
    >>> fit.impute(X)[0].round(12)
    array([[1., 2.],
           [2., 4.]])
    """
    options = FitOptions("raise", on_undetermined, tol, max_iter, n_threads)
    return fit_layout(lay_out_nmmf(X, Y, Z, alpha=alpha, beta=beta), NMMFFit, options)


def lay_out_nmmf(
    X: Any,
    Y: Any,
    Z: Any,
    *,
    alpha: float,
    beta: float,
    columns: ColumnOptions = BY_RULE,
) -> Layout:
    """Read the three tables and check that they belong together."""
    for name, value in (("alpha", alpha), ("beta", beta)):
        check_weight(value, name, ParameterError)
    given = (
        ("X", X, "w", "h", 1.0),
        ("Y", Y, "a", "h", alpha),
        ("Z", Z, "w", "b", beta),
    )
    tables = [
        SharedTable(name, name, read_dense(table, name, columns), row, col, float(v))
        for name, table, row, col, v in given
        if table is not None or name == "X"
    ]
    return lay_out(tables)


def check_weight(value: Any, name: str, error: type[Exception]) -> None:
    """Raise for a weight that is negative, not finite or too far from 1, or a bool."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not (is_number and 0.0 <= float_of(value) < math.inf):
        raise error(f"{name} must be a finite number of at least 0, got {value!r}.")
    # Weighted sums and their quotients must stay well inside float64.
    if value and not LEAST_WEIGHT <= float(value) <= 1.0 / LEAST_WEIGHT:
        raise error(
            f"{name} must be 0 or between {LEAST_WEIGHT:g} and "
            f"{1 / LEAST_WEIGHT:g}, got {value!r}. A table this far from the others "
            "counts alone or not at all."
        )


def fit_relations(
    tables: Mapping[tuple[Hashable, Hashable], Any],
    weights: Mapping[tuple[Hashable, Hashable], float] | None = None,
    *,
    on_undetermined: OnUndetermined = "warn",
    tol: float | None = None,
    max_iter: int = DEFAULT_MAX_ITER,
    n_threads: int | None = None,
) -> RelationsFit:
    """Factorise any number of tables that share sets of entities.

    Parameters
    ----------
    tables : mapping of (row entities, column entities) to table
        Each table by the names of the entities of its rows and of its columns, such as
        ``{("user", "item"): X, ("group", "item"): Y, ("user", "trait"): Z}``. Entities
        of one name are the same ones, in the same order, in every table.
    weights : mapping, optional
        Weight of the divergence of each table, 1 by default. With 0 a table
        does not steer the factors it shares.
    on_undetermined, tol, max_iter, n_threads
        As in ``fit_nmmf``.

    Returns
    -------
    RelationsFit
        One factor per entity set, in ``fit.factors``.

    Raises
    ------
    ParameterError
        A key is not a pair, or a table lies between two sets that other tables put on
        the same side; the message names it.
    DataError, LabelError
        An entity set has different sizes, or names, in two tables.
    NotRepresentableError
        A factor, or the spread of the weighted cells, is beyond float64.
    WeightsError
        A weight is negative or not finite, or a table of weight 0 shares its entities
        with no table that steers.

    Notes
    -----
    Every table ``T`` is fitted by ``T[i, j] ≈ f[i] * g[j]`` with the factors of its two
    sets. An entity set may be the rows of one table and the columns of another, as long
    as closed chains of tables have an even number of them. The scale of the factors
    follows the first table: its two sets have the same sum (in each block).

    Examples
    --------
    >>> import numpy as np, a1gm
    >>> user, item, store = np.ones(3), np.array([1.0, 2.0]), np.array([5.0, 1.0])
    >>> tables = {
    ...     ("user", "item"): np.outer(user, item),
    ...     ("item", "store"): np.outer(item, store),
    ... }
    >>> fit = a1gm.fit_relations(tables)
    >>> (fit.factors["store"] / fit.factors["store"][1]).round(12)
    array([5., 1.])
    """
    check_mapping(tables, "tables", ParameterError)
    if weights is not None:
        check_mapping(weights, "weights", WeightsError)
    options = FitOptions("raise", on_undetermined, tol, max_iter, n_threads)
    layout = lay_out(list(_declared(tables, weights or {})))
    return fit_layout(layout, RelationsFit, options)


def _declared(
    tables: Mapping[Any, Any], weights: Mapping[Any, Any]
) -> Iterator[SharedTable]:
    if not tables:
        raise ParameterError("fit_relations needs at least one table.")
    unknown = [key for key in weights if key not in tables]
    if unknown:
        raise WeightsError(
            f"weights name {unknown[0]!r}; the tables are {list(tables)}."
        )
    for key, table in tables.items():
        if not (isinstance(key, tuple) and len(key) == 2):
            raise ParameterError(
                f"The key {key!r} is not a pair: name the entities of the rows and of "
                'the columns, as in ("user", "item").'
            )
        weight = weights.get(key, 1.0)
        check_weight(weight, f"The weight of {key!r}", WeightsError)
        name = f"({key[0]!r}, {key[1]!r})"
        yield SharedTable(key, name, read_dense(table, name), *key, float(weight))


def fit_layout(
    layout: Layout,
    kind: type[Result],
    options: FitOptions,
    convergence: type[Warning] = ConvergenceWarning,
) -> Result:
    """Fit a layout; ``convergence`` is the class of the warning of a poor fit."""
    joint, layout = fit_joint(layout, options)
    fit = kind(layout, joint, on_undetermined=options.on_undetermined)
    fit._warn(convergence)
    return fit
