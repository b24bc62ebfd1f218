"""Tables of a report, as HTML with headers that sort."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

import numpy as np

from a1gm._api.assess import Assessment
from a1gm._base.types import Floats, SmallInts
from a1gm.report.findings import MOST_CELLS, Findings

_MOST_LINES = 200


def number(value: float) -> str:
    """Write a number for people: four digits, thousands apart."""
    if np.isnan(value):
        return "–"
    if value != 0 and (abs(value) >= 1e9 or abs(value) < 1e-3):
        return f"{value:.3e}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def table(
    caption: str, heads: Sequence[str], lines: Iterable[Sequence[str | float]]
) -> str:
    """Make a sortable table; text is escaped, numbers sort by value."""
    head = "".join(
        f'<th scope="col" aria-sort="none"><button type="button">{html.escape(name)}'
        "</button></th>"
        for name in heads
    )
    body = "".join(f"<tr>{_cells(line)}</tr>" for line in lines)
    return (
        '<div class="scroll" tabindex="0" role="region" '
        f'aria-label="{html.escape(caption)}"><table class="sortable">'
        f"<caption>{html.escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cells(line: Sequence[str | float]) -> str:
    out = []
    for position, cell in enumerate(line):
        if isinstance(cell, str):
            tag = 'th scope="row"' if position == 0 else "td"
            out.append(f"<{tag}>{html.escape(cell)}</{tag[:2]}>")
        else:
            out.append(f'<td class="n" data-value="{cell!r}">{number(cell)}</td>')
    return "".join(out)


def factor_table(findings: Findings, kind: str) -> str:
    """List a factor, largest first."""
    fit = findings.fit
    is_row = kind == "row"
    factor: Floats = findings.row_factor if is_row else fit.col_factor
    names = findings.row_names if is_row else findings.col_names
    block: SmallInts = fit.row_block if is_row else fit.col_block
    holes = findings.missing.sum(axis=1 if is_row else 0)
    order = np.argsort(np.where(np.isnan(factor), np.inf, -factor), kind="stable")
    several = fit.n_blocks > 1
    # A line without any data is in no block.
    places = [float("nan") if b < 0 else int(b) for b in block]
    lines: list[tuple[str | float, ...]] = [
        (names[k], float(factor[k]), int(holes[k]), *[places[k]] * several)
        for k in order[:_MOST_LINES]
    ]
    caption = f"{kind.capitalize()} factor{_more('largest', len(factor))}"
    return table(caption, (kind, "factor", "holes", *["block"] * several), lines)


def _more(which: str, n: int, most: int = _MOST_LINES) -> str:
    """Say that a table is cut, if it is."""
    return f" (the {which} {most} of {n:,})" if n > most else ""


def residual_table(findings: Findings) -> str:
    """List the cells that are explained worst."""
    lines = [
        (*findings.names_of(i, j), observed, fitted, residual)
        for i, j, observed, fitted, residual in findings.largest_residuals()
    ]
    if not lines:
        return "<p>Every observed cell is explained exactly.</p>"
    heads = ("row", "column", "observed", "fitted", "residual")
    return table("Largest residuals", heads, lines)


def filled_table(findings: Findings) -> str:
    """List the cells that were filled, and with what."""
    if findings.n_filled == 0:
        return "<p>No cell was filled.</p>"
    low, high = findings.bounds
    lines: list[tuple[str | float, ...]] = [
        (
            *findings.names_of(i, j),
            *(float(t[i, j]) for t in (findings.filled, low, high)),
        )
        for i, j in findings.cells_filled()
    ]
    more = _more("first", findings.n_filled, MOST_CELLS)
    heads = ("row", "column", "filled with", "95 % from", "to")
    return table(f"Filled cells{more}", heads, lines)


def totals_table(findings: Findings) -> str:
    """List the totals of what was filled in each row, with their errors."""
    assert findings.sure is not None
    totals = findings.sure.totals("row")
    some = np.flatnonzero(totals.value > 0.0)
    order = some[np.argsort(-totals.value[some], kind="stable")]
    lines = [
        (findings.row_names[k], float(totals.value[k]), float(totals.se[k]))
        for k in order[:_MOST_LINES]
    ]
    caption = f"Totals of the filled cells by row{_more('largest', len(order))}"
    return table(caption, ("row", "total", "standard error"), lines)


def score_table(found: Assessment) -> str:
    """List the errors of rank 1 and of simpler guesses."""
    lines = [
        (name, score.mean_absolute_error, score.deviance)
        for name, score in found.scores.items()
    ]
    return table(
        "Errors on hidden cells",
        ("guess", "mean absolute error", "deviance"),
        lines,
    )


def unknown_table(findings: Findings) -> str:
    """List the cells that stay missing, and why."""
    lines = [
        (*findings.names_of(i, j), findings.why_unknown(int(i), int(j)))
        for i, j in findings.cells_unknown()
    ]
    more = _more("first", findings.n_unknown, MOST_CELLS)
    return table(f"Cells that cannot be known{more}", ("row", "column", "why"), lines)
