"""Fit a table of which only margins and a mask in a file are left."""

from __future__ import annotations

from typing import Any

import numpy as np

from a1gm._solve.column_graph import ColumnGraph
from a1gm._solve.expand import Factors
from a1gm._solve.mask_graph import find_graph
from a1gm._solve.mask_solver import MaskSolution, solve_mask
from a1gm._sources.names import Names
from a1gm._observe.row_log import MaskLog
from a1gm._observe.statistics import weighted_counts
from a1gm._result.stream import MaskStream
from a1gm._result.streamed import StreamedFit
from a1gm._base.types import Bools, Floats, OnUndetermined
from a1gm._base.warn import warn_user
from a1gm._base.words import counted
from a1gm.exceptions import ConvergenceWarning, NothingObservedError

__all__ = ["fit_masks"]


def fit_masks(
    log: MaskLog,
    col_sums: Floats,
    observed: Bools,
    *,
    tol: float,
    max_iter: int,
    on_undetermined: OnUndetermined,
    col_labels: Any,
    names: Names | None = None,
) -> StreamedFit:
    """Find the factors by sweeps over the mask.

    Parameters
    ----------
    log : MaskLog
        Sums and masks of the rows.
    col_sums : ndarray
        Sums of the columns times 2**-log.exponent.
    observed : ndarray of bool
        Columns with an observed cell.
    names : Names, optional
        What warnings call the rows and columns.
    """
    if not observed.any():
        msg = (
            "Nothing is observed: every cell of the table is missing. At least one "
            "cell must hold a number."
        )
        raise NothingObservedError(msg)
    graph = find_graph(log, observed, col_sums > 0.0)
    solution = solve_mask(log, graph, col_sums, tol=tol, max_iter=max_iter)
    factors = _factors(solution, graph, col_sums > 0.0)
    fit = StreamedFit(
        stream=MaskStream(log, graph),
        row_factor=np.zeros(0),
        col_factor=factors.col_factor,
        factors=factors,
        statistics=None,
        line_of_row=None,
        components=None,
        source=None,
        exponent=log.exponent,
        has_negatives=False,
        tol=tol,
        row_labels=None,
        col_labels=col_labels,
        on_undetermined=on_undetermined,
        has_rows=True,
    )
    if solution.gap > tol:
        warn_user(
            f"The fit stopped after {counted(solution.n_iter, 'sweep')} over the mask "
            f"with a certificate of {solution.gap:.2g}, above tol={tol:g}. Raise "
            "max_iter (or tol).",
            ConvergenceWarning,
        )
    fit.say_what_is_unknown(names)
    return fit


def _factors(solution: MaskSolution, graph: ColumnGraph, positive: Bools) -> Factors:
    """Put each component on its scale: its share of the observed total."""
    h = np.where(graph.label >= 0, 0.0, np.nan)
    block = np.full(len(h), -1, np.int32)
    labels = np.unique(graph.label[positive])
    if len(labels):
        label = graph.label[positive]
        sums = weighted_counts(label, solution.col_factor[positive], graph.n)
        share = solution.totals / solution.totals.sum()
        h[positive] = solution.col_factor[positive] / sums[label] * share[label]
        block[positive] = np.searchsorted(labels, label)
    else:  # a table of zeros: the rows carry the zero
        known = graph.label >= 0
        h[known] = 1.0 / int(known.sum())
    none, nowhere = np.zeros(0), np.zeros(0, np.int32)
    return Factors(
        line_factor=none,
        line_scale=none,
        col_factor=h,
        line_block=nowhere,
        col_block=block,
        n_blocks=len(labels),
        solver=solution.solver,
        n_iter=solution.n_iter,
        gap=solution.gap,
        all_inside=graph.is_single,
    )
