"""``a1gm report``: a page to look at and to show."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from a1gm.cli.common import Common, UsageError, check_output, command
from a1gm.cli.console import say


@command
def report_file(
    file: Annotated[str, typer.Argument(help="The table; - for standard input.")],
    out: Annotated[
        str, typer.Option("--out", "-o", help="Where the page goes, an .html file.")
    ],
    title: Annotated[
        str, typer.Option("--title", help="The heading. Default: the file name.")
    ] = "",
    *,
    common: Common,
) -> None:
    r"""Write a page about a table: holes, factors, fit, filled and unknown cells.

    One self-contained HTML file of less than 2 MB that needs no network, readable on a
    phone, in dark mode and on paper. Large tables are summarised: the largest factors
    and residuals, the first filled cells.

    \b
    Example:
      a1gm report sales.csv --id shop -o report.html
    """
    from a1gm.cli.gather import fit_values
    from a1gm.cli.names import FileNames
    from a1gm.cli.tables import open_file, read_whole
    from a1gm._base.optional import require
    from a1gm.report import write_report

    require("matplotlib", "plot", "A report")
    _check_page(out, common, file)
    table = open_file(file, common)
    values, row_names = read_whole(table, common)
    names = FileNames(table, see="the page lists them")
    fitted = fit_values(values, names, common)
    write_report(
        out,
        values,
        fitted,
        title=title or table.name,
        row_names=row_names or names.all_rows(),
        col_names=table.names,
        overwrite=common.overwrite,
    )
    if common.json:
        summary = {"out": out, "n_rows": len(values), "n_cols": len(table.names)}
        sys.stdout.write(json.dumps(summary, indent=2) + "\n")
    if not common.quiet:
        say(f"Wrote {out}.")


def _check_page(out: str, common: Common, source: str) -> None:
    if out == "-" or not out.lower().endswith((".html", ".htm")):
        raise UsageError(f"-o names an .html file, not {out}.")
    check_output(out, common=common, source=source)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("report")(report_file)
