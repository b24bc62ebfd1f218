"""The page itself: template, style and script put around the findings."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Sequence
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any

from a1gm._base.words import counted, shown
from a1gm._result.show import solver_in_words
from a1gm._sources import read_input
from a1gm.exceptions import DimensionError
from a1gm.report import figures, tables
from a1gm.report.findings import Findings, are_ordered

if TYPE_CHECKING:
    from a1gm._result.fit import RankOneFit


def report_html(
    X: Any,
    fit: RankOneFit,
    *,
    title: str = "A table and its rank-1 fit",
    row_names: Sequence[str] | None = None,
    col_names: Sequence[str] | None = None,
) -> str:
    """Describe a table and its fit in one self-contained HTML page.

    Parameters
    ----------
    X : table of shape (n_rows, n_cols)
        The table that was fitted, an array or a frame of any kind.
    fit : RankOneFit
        Its fit.
    title : str
        The heading.
    row_names, col_names : sequence of str, optional
        Names to show. Default: the labels of the fit, or numbers.

    Returns
    -------
    str
        HTML that needs no network: pictures, style and script are inside.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    """
    source = read_input(X)
    values = source.rows(slice(0, source.n_rows))
    if values.shape != fit.shape:
        raise DimensionError(
            f"The table is {values.shape[0]} × {values.shape[1]}, the fit "
            f"{fit.shape[0]} × {fit.shape[1]}. Pass the table that was fitted."
        )
    findings = Findings.of(values, fit, row_names, col_names)
    as_found, reordered = figures.pattern_figures(findings)
    row_bars, col_bars = figures.factor_figures(findings)
    row_caption, col_caption = _captions(findings)
    return Template(_resource("report.html")).substitute(
        title=html.escape(shown(title)),
        style=_resource("report.css"),
        script=_resource("report.js"),
        cards=_cards(findings),
        verdict=html.escape(_verdict(findings)),
        lead=html.escape(_lead(findings)),
        worth=_worth(findings),
        shape=html.escape(_shape(findings)),
        as_found=as_found,
        reordered=reordered,
        row_bars=row_bars,
        col_bars=col_bars,
        row_caption=row_caption,
        col_caption=col_caption,
        row_table=tables.factor_table(findings, "row"),
        col_table=tables.factor_table(findings, "column"),
        fit_figure=figures.fit_figure(findings),
        residual_map=figures.residual_figure(findings),
        residuals=tables.residual_table(findings),
        filled=tables.filled_table(findings),
        unknown=_unknown(findings),
        certificate=html.escape(_certificate(findings)),
    )


def write_report(
    path: str | os.PathLike[str],
    X: Any,
    fit: RankOneFit,
    *,
    title: str = "A table and its rank-1 fit",
    row_names: Sequence[str] | None = None,
    col_names: Sequence[str] | None = None,
    overwrite: bool = False,
) -> None:
    """Write the page of :func:`report_html` to a file, whole or not at all.

    Parameters
    ----------
    path : path-like
        The target.
    X, fit, title, row_names, col_names
        As for :func:`report_html`.
    overwrite : bool
        Whether a file that is already there may be replaced.
    """
    from a1gm._base.atomic import atomic_write

    page = report_html(X, fit, title=title, row_names=row_names, col_names=col_names)
    with atomic_write(path, overwrite=overwrite) as file:
        file.write(page.encode("utf-8", "replace"))


def _resource(name: str) -> str:
    folder = resources.files("a1gm.report") / "templates"
    return (folder / name).read_text(encoding="utf-8")


def _cards(findings: Findings) -> str:
    n_rows, n_cols = findings.X.shape
    n_missing = int(findings.missing.sum())
    share = n_missing / findings.X.size
    facts = [
        ("size", f"{n_rows:,} × {n_cols:,}", "rows × columns"),
        ("holes", f"{n_missing:,}", f"{share:.1%} of the cells"),
        ("filled", f"{findings.n_filled:,}", "cells got a value"),
        ("unknown", f"{findings.n_unknown:,}", "cells cannot be known"),
        *_how_sure(findings),
    ]
    return "".join(
        f'<div class="card {kind}"><dt>{kind}</dt><dd><strong>{html.escape(value)}'
        f"</strong> <span>{html.escape(words)}</span></dd></div>"
        for kind, value, words in facts
    )


def _how_sure(findings: Findings) -> list[tuple[str, str, str]]:
    """What the fills sum to, and what they are worth."""
    facts = []
    if findings.sure is not None and findings.n_filled:
        total = findings.sure.totals("all")
        value, se = float(total.value[0]), float(total.se[0])
        if not math.isnan(value):
            filled = f"± {tables.number(se)}, the sum of what was filled"
            facts.append(("total", tables.number(value), filled))
    if findings.assessment is not None:
        skill = findings.assessment.skill
        facts.append(("skill", f"{skill:.2f}", "1 is perfect, 0 a column's mean"))
    return facts


def _verdict(findings: Findings) -> str:
    found = findings.assessment
    return "" if found is None else found.verdict


def _worth(findings: Findings) -> str:
    """What the fills are worth: hidden cells, totals with errors, an index."""
    found, sure = findings.assessment, findings.sure
    words, parts = [], []
    if found is not None:
        words.append(
            f"{counted(found.n_hidden, 'known cell was', 'known cells were')} hidden "
            "and filled again; errors are in units of a column's standard deviation."
        )
        if not math.isnan(found.coverage):
            share = f"{found.coverage:.0%} of the {found.level:.0%} intervals"
            words.append(f"{share} held the hidden cell.")
        parts.append(tables.score_table(found))
    if sure is None:
        words.append("The table has too few cells to say how sure the fills are.")
    else:
        words.append(
            f"The variance of a cell is about {sure.dispersion:.3g} times its mean "
            f"({counted(sure.dof, 'degree')} of freedom)."
        )
        if findings.n_filled:
            parts.append(tables.totals_table(findings))
        if are_ordered(findings.col_names):
            parts.append(
                f"<figure>{figures.index_figure(findings)}<figcaption>Columns relative "
                "to the first, with the 95 % band</figcaption></figure>"
            )
    text = html.escape(" ".join(words))
    return f'<p>{text}</p><div class="pair">{"".join(parts)}</div>'


def _lead(findings: Findings) -> str:
    n_rows, n_cols = findings.X.shape
    what = (
        f"The table has {counted(n_rows, 'row')} and {counted(n_cols, 'column')}. Each "
        "of them gets one number, and a cell is explained by the product of its two."
    )
    if findings.fit.n_blocks <= 1:
        return (
            f"{what} The column numbers sum to 1, so the number of a row is its "
            "estimated total, in the units of the data."
        )
    return (
        f"{what} It falls into {findings.fit.n_blocks:,} blocks, each on a scale of "
        "its own: numbers can be "
        "compared, and products mean something, only within a block. The column "
        "numbers of a block sum to its share of the observed total; the number of a "
        "row times that share is the row's estimated total over the columns of its "
        "block, in the units of the data."
    )


def _captions(findings: Findings) -> tuple[str, str]:
    """What the bars of rows and of columns show."""
    if findings.fit.n_blocks <= 1:
        return "Rows: estimated totals", "Columns: shares"
    only = "comparable within a block only"
    return f"Rows: factors, {only}", f"Columns: factors, {only}"


def _shape(findings: Findings) -> str:
    pattern = findings.fit.pattern
    if pattern.is_complete:
        return "Nothing is missing."
    kinds = (
        f"{counted(pattern.n_row_patterns, 'kind of row', 'kinds of rows')} and "
        f"{counted(pattern.n_col_patterns, 'kind of column', 'kinds of columns')}"
    )
    if pattern.is_grid_like:
        what = "The holes form a grid: some rows × some columns"
    elif pattern.is_nested:
        what = "The holes form a staircase: each row's holes contain the next one's"
    elif pattern.has_closed_form:
        what = "The holes form no grid and no staircase, yet have a closed form"
    else:
        rows, columns = pattern.core_shape
        what = (
            f"The holes have no closed form: a core of {rows:,} × {columns:,} is left "
            "to iterate on"
        )
    return f"{what}. By its holes the table has {kinds}."


def _unknown(findings: Findings) -> str:
    n_blocks = int(findings.fit.n_blocks)
    words = (
        "<p>Observed cells tie all rows and columns together, so every hole in them "
        "has one best value.</p>"
        if n_blocks == 1
        else f"<p>The table falls into {n_blocks:,} blocks whose scales cannot be "
        "compared: no chain of positive cells ties one to the other.</p>"
    )
    if findings.n_unknown == 0:
        return words
    return words + tables.unknown_table(findings)


def _certificate(findings: Findings) -> str:
    fit = findings.fit
    how = solver_in_words(fit.solver, int(fit.n_iter))
    return (
        f"Solved by: {how}. At the best rank-1 fit, every row and every column of the "
        "fitted table sums to what was observed there; here the largest relative "
        f"difference is {fit.certificate:.1e}, and no finite cell is off the best "
        f"fit's by more than a share of {fit.cell_error:.1e}. That proves the best "
        "rank-1 fit; it does not prove that rank 1 is right for this table. The "
        f"divergence is {fit.divergence:.6g}."
    )
