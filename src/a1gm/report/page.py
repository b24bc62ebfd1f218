"""The page: the sections of a report, between template, style and script."""

from __future__ import annotations

import html
import math
import os
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any

from a1gm import plot
from a1gm._api.assess import Assessment
from a1gm._base.atomic import atomic_write
from a1gm._base.version import __version__
from a1gm._base.words import counted, shown
from a1gm._rows.rows import Rows
from a1gm.exceptions import ParameterError
from a1gm.report import figures, tables
from a1gm.report.findings import Findings, are_ordered, notes_of
from a1gm.report.tables import number

if TYPE_CHECKING:
    from a1gm._fit.fit import RankOneFit

_EXACT = 1e-9  # a relative error that is rounding


def report_html(
    X: Any,
    fit: RankOneFit,
    *,
    title: str = "A table and its rank-1 fit",
    row_names: Sequence[str] | None = None,
    col_names: Sequence[str] | None = None,
    source: str = "",
    notes: Sequence[str] | None = None,
) -> str:
    """Describe a table and its fit in one self-contained HTML page.

    Parameters
    ----------
    X : table of shape (n_rows, n_cols)
        The table that was fitted, an array or a frame of any kind; columns of a frame
        are found by name.
    fit : RankOneFit
        Its fit.
    title : str
        The heading.
    row_names, col_names : sequence of str, optional
        Names to show. Default: the labels of the fit, or numbers.
    source : str
        Where the table is from, such as the name of its file.
    notes : sequence of str, optional
        What a reader must know before the numbers, a line each, below the verdict.
        Default: what was warned of when the table was read and fitted, and the columns
        that were left out; cells that cannot be known have a section of their own.

    Returns
    -------
    str
        HTML that needs no network: pictures, style and script are inside.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    DataError
        The table has another shape than the fit.
    ParameterError
        The table is not the one that was fitted; there are more or fewer names than
        rows or columns; or the fit had weights or exposures
        and has not kept those of every cell: it was loaded from a file, or made from a
        sparse table.

    Examples
    --------
    >>> import numpy as np, a1gm
    >>> from a1gm.report import report_html
    >>> X = np.array([[20.0, 41.0, 57.0], [12.0, 18.0, 33.0], [9.0, 22.0, np.nan]])
    >>> page = report_html(X, a1gm.fit(X), title="Three shops")
    >>> "<h1>Three shops</h1>" in page
    True
    """
    if notes is None:
        notes = list(notes_of(fit))
    notes = [notes] if isinstance(notes, str) else notes
    if fit._table.is_weighted and not isinstance(fit._table.weights, Rows):
        raise ParameterError(
            "This fit had weights or exposures and has not kept those of every cell, "
            "which a report needs. Fit the table again, as an array."
        )
    findings = Findings.of(fit._own_cells(X), fit, row_names, col_names)
    source = "" if source == title else shown(source)  # the heading is enough
    sections = list(_sections(findings, source))
    return Template(_resource("report.html")).substitute(
        title=html.escape(shown(title)),
        style=_resource("report.css"),
        script=_resource("report.js"),
        verdict=_verdict(findings) + _notes([*notes, *_ignored(findings)]),
        cards=_cards(findings),
        nav=" ".join(f'<a href="#{name}">{name}</a>' for name, _, _ in sections),
        sections="\n".join(
            f'<section id="{name}" aria-labelledby="h-{name}">'
            f'<h2 id="h-{name}">{heading}</h2>\n{body}\n</section>'
            for name, heading, body in sections
        ),
    )


def write_report(
    path: str | os.PathLike[str],
    X: Any,
    fit: RankOneFit,
    *,
    overwrite: bool = False,
    **options: Any,
) -> None:
    """Write the page of :func:`report_html` to a file, whole or not at all.

    Parameters
    ----------
    path : path-like
        The target.
    X, fit, **options
        As for :func:`report_html`.
    overwrite : bool, default=False
        Whether to replace an existing file.
    """
    page = report_html(X, fit, **options)
    with atomic_write(path, overwrite=overwrite) as file:
        file.write(page.encode("utf-8", "replace"))


def _resource(name: str) -> str:
    folder = resources.files("a1gm.report") / "templates"
    return (folder / name).read_text(encoding="utf-8")


def _notes(notes: Sequence[str]) -> str:
    text = "".join(f"<li>{html.escape(shown(note))}</li>" for note in notes)
    lines = re.sub(r"(?<![\w-])--[\w-]*\w", r'<span class="nowrap">\g<0></span>', text)
    return f'\n<ul class="notes" aria-label="Notes">{lines}</ul>' if notes else ""


def _ignored(findings: Findings) -> list[str]:
    """A note about known cells that were not fitted."""
    n, has_exposure = int(findings.is_ignored.sum()), findings.fit.has_exposure
    kind = "no exposure" if has_exposure else "weight 0"
    cells = counted(n, f"known cell has {kind}", f"known cells have {kind}")
    counts = "" if has_exposure else " and counted as missing here"
    return [f"{cells}: not fitted{counts}."] if n else []


# ------------------------------------------------------------------------- the verdict
def _verdict(findings: Findings) -> str:
    """Whether rank 1 suits the table, and how large the errors of fills are."""
    found, why_not = findings.assessment
    if found is None:
        text = f"Whether rank 1 suits this table could not be tested. {why_not}"
        return f'<div class="verdict"><p>{html.escape(text)}</p></div>'
    is_exact = found.scores["rank 1"].median_relative_error <= _EXACT
    mark = "good" if found.skill > 0.0 or is_exact else "bad"
    if is_exact:
        head, text = "Rank 1 suits this table: it fills hidden cells exactly.", ""
    else:
        head, _, text = found.verdict.partition(": ")
        head, text = f"{head}.", f"{text[0].upper()}{text[1:]} "
        mark = "unclear" if found.may_be_chance else mark
    text += _how_tried(findings, found)
    return (
        f'<div class="verdict {mark}"><p class="head">{html.escape(head)}</p>'
        f"{_errors(found)}<p>{html.escape(text)}</p></div>"
    )


def _how_tried(findings: Findings, found: Assessment) -> str:
    n, n_rows = len(findings.assessed_rows), findings.X.shape[0]
    where = "" if n == n_rows else f", in {n:,} of the {n_rows:,} rows"
    hidden = counted(found.n_hidden, "observed cell was", "observed cells were")
    text = f"{hidden} hidden{where}, and filled from the others."
    if findings.fit.has_exposure:
        text += " Means are rates, times the exposure of the hidden cell."
    elif findings.fit.has_weights:
        text += " Means are weighted as the cells are."
    if not math.isnan(found.coverage):
        held, level = 100 * found.coverage, 100 * found.level
        # Spaces that do not break: no line shall begin with a percent sign.
        text += f" {held:.0f}\u00a0% of the {level:.0f}\u00a0% intervals contained "
        text += "the hidden value."
    return text


def _errors(found: Assessment) -> str:
    """Median errors as bars, of rank 1 and of simpler methods."""
    errors = {k: score.median_relative_error for k, score in found.scores.items()}
    errors = {k: error for k, error in errors.items() if math.isfinite(error)}
    largest = max(errors.values(), default=0.0)
    if not largest:
        return ""
    bars = "".join(
        f'<dt>{name}</dt><dd><i style="width:{100 * error / largest:.1f}%"></i>'
        f"<b>{_percent(error)}</b></dd>"
        for name, error in errors.items()
    )
    return f'<div class="errors"><p>Median relative error</p><dl>{bars}</dl></div>'


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:,.0f} %"


def _cards(findings: Findings) -> str:
    """The table in a few numbers."""
    n_rows, n_cols = findings.X.shape
    facts = [("table", f"{n_rows:,} × {n_cols:,}", "rows × columns")]
    n_missing = int(findings.missing.sum())
    share = f"{100 * n_missing / findings.X.size:.3g} % of the cells"
    facts.append(("missing", f"{n_missing:,}", share if n_missing else "cells"))
    if findings.n_filled:
        _, _, total, error = findings.totals()
        what = f"sum of {counted(findings.n_filled, 'filled cell')}"
        if not math.isnan(error):
            what = f"± {number(error)} standard error; the {what}"
        facts.append(("filled", number(total), what))
    if findings.n_unknown:
        cells = "cell" if findings.n_unknown == 1 else "cells"
        text = f"{cells} cannot be known"
        facts.append(("unknown", f"{findings.n_unknown:,}", text))
    return "".join(
        f'<div class="card {kind}"><dt>{kind}</dt><dd><strong>{html.escape(value)}'
        f"</strong> <span>{html.escape(text)}</span></dd></div>"
        for kind, value, text in facts
    )


# ------------------------------------------------------------------------ the sections
def _sections(findings: Findings, source: str) -> Iterator[tuple[str, str, str]]:
    """Yield the word in the navigation, the heading and the body of each section."""
    if int(findings.is_filled.any(axis=1).sum()) > 1:  # one is in the card
        yield "totals", "Totals of the filled cells", _totals(findings)
    yield "table", "The table", _table(findings)
    yield "factors", "The factors", _factors(findings)
    yield "misfits", "Cells that fit worst", _misfits(findings)
    if findings.n_unknown:
        yield "unknown", "What cannot be known", tables.unknown_table(findings)
    yield "method", "Method", _method(findings, source)


def _totals(findings: Findings) -> str:
    text = (
        f"These totals come without errors. {html.escape(findings.why_not_sure)}"
        if findings.sure is None
        else "The standard error (s.e.) includes the estimation error of the factors "
        "and the scatter of the cells."
    )
    beside = tables.totals_table(findings)
    if int(findings.is_filled.any(axis=1).sum()) > 2:
        beside = _pair(figures.totals_figure(findings), "", beside)
    return f"<p>{text}</p>{beside}"


def _table(findings: Findings) -> str:
    text = "Point at a cell, tap it, or walk with the arrow keys to read its value"
    has_bounds = findings.n_filled and findings.sure is not None
    text += " and the bounds of a fill." if has_bounds else "."
    cut = tables.cut_in_words(findings)
    body = f'<p>{cut} <span class="script">{text}</span></p>{tables.heatmap(findings)}'
    if not findings.n_filled:
        return body
    listing = tables.filled_table(findings)
    if cut:
        holes = figures.drawn(
            lambda axes: plot.pattern(findings.known, ax=axes),
            "The missing cells of the whole table.",
            name="holes",
        )
        listing = _pair(holes, "All missing cells", listing)
    return body + listing


def _factors(findings: Findings) -> str:
    text = (
        "Each row and each column has one number; a cell is fitted by the product "
        "of its two"
    )
    text += " and its exposure." if findings.fit.has_exposure else "."
    n_blocks = findings.fit.n_blocks
    if n_blocks <= 1:
        by = " at exposure 1" if findings.fit.has_exposure else ""
        text += (
            " The column numbers sum to 1, so the number of a row is its estimated "
            f"total{by}, in the units of the table."
        )
    else:
        text += (
            f" The table has {n_blocks:,} blocks with separate scales: numbers can be "
            "compared and multiplied only within a block. The column numbers of a "
            "block sum to its share of the observed total; the number of a row times "
            "that share is its estimated total over the columns of its block."
        )
    parts = [f"<p>{html.escape(text)}</p>"]
    for kind, names in (("column", findings.col_names), ("row", findings.row_names)):
        if len(names) > 1:
            is_ordered = n_blocks <= 1 and are_ordered(names, of_rows=kind == "row")
            figure = figures.factor_figure(findings, kind, is_ordered=is_ordered)
            order = "in table order" if is_ordered else "largest first"
            listing = tables.factor_table(findings, kind, is_ordered=is_ordered)
            band = ", with the 95 % band" if is_ordered and findings.sure else ""
            caption = f"{kind.capitalize()}s, {order}{band}"
            parts.append(_pair(figure, caption, listing))
    return "".join(parts)


def _misfits(findings: Findings) -> str:
    listing = tables.misfit_table(findings)
    if not listing and not findings.n_without_residual:
        return "<p>Every observed cell is fitted exactly.</p>"
    text = "Residuals are in standard deviations of the cell."
    if findings.n_without_residual:
        cells = counted(findings.n_without_residual, "cell has", "cells have")
        text += f" {cells} a fitted value of 0 or less and no deviation."
    caption = "Observed against fitted; cells on the line are fitted exactly"
    beside = ""
    if listing:
        where = "Residuals: red above the fit, blue below"
        if (findings.missing | findings.is_ignored).any():
            where += ", grey not compared"
        beside = _figure(figures.residual_figure(findings), where)
    figure = figures.drawn(
        lambda axes: plot.observed_vs_fitted(findings.X, findings.fit, ax=axes),
        "Observed cells against their fitted values; the line marks equality.",
        name="fit",
    )
    pair = _pair(figure, caption, beside)
    return f"<p>{text}</p>{pair}{listing}"


def _pair(figure: str, caption: str, listing: str) -> str:
    if not figure:
        return listing
    return f'<div class="pair">{_figure(figure, caption)}{listing}</div>'


def _figure(figure: str, caption: str) -> str:
    text = f"<figcaption>{caption}</figcaption>" if caption else ""
    return f"<figure>{figure}{text}</figure>"


# -------------------------------------------------------------------------- the method
def _method(findings: Findings, source: str) -> str:
    """How the fit was computed, and what is proved."""
    fit = findings.fit
    today = datetime.now().astimezone().date().isoformat()
    facts = {
        "cells": _kinds(findings),
        "missing cells": fit.pattern.shape_name,
        **fit.summary(),
        "divergence": number(fit.divergence),
        "file": source,
        "made": f"{today}, by a1gm {__version__}",
    }
    if findings.sure is not None:
        dof = f"{findings.sure.dof:,} degrees of freedom"
        facts["dispersion"] = f"{number(findings.sure.dispersion)}, {dof}"
    if math.isinf(fit.cell_error):
        facts["cell error"] = "not bounded"
    rows = "".join(
        f"<dt>{html.escape(name.capitalize())}</dt><dd>{html.escape(text)}</dd>"
        for name, text in facts.items()
        if text
    )
    return (
        "<p>The certificate is the largest relative error of the fitted row and column "
        "sums; 0 proves the best rank-1 fit, not that rank 1 suits the table. The cell "
        "error bounds the relative error of every finite fitted cell.</p>"
        f'<dl class="facts">{rows}</dl>'
    )


def _kinds(findings: Findings) -> str:
    """What kind of cells the table has, if they are not plain."""
    if findings.fit.has_exposure:
        return "counts, each with its exposure"
    if findings.fit.has_weights:
        return "weighted, each by its own weight"
    n = int((findings.X < 0.0).sum())
    below = counted(n, "is below 0", "are below 0")
    return f"{below}: row and column sums are fitted, without a divergence" * bool(n)
