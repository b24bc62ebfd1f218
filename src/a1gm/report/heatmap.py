"""The table of a report as a heat map: an HTML table, a colour for each cell."""

from __future__ import annotations

import html

import numpy as np

from a1gm._base.types import Floats, Ints
from a1gm._base.words import counted
from a1gm.report.findings import Findings
from a1gm.report.tables import number

MOST_ROWS, MOST_COLUMNS = 60, 60
_MOST_WRITTEN = 12  # columns whose values have room in the cells
_LONGEST_FLAT = 5  # letters of column names that are not turned
_SHADES = 10


def heatmap(findings: Findings) -> str:
    """Draw the first rows and columns, with names, fills and bounds for the script."""
    n, m = min(findings.X.shape[0], MOST_ROWS), min(findings.X.shape[1], MOST_COLUMNS)
    filled, low, high = (t[:n, :m] for t in (findings.filled, *findings.bounds))
    shades = _shades(filled)
    head = "".join(
        f'<th scope="col"><span>{html.escape(name)}</span></th>'
        for name in findings.col_names[:m]
    )
    lines = []
    for i, name in enumerate(findings.row_names[:n]):
        cells = []
        for j in range(m):
            if np.isnan(filled[i, j]):
                cells.append('<td class="none">')
                continue
            value, kind, bounds = number(float(filled[i, j])), f"q{shades[i, j]}", ""
            if findings.missing[i, j]:
                kind += " fill"
                if not np.isnan(low[i, j]):
                    ends = " to ".join(number(float(b[i, j])) for b in (low, high))
                    bounds = f' data-b="{ends}"'
            written = value if m <= _MOST_WRITTEN else ""
            cells.append(f'<td class="{kind}" data-v="{value}"{bounds}>{written}')
        row = f'<th scope="row"><span>{html.escape(name)}</span></th>'
        lines.append(f"<tr>{row}{''.join(cells)}")
    # Columns of one width, whatever is written in them.
    flat = max(map(len, findings.col_names[:m]), default=0) <= _LONGEST_FLAT
    known = filled[~np.isnan(filled)].tolist()
    width = max((len(number(x)) for x in known), default=1)
    longest = max(map(len, findings.row_names[:n]), default=0)
    look = f' style="--N:{longest}ch;--W:{width}ch"'
    if m <= _MOST_WRITTEN:
        look += f' class="written{" flat" * flat}"'
    label = "Heat map of the table; arrow keys walk through its cells"
    return (
        f'<div class="scroll heat" tabindex="0" role="region" aria-label="{label}">'
        f"<table{look}><caption>{label}</caption><thead><tr><td></td>{head}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
        f'<p class="legend">{_legend(findings, filled)}</p>'
    )


def _shades(filled: Floats) -> Ints:
    """Shade of each cell: which tenth of the values that are there it belongs to."""
    known = filled[~np.isnan(filled)]
    if not known.size or known.min() == known.max():
        return np.full(filled.shape, _SHADES // 2)
    steps = np.quantile(known, np.arange(1, _SHADES) / _SHADES)
    # Equal values have one shade; the least and the most have those of the legend.
    shades = np.searchsorted(steps, np.nan_to_num(filled), side="left")
    return np.where(filled == known.max(), _SHADES - 1, shades)


def _legend(findings: Findings, filled: Floats) -> str:
    parts = []
    known = filled[~np.isnan(filled)]
    if known.size and known.min() < known.max():
        low, high = (number(float(end)) for end in (known.min(), known.max()))
        ramp = "".join(f'<i class="q{k}"></i>' for k in range(_SHADES))
        parts.append(
            f'{low} <span class="ramp" aria-hidden="true">{ramp}</span> {high}, '
            "about a tenth of the cells to each shade"
        )
    holes = findings.missing[: filled.shape[0], : filled.shape[1]]
    if np.any(holes & ~np.isnan(filled)):
        parts.append('<i class="q5 fill"></i> filled')
    if np.isnan(filled).any():
        parts.append('<i class="none"></i> cannot be known')
    return "".join(f"<span>{part}</span>" for part in parts)


def cut_in_words(findings: Findings) -> str:
    """Say that the heat map shows the first rows and columns only; empty otherwise."""
    n, m = findings.X.shape
    sizes = (n, MOST_ROWS, "row"), (m, MOST_COLUMNS, "column")
    cuts = [f"the first {most} of {counted(k, x)}" for k, most, x in sizes if k > most]
    return f"The map shows {' and '.join(cuts)}." if cuts else ""
