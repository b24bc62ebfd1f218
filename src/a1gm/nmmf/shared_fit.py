"""What every joint fit has: how it was solved, and what is known of each table."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from a1gm._base.types import Floats, OnUndetermined, SmallInts, Solver
from a1gm._base.warn import warn_user
from a1gm._base.words import MOST_NAMED, counted, listed
from a1gm._fit.fates import UNBOUNDED, UNDETERMINED, UndeterminedCells, fates_of
from a1gm._fit.messages import (
    tell_undetermined,
    text_of_errors,
    text_of_unknown_cells,
    text_of_zeros,
)
from a1gm._fit.new_rows import Placed
from a1gm._fit.rows import HeldRows
from a1gm._fit.show import html_table, one_line, solver_in_words
from a1gm._fit.sure.arguments import Dispersion
from a1gm._observe.observation import Observation
from a1gm._rows import Rows
from a1gm._rows.labels import text_of_label
from a1gm._solve.cell_error import CELLS_RIGHT, cell_error
from a1gm.exceptions import EmptyLineWarning, Text, parts_of, separated
from a1gm.nmmf.layout import Layout, SharedTable
from a1gm.nmmf.new_rows import RowsOfTable, place_rows
from a1gm.nmmf.passive import Shares, joint_components
from a1gm.nmmf.solve import Solution
from a1gm.nmmf.uncertainty import TableUncertainty, uncertainty_of_tables
from a1gm.nmmf.view import TableView, table_fates


class SharedFit:
    """Factors shared by several tables; base of `NMMFFit` and `RelationsFit`."""

    def __init__(
        self,
        layout: Layout,
        seen: list[Observation],
        solution: Solution,
        shares: Shares,
        *,
        tol: float,
        on_undetermined: OnUndetermined,
    ) -> None:
        self._layout = layout
        self._seen = seen
        self._solution = solution
        self._shares = shares
        self.tol = tol
        self._on_undetermined = on_undetermined

    # ------------------------------------------------------------ how it was solved
    @property
    def solver(self) -> Solver:
        """How it was solved: "closed form", "scaling" or "newton"."""
        return self._solution.raw.solver

    @property
    def n_iter(self) -> int:
        """Iterations used; 0 for the closed form."""
        return self._solution.raw.n_iter

    @property
    def n_blocks(self) -> int:
        """Blocks with data of their own; scales between blocks are not determined."""
        return self._solution.raw.n_blocks

    @cached_property
    def certificate(self) -> float:
        """Largest relative mismatch between the weighted margins of fit and data."""
        return self._solution.certificate()

    @property
    def cell_error(self) -> float:
        """Bound on the relative error of any finite fitted cell, rounding included."""
        return cell_error(self._solution.raw.step)

    @property
    def converged(self) -> bool:
        """Whether the certificate is within ``tol`` and the cell error within 1e-8."""
        return self.certificate <= self.tol and self.cell_error <= CELLS_RIGHT

    @property
    def attained(self) -> bool:
        """Whether a minimiser exists; False when observed zeros had to be given up."""
        return not any(view.n_given_up for view in self._views.values())

    @property
    def _is_one_block(self) -> bool:
        """Whether all tables are one block and have no zeros."""
        return self.n_blocks == 1 and self._solution.solved.components is None

    @cached_property
    def _views(self) -> dict[Hashable, TableView]:
        """Each table with its factors, turned to the row side."""
        solution, shares = self._solution, self._shares
        rows = HeldRows(solution.raw.line_factor, None, solution.joint.n_patterns)
        whole = fates_of(solution.solved, rows)
        return {
            table.key: TableView(
                table,
                table_fates(table, solution, shares, whole),
                shares.row_factor[table.row_set],
                shares.col_factor[table.col_set],
                self._is_one_block,
                self._on_undetermined,
            )
            for table in self._layout.tables
        }

    # ------------------------------------------------------------------ by table
    @cached_property
    def divergences(self) -> dict[Any, float]:
        """Divergence of each table on its observed cells, without its weight.

        Computed when first asked for, from the tables where they lie: an array that was
        changed since the fit gives the divergence of the changed one. NaN for a table
        of weight 0 with observed cells whose value is not determined.
        """
        return {key: view.divergence for key, view in self._views.items()}

    @property
    def divergence(self) -> float:
        """The cost that was minimised: the divergences times their weights, summed.

        Like ``divergences``, computed from the tables as they are when first asked for.
        """
        return sum(
            table.weight * self.divergences[table.key]
            for table in self._layout.tables
            if table.weight  # a weight of 0 must silence an infinite divergence
        )

    @cached_property
    def undetermined(self) -> dict[Any, UndeterminedCells]:
        """Missing cells of each table that the data do not determine."""
        return {key: view.undetermined for key, view in self._views.items()}

    @property
    def n_undetermined(self) -> int:
        """Missing cells of all tables that cannot be known."""
        return sum(view.n_undetermined for view in self._views.values())

    def uncertainty(
        self, dispersion: Dispersion = "pearson", *, robust: bool = False
    ) -> dict[Any, TableUncertainty]:
        """How sure the fit is of each table: errors of cells, totals and factors.

        Parameters
        ----------
        dispersion : {"pearson", "deviance", "poisson"} or float, default="pearson"
            Variance of a cell of weight 1 over its mean, as in
            ``RankOneFit.uncertainty``; estimated from all tables together.
        robust : bool, default=False
            Take what the columns say from the scatter of the rows, as it is.

        Returns
        -------
        dict of TableUncertainty
            By the key of the table; those of weight 0 have none.

        Examples
        --------
        >>> import numpy as np, a1gm
        >>> X = np.array([[20.0, 41.0, 57.0], [12.0, 18.0, np.nan]])
        >>> Y = np.array([[9.0, 22.0, 31.0]])
        >>> fit = a1gm.fit_nmmf(X, Y)
        >>> round(fit.uncertainty("poisson")["X"].standard_error(1, 2), 2)
        6.76
        """
        return uncertainty_of_tables(self._layout, dispersion, robust=robust)

    # ------------------------------------------------------------------ by entity
    def _factors_by_entity(self) -> dict[Any, Floats]:
        """Factor of the entities of each set."""
        shares, layout = self._shares, self._layout
        rows = {s.name: shares.row_factor[r] for r, s in enumerate(layout.row_sets)}
        cols = {s.name: shares.col_factor[c] for c, s in enumerate(layout.col_sets)}
        return rows | cols

    @cached_property
    def blocks(self) -> dict[Any, SmallInts]:
        """Block of each entity; -1 where the factor is 0 or NaN."""
        shares, found = self._shares, {}
        for r, entities in enumerate(self._layout.row_sets):
            component, pattern = shares.pattern_component[r], self._seen[r].line_of_row
            found[entities.name] = component if pattern is None else component[pattern]
        for c, entities in enumerate(self._layout.col_sets):
            found[entities.name] = shares.col_component[c]
        block_of = _block_of_component(self._solution)
        return {
            name: np.where(np.nan_to_num(factor) > 0.0, block_of[found[name]], -1)
            for name, factor in self._factors_by_entity().items()
        }

    # ------------------------------------------------------------------ appearance
    def summary(self) -> dict[str, str]:
        """The fit in words, line by line."""
        sizes = [
            f"{t.name} {t.shape_text}"
            + ("" if t.weight == 1.0 else f" (weight {t.weight:g})")
            for t in self._layout.tables
        ]
        lines = {
            "tables": ", ".join(sizes),
            "solver": solver_in_words(self.solver, self.n_iter),
            "certificate": f"{self.certificate:.1e}",
            "blocks": str(self.n_blocks),
        }
        unknown = self.n_undetermined
        if unknown:
            lines["cannot be known"] = counted(unknown, "missing cell")
        return lines

    def __repr__(self) -> str:
        return one_line(type(self).__name__, self.summary(), "; ")

    def __getstate__(self) -> dict[str, Any]:
        """Leave the data behind: only their divergences travel."""
        state = {**self.__dict__, "divergences": self.divergences}
        state.pop("_views", None)
        layout = self._layout.without_data()
        joint = replace(self._solution.joint, layout=layout)
        state["_layout"] = layout
        state["_solution"] = replace(self._solution, joint=joint)
        return state

    def _repr_html_(self) -> str:
        return html_table(type(self).__name__, self.summary())


def _block_of_component(solution: Solution) -> SmallInts:
    """Block of each component of the joint table; -1 for one without data, and last."""
    components, raw = joint_components(solution), solution.raw
    block_of = np.full(components.n + 1, -1, np.int32)
    block_of[components.line[raw.line_block >= 0]] = raw.line_block[raw.line_block >= 0]
    block_of[components.col[raw.col_block >= 0]] = raw.col_block[raw.col_block >= 0]
    return block_of


def fitted_table(fit: SharedFit, name: str) -> SharedTable | None:
    """Return a table as it was laid out for the fit; None when it was not given."""
    return next((t for t in fit._layout.tables if t.key == name), None)


def place_new_rows(fit: SharedFit, x: Rows, z: Rows | None) -> Placed:
    """Place rows of X, with their rows of Z if there are any, by the fit's columns."""
    shares, given = fit._shares, []
    for name, source in (("X", x), ("Z", z)):
        fitted = fitted_table(fit, name)
        if source is not None and fitted is not None:
            c = fitted.col_set
            table = replace(fitted, source=source)
            given.append(
                RowsOfTable(table, shares.col_factor[c], shares.col_component[c])
            )
    return place_rows(given, joint_components(fit._solution).n)


def _describe_unknown(view: TableView) -> Text:
    """Say what cannot be known of one table; empty when there is nothing to say."""
    table, counts = view.table, view.counts
    parts: list[Text] = []
    if view.n_given_up:
        parts.append(text_of_zeros(view.n_given_up, of=table.name))
    _, n_apart, first_apart = view.observed_unknown
    if n_apart:
        parts.append(
            f"For {counted(n_apart, 'observed cell')} of {table.name} there is no "
            "fitted value (NaN in fit.reconstruct()): a table of weight 0 does not "
            "relate the scales of its entities, and no other table does. The first "
            f"is {table.where(*first_apart)}."
        )
    n_unbounded, n_open = int(counts[UNBOUNDED]), int(counts[UNDETERMINED])
    if n_unbounded or n_open:
        place = view.fates.first_unknown()
        first = None if place is None else table.where(*place)
        told: Any = {"of": table.name, "how": view.on_undetermined}
        parts.append(text_of_unknown_cells(n_unbounded, n_open, first, **told))
    return separated(parts)


def warn_of_unknown(fit: SharedFit, convergence: type[Warning]) -> None:
    """Warn of a poor certificate, empty entities and cells that cannot be known."""
    is_sure = fit._solution.gap <= fit.tol and fit.cell_error <= CELLS_RIGHT
    if not is_sure and not fit.converged:
        text = text_of_errors(fit.n_iter, fit.certificate, fit.tol, fit.cell_error)
        warn_user(convergence(*parts_of(text)))
    _warn_of_empty_entities(fit)
    if fit._is_one_block:
        return
    texts = [_describe_unknown(view) for view in fit._views.values()]
    text = separated(texts)
    if text:
        tell_undetermined(text, fit._on_undetermined)


def _warn_of_empty_entities(fit: SharedFit) -> None:
    texts = []
    for name, factor in fit._factors_by_entity().items():
        empty = np.flatnonzero(np.isnan(factor)).tolist()
        if empty:
            labels = fit._layout.labels_of(name)
            names = [
                str(k) if labels is None else text_of_label(labels[k]) for k in empty
            ]
            texts.append(f"{name}[{listed(names, MOST_NAMED)}]")
    if texts:
        text = (
            f"Nothing determines {' and '.join(texts)}: these factors are NaN, and the "
            "cells that need them stay missing."
        )
        warn_user(text, EmptyLineWarning)
