"""Numbers with their errors, one row per label: totals and indices."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from a1gm._base.types import AnyArray, Floats, Ints
from a1gm._base.words import counted, html_grid, text_grid
from a1gm._fit.frames import labelled_frame
from a1gm._fit.messages import number_grid
from a1gm._fit.sure.arguments import Which


@dataclass(frozen=True, repr=False, kw_only=True)
class _Labelled:
    """Columns of numbers, one row per label.

    Attributes
    ----------
    labels : sequence
        Names of the rows, or their positions from 0.
    value, se : ndarray
        The numbers and their standard errors; NaN where they are not determined.
    """

    labels: Any
    value: Floats
    se: Floats
    _of: str | tuple[str, ...]
    _backend: str | None
    _n_left_out: int = 0  # cells without a value
    _errors_dof: float = math.inf  # of the errors: their quantiles are Student's t

    def __len__(self) -> int:
        return len(self.value)

    def columns(self) -> dict[str, AnyArray]:
        """The numbers by name."""
        names = [f.name for f in fields(self)[1:] if not f.name.startswith("_")]
        found = {name: getattr(self, name) for name in names}
        return {name: part for name, part in found.items() if part is not None}

    def to_frame(self, backend: str | None = None) -> Any:
        """Make a frame of the labels and numbers.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            The library; needed when the fitted table was not a frame.

        Returns
        -------
        frame
        """
        return labelled_frame(
            self._of, self.labels, self.columns(), backend or self._backend
        )

    def _shown(self) -> tuple[list[list[str]], list[str]]:
        """The first rows as words, and sentences about the others."""
        of = self._of if isinstance(self._of, str) else ", ".join(self._of)
        grid, notes = number_grid(of, self.labels, self.columns())
        if n := self._n_left_out:
            cells = counted(n, "cell without a value is", "cells without a value are")
            notes.append(f"{cells} in no total")
        return grid, notes

    def __repr__(self) -> str:
        grid, notes = self._shown()
        return "\n".join([text_grid(grid), *notes])

    def _repr_html_(self) -> str:
        return html_grid(*self._shown())


@dataclass(frozen=True, repr=False, kw_only=True)
class Index(_Labelled):
    """Factors relative to one of them, with standard errors."""


@dataclass(frozen=True, repr=False, kw_only=True)
class TotalsWithErrors(_Labelled):
    """Totals of cells, with the two parts of their standard errors.

    Attributes
    ----------
    se_estimation : ndarray
        What comes from the factors, which are estimated.
    se_process : ndarray
        What comes from the cells themselves, which scatter around their means.
    unknown : ndarray, or None
        How many cells of a total have no value, for three keys or more; None where
        all have one.
    """

    se_estimation: Floats
    se_process: Floats
    unknown: Ints | None = None
    _cells: Which = "missing"
