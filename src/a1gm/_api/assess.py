"""``a1gm.assess``: whether rank 1 is right for a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from a1gm._api.fit import fit, refuse_negatives_with
from a1gm._api.fit_long import check_long
from a1gm._api.scores import Scored, misses, skill_of
from a1gm._base.types import AnyArray, Bools, Floats, Ints, Negatives
from a1gm._base.words import counted
from a1gm._fit.frames import labelled_frame
from a1gm._fit.messages import aligned
from a1gm._fit.residuals import divergence_of_cells
from a1gm._fit.sure.arguments import check_level, generator_of, is_share
from a1gm._rows.columns import ColumnOptions
from a1gm._rows.labels import (
    Lookup,
    follow_in_order,
    names_in,
    plain_text,
    text_of_label,
)
from a1gm._rows.long import Duplicates, labels_of, read_groups, read_long
from a1gm._rows.read import is_sparse, read_input
from a1gm._rows.rows import Rows, check_values
from a1gm._rows.weights import Weighting, weights_or_exposure, with_weights
from a1gm.exceptions import A1gmError, DataError, Option, ParameterError
from a1gm.tensor.assess import assess_margins
from a1gm.tensor.read import cells_of_long, read_cells

Hide: TypeAlias = float | Literal["last"]
METHODS = "rank 1", "column means", "row means", "overall mean", "last value"

ROUNDING = 1e-9  # of a cell: so near a bound it is inside
EXACT = 1e-12  # of a cell: so near a guess it is right
FEW = 10  # fewer hidden cells prove nothing
FEWEST_PAIRS = 100  # of neighbouring residuals
CORRELATED = 0.2  # residuals whose correlation errors do not bear
MOST_GROUPS = 20  # that are printed
MOST_MODES_OF_ALL = 4  # all sets of pairs are tried by default
MOST_COMPARED = 20_000  # hidden cells, in all repeats
MOST_OBSERVED = 200_000  # cells of the part that is judged
MOST_CELLS = 2_000_000  # of that part, missing ones included


def assess(
    X: Any,
    hide: Hide = 0.1,
    repeats: int = 5,
    random_state: Any = None,
    *,
    keys: Sequence[Any] | None = None,
    value: Any = None,
    by: Any = None,
    interactions: Any = None,
    weights: Any = None,
    exposure: Any = None,
    duplicates: Duplicates = "raise",
    id: Any = None,
    columns: Any = None,
    exclude: Any = None,
    ordered: bool | None = None,
    negatives: Negatives = "raise",
    level: float = 0.95,
    sample: int | None = None,
) -> Any:
    """Hide known cells, fit the rest, and compare the fills with simpler guesses.

    Parameters
    ----------
    X : table of shape (n_rows, n_cols), or long frame
        As for ``a1gm.fit``, not sparse; with ``keys`` and ``value`` as for
        ``a1gm.fit_long``.
    hide : float or "last", default=0.1
        The share of the observed cells to hide; or the last observed cell of rows, in
        half of them each time, as a forecaster would.
    repeats : int, default=5
        How often, each time with other cells.
    random_state : int, numpy Generator, or None
        Where the random numbers come from.
    keys, value, duplicates : optional
        The columns of a long frame, as for ``a1gm.fit_long``.
    by : name or list of names, optional
        The columns of a long frame that identify one of many tables, as for
        ``a1gm.fit_groups``: the result is about all of them, and its ``groups`` are
        those of each.
    interactions : "all", or sequence of tuples of modes, optional
        For more than two modes, in a long frame or as for ``a1gm.fit_tensor``: the sets
        of margins to compare with one factor per mode; "all" for every set of pairs of
        modes. Default: "all" of three or four modes, one factor per mode of more. The
        options about columns of a frame, ``by``, ``ordered``, ``negatives``, ``level``
        and ``sample`` are for two keys.
    weights, exposure : table of shape (n_rows, n_cols), or name, optional
        As for ``a1gm.fit`` and ``a1gm.fit_long``. The rest is fitted with those of its
        cells. Means are weighted by ``weights``, and so are deviance and mean absolute
        error; with ``exposure`` means are rates, and a guess is a rate times the
        exposure of the hidden cell. Cells of weight or exposure 0 are not hidden.
    id, columns, exclude : name or list of names, optional
        As for ``a1gm.fit``: which columns of a frame are the table.
    ordered : bool, optional
        Whether columns follow one another, as months do: the last known value of the
        row is a guess, then, and ``autocorrelation`` is known. Default: if their names
        are numbers, dates or times that ascend. ``hide="last"`` implies it.
    negatives : {"raise", "allow"}, default="raise"
        As for ``a1gm.fit``.
    level : float, default=0.95
        Level of the intervals.
    sample : int, optional
        How many rows to judge (columns, of a table with more columns than rows), drawn
        at random and always the same ones; columns that follow one another stay
        together. Default: as many as have 200,000 observed cells, and 2,000,000 cells
        with the missing ones. Of their hidden cells at most 20,000 are compared, in all
        repeats. With ``by``: of each group.

    Returns
    -------
    Assessment
        ``skill``, ``coverage``, ``scores``, and a ``verdict`` in one sentence. For more
        than two modes a ``TensorAssessment``: ``scores`` by set of margins, ``best``,
        ``verdict``.

    Raises
    ------
    DataError
        No cell can be hidden so that all of them stay knowable.
    ParameterError
        An option is out of range, or X is sparse.
    NegativeValuesError, InfiniteValuesError, NotNumericError, WeightsError
        As for ``a1gm.fit``.
    LabelError
        As for ``a1gm.fit_long``.

    Examples
    --------
    >>> import numpy as np, a1gm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(np.outer(rng.gamma(3, 20, 30), rng.gamma(3, 1, 8)))
    >>> found = a1gm.assess(X, random_state=0)
    >>> found.skill > 0.5
    True
    """
    trial = Trial(hide, repeats, random_state, ordered, negatives, level, sample)
    weighting, keys = weights_or_exposure(weights, exposure), names_in(keys)
    check_long(duplicates, weighting, negatives)
    has_modes = getattr(X, "ndim", 2) > 2 or _lists_cells(X)
    if interactions is not None or has_modes or len(keys) > 2:
        unused = {"by": by, "id": id, "columns": columns, "exclude": exclude}
        for name in ("ordered", "negatives", "level", "sample"):
            is_usual = getattr(trial, name) == getattr(Trial, name)
            unused[name] = None if is_usual else name
        for name in [name for name, given in unused.items() if given is not None]:
            raise ParameterError(Option(name), " is for tables of two keys.")
        if keys or value is not None:
            cells = cells_of_long(read_long(X, keys, value, weighting), duplicates)
        else:
            cells = read_cells(X, None, weights, exposure)
        if interactions is None and len(cells.modes) <= MOST_MODES_OF_ALL:
            interactions = "all"
        return assess_margins(cells, interactions, hide, repeats, random_state)
    if not keys and value is None and by is None:
        options = ColumnOptions(id, columns, exclude)
        table = _read_wide(X, options, weighting, negatives)
        return trial.judge(table, table.col_labels)
    if not (id is None and columns is None and exclude is None):
        raise ParameterError(
            "keys= and value= name the columns that are used; leave out id=, columns= "
            "and exclude=."
        )
    if by is None:
        rows = read_long(X, keys, value, weighting, negatives).rows(duplicates)
        return trial.judge(rows, rows.col_labels)
    about, tables = read_groups(X, by, keys, value, weighting, duplicates)
    by_key = dict(zip(about.keys, tables, strict=True))
    return trial.judge_groups(by_key, labels_of(about.columns.values))


# ------------------------------------------------------------------- what is judged
def _lists_cells(X: Any) -> bool:
    """Whether X is (indices, values), as for ``a1gm.fit_tensor``."""
    is_tuple = isinstance(X, tuple) and len(X) in (2, 3)
    return (
        is_tuple and isinstance(X[0], Sequence | np.ndarray) and any(map(np.ndim, X[0]))
    )


def chosen_lines(
    source: Any,
    sample: int | None,
    most_whole: int = 0,
    axis: Literal["row", "column"] = "row",
    *,
    in_one: bool = False,
) -> Ints:
    """Draw the rows or columns of a table that are judged: always the same ones.

    ``sample`` is how many; None for as many as have 200,000 observed cells, and for
    all of a table of at most ``most_whole`` cells. ``in_one``: they follow one another.
    The table is `Rows`, `SparseRows` or files that have been read.
    """
    n_lines = source.n_rows
    n_others = source.n_cols
    if axis == "column":
        n_lines, n_others = n_others, n_lines
    n = n_lines if sample is None else sample
    if sample is None and n_lines * n_others > max(most_whole, MOST_OBSERVED):
        n = MOST_OBSERVED * n_lines // max(source.n_observed, 1)
        n = max(2, min(n, MOST_CELLS // n_others))
    if n >= n_lines:
        return np.arange(n_lines)
    random = np.random.default_rng(0)
    if in_one:
        start = int(random.integers(n_lines - n + 1))
        return np.arange(start, start + n)
    return np.sort(random.choice(n_lines, n, replace=False))


def _read_wide(
    X: Any, columns: ColumnOptions, weighting: Weighting, negatives: Negatives
) -> Rows:
    if is_sparse(X):
        raise ParameterError(
            "X is sparse, and assess hides cells of a whole table. Pass an array with "
            "NaN for missing cells, of some of the rows if it is large."
        )
    rows: Rows = read_input(X, columns=columns)
    cells, (name, given) = rows.cells, weighting
    if given is not None:
        refuse_negatives_with(name, negatives)
        rows = with_weights(rows, name, given)
        assert rows.weights is not None
        cells = np.where(rows.weights.cells > 0.0, cells, np.nan)
    check_values(rows, cells, negatives)  # the fits have no labels
    return rows


@dataclass(frozen=True)
class Trial:
    """How tables are judged: options of ``assess``, checked."""

    hide: Hide = 0.1
    repeats: int = 5
    random_state: Any = None
    ordered: bool | None = None
    negatives: Negatives = "raise"
    level: float = 0.95
    sample: int | None = None

    def __post_init__(self) -> None:
        is_last = isinstance(self.hide, str)
        if not (self.hide == "last" if is_last else is_share(self.hide)):
            raise ParameterError(
                Option("hide"),
                f" must be a share between 0 and 1, or last, got {self.hide!r}.",
            )
        check_level(self.level)
        least: Any = 2 if self.sample is None else self.sample
        for option, n, low in (("repeats", self.repeats, 1), ("sample", least, 2)):
            if not (isinstance(n, int | np.integer) and n >= low):
                raise ParameterError(
                    f"{option} must be a whole number >= {low}, got {n!r}."
                )

    def judge(self, rows: Any, labels: Any) -> Assessment:
        """Judge one table; ``labels`` are those of its columns."""
        random = generator_of(self.random_state)
        return _result([_Scorer(self, rows, labels).run(random)])

    def judge_groups(self, tables: Mapping[Any, Any], labels: Any) -> Assessment:
        """Judge each of many tables, and all of them; an error is that of reading."""
        random = generator_of(self.random_state)
        scorers: dict[Any, _Scorer] = {}
        groups: dict[Any, Assessment] = {}
        failed: dict[Any, A1gmError] = {}
        for key, rows in tables.items():
            try:
                if isinstance(rows, A1gmError):
                    raise rows
                scorers[key] = _Scorer(self, rows, labels).run(random)
                groups[key] = _result([scorers[key]])
            except A1gmError as error:
                failed[key] = error
        if not groups:
            key = next(iter(failed))
            raise DataError(
                f"None of {counted(len(failed), 'group')} can be judged. The first is "
                f"{text_of_label(key)}: ",
                failed[key].all_parts,
            )
        whole = _result([scorers[key] for key in groups])
        return replace(whole, groups=groups, failed=failed)


# ------------------------------------------------------------------- what is hidden
def _some_cells(cells: Floats, share: float, random: np.random.Generator) -> Bools:
    """Choose cells at random, but for those without which others are not knowable."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    n, m = cells.shape
    at = random.permutation(np.flatnonzero(~np.isnan(cells)))
    wanted = max(round(share * len(at)), 1)
    # Older versions of SciPy take no longer numbers here.
    i, j = (k.astype(np.int32) for k in np.divmod(at, m))
    # A tree of positive cells stays, of those that come last in this order.
    positive = np.flatnonzero(cells[i, j] > 0.0)
    late = (len(at) - positive).astype(np.float64)
    edges = i[positive], n + j[positive]
    tree = minimum_spanning_tree(csr_array((late, edges), shape=(n + m, n + m))).tocoo()
    free = _within_components(cells, tree.row, tree.col)
    free[tree.row, tree.col - n] = False
    hidden = np.zeros(n * m, bool)
    hidden[at[free.ravel()[at]][:wanted]] = True
    return hidden.reshape(n, m)


def _last_cells(cells: Floats, random: np.random.Generator) -> Bools:
    """Choose the last observed cells of half of the rows that stay knowable."""
    n, m = cells.shape
    observed = ~np.isnan(cells)
    last = m - 1 - observed[:, ::-1].argmax(axis=1)
    rows = np.flatnonzero((observed.sum(axis=1) > 1) & (random.random(n) < 0.5))
    hidden = np.zeros((n, m), bool)
    hidden[rows, last[rows]] = True
    i, j = np.nonzero((cells > 0.0) & ~hidden)
    return hidden & _within_components(cells, i, n + j)


def _within_components(cells: Floats, heads: AnyArray, tails: AnyArray) -> Bools:
    """Cells with row and column in one component of these edges."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n, m = cells.shape
    graph = csr_array((np.ones(len(heads)), (heads, tails)), shape=(n + m, n + m))
    _, label = connected_components(graph, directed=False)
    same: Bools = label[:n, None] == label[None, n:]
    return same


# ---------------------------------------------------------------------------- scores
class Score(NamedTuple):
    """How far the guesses of a method are from the hidden cells."""

    deviance: float
    mean_absolute_error: float  # each column in units of its standard deviation
    median_relative_error: float  # of the cells that are not 0


class _Scorer:
    """Collects the guesses of every method at the hidden cells of a table."""

    def __init__(self, trial: Trial, rows: Any, labels: Any) -> None:
        self.trial, self.rows, self.labels = trial, rows, labels
        self.outlier = ""
        weights = {}
        is_ordered = trial.ordered
        if is_ordered is None:
            is_ordered = follow_in_order(labels)
        self.is_ordered = bool(is_ordered) or trial.hide == "last"
        lines = [np.arange(rows.n_rows), np.arange(rows.n_cols)]
        if rows.n_rows >= rows.n_cols:
            lines[0] = chosen_lines(rows, trial.sample)
        else:
            in_one = self.is_ordered
            lines[1] = chosen_lines(rows, trial.sample, axis="column", in_one=in_one)
        self.chosen = lines
        cells = rows.take(*lines)
        if (V := getattr(rows, "weights", None)) is not None:
            V = V.take(*lines)
            name = "exposure" if rows.exposed else "weights"
            weights[name] = V if rows.exposed else np.nan_to_num(V)
            cells = np.where(V > 0.0, cells, np.nan)
        observed = ~np.isnan(cells)
        self.places = np.ix_(observed.any(axis=1), observed.any(axis=0))
        self.cells = cells[self.places]
        weights = {name: V[self.places] for name, V in weights.items()}
        self.options: dict[str, Any] = {"negatives": trial.negatives, **weights}
        ones = np.broadcast_to(1.0, self.cells.shape)
        self.size = weights.get("exposure", ones)  # a cell is this times its rate
        self.weights = weights.get("weights", ones)
        both = self.size * self.weights  # one of them is 1
        least = np.finfo(np.float64).tiny  # where no cell is known
        self.shares = both / np.nanmax(both, initial=least)  # of a cell in a mean
        self.hidden: list[Ints] = []  # positions in the flat table
        self.guesses: list[Floats] = []
        self.covered = [(np.zeros(0), np.zeros(0, bool))]  # fills, and whether
        self.neighbours = np.zeros(6)  # sums for the autocorrelation
        self.no_intervals = ""

    @np.errstate(all="ignore")  # what leaves float64 is infinite, or unknown
    def run(self, random: np.random.Generator) -> _Scorer:
        """Hide cells again and again; raise if none can be hidden."""
        for _ in range(self.trial.repeats if self.cells.size else 0):
            if isinstance(self.trial.hide, str):
                hidden = _last_cells(self.cells, random)
            else:
                hidden = _some_cells(self.cells, float(self.trial.hide), random)
            self._add(hidden, random)
        if not self.hidden:
            raise DataError(
                "No cell can be hidden: without any of them another cell could not be "
                "known.",
                advice="Assess a table with more observed cells.",
            )
        fitted = fit(self.cells, **self.options, on_undetermined="ignore")
        with suppress(A1gmError):  # too few cells for a dispersion
            if (cell := fitted.uncertainty().outlier) is not None:
                i = int(self.chosen[0][self.places[0][cell.row, 0]])
                j = int(self.chosen[1][self.places[1][0, cell.column]])
                row = Lookup("row", self.rows.row_labels, self.rows.n_rows).names[i]
                column = Lookup("column", self.labels, self.rows.n_cols).names[j]
                place = f"row {plain_text(row)}, column {plain_text(column)}"
                self.outlier = cell.describe(place)
        if self.is_ordered:
            self.neighbours = self._neighbours(np.asarray(fitted.reconstruct()))
        return self

    def _add(self, hidden: Bools, random: np.random.Generator) -> None:
        """Fit the table without its hidden cells, and guess these, or some of many."""
        at, most = np.flatnonzero(hidden), max(MOST_COMPARED // self.trial.repeats, 1)
        if not len(at):
            return
        if len(at) > most:
            at = np.sort(random.choice(at, most, replace=False))
        i, j = np.divmod(at, self.cells.shape[1])
        left = np.where(hidden, np.nan, self.cells)
        table, place, options = left, (i, j), self.options
        if left.shape[0] < left.shape[1]:  # errors take the cube of the columns
            table, place = left.T, (j, i)
            options = {k: v if isinstance(v, str) else v.T for k, v in options.items()}
        try:
            found = fit(table, **options, on_undetermined="ignore")
        except DataError as error:
            if self.trial.negatives == "raise":
                raise
            raise DataError(
                "With some of its cells hidden, this table cannot be fitted: its "
                "negative cells outweigh the others in some part.",
                advice="Assess the rows and columns without negative cells.",
            ) from error
        rates, size = left / self.size, self.size[i, j]
        by_column = _mean(rates, self.shares, axis=0)[j]
        guesses = [  # in the order of METHODS
            found.reconstruct()[place],
            by_column * size,
            _mean(rates, self.shares, axis=1)[i] * size,
            _mean(rates, self.shares) * size,
            _last_values(rates, i, j, by_column) * size,
        ]
        self.hidden.append(at)
        self.guesses.append(np.array(guesses))
        try:
            bounds = found.uncertainty()._bounds(table, *place, self.trial.level)
        except DataError as error:
            self.no_intervals = str(error)
            return
        x = self.cells[i, j]
        rounding = ROUNDING * np.abs(x)  # an exact fit has intervals of no width
        is_inside = (bounds[0] <= x + rounding) & (x - rounding <= bounds[1])
        self.covered.append((guesses[0], is_inside))

    def _neighbours(self, fitted: Floats) -> Floats:
        """Sums over residuals of neighbouring cells in rows, and counts."""
        off = self.cells - fitted
        off[np.abs(off) <= ROUNDING * np.abs(self.cells)] = 0.0
        off *= np.sqrt(self.weights / fitted)  # Pearson's residuals
        known = np.isfinite(off)
        both = known[:, :-1] & known[:, 1:]
        one, other = off[:, :-1][both], off[:, 1:][both]
        products = one @ other, one @ one, other @ other
        counts = len(one), known.sum(), known.any(axis=1).sum()
        return np.array([*products, *counts], np.float64)

    def compared(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The hidden cells, their weights, the guesses, and the units of errors."""
        at, guesses = np.concatenate(self.hidden), np.concatenate(self.guesses, axis=1)
        # Squares of cells near 1e300 or 1e-300 would leave float64.
        most = np.nanmax(np.abs(self.cells), axis=0)
        spread = most * np.nanstd(self.cells / np.where(most > 0.0, most, 1.0), axis=0)
        sizes = [spread, most, np.full_like(most, most.max() or 1.0)]
        unit = np.select([size > 0.0 for size in sizes], sizes)[at % len(most)]
        return self.cells.ravel()[at], self.weights.ravel()[at], guesses, unit

    @property
    def n_cells(self) -> int:
        """Different cells that were hidden."""
        return len(np.unique(np.concatenate(self.hidden)))


@np.errstate(all="ignore")  # as above
def _result(scorers: Sequence[_Scorer]) -> Assessment:
    """Compare the guesses with the hidden cells of some tables."""
    x, v, guesses, unit = (
        np.concatenate(arrays, axis=-1)
        for arrays in zip(*(one.compared() for one in scorers), strict=True)
    )
    off_by = misses(x, guesses, EXACT)
    is_ordered = all(one.is_ordered for one in scorers)
    methods = METHODS if is_ordered else METHODS[:-1]
    scores = {
        name: Score(
            2.0 * float(v @ divergence_of_cells(np.maximum(x, 0.0), guess)),
            float(np.average(miss / unit, weights=v / v.max())),
            _median(miss[x != 0.0] / np.abs(x[x != 0.0])),
        )
        for name, guess, miss in zip(methods, guesses, off_by, strict=False)
    }
    n_cells, v = sum(one.n_cells for one in scorers), v / v.max()
    rival = min(methods[1:], key=lambda name: scores[name].mean_absolute_error)
    off = dict(zip(METHODS, off_by / unit, strict=True))
    skill, skill_error = _skill(off["rank 1"], off["column means"], v, n_cells)
    lead, lead_error = _skill(off["rank 1"], off[rival], v, n_cells)
    pairs = [pair for one in scorers for pair in one.covered]
    fills, covered = map(np.concatenate, zip(*pairs, strict=True))
    covered = covered[np.argsort(fills, kind="stable")]
    quarters = np.array_split(covered, 4) if len(covered) >= 4 * FEW else []
    n_rows = sum(len(one.chosen[0]) for one in scorers)
    n_cols = sum(len(one.chosen[1]) for one in scorers)
    return Assessment(
        skill=skill,
        skill_error=skill_error,
        coverage=float(covered.mean()) if len(covered) else math.nan,
        coverage_by_size=tuple(float(quarter.mean()) for quarter in quarters),
        scores=scores,
        n_hidden=len(x),
        level=scorers[0].trial.level,
        rival=rival,
        lead=lead,
        may_be_chance=n_cells < FEW or abs(lead) <= 2.0 * lead_error,
        autocorrelation=_correlation(*np.sum([s.neighbours for s in scorers], axis=0)),
        no_intervals=next((s.no_intervals for s in scorers if s.no_intervals), ""),
        n_rows=(n_rows, sum(one.rows.n_rows for one in scorers)),
        n_cols=(n_cols, sum(one.rows.n_cols for one in scorers)),
        outlier=scorers[0].outlier if len(scorers) == 1 else "",
    )


def _correlation(
    product: float, one: float, other: float, n: float, n_cells: float, n_rows: float
) -> float:
    """Correlation of neighbouring residuals from sums, NaN for fewer than 100 pairs.

    The residuals of a row add up to about 0, which alone correlates each two of m by
    -1/(m - 1): that is taken out.
    """
    if n < FEWEST_PAIRS or not 0.0 < one * other < math.inf:
        return math.nan
    found = product / math.sqrt(one * other)
    return float(found + (1.0 - found) * n_rows / n_cells)


def _skill(own: Floats, other: Floats, v: Floats, n_cells: int) -> tuple[float, float]:
    """1 - mean error / that of the others, and its standard error, roughly.

    The errors of ``n_cells`` different cells, some of them more than once, with weights
    v are taken to be independent.
    """
    skill = skill_of(own, other, v)
    if not other.any():
        return skill, 0.0
    off = v * (own - (1.0 - skill) * other) / float(v @ other)
    return skill, math.sqrt(float(off @ off) * len(v) / n_cells)


def _median(errors: Floats) -> float:
    return float(np.median(errors)) if len(errors) else float("nan")


def _mean(rates: Floats, shares: Floats, axis: int | None = None) -> Any:
    """Means of the rates that are known, by their shares."""
    known = ~np.isnan(rates)
    total = np.where(known, rates * shares, 0.0).sum(axis)
    return total / np.where(known, shares, 0.0).sum(axis)


def _last_values(rates: Floats, i: Ints, j: Ints, by_column: Floats) -> Floats:
    """The value of the row in the last column before; else the column's mean."""
    at = np.where(np.isnan(rates), -1, np.arange(rates.shape[1]))
    last = np.maximum.accumulate(at, axis=1)[i, j]
    return np.where(last >= 0, rates[i, last], by_column)


@dataclass(frozen=True, repr=False)
class Assessment(Scored):
    """Rank 1 against simpler guesses at hidden cells. Made by ``a1gm.assess``.

    Attributes
    ----------
    skill : float
        1 - mean absolute error of rank 1 / that of the column means, each column in
        units of its own standard deviation: above 0 rank 1 is better.
    skill_error : float
        Its standard error, roughly.
    coverage : float
        Share of the hidden cells within their intervals; NaN without intervals.
    coverage_by_size : tuple of float
        That of each quarter of these cells, from the smallest fills to the largest;
        empty for fewer than 40 cells.
    scores : dict
        ``Score(deviance, mean_absolute_error)`` of each method.
    n_hidden : int
        Hidden cells, in all repeats.
    level : float
        Level of the intervals.
    rival : str
        The best of the other methods.
    lead : float
        The skill against the rival.
    may_be_chance : bool
        Whether other hidden cells may well have shown the opposite: the lead is within
        two standard errors of 0, or fewer than 10 different cells were hidden.
    no_intervals : str
        Reason why some fits had no intervals; else empty.
    n_rows, n_cols : tuple of int
        Rows and columns that were judged, and those of the table.
    autocorrelation : float
        Correlation of the residuals of neighbouring cells in a row; NaN where columns
        are not ordered, and for fewer than 100 such pairs.
    outlier : str
        The cell that carries more than a fifth of Pearson's statistic, and what leaving
        it out does, in words; empty if there is none.
    groups : dict
        With ``by``: the assessment of each group.
    failed : dict
        With ``by``: the errors of groups that could not be judged.
    """

    _of = "method"
    skill: float
    skill_error: float
    coverage: float
    coverage_by_size: tuple[float, ...]
    scores: dict[str, Score]
    n_hidden: int
    level: float
    rival: str
    lead: float
    may_be_chance: bool
    no_intervals: str = ""
    n_rows: tuple[int, int] = (0, 0)
    n_cols: tuple[int, int] = (0, 0)
    autocorrelation: float = math.nan
    outlier: str = ""
    groups: dict[Any, Assessment] = field(default_factory=dict)
    failed: dict[Any, A1gmError] = field(default_factory=dict)

    @property
    def part(self) -> str:
        """Which part of the table was judged; empty if it was all of it."""
        for noun, (n, n_all) in (("rows", self.n_rows), ("columns", self.n_cols)):
            if n < n_all:
                return f"{n:,} of {n_all:,} {noun}, drawn at random"
        return ""

    @property
    def verdict(self) -> str:
        """One sentence."""
        return f"{self.headline}: {self.comparison}."

    @property
    def headline(self) -> str:
        """Whether rank 1 is better than the best of the other methods."""
        rival = f"the {self.rival}"
        found = (
            f"Rank 1 is {'better than' if self.lead > 0.0 else 'as good as'} {rival}"
        )
        if self.lead < 0.0:
            verb = "are" if rival.endswith("s") else "is"
            found = f"{rival.capitalize()} {verb} better than rank 1"
        return f"{found}, which may be chance" if self.may_be_chance else found

    @property
    def comparison(self) -> str:
        """The errors of both."""
        own, other = (self.scores[k][1] for k in ("rank 1", self.rival))
        cells = counted(self.n_hidden, "hidden cell")
        if own == 0.0:
            return f"{'both fill' if other == 0.0 else 'it fills'} {cells} exactly"
        return (
            f"on {cells} the mean error of rank 1 is {own:.3g} standard deviations of "
            f"a column, that of the {self.rival} {other:.3g}"
        )

    def to_frame(self, backend: str = "pandas") -> Any:
        """The scores as a frame of pandas, polars or pyarrow; with ``by`` the groups.

        The groups have a line each, with their verdicts, and "all" comes last.
        """
        if self.groups:
            names, found = [*self.groups, "all"], [*self.groups.values(), self]
            fields = "headline", "skill", "lead", "coverage", "n_hidden"
            lines = {k: np.array([getattr(one, k) for one in found]) for k in fields}
            return labelled_frame("group", names, lines, backend)
        return super().to_frame(backend)

    def _grids(self) -> list[list[list[str]]]:
        methods = [["method", "deviance", "mean absolute error", "median error"]]
        deviances = aligned(
            np.array([score.deviance for score in self.scores.values()])
        )
        for (name, score), text in zip(self.scores.items(), deviances, strict=True):
            _, error, relative = score
            methods.append([name, text, f"{error:.3g}", f"{relative:.1%}"])
        if not self.groups:
            return [methods]
        some = [(plain_text(key), one) for key, one in self.groups.items()]
        return [
            methods,
            [["group", "hidden cells", "lead", "coverage", "verdict"]]
            + [
                [
                    name,
                    f"{one.n_hidden:,}",
                    f"{one.lead:.2f}",
                    "" if math.isnan(one.coverage) else f"{one.coverage:.0%}",
                    one.headline,
                ]
                for name, one in [*some[:MOST_GROUPS], ("all", self)]
            ],
        ]

    @property
    def _notes(self) -> list[str]:
        outlier = [f"Outlier: {self.outlier}."] if self.outlier else []
        return [*self.notes, *outlier]

    @property
    def notes(self) -> list[str]:
        """Sentences about the intervals, the residuals, and what was judged."""
        notes = [f"No intervals: {self.no_intervals}"]
        if not np.isnan(self.coverage):
            share = f"{self.coverage:.0%} of the {100 * self.level:.6g}%"
            notes = [f"{share} intervals contained the cell."]
        if self.coverage_by_size:
            parts = ", ".join(f"{share:.0%}" for share in self.coverage_by_size)
            notes.append(f"By size of the fill, from the smallest quarter: {parts}.")
        if not math.isnan(self.autocorrelation):
            is_large = self.autocorrelation > CORRELATED
            notes.append(
                "Residuals of neighbouring cells in a row correlate by "
                f"{self.autocorrelation:.2f}"
                f"{'; robust standard errors allow for that' if is_large else ''}."
            )
        if len(self.groups) > MOST_GROUPS:
            n = len(self.groups)
            notes.append(f"Listed: the first {MOST_GROUPS} of {n:,} groups.")
        if self.failed:
            key, error = next(iter(self.failed.items()))
            n_all = len(self.failed) + len(self.groups)
            notes.append(
                f"Not judged: {len(self.failed):,} of {n_all:,} groups. The first is "
                f"{text_of_label(key)}: {error.render(with_advice=False)}"
            )
        return [*notes, f"Judged: {self.part}."] if self.part else notes
