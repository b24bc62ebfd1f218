"""``a1gm.fit_tensor``: read, list the cells, solve."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from a1gm._api.fit import DEFAULT_MAX_ITER, DEFAULT_TOL, FitOptions
from a1gm._base.blas import single_threaded_blas
from a1gm._base.types import OnUndetermined
from a1gm._base.warn import warn_user
from a1gm._fit.frames import Long
from a1gm._fit.messages import (
    text_of_convergence,
    text_of_unknown_cells,
    text_of_zeros,
    warn_undetermined,
)
from a1gm._fit.place import UNBOUNDED
from a1gm.exceptions import (
    ConvergenceWarning,
    EmptyLineWarning,
    Text,
    parts_of,
    separated,
)
from a1gm.tensor.known import MOST_EXACT, Known, whole_rank
from a1gm.tensor.problem import Levels
from a1gm.tensor.read import Cells, margins_of, read_cells
from a1gm.tensor.result import MOST_CELLS, TensorFit
from a1gm.tensor.solve import fit_array, solve


def fit_tensor(
    T: Any,
    interactions: Any = None,
    *,
    weights: Any = None,
    exposure: Any = None,
    names: Any = None,
    tol: float | None = None,
    max_iter: int = DEFAULT_MAX_ITER,
    on_undetermined: OnUndetermined = "warn",
    n_threads: int | None = None,
) -> TensorFit:
    """Find the best explanation of a non-negative table with any number of modes.

    A cell is the product of one factor per mode, or per set of modes that act
    together: the optimum of the Kullback-Leibler divergence on the observed cells.

    Parameters
    ----------
    T : array of any number of dimensions, or (indices, values)
        Non-negative numbers; NaN is a missing cell. Masked arrays and memory maps are
        arrays. (indices, values) or (indices, values, shape) list the observed cells,
        with an array of positions per mode, as ``sparse.COO`` does with
        ``fill_value=np.nan``.
    interactions : sequence of tuples of modes, optional
        Sets of modes that act together, by name or number: ``[("site", "year")]``.
        Every mode that is in none has a factor of its own; by default all have.
    weights, exposure : array that broadcasts to T, or one number per listed cell
        As in ``a1gm.fit``.
    names : sequence, optional
        Names of the modes; their numbers by default.
    tol, max_iter, on_undetermined, n_threads
        As in ``a1gm.fit``.

    Returns
    -------
    TensorFit

    Examples
    --------
    >>> import numpy as np, a1gm
    >>> T = np.multiply.outer([1.0, 2.0], np.outer([1.0, 3.0], [2.0, 5.0]))
    >>> T[1, 1, 1] = np.nan
    >>> fit = a1gm.fit_tensor(T)
    >>> round(float(fit.impute(T)[1, 1, 1]), 6)
    30.0
    """
    tol = DEFAULT_TOL if tol is None else tol
    options = FitOptions("raise", on_undetermined, tol, max_iter, n_threads)
    cells = read_cells(T, names, weights, exposure, n_threads)
    return fit_cells(cells, interactions, options)


def fit_cells(
    cells: Cells,
    interactions: Any,
    options: FitOptions,
    long: Long | None = None,
    *,
    is_quiet: bool = False,
) -> TensorFit:
    """Fit cells that were read; warn unless ``is_quiet``."""
    groups = margins_of(interactions, cells.modes)
    levels = tuple(Levels.every(group, cells.shape) for group in groups)
    solved = known = None
    with single_threaded_blas:
        if cells.positions is None:
            solved = fit_array(cells, levels, options)
        if solved is None:
            levels = tuple(own.where(cells.index) for own in levels)
            problem = cells.problem(levels)
            is_large = problem.starts[-1] > MOST_EXACT and len(groups) > 1
            rank = whole_rank(cells, groups) if is_large else None
            known = Known(problem, math.prod(cells.shape), rank)
            solved = solve(known.stay, known.rank, options)
            solved = replace(solved, rank=rank)
    how: Any = {"tol": options.tol, "on_undetermined": options.on_undetermined}
    fit = TensorFit(cells, levels, solved, known, long, **how)
    if not is_quiet:
        _warn_about(fit)
    return fit


def _warn_about(fit: TensorFit) -> None:
    """Warn of a poor certificate, empty levels, and cells without a value."""
    how = fit._on_undetermined
    if text := text_of_convergence(fit):
        warn_user(ConvergenceWarning(*parts_of(text)))
    empty = [
        f"{math.prod(own.lengths) - own.size:,} of mode {fit.modes[own.margin[0]]!r}"
        for own in fit._levels
        if len(own.margin) == 1 and own.codes is not None
    ]
    if empty and how != "ignore":
        warn_user(
            f"Nothing is observed in some levels ({', '.join(empty)}): their factors "
            "are NaN and their cells stay missing.",
            EmptyLineWarning,
        )
    if fit._is_whole or how == "ignore":
        return
    parts: list[Text] = []
    if n_zeros := fit._known.n_approached:
        parts.append(text_of_zeros(n_zeros))
    if math.prod(fit.shape) > MOST_CELLS:
        parts.append("Some missing cells may have no value; fit.fate(index) tells.")
    elif fit.n_undetermined:
        is_unbounded = fit.undetermined.code == UNBOUNDED
        counts = is_unbounded.sum(), (~is_unbounded).sum()
        first = fit._cells.name_of(fit.undetermined[0][:-1])
        parts.append(text_of_unknown_cells(*counts, first, how=how))
        if fit._known.is_cut:
            parts.append(
                "To decide each of them would take too long: some of these may be 0, "
                "or unbounded."
            )
    if parts:
        warn_undetermined(separated(parts), how)
