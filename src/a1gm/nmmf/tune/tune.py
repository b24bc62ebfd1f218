"""``tune_nmmf``: choose the weights of the side tables by what they predict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from a1gm._solve.components import find_components
from a1gm._solve.core import solve_core
from a1gm._solve.expand import Factors, expand_factors
from a1gm._api.fit import DEFAULT_MAX_ITER, check_options
from a1gm._kernel import kernel, threads_for
from a1gm._solve.reduce import reduce_statistics
from a1gm._observe.statistics import WideStatistics
from a1gm._base.types import Floats
from a1gm._base.words import counted
from a1gm.exceptions import ParameterError
from a1gm.nmmf.fit import check_weight, lay_out_nmmf
from a1gm.nmmf.tune.hidden import hide_cells
from a1gm.nmmf.tune.lines import KeptLines, first_columns, join_lines, lines_of
from a1gm.nmmf.layout import Layout, SharedTable
from a1gm.nmmf.observe import observe_row_set

__all__ = ["NMMFTuning", "tune_nmmf"]

DEFAULT_GRID = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
DEFAULT_SHARE = 0.1
MAX_SWEEPS = 60  # more are needed by few tables, which are then solved one by one
ENOUGH_CELLS = 25_000  # hidden cells that tell weights apart as well as more would


@dataclass(frozen=True, slots=True, eq=False)
class NMMFTuning:
    """Scores of a grid of weights; made by ``a1gm.tune_nmmf``.

    Attributes
    ----------
    alphas, betas : ndarray
        The weights tried.
    scores : ndarray of shape (len(alphas), len(betas))
        Divergence of the hidden cells of X; less is better.
    alone : float
        The same score for X without the side tables.
    n_cells : int
        Hidden cells that were scored.
    """

    alphas: Floats
    betas: Floats
    scores: Floats
    alone: float
    n_cells: int

    @property
    def best(self) -> tuple[float, float]:
        """The pair (alpha, beta) of the least score."""
        a, b = np.unravel_index(int(np.argmin(self.scores)), self.scores.shape)
        return float(self.alphas[a]), float(self.betas[b])

    @property
    def best_score(self) -> float:
        """The least score."""
        return float(self.scores.min())

    @property
    def improvement(self) -> float:
        """Share of the divergence of X alone that the best weights save."""
        return 1.0 - self.best_score / self.alone if self.alone > 0.0 else 0.0

    def __repr__(self) -> str:
        alpha, beta = self.best
        n, m = self.scores.shape
        return (
            f"NMMFTuning({n} x {m} weights; best alpha={alpha:g}, beta={beta:g}: "
            f"{self.best_score:.6g} against {self.alone:.6g} for X alone, on "
            f"{counted(self.n_cells, 'hidden cell')})"
        )


def tune_nmmf(
    X: Any,
    Y: Any = None,
    Z: Any = None,
    *,
    alphas: Iterable[float] | None = None,
    betas: Iterable[float] | None = None,
    share: float | None = None,
    random_state: int | np.random.Generator | None = 0,
    tol: float = 1e-5,
    max_iter: int = DEFAULT_MAX_ITER,
    n_threads: int | None = None,
) -> NMMFTuning:
    """Score a grid of weights by how well they predict hidden cells of X.

    Parameters
    ----------
    X, Y, Z : table
        As in ``fit_nmmf``; at least one of Y and Z.
    alphas, betas : iterable of float, optional
        Weights of Y and of Z to try, by default 0 and nine from 0.01 to 100. Those of
        a table that is not given are (0,).
    share : float, optional
        Share of the cells of X to hide, within a cell or so; by default a tenth, or
        less in a large table, where 25,000 hidden cells are enough.
    random_state : int, Generator or None, default=0
        Decides which cells are hidden.
    tol : float, default=1e-5
        The certificate that each fit must reach: far below the noise of the scores.
    max_iter, n_threads
        As in ``fit_nmmf``.

    Returns
    -------
    NMMFTuning
        The scores, and the best weights in ``best``.

    Raises
    ------
    ParameterError
        An option is out of range, or neither Y nor Z is given.
    DataError
        No hidden cell can be predicted from the rest of X.

    Notes
    -----
    The rows are dealt to groups (in turn, or in runs when X is large), and some of the
    groups, drawn at random, hide neighbouring columns from a random place on, so that
    each cell has the same chance to be hidden. This adds few patterns: the tables are
    read once, and all pairs of weights are solved side by side from the same sums.
    Cells that X alone could not predict (their row or column has nothing left but
    zeros, or is cut off) are hidden but not scored, so that all scores are of the same
    cells. If a large X changes along its rows, the scores depend on the runs that were
    drawn: shuffle the rows, or try other values of ``random_state``.

    Examples
    --------
    >>> import numpy as np, a1gm
    >>> rng = np.random.default_rng(0)
    >>> w, h, b = rng.random(40), rng.random(6), rng.random(5)
    >>> X, Z = rng.poisson(3 * np.outer(w, h)), rng.poisson(50 * np.outer(w, b))
    >>> tuning = a1gm.tune_nmmf(X, Z=Z)
    >>> tuning.best_score < tuning.alone
    True
    """
    check_options(tol=tol, max_iter=max_iter, n_threads=n_threads, negatives="raise")
    if share is not None and not _is_share(share):
        msg = f"share must be a number between 0 and 1, got {share!r}."
        raise ParameterError(msg)
    layout = lay_out_nmmf(X, Y, Z, alpha=1.0, beta=1.0)
    tables = {table.key: table for table in layout.tables}
    if len(tables) == 1:
        msg = "tune_nmmf needs Y or Z: without side tables there is nothing to weigh."
        raise ParameterError(msg)
    if share is None:
        x = tables["X"].source
        share = min(DEFAULT_SHARE, ENOUGH_CELLS / (x.n_rows * x.n_cols))
    grid = _Grid(layout, tables, share, _generator(random_state), n_threads)
    a = _weights(alphas, "alphas", given="Y" in tables)
    b = _weights(betas, "betas", given="Z" in tables)
    points = [(float(alpha), float(beta)) for alpha in a for beta in b]
    found = grid.scores([*points, (0.0, 0.0)], tol, max_iter)
    scores = np.array([found[point] for point in points]).reshape(len(a), len(b))
    alone = found[0.0, 0.0]
    return NMMFTuning(a, b, scores, alone, grid.held_out.n_cells)


def _is_share(value: Any) -> bool:
    return isinstance(value, Real) and 0.0 < float(value) < 1.0


def _generator(random_state: Any) -> np.random.Generator:
    if not (
        random_state is None
        or isinstance(random_state, np.random.Generator)
        or (isinstance(random_state, Integral) and int(random_state) >= 0)
    ):
        msg = (
            "random_state must be None, an integer of at least 0 or a NumPy Generator, "
            f"got {random_state!r}."
        )
        raise ParameterError(msg)
    return np.random.default_rng(random_state)  # type: ignore[arg-type]


def _weights(asked: Iterable[float] | None, name: str, *, given: bool) -> Floats:
    if not given:
        return np.zeros(1)
    weights = list(DEFAULT_GRID if asked is None else asked)
    if not weights:
        msg = f"{name} is empty: give at least one weight to try."
        raise ParameterError(msg)
    for weight in weights:
        check_weight(weight, f"Each of {name}", ParameterError)
    return np.array(weights, np.float64)


class _Grid:
    """The sums of the tables, for any pair of weights."""

    def __init__(
        self,
        layout: Layout,
        tables: dict[Any, SharedTable],
        share: float,
        rng: np.random.Generator,
        n_threads: int | None,
    ) -> None:
        rows = [layout.tables[t] for t in layout.row_sets[0].tables]
        self.held_out = hide_cells(rows, share=share, rng=rng, n_threads=n_threads)
        self._n_threads = n_threads
        kept = self.held_out.kept
        self._n_lines = len(kept.bits)  # of X and Z; those of Y follow
        self._y_col_sums = np.zeros(len(kept.col_sums))
        self._lines = kept
        if "Y" in tables:
            y = _lines_of_y(tables["Y"], n_threads).widened(len(kept.col_sums))
            self._y_col_sums = y.col_sums
            self._lines = join_lines([kept, y])

    def scores(
        self, points: list[tuple[float, float]], tol: float, max_iter: int
    ) -> dict[tuple[float, float], float]:
        """Divergence of the hidden cells for many pairs of weights."""
        points = list(dict.fromkeys(points))
        alphas, betas = np.array(points).T
        col_sums = self._col_sums(alphas, betas)
        nothing = np.zeros(len(points))
        h, gap = kernel.scale_together(
            self._lines.bits,
            self._lines.sums,
            self._n_lines,
            np.stack([nothing + 1.0, betas, alphas, nothing]),
            col_sums,
            col_sums / col_sums.max(axis=1, keepdims=True),
            tol,
            min(MAX_SWEEPS, max_iter),
            threads_for(self._lines.bits.size * len(points), self._n_threads),
        )
        done = gap <= tol
        row_part = {beta: self.held_out.row_part(beta) for beta in {*betas.tolist()}}
        parts = np.array([row_part[beta] for beta in betas.tolist()])
        scores = np.empty(len(points))
        with np.errstate(divide="ignore"):  # lines that only the side tables steer
            scales = self.held_out.scales(h[done])
        scores[done] = self.held_out.scores(betas[done], scales, h[done], parts[done])
        for k in np.flatnonzero(~done):
            factors = self._solve(*points[k], tol, max_iter)
            one = slice(k, k + 1)
            scores[one] = self.held_out.scores(
                betas[one],
                factors.line_scale[None, self.held_out.lines],
                factors.col_factor[None],
                parts[one],
            )
        return dict(zip(points, scores.tolist(), strict=True))

    def _col_sums(self, alphas: Floats, betas: Floats) -> Floats:
        """Weighted column sums, a row for each pair of weights."""
        sums = self.held_out.kept.col_sums + alphas[:, None] * self._y_col_sums
        sums[:, self.held_out.n_cols :] *= betas[:, None]
        return sums

    def _solve(self, alpha: float, beta: float, tol: float, max_iter: int) -> Factors:
        """Solve for one pair of weights, however slow the plain sweeps are."""
        n_cols = len(self._y_col_sums) if beta else self.held_out.n_cols
        lines = slice(None) if alpha else slice(self._n_lines)
        bits = first_columns(self._lines.bits[lines], n_cols)
        positive = first_columns(self._lines.positive[lines], n_cols)
        row_sums = self._lines.sums[lines] @ np.array([1.0, beta])
        row_sums[self._n_lines :] *= alpha
        col_sums = self._col_sums(np.array([alpha]), np.array([beta]))[0, :n_cols]
        has_zero = not np.array_equal(bits, positive)
        statistics = WideStatistics(
            bits, positive if has_zero else None, row_sums, col_sums
        )
        reduced = reduce_statistics(statistics, find_components(statistics), force=True)
        core = solve_core(reduced, tol=tol, max_iter=max_iter)
        return expand_factors(
            reduced, core, row_sums, lambda: statistics.has_observed()[1]
        )


def _lines_of_y(y: SharedTable, n_threads: int | None) -> KeptLines:
    seen = observe_row_set([y], n_threads=n_threads, separate=False)
    lines = lines_of(seen.statistics, seen.row_sums, y.source.n_cols)
    return replace(
        lines,
        sums=np.ldexp(lines.sums, seen.exponent),
        col_sums=np.ldexp(lines.col_sums, seen.exponent),
    )
