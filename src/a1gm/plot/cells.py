"""Cells beside their fit: observed against fitted, residuals, one row with bounds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._base.types import Floats
from a1gm._fit.solved_table import memory_of
from a1gm._fit.sure.uncertainty import Uncertainty
from a1gm._rows.lookup import Lookup
from a1gm.exceptions import ParameterError
from a1gm.plot.axes import (
    HOLE,
    KNOWN,
    UNITS,
    averaged,
    drawing,
    name_places,
    name_table,
    percent,
    short,
    values_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from a1gm._fit.fit import RankOneFit
    from a1gm._fit.residuals import Kind

__all__ = ["interval", "observed_vs_fitted", "residual_map", "residuals"]

_MOST_POINTS, _MOST_SHAPES = 4000, 1000  # drawn at all; drawn as shapes, not as pixels


def observed_vs_fitted(X: Any, fit: RankOneFit, *, ax: Axes | None = None) -> Axes:
    """Draw the observed cells against their fitted values.

    Parameters
    ----------
    X : table of shape (n_rows, n_cols)
        The table that was fitted, an array or a frame of any kind.
    fit : RankOneFit
        Its fit.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Points on the diagonal are explained perfectly. Above a few thousand cells an
        even selection is drawn.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np, a1gm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(np.outer(rng.gamma(3, 20, 30), np.linspace(1, 2, 12))) + 1.0
    >>> _, ax = plt.subplots(figsize=(4, 3.6), layout="constrained")
    >>> ax = a1gm.plot.observed_vs_fitted(X, a1gm.fit(X), ax=ax)
    """
    memory = memory_of(fit)
    observed = values_of(memory.source_of(X)).ravel()
    off = values_of(memory.source_of(fit.residuals(X, "response"))).ravel()
    fitted = observed - off
    chosen = np.flatnonzero(np.isfinite(fitted))
    if len(chosen) > _MOST_POINTS:
        chosen = chosen[np.linspace(0, len(chosen) - 1, _MOST_POINTS).astype(np.int64)]
    observed, fitted = observed[chosen], fitted[chosen]
    with drawing(ax) as (axes,):
        is_many = len(chosen) > _MOST_SHAPES
        size = 9 if is_many else 20
        style: dict[str, Any] = {"s": size, "alpha": 0.5, "color": KNOWN, "lw": 0}
        axes.scatter(fitted, observed, rasterized=is_many, zorder=3, **style)
        lowest = min(observed.min(initial=0), fitted.min(initial=0))
        highest = max(observed.max(initial=0), fitted.max(initial=0)) or 1.0
        axes.plot([lowest, highest], [lowest, highest], color=HOLE, lw=1)
        positive = observed[observed > 0]
        scale = float(np.median(positive)) / 10 if positive.size else 0.0
        # Counts and amounts spread over decades; zeros stay visible at the edge. Below
        # 1e-286 matplotlib takes limits of axes for 0.
        if scale > 1e-280 and highest / scale > 300:
            axes.set_xscale("symlog", linthresh=scale)
            axes.set_yscale("symlog", linthresh=scale)
            axes.set_xticks(_decades(scale, highest))
            axes.set_yticks(_decades(scale, highest))
        axes.set_xlabel(f"fitted cell, {UNITS}")
        axes.set_ylabel("observed cell")
        axes.set_title("Observed against fitted cells")
    return axes


def residuals(
    X: Any, fit: RankOneFit, *, kind: Kind = "pearson", ax: Axes | None = None
) -> Axes:
    """Draw the residuals of a table as a map: red above the fit, blue below it.

    Parameters
    ----------
    X : table of shape (n_rows, n_cols)
        The table that was fitted, or other rows with its columns.
    fit : RankOneFit
        The fit.
    kind : {"pearson", "deviance", "response"}
        As in ``fit.residuals``.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Missing cells are grey. Large tables are averaged down.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np, a1gm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(np.outer(rng.gamma(3, 20, 30), np.linspace(1, 2, 12))) + 1.0
    >>> X[8:12, 3:6] *= 1.5
    >>> X[20:, 9:] = np.nan
    >>> _, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
    >>> ax = a1gm.plot.residuals(X, a1gm.fit(X), ax=ax)
    """
    memory = memory_of(fit)
    found = values_of(memory.source_of(fit.residuals(X, kind)))
    with drawing(ax) as (axes,):
        unit = f",\n{UNITS}" if kind == "response" else ""
        word = "Pearson" if kind == "pearson" else kind
        residual_map(axes, found, f"{word} residual{unit}")
        name_table(axes, memory.source_of(X))
        axes.set_title("Residuals: red above, blue below the fit")
    return axes


def residual_map(axes: Axes, found: Floats, label: str) -> None:
    """Draw residuals as a map with a scale of colours; ``label`` is its title."""
    from matplotlib import colormaps

    picture = averaged(found)
    known = np.isfinite(picture)
    largest = np.quantile(np.abs(picture[known]), 0.99) if known.any() else 0.0
    image = axes.imshow(
        picture,
        # Told apart by the colour-blind, too; white is a number, grey is none.
        cmap=colormaps["RdBu_r"].with_extremes(bad="#b0b0b0"),
        vmin=-largest or -1.0,
        vmax=largest or 1.0,
        aspect="auto",
        interpolation="nearest",
        extent=(0, found.shape[1], found.shape[0], 0),
    )
    mean = ", averaged" * (picture.shape != found.shape)
    axes.figure.colorbar(image, ax=axes, label=label + mean, extend="both")


def interval(
    X: Any,
    errors: Uncertainty,
    row: Any,
    *,
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Draw one row: its cells, and its holes filled with their bounds.

    Parameters
    ----------
    X : table of shape (n_rows, n_cols)
        The table.
    errors : Uncertainty
        What ``fit.uncertainty()`` gives.
    row : label or int
        Which row: by its name, or by its place from 0.
    level : float
        The share of cells that the bounds hold.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np, a1gm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(np.outer(rng.gamma(3, 20, 30), np.linspace(1, 2, 12))) + 1.0
    >>> X[5, 3:9] = np.nan
    >>> _, ax = plt.subplots(figsize=(6, 3), layout="constrained")
    >>> ax = a1gm.plot.interval(X, a1gm.fit(X).uncertainty(), 5, ax=ax)
    """
    if not isinstance(errors, Uncertainty):
        raise ParameterError(
            "The bounds of cells are those of an Uncertainty, and this is a "
            f"{type(errors).__name__}. Pass fit.uncertainty()."
        )
    errors._holes(X)  # raises for other columns
    source = memory_of(errors._fit).source_of(X)
    found = Lookup("row", source.row_labels, source.n_rows, "X").find(row)
    if found.ndim:
        raise ParameterError(
            f"A picture shows one row, and row={row!r} are {found.size:,}. Give the "
            "name or the place of one; ax= puts several pictures side by side."
        )
    at = int(found)
    x = source.rows(slice(at, at + 1))[0]
    places, holes = np.arange(len(x)), np.isnan(x)
    low, high = x.copy(), x.copy()
    cells = np.full(holes.sum(), at), places[holes]
    low[holes], high[holes] = errors._bounds(X, *cells, level)
    filled, lost = holes & ~np.isnan(low), holes & np.isnan(low)
    with drawing(ax, height=3.4) as (axes,):
        size = max(1.0, min(6.0, 400.0 / len(places)))
        if not holes.all():
            axes.plot(
                places[~holes], x[~holes], "o", ms=size, color=KNOWN, label="known"
            )
        if filled.any():
            axes.vlines(
                places[filled],
                low[filled],
                high[filled],
                color=HOLE,
                lw=size / 2.0,
                label=f"missing: {percent(level)} bounds",
            )
        if lost.any():
            axes.plot(
                places[lost],
                np.full(lost.sum(), 0.03),
                "x",
                ms=size,
                color=HOLE,
                label="missing: no value",
                transform=axes.get_xaxis_transform(),
            )
        name_places(axes, source.col_labels)
        axes.margins(y=0.3)  # room for the legend
        if not np.any(x < 0.0):
            axes.set_ylim(bottom=0.0)
        if lost.all():
            axes.set_yticks([])
        labels = source.row_labels
        name = at if labels is None else short(labels[at], 40)
        axes.set_title(f"Row {name}", parse_math=False)
        axes.set_ylabel(f"cell, {UNITS}")
        axes.legend(frameon=False, loc="upper left", ncols=2)
    return axes


def _decades(lowest: float, highest: float, most: int = 6) -> Floats:
    """Zero and some powers of ten; those near zero would be written over its label."""
    first, last = math.ceil(math.log10(lowest)), math.floor(math.log10(highest))
    step = -(-(last - first + 1) // most)
    return np.array([0.0, *(10.0**k for k in range(first, last + 1, max(step, 1)))])
