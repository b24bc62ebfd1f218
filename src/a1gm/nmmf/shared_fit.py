"""What every joint fit has: how it was solved, and what is known of each table."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from a1gm._api.fit import warn_of_gap
from a1gm._base.types import Floats, OnUndetermined, SmallInts, Solver
from a1gm._base.warn import warn_user
from a1gm._base.words import counted, listed
from a1gm._observe.one_pass import Observation
from a1gm._result.fates import UNBOUNDED, UNDETERMINED, UndeterminedCells
from a1gm._result.fit import RankOneFit
from a1gm._result.messages import MOST_LINES, text_of_unknown_cells, text_of_zeros
from a1gm._result.show import html_table, one_line, solver_in_words
from a1gm._sources.labels import text_of_label
from a1gm.exceptions import (
    EmptyLineWarning,
    UndeterminedError,
    UndeterminedWarning,
)
from a1gm.nmmf.layout import Layout, SharedTable
from a1gm.nmmf.passive import Shares, joint_components
from a1gm.nmmf.solve import Solution
from a1gm.nmmf.view import SharedTableFit, view_table

__all__ = ["SharedFit"]


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

    @property
    def certificate(self) -> float:
        """Largest relative mismatch between the weighted margins of fit and data."""
        return self._joint.certificate

    @property
    def is_exact(self) -> bool:
        """Whether the certificate is within the tolerance asked for."""
        return self.certificate <= self.tol

    @property
    def attained(self) -> bool:
        """Whether a minimiser exists; False when observed zeros had to be given up."""
        steering = [t for t in self._layout.tables if not t.is_passive]
        return not any(self._views[t.key]._n_between for t in steering)

    @cached_property
    def _joint(self) -> RankOneFit:
        """The fit of the joint table, its lines as rows."""
        solution = self._solution
        rows = solution.raw.line_factor.copy()
        rows[~solution.statistics.has_observed()[0]] = np.nan
        return RankOneFit(
            row_factor=rows,
            col_factor=solution.raw.col_factor,
            factors=solution.raw,
            statistics=solution.statistics,
            line_of_row=None,
            components=solution.components,
            source=None,
            exponent=solution.joint.exponent,
            has_negatives=False,
            tol=self.tol,
            row_labels=None,
            col_labels=None,
            on_undetermined=self._on_undetermined,
            has_rows=True,
        )

    @cached_property
    def _views(self) -> dict[Hashable, SharedTableFit]:
        """Each table as a fit of its own, turned to the row side."""
        shares, n = self._shares, joint_components(self._solution).n
        views = {}
        for r, entities in enumerate(self._layout.row_sets):
            place = self._solution.joint.lines.get(r)
            start = 0
            for t in entities.tables:
                table = self._layout.tables[t]
                c, stop = table.col_set, start + table.source.n_cols
                views[table.key] = view_table(
                    table,
                    self._seen[r],
                    slice(start, stop),
                    self._joint,
                    None if place is None else place.start,
                    (shares.row_factor[r], shares.col_factor[c]),
                    (shares.line_component[r], shares.col_component[c], n),
                    (shares.line_block[r], shares.col_block[c]),
                )
                start = stop
        return views

    # ------------------------------------------------------------------ by table
    @cached_property
    def divergences(self) -> dict[Any, float]:
        """Divergence of each table on its observed cells, without its weight.

        Computed when first asked for, from the tables where they lie: an array that was
        changed since the fit gives the divergence of the changed one. NaN for a table
        of weight 0 with observed cells whose value is not determined.
        """
        return {t.key: self._views[t.key].divergence for t in self._layout.tables}

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
        found = {}
        for table in self._layout.tables:
            cells = self._views[table.key].undetermined
            if table.transposed:
                order = np.lexsort((cells.row, cells.column))
                cells = UndeterminedCells(
                    cells.column[order], cells.row[order], cells.code[order]
                )
            found[table.key] = cells
        return found

    @property
    def n_undetermined(self) -> int:
        """Missing cells of all tables that cannot be known."""
        return sum(self._views[t.key].n_undetermined for t in self._layout.tables)

    def _reconstruct(self, table: SharedTable) -> Floats:
        fitted = self._views[table.key].reconstruct()
        return fitted.T if table.transposed else fitted

    def _impute(self, table: SharedTable, X: Any, how: OnUndetermined | None) -> Any:
        return self._views[table.key].impute(X, on_undetermined=how)

    # ------------------------------------------------------------------ by entity
    def _by_entity(self) -> dict[Any, tuple[Floats, SmallInts]]:
        """Factor and block of the entities of each set."""
        found: dict[Any, tuple[Floats, SmallInts]] = {}
        shares = self._shares
        for r, entities in enumerate(self._layout.row_sets):
            factor, block = shares.row_factor[r], shares.line_block[r]
            line_of_row = self._seen[r].line_of_row
            if line_of_row is not None:
                block = block[line_of_row]
            found[entities.name] = factor, _where_positive(factor, block)
        for c, entities in enumerate(self._layout.col_sets):
            factor = shares.col_factor[c]
            found[entities.name] = factor, _where_positive(factor, shares.col_block[c])
        return found

    @cached_property
    def blocks(self) -> dict[Any, SmallInts]:
        """Block of each entity; -1 where the factor is 0 or NaN."""
        return {name: block for name, (_, block) in self._by_entity().items()}

    # ------------------------------------------------------------------- warnings
    def say_what_is_unknown(self) -> None:
        """Warn of a poor certificate, empty entities and cells that cannot be known."""
        raw = self._solution.raw
        if raw.gap > self.tol:
            warn_of_gap(raw, self.tol)
        self._warn_of_empty_entities()
        if raw.n_blocks == 1 and self._solution.components is None:
            return
        texts = [self._describe_unknown(table) for table in self._layout.tables]
        text = " ".join(text for text in texts if text)
        if text and self._on_undetermined == "raise":
            raise UndeterminedError(text)
        if text and self._on_undetermined == "warn":
            warn_user(text, UndeterminedWarning)

    def _warn_of_empty_entities(self) -> None:
        texts = []
        for name, factor, labels in self._factors_by_name():
            names = [
                str(k) if labels is None else text_of_label(labels[k])
                for k in np.flatnonzero(np.isnan(factor)).tolist()
            ]
            if names:
                texts.append(f"{name}[{listed(names, MOST_LINES)}]")
        if texts:
            text = (
                f"Nothing determines {' and '.join(texts)}: these factors are NaN, and "
                "the cells that need them stay missing."
            )
            warn_user(text, EmptyLineWarning)

    def _factors_by_name(self) -> list[tuple[str, Floats, Any]]:
        """Name, factor and labels of each set of entities."""
        tables = self._layout.tables
        row, col = self._shares.row_factor, self._shares.col_factor
        sets: list[tuple[str, Floats, Any]] = []
        for r, entities in enumerate(self._layout.row_sets):
            labels = _first(t.source.row_labels for t in tables if t.row_set == r)
            sets.append((str(entities.name), row[r], labels))
        for c, entities in enumerate(self._layout.col_sets):
            labels = _first(t.source.col_labels for t in tables if t.col_set == c)
            sets.append((str(entities.name), col[c], labels))
        return sets

    def _describe_unknown(self, table: SharedTable) -> str:
        view = self._views[table.key]
        counts = view._knowledge.counts
        parts = []
        if not table.is_passive and view._n_between:
            parts.append(text_of_zeros(view._n_between, of=table.name))
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
            first = table.where(*view._knowledge.first_unknown())
            parts.append(
                text_of_unknown_cells(n_unbounded, n_open, first, of=table.name)
            )
        return " ".join(parts)

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
        state = self.__dict__.copy()
        state["divergences"], state["_views"] = self.divergences, self._views
        layout = self._layout.without_data()
        joint = replace(self._solution.joint, layout=layout)
        state["_layout"] = layout
        state["_solution"] = replace(self._solution, joint=joint)
        return state

    def _repr_html_(self) -> str:
        return html_table(type(self).__name__, self.summary())


def _where_positive(factor: Floats, block: SmallInts) -> SmallInts:
    return np.where(np.nan_to_num(factor) > 0.0, block, -1).astype(np.int32)


def _first(labels: Iterable[Any]) -> Any:
    """The first labels that there are."""
    return next((found for found in labels if found is not None), None)
