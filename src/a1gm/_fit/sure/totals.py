"""Totals and indices with their standard errors."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from a1gm._base.types import Floats
from a1gm._base.words import counted
from a1gm._fit.frames import labelled_frame
from a1gm._fit.sure.arguments import By

MOST_SHOWN = 12


@dataclass(frozen=True, repr=False, kw_only=True)
class _Labelled:
    """Columns of numbers, one line per label.

    Attributes
    ----------
    labels : sequence
        Names of the lines, or their places from 0.
    value, se : ndarray
        The numbers and their standard errors; NaN where the data determine none.
    """

    labels: Any
    value: Floats
    se: Floats
    _of: str
    _backend: str | None
    _n_left_out: int = 0  # cells without a value

    def __len__(self) -> int:
        return len(self.value)

    def columns(self) -> dict[str, Floats]:
        """The numbers by name."""
        names = [f.name for f in fields(self)[1:] if not f.name.startswith("_")]
        return {name: getattr(self, name) for name in names}

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

    def _lines(self) -> list[list[str]]:
        columns = self.columns()
        lines = [[self._of, *columns]]
        for k in range(min(len(self), MOST_SHOWN)):
            numbers = [f"{float(values[k]):.6g}" for values in columns.values()]
            lines.append([str(self.labels[k]), *numbers])
        return lines

    def __repr__(self) -> str:
        lines = self._lines()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [
            "  ".join(
                f"{word:>{width}}" for word, width in zip(line, widths, strict=True)
            )
            for line in lines
        ]
        if len(self) > MOST_SHOWN:
            text.append(f"... {counted(len(self) - MOST_SHOWN, 'line')} more")
        return "\n".join([*text, *self._left_out()])

    def _left_out(self) -> list[str]:
        n = self._n_left_out
        cells = counted(n, "cell without a value is", "cells without a value are")
        return [f"{cells} in no total"] * bool(n)

    def _repr_html_(self) -> str:
        from html import escape

        head, *rest = self._lines()
        cells = "".join(f"<th>{escape(word)}</th>" for word in head)
        body = "".join(
            f"<tr><th>{escape(line[0])}</th>"
            + "".join(f"<td>{word}</td>" for word in line[1:])
            + "</tr>"
            for line in rest
        )
        below = "".join(f"<p>{words}</p>" for words in self._left_out())
        return f"<table><tr>{cells}</tr>{body}</table>{below}"


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
    """

    se_estimation: Floats
    se_process: Floats


def totals_with_errors(
    by: By,
    labels: Any,
    value: Floats,
    variance: Floats,
    process: float,
    n_left_out: int,
    backend: str | None = None,
) -> TotalsWithErrors:
    """Totals from their values and the variance of their estimates.

    ``process`` is the variance over mean of the cells themselves; ``n_left_out`` of
    them have no value.
    """
    variance = np.where(np.isnan(value), np.nan, variance)
    if by == "all":
        labels = ["all"]
    elif labels is None:
        labels = np.arange(len(value))
    return TotalsWithErrors(
        labels=labels,
        value=value,
        se=np.sqrt(variance + process * value),
        se_estimation=np.sqrt(variance),
        se_process=np.sqrt(process * value),
        _of="total" if by == "all" else by,
        _backend=backend,
        _n_left_out=n_left_out,
    )
