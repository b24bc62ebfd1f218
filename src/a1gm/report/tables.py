"""Tables of a report, as HTML with headers that sort."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np

from a1gm._base.types import Floats
from a1gm._base.words import counted
from a1gm.report.findings import Findings

MOST_LINES = 500


def number(value: float, decimals: int | None = None) -> str:
    """Write a number for people: four digits, thousands apart, or with decimals."""
    if not math.isfinite(value):
        return "–"
    if decimals is not None:
        return f"{value:,.{decimals}f}" if value else "0"
    if value != 0 and (abs(value) >= 1e9 or abs(value) < 1e-3):
        return f"{value:.3e}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def _decimals(cells: Iterable[str | float]) -> int | None:
    """Decimals for all numbers of a column; None where each needs its own digits."""
    numbers = [cell for cell in cells if not isinstance(cell, str)]
    sizes = [abs(x) for x in numbers if x and math.isfinite(x)]
    if not sizes or max(sizes) >= 1e9:
        return None
    if all(float(size).is_integer() for size in sizes):
        return 0
    decimals = max(0, 3 - math.floor(math.log10(max(sizes))))
    # The least shall keep two digits.
    return decimals if decimals <= 6 and min(sizes) * 10.0**decimals >= 10.0 else None


def table(
    caption: str, heads: Sequence[str], lines: Iterable[Sequence[str | float]], n: int
) -> str:
    """Make a sortable table of the first lines of ``n``; columns of NaN are left out.

    Text is escaped; numbers sort by value.
    """
    kept = list(islice(lines, MOST_LINES))
    used = [
        k for k in range(len(heads)) if any(_is_something(line[k]) for line in kept)
    ]
    head = "".join(
        f'<th scope="col" aria-sort="none"><button type="button">'
        f"{html.escape(heads[k])}</button></th>"
        for k in used
    )
    decimals = [_decimals(line[k] for line in kept) for k in used]
    body = "".join(
        f"<tr>{_cells([line[k] for k in used], decimals)}</tr>" for line in kept
    )
    cut = f": the first {len(kept):,} of {n:,}" if n > len(kept) else ""
    title = html.escape(caption + cut)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{title}">'
        f'<table class="sortable"><caption>{title}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _is_something(cell: str | float) -> bool:
    return isinstance(cell, str) or math.isfinite(cell)


def _cells(line: Sequence[str | float], decimals: Sequence[int | None]) -> str:
    out = []
    for position, (cell, places) in enumerate(zip(line, decimals, strict=True)):
        if isinstance(cell, str):
            tag = 'th scope="row"' if position == 0 else "td"
            out.append(f"<{tag}>{html.escape(cell)}</{tag[:2]}>")
        else:
            value = repr(float(cell)) if math.isfinite(cell) else ""
            out.append(
                f'<td class="n" data-value="{value}">{number(cell, places)}</td>'
            )
    return "".join(out)


def totals_table(findings: Findings) -> str:
    """List the totals of what was filled in each row, with their errors."""
    value, error, _, _ = findings.totals()
    n_filled = findings.is_filled.sum(axis=1)
    known = np.nansum(findings.known, axis=1)
    some = np.flatnonzero(n_filled)
    order = some[np.argsort(-value[some], kind="stable")]
    numbers = np.column_stack([value, error, n_filled, known])
    lines = ((findings.row_names[k], *map(float, numbers[k])) for k in order)
    heads = ("row", "filled total", "± s.e.", "cells filled", "known total")
    return table("Filled totals by row", heads, lines, len(order))


def filled_table(findings: Findings) -> str:
    """List the cells that were filled, and with what."""
    found = (findings.filled, *findings.bounds)
    lines = (
        (findings.row_names[i], findings.col_names[j], *(float(t[i, j]) for t in found))
        for i, j in np.argwhere(findings.is_filled)[:MOST_LINES].tolist()
    )
    heads = ("row", "column", "filled with", "95 % from", "to")
    return table("Filled cells", heads, lines, findings.n_filled)


def factor_table(findings: Findings, kind: str, *, is_ordered: bool) -> str:
    """List a factor, in table order or largest first."""
    fit, is_row = findings.fit, kind == "row"
    factor, names = findings.factor(kind)
    block = fit.row_block if is_row else fit.col_block
    holes = findings.missing.sum(axis=1 if is_row else 0)
    order = np.arange(len(factor))
    if not is_ordered:
        order = np.argsort(np.where(np.isnan(factor), np.inf, -factor), kind="stable")
    # A row or column without data is in no block; a single block is not shown.
    places = np.where((block >= 0) & (fit.n_blocks > 1), block, np.nan)
    missing = np.where(holes.any(), holes, np.nan)
    numbers: Floats = np.column_stack([factor, missing, places])
    lines = ((names[k], *numbers[k].tolist()) for k in order.tolist())
    caption = "Rows" if is_row else "Columns"
    return table(caption, (kind, "factor", "missing", "block"), lines, len(factor))


def misfit_table(findings: Findings) -> str:
    """List the cells with the largest residuals; empty if all are fitted exactly."""
    lines = findings.misfits(50)
    heads = ("row", "column", "observed", "fitted", "residual")
    n_known = int((~findings.missing).sum())
    return table("Worst-fitting cells", heads, lines, n_known) if lines else ""


def unknown_table(findings: Findings) -> str:
    """List the cells that cannot be known, and the reasons."""
    lines = list(findings.unknown())
    cells = counted(findings.n_unknown, "cell")
    heads = ("where", "cells", "why")
    return table(f"{cells} without a value", heads, lines, len(lines))
