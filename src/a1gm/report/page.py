"""The page itself: template, style and script put around the findings."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Sequence
from datetime import datetime
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any

from a1gm._base.words import shown
from a1gm._rows.rows import Rows
from a1gm.exceptions import ParameterError
from a1gm.report.findings import Findings, notes_of
from a1gm.report.sections import Section, cards, method, sections, verdict

if TYPE_CHECKING:
    from a1gm._fit.fit import RankOneFit


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
    today = datetime.now().astimezone().date().isoformat()
    parts = [*sections(findings), method(findings, source, today)]
    return Template(_resource("report.html")).substitute(
        title=html.escape(shown(title)),
        style=_resource("report.css"),
        script=_resource("report.js"),
        verdict=verdict(findings) + _notes([*notes, *findings.ignored]),
        cards=cards(findings),
        nav=" ".join(f'<a href="#{part.name}">{part.name}</a>' for part in parts),
        sections="\n".join(_section(part) for part in parts),
    )


def _notes(notes: Sequence[str]) -> str:
    text = "".join(f"<li>{html.escape(shown(note))}</li>" for note in notes)
    lines = re.sub(r"(?<![\w-])--[\w-]*\w", r'<span class="nowrap">\g<0></span>', text)
    return f'\n<ul class="notes" aria-label="Notes">{lines}</ul>' if notes else ""


def _section(part: Section) -> str:
    return (
        f'<section id="{part.name}" aria-labelledby="h-{part.name}">'
        f'<h2 id="h-{part.name}">{part.heading}</h2>\n{part.body}\n</section>'
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
    from a1gm._base.atomic import atomic_write

    page = report_html(X, fit, **options)
    with atomic_write(path, overwrite=overwrite) as file:
        file.write(page.encode("utf-8", "replace"))


def _resource(name: str) -> str:
    folder = resources.files("a1gm.report") / "templates"
    return (folder / name).read_text(encoding="utf-8")
