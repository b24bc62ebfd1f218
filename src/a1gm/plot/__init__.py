"""Pictures of a table with missing cells and of its fit, as matplotlib axes.

Needs matplotlib, the extra ``plot``. Colours are safe for the colour-blind, names are
thinned out, and large tables are averaged down to what a screen shows.
"""

from __future__ import annotations

from a1gm.plot.pictures import (
    factors,
    index,
    interval,
    observed_vs_fitted,
    pattern,
    residuals,
    totals,
)

__all__ = [
    "factors",
    "index",
    "interval",
    "observed_vs_fitted",
    "pattern",
    "residuals",
    "totals",
]
