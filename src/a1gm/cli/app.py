"""The commands of ``a1gm``."""

from __future__ import annotations

from typing import Annotated

import typer

from a1gm.cli.assess import assess_command
from a1gm.cli.demo import demo_command
from a1gm.cli.fit import fit_command
from a1gm.cli.impute import impute_command
from a1gm.cli.inspect import inspect_command
from a1gm.cli.nmmf import nmmf_command
from a1gm.cli.options import unwrapped
from a1gm.cli.report import report_command

app = typer.Typer(
    name="a1gm",
    # Plain help: drawing it with rich would double the time it takes to answer.
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_given: bool) -> None:
    if is_given:
        from importlib.metadata import version

        typer.echo(f"a1gm {version('a1gm')}")
        raise typer.Exit


def a1gm(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Show the version.",
        ),
    ] = False,
) -> None:
    r"""Explain a table with missing cells by one factor per row and one per column.

    The best rank-1 table under the Kullback-Leibler divergence on the observed cells,
    exact for every pattern of missing cells. A table is a file, several files or a
    folder: CSV, TSV, gzipped text, spreadsheets, Parquet, Feather, or - for standard
    input. It has one row of cells per line, or with --long one cell per line.

    \b
    Example:
      a1gm inspect sales.csv
      a1gm impute sales.csv -o filled.csv
      a1gm impute sales.xlsx --long shop,month,sales -o filled.csv
      a1gm report sales.csv -o report.html
    """


app.callback(help=unwrapped(a1gm.__doc__ or ""))(a1gm)
for name, command in (
    ("inspect", inspect_command),
    ("fit", fit_command),
    ("impute", impute_command),
    ("assess", assess_command),
    ("report", report_command),
    ("nmmf", nmmf_command),
    ("demo", demo_command),
):
    app.command(name, help=unwrapped(command.__doc__ or ""))(command)
