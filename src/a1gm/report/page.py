"""The page: the sections of a report, between template, style and script."""

from __future__ import annotations

import html
import math
import os
import re
from collections.abc import Sequence
from datetime import datetime
from importlib import resources
from string import Template
from typing import Any

from a1gm._base.atomic import atomic_write
from a1gm._base.checks import check_keywords
from a1gm._base.version import __version__
from a1gm._base.words import counted, shown
from a1gm._fit.fit import RankOneFit
from a1gm._rows.labels import are_ordered
from a1gm.exceptions import ParameterError
from a1gm.plot.pictures import check_type
from a1gm.report import figures, tables
from a1gm.report.findings import Findings, may_be_misread, notes_of
from a1gm.report.margins import Margins
from a1gm.report.tables import number
from a1gm.tensor.result import TensorFit

_CONDITION = re.compile(r"<if (!?)(\w+)>((?:(?!<if ).)*?)</if>", re.DOTALL)


def report_html(
    X: Any,
    fit: RankOneFit | TensorFit,
    *,
    title: str = "A table and its rank-1 fit",
    row_names: Sequence[str] | None = None,
    col_names: Sequence[str] | None = None,
    source: str = "",
    notes: Sequence[str] | None = None,
    sample: int | None = None,
) -> str:
    """Describe a table and its fit in one self-contained HTML page.

    Parameters
    ----------
    X : table of shape (n_rows, n_cols)
        The table that was fitted, an array or a frame of any kind; columns of a frame
        are found by name. None for the one that the fit has kept, in memory or in its
        files. Of a fit of several modes the array, or None.
    fit : RankOneFit or TensorFit
        Its fit.
    title : str
        The heading.
    row_names, col_names : sequence of str, optional
        Names to show. Default: the labels of the fit, or numbers.
    source : str
        Where the table is from, such as the name of its file.
    notes : sequence of str, optional
        What a reader must know before the numbers, a line each, above the verdict,
        which is grey where the table may not be what it was read as.
        Default: what was warned of when the table was read and fitted, and the columns
        that were left out; cells that cannot be known have a section of their own.
    sample : int, optional
        How many rows the page is about, drawn at random and always the same ones.
        Default: all rows, or above 2,000,000 cells as many as ``a1gm.assess`` judges.

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
        ``fit`` is no fit of one table; the table is not the one that was fitted; there
        are more or fewer names than rows or columns; or the fit had weights or
        exposures and has not kept those of every cell: it was loaded from a file.

    Examples
    --------
    >>> import numpy as np, a1gm
    >>> from a1gm.report import report_html
    >>> X = np.array([[20.0, 41.0, 57.0], [12.0, 18.0, 33.0], [9.0, 22.0, np.nan]])
    >>> page = report_html(X, a1gm.fit(X), title="Three shops")
    >>> "<h1>Three shops</h1>" in page
    True
    """
    if not isinstance(fit, TensorFit):
        check_type(fit, RankOneFit, "fit", "report.report_html(X, fit)")
    if notes is None:
        notes = list(notes_of(fit))
    notes = [notes] if isinstance(notes, str) else notes
    texts: dict[str, str]
    doubt = " doubtful" if may_be_misread(fit) else ""
    if isinstance(fit, TensorFit):
        if not (row_names is None and col_names is None and sample is None):
            raise ParameterError(
                "row_names=, col_names= and sample= are for tables of two keys."
            )
        margins = Margins(X, fit)
        texts, values = _of_margins(margins)
        notes = [*notes, *margins.notes]
    else:
        if fit._table.is_weighted and fit._table.weights is None:
            raise ParameterError(
                "This fit had weights or exposures and has not kept those of every "
                "cell, which a report needs. Fit the table again, as an array."
            )
        findings = Findings.of(X, fit, row_names, col_names, sample)
        texts, values = _of_table(findings)
        if findings.sample_in_words:
            notes = [findings.sample_in_words, *notes]
        notes = [*notes, *_ignored(findings)]
    if doubt:
        texts["mark"] = "unclear"
    texts |= {
        "title": title,
        "doubt": doubt,
        "source": "" if source == title else source,  # the heading is enough
        "made": f"{datetime.now().astimezone().date()}, by a1gm {__version__}",
    }
    values |= {
        **{name: html.escape(shown(text)) for name, text in texts.items()},
        "style": _resource("report.css"),
        "script": _resource("report.js"),
        "notes": _notes(notes),
    }
    return _substituted(_resource("report.html"), values)


def _of_table(findings: Findings) -> tuple[dict[str, str], dict[str, str]]:
    """Texts and elements of a page about a table of rows and columns."""
    texts = {
        **_assessed(findings),
        **_counts(findings),
        "why_not_sure": findings.why_not_sure,
        "margins": "",
        "overlap": "",
    }
    misfits = tables.misfit_table(findings)
    values = {
        "errors": _errors(findings),
        "totals": _totals(findings),
        "cut": tables.cut_in_words(findings),
        "heatmap": tables.heatmap(findings),
        "factors": _factors(findings),
        "misfits": misfits,
        "unknown": tables.unknown_table(findings),
        "facts": _facts(findings),
        "fit_figure": figures.fit_figure(findings) if misfits else "",
        "residual_figure": figures.residual_figure(findings) if misfits else "",
    }
    return texts, values


def _of_margins(found: Margins) -> tuple[dict[str, str], dict[str, str]]:
    """Texts and elements of a page about a table of several modes."""
    misfits = found.misfits()
    values = {
        "totals": "".join(_pair(*part) for part in found.totals_by_mode()),
        "factors": "".join(_pair(*part) for part in found.factors()),
        "misfits": misfits,
        "unknown": found.unknown(),
        "facts": _listed(found.facts()),
        "fit_figure": found.fit_figure() if misfits else "",
        **dict.fromkeys(("errors", "cut", "heatmap", "residual_figure"), ""),
    }
    return {**found.assessed(), **found.counts()}, values


def write_report(
    path: str | os.PathLike[str],
    X: Any,
    fit: RankOneFit | TensorFit,
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
    check_keywords("write_report", options, report_html.__kwdefaults__)
    page = report_html(X, fit, **options)
    with atomic_write(path, overwrite=overwrite) as file:
        file.write(page.encode("utf-8", "replace"))


def _resource(name: str) -> str:
    folder = resources.files("a1gm.report") / "templates"
    return (folder / name).read_text(encoding="utf-8")


def _substituted(template: str, values: dict[str, str]) -> str:
    """Put values in a template, and keep what depends on one that is not empty.

    Examples
    --------
    >>> template = "$n cells<if rows> in $rows rows</if><if !rows> in one row</if>"
    >>> _substituted(template, {"n": "6", "rows": ""})
    '6 cells in one row'
    """

    def kept(found: re.Match[str]) -> str:
        is_negated, name, text = found.groups()
        return text if bool(values[name]) != bool(is_negated) else ""

    while "<if " in template:  # the innermost come first
        template = _CONDITION.sub(kept, template)
    return Template(template).substitute(values)


def _notes(notes: Sequence[str]) -> str:
    text = "".join(f"<li>{html.escape(shown(note))}</li>" for note in notes)
    return re.sub(r"(?<![\w-])--[\w-]*\w", r'<span class="nowrap">\g<0></span>', text)


def _ignored(findings: Findings) -> list[str]:
    """A note about known cells that were not fitted."""
    n, has_exposure = int(findings.is_ignored.sum()), findings.fit.has_exposure
    kind = "no exposure" if has_exposure else "weight 0"
    cells = counted(n, f"known cell has {kind}", f"known cells have {kind}")
    counts = "" if has_exposure else " and counted as missing here"
    return [f"{cells}: not fitted{counts}."] if n else []


# ------------------------------------------------------------------- texts and numbers
def _assessed(findings: Findings) -> dict[str, str]:
    """Whether rank 1 suits the table, and how that was tested."""
    found, why_not = findings.assessment
    texts = dict.fromkeys(("mark", "verdict", "comparison"), "")
    texts["why_not_tested"] = why_not
    if found is None:
        return texts
    mark = "good" if found.lead >= 0.0 else "bad"
    texts["mark"] = "unclear" if found.may_be_chance else mark
    texts["verdict"] = f"{found.headline}."
    first = f"{found.comparison[0].upper()}{found.comparison[1:]}."
    texts["comparison"] = " ".join([first, *found.notes])
    return texts


def _counts(findings: Findings) -> dict[str, str]:
    """The table in a few numbers; an empty text where one is 0."""
    fit, n_missing = findings.fit, int(findings.missing.sum())
    n_below, n_odd = int((findings.X < 0.0).sum()), findings.n_without_residual
    _, _, total, error = findings.totals()
    return {
        "size": "{:,} × {:,}".format(*findings.X.shape),
        "dimensions": "rows × columns",
        "n_missing": f"{n_missing:,}",
        "share": f"{100 * n_missing / findings.X.size:.3g} %" if n_missing else "",
        "filled": _if_any(findings.n_filled, "filled cell"),
        "total": number(total),
        "error": "" if math.isnan(error) else number(error),
        "n_unknown": f"{findings.n_unknown:,}",
        "unknown_cells": "cell" if findings.n_unknown == 1 else "cells",
        "sure": "" if findings.sure is None else "yes",
        "exposure": "yes" if fit.has_exposure else "",
        "weights": "yes" if fit.has_weights and not fit.has_exposure else "",
        "below": _if_any(n_below, "is below 0", "are below 0"),
        "blocks": f"{fit.n_blocks:,}" if fit.n_blocks > 1 else "",
        "uncompared": "yes" if (findings.missing | findings.is_ignored).any() else "",
        "odd": _if_any(n_odd, "cell has", "cells have"),
    }


def _if_any(n: int, *nouns: str) -> str:
    return counted(n, *nouns) if n else ""


def _errors(findings: Findings) -> str:
    """Median errors as bars, of rank 1 and of simpler methods."""
    scores = {} if findings.assessment[0] is None else findings.assessment[0].scores
    errors = {k: score.median_relative_error for k, score in scores.items()}
    errors = {k: error for k, error in errors.items() if math.isfinite(error)}
    largest = max(errors.values(), default=0.0)
    return "".join(
        f'<dt>{name}</dt><dd><i style="width:{100 * error / largest:.1f}%"></i>'
        f"<b>{_percent(error)}</b></dd>"
        for name, error in errors.items()
        if largest
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:,.0f} %"


def _facts(findings: Findings) -> str:
    """How the fit was computed, and what is proved."""
    fit = findings.fit
    facts = {
        "missing cells": fit.pattern.shape_name,
        **fit.summary(),
        "divergence": number(fit.divergence),
    }
    if findings.sure is not None:
        dof = counted(findings.sure.dof, "degree of freedom", "degrees of freedom")
        facts["dispersion"] = f"{number(findings.sure.dispersion)}, {dof}"
        if findings.sure.outlier is not None:
            facts["outlier"] = str(findings.sure.outlier)
    if math.isinf(fit.cell_error):
        facts["cell error"] = "not bounded"
    return _listed(facts)


def _listed(facts: dict[str, str]) -> str:
    return "".join(
        f"<dt>{html.escape(name.capitalize())}</dt><dd>{html.escape(text)}</dd>"
        for name, text in facts.items()
    )


# ------------------------------------------------------------------- figures, listings
def _totals(findings: Findings) -> str:
    n = int(findings.is_filled.any(axis=1).sum())
    if n < 2:  # one is in the card
        return ""
    figure = figures.totals_figure(findings) if n > 2 else ""
    return _pair(figure, "", tables.totals_table(findings))


def _factors(findings: Findings) -> str:
    parts = []
    for kind, names in (("column", findings.col_names), ("row", findings.row_names)):
        if len(names) > 1:
            is_ordered = findings.is_ordered
            if kind == "row":
                is_ordered = are_ordered(names, of_rows=True)
            is_ordered = is_ordered and findings.fit.n_blocks <= 1
            figure = figures.factor_figure(findings, kind, is_ordered=is_ordered)
            order = "in table order" if is_ordered else "largest first"
            listing = tables.factor_table(findings, kind, is_ordered=is_ordered)
            band = ", with the 95 % band" if is_ordered and findings.sure else ""
            caption = f"{kind.capitalize()}s, {order}{band}"
            parts.append(_pair(figure, caption, listing))
    return "".join(parts)


def _pair(figure: str, caption: str, listing: str) -> str:
    if not figure:
        return listing
    text = f"<figcaption>{caption}</figcaption>" if caption else ""
    return f'<div class="pair"><figure>{figure}{text}</figure>{listing}</div>'
