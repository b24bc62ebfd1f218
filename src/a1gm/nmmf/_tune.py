"""``tune_nmmf``: choose the weights of the side tables by what they predict."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from a1gm._bits import pack_bits
from a1gm._blocks import find_components
from a1gm._core import solve_core
from a1gm._expand import Factors, expand_factors
from a1gm._fit import DEFAULT_MAX_ITER, check_options, solve_plain_table
from a1gm._peel import reduce_statistics
from a1gm._statistics import TableStatistics
from a1gm._types import Floats, Words
from a1gm.exceptions import DataError, ParameterError
from a1gm.nmmf._fit import check_weight, lay_out_nmmf
from a1gm.nmmf._held_out import HeldOut, hide_cells
from a1gm.nmmf._layout import Layout, SharedTable
from a1gm.nmmf._observe import observe_row_set
from a1gm.nmmf._together import scale_together

__all__ = ["NMMFTuning", "tune_nmmf"]

DEFAULT_GRID = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
DEFAULT_SHARE = 0.1
CELLS_AT_ONCE = 1 << 22  # (pairs of weights) x (patterns) solved together
ENOUGH_CELLS = 50_000  # hidden cells that tell weights apart as well as more would


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
            f"{self.n_cells} hidden cells)"
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
    tol: float = 1e-8,
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
        Share of the cells of X to hide; by default a tenth, or less in a large table,
        where 50,000 hidden cells are enough.
    random_state : int, Generator or None, default=0
        Decides which cells are hidden.
    tol : float, default=1e-8
        The certificate that each fit must reach.
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
    The rows are dealt to groups (in turn, or in runs when X is large), and 5 groups
    drawn at random hide neighbouring columns from a random place on, so that each cell
    has the same chance to be hidden. This keeps the patterns few: the tables are read
    once, and each pair of weights only rescales the sums. Cells that X alone could not
    predict (their row or column has nothing left but zeros, or is cut off) are hidden
    but not scored, so that all scores are of the same cells.

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
    grid.prepare(b)
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
        self.held_out = hide_cells(
            rows,
            share=share,
            rng=rng,
            n_threads=n_threads,
        )
        if self.held_out.n_cells == 0:
            msg = (
                "No hidden cell of X can be predicted from the others. Give X more "
                "observed cells, or a larger share."
            )
            raise DataError(msg)
        self._add_lines_of_y(tables.get("Y"), n_threads)
        self._keys: dict[tuple[bool, bool], Words] = {}
        self._counts = np.ones(len(self.sums), np.int64)
        self._row_parts: dict[float, float] = {}

    def _add_lines_of_y(self, y: SharedTable | None, n_threads: int | None) -> None:
        held: HeldOut = self.held_out
        self.observed, self.sums = held.observed, held.sums
        if y is None:
            return
        seen = observe_row_set(
            [y], n_threads=n_threads, separate=False, keep_table=True
        )
        assert isinstance(seen.statistics, TableStatistics)
        padding = ((0, 0), (0, held.observed.shape[1] - y.source.n_cols))
        lines = np.pad(seen.statistics.observed, padding)
        sums = np.ldexp(np.pad(seen.statistics.sums, padding), seen.exponent)
        self.observed = np.concatenate([self.observed, lines])
        self.sums = np.concatenate([self.sums, sums])

    def prepare(self, betas: Floats) -> None:
        """Compute what depends on the rows, once for each beta."""
        every = sorted({0.0, *(float(beta) for beta in betas)})
        self._row_parts = {beta: self.held_out.row_part(beta) for beta in every}

    def scores(
        self, points: list[tuple[float, float]], tol: float, max_iter: int
    ) -> dict[tuple[float, float], float]:
        """Divergence of the hidden cells for many pairs of weights."""
        found: dict[tuple[float, float], float] = {}
        at_once = max(1, CELLS_AT_ONCE // len(self.sums))
        for steers in itertools.product((False, True), repeat=2):
            chosen = [p for p in points if (p[0] > 0.0, p[1] > 0.0) == steers]
            for start in range(0, len(chosen), at_once):
                batch = chosen[start : start + at_once]
                found |= self._score_together(batch, tol, max_iter)
        return found

    def _score_together(
        self, points: list[tuple[float, float]], tol: float, max_iter: int
    ) -> dict[tuple[float, float], float]:
        """Scores of pairs with zeros in the same places: one pattern, many margins."""
        n_lines, n_cols = len(self.held_out.observed), self.held_out.n_cols
        alpha, beta = np.array(points).T[:, :, None]
        rows = slice(None) if alpha[0] else slice(n_lines)
        cols = slice(None) if beta[0] else slice(n_cols)
        by_x = self.sums[:, :n_cols].sum(axis=1)
        row_sums = by_x + beta * self.sums[:, n_cols:].sum(axis=1)
        row_sums[:, n_lines:] = alpha * by_x[n_lines:]
        col_sums = self.sums[:n_lines].sum(axis=0) + alpha * self.sums[n_lines:].sum(0)
        col_sums[:, n_cols:] *= beta
        mask = self.observed[rows, cols].astype(np.float64)
        scale, h, done = scale_together(mask, row_sums[:, rows], col_sums[:, cols], tol)
        found: dict[tuple[float, float], float] = {}
        if done.any():
            chosen = list(itertools.compress(points, done))
            found |= self._score_solutions(chosen, scale[done], h[done])
        for point in itertools.compress(points, ~done):
            factors = self._solve(*point, tol, max_iter)
            found |= self._score_solutions(
                [point], factors.line_scale[None], factors.col_factor[None]
            )
        return found

    def _score_solutions(
        self, points: list[tuple[float, float]], scales: Floats, factors: Floats
    ) -> dict[tuple[float, float], float]:
        betas = np.array([beta for _, beta in points])
        row_parts = np.array([self._row_parts[beta] for _, beta in points])
        scores = self.held_out.scores(betas, scales, factors, row_parts)
        return dict(zip(points, scores.tolist(), strict=True))

    def _solve(self, alpha: float, beta: float, tol: float, max_iter: int) -> Factors:
        n_lines, n_cols = len(self.held_out.observed), self.held_out.n_cols
        rows = slice(None) if alpha else slice(n_lines)
        cols = slice(None) if beta else slice(n_cols)
        key = (bool(alpha), bool(beta))
        if key not in self._keys:
            self._keys[key] = pack_bits(self.observed[rows, cols])
        sums = self.sums[rows, cols].copy()
        sums[n_lines:] *= alpha
        sums[:, n_cols:] *= beta
        counts = np.ones(len(sums), np.int64)
        return _solve_table(
            TableStatistics(self._keys[key], counts, sums), tol, max_iter
        )


def _solve_table(table: TableStatistics, tol: float, max_iter: int) -> Factors:
    plain = solve_plain_table(table, tol=tol, max_iter=max_iter)
    if plain is not None:
        return plain
    reduced = reduce_statistics(table, find_components(table))
    core = solve_core(reduced, tol=tol, max_iter=max_iter)
    return expand_factors(
        reduced, core, table.row_sums, lambda: table.has_observed()[1]
    )
