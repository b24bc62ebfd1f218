"""``a1gm report``: a page to look at and to show."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import PurePath
from typing import Annotated

import typer

from a1gm._base.words import shown
from a1gm.cli.common import Common, TableArgument, UsageError, command, usage_errors
from a1gm.cli.console import say, text_of_json


@partial(command, hidden=("by",))
def report_command(
    file: TableArgument,
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", metavar="PATH", help="Where the page goes, an .html file."
        ),
    ],
    title: Annotated[
        str,
        typer.Option(
            "--title", metavar="TEXT", help="The heading. Default: the file name."
        ),
    ] = "",
    *,
    common: Common,
) -> None:
    r"""Write a page about a table: what fills it, and how sure that is.

    One self-contained HTML file of less than 2 MB that needs no network, readable on a
    phone, in dark mode and on paper. Large tables are cut, and the page says so: the
    first rows as a heat map, the largest totals, factors and misfits.

    \b
    Example:
      a1gm report sales.csv --id shop -o report.html
    """
    from a1gm._base.atomic import check_target
    from a1gm._base.optional import require
    from a1gm._rows.files.whole import read_whole
    from a1gm._rows.labels import plain_text
    from a1gm.cli.files import fit_with_words, open_files
    from a1gm.cli.long import LongInput
    from a1gm.cli.style import command_style
    from a1gm.report import write_report
    from a1gm.report.notes import notes_of

    require("matplotlib", "plot", "A report")
    if out == "-" or not out.lower().endswith((".html", ".htm")):
        raise UsageError(f"-o names an .html file, not {shown(out)}.")
    with usage_errors():
        for path in file:
            check_target(out, overwrite=common.overwrite, source=path)
    if common.long is not None:
        given = LongInput(file, common)
        fit, files, name = given.fit(), given.long.files, given.files.name
        values = given.spread_out(fit)
        names = [
            [plain_text(x) for x in labels]
            for labels in (fit.row_labels, fit.col_labels)
        ]
    else:
        files = open_files(file, common)
        fit = fit_with_words(files, common)
        table = read_whole(files, negatives="allow")  # what is refused was refused
        values, name = table.values, table.name
        names = [table.ids or table.places, list(table.columns)]
    write_report(
        out,
        values,
        fit,
        title=title or PurePath(name).name,
        row_names=names[0],
        col_names=names[1],
        source=name,
        notes=list(notes_of(fit, files=files, style=command_style)),
        overwrite=common.overwrite,
    )
    if common.json:
        summary = {"out": out, "n_rows": fit.shape[0], "n_cols": fit.shape[1]}
        sys.stdout.write(text_of_json(summary))
    if not common.quiet:
        say(f"Wrote {shown(out)}.")
