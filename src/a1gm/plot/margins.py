"""Numbers of rows and columns: factors, indices and totals with their errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._base.types import Floats, Ints
from a1gm.plot.axes import HOLE, KNOWN, UNITS, drawing, name_places, percent, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from a1gm._fit.fit import RankOneFit
    from a1gm._fit.sure.totals import Index, TotalsWithErrors

__all__ = ["bars", "factors", "index", "totals", "units_of_factors"]

_MOST_MARKED, _MOST_JOINED = 60, 600  # points marked on a line; joined by one


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

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np, a1gm
    >>> X = np.array([[20.0, 41.0, 57.0], [12.0, 18.0, 33.0], [9.0, 22.0, np.nan]])
    >>> _, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
    >>> rows, columns = a1gm.plot.factors(
    ...     a1gm.fit(X), row_names=["ann", "bob", "cid"], axes=axes
    ... )
    """
    given = (None, None) if axes is None else axes
    height = _height(min(most, max(fit.shape)))
    with drawing(*given, height=height) as (left, right):
        rows = fit.row_labels if row_names is None else row_names
        columns = fit.col_labels if col_names is None else col_names
        of_rows, of_columns = units_of_factors(fit)
        bars(left, np.asarray(fit.row_factor), rows, most=most, title=of_rows)
        bars(right, fit.col_factor, columns, most=most, title=of_columns)
        left.set_title("Rows")
        right.set_title("Columns")
    return left, right


def units_of_factors(fit: RankOneFit) -> tuple[str, str]:
    """Say what the factors of rows and of columns are."""
    if fit.n_blocks <= 1 and fit.has_exposure:
        return "estimated total of a row at exposure 1", "share of a row's rate"
    if fit.n_blocks <= 1:
        return "estimated total of a row", "share of a row's total"
    return ("factor, to compare within a block only",) * 2


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
    from scipy.special import ndtri

    width = float(ndtri((1.0 + level) / 2.0)) * found.se
    places = np.arange(len(found))
    with drawing(ax, height=3.4) as (axes,):
        low = np.maximum(found.value - width, 0.0)
        high = found.value + width
        axes.fill_between(places, low, high, color=KNOWN, alpha=0.2, lw=0)
        style: dict[str, Any] = {"marker": "o", "ms": 3}
        if len(found) > _MOST_JOINED:
            style = {"marker": ".", "ms": 2, "lw": 0, "rasterized": True}
        elif len(found) > _MOST_MARKED:
            style = {"lw": 1}
        axes.plot(places, found.value, color=KNOWN, **style)
        axes.axhline(1.0, color="#888888", lw=0.8)
        name_places(axes, found.labels)
        base = np.flatnonzero((found.value == 1.0) & (found.se == 0.0))
        of = short(found.labels[base[0]], 16) if len(base) else "the base"
        axes.set_ylabel(f"relative to {of}", parse_math=False)
        axes.set_title(f"Index with its {percent(level)} band")
        axes.set_ylim(bottom=0.0)
        axes.margins(x=0.01)
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
    with drawing(ax, height=_height(min(most, len(found)))) as (axes,):
        title = f"total, {UNITS}"
        order = bars(axes, found.value, found.labels, most=most, title=title)
        axes.errorbar(
            found.value[order],
            np.arange(len(order)),
            xerr=np.nan_to_num(found.se[order]),
            fmt="none",
            ecolor=HOLE,
            capsize=2,
        )
        axes.set_title("Totals ± one standard error")
    return axes


def _height(n_bars: int) -> float:
    """Give the height of a picture in inches: few bars are not drawn thick."""
    return 1.5 + 0.2 * n_bars


def bars(
    axes: Axes, factor: Floats, names: Sequence[Any] | None, *, most: int, title: str
) -> Ints:
    """Draw numbers as horizontal bars, largest first; return their places.

    ``title`` says what they are. NaN values are left out; ``names`` are numbers by
    default.
    """
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    known = np.flatnonzero(~np.isnan(factor))
    order = known[np.argsort(-factor[known], kind="stable")][:most]
    labels = [short(names[k] if names is not None else k) for k in order]
    axes.barh(np.arange(len(order)), factor[order], color=KNOWN)
    axes.set_yticks(np.arange(len(order)), labels=labels, parse_math=False)
    axes.invert_yaxis()
    some = f"\nlargest {len(order)} of {len(factor):,}" * (len(order) < len(known))
    without = len(factor) - len(known)
    axes.set_xlabel(title + some + f"\n{without:,} without a value" * (without > 0))
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
