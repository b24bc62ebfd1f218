"""Results of a joint fit: one factor per entity set, and every table filled."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from a1gm._base.types import Floats, OnUndetermined, SmallInts
from a1gm._base.warn import warn_user
from a1gm._base.words import MOST_NAMED, counted, listed
from a1gm._fit.fit import RankOneFit, Solution
from a1gm._fit.messages import (
    solver_in_words,
    text_of_convergence,
    warn_undetermined,
)
from a1gm._fit.place import EMPTY, UNBOUNDED, Placed, UndeterminedCells
from a1gm._fit.sure.arguments import Dispersion
from a1gm._rows import Rows
from a1gm._rows.labels import Names, text_of_label
from a1gm.exceptions import EmptyLineWarning, ParameterError, parts_of, separated
from a1gm.nmmf.joint import check_cells, place_rows, weighted_side
from a1gm.nmmf.layout import Layout
from a1gm.nmmf.uncertainty import TableUncertainty
from a1gm.nmmf.view import TableView


class SharedFit(Solution):
    """Factors shared by several tables; base of `NMMFFit` and `RelationsFit`."""

    _between = "; "

    def __init__(
        self, layout: Layout, joint: RankOneFit, *, on_undetermined: OnUndetermined
    ) -> None:
        self._layout, self._joint, self._solved = layout, joint, joint._solved
        self._on_undetermined = on_undetermined
        self.tol = joint.tol

    @property
    def attained(self) -> bool:
        """Whether a minimiser exists; False where observed zeros cannot be fitted."""
        return self._joint.attained

    def _column_names(self) -> Names:
        """Names of the joint table's columns: the set, and the label or position."""
        return Names(
            col_labels=[
                f"{entities.name}[{text_of_label(label)}]"
                for entities in self._layout.fitted_sets(columns=True)
                for label in entities.labels
            ]
        )

    # ------------------------------------------------------------------ by table
    @cached_property
    def _is_one_block(self) -> bool:
        """Whether every cell of every table is the product of its factors."""
        joint = self._joint
        if joint.n_blocks != 1 or not joint.attained:
            return False
        if joint.n_undetermined == 0:
            return True
        # Cells of empty rows and columns have a factor of NaN.
        return not joint._fates.totals.fates[UNBOUNDED:EMPTY].any()

    @cached_property
    def _views(self) -> dict[Hashable, TableView]:
        return {
            table.key: TableView(
                table,
                self._layout.sets[table.row],
                self._layout.sets[table.col],
                self._joint,
                self._is_one_block,
                self._on_undetermined,
            )
            for table in self._layout.tables
        }

    @property
    def divergences(self) -> dict[Any, float]:
        """Divergence of each table on its observed cells, without its weight.

        Computed when first asked for, from the tables where they lie: an array that was
        changed since the fit gives the divergence of the changed one. NaN for a table
        of weight 0 with observed cells that have no fitted value.
        """
        return {key: view.divergence for key, view in self._views.items()}

    @property
    def divergence(self) -> float:
        """The cost that was minimised: the divergences times their weights, summed.

        Like ``divergences``, computed from the tables as they are when first asked for.
        """
        fitted = self._layout.fitted
        return sum(table.weight * self.divergences[table.key] for table in fitted)

    @property
    def undetermined(self) -> dict[Any, UndeterminedCells]:
        """Missing cells of each table that the data do not determine."""
        return {key: view.undetermined for key, view in self._views.items()}

    @property
    def n_undetermined(self) -> int:
        """Missing cells of all tables that cannot be known."""
        return sum(map(len, self.undetermined.values()))

    def uncertainty(
        self, dispersion: Dispersion = "pearson", *, robust: bool = False
    ) -> dict[Any, TableUncertainty]:
        """Uncertainty of each table: errors of cells, totals and factors.

        Parameters
        ----------
        dispersion : {"pearson", "deviance", "poisson"} or float, default="pearson"
            Variance of a cell of weight 1 over its mean, as in
            ``RankOneFit.uncertainty``; estimated from all tables together.
        robust : bool, default=False
            Estimate the covariance of the columns from the scatter of the rows, as in
            ``RankOneFit.uncertainty``.

        Returns
        -------
        dict of TableUncertainty
            By the key of the table, without those of weight 0.

        Examples
        --------
        >>> import numpy as np, a1gm
        >>> X = np.array([[20.0, 41.0, 57.0], [12.0, 18.0, np.nan]])
        >>> Y = np.array([[9.0, 22.0, 31.0]])
        >>> fit = a1gm.fit_nmmf(X, Y)
        >>> round(fit.uncertainty("poisson")["X"].standard_error(1, 2), 2)
        6.76
        """
        joint = self._joint.uncertainty(dispersion, robust=robust)
        is_scaled = self._layout.units is not None
        return {
            table.key: TableUncertainty(
                joint, self._views[table.key], table.weight if is_scaled else 1.0
            )
            for table in self._layout.fitted
        }

    def _impute(
        self, tables: Mapping[Any, Any], how: OnUndetermined | None
    ) -> dict[Any, Any]:
        for key in tables:
            if key not in self._views:
                raise ParameterError(
                    f"{key!r} is not among the fitted tables: {list(self._views)}."
                )
        return {key: self._views[key].impute(X, how) for key, X in tables.items()}

    # ------------------------------------------------------------------ by entity
    @property
    def blocks(self) -> dict[Any, SmallInts]:
        """Block of each entity; -1 where the factor is 0 or NaN."""
        return {name: s.block for name, s in self._layout.sets.items()}

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
        if self.n_undetermined:
            lines["cannot be known"] = counted(self.n_undetermined, "missing cell")
        return lines

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the fit without the tables."""
        tables = tuple(table.without_data() for table in self._layout.tables)
        layout = replace(self._layout, tables=tables)
        return self.__dict__ | {"_views": self._views, "_layout": layout}

    # ------------------------------------------------------------------ warnings
    def _warn(self, convergence: type[Warning]) -> None:
        """Warn of a poor certificate, empty entities and cells that cannot be known."""
        if text := text_of_convergence(self):
            warn_user(convergence(*parts_of(text)))
        empty: list[str] = []
        for name, entities in self._layout.sets.items():
            if len(at := np.flatnonzero(np.isnan(entities.factor))):
                names = [text_of_label(entities.labels[k]) for k in at.tolist()]
                empty.append(f"{name}[{listed(names, MOST_NAMED)}]")
        if empty:
            text = (
                f"Nothing determines {' and '.join(empty)}: these factors are NaN, and "
                "the cells that need them stay missing."
            )
            warn_user(EmptyLineWarning(text))
        if self._is_one_block:
            return
        if text := separated([view.describe() for view in self._views.values()]):
            warn_undetermined(text, self._on_undetermined)


def check_mapping(given: Any, name: str, error: type[Exception]) -> None:
    """Raise unless it is a mapping from pairs of entity sets."""
    if not isinstance(given, Mapping):
        raise error(
            f"{name} must be a mapping from the entities of the rows and of the "
            f'columns, as in {{("user", "item"): ...}}, got {type(given).__name__}.'
        )


class NMMFFit(SharedFit):
    """Factors of three tables: ``X ≈ w⊗h``, ``Y ≈ a⊗h``, ``Z ≈ w⊗b``.

    Made by ``a1gm.fit_nmmf``; not meant to be constructed by hand.

    Attributes
    ----------
    w : ndarray of shape (I,)
        Factors of the rows of X and Z.
    h : ndarray of shape (J,)
        Factors of the columns of X and Y. In each block ``w`` and ``h`` have the same
        sum, as in Theorem 1 of the paper.
    a : ndarray of shape (N,)
        Factors of the rows of Y; empty without Y.
    b : ndarray of shape (M,)
        Factors of the columns of Z; empty without Z.
    """

    def __init__(
        self, layout: Layout, joint: RankOneFit, *, on_undetermined: OnUndetermined
    ) -> None:
        super().__init__(layout, joint, on_undetermined=on_undetermined)
        factors = {name: entities.factor for name, entities in layout.sets.items()}
        self.w, self.h = factors["w"], factors["h"]
        self.a, self.b = (factors.get(name, np.zeros(0)) for name in "ab")

    @property
    def row_block(self) -> SmallInts:
        """Block of each row of X."""
        return self.blocks["w"]

    @property
    def col_block(self) -> SmallInts:
        """Block of each column of X."""
        return self.blocks["h"]

    def reconstruct(self) -> tuple[Floats, Floats | None, Floats | None]:
        """Return the fitted tables; NaN where the data do not determine a value.

        Returns
        -------
        X, Y, Z : ndarray or None
            None for a table that was not given.
        """
        fitted = {key: view.reconstruct() for key, view in self._views.items()}
        return fitted["X"], fitted.get("Y"), fitted.get("Z")

    def impute(
        self,
        X: Any = None,
        Y: Any = None,
        Z: Any = None,
        *,
        on_undetermined: OnUndetermined | None = None,
    ) -> tuple[Any, Any, Any]:
        """Fill the missing cells of the tables that were fitted.

        Parameters
        ----------
        X, Y, Z : table, optional
            The tables that were fitted, or those of them to be filled.
        on_undetermined : {"warn", "raise", "ignore"}, optional
            What to do about cells that the data do not determine; they stay missing.
            By default as in ``fit_nmmf``; its warning is not repeated.

        Returns
        -------
        X, Y, Z : table or None
            Filled copies of the same kind; None for a table that was not given.
        """
        tables = zip("XYZ", (X, Y, Z), strict=True)
        given = {name: table for name, table in tables if table is not None}
        filled = self._impute(given, on_undetermined)
        return filled.get("X"), filled.get("Y"), filled.get("Z")

    # ------------------------------------------------------------------- new rows
    def _place(self, x: Rows, z: Rows | None) -> Placed:
        """Place rows of X, with their rows of Z if there are any, by the columns.

        A table of weight 0 is checked, but does not count.
        """
        check_cells(x)
        sets = self._layout.sets
        sides = [(x, sets["h"])]
        if z is not None:
            check_cells(z)
            if weight := self._views["Z"].table.weight:
                sides.append(weighted_side(z, sets["b"], weight))
        return place_rows(sides, self.n_blocks)


class RelationsFit(SharedFit):
    """One factor per entity set, shared by all the tables that relate it.

    Made by ``a1gm.fit_relations``; not meant to be constructed by hand.
    """

    @property
    def factors(self) -> dict[Any, Floats]:
        """Factor of each entity, by the name of its set."""
        return {name: s.factor for name, s in self._layout.sets.items()}

    def reconstruct(self) -> dict[Any, Floats]:
        """Return the fitted tables by their keys.

        Returns
        -------
        dict of ndarray
            NaN where the data do not determine a value.
        """
        return {key: view.reconstruct() for key, view in self._views.items()}

    def impute(
        self,
        tables: Mapping[Any, Any],
        *,
        on_undetermined: OnUndetermined | None = None,
    ) -> dict[Any, Any]:
        """Fill the missing cells of tables that were fitted.

        Parameters
        ----------
        tables : mapping
            The fitted tables, or some of them, by the same keys.
        on_undetermined : {"warn", "raise", "ignore"}, optional
            What to do about cells that the data do not determine; they stay missing.
            By default as in ``fit_relations``; its warning is not repeated.

        Returns
        -------
        dict
            Filled copies by key.
        """
        check_mapping(tables, "tables", ParameterError)
        return self._impute(tables, on_undetermined)
