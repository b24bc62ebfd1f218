"""``a1gm report``: a page about a table."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated, Any

import typer

from a1gm._base.words import shown
from a1gm.cli.app import command
from a1gm.cli.options import (
    Options,
    SampleOption,
    TableArgument,
    UsageError,
    command_style,
)
from a1gm.cli.tables import check_outputs, fit_table, has_many_keys


@command("by", "escape_formulas")
def report(
    file: TableArgument,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="PATH", help="The page, a .html file.")
    ],
    title: Annotated[
        str, typer.Option(metavar="TEXT", help="The heading. Default: the file name.")
    ] = "",
    sample: SampleOption = None,
    *,
    options: Options,
) -> None:
    """Write a page about a table: the fills, and how sure they are.

    One self-contained HTML file of less than 2 MB that needs no network, readable on a
    phone, in dark mode and on paper. Of a large table it shows a part, and which one:
    the first rows as a heat map, the largest totals, factors and misfits. Above
    2,000,000 cells the page is about a random sample of the rows, that of assess.

    Example:
      a1gm report sales.csv --id shop -o report.html
      a1gm report counts.csv --long site,year,month,count -o report.html
    """
    from a1gm._base.optional import require
    from a1gm.report import write_report
    from a1gm.report.findings import about_rows, notes_of, rows_of_page

    require("matplotlib", "plot", "A report")
    if out == "-" or not out.lower().endswith((".html", ".htm")):
        raise UsageError(f"-o must name a .html file, got {shown(out)}.")
    if sample is not None and has_many_keys(options):
        raise UsageError("--sample is for tables of two keys.")
    check_outputs(out, (), [file], options)
    fit, files = fit_table(file, options)
    write_report(
        out,
        None,
        fit,
        title=title or PurePath(files.name).name,
        source=files.name,
        notes=list(notes_of(fit, files=files, style=command_style)),
        sample=sample,
        overwrite=options.overwrite,
    )
    if has_many_keys(options):
        summary: dict[str, Any] = {"out": out, "shape": fit.shape}
        lines = []
    else:
        n = len(rows_of_page(fit._table.source, sample))
        summary = {"out": out, "n_rows": fit.shape[0], "n_cols": fit.shape[1]}
        summary["n_sample"] = n
        lines = [about_rows(n, fit.shape[0])] if n < fit.shape[0] else []
    options.finish(summary, *lines, f"Wrote {shown(out)}.")
