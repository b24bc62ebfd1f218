"""``a1gm.fit``: observe, reduce, solve, expand, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from a1gm._solve.components import Components, find_components, separate_zero_lines
from a1gm._solve.core import solve_core
from a1gm._solve.expand import Factors, expand_factors
from a1gm._sources import AnySource, Source, SparseSource, read_input
from a1gm._kernel import kernel, threads_for
from a1gm._sources.names import Names
from a1gm._observe.one_pass import Observation, observe
from a1gm._solve.reduce import reduce_margins, reduce_statistics
from a1gm._base.float_range import raise_rows
from a1gm._observe.statistics import (
    PairStatistics,
    Statistics,
    TableStatistics,
    WideStatistics,
)
from a1gm._base.types import Absent, Floats, Negatives, OnUndetermined
from a1gm._base.warn import warn_user
from a1gm._base.words import counted
from a1gm.exceptions import (
    ConvergenceWarning,
    DataError,
    NothingObservedError,
    NotRepresentableError,
    ParameterError,
)
from a1gm._result.fit import RankOneFit

__all__ = ["fit", "fit_observation", "warn_of_gap"]

DEFAULT_TOL = 1e-10
DEFAULT_MAX_ITER = 1000
NO_MARGIN_FIT = (
    "No non-negative factors reproduce the row and column sums of this table: its "
    "negative cells outweigh the others in some part of the pattern. Mark some "
    "negative cells as missing."
)
# The usual types first: asking an abstract one takes longer.
REAL: tuple[type, ...] = (float, int, Real)
INTEGRAL: tuple[type, ...] = (int, Integral)
PLAIN_SWEEPS = 60  # what needs more is worth choosing a method for


def fit(
    X: Any,
    *,
    weights: Any = None,
    absent: Absent | None = None,
    negatives: Negatives = "raise",
    on_undetermined: OnUndetermined = "warn",
    tol: float = DEFAULT_TOL,
    max_iter: int = DEFAULT_MAX_ITER,
    n_threads: int | None = None,
) -> RankOneFit:
    """Find the best rank-1 explanation of a non-negative table with holes.

    Parameters
    ----------
    X : table of shape (n_rows, n_cols)
        Non-negative numbers; NaN (or the container's own mark) is a missing cell.
        The input is never modified.
    weights : array or sparse table of shape (n_rows, n_cols), optional
        Non-negative weight of each cell; 0 means that the cell is ignored. A SciPy
        sparse table of weights goes with a sparse X and stores a weight for every cell
        that X stores; ``absent`` must then be ``"missing"``.
    absent : {"missing", "zero"}, optional
        For SciPy sparse tables, what an absent cell is. It must be said.
    negatives : {"raise", "allow"}, default="raise"
        ``"allow"`` fits the row and column sums only, as claims reserving does with
        negative increments; the divergence is then NaN.
    on_undetermined : {"warn", "raise", "ignore"}, default="warn"
        What to do when some missing cells have no value that the data determine.
    tol : float, default=1e-10
        The certificate to reach: largest relative mismatch of the margins.
    max_iter : int, default=1000
        Budget of iterations for patterns without a closed form.
    n_threads : int, optional
        Threads for the pass over the data; the cores available by default.

    Returns
    -------
    RankOneFit
        The factors, what they are worth, and how to use them.

    Raises
    ------
    NegativeValuesError, InfiniteValuesError, NothingObservedError
        The table cannot be fitted; the message names the cell.
    NotNumericError, DimensionError, WeightsError, ParameterError
        The input is not a table of numbers, or an option is out of range.

    Warns
    -----
    EmptyLineWarning
        Rows or columns without any observed cell; their factor is NaN.
    UndeterminedWarning
        Missing cells that the data do not determine; they stay missing.
    ConvergenceWarning
        ``max_iter`` ended before the certificate was within ``tol``.

    Notes
    -----
    Minimises sum over the observed cells of ``x log(x / wh) - x + wh``. The answer is
    the global optimum for every pattern of holes, in closed form whenever there is one
    (Coons & Sullivant, 2021), and certified by ``RankOneFit.certificate``.

    Examples
    --------
    >>> import numpy as np, a1gm
    >>> X = np.array([[1.0, 2.0, 3.0], [2.0, np.nan, 6.0]])
    >>> fit = a1gm.fit(X)
    >>> fit.solver
    'closed form'
    >>> fit.impute(X)
    array([[1., 2., 3.],
           [2., 4., 6.]])
    """
    check_options(
        tol=tol,
        max_iter=max_iter,
        n_threads=n_threads,
        negatives=negatives,
        on_undetermined=on_undetermined,
    )
    source = read_input(X, absent=absent)
    cell_weights = None
    if weights is None:
        seen = observe(source, n_threads=n_threads, negatives=negatives)
    else:
        from a1gm._observe.weights import observe_weighted

        if negatives == "allow":
            msg = 'negatives="allow" and weights cannot be combined; leave one out.'
            raise ParameterError(msg)
        seen, cell_weights = observe_weighted(source, weights)
    return fit_observation(
        seen,
        source=source,
        tol=tol,
        max_iter=max_iter,
        n_threads=n_threads,
        on_undetermined=on_undetermined,
        row_labels=source.row_labels,
        col_labels=source.col_labels,
        weights=cell_weights,
    )


def fit_observation(
    seen: Observation,
    *,
    source: AnySource | None = None,
    tol: float = DEFAULT_TOL,
    max_iter: int = DEFAULT_MAX_ITER,
    n_threads: int | None = None,
    on_undetermined: OnUndetermined = "warn",
    row_labels: Any = None,
    col_labels: Any = None,
    has_rows: bool = True,
    weights: Floats | SparseSource | None = None,
    quiet: bool = False,
    names: Names | None = None,
    make_fit: Callable[..., RankOneFit] = RankOneFit,
) -> RankOneFit:
    """Reduce, solve and expand what a pass has found.

    ``names`` is what warnings call the rows and columns, by default their labels.
    """
    statistics = seen.statistics
    factors, components, statistics = solve_statistics(
        statistics, seen, source, tol=tol, max_iter=max_iter, n_threads=n_threads
    )
    fit = make_fit(
        row_factor=_row_factor(seen, statistics, factors, n_threads),
        col_factor=factors.col_factor,
        factors=factors,
        statistics=statistics,
        line_of_row=seen.line_of_row,
        components=components,
        source=source,
        exponent=seen.exponent,
        has_negatives=seen.n_negative > 0,
        tol=tol,
        row_labels=row_labels,
        col_labels=col_labels,
        on_undetermined=on_undetermined,
        has_rows=has_rows,
        weights=weights,
    )
    if seen.n_negative:
        _check_margin_fit(factors, fit)
    if not quiet:
        if factors.gap > tol:
            warn_of_gap(factors, tol)
        fit.say_what_is_unknown(names)
    return fit


def fit_pattern(seen: Observation, source: AnySource) -> RankOneFit:
    """Fit for the sake of what can be known; negative cells count as positive ones."""
    if seen.n_negative:
        mask: AnySource = source.observed_as_ones()
        seen = observe(mask)
        source = mask
    copied = replace(seen, row_sums=seen.row_sums.copy())  # the fit overwrites them
    return fit_observation(copied, source=source, on_undetermined="ignore", quiet=True)


def solve_statistics(
    statistics: Statistics,
    seen: Observation,
    source: AnySource | None,
    *,
    tol: float,
    max_iter: int,
    n_threads: int | None = None,
) -> tuple[Factors, Any, Statistics]:
    """Blocks, peeling, core and replay for the statistics of a table."""
    if isinstance(statistics, TableStatistics) and not seen.n_negative:
        plain = solve_plain_table(statistics, tol=tol, max_iter=max_iter)
        if plain is not None:
            return plain, None, statistics
    dense = source if isinstance(source, Source) else None
    if dense is not None and not seen.n_negative:
        nested = solve_nested_table(statistics, dense, seen.exponent, n_threads)
        if nested is not None:
            return nested, None, statistics
        wide = solve_wide_table(
            statistics, tol=tol, max_iter=max_iter, n_threads=n_threads
        )
        if wide is not None:
            return wide, None, statistics
    components, reduced = _reduce(statistics, seen, force=dense is None)
    if reduced is None and dense is not None:
        # Leaves among as many patterns as rows: read the table again, with the sums.
        statistics = _statistics_of_cells(dense, seen)
        components, reduced = _reduce(statistics, seen, force=False)
    if reduced.n_core_blocks + reduced.n_roots == 0 and not has_observed_cell(
        statistics
    ):
        msg = (
            "Nothing is observed: every cell of X is missing. At least one cell must "
            "hold a number."
        )
        raise NothingObservedError(msg)
    core = solve_core(reduced, tol=tol, max_iter=max_iter, n_threads=n_threads)
    row_sums = seen.row_sums if seen.line_of_row is None else statistics.row_sums
    try:
        factors = expand_factors(
            reduced, core, row_sums, lambda: statistics.has_observed()[1]
        )
    except NotRepresentableError as error:
        if seen.n_negative:  # sums of cells of either sign that cancel
            raise DataError(NO_MARGIN_FIT) from error
        raise
    return factors, components, statistics


def _reduce(
    statistics: Statistics, seen: Observation, *, force: bool
) -> tuple[Components | None, Any]:
    if not seen.n_negative:
        components = find_components(statistics)
        return components, reduce_statistics(statistics, components, force=force)
    _check_positive_margins(statistics, seen)
    components = separate_zero_lines(statistics)
    if components is not None:
        return components, reduce_margins(statistics, components)
    return None, reduce_statistics(statistics, None, force=force)


def solve_plain_table(
    table: TableStatistics, *, tol: float, max_iter: int
) -> Factors | None:
    """One call of the kernel for the usual table: one block, no zeros, quick to scale.

    Small tables spend more time between the steps than in them.
    """
    budget = min(PLAIN_SWEEPS, max_iter // 2)
    found = kernel.solve_plain(table.keys, table.sums, tol, budget)
    return None if found is None else _one_block(*found)


def solve_wide_table(
    wide: Statistics, *, tol: float, max_iter: int, n_threads: int | None
) -> Factors | None:
    """Do the same for a table of as many patterns as rows."""
    if not isinstance(wide, WideStatistics) or wide.positive is not None:
        return None
    found = kernel.solve_wide(
        wide.bits,
        wide.row_sums,
        wide.col_sums,
        tol,
        min(PLAIN_SWEEPS, max_iter // 2),
        threads_for(wide.n_lines * wide.n_cols, n_threads),
    )
    return None if found is None else _one_block(*found)


def _one_block(
    line_factor: Floats, line_scale: Floats, col_factor: Floats, n_iter: int, gap: float
) -> Factors:
    return Factors(
        line_factor=line_factor,
        line_scale=line_scale,
        col_factor=col_factor,
        line_block=np.zeros(len(line_factor), np.int32),
        col_block=np.zeros(len(col_factor), np.int32),
        n_blocks=1,
        solver="scaling" if n_iter else "closed form",
        n_iter=n_iter,
        gap=gap,
        all_inside=True,
    )


def solve_nested_table(
    wide: Statistics, source: Source, exponent: int, n_threads: int | None
) -> Factors | None:
    """Solve a staircase of as many steps as rows in one more pass over its cells.

    None for any other table, and for zeros, whose components are found first.
    """
    if not isinstance(wide, WideStatistics) or wide.positive is not None:
        return None
    if not source.parts:  # a table in pieces takes the general way
        return None
    threads = threads_for(source.n_rows * source.n_cols, n_threads)
    scale = math.ldexp(1.0, -exponent)
    found = kernel.solve_nested(wide.bits, source.parts, wide.col_sums, scale, threads)
    if found is None:
        return None
    h, reach = found
    if not h.all():  # out of range: the general way says so
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        line_scale = 1.0 / reach
        line_factor = wide.row_sums / reach
    line_block = np.where(reach > 0.0, 0, -1).astype(np.int32)
    col_block = np.where(np.isnan(h), -1, 0).astype(np.int32)
    return Factors(
        line_factor=np.where(line_block < 0, 0.0, line_factor),
        line_scale=line_scale,
        col_factor=h,
        line_block=line_block,
        col_block=col_block,
        n_blocks=1,
        solver="closed form",
        n_iter=0,
        gap=0.0,
        all_inside=bool(line_block.min() == 0 == col_block.min()),
    )


def _statistics_of_cells(source: Source, seen: Observation) -> Statistics:
    """Every row its own line, with the sum of every observed cell."""
    scale = math.ldexp(1.0, -seen.exponent)
    counts, cols, values = [np.zeros(1, np.int64)], [], []
    for _, block in source.blocks():
        observed = ~np.isnan(block)
        counts.append(observed.sum(axis=1))
        cols.append(np.nonzero(observed)[1].astype(np.int32))
        values.append(block[observed] * scale)
    return PairStatistics(
        np.cumsum(np.concatenate(counts)),
        np.concatenate(cols),
        np.concatenate(values),
        None,
        source.n_cols,
    )


def has_observed_cell(statistics: Statistics) -> bool:
    """Whether there is anything to fit."""
    return bool(statistics.has_observed()[0].any())


def _row_factor(
    seen: Observation, statistics: Statistics, factors: Factors, n_threads: int | None
) -> Floats:
    if seen.line_of_row is None:
        row_factor = factors.line_factor.copy()
    else:
        row_factor = seen.row_sums
        threads = threads_for(len(row_factor), n_threads)
        kernel.expand_rows(row_factor, seen.line_of_row, factors.line_scale, threads)
    row_factor = raise_rows(row_factor, seen.exponent)
    if factors.all_inside:
        return row_factor
    if isinstance(statistics, PairStatistics):  # its columns would take a pass
        empty = ~statistics.has_observed_lines()
    else:
        empty = ~statistics.has_observed()[0]
    if empty.any():
        row_factor[empty if seen.line_of_row is None else empty[seen.line_of_row]] = (
            np.nan
        )
    return row_factor


def _check_positive_margins(statistics: Statistics, seen: Observation) -> None:
    for axis, sums in (("row", seen.row_sums), ("column", statistics.col_sums)):
        if (sums < 0.0).any():
            where = int(np.argmax(sums < 0.0))
            msg = (
                'With negatives="allow" every row and column sum must be positive, but '
                f"the sum of {axis} {where} is {sums[where]:g}. Drop that {axis} or "
                "mark its negative cells as missing."
            )
            raise DataError(msg)


def _check_margin_fit(factors: Factors, fit: RankOneFit) -> None:
    bad = (factors.col_factor < 0.0).any() or (factors.line_factor < 0.0).any()
    if bad or factors.gap > 1e-3 or fit.certificate > 1e-3:
        raise DataError(NO_MARGIN_FIT)


def warn_of_gap(factors: Factors, tol: float) -> None:
    """Say that the budget ended before the certificate was reached."""
    warn_user(
        f"The fit stopped after {counted(factors.n_iter, 'iteration')} with a "
        f"certificate of {factors.gap:.2g}, above tol={tol:g}. Raise max_iter (or "
        "tol).",
        ConvergenceWarning,
    )


def check_options(
    *,
    tol: float,
    max_iter: int,
    n_threads: int | None,
    negatives: str,
    on_undetermined: str = "warn",
) -> None:
    """Refuse options outside their allowed values."""
    if not (_is_number(tol, REAL) and 0.0 < tol < math.inf):
        msg = f"tol must be a positive number, got {tol!r}."
        raise ParameterError(msg)
    if not (_is_number(max_iter, INTEGRAL) and max_iter >= 1):
        msg = f"max_iter must be an integer of at least 1, got {max_iter!r}."
        raise ParameterError(msg)
    if n_threads is not None and not (
        _is_number(n_threads, INTEGRAL) and n_threads >= 1
    ):
        msg = f"n_threads must be None or an integer of at least 1, got {n_threads!r}."
        raise ParameterError(msg)
    for name, value, allowed in (
        ("negatives", negatives, ("raise", "allow")),
        ("on_undetermined", on_undetermined, ("warn", "raise", "ignore")),
    ):
        if value not in allowed:
            msg = f"{name} must be one of {allowed}, got {value!r}."
            raise ParameterError(msg)


def _is_number(value: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)
