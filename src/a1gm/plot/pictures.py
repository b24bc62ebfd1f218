"""The pictures: missing cells, residuals, factors, indices and totals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from a1gm._base.optional import require
from a1gm._base.types import Absent, AnyArray, Bools, Floats, Ints
from a1gm._base.words import counted, shown
from a1gm._fit.fit import RankOneFit
from a1gm._fit.many import ManyFits
from a1gm._fit.residuals import Cells, Kind, check_kind, fitted_cells
from a1gm._fit.sure.arguments import check_level
from a1gm._fit.sure.labelled import Index, TotalsWithErrors
from a1gm._fit.sure.uncertainty import Uncertainty
from a1gm._fit.table import Table
from a1gm._rows import AnyRows, read_input
from a1gm._rows.labels import Lookup, are_ordered, plain_text
from a1gm._rows.long import read_long
from a1gm._rows.rows import Rows
from a1gm._rows.sparse import SparseRows
from a1gm.exceptions import ParameterError, TableTooLargeError
from a1gm.tensor.result import TensorFit
from a1gm.tensor.sure import TensorUncertainty

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Told apart by the colour-blind, too: bluish green and vermilion of unlike lightness.
KNOWN, HOLE = "#0f766e", "#d55e00"
LEVEL = "#888888"  # a line to compare with, on light and on dark
UNITS = "in the units of the table"
MOST_PIXELS = 600
MOST_NAMES = 12
_LETTERS_PER_INCH = 10
_MOST_POINTS, _MOST_SHAPES = 4000, 1000  # drawn at all; drawn as shapes, not as pixels
_MOST_CELLS = 1 << 28
_MOST_MARKED, _MOST_JOINED = 60, 600  # points marked on a line; joined by one


def pattern(
    X: Any,
    *,
    absent: Absent | None = None,
    reorder: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw which cells of a table are missing.

    Parameters
    ----------
    X : table of shape (n_rows, n_cols), or RankOneFit
        An array or a frame of any kind; NaN, null or a mask marks a missing cell. Of a
        long table pass its fit, which holds the table.
    absent : {"missing", "zero"}, optional
        For SciPy sparse tables, what an absent cell is.
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
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np, a1gm
    >>> X = np.ones((12, 8))
    >>> X[np.ix_([1, 4, 5, 9], [0, 3, 6])] = np.nan
    >>> _, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    >>> found = a1gm.plot.pattern(X, ax=axes[0])
    >>> sorted_ = a1gm.plot.pattern(X, reorder=True, ax=axes[1])
    >>> found.get_title()
    'Missing: 12 of 96 cells (12.5 %)'
    """
    from matplotlib.colors import LinearSegmentedColormap

    _refuse_more_keys(X)
    if isinstance(X, RankOneFit):
        source = _held_by(X._table)
    else:
        source = read_input(X, absent=absent)
    missing = np.isnan(_cells(source))
    if reorder:
        rows, columns = _structure_order(missing)
        missing = missing[rows][:, columns]
    (axes,) = axes_for(ax)
    axes.imshow(
        _averaged(missing),
        cmap=LinearSegmentedColormap.from_list("holes", [f"{HOLE}00", f"{HOLE}ff"]),
        vmin=0,
        vmax=1,
        aspect="auto",
        interpolation="nearest",
        extent=(0, missing.shape[1], missing.shape[0], 0),
    )
    _name_table(axes, source, ", reordered" * reorder)
    n, share = int(missing.sum()), 100.0 * missing.mean()
    axes.set_title(f"Missing: {n:,} of {missing.size:,} cells ({share:.1f} %)")
    axes.spines[:].set_visible(True)
    return axes


def _structure_order(missing: Bools) -> tuple[Ints, Ints]:
    """Order rows and columns so that grids become rectangles and staircases stairs."""
    columns = _pattern_order(missing.T)
    return _pattern_order(missing[:, columns]), columns


def _pattern_order(missing: Bools) -> Ints:
    """Order rows by their number of missing cells, then by pattern."""
    # Patterns as integers of 64 cells each: equal rows have equal integers.
    bits = np.packbits(missing, axis=1)
    bits = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8)))
    words = np.ascontiguousarray(bits).view(np.uint64)
    return np.lexsort((*words.T, missing.sum(axis=1)))


def observed_vs_fitted(X: Any, fit: RankOneFit, *, ax: Axes | None = None) -> Axes:
    """Draw the observed cells against their fitted values.

    Parameters
    ----------
    X : table of shape (n_rows, n_cols), or a long frame
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
    _, cells = _fitted_cells(X, fit, "observed_vs_fitted")
    (axes,) = axes_for(ax)
    cells_on(axes, cells.x, cells.fitted)
    return axes


def cells_on(axes: Axes, observed: Floats, fitted: Floats) -> None:
    """Draw observed cells against their fitted values."""
    chosen = np.flatnonzero(np.isfinite(fitted))
    if len(chosen) > _MOST_POINTS:
        chosen = chosen[np.linspace(0, len(chosen) - 1, _MOST_POINTS).astype(np.int64)]
    observed, fitted = observed[chosen], fitted[chosen]
    is_many = len(chosen) > _MOST_SHAPES
    style: Any = {"s": 9 if is_many else 20, "color": KNOWN, "alpha": 0.5, "lw": 0}
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


def residuals(
    X: Any, fit: RankOneFit, *, kind: Kind = "pearson", ax: Axes | None = None
) -> Axes:
    """Draw the residuals of a table as a map: red above the fit, blue below it.

    Parameters
    ----------
    X : table of shape (n_rows, n_cols), or a long frame
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
    check_kind(kind)
    source, cells = _fitted_cells(X, fit, "residuals")
    found = np.full((source.n_rows, source.n_cols), np.nan)
    found[cells.i, cells.j] = cells.residuals(kind)
    (axes,) = axes_for(ax)
    unit = f",\n{UNITS}" if kind == "response" else ""
    word = "Pearson" if kind == "pearson" else kind
    residual_map(axes, found, f"{word} residual{unit}")
    _name_table(axes, source)
    axes.set_title("Residuals: red above, blue below the fit")
    return axes


def residual_map(axes: Axes, found: Floats, label: str) -> None:
    """Draw residuals as a map with a scale of colours; ``label`` is its title."""
    from matplotlib import colormaps

    picture = _averaged(found)
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
    """Draw one row: its observed cells, and the bounds of its missing ones.

    Parameters
    ----------
    X : table of shape (n_rows, n_cols), or a long frame
        The table.
    errors : Uncertainty
        The result of ``fit.uncertainty()``.
    row : label or int
        The row: its label, or its position from 0.
    level : float
        The level of the prediction intervals.
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
    call = "plot.interval(X, fit.uncertainty(), row)"
    check_type(errors, Uncertainty, "errors", call)
    X = _as_fitted(X, errors._info.table)
    source = errors._holes(X).source
    found = Lookup("row", source.row_labels, source.n_rows, "X").find(row)
    if found.ndim:
        raise ParameterError(
            f"A picture shows one row; row={row!r} selects {found.size:,}. Pass one "
            "label or position; ax= puts several pictures side by side."
        )
    at = int(found)
    x = source.rows(slice(at, at + 1))[0]
    places, holes = np.arange(len(x)), np.isnan(x)
    low, high = x.copy(), x.copy()
    cells = np.full(holes.sum(), at), places[holes]
    low[holes], high[holes] = errors._bounds(X, *cells, level)
    filled, lost = holes & ~np.isnan(low), holes & np.isnan(low)
    (axes,) = axes_for(ax, height=3.4)
    size = max(1.0, min(6.0, 400.0 / len(places)))
    if not holes.all():
        axes.plot(places[~holes], x[~holes], "o", ms=size, color=KNOWN, label="known")
    if filled.any():
        axes.vlines(
            places[filled],
            low[filled],
            high[filled],
            color=HOLE,
            lw=size / 2.0,
            label=f"missing: {100 * level:.6g} % bounds",
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


def factors(
    fit: RankOneFit | TensorFit,
    *,
    most: int = 20,
    row_names: Sequence[Any] | None = None,
    col_names: Sequence[Any] | None = None,
    axes: Sequence[Axes] | None = None,
) -> tuple[Axes, ...]:
    """Draw the factors: lines over times, bars of names, maps where two modes act.

    Parameters
    ----------
    fit : RankOneFit or TensorFit
        The fit.
    most : int
        The most bars per factor; the largest are shown.
    row_names, col_names : sequence, optional
        Names of a table of rows and columns. Default: the labels of the fit, or
        numbers.
    axes : as many matplotlib.axes.Axes, optional
        Where to draw the row factor and the column factor, or those of the margins.

    Returns
    -------
    tuple of matplotlib.axes.Axes
        The row factor and the column factor; of a fit of several modes one for each
        margin. Names that are numbers, dates or times that ascend are a line, others
        bars, largest first; numbers of rows are names, unless they are years. The
        combinations of two modes are a map.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np, a1gm
    >>> X = np.array([[20.0, 41.0, 57.0], [12.0, 18.0, 33.0], [9.0, 22.0, np.nan]])
    >>> _, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
    >>> rows, columns = a1gm.plot.factors(
    ...     a1gm.fit(X), row_names=["ann", "bob", "cid"], axes=axes
    ... )

    Modes that act together, and one that does not:

    >>> rng = np.random.default_rng(0)
    >>> T = rng.poisson(rng.gamma(2, 20, (5, 1, 12)) * rng.gamma(9, 0.2, (1, 8, 1)))
    >>> fit = a1gm.fit_tensor(T, [("site", "month")], names=["site", "year", "month"])
    >>> _, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
    >>> seasons, years = a1gm.plot.factors(fit, axes=axes)
    """
    if isinstance(fit, TensorFit):
        if row_names is not None or col_names is not None:
            raise ParameterError(
                "row_names= and col_names= are for tables of rows and columns; the "
                "levels of more modes have the labels of the fit."
            )
        n = len(fit.margins)
        size = max(len(factor) for factor in fit.factors.values())
        made = axes_for(*_as_many(axes, n), height=_height(min(most, size)))
        for k, ax in enumerate(made):
            margin(fit, k, most=most, ax=ax)
        return made
    check_type(fit, RankOneFit, "fit", "plot.factors(fit)")
    height = _height(min(most, max(fit.shape)))
    left, right = axes_for(*_as_many(axes, 2), height=height)
    rows = fit.row_labels if row_names is None else row_names
    columns = fit.col_labels if col_names is None else col_names
    of_rows, of_columns = units_of_factors(fit)
    row_factor = np.asarray(fit.row_factor)
    _line_or_bars(left, row_factor, rows, most=most, title=of_rows, of_rows=True)
    _line_or_bars(right, fit.col_factor, columns, most=most, title=of_columns)
    left.set_title("Rows")
    right.set_title("Columns")
    return left, right


def _as_many(axes: Sequence[Axes] | None, n: int) -> tuple[Axes | None, ...]:
    """The axes that were passed, of which there must be ``n``; or none."""
    given = (None,) * n if axes is None else tuple(axes)
    if len(given) != n:
        raise ParameterError(f"axes must be {n} Axes, got {len(given)}.")
    return given


def margin(fit: TensorFit, k: int, *, most: int, ax: Axes) -> None:
    """Draw the factor of one margin of a fit of several modes."""
    factor = list(fit.factors.values())[k]
    names = [fit._finders[mode].names for mode in fit._groups[k]]
    title = "share, the sum is 1" if k else f"factor, {UNITS}"
    if fit.n_free > 0:
        title = "factor, to compare within a part only"
    if len(names) == 2:
        rows, columns = names
        _map_of(ax, factor, rows, columns, title)
        for side, mode in zip("yx", fit.margins[k], strict=True):
            getattr(ax, f"set_{side}label")(shown(mode), parse_math=False)
    elif len(names) == 1:
        labels = fit._finders[fit._groups[k][0]].labels
        _line_or_bars(ax, factor, labels, most=most, title=title)
    else:
        bars(ax, factor.ravel(), [*product(*names)], most=most, title=title)
    ax.set_title(" × ".join(map(shown, fit.margins[k])), parse_math=False)


def _map_of(
    axes: Axes, table: Floats, rows: Sequence[Any], columns: Sequence[Any], title: str
) -> None:
    """Draw the numbers of combinations of two modes as a map; NaN is grey."""
    from matplotlib import colormaps

    image = axes.imshow(
        _averaged(table),
        cmap=colormaps["viridis"].with_extremes(bad="#b0b0b0"),
        aspect="auto",
        interpolation="nearest",
        extent=(0, table.shape[1], table.shape[0], 0),
    )
    name_places(axes, rows, axis="y", middle=0.5)
    name_places(axes, columns, axis="x", middle=0.5)
    axes.figure.colorbar(image, ax=axes, label=title)


def _line_or_bars(
    axes: Axes,
    factor: Floats,
    names: Sequence[Any] | None,
    *,
    most: int,
    title: str,
    of_rows: bool = False,
) -> None:
    """Draw a factor as a line over names that have an order, otherwise as bars."""
    is_named = names is not None and len(names) == len(factor)
    if names is not None and is_named and are_ordered(names, of_rows=of_rows):
        _line(axes, factor, names)
        axes.set_ylabel(title)
    else:
        bars(axes, factor, names, most=most, title=title)


def _line(axes: Axes, values: Floats, labels: Sequence[Any]) -> None:
    """Draw numbers as a line over their labels, which follow one another."""
    style: dict[str, Any] = {"marker": "o", "ms": 3}
    if len(values) > _MOST_JOINED:
        style = {"marker": ".", "ms": 2, "lw": 0, "rasterized": True}
    elif len(values) > _MOST_MARKED:
        style = {"lw": 1}
    axes.plot(np.arange(len(values)), values, color=KNOWN, **style)
    name_places(axes, labels)
    if not np.any(values < 0.0):
        axes.set_ylim(bottom=0.0)
    axes.margins(x=0.01)


def units_of_factors(fit: RankOneFit) -> tuple[str, str]:
    """Titles of the row factors and of the column factors."""
    if fit.n_blocks <= 1 and fit.has_exposure:
        return "estimated total of a row at exposure 1", "share of a row's rate"
    if fit.n_blocks <= 1:
        return "estimated total of a row", "share of a row's total"
    return ("factor, to compare within a block only",) * 2


def index(
    found: Index, *, level: float = 0.95, most: int = 20, ax: Axes | None = None
) -> Axes:
    """Draw an index: a line with its band over times, bars where labels are names.

    Parameters
    ----------
    found : Index
        The result of ``fit.uncertainty().index()``.
    level : float
        The level of the confidence band or of the intervals.
    most : int
        The most bars; the largest are shown. A line shows all.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A line where the labels are numbers, dates or spans of time that ascend;
        otherwise bars, largest first. Numbers of rows are names, unless they are years.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np, a1gm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(np.outer(rng.gamma(3, 20, 30), np.linspace(1, 2, 12))) + 1.0
    >>> X[5, 3:9] = np.nan
    >>> _, ax = plt.subplots(figsize=(6, 3), layout="constrained")
    >>> ax = a1gm.plot.index(a1gm.fit(X).uncertainty().index(), ax=ax)
    """
    from scipy.special import stdtrit

    check_type(found, Index, "found", "plot.index(fit.uncertainty().index())")
    check_level(level)
    width = float(stdtrit(found._errors_dof, (1.0 + level) / 2.0)) * found.se
    low = np.maximum(found.value - width, 0.0)
    high = found.value + width
    base = np.flatnonzero((found.value == 1.0) & (found.se == 0.0))
    of = short(found.labels[base[0]], 16) if len(base) else "the base"
    title, around = f"relative to {of}", f"{100 * level:.6g} %"
    if not are_ordered(found.labels, of_rows=found._of == "row"):
        (axes,) = axes_for(ax, height=_height(min(most, len(found))))
        order = bars(axes, found.value, found.labels, most=most, title=title)
        _whiskers(axes, found.value, low, high, order)
        axes.axvline(1.0, color=LEVEL, lw=0.8)
        axes.set_title(f"Index with its {around} intervals")
        return axes
    (axes,) = axes_for(ax, height=3.4)
    places = np.arange(len(found))
    axes.fill_between(places, low, high, color=KNOWN, alpha=0.2, lw=0)
    _line(axes, found.value, found.labels)
    axes.axhline(1.0, color=LEVEL, lw=0.8)
    axes.set_ylabel(title, parse_math=False)
    axes.set_title(f"Index with its {around} band")
    return axes


def totals(found: TotalsWithErrors, *, most: int = 20, ax: Axes | None = None) -> Axes:
    """Draw totals with their standard errors: over times, or as bars of names.

    Parameters
    ----------
    found : TotalsWithErrors
        The result of ``fit.uncertainty().totals()``.
    most : int
        The most bars; the largest are shown. Points show all.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Points in order where the labels have one, as in ``index``; otherwise bars,
        largest first.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np, a1gm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(np.outer(rng.gamma(3, 20, 8), np.linspace(1, 2, 12))) + 1.0
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> _, ax = plt.subplots(figsize=(6, 3), layout="constrained")
    >>> ax = a1gm.plot.totals(a1gm.fit(X).uncertainty().totals(), ax=ax)
    """
    call = "plot.totals(fit.uncertainty().totals())"
    check_type(found, TotalsWithErrors, "found", call)
    title, se = f"total, {UNITS}", np.nan_to_num(found.se)
    if are_ordered(found.labels, of_rows=found._of == "row"):
        (axes,) = axes_for(ax, height=3.4)
        style: dict[str, Any] = {"fmt": "o", "ms": 3, "ecolor": HOLE, "capsize": 2}
        places = np.arange(len(found))
        axes.errorbar(places, found.value, yerr=se, color=KNOWN, **style)
        name_places(axes, found.labels)
        if not np.any(found.value < 0.0):
            axes.set_ylim(bottom=0.0)
        axes.set_ylabel(title)
    else:
        (axes,) = axes_for(ax, height=_height(min(most, len(found))))
        order = bars(axes, found.value, found.labels, most=most, title=title)
        _whiskers(axes, found.value, found.value - se, found.value + se, order)
    of = " of the missing cells" if found._cells == "missing" else ""
    axes.set_title(f"Totals{of} ± one standard error")
    return axes


def _whiskers(
    axes: Axes, value: Floats, low: Floats, high: Floats, order: Ints
) -> None:
    """Draw errors on horizontal bars, in the order of the bars."""
    ends = np.nan_to_num(np.stack([value - low, high - value])[:, order])
    style: dict[str, Any] = {"fmt": "none", "ecolor": HOLE, "capsize": 2}
    axes.errorbar(value[order], np.arange(len(order)), xerr=ends, **style)


def _height(n_bars: int) -> float:
    """Give the height of a picture in inches: few bars are not drawn thick."""
    return 1.5 + 0.2 * n_bars


def bars(
    axes: Axes, factor: Floats, names: Sequence[Any] | None, *, most: int, title: str
) -> Ints:
    """Draw numbers as horizontal bars, largest first; return their positions.

    ``title`` labels the axis. NaN values are left out; ``names`` are numbers by
    default.
    """
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    if most < 1:
        raise ParameterError(f"most must be a whole number >= 1, got {most!r}.")
    if names is not None and len(names) != len(factor):
        raise ParameterError(
            f"There are {len(names):,} names for {len(factor):,} bars. Pass one each."
        )
    known = np.flatnonzero(~np.isnan(factor))
    order = known[np.argsort(-factor[known], kind="stable")][:most]
    labels = [short(names[k] if names is not None else k) for k in order]
    axes.barh(np.arange(len(order)), factor[order], color=KNOWN)
    axes.set_yticks(np.arange(len(order)), labels=labels, parse_math=False)
    axes.invert_yaxis()
    some = f"\nlargest {len(order)} of {len(factor):,}" * (len(order) < len(known))
    without = len(factor) - len(known)
    title += some + f"\n{without:,} without a value" * (without > 0)
    axes.set_xlabel(title, parse_math=False)
    axes.margins(y=0.01)
    if not len(order):
        axes.set_xticks([])
        return order
    largest = float(factor[order[0]])
    # Long numbers beside each other would overlap.
    axes.xaxis.set_major_locator(MaxNLocator(5 if largest < 1e5 else 3))
    if 1e3 <= largest < 1e9:
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    return order


# ------------------------------------------------------------- shared by all pictures
def axes_for(*given: Axes | None, height: float = 4.2) -> tuple[Axes, ...]:
    """Return axes to draw on: ``ax``, or those of a new figure."""
    pyplot = require("matplotlib.pyplot", "plot", "A picture")
    chosen = tuple(axes for axes in given if axes is not None)
    for axes in chosen:
        if not isinstance(axes, pyplot.Axes):
            kind = type(axes).__name__
            raise ParameterError(f"ax must be Axes of matplotlib, got {kind}.")
    if len(chosen) == len(given):
        return chosen
    size = (4.8 * len(given), height)
    _, made = pyplot.subplots(
        1, len(given), squeeze=False, figsize=size, layout="constrained"
    )
    return tuple(made[0])


def check_type(given: Any, kind: type, name: str, call: str) -> None:
    """Raise if an argument is not of its type; ``call`` is the right one."""
    if isinstance(given, kind):
        return
    if kind in (RankOneFit, Uncertainty):
        _refuse_more_keys(given)
    if isinstance(given, ManyFits):
        call += ", where fit is one of its fits, many[key]"
    raise ParameterError(
        f"{name} must be {'an' if kind.__name__[0] in 'IU' else 'a'} {kind.__name__}, "
        f"got {type(given).__name__}. Use a1gm.{call}."
    )


def _refuse_more_keys(given: Any) -> None:
    """Raise for a fit of several modes, or its errors."""
    if isinstance(given, TensorFit | TensorUncertainty):
        raise ParameterError(
            "This picture is for tables of two keys; a1gm.plot.factors(fit) and "
            "a1gm.report.write_report(path, None, fit) show fits of more keys."
        )


def _as_fitted(X: Any, table: Table) -> Any:
    """X itself; the rows of the fit in place of the long frame it was made from."""
    if not table.is_long(X):
        return X
    assert table.long is not None
    own = _held_by(table)
    found = read_long(
        X, table.long[:2], table.long[2], ("weights", None), "allow"
    ).rows("sum")
    if not np.array_equal(_cells(found), _cells(own), equal_nan=True):
        raise ParameterError(
            "X is not the long frame that was fitted. Pass that one, or, with the fit "
            "of one group, the rows of that group."
        )
    return own


def _held_by(table: Table) -> AnyRows:
    """The rows that a fit holds, with its labels."""
    if isinstance(own := table.source, Rows | SparseRows):
        labels = {"row_labels": table.names_of_rows, "col_labels": table.col_labels}
        return replace(own, **labels)
    raise ParameterError("This fit does not hold its table. Pass the table itself.")


def _cells(source: AnyRows) -> Floats:
    """All numbers of a table, NaN where missing."""
    if source.n_rows * source.n_cols > _MOST_CELLS:
        raise TableTooLargeError(
            f"A picture reads the whole table, and {source.n_rows:,} x "
            f"{source.n_cols:,} cells are too many. Pass some of the rows."
        )
    return source.rows(slice(0, source.n_rows))


def _fitted_cells(X: Any, fit: RankOneFit, name: str) -> tuple[AnyRows, Cells]:
    """The rows of X and their observed cells, with fitted values."""
    check_type(fit, RankOneFit, "fit", f"plot.{name}(X, fit)")
    source, columns = fit._read(_as_fitted(X, fit._table), None, None)
    if isinstance(source, SparseRows) and source.absent == "zero":
        source, columns = fit._read(_cells(source), None, None)
    pieces = [vars(piece) for piece in fitted_cells(columns, source)]
    names = [field.name for field in fields(Cells)]
    return source, Cells(*(np.concatenate([p[k] for p in pieces]) for k in names))


def _averaged(table: AnyArray) -> Floats:
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


def _name_table(axes: Axes, source: AnyRows, order: str = "") -> None:
    """Write the numbers of rows and columns, and name some of them."""
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
    """Label some positions of an axis: all of a few, evenly spaced ones of many."""
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
    parts = name if isinstance(name, tuple) else (name,)
    text = shown(", ".join(map(plain_text, parts)))
    return text if len(text) <= limit else f"{text[: limit - 6]}…{text[-5:]}"
