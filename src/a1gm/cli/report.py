"""``a1gm report``: a page about a table."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated

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
from a1gm.cli.tables import check_outputs, fit_table, rows_of, weights_of

MOST_CELLS = 2_000_000  # of a table that a page is about as a whole


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
    """
    import a1gm
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
    rows, cells = rows_of(fit, sample, MOST_CELLS)
    columns, notes = fit.col_labels, []
    labels = row_names(files, rows) if options.long is None else fit.row_labels[rows]
    if len(rows) < fit.shape[0]:
        notes = [
            f"This page is about {len(rows):,} of the {fit.shape[0]:,} rows, drawn at "
            "random: totals are those of these rows."
        ]
        how = options.fitting | weights_of(fit, rows) | {"on_undetermined": "ignore"}
        fit = a1gm.fit(cells, **how)
    notes += notes_of(fit, files=files, style=command_style)
    write_report(
        out,
        cells,
        fit,
        title=title or PurePath(files.name).name,
        row_names=[plain_text(label) for label in labels],
        col_names=[plain_text(label) for label in columns],
        source=files.name,
        notes=notes,
        overwrite=options.overwrite,
    )
    summary = {"out": out, "n_rows": fit.shape[0], "n_cols": fit.shape[1]}
    options.finish(summary, f"Wrote {shown(out)}.")
