"""``a1gm.assess``: whether rank 1 is right for a table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from a1gm._api.fit import check_signs, fit
from a1gm._base.types import AnyArray, Bools, Floats, Ints, Negatives
from a1gm._base.words import counted
from a1gm._fit.frames import labelled_frame
from a1gm._fit.messages import html_grid, text_grid
from a1gm._fit.residuals import divergence_of_cells
from a1gm._fit.sure.arguments import check_level, generator_of, is_share
from a1gm._rows.columns import ColumnOptions
from a1gm._rows.read import is_sparse, read_input
from a1gm._rows.rows import Rows, check_values
from a1gm._rows.weights import weights_or_exposure, with_weights
from a1gm.exceptions import DataError, ParameterError

Hide: TypeAlias = float | Literal["last"]
METHODS = "rank 1", "column means", "row means", "overall mean", "last value"

ROUNDING = 1e-9  # of a cell: so near a bound it is inside
EXACT = 1e-12  # of a cell: so near a guess it is right
FEW = 10  # fewer hidden cells prove nothing
MOST_COMPARED = 20_000  # hidden cells, in all repeats
MOST_OBSERVED, MOST_CELLS = 200_000, 10_000_000  # of rows that are judged


def assess(
    X: Any,
    hide: Hide = 0.1,
    repeats: int = 5,
    random_state: Any = None,
    *,
    weights: Any = None,
    exposure: Any = None,
    id: Any = None,
    columns: Any = None,
    exclude: Any = None,
    ordered: bool = False,
    negatives: Negatives = "raise",
    level: float = 0.95,
    sample: int | None = None,
) -> Assessment:
    """Hide known cells, fit the rest, and compare the fills with simpler guesses.

    Parameters
    ----------
    X : table of shape (n_rows, n_cols)
        As for ``a1gm.fit``; not sparse.
    hide : float or "last", default=0.1
        The share of the observed cells to hide; or the last observed cell of rows, in
        half of them each time, as a forecaster would.
    repeats : int, default=5
        How often, each time with other cells.
    random_state : int, numpy Generator, or None
        Where the random numbers come from.
    weights, exposure : table of shape (n_rows, n_cols), optional
        As for ``a1gm.fit``. The rest is fitted with those of its cells. Means are
        weighted by ``weights``, and so are deviance and mean absolute error; with
        ``exposure`` means are rates, and a guess is a rate times the exposure of the
        hidden cell. Cells of weight or exposure 0 are not hidden.
    id, columns, exclude : name or list of names, optional
        As for ``a1gm.fit``: which columns of a frame are the table.
    ordered : bool, default=False
        Whether columns follow one another, as months do: the last known value of the
        row is a guess, then. ``hide="last"`` implies it.
    negatives : {"raise", "allow"}, default="raise"
        As for ``a1gm.fit``.
    level : float, default=0.95
        Level of the intervals.
    sample : int, optional
        How many rows to judge, drawn at random and always the same ones. Default: as
        many as have 200,000 observed cells. Of their hidden cells at most 20,000 are
        compared, in all repeats.

    Returns
    -------
    Assessment
        ``skill``, ``coverage``, ``scores``, and a ``verdict`` in one sentence.

    Raises
    ------
    DataError
        No cell can be hidden so that all of them stay knowable.
    ParameterError
        An option is out of range, or X is sparse.
    NegativeValuesError, InfiniteValuesError, NotNumericError, WeightsError
        As for ``a1gm.fit``.

    Examples
    --------
    >>> import numpy as np, a1gm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(np.outer(rng.gamma(3, 20, 30), rng.gamma(3, 1, 8)))
    >>> found = a1gm.assess(X, random_state=0)
    >>> found.skill > 0.5
    True
    """
    if is_sparse(X):
        raise ParameterError(
            "X is sparse, and assess hides cells of a whole table. Pass an array with "
            "NaN for missing cells, of some of the rows if it is large."
        )
    is_last = isinstance(hide, str)
    if not (hide == "last" if is_last else is_share(hide)):
        raise ParameterError(
            f'hide must be a share between 0 and 1, or "last", got {hide!r}.'
        )
    check_level(level)
    least: Any = 2 if sample is None else sample
    for option, n, low in (("repeats", repeats, 1), ("sample", least, 2)):
        if not (isinstance(n, int | np.integer) and n >= low):
            raise ParameterError(
                f"{option} must be a whole number >= {low}, got {n!r}."
            )
    random = generator_of(random_state)
    rows: Rows = read_input(X, columns=ColumnOptions(id, columns, exclude))
    options: dict[str, Any] = {"negatives": negatives}
    cells = rows.cells
    name, given = weights_or_exposure(weights, exposure)
    if given is not None:
        check_signs(negatives, name)
        V: Any = with_weights(rows, name, given).weights
        options[name] = V.cells
        cells = np.where(options[name] > 0.0, cells, np.nan)
    check_values(rows, cells, negatives)  # the fits below have no labels
    observed = ~np.isnan(cells)
    judged = sample_rows(cells.shape, int(observed.sum()), sample)
    cells, observed = cells[judged], observed[judged]
    some = np.ix_(observed.any(axis=1), observed.any(axis=0))
    cells = cells[some]
    if given is not None:
        options[name] = options[name][judged][some]
    scorer = _Scorer(cells, level, options, max(MOST_COMPARED // repeats, 1))
    with np.errstate(all="ignore"):  # what leaves float64 is infinite, or unknown
        for _ in range(repeats if cells.size else 0):
            if is_last:
                scorer.add(_last_cells(cells, random), random)
            else:
                scorer.add(_some_cells(cells, float(hide), random), random)
        n_rows = len(judged), rows.n_rows
        return scorer.result(n_rows, is_ordered=bool(ordered) or is_last)


def sample_rows(shape: tuple[int, int], n_observed: int, n: int | None) -> Ints:
    """Draw ``n`` rows, or as many as have 200,000 observed cells: always the same."""
    n_rows, n_cols = shape
    if n is None:
        n = MOST_OBSERVED * n_rows // max(n_observed, 1)
        n = max(2, min(n, MOST_CELLS // n_cols))
    if n >= n_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, n, replace=False))


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
    edges = len(at) - positive, (i[positive], n + j[positive])
    tree = minimum_spanning_tree(csr_array(edges, shape=(n + m, n + m))).tocoo()
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
    """Collects the guesses of every method at the hidden cells."""

    def __init__(
        self, cells: Floats, level: float, options: dict[str, Any], most: int
    ) -> None:
        self.cells, self.level, self.options, self.most = cells, level, options, most
        ones = np.broadcast_to(1.0, cells.shape)
        self.size = options.get("exposure", ones)  # a cell is this times its rate
        self.weights = options.get("weights", ones)
        both = self.size * self.weights  # one of them is 1
        least = np.finfo(np.float64).tiny  # where no cell is known
        self.shares = both / np.nanmax(both, initial=least)  # of a cell in a mean
        self.hidden: list[Ints] = []  # positions in the flat table
        self.guesses: list[Floats] = []
        self.covered = [(np.zeros(0), np.zeros(0, bool))]  # fills, and whether
        self.no_intervals = ""

    def add(self, hidden: Bools, random: np.random.Generator) -> None:
        """Fit the table without its hidden cells, and guess these, or some of many."""
        at = np.flatnonzero(hidden)
        if not len(at):
            return
        if len(at) > self.most:
            at = np.sort(random.choice(at, self.most, replace=False))
        i, j = np.divmod(at, self.cells.shape[1])
        left = np.where(hidden, np.nan, self.cells)
        table, place, options = left, (i, j), self.options
        if left.shape[0] < left.shape[1]:  # errors take the cube of the columns
            table, place = left.T, (j, i)
            options = {k: v if isinstance(v, str) else v.T for k, v in options.items()}
        try:
            found = fit(table, **options, on_undetermined="ignore")
        except DataError as error:
            if self.options["negatives"] == "raise":
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
            lower, upper = found.uncertainty()._bounds(table, *place, self.level)
        except DataError as error:
            self.no_intervals = str(error)
            return
        x = self.cells[i, j]
        rounding = ROUNDING * np.abs(x)  # an exact fit has intervals of no width
        is_inside = (lower <= x + rounding) & (x - rounding <= upper)
        self.covered.append((guesses[0], is_inside))

    def result(self, n_rows: tuple[int, int], *, is_ordered: bool) -> Assessment:
        """Compare the guesses with the hidden cells."""
        if not self.hidden:
            raise DataError(
                "No cell can be hidden: without any of them another cell could not be "
                "known.",
                advice="Assess a table with more observed cells.",
            )
        at, guesses = np.concatenate(self.hidden), np.concatenate(self.guesses, axis=1)
        x, v = self.cells.ravel()[at], self.weights.ravel()[at]
        # Squares of cells near 1e300 or 1e-300 would leave float64.
        most = np.nanmax(np.abs(self.cells), axis=0)
        spread = most * np.nanstd(self.cells / np.where(most > 0.0, most, 1.0), axis=0)
        sizes = [spread, most, np.full_like(most, most.max() or 1.0)]
        unit = np.select([size > 0.0 for size in sizes], sizes)[at % len(most)]
        misses = np.abs(x - guesses)
        misses[misses <= EXACT * np.abs(x)] = 0.0
        methods = METHODS if is_ordered else METHODS[:-1]
        scores = {
            name: Score(
                2.0 * float(v @ divergence_of_cells(np.maximum(x, 0.0), guess)),
                float(np.average(miss / unit, weights=v / v.max())),
                _median(miss[x != 0.0] / np.abs(x[x != 0.0])),
            )
            for name, guess, miss in zip(methods, guesses, misses, strict=False)
        }
        n_cells, v = len(np.unique(at)), v / v.max()
        rival = min(methods[1:], key=lambda name: scores[name].mean_absolute_error)
        off = dict(zip(METHODS, misses / unit, strict=True))
        skill, skill_error = _skill(off["rank 1"], off["column means"], v, n_cells)
        lead, lead_error = _skill(off["rank 1"], off[rival], v, n_cells)
        fills, covered = map(np.concatenate, zip(*self.covered, strict=True))
        covered = covered[np.argsort(fills, kind="stable")]
        quarters = np.array_split(covered, 4) if len(covered) >= 4 * FEW else []
        return Assessment(
            skill=skill,
            skill_error=skill_error,
            coverage=float(covered.mean()) if len(covered) else math.nan,
            coverage_by_size=tuple(float(quarter.mean()) for quarter in quarters),
            scores=scores,
            n_hidden=len(x),
            level=self.level,
            rival=rival,
            lead=lead,
            may_be_chance=n_cells < FEW or abs(lead) <= 2.0 * lead_error,
            no_intervals=self.no_intervals,
            n_rows=n_rows,
        )


def _skill(own: Floats, other: Floats, v: Floats, n_cells: int) -> tuple[float, float]:
    """1 - mean error / that of the others, and its standard error, roughly.

    The errors of ``n_cells`` different cells, some of them more than once, with weights
    v are taken to be independent.
    """
    if not other.any():
        return (-math.inf if own.any() else 0.0), 0.0
    ratio = float(v @ own) / float(v @ other)
    off = v * (own - ratio * other) / float(v @ other)
    return 1.0 - ratio, math.sqrt(float(off @ off) * len(v) / n_cells)


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
class Assessment:
    """Rank 1 against simpler guesses at the hidden cells of a table."""

    #: 1 - mean absolute error of rank 1 / that of the column means, each column in
    #: units of its own standard deviation: above 0 rank 1 is better.
    skill: float
    skill_error: float  #: Its standard error, roughly.
    coverage: float  #: Share of the hidden cells within their intervals, or NaN.
    #: That of each quarter of these cells, from the smallest fills to the largest;
    #: empty for fewer than 40 cells.
    coverage_by_size: tuple[float, ...]
    scores: dict[str, Score]  #: ``Score(deviance, mean_absolute_error)`` by method.
    n_hidden: int  #: Hidden cells, in all repeats.
    level: float  #: Level of the intervals.
    rival: str  #: The best of the other methods.
    lead: float  #: The skill against the rival.
    #: Whether other hidden cells may well have shown the opposite: the lead is within
    #: two standard errors of 0, or fewer than 10 different cells were hidden.
    may_be_chance: bool
    no_intervals: str = ""  #: Reason why some fits had no intervals.
    n_rows: tuple[int, int] = (0, 0)  #: Rows that were judged, and rows of the table.

    @property
    def part(self) -> str:
        """Which part of the table was judged; empty if it was all of it."""
        n, n_all = self.n_rows
        return f"{n:,} of {n_all:,} rows, drawn at random" if n < n_all else ""

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
        """The scores as a frame of pandas, polars or pyarrow."""
        columns = {
            name: np.array([getattr(score, name) for score in self.scores.values()])
            for name in Score._fields
        }
        return labelled_frame("method", list(self.scores), columns, backend)

    def _grid(self) -> list[list[str]]:
        return [["method", "deviance", "mean absolute error", "median error"]] + [
            [name, f"{deviance:.6g}", f"{error:.3g}", f"{relative:.1%}"]
            for name, (deviance, error, relative) in self.scores.items()
        ]

    def __repr__(self) -> str:
        return "\n".join([self.verdict, text_grid(self._grid()), *self.notes])

    @property
    def notes(self) -> list[str]:
        """Sentences about the intervals, and about the rows that were judged."""
        notes = [f"No intervals: {self.no_intervals}"]
        if not np.isnan(self.coverage):
            share = f"{self.coverage:.0%} of the {100 * self.level:.6g}%"
            notes = [f"{share} intervals contained the cell."]
        if self.coverage_by_size:
            parts = ", ".join(f"{share:.0%}" for share in self.coverage_by_size)
            notes.append(f"By size of the fill, from the smallest quarter: {parts}.")
        return [*notes, f"Judged: {self.part}."] if self.part else notes

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.verdict)}</p>{html_grid(self._grid(), self.notes)}"
