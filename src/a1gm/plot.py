"""Pictures of a table with holes and of its fit, as matplotlib axes.

Needs matplotlib, the extra ``plot``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._base.optional import require
from a1gm._base.types import AnyArray, Bools, Floats, Ints, SmallInts
from a1gm._base.words import counted, shown
from a1gm._sources import read_input

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from a1gm._result.fit import RankOneFit
    from a1gm._result.labelled import Index, TotalsWithErrors
    from a1gm._result.residuals import Kind
    from a1gm._result.uncertainty import Uncertainty

__all__ = [
    "factors",
    "index",
    "interval",
    "observed_vs_fitted",
    "pattern",
    "residuals",
    "structure_order",
    "totals",
]

_MISSING_COLOUR = "#d1495b"
_BAR_COLOUR = "#2e6f95"
_MOST_PIXELS = 600
_MOST_POINTS = 4000


def pattern(X: Any, *, reorder: bool = False, ax: Axes | None = None) -> Axes:
    """Draw which cells of a table are missing.

    Parameters
    ----------
    X : table of shape (n_rows, n_cols)
        An array or a frame of any kind; NaN, null or a mask marks a missing cell.
    reorder : bool
        Whether to sort rows and columns so that grids, staircases and blocks show.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A large table is averaged down to a few hundred pixels: the darker, the more
        cells are missing.

    Examples
    --------
    >>> import numpy as np
    >>> from a1gm import plot
    >>> ax = plot.pattern(np.array([[1, 2], [3, np.nan]]))  # doctest: +SKIP
    """
    missing = np.isnan(_values(X))
    if reorder:
        rows, columns = structure_order(missing)
        missing = missing[rows][:, columns]
    with _drawing(ax) as (axes,):
        axes.imshow(
            _shrunk(missing),
            cmap=_transparent_to(_MISSING_COLOUR),
            vmin=0,
            vmax=1,
            aspect="auto",
            interpolation="nearest",
            extent=(0, missing.shape[1], missing.shape[0], 0),
        )
        axes.set_xlabel(counted(missing.shape[1], "column") + ", reordered" * reorder)
        axes.set_ylabel(counted(missing.shape[0], "row") + ", reordered" * reorder)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[:].set_visible(True)
    return axes


def factors(
    fit: RankOneFit,
    *,
    most: int = 20,
    row_names: Sequence[Any] | None = None,
    col_names: Sequence[Any] | None = None,
    axes: Sequence[Axes] | None = None,
) -> tuple[Axes, Axes]:
    """Draw both factors as bars, largest first.

    Parameters
    ----------
    fit : RankOneFit
        The fit.
    most : int
        The most bars per factor; the largest are shown.
    row_names, col_names : sequence, optional
        Names. Default: the labels of the fit, or numbers.
    axes : two matplotlib.axes.Axes, optional
        Where to draw the row factor and the column factor.

    Returns
    -------
    tuple of matplotlib.axes.Axes
        The row factor and the column factor.
    """
    with _drawing(*(axes or (None, None))) as (left, right):
        rows = fit.row_labels if row_names is None else row_names
        columns = fit.col_labels if col_names is None else col_names
        bars(left, fit.row_factor, rows, most=most, title="row factor")
        bars(right, fit.col_factor, columns, most=most, title="column factor")
    return left, right


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
    """
    observed, fitted = _sampled_cells(_values(X), fit)
    with _drawing(ax) as (axes,):
        axes.scatter(
            fitted, observed, s=9, alpha=0.5, color=_BAR_COLOUR, lw=0, rasterized=True
        )
        highest = max(observed.max(initial=0), fitted.max(initial=0)) or 1.0
        axes.plot([0, highest], [0, highest], color=_MISSING_COLOUR, lw=1)
        positive = observed[observed > 0]
        # Counts and amounts spread over decades; zeros stay visible at the edge.
        if positive.size and highest / np.median(positive) > 30:
            scale = float(np.median(positive)) / 10
            axes.set_xscale("symlog", linthresh=scale)
            axes.set_yscale("symlog", linthresh=scale)
            axes.set_xticks(_decades(scale, highest))
            axes.set_yticks(_decades(scale, highest))
        axes.set_xlabel("fitted")
        axes.set_ylabel("observed")
    return axes


# ---------------------------------------------------------------------- how sure
def index(found: Index, *, level: float = 0.95, ax: Axes | None = None) -> Axes:
    """Draw an index with its band, in the order of its columns or rows.

    Parameters
    ----------
    found : Index
        What ``fit.uncertainty().index()`` gives.
    level : float
        The share that the band holds.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    from scipy.special import ndtri

    width = float(ndtri((1.0 + level) / 2.0)) * found.se
    places = np.arange(len(found))
    with _drawing(ax) as (axes,):
        low = np.maximum(found.value - width, 0.0)
        high = found.value + width
        axes.fill_between(places, low, high, color=_BAR_COLOUR, alpha=0.2, lw=0)
        axes.plot(places, found.value, color=_BAR_COLOUR, marker="o", ms=3)
        axes.axhline(1.0, color="#888888", lw=0.8)
        _name_places(axes, found.labels)
        axes.set_ylabel(f"index, with the {level:.0%} band")
        base = np.flatnonzero((found.value == 1.0) & (found.se == 0.0))
        if len(base):
            name = _short(found.labels[base[0]])
            axes.set_title(f"relative to {name}", fontsize="medium", parse_math=False)
        axes.set_ylim(bottom=0.0)
    return axes


def totals(found: TotalsWithErrors, *, most: int = 20, ax: Axes | None = None) -> Axes:
    """Draw totals as bars with their standard errors, largest first.

    Parameters
    ----------
    found : TotalsWithErrors
        What ``fit.uncertainty().totals()`` gives.
    most : int
        The most bars; the largest are shown.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    with _drawing(ax) as (axes,):
        order = bars(axes, found.value, found.labels, most=most, title="total ± s.e.")
        axes.errorbar(
            found.value[order],
            np.arange(len(order)),
            xerr=found.se[order],
            fmt="none",
            ecolor=_MISSING_COLOUR,
        )
    return axes


def residuals(
    X: Any, fit: RankOneFit, *, kind: Kind = "pearson", ax: Axes | None = None
) -> Axes:
    """Draw the residuals of a table as a map: blue below the fit, red above.

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
    """
    found = _values(fit.residuals(X, kind))
    known = ~np.isnan(found)
    share = _shrunk(known)
    with np.errstate(divide="ignore", invalid="ignore"):
        picture = _shrunk(np.nan_to_num(found)) / np.where(share > 0.0, share, np.nan)
    largest = np.nanquantile(np.abs(picture), 0.99) if known.any() else 1.0
    with _drawing(ax) as (axes,):
        image = axes.imshow(
            picture,
            cmap=_with_holes("RdBu_r"),
            vmin=-largest,
            vmax=largest,
            aspect="auto",
            interpolation="nearest",
            extent=(0, found.shape[1], found.shape[0], 0),
        )
        axes.figure.colorbar(image, ax=axes, label=f"{kind} residual")
        axes.set_xlabel(counted(found.shape[1], "column"))
        axes.set_ylabel(counted(found.shape[0], "row"))
        axes.set_xticks([])
        axes.set_yticks([])
    return axes


def interval(
    X: Any,
    errors: Uncertainty,
    row: int,
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
    row : int
        Which row, from 0.
    level : float
        The share of cells that the bounds hold.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    source = read_input(X)
    x = source.rows(slice(row, row + 1))
    low, high = (np.asarray(bound)[0] for bound in errors.interval(x, level))
    holes, places = np.isnan(x[0]), np.arange(x.shape[1])
    with _drawing(ax) as (axes,):
        axes.plot(places[~holes], x[0, ~holes], "o", color=_BAR_COLOUR, label="known")
        axes.vlines(
            places[holes],
            low[holes],
            high[holes],
            color=_MISSING_COLOUR,
            lw=3,
            label=f"missing: {level:.0%} bounds",
        )
        _name_places(axes, source.col_labels)
        axes.set_ylabel("value, in the units of the table")
        name = row if source.row_labels is None else _short(source.row_labels[row])
        axes.set_title(f"row {name}", fontsize="medium", parse_math=False)
        axes.set_ylim(bottom=0.0)
        axes.legend(frameon=False)
    return axes


def _name_places(axes: Axes, labels: Any, most: int = 12) -> None:
    """Name some places of the horizontal axis."""
    if labels is None:
        return
    places = np.arange(0, len(labels), -(-len(labels) // most))
    names = [_short(labels[k], 10) for k in places]
    axes.set_xticks(places, labels=names, parse_math=False, rotation=45, ha="right")


def _decades(lowest: float, highest: float, most: int = 6) -> Floats:
    """Zero and some powers of ten; those near zero would be written over its label."""
    first, last = math.ceil(math.log10(lowest)), math.floor(math.log10(highest))
    step = -(-(last - first + 1) // most)
    return np.array([0.0, *(10.0**k for k in range(first, last + 1, max(step, 1)))])


def structure_order(
    missing: Bools,
    row_block: SmallInts | None = None,
    col_block: SmallInts | None = None,
) -> tuple[Ints, Ints]:
    """Order rows and columns so that the structure of the holes shows.

    By block, then fewest holes first, then equal patterns together: grids become
    rectangles, staircases stairs, blocks squares on the diagonal.

    Parameters
    ----------
    missing : ndarray of bool, shape (n_rows, n_cols)
        True where a cell is missing.
    row_block, col_block : ndarray of int, optional
        Identifiability blocks of a fit.

    Returns
    -------
    tuple of ndarray of int
        Row order and column order.
    """
    columns = _line_order(missing.T, col_block)
    rows = _line_order(missing[:, columns], row_block)
    return rows, columns


def _line_order(missing: Bools, block: SmallInts | None) -> Ints:
    # Patterns as whole numbers, 64 cells each: equal lines have equal numbers.
    bits = np.packbits(missing, axis=1)
    bits = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8)))
    words = np.ascontiguousarray(bits).view(np.uint64)
    blocks = np.zeros(len(missing), dtype=np.int32) if block is None else block
    # Lines without any observed cell belong to no block (-1) and come last.
    blocks = np.where(blocks < 0, np.iinfo(np.int32).max, blocks)
    return np.lexsort((*words.T, missing.sum(axis=1), blocks))


def bars(
    axes: Axes, factor: Floats, names: Sequence[Any] | None, *, most: int, title: str
) -> Ints:
    """Draw a factor as horizontal bars, largest first; return their places.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    factor : ndarray
        The factor; NaN values are left out.
    names : sequence, optional
        A name per value. Default: numbers.
    most : int
        The most bars.
    title : str
        What the values are.
    """
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    known = np.flatnonzero(~np.isnan(factor))
    order = known[np.argsort(-factor[known], kind="stable")][:most]
    labels = [_short(names[k] if names is not None else k) for k in order]
    axes.barh(np.arange(len(order)), factor[order], color=_BAR_COLOUR)
    # Names are data: a dollar sign must not start a formula.
    axes.set_yticks(np.arange(len(order)), labels=labels, parse_math=False)
    axes.invert_yaxis()
    some = f", largest {len(order)} of {len(factor):,}" * (len(order) < len(factor))
    axes.set_xlabel(title + some)
    axes.margins(y=0.01)
    largest = float(factor[order[0]]) if len(order) else 0.0
    # Long numbers beside each other would overlap.
    axes.xaxis.set_major_locator(MaxNLocator(5 if largest < 1e5 else 3))
    if 1e3 <= largest < 1e9:
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    return order


def _short(name: Any, limit: int = 18) -> str:
    text = shown(name)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _sampled_cells(X: Floats, fit: RankOneFit) -> tuple[Floats, Floats]:
    """Observed cells and their fitted values, an even selection of many."""
    fitted = X - fit.residuals(X, "response")
    known = np.flatnonzero(np.isfinite(fitted))
    if len(known) > _MOST_POINTS:
        known = known[np.linspace(0, len(known) - 1, _MOST_POINTS).astype(np.int64)]
    return X.ravel()[known], fitted.ravel()[known]


def _values(X: Any) -> Floats:
    """Read any dense table as numbers, NaN where missing."""
    source = read_input(X)
    values: Floats = source.rows(slice(0, source.n_rows))
    return values


def _shrunk(table: AnyArray) -> Floats:
    """Average a picture down to what a screen shows."""
    picture = table.astype(np.float64)
    for axis in (0, 1):
        n = picture.shape[axis]
        if n > _MOST_PIXELS:
            starts = np.arange(_MOST_PIXELS) * n // _MOST_PIXELS
            lengths = np.diff(np.append(starts, n))
            sums = np.add.reduceat(picture, starts, axis=axis)
            picture = sums / (lengths[:, None] if axis == 0 else lengths)
    return picture


def _transparent_to(colour: str) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("holes", [f"{colour}00", f"{colour}ff"])


def _with_holes(name: str) -> Any:
    """Colours of a map, with grey where there is no number: white is a number."""
    from matplotlib import colormaps

    return colormaps[name].with_extremes(bad="#b0b0b0")


@contextmanager
def _drawing(*given: Axes | None) -> Iterator[tuple[Axes, ...]]:
    """Give axes to draw on, new ones where none were given."""
    pyplot = require("matplotlib.pyplot", "plot", "A picture")
    if all(axes is not None for axes in given):
        yield tuple(axes for axes in given if axes is not None)
        return
    _, made = pyplot.subplots(
        1,
        len(given),
        squeeze=False,
        figsize=(4.8 * len(given), 4.2),
        layout="constrained",
    )
    yield tuple(made[0])
