"""Pictures of a report: the ones of :mod:`a1gm.plot`, as SVG inside the page."""

from __future__ import annotations

import html
import io
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm import plot
from a1gm._base.optional import require
from a1gm._base.words import counted
from a1gm.report.findings import Findings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Drawn in this colour, then replaced by the text colour of the page, so that the same
# picture is readable in light mode, in dark mode and on paper.
_INK = "#010203"


def pattern_figures(findings: Findings) -> tuple[str, str]:
    """Draw the holes as found, and reordered so that their structure shows."""
    fit = findings.fit
    rows, columns = plot.structure_order(findings.missing, fit.row_block, fit.col_block)
    n_rows, n_cols = findings.X.shape
    size = f"{counted(n_rows, 'row')} by {counted(n_cols, 'column')}"
    as_found = _drawn(
        lambda axes: plot.pattern(findings.X, ax=axes),
        f"Holes of the table in the order of the file, {size}.",
        name="found",
    )
    reordered = _drawn(
        lambda axes: plot.pattern(findings.X[rows][:, columns], ax=axes),
        f"The same holes with rows and columns sorted by block, number of holes and "
        f"pattern, {size}.",
        name="reordered",
    )
    return as_found, reordered


def factor_figures(findings: Findings, most: int = 15) -> tuple[str, str]:
    """Draw both factors as sorted bars with names."""
    fit = findings.fit
    figures = []
    for factor, names, kind in (
        (findings.row_factor, findings.row_names, "row"),
        (fit.col_factor, findings.col_names, "column"),
    ):
        known = np.flatnonzero(~np.isnan(factor))
        top = known[np.argsort(-factor[known], kind="stable")][:3]
        largest = ", ".join(f"{names[k]} ({factor[k]:.4g})" for k in top)
        draw = partial(
            plot.bars, factor=factor, names=names, most=most, title=f"{kind} factor"
        )
        figures.append(
            _drawn(
                draw,
                f"Bars of the {kind} factor, largest first: {largest}.",
                name=kind,
                height=0.6 + 0.26 * min(most, len(known)),
            )
        )
    return figures[0], figures[1]


def fit_figure(findings: Findings) -> str:
    """Draw observed against fitted cells."""
    return _drawn(
        lambda axes: plot.observed_vs_fitted(findings.X, findings.fit, ax=axes),
        "Observed cells against their fitted values; the line marks equality.",
        name="fit",
    )


def residual_figure(findings: Findings) -> str:
    """Draw the residuals as a map."""
    return _drawn(
        lambda axes: plot.residuals(findings.X, findings.fit, kind="deviance", ax=axes),
        "Residuals of the observed cells: blue below the fit, red above it.",
        name="residuals",
    )


def index_figure(findings: Findings) -> str:
    """Draw the columns relative to the first, with their band."""
    assert findings.sure is not None
    found = replace(findings.sure.index(), labels=findings.col_names)
    return _drawn(
        lambda axes: plot.index(found, ax=axes),
        "Factors of the columns relative to the first, with their 95 % band.",
        name="index",
    )


def _drawn(
    draw: Callable[[Axes], Any], alt: str, *, name: str, height: float = 3.6
) -> str:
    """Draw on a small figure and return it as an accessible SVG element."""
    matplotlib = require("matplotlib", "plot", "A report")
    from matplotlib.figure import Figure

    settings = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "font.size": 10,
        "font.family": "sans-serif",
        "axes.edgecolor": _INK,
        "axes.labelcolor": _INK,
        "text.color": _INK,
        "xtick.color": _INK,
        "ytick.color": _INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "savefig.transparent": True,
        "axes.formatter.useoffset": False,
        "axes.formatter.limits": (-3, 6),
    }
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # A name in a script the drawing font lacks: the browser has one.
        warnings.filterwarnings("ignore", message="Glyph")
        figure = Figure(figsize=(4.3, max(height, 1.2)), layout="constrained", dpi=110)
        draw(figure.subplots())
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return _inlined(buffer.getvalue(), alt, name)


def _inlined(svg: str, alt: str, name: str) -> str:
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", body, count=1)
    body = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", body, count=1)
    body = body.replace(_INK, "currentColor")
    # Several pictures in one page: their names must differ.
    body = re.sub(r'( id="|="#|url\(#)', rf"\g<1>{name}-", body)
    body = re.sub(r"font: ([0-9.]+)px [^;\"]*", r"font: \1px var(--sans)", body)
    title = f"<title>{html.escape(alt)}</title>"
    # Not a replacement pattern: a name may contain a backslash.
    end = body.index(">") + 1
    return f'{body[: end - 1]} role="img">{title}{body[end:]}'
