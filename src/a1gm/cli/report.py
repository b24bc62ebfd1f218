"""``a1gm report``: a page about a table."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated

import typer

from a1gm._base.words import shown
from a1gm.cli.app import command
from a1gm.cli.options import Options, TableArgument, UsageError, command_style
from a1gm.cli.tables import cells_of, check_outputs, fit_table


@command("by")
def report(
    file: TableArgument,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="PATH", help="The page, a .html file.")
    ],
    title: Annotated[
        str, typer.Option(metavar="TEXT", help="The heading. Default: the file name.")
    ] = "",
    *,
    options: Options,
) -> None:
    """Write a page about a table: the fills, and how sure they are.

    One self-contained HTML file of less than 2 MB that needs no network, readable on a
    phone, in dark mode and on paper. Of a large table it shows a part, and which one:
    the first rows as a heat map, the largest totals, factors and misfits.

    Example:
      a1gm report sales.csv --id shop -o report.html
    """
    from a1gm._base.optional import require
    from a1gm._rows.files.table import row_names
    from a1gm._rows.labels import plain_text
    from a1gm.report import write_report
    from a1gm.report.findings import notes_of

    require("matplotlib", "plot", "A report")
    if out == "-" or not out.lower().endswith((".html", ".htm")):
        raise UsageError(f"-o must name a .html file, got {shown(out)}.")
    check_outputs(out, (), [file], options)
    fit, files = fit_table(file, options)
    rows = fit.row_labels
    if rows is None:
        rows = row_names(files)
    write_report(
        out,
        cells_of(fit),
        fit,
        title=title or PurePath(files.name).name,
        row_names=[plain_text(label) for label in rows],
        col_names=[plain_text(label) for label in fit.col_labels],
        source=files.name,
        notes=list(notes_of(fit, files=files, style=command_style)),
        overwrite=options.overwrite,
    )
    summary = {"out": out, "n_rows": fit.shape[0], "n_cols": fit.shape[1]}
    options.finish(summary, f"Wrote {shown(out)}.")
