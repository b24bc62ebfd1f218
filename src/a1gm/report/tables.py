"""Tables of a report as HTML: sortable listings, and the heat map."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from a1gm._base.types import Floats, Ints
from a1gm._base.words import counted
from a1gm._fit.messages import decimals
from a1gm.report.findings import Findings

MOST_LINES = 500
MOST_ROWS, MOST_COLUMNS = 60, 60  # of the heat map
_MOST_WRITTEN = 12  # columns whose values have room in the cells
_LONGEST_FLAT = 5  # letters of column names that are not turned
_SHADES = 10


def number(value: float, n_decimals: int | None = None) -> str:
    """Write a number for people: four digits, thousands apart, or with decimals."""
    if not math.isfinite(value):
        return "–"
    if n_decimals is not None:
        return f"{value:,.{n_decimals}f}" if value else "0"
    if value != 0 and (abs(value) >= 1e9 or abs(value) < 1e-3):
        return f"{value:.3e}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


# ------------------------------------------------------------------------ listings
def table(caption: str, columns: Mapping[str, Sequence[str] | Floats], n: int) -> str:
    """Make a sortable table of the first lines of ``n``.

    Text is escaped, numbers sort by value; a column without any number is left out.
    """
    heads, cells = "", []
    for head, column in columns.items():
        some = column[:MOST_LINES]
        if isinstance(some, np.ndarray):
            if not np.isfinite(some).any():
                continue
            n_decimals = decimals(some)
            cells.append([_number_cell(x, n_decimals) for x in some.tolist()])
        else:
            tag, end = ("td", "td") if cells else ('th scope="row"', "th")
            cells.append([f"<{tag}>{html.escape(text)}</{end}>" for text in some])
        heads += '<th scope="col" aria-sort="none"><button type="button">'
        heads += f"{html.escape(head)}</button></th>"
    body = "".join(f"<tr>{''.join(line)}</tr>" for line in zip(*cells, strict=True))
    n_kept = len(cells[0])
    cut = f": the first {n_kept:,} of {n:,}" if n > n_kept else ""
    title = html.escape(caption + cut)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{title}">'
        f'<table class="sortable"><caption>{title}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _number_cell(value: float, n_decimals: int | None) -> str:
    exact = repr(value) if math.isfinite(value) else ""
    return f'<td class="n" data-value="{exact}">{number(value, n_decimals)}</td>'


def totals_table(findings: Findings) -> str:
    """List the totals of the filled cells of each row, with their errors."""
    value, error, _, _ = findings.totals()
    n_filled = findings.is_filled.sum(axis=1)
    some = np.flatnonzero(n_filled)
    order = some[np.argsort(-value[some], kind="stable")]
    columns = {
        "row": [findings.row_names[k] for k in order.tolist()],
        "filled total": value[order],
        "± s.e.": error[order],
        "cells filled": n_filled[order].astype(np.float64),
        "known total": np.nansum(findings.known, axis=1)[order],
    }
    return table("Filled totals by row", columns, len(order))


def factor_table(findings: Findings, kind: str, *, is_ordered: bool) -> str:
    """List a factor, in table order or largest first."""
    fit, is_row = findings.fit, kind == "row"
    factor, names = findings.factor(kind)
    block = np.asarray(fit.row_block if is_row else fit.col_block)
    holes = findings.missing.sum(axis=1 if is_row else 0)
    order = np.arange(len(factor))
    if not is_ordered:
        order = np.argsort(np.where(np.isnan(factor), np.inf, -factor), kind="stable")
    # A row or column without data is in no block; a single block is not shown.
    has_block = (block >= 0) & (fit.n_blocks > 1)
    columns: dict[str, Any] = {
        kind: [names[k] for k in order[:MOST_LINES].tolist()],
        "factor": factor[order],
        "missing": np.where(holes.any(), holes, np.nan)[order],
        "block": np.where(has_block, block, np.nan)[order],
    }
    return table("Rows" if is_row else "Columns", columns, len(factor))


def misfit_table(findings: Findings) -> str:
    """List the cells with the largest residuals; empty if all are fitted exactly."""
    columns, n_known = findings.misfits(50), int((~findings.missing).sum())
    return table("Worst-fitting cells", columns, n_known) if columns["row"] else ""


def unknown_table(findings: Findings) -> str:
    """List the cells that cannot be known, and the reasons; empty without any."""
    lines = list(findings.unknown())
    if not lines:
        return ""
    columns: dict[str, Any] = {
        "where": [where for where, _, _ in lines],
        "cells": np.array([float(n) for _, n, _ in lines]),
        "why": [why for _, _, why in lines],
    }
    caption = f"{counted(findings.n_unknown, 'cell')} without a value"
    return table(caption, columns, len(lines))


# ------------------------------------------------------------------------ heat map
def heatmap(findings: Findings) -> str:
    """Draw the first rows and columns, with names, fills and bounds for the script."""
    n, m = min(findings.X.shape[0], MOST_ROWS), min(findings.X.shape[1], MOST_COLUMNS)
    filled, low, high = (t[:n, :m] for t in (findings.filled, *findings.bounds))
    shades, is_written = _shades(filled), m <= _MOST_WRITTEN
    rows, columns = findings.row_names[:n], findings.col_names[:m]
    head = "".join(_head("col", name) for name in columns)
    lines = []
    for i, name in enumerate(rows):
        cells = [_head("row", name)]
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
            text = value if is_written else ""
            cells.append(f'<td class="{kind}" data-v="{value}"{bounds}>{text}')
        lines.append(f"<tr>{''.join(cells)}")
    # Columns of one width, whatever is written in them.
    known = filled[~np.isnan(filled)].tolist()
    width = max((len(number(x)) for x in known), default=1)
    look = f' style="--N:{max(map(len, rows), default=0)}ch;--W:{width}ch"'
    if is_written:
        is_flat = max(map(len, columns), default=0) <= _LONGEST_FLAT
        look += f' class="written{" flat" * is_flat}"'
    label = "Heat map of the table; arrow keys walk through its cells"
    return (
        f'<div class="scroll heat" tabindex="0" role="region" aria-label="{label}">'
        f"<table{look}><caption>{label}</caption><thead><tr><td></td>{head}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
        f'<p class="legend">{_legend(findings, filled)}</p>'
    )


def _head(scope: str, name: str) -> str:
    return f'<th scope="{scope}"><span>{html.escape(name)}</span></th>'


def _shades(filled: Floats) -> Ints:
    """Shade of each cell: the tenth of the values that it belongs to."""
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
    """The sentence about the rows and columns that the heat map leaves out, if any."""
    n, m = findings.X.shape
    sizes = (n, MOST_ROWS, "row"), (m, MOST_COLUMNS, "column")
    cuts = [f"the first {most} of {counted(k, x)}" for k, most, x in sizes if k > most]
    return f"The map shows {' and '.join(cuts)}." if cuts else ""
