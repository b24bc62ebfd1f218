"""``a1gm.fit_tensor``: read, list the cells, solve."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from a1gm._api.fit import DEFAULT_MAX_ITER, FitOptions
from a1gm._base.blas import single_threaded_blas
from a1gm._base.types import OnUndetermined
from a1gm._base.warn import warn_user
from a1gm._base.words import MOST_NAMED, named
from a1gm._fit.frames import Long
from a1gm._fit.messages import (
    text_of_convergence,
    text_of_unknown_cells,
    text_of_zeros,
    warn_undetermined,
)
from a1gm._fit.place import EMPTY, UNBOUNDED, UNDETERMINED
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
    weights, exposure : array that broadcasts to T, or to the values of listed cells
        As in ``a1gm.fit``. Cells that are listed with NaN have an exposure, too.
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
            known = Known(problem, levels, rank)
            solved = solve(known.stay, known.rank, options)
            solved = replace(solved, rank=rank)
    how: Any = {"tol": options.certificate, "on_undetermined": options.on_undetermined}
    fit = TensorFit(cells, levels, solved, known, long, **how)
    if not is_quiet:
        _warn_about(fit)
    return fit


def _warn_about(fit: TensorFit) -> None:
    """Warn of a poor certificate, empty levels, and cells without a value."""
    how, parts = fit._on_undetermined, list[Text]()
    if text := text_of_convergence(fit):
        warn_user(ConvergenceWarning(*parts_of(text)))
    if fit._is_whole:
        return
    empty = []
    for finder, index in zip(fit._finders, fit._cells.index, strict=True):
        used = np.unique(index)
        some = np.arange(min(finder.n, len(used) + MOST_NAMED))
        names = [finder.names[k] for k in np.setdiff1d(some, used)]
        empty += [named(finder.side, names, finder.n - len(used))] if names else []
    if empty and how != "ignore":
        empty_text = (
            f"Nothing is observed in {' and '.join(empty)}: the factors there are NaN "
            "and the cells stay missing."
        )
        if how == "raise":
            parts.append(empty_text)
        else:
            warn_user(empty_text, EmptyLineWarning)
    if n_zeros := fit._known.n_approached:
        parts.append(text_of_zeros(n_zeros))
    if math.prod(fit.shape) > MOST_CELLS:
        parts.append("Some missing cells may have no value; fit.fate(index) tells.")
    elif how != "ignore":
        codes = fit.undetermined.code
        n_each = [int((codes == kind).sum()) for kind in (UNBOUNDED, UNDETERMINED)]
        if any(n_each):
            at = int((codes < EMPTY).argmax())
            first = fit._cells.name_of(fit.undetermined[at][:-1])
            n_unbounded, n_open = n_each
            parts.append(text_of_unknown_cells(n_unbounded, n_open, first, how=how))
        if fit._known.is_cut:
            parts.append(
                "To decide each of them would take too long: some of these may be 0, "
                "or unbounded, and some observed zeros may only be approached."
            )
    if parts:
        warn_undetermined(separated(parts), how)
