"""Pictures of a report: the ones of :mod:`a1gm.plot`, as SVG inside the page."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from xml.dom.minidom import parseString

import numpy as np

from a1gm import plot
from a1gm._base.optional import require
from a1gm.plot.pictures import (
    HOLE,
    KNOWN,
    bars,
    name_places,
    residual_map,
    units_of_factors,
)
from a1gm.report.findings import Findings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INK = "#010203"
_COLOURS = {_INK: "currentColor", KNOWN: "var(--accent)", HOLE: "var(--hole)"}
_MOST_BARS = 15


def totals_figure(findings: Findings, most: int = 15) -> str:
    """Draw the totals of the filled cells by row, with errors; empty without them."""
    if findings.sure is None:
        return ""
    found = findings.sure.totals("row")
    some = np.flatnonzero(findings.is_filled.any(axis=1))
    names = [findings.row_names[k] for k in some.tolist()]
    found = replace(found, labels=names, value=found.value[some], se=found.se[some])
    return drawn(
        lambda axes: plot.totals(found, most=most, ax=axes),
        "Filled totals by row with their standard errors.",
        name="totals",
        height=1.1 + 0.26 * min(most, len(some)),
    )


def factor_figure(findings: Findings, kind: str, *, is_ordered: bool) -> str:
    """Draw a factor: a line with its band in table order, or bars, largest first."""
    is_row = kind == "row"
    factor, names = findings.factor(kind)
    known = np.flatnonzero(~np.isnan(factor))
    if is_ordered and findings.sure is not None:
        base = next((k for k in known.tolist() if factor[k] > 0.0), 0)
        found = findings.sure.index(None, by="row" if is_row else "column")
        found = replace(found, labels=names)
        alt = f"The {kind}s relative to {names[base]}, with their 95 % band."
        return drawn(lambda axes: plot.index(found, ax=axes), alt, name=kind)
    top = known[np.argsort(-factor[known], kind="stable")][:3]
    largest = ", ".join(f"{names[k]} ({factor[k]:.4g})" for k in top)
    draw = partial(
        bars,
        factor=factor,
        names=names,
        most=_MOST_BARS,
        title=units_of_factors(findings.fit)[0 if is_row else 1],
    )
    alt = f"Bars of the {kind} factor, largest first: {largest}."
    height = 1.1 + 0.26 * min(_MOST_BARS, len(known))
    return drawn(draw, alt, name=kind, height=height)


def fit_figure(findings: Findings) -> str:
    """Draw the observed cells against their fitted values."""
    return drawn(
        lambda axes: plot.observed_vs_fitted(findings.X, findings.fit, ax=axes),
        "Observed cells against their fitted values; the line marks equality.",
        name="fit",
    )


def residual_figure(findings: Findings) -> str:
    """Draw how far each observed cell is off, as a map."""

    def draw(axes: Axes) -> None:
        residual_map(axes, findings.deviations, "residual")
        name_places(axes, findings.row_names, axis="y", middle=0.5)
        name_places(axes, findings.col_names, axis="x", middle=0.5)

    text = "Map of the deviations: blue cells are below the fit, red ones above it."
    return drawn(draw, text, name="residuals")


def drawn(
    draw: Callable[[Axes], Any], alt: str, *, name: str, height: float = 3.6
) -> str:
    """Draw on a small figure and return it as an accessible SVG element."""
    matplotlib = require("matplotlib", "plot", "A report")
    from matplotlib.figure import Figure

    settings = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "font.size": 10,
        "font.family": "DejaVu Sans",  # measured by; the page has its own
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
        axes = figure.subplots()
        draw(axes)
        axes.set_title("")  # the page has a caption
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return _inlined(buffer.getvalue(), alt, name)


def _inlined(svg: bytes, alt: str, name: str) -> str:
    """Make a picture an element of the page; its texts, which are data, stay."""
    document: Any = parseString(svg)
    root = document.documentElement
    for unwanted in root.getElementsByTagName("metadata"):
        unwanted.parentNode.removeChild(unwanted)
    for size in ("width", "height"):  # the page decides
        root.removeAttribute(size)
    title = document.createElement("title")
    title.appendChild(document.createTextNode(alt))
    root.insertBefore(title, root.firstChild)
    root.setAttribute("role", "img")
    for element in root.getElementsByTagName("*"):
        for key, value in list(element.attributes.items()):
            element.setAttribute(key, _in_page(key, value, name))
    return str(root.toxml())


def _in_page(key: str, value: str, name: str) -> str:
    """An attribute of a picture in a page with several, in the colours of the page."""
    if key == "id":
        return f"{name}-{value}"
    if key == "xlink:href" and value.startswith("#"):
        return f"#{name}-{value[1:]}"
    if key == "style":
        # Readable in light mode, in dark mode and on paper.
        for colour, name_in_css in _COLOURS.items():
            value = value.replace(colour, name_in_css)
    return value.replace("url(#", f"url(#{name}-")
