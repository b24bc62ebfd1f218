"""Draw the picture of the README: a table before, and its fill with intervals after.

python benchmarks/readme_picture.py   # writes readme.png and readme-dark.png
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

import a1gm
from a1gm.cli.demo import demo_sales

TARGET = Path(__file__).parent.parent / "docs" / "images"
SHOPS, MONTHS = [0, 3, 7, 9, 15, 19], slice(5, 11)


class Look(NamedTuple):
    """Colours of a page: its background, ink, holes, and the least and most cell."""

    paper: str
    ink: str
    hole: str
    least: str
    most: str


LOOKS = {
    "readme.png": Look("#ffffff", "#1c1e21", "#d55e00", "#eef6f5", "#5fb3aa"),
    "readme-dark.png": Look("#0d1117", "#e6edf3", "#ff9a4d", "#12302d", "#0f766e"),
}


def main() -> None:
    """Fit the table of the demo and draw some of its rows and columns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=TARGET, help="a folder")
    folder = parser.parse_args().out
    sales = demo_sales()[:-1]  # the last shop has not opened
    fit = a1gm.fit(sales)
    low, high = fit.uncertainty().interval(sales)
    shown = np.ix_(SHOPS, np.arange(sales.shape[1])[MONTHS])
    known, filled = sales[shown], fit.impute(sales)[shown]
    bounds = low[shown], high[shown]
    for name, look in LOOKS.items():
        figure = Figure(figsize=(8, 2.75), facecolor=look.paper)
        left, right = figure.subplots(1, 2)
        figure.subplots_adjust(0.05, 0.02, 0.995, 0.79, wspace=0.12)
        draw(left, known, known, None, "Simulated sales by month, with holes", look)
        title = "Filled, each with its 95 % interval"
        draw(right, filled, known, bounds, title, look)
        figure.savefig(folder / name, dpi=200)
        with Image.open(folder / name) as picture:
            small = picture.convert("RGB").quantize(64)
        small.save(folder / name, optimize=True)
        print(f"Wrote {folder / name}.")


def draw(
    axes: Axes,
    table: np.ndarray,
    known: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray] | None,
    title: str,
    look: Look,
) -> None:
    """Draw one table: a box for each cell, the holes framed."""
    n, m = table.shape
    axes.set_facecolor(look.paper)
    shades = LinearSegmentedColormap.from_list("teal", [look.least, look.most])
    shade = np.log(table)
    spread = np.nanmin(np.log(known)), np.nanmax(np.log(known))
    for i in range(n):
        for j in range(m):
            is_hole = np.isnan(known[i, j])
            colour = look.paper
            if not np.isnan(table[i, j]):
                colour = shades((shade[i, j] - spread[0]) / (spread[1] - spread[0]))
            frame = {"ec": look.paper}
            if is_hole:
                frame = {"ec": look.hole, "lw": 1.6, "zorder": 2}
            axes.add_patch(
                Rectangle((j + 0.03, i + 0.04), 0.94, 0.92, fc=colour, **frame)
            )
            if np.isnan(table[i, j]):
                continue
            at = {"ha": "center", "va": "center", "color": look.ink, "zorder": 3}
            weight = "bold" if is_hole else "normal"
            y = i + (0.34 if is_hole else 0.5)
            axes.text(j + 0.5, y, f"{table[i, j]:,.0f}", size=9, weight=weight, **at)
            if is_hole and bounds is not None:
                ends = "–".join(f"{bound[i, j]:,.0f}" for bound in bounds)
                axes.text(j + 0.5, i + 0.74, ends, size=6.8, **at)
    axes.set(xlim=(0, m), ylim=(n, 0))
    axes.spines[:].set_visible(False)
    axes.tick_params(
        length=0, labelsize=8, colors=look.ink, labeltop=True, labelbottom=False
    )
    axes.set_yticks(np.arange(n) + 0.5, [f"S{i + 1:02d}" for i in SHOPS])
    axes.set_xticks(
        np.arange(m) + 0.5, [f"2023-{k + 1:02d}" for k in range(24)[MONTHS]]
    )
    axes.set_title(title, size=10, weight="bold", color=look.ink, pad=8)


if __name__ == "__main__":
    main()
