"""``tune_nmmf``: choose the weights of the side tables by what they predict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from a1gm._api.options import DEFAULT_MAX_ITER, check_options
from a1gm._base.types import Floats
from a1gm._base.words import counted
from a1gm._fit.choices import generator_of, is_share
from a1gm._observe.one_pass import observe_side_by_side
from a1gm.exceptions import ParameterError
from a1gm.nmmf.fit import check_weight, lay_out_nmmf
from a1gm.nmmf.tune.grid import Grid
from a1gm.nmmf.tune.hidden import check_share, hide_cells

DEFAULT_GRID = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
DEFAULT_SHARE = 0.1
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
    Some rows, drawn at random, are dealt to a few groups, and each group hides
    neighbouring columns from a random place on, so that each cell has the same chance
    to be hidden. This adds few patterns of holes: the tables are read once, and all
    pairs of weights are solved side by side from the same sums. Cells that X alone
    could not predict (their row or column has nothing left but zeros, or is cut off)
    are hidden but not scored, so that all scores are of the same cells.

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
    if share is not None and not is_share(share):
        msg = f"share must be a number between 0 and 1, got {share!r}."
        raise ParameterError(msg)
    layout = lay_out_nmmf(X, Y, Z, alpha=1.0, beta=1.0)
    tables = {table.key: table for table in layout.tables}
    if len(tables) == 1:
        msg = "tune_nmmf needs Y or Z: without side tables there is nothing to weigh."
        raise ParameterError(msg)
    a = _weights(alphas, "alphas", given="Y" in tables)
    b = _weights(betas, "betas", given="Z" in tables)
    x = tables["X"]
    if share is None:
        share = min(DEFAULT_SHARE, ENOUGH_CELLS / (x.n_rows * x.n_cols))
    check_share(share, x.n_cols)
    kept, hidden = hide_cells(x.source, share, generator_of(random_state))
    if hidden.has_bad_cells:  # the whole table counts them, and names the first
        observe_side_by_side([x], separate=False, n_threads=n_threads)
    rest = tuple(replace(t, source=kept) if t is x else t for t in layout.tables)
    grid = Grid(
        replace(layout, tables=rest),
        hidden,
        tol=tol,
        max_iter=max_iter,
        n_threads=n_threads,
    )
    # The last pair is X alone.
    found = grid.scores(np.array([*((p, q) for p in a for q in b), (0.0, 0.0)]))
    scores = found[:-1].reshape(len(a), len(b))
    return NMMFTuning(a, b, scores, float(found[-1]), grid.hidden.n)


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
