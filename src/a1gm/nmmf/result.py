"""What a joint fit gives: one factor per entity set, and every table filled."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from a1gm._base.types import Floats, OnUndetermined, SmallInts
from a1gm.exceptions import ParameterError
from a1gm.nmmf.shared_fit import SharedFit


def check_mapping(given: Any, name: str, error: type[Exception]) -> None:
    """Raise unless it is a mapping whose keys are pairs of entity sets."""
    if not isinstance(given, Mapping):
        msg = (
            f"{name} must be a mapping whose keys name the entities of the rows and of "
            f'the columns, as in {{("user", "item"): ...}}, got {type(given).__name__}.'
        )
        raise error(msg)


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

    @property
    def w(self) -> Floats:
        """Factors of the rows of X and Z."""
        return self._shares.row_factor[0]

    @property
    def h(self) -> Floats:
        """Factors of the columns of X and Y."""
        return self._shares.col_factor[0]

    @property
    def a(self) -> Floats:
        """Factors of the rows of Y."""
        return self._shares.row_factor.get(1, np.zeros(0))

    @property
    def b(self) -> Floats:
        """Factors of the columns of Z."""
        return self._shares.col_factor.get(1, np.zeros(0))

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
            By default as said in ``fit_nmmf``, whose warning is not repeated.

        Returns
        -------
        X, Y, Z : table or None
            Filled copies of the same kind; None for a table that was not given.
        """
        filled: dict[str, Any] = {}
        for name, given in (("X", X), ("Y", Y), ("Z", Z)):
            if given is not None and name not in self._views:
                msg = f"{name} was not among the fitted tables, so it cannot be filled."
                raise ParameterError(msg)
            if given is not None:
                filled[name] = self._views[name].impute(given, on_undetermined)
        return filled.get("X"), filled.get("Y"), filled.get("Z")


class RelationsFit(SharedFit):
    """One factor per entity set, shared by all the tables that relate it.

    Made by ``a1gm.fit_relations``; not meant to be constructed by hand.
    """

    @cached_property
    def factors(self) -> dict[Any, Floats]:
        """Factor of each entity, by the name of its set."""
        return self._factors_by_entity()

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
            By default as said in ``fit_relations``, whose warning is not repeated.

        Returns
        -------
        dict
            Filled copies by key.
        """
        check_mapping(tables, "tables", ParameterError)
        for key in tables:
            if key not in self._views:
                msg = f"{key!r} is not among the fitted tables: {list(self._views)}."
                raise ParameterError(msg)
        return {
            key: self._views[key].impute(X, on_undetermined)
            for key, X in tables.items()
        }
