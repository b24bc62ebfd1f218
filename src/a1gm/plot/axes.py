"""What all pictures share: axes, colours, names, and large tables made small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from a1gm._base.optional import require
from a1gm._base.types import AnyArray, Floats
from a1gm._base.words import counted, shown
from a1gm._rows import AnyRows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Told apart by the colour-blind, too: bluish green and vermilion of unlike lightness.
KNOWN, HOLE = "#0f766e", "#d55e00"
UNITS = "in the units of the table"
MOST_PIXELS = 600
MOST_NAMES = 12
_LETTERS_PER_INCH = 10


def axes_for(*given: Axes | None, height: float = 4.2) -> tuple[Axes, ...]:
    """Return axes to draw on: those given, or those of a new figure."""
    pyplot = require("matplotlib.pyplot", "plot", "A picture")
    chosen = tuple(axes for axes in given if axes is not None)
    if len(chosen) == len(given):
        return chosen
    size = (4.8 * len(given), height)
    _, made = pyplot.subplots(
        1, len(given), squeeze=False, figsize=size, layout="constrained"
    )
    return tuple(made[0])


def values_of(source: AnyRows) -> Floats:
    """Numbers of a table that was read, NaN where missing."""
    return source.rows(slice(0, source.n_rows))


def percent(share: float) -> str:
    """Write a share: 95 %, 99.5 %."""
    return f"{100.0 * share:.6g} %"


def averaged(table: AnyArray) -> Floats:
    """Average a picture down to what a screen shows; NaN cells do not count."""
    known = ~np.isnan(table)
    sums, n = _binned(np.where(known, table, 0.0)), _binned(known)
    with np.errstate(invalid="ignore"):
        return np.where(n > 0.0, sums / n, np.nan)


def _binned(table: AnyArray) -> Floats:
    picture = table.astype(np.float64)
    for axis in (0, 1):
        n = picture.shape[axis]
        if n > MOST_PIXELS:
            starts = np.arange(MOST_PIXELS) * n // MOST_PIXELS
            picture = np.add.reduceat(picture, starts, axis=axis)
    return picture


def name_table(axes: Axes, source: AnyRows, order: str = "") -> None:
    """Say how many rows and columns a picture has, and name some of them."""
    for axis, n in (("y", source.n_rows), ("x", source.n_cols)):
        noun = "row" if axis == "y" else "column"
        getattr(axes, f"set_{axis}label")(counted(n, noun) + order)
        getattr(axes, f"set_{axis}ticks")([])
        labels = getattr(source, f"{noun[:3]}_labels", None)
        if labels is not None and not order:
            name_places(axes, labels, axis="x" if axis == "x" else "y", middle=0.5)


def name_places(
    axes: Axes,
    labels: Any,
    *,
    axis: Literal["x", "y"] = "x",
    middle: float = 0.0,
) -> None:
    """Name some places of an axis: all of a few, every so many of more."""
    if labels is None:
        return
    places = np.arange(0, len(labels), -(-len(labels) // MOST_NAMES))
    names = [short(labels[k], 14) for k in places]
    # Names are data: a dollar sign must not start a formula.
    if axis == "y":
        axes.set_yticks(places + middle, labels=names, parse_math=False)
        return
    axes.set_xticks(places + middle, labels=names, parse_math=False)
    width = axes.get_window_extent().width / axes.figure.dpi  # in inches
    if _LETTERS_PER_INCH * width < sum(len(name) + 2 for name in names):
        for tick in axes.get_xticklabels():
            tick.set(rotation=45, ha="right", rotation_mode="anchor")


def short(name: Any, limit: int = 18) -> str:
    """Write a name; a long one loses its middle, for many differ at the end only."""
    text = shown(name)
    return text if len(text) <= limit else f"{text[: limit - 6]}…{text[-5:]}"
