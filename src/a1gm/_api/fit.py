"""``a1gm.fit`` and ``a1gm.impute``: read, observe, solve, fill."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from a1gm._base.checks import check_keywords
from a1gm._base.float_range import (
    check_rows,
    float_of,
    keeps_digits,
    out_of_range,
)
from a1gm._base.types import Absent, Floats, Ints, Negatives, OnUndetermined
from a1gm._fit.fill import Rounding, check_rounding
from a1gm._fit.fit import RankOneFit
from a1gm._fit.messages import WarningPolicy, warn_about
from a1gm._fit.sure.arguments import check_level
from a1gm._fit.table import FitRows, LazyRows, Table
from a1gm._fit.totals import check_plain_fills
from a1gm._kernel import kernel, threads_for
from a1gm._observe.observe import observe
from a1gm._observe.patterns import Patterns
from a1gm._rows.columns import BY_RULE, ColumnOptions
from a1gm._rows.labels import label_at
from a1gm._rows.lazy import native_of
from a1gm._rows.read import AnyRows, read_input
from a1gm._rows.weights import weights_or_exposure, with_weights
from a1gm._solve.dispatch import Solved, solve_patterns
from a1gm.engines.lazy import LAZY_FRAMES, LazyFrames, kind_of, observe_elsewhere
from a1gm.exceptions import DataError, EmptyLineWarning, Option, ParameterError

DEFAULT_TOL = 1e-10
DEFAULT_MAX_ITER = 1000
MOST_ITER = 2**31 - 1
# The usual types first: a test for an abstract one takes longer.
REAL: tuple[type, ...] = (float, int, Real)
INTEGRAL: tuple[type, ...] = (int, Integral)
NEGATIVES = ("raise", "allow")
ON_UNDETERMINED = ("warn", "raise", "ignore")
WARNINGS = WarningPolicy()


@dataclass  # not frozen: that would slow down small fits
class FitOptions:
    """How a table is fitted; values that are not allowed are refused."""

    negatives: Negatives = "raise"
    on_undetermined: OnUndetermined = "warn"
    tol: float | None = None  # None is DEFAULT_TOL
    max_iter: int = DEFAULT_MAX_ITER
    n_threads: int | None = None
    progress: Callable[[int, float], None] | None = None

    def __post_init__(self) -> None:
        tol = self.certificate
        if not (is_positive(tol) and float_of(tol) < math.inf):
            raise self._error("tol", "a positive number")
        if not (_is_count(self.max_iter) and self.max_iter <= MOST_ITER):
            raise self._error("max_iter", f"an integer between 1 and {MOST_ITER:,}")
        if not (self.n_threads is None or _is_count(self.n_threads)):
            raise self._error("n_threads", "None or an integer of at least 1")
        if self.negatives not in NEGATIVES:
            raise self._error("negatives", f"one of {NEGATIVES}")
        if self.on_undetermined not in ON_UNDETERMINED:
            raise self._error("on_undetermined", f"one of {ON_UNDETERMINED}")

    @property
    def certificate(self) -> float:
        """The certificate to reach."""
        return DEFAULT_TOL if self.tol is None else self.tol

    def _error(self, name: str, allowed: str) -> ParameterError:
        got = repr(getattr(self, name))
        return ParameterError(Option(name), f" must be {allowed}, got {got}.")


def _is_number(value: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)


def is_positive(value: Any) -> bool:
    """Whether a value is a number above 0."""
    return _is_number(value, REAL) and float_of(value) > 0.0


def _is_count(value: Any) -> bool:
    return _is_number(value, INTEGRAL) and value >= 1


def fit(
    X: Any,
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
    rank: int = 1,
) -> RankOneFit:
    """Find the best rank-1 explanation of a non-negative table with holes.

    Parameters
    ----------
    X : table of shape (n_rows, n_cols)
        Non-negative numbers; NaN (or the container's own mark) is a missing cell.
        The input is never modified. A table that lies elsewhere is counted there: a
        relation of DuckDB, a table of Ibis, a frame of Spark or SQLFrame; a lazy frame
        of polars, an Arrow reader, Dataset or stream, or an iterator of frames is read
        once, and its rows are not kept.
    weights : table of shape (n_rows, n_cols), or one number per row or column, optional
        Non-negative weight of each cell; 0 means that the cell is ignored: the fit
        counts it as missing, and ``impute`` keeps the value that X has there. A Series
        is matched with the rows or the columns by its labels, an array by its shape:
        (n_rows, 1), (1, n_cols), or the length where that decides. A SciPy sparse
        table of weights goes with a sparse X and stores a weight for every cell that X
        stores; ``absent`` must then be ``"missing"``.
    exposure : as ``weights``, optional
        How much there was to count in each cell: years at risk, hours, area. The
        factors are rates, ``X[i, j] ≈ exposure[i, j] w[i] h[j]`` (Poisson regression
        with an offset), the same as ``fit(X / exposure, weights=exposure)``; fills,
        residuals and totals are in units of X. A cell of exposure 0 is not observed,
        and its value is 0; one of unknown exposure (NaN) is not observed, and stays
        missing if it is. ``fate`` and ``undetermined`` refer to the rates.
    id, columns, exclude : name or list of names, optional
        For frames: columns that name the rows, the columns that are the table (by
        default all others; in the order that the frame has them), and columns to leave
        out. ``impute`` gives them all back. An Index, an array or a Series is a list.
    absent : {"missing", "zero"}, optional
        For SciPy sparse tables, what an absent cell is; required for them.
    negatives : {"raise", "allow"}, default="raise"
        ``"allow"`` fits the row and column sums only, as claims reserving does with
        negative increments, where the holes have a closed form, as those of triangles;
        the divergence is then NaN.
    on_undetermined : {"warn", "raise", "ignore"}, default="warn"
        What to do when some missing cells have no value that the data determine.
    tol : float, optional
        The certificate to reach: the largest relative mismatch of the margins. None:
        1e-10; cores of up to 10^5 cells go on to 1e-12, where that is free.
    max_iter : int, default=1000
        Budget of iterations for patterns without a closed form.
    n_threads : int, optional
        Threads for the pass over the data; the cores available by default. More than
        1,024 count as 1,024.
    rank : int, default=1
        Any other rank is refused, with what to use instead.

    Returns
    -------
    RankOneFit
        The factors, their certificate, and the methods that use them.

    Raises
    ------
    NegativeValuesError, InfiniteValuesError, DataError
        The table cannot be fitted; the message names the cell.
    EngineError
        A query on a table that lies elsewhere failed; the message is the engine's.
    NotNumericError, DataError, WeightsError, ParameterError
        The input is not a table of numbers, or an option is out of range.

    Warns
    -----
    EmptyLineWarning
        Rows or columns without any observed cell; their factor is NaN.
    UndeterminedWarning
        Missing cells that the data do not determine; they stay missing.
    ConvergenceWarning
        ``max_iter`` ended before the certificate was within ``tol``, or
        ``fit.cell_error`` could not be brought below 1e-8.

    Notes
    -----
    Minimises sum over the observed cells of ``x log(x / wh) - x + wh``. The answer is
    the global optimum for every pattern of holes, in closed form whenever there is one
    (Coons & Sullivant, 2021), and certified by ``RankOneFit.certificate`` (the margins)
    and ``RankOneFit.cell_error`` (the cells).

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
    options = FitOptions(negatives, on_undetermined, tol, max_iter, n_threads)
    if rank != 1 or isinstance(rank, bool):
        raise _no_other_rank(rank)
    wanted = BY_RULE
    if not (id is None is columns is exclude):
        wanted = ColumnOptions(id, columns, exclude)
    if kind_of(X) is not None:
        _check_lazy(X, weights, exposure, absent)
        return _fit_elsewhere(X, wanted, options)
    source: AnyRows = read_input(X, absent=absent, columns=wanted)
    if weights is not None or exposure is not None:
        name, given = weights_or_exposure(weights, exposure)
        refuse_negatives_with(name, negatives)
        source = with_weights(source, name, given, is_observed=True)
    return fit_rows(source, options)


def impute(
    X: Any,
    *,
    weights: Any = None,
    exposure: Any = None,
    row_totals: Any = None,
    col_totals: Any = None,
    interval: float | None = None,
    round: Rounding = None,
    **options: Any,
) -> Any:
    """Fill the missing cells of a table with its best rank-1 explanation.

    Parameters
    ----------
    X : table of shape (n_rows, n_cols)
        Non-negative numbers; NaN (or the container's own mark) is a missing cell. The
        input is never modified.
    weights, exposure : table, or one number per row or column, optional
        As in ``a1gm.fit``.
    row_totals, col_totals : array, list, Series, dict or frame, optional
        Totals that the filled table is to have, as in ``a1gm.scale``: the fills are
        scaled to what the observed cells, which are kept, leave of them.
    interval : float, optional
        A level such as 0.95: return the bounds of prediction intervals as well, those
        of ``fit.uncertainty().interval(X, level)``.
    round : int or "auto", optional
        As in ``fit.impute``; the bounds are not rounded.
    **options
        As in ``a1gm.fit``.

    Returns
    -------
    table, or three of them with ``interval``
        A copy of X, of the same kind, with its missing cells filled. Cells that the
        data do not determine stay missing, with a warning; with totals they are filled,
        if all rows and columns with missing cells have one. With ``interval`` the lower
        and the upper bounds follow, where a known cell is its own bound.

    Raises
    ------
    TotalsError
        No fill has these totals; the message names rows and columns that prove it.

    Examples
    --------
    >>> import numpy as np, a1gm
    >>> X = np.array([[1.0, 2.0, 3.0], [2.0, np.nan, np.nan]])
    >>> a1gm.impute(X)
    array([[1., 2., 3.],
           [2., 4., 6.]])
    >>> a1gm.impute(X, row_totals=[6, 17])
    array([[1., 2., 3.],
           [2., 6., 9.]])
    """
    check_keywords("impute", options, fit.__kwdefaults__)
    check_rounding(round)
    if interval is not None:
        check_level(interval, Option("interval"))
    has_totals = row_totals is not None or col_totals is not None
    if has_totals:  # which determine more than the data
        check_plain_fills(round, interval)
        options.setdefault("on_undetermined", "ignore")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EmptyLineWarning)
            fitted = fit(X, weights=weights, exposure=exposure, **options)
        source, columns = fitted._table.source, fitted._columns
        if source is None:  # refused
            return fitted.impute(X, row_totals=row_totals, col_totals=col_totals)
        return fitted._fill_to(X, source, columns, row_totals, col_totals)
    fitted = fit(X, weights=weights, exposure=exposure, **options)
    if fitted._table.source is None:  # it lies elsewhere
        filled = fitted.impute(X, round=round)
    else:  # read once
        filled = fitted._fill(X, fitted._table.source, fitted._columns, round)
    if interval is None:
        return filled
    return filled, *fitted.uncertainty().interval(X, interval)


def _no_other_rank(rank: Any) -> ParameterError:
    return ParameterError(
        f"rank={rank!r}: a1gm fits rank 1 only, one factor per row and one per column. "
        "The exact optimum that it certifies exists for rank 1; with more components "
        "the problem has many local optima. For those use "
        "sklearn.decomposition.NMF(solver='mu', beta_loss='kullback-leibler') on a "
        "table without holes, or a1gm.paper.kl_wnmf(X, rank=...)."
    )


def refuse_negatives_with(name: str, negatives: Negatives) -> None:
    """Refuse ``negatives="allow"`` together with weights or an exposure."""
    if negatives == "allow":
        raise ParameterError(
            Option("negatives", "allow"),
            " and ",
            Option(name),
            " cannot be combined; leave one out.",
        )


def _check_lazy(X: Any, weights: Any, exposure: Any, absent: Any) -> None:
    name, given = weights_or_exposure(weights, exposure)
    if given is not None:
        raise ParameterError(
            f"{name}= is for tables in memory: rows with the same holes and other "
            f"{name} are not counted together, as an engine does with them. Collect "
            f"the {type(X).__name__} and its {name} first."
        )
    if absent is not None:
        raise ParameterError(
            f"absent={absent!r} is for SciPy sparse tables; X is a {type(X).__name__}. "
            "Leave it out."
        )


# --------------------------------------------------------------------------- fitting
def _fit_elsewhere(X: Any, wanted: ColumnOptions, options: FitOptions) -> RankOneFit:
    """Fit a table that is counted where it lies, or read once."""
    seen, names, choice = observe_elsewhere(
        X, wanted, options.negatives, options.n_threads
    )
    engine = LazyFrames(native_of(X)) if kind_of(X) == "lazy" else LAZY_FRAMES
    return fit_patterns(seen, options, col_labels=names, choice=choice, engine=engine)


def fit_rows(source: AnyRows, options: FitOptions, **more: Any) -> RankOneFit:
    """Observe and solve a table that was read; ``more`` is for `fit_patterns`."""
    seen = observe(source, n_threads=options.n_threads, negatives=options.negatives)
    return fit_patterns(seen, options, source, **more)


def fit_patterns(
    seen: Patterns,
    options: FitOptions,
    source: Any = None,
    *,
    in_file: bool = False,
    col_labels: Any = None,
    policy: WarningPolicy | None = WARNINGS,
    **more: Any,
) -> RankOneFit:
    """Solve the patterns of a table; the sums of its rows are overwritten.

    ``source`` reads the table again; with ``in_file`` row factors are computed when
    they are read. ``policy`` is what to warn about; None for nothing. ``more`` are
    further fields of `Table`.
    """
    try:
        solved = solve_patterns(
            seen,
            source,
            tol=options.certificate,
            max_iter=options.max_iter,
            n_threads=options.n_threads,
        )
    except DataError as error:
        if error.column is None:
            raise
        labels = getattr(source, "col_labels", col_labels)
        raise error.at(f"Column {label_at(labels, error.column)}") from None
    if seen.sum_of_row is None:
        rows = FitRows(seen, is_kept=False)
    elif in_file and seen.pattern_of_row is not None:
        rows = FitRows(seen, LazyRows(seen.n_rows, _RowFactors.of(seen, solved)))
    else:
        rows = FitRows(seen, _row_factor(seen, solved, options.n_threads))
    seen.sum_of_row = None  # overwritten
    here = None if in_file else source
    table = Table(
        source=source,
        row_labels=getattr(here, "row_labels", None),
        col_labels=getattr(here, "col_labels", col_labels),
        backend=getattr(here, "backend", None),
        takes_negatives=options.negatives == "allow",
        is_weighted=getattr(here, "weights", None) is not None,
        is_exposed=getattr(here, "exposed", False),
        in_file=in_file,
        **{
            "absent": getattr(here, "absent", None),
            "choice": getattr(source, "choice", None),
            "engine": LAZY_FRAMES,
            **more,
        },
    )
    fit = RankOneFit(
        solved,
        rows,
        table,
        tol=options.certificate,
        on_undetermined=options.on_undetermined,
    )
    if policy is not None and not fit._is_sure:
        warn_about(fit, policy)
    return fit


@dataclass(frozen=True)  # not a function inside another: fits are pickled
class _RowFactors:
    """Factors of the rows from ``start`` to ``stop``; raise for one outside float64."""

    sums: Floats
    pattern: Ints | None  # of each row; None where every row is one
    scale: Floats  # NaN for a pattern that observes nothing

    @classmethod
    def of(cls, seen: Patterns, solved: Solved) -> _RowFactors:
        statistics, pattern = solved.statistics, seen.pattern_of_row
        sums = seen.sum_of_row if pattern is not None else statistics.row_sums
        empty = ~statistics.nonempty_patterns()
        scale = np.where(empty, np.nan, solved.factors.pattern_scale)
        return cls(sums, pattern, scale)

    def __call__(self, start: int, stop: int) -> Floats:
        sums = self.sums[start:stop]
        if self.pattern is None:
            scale = self.scale[start:stop]
        else:
            scale = self.scale[self.pattern[start:stop]]
        factors = sums * scale + 0.0  # no -0.0
        # Without weights scales are 1 or more, and a row of data has a factor.
        check_rows(factors, np.where(scale != 0.0, sums, 0.0), start)
        return factors


def _row_factor(seen: Patterns, solved: Solved, n_threads: int | None) -> Floats:
    """Factor of each row; raise for one that float64 does not have."""
    factors, pattern = solved.factors, seen.pattern_of_row
    is_weighted = seen.weights is not None
    if is_weighted or seen.n_negative:
        rows = _RowFactors.of(seen, solved)(0, seen.n_rows)
        if is_weighted and not (kept := keeps_digits(rows)).all():
            raise out_of_range("row", int(kept.argmin()))
        return rows
    if pattern is None:
        rows = factors.pattern_factor.copy()
    else:
        rows = seen.sum_of_row
        threads = threads_for(len(rows), n_threads)
        kernel.expand_rows(rows, pattern, factors.pattern_scale, threads)
    if not factors.all_inside:
        empty = ~solved.statistics.nonempty_patterns()
        rows[empty if pattern is None else empty[pattern]] = np.nan
    return rows
